"""Fit the law of training.traffic.reached: `python -m benchmarks.fit_collectives`.

It prints the constants, the error on all, and the errors with each system, and with each source,
left out of the fit in turn. An error counts by its square up to NEAR, by its size beyond.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.clusters import CLUSTERS
from training.traffic.reached import (
    BY_MEMBER,
    PAIRWISE_SHARE,
    RAMP,
    RING_SHARE,
    START,
    SUMMED_SHARE,
    sums,
)

DATA = Path(__file__).parent.parent / "tests" / "data" / "collectives.csv"
NOW = (START, BY_MEMBER, RING_SHARE, SUMMED_SHARE, PAIRWISE_SHARE, RAMP)
RING, SUMMED, PAIRWISE = 2, 3, 4
"""Places of the shares among the constants."""

NEAR, STEPS = 0.1, 60


@dataclass(frozen=True)
class MeasuredCollective:
    """A row of the data. sent: bytes that a rank sends; speed: what so many members reach."""

    system: str
    source: str
    share: int
    members: int
    speed: float
    sent: float
    seconds: float


def rows() -> list[MeasuredCollective]:
    with DATA.open(encoding="utf-8", newline="") as file:
        return [_row(row) for row in csv.DictReader(file)]


def _row(row: dict[str, str]) -> MeasuredCollective:
    machine, members = CLUSTERS[row["machine"]], int(row["gpus"])
    times, share = (members - 1) / members, PAIRWISE if row["operation"] == "all_to_all" else RING
    if row["operation"] == "all_reduce":
        times, share = 2 * times, SUMMED if sums(machine, members) else RING
    sent = times * float(row["bytes"])
    seconds = sent / (float(row["bus_gb_per_s"]) * 1e9)
    source = row["source"].split("@")[0]
    speed = machine.inside(members)
    return MeasuredCollective(row["system"], source, share, members, speed, sent, seconds)


def errors(several: Sequence[MeasuredCollective], constants: np.ndarray) -> np.ndarray:
    """log(estimated / measured)."""
    share = constants[[row.share for row in several]]
    speed, sent, seconds, members = (
        np.array([getattr(row, name) for row in several])
        for name in ("speed", "sent", "seconds", "members")
    )
    start, wire = constants[0], sent / (speed * share)
    told = start + constants[1] * (members - 1) + wire + constants[5] * np.sqrt(start * wire)
    return np.asarray(np.log(told / seconds))


def fit(several: Sequence[MeasuredCollective]) -> np.ndarray:
    """The constants, in the order of NOW."""
    moved = np.log(np.array([15e-6, 1e-6, 0.78, 1.05, 0.8, 0.5]))
    for _ in range(STEPS):
        found = errors(several, np.exp(moved))
        slope = np.empty((len(found), len(moved)))
        for at in range(len(moved)):
            beside = moved.copy()
            beside[at] += 1e-4
            slope[:, at] = (errors(several, np.exp(beside)) - found) / 1e-4
        weights = 1 / np.maximum(abs(found), NEAR)
        square = slope.T @ (weights[:, None] * slope) + 1e-3 * np.eye(len(moved))
        moved = moved - 0.7 * np.linalg.solve(square, slope.T @ (weights * found))
    return np.exp(moved)


def held_out(
    several: Sequence[MeasuredCollective], key: Callable[[MeasuredCollective], str]
) -> np.ndarray:
    found = np.zeros(len(several))
    for name in sorted({key(row) for row in several}):
        out = np.array([key(row) == name for row in several])
        rest = [row for row in several if key(row) != name]
        left = [row for row in several if key(row) == name]
        found[out] = errors(left, fit(rest))
    return found


def told(found: np.ndarray) -> str:
    off = abs(np.expm1(found))
    return f"{100 * np.median(off):.0f} % in the median, {100 * np.quantile(off, 0.9):.0f} % at p90"


def main() -> None:
    several = rows()
    print("constants", *(f"{value:.4g}" for value in fit(several)))
    print("now      ", *(f"{value:.4g}" for value in NOW))
    print("on all:", told(errors(several, np.array(NOW))))
    print("a system left out:", told(held_out(several, lambda row: row.system)))
    print("a source left out:", told(held_out(several, lambda row: row.source)))


if __name__ == "__main__":
    main()
