"""Fit how far apart estimates of two layouts must be: `python -m benchmarks.fit_pairs`.

It writes "pairs" and "orders" of training/estimate/data/constants.json (training.search.sure): the
two numbers of the law by greatest likelihood, each source weighing as the 0.3th power of its pairs,
times what the worst source with SOME pairs needs that is left out of it, so that its interval holds
nine of ten of them too; and by how sure the law is, how many pairs are in that order, which Better
layouts tells.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from training.estimate.constants import DATA, fitted_constants
from training.estimate.runs import MeasuredRun, is_nanotron, runs
from training.search.sure import NINE_OF_TEN, doublings

from .estimate_errors import Answered, answered

SOME = 8
"""Pairs of a source that its own error needs."""

MOST = 4000
"""Pairs of nanotron's that are looked at: a sample, of forty thousand."""

STEPS = np.geomspace(0.005, 0.5, 60)
"""What both numbers are looked for among; the second may be 0 too."""


@dataclass(frozen=True)
class MeasuredPair:
    """Two runs of one source, machine, model, software and number of GPUs.

    error: log(estimated ratio / real ratio); guess: log of the estimated one.
    """

    source: str
    error: float
    guess: float
    apart: float

    @property
    def is_right(self) -> bool:
        return (self.guess > 0) == (self.guess - self.error > 0)


def pairs(wanted: Callable[[MeasuredRun], bool]) -> list[MeasuredPair]:
    """Every pair of runs that count and ran."""
    alike: dict[tuple[object, ...], list[Answered]] = defaultdict(list)
    for one in answered(run for run in runs() if run.counts and run.status == "ok" and wanted(run)):
        if one.found and one.run.seconds:
            run, of = one.run, one.run.arguments
            alike[run.group, of.cluster, run.model, run.software, of.gpus].append(one)
    return [pair_of(*two) for several in alike.values() for two in combinations(several, 2)]


def pair_of(one: Answered, other: Answered) -> MeasuredPair:
    assert one.found
    assert other.found
    source = one.run.group.split()[0]
    guess = math.log(one.found.seconds / other.found.seconds)
    error = math.log(one.ratio / other.ratio)
    return MeasuredPair(source, error, guess, doublings(one.found.request, other.found.request))


def likeliest(several: Sequence[MeasuredPair]) -> tuple[float, float]:
    """Both numbers of the law, by greatest likelihood."""
    counts = Counter(pair.source for pair in several)
    weights = np.array([counts[pair.source] ** -0.7 for pair in several])
    errors, apart = (np.array([getattr(p, name) for p in several]) for name in ("error", "apart"))

    def likelihood(alike: float, each: float) -> float:
        scale = np.hypot(alike, each * np.sqrt(apart))
        at = abs(errors) / scale
        return float((weights * (-at - 2 * np.log1p(np.exp(-at)) - np.log(scale))).sum())

    ways = ((float(alike), float(each)) for alike in STEPS for each in (0.0, *STEPS))
    return max(ways, key=lambda way: likelihood(*way))


def needed(several: Sequence[MeasuredPair], law: tuple[float, float]) -> float:
    """By how much a law must be wider to hold nine of ten of these pairs."""
    at = [abs(pair.error) / math.hypot(law[0], law[1] * pair.apart**0.5) for pair in several]
    return float(np.quantile(at, 0.9)) / NINE_OF_TEN


def law_of(several: Sequence[MeasuredPair]) -> list[float]:
    """The law, as wide as the worst source needs that it has not seen."""
    wider = [1.0]
    sources = Counter(pair.source for pair in several)
    for source in (source for source, count in sources.items() if count >= SOME):
        seen = [pair for pair in several if pair.source != source]
        if seen:
            wider.append(needed([p for p in several if p.source == source], likeliest(seen)))
    return [round(max(wider) * number, 4) for number in likeliest(several)]


def fitted() -> tuple[dict[str, list[float]], dict[str, list[MeasuredPair]]]:
    """The law of tuned software and of nanotron's, and the pairs of each."""
    stalled = pairs(is_nanotron)
    some = np.random.default_rng(1).permutation(len(stalled))[:MOST]
    every = {
        "tuned": pairs(lambda run: not is_nanotron(run)),
        "nanotron": [stalled[at] for at in sorted(some)],
    }
    return {kind: law_of(several) for kind, several in every.items()}, every


def calibration(several: Sequence[MeasuredPair], law: Sequence[float]) -> list[list[float]]:
    """By how sure the law is (from, to): pairs, and the share of them that is in that order."""
    found: list[list[float]] = []
    for low, high in ((0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.0)):
        right = [
            pair.is_right
            for pair in several
            for scale in [math.hypot(law[0], law[1] * pair.apart**0.5)]
            for sure in [1 / (1 + math.exp(-min(abs(pair.guess) / scale, 700.0)))]
            if low <= sure < high or sure == high == 1
        ]
        share = sum(right) / len(right) if right else 0.0
        found.append([low, high, len(right), round(share, 3)])
    return found


def write() -> None:
    """The laws into constants.json with how well they are calibrated, which is printed too."""
    laws, every = fitted()
    orders = {kind: calibration(every[kind], law) for kind, law in laws.items()}
    constants = {**fitted_constants(), "pairs": laws, "orders": orders}
    (DATA / "constants.json").write_text(json.dumps(constants, indent=1) + "\n", encoding="utf-8")
    for kind, law in laws.items():
        print(kind, law, f"{len(every[kind]):,} pairs")
        for low, high, count, right in orders[kind]:
            print(f"  sure {low:.0%} to {high:.0%}: {count:,.0f}, right {right:.0%}")


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.fit_pairs", description=__doc__).parse_args()
    write()


if __name__ == "__main__":
    main()
