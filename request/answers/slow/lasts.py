"""Which rank came last in which group, and for how long the others waited."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from diagnosis.slow import Slowness
from diagnosis.slow.model import SlowGroup


class LastRow(NamedTuple):
    """A rank in one group, over all steps: how often it came last of so many calls; the seconds
    that all others then waited in a step, and its delay after their median."""

    rank: int
    group: SlowGroup
    times: int
    calls: int
    waited: float
    late: float


def last_rows(slow: Slowness) -> list[LastRow]:
    """The rows, those with most waiting first."""
    calls: dict[int, int] = defaultdict(int)
    sums: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for row in slow.waits:
        calls[row.group] += row.calls
        for last in row.lasts:
            one = sums[last.rank, row.group]
            one[0] += last.times
            one[1] += last.waited_us
            one[2] += last.late_us * last.times
    steps = max(1, len({row.step for row in slow.waits}))
    rows = [
        LastRow(rank, slow.groups[group], int(times), calls[group], waited / steps / 1e6,
                late / max(1.0, times) / 1e6)
        for (rank, group), (times, waited, late) in sums.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -row.waited)
