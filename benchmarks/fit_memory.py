"""Fit what a GPU needs where kernels fuse less: `python -m benchmarks.fit_memory` prints UNFUSED.

Of runs whose memory was told (BigScience's by nvidia-smi, nanotron's by torch) the logarithm of
needed over measured is made small, an error beyond NEAR counting by its size; each constant is
drawn to what physics suggests (PRIOR: a value, and how far in logarithms it may well be). Runs that
fill a GPU weigh most, and a source as the 0.3th power of its runs. Then the same with each source,
and each of nanotron's models, left out: the error there, and what is told of those that failed and
that ran; and of all of these SPREAD, from runs that fill a good part of a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from groups.errors import LayoutError
from training.estimate.memory import (
    FAIL_FROM,
    LEAN,
    SPREAD,
    UNFUSED,
    kernels_of,
    unfused_terms,
)
from training.estimate.nanotron import dealt_by_cost
from training.estimate.request import Request, request_of
from training.estimate.runs import MeasuredRun, is_nanotron, runs
from training.machine import GIB
from training.memory.per_stage import memory_per_stage

from .descent import descend

SOURCES = ("BigScience", "Playbook")
PRIOR = {
    **{"weights": (1.0, 0.02), "gradients": (1.0, 0.3), "states": (16.0, 0.1)},
    **{"kept": (1.3, 0.2), "gated": (0.4, 0.5), "logits": (10.0, 0.2), "rest": (1.0, 0.02)},
    "beside": (3 * GIB, 0.5),
}
NEAR, FULL, LARGE = 0.1, 40.0, 30.0
"""Error from which on it counts by its size; GiB from which on a run weighs in full, and from which
on it tells the spread."""


@dataclass(frozen=True)
class FilledRun:
    run: MeasuredRun
    terms: np.ndarray  # stages, constants
    asked: Request

    @property
    def usable(self) -> float:
        return self.asked.usable

    @property
    def kernels(self) -> str:
        return kernels_of(self.asked, is_fused=False)

    def is_over(self, constants: np.ndarray) -> bool:
        """Whether it is told not to fit."""
        needed, whose = self.needed(constants), "nanotron" if is_nanotron(self.run) else "others"
        low = SPREAD[self.kernels][0] * needed
        return low > self.usable or needed > FAIL_FROM[whose] * self.usable

    def needed(self, constants: np.ndarray) -> float:
        return float((self.terms @ constants).max())


def cases() -> Iterator[FilledRun]:
    """The runs of sources that told memory, those that failed among them."""
    for run in runs():
        if run.group in SOURCES:
            try:
                asked = request_of(run.shape, run.arguments)
                asked = dealt_by_cost(asked) if is_nanotron(run) else asked
                training = replace(asked.training, precision=LEAN[True])
                stages = memory_per_stage(asked.model, asked.split, training)
            except LayoutError:
                continue
            asked = replace(asked, training=training)
            terms = [[unfused_terms(asked, stage)[name] for name in PRIOR] for stage in stages]
            yield FilledRun(run, np.array(terms), asked)


def errors(several: Sequence[FilledRun], constants: np.ndarray) -> np.ndarray:
    pairs = ((case.needed(constants), case.run.memory or 0.0) for case in several)
    return np.array([np.log(needed / (memory * GIB)) for needed, memory in pairs])


def fit(several: Sequence[FilledRun]) -> np.ndarray:
    """The constants, in the order of PRIOR."""
    values, widths = map(np.array, zip(*PRIOR.values()))
    counts = Counter(case.run.group for case in several)
    weights = np.array(
        [
            min(1.0, (case.run.memory or 0) / FULL) / counts[case.run.group] ** 0.7
            for case in several
        ]
    )
    weights *= len(several) / weights.sum()

    def found(moved: np.ndarray, these: np.ndarray | None) -> np.ndarray:
        some = several if these is None else [several[at] for at in these]
        return errors(some, values * np.exp(moved))

    constants: np.ndarray = values * np.exp(descend(found, widths, weights, near=NEAR, steps=30))
    return constants


def told(several: Sequence[FilledRun], constants: np.ndarray) -> str:
    """The error of those that told memory; failures told, and good runs refused."""
    off = abs(errors([case for case in several if case.run.memory], constants))
    bad, good = (
        [case.is_over(constants) for case in several if (case.run.status == "ok") == ran]
        for ran in (False, True)
    )
    caught, lost = (100 * float(np.mean(over)) for over in (bad, good))
    return (
        f"error {100 * np.median(off):.0f} % (p90 {100 * np.quantile(off, 0.9):.0f}), {caught:.0f} "
        f"% of {len(bad)} failures told, {lost:.1f} % of {len(good)} good runs lost"
    )


def main() -> None:
    every = list(cases())
    measured = [case for case in every if case.run.status == "ok" and case.run.memory]
    now = np.array([UNFUSED[name] for name in PRIOR])
    constants = fit(measured)
    for name, value in zip(PRIOR, constants):
        print(f"{name:10s} {value / GIB if name == 'beside' else value:6.2f}")
    models = sorted({case.run.model for case in every if case.run.group == "Playbook"})
    wanted: list[tuple[str, Callable[[FilledRun], bool]]] = [
        *((name, lambda case, name=name: case.run.group == name) for name in SOURCES),
        *((name, lambda case, name=name: case.run.model == name) for name in models),
    ]
    ratios: dict[str, list[float]] = {}
    over, ran = list[bool](), list[bool]()
    for name, is_out in wanted:
        out, rest = (
            [case for case in every if is_out(case)],
            [case for case in measured if not is_out(case)],
        )
        blind = fit(rest)
        print(f"{name}\n  UNFUSED:  {told(out, now)}\n  left out: {told(out, blind)}")
        if name != "Playbook":  # whose models are left out one by one
            for case in out:
                over.append(case.is_over(blind))
                ran.append(case.run.status == "ok")
                if (memory := case.run.memory or 0.0) > LARGE:
                    ratios.setdefault(case.kernels, []).append(memory * GIB / case.needed(blind))
    lost = float(np.mean([is_over for is_over, did_run in zip(over, ran) if did_run]))
    caught = float(np.mean([is_over for is_over, did_run in zip(over, ran) if not did_run]))
    right = float(np.mean([is_over != did_run for is_over, did_run in zip(over, ran)]))
    print(
        f"all left out in turn: {100 * caught:.1f} % of failures told, {100 * lost:.1f} % of good "
        f"runs lost, {100 * right:.1f} % right"
    )
    for name, several in ratios.items():
        low, high = np.quantile(several, [0.07, 0.97])
        print(f"{name}: {low:.2f} to {high:.2f} of what is needed, of {len(several)} runs")


if __name__ == "__main__":
    main()
