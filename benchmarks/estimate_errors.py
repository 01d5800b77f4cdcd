"""How true estimates are, as figures of many runs.

step    |estimated / measured - 1|, median and 90th percentile; bias: median of the ratio
cover   share of measured steps within [low, high]; wide: high / low, median
order   Spearman's rank correlation of estimated and measured, in sets of one model, GPUs,
        sequence, global batch and software, of four runs or more; by their number of runs
regret  how much slower than the fastest of its set the run estimated fastest is
memory  |estimated / measured - 1| where a source says what was allocated
held    the same, also where a source says what was reserved, or not which: of what is needed
holds   share of measured memory within [memory_low, memory_high]
oom     of sources that say which runs lacked memory: share told right; of those that did,
        caught; of those that ran, lost
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from groups.errors import LayoutError
from training.estimate import Estimate, MeasuredRun, estimate

SET = 4
"""Runs that a set needs for its order to say anything."""


@dataclass(frozen=True)
class Answered:
    """A run and what was estimated of it; None: refused."""

    run: MeasuredRun
    found: Estimate | None

    @property
    def ratio(self) -> float:
        """Estimated over measured."""
        assert self.found
        assert self.run.seconds
        return self.found.seconds / self.run.seconds


@dataclass(frozen=True)
class ErrorFigures:
    """The figures of the module's table; nan where there is nothing to tell."""

    runs: int
    refused: int
    step: float
    step90: float
    bias: float
    cover: float
    wide: float
    order: float
    regret: float
    regret90: float
    memory: float
    memory90: float
    held: float
    holds: float
    right: float
    caught: float
    lost: float


def answered(several: Iterable[MeasuredRun]) -> list[Answered]:
    """Every run asked."""
    found = []
    for run in several:
        try:
            found.append(Answered(run, estimate(run.shape, **vars(run.arguments))))
        except LayoutError:
            found.append(Answered(run, None))
    return found


def figures(several: Sequence[Answered]) -> ErrorFigures:
    """The figures of these runs."""
    ran = [answer for answer in several if answer.run.status == "ok" and answer.run.seconds]
    timed = [answer for answer in ran if answer.found]
    ratios = np.array([answer.ratio for answer in timed])
    off = abs(ratios - 1)
    order, regrets = _sets(timed)
    memory = [
        _memory_error(answer)
        for answer in several
        if answer.found and answer.run.kind == "allocated"
    ]
    right, caught, lost = _oom(several)
    told = [answer for answer in several if answer.found and answer.run.memory]
    return ErrorFigures(
        runs=len(ran),
        refused=len(ran) - len(timed),
        step=_quantile(off, 0.5),
        step90=_quantile(off, 0.9),
        bias=_quantile(ratios, 0.5),
        cover=_mean([_is_covered(answer) for answer in timed]),
        wide=_quantile(
            [answer.found.high / answer.found.low for answer in timed if answer.found], 0.5
        ),
        order=order,
        regret=_quantile(regrets, 0.5),
        regret90=_quantile(regrets, 0.9),
        memory=_quantile(memory, 0.5),
        memory90=_quantile(memory, 0.9),
        held=_quantile([_memory_error(answer) for answer in told], 0.5),
        holds=_mean([_is_held(answer) for answer in told]),
        right=right,
        caught=caught,
        lost=lost,
    )


def _is_covered(answer: Answered) -> bool:
    assert answer.found
    assert answer.run.seconds
    return answer.found.low <= answer.run.seconds <= answer.found.high


def _memory_error(answer: Answered) -> float:
    assert answer.found
    assert answer.run.memory
    is_allocated = answer.run.kind == "allocated"
    said = answer.found.memory if is_allocated else answer.found.fit.needed
    return abs(said / (answer.run.memory * 2**30) - 1)


def _is_held(answer: Answered) -> bool:
    assert answer.found
    assert answer.run.memory
    return answer.found.memory_low <= answer.run.memory * 2**30 <= answer.found.memory_high


def _sets(timed: Sequence[Answered]) -> tuple[float, list[float]]:
    sets: dict[tuple[object, ...], list[Answered]] = defaultdict(list)
    for answer in timed:
        asked = answer.run.arguments
        sizes = (asked.gpus, asked.sequence, asked.global_batch)
        key = (answer.run.group, answer.run.model, answer.run.software, *sizes)
        sets[key].append(answer)
    orders, regrets = [], []
    for several in sets.values():
        if len(several) < SET:
            continue
        guessed = np.array([answer.found.seconds for answer in several if answer.found])
        real = np.array([answer.run.seconds for answer in several])
        orders.append((spearman(guessed, real), len(several)))
        first = real[guessed <= guessed.min() * (1 + 1e-9)].mean()
        regrets.append(float(first / real.min() - 1))
    total = sum(number for _, number in orders)
    order = sum(scale * number for scale, number in orders) / total if total else math.nan
    return order, regrets


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """The correlation of ranks.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    a, b = _ranks(a), _ranks(b)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return round(float(np.corrcoef(a, b)[0, 1]), 12)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Places in ascending order; equal values share the mean of theirs."""
    _, place, number = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(number) - (number + 1) / 2)[place]


def _oom(several: Sequence[Answered]) -> tuple[float, float, float]:
    known = {answer.run.group for answer in several if answer.run.status == "oom"}
    asked = [answer for answer in several if answer.run.group in known and answer.found]
    good = [answer.found.fits for answer in asked if answer.found and answer.run.status == "ok"]
    bad = [not answer.found.fits for answer in asked if answer.found and answer.run.status == "oom"]
    return _mean([*good, *bad]), _mean(bad), _mean([not is_good for is_good in good])


def _mean(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else math.nan


def _quantile(values: Sequence[float] | np.ndarray, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else math.nan
