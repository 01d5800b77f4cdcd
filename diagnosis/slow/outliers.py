"""The ranks, groups and stages that are slow by one measured number per rank.

The law is that of Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993): among values of
one kind, with median m and MAD the median of |x - m|,

    deviations(x) = 0.6745 * (x - m) / MAD        slow: more than 3.5 in the worse direction

or, where more than half of the values are equal (MAD 0), (x - m) / (1.2533 * mean |x - m|). One of
four stands 3.2 of these from three equal ones however far it is, so what is SURE away from equal
ones is slow too. A group counts by the median of its ranks, so that one rank does not make its
groups slow; a value within LEAST of the median is never slow, however alike the others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from groups.errors import not_a_choice
from groups.grouping import Grouping

THRESHOLD = 3.5
LEAST, SURE = 0.02, 0.1
"""Shares of the median: smaller differences do not count; larger ones count even if more than half
of the values are equal."""


@dataclass(frozen=True)
class Slow:
    """A rank, group or stage that stands out: its value, and by how many deviations."""

    names: tuple[str, ...]  # all of this very group, "rank" and "stage" among them
    indices: tuple[int, ...]  # under each of its names
    value: float
    times: float
    ranks: tuple[int, ...]


def deviations(values: np.ndarray) -> np.ndarray:
    """How far each value is from the median of those known, in robust deviations; NaN stays NaN.

    >>> deviations(np.array([10.0, 11.0, 12.0, 30.0])).round(1).tolist()
    [-1.0, -0.3, 0.3, 12.5]
    """
    known = values[~np.isnan(values)]
    median = np.median(known)
    away = np.abs(known - median)
    mad = np.median(away)
    scale = mad / 0.6745 if mad else 1.2533 * away.mean()
    return (values - median) / scale if scale else np.where(np.isnan(values), np.nan, 0.0)


def slow(values: np.ndarray, every: Mapping[str, Grouping], *, worse: str = "high") -> list[Slow]:
    """The ranks, groups and stages that stand out in the worse direction, the worst first.

    values: one number a rank, NaN for none. worse: "high" (times, temperatures) or "low"
    (bandwidths). A stage is all ranks with one place in the pipeline.

    >>> from groups.megatron import groupings
    >>> step = np.array([10.0, 10.1, 9.9, 10.0, 10.1, 10.0, 14.0, 14.1])
    >>> late = slow(step, groupings(8, tp=2))
    >>> [(group.names[0], group.indices[0], group.ranks) for group in late]
    [('rank', 7, (7,)), ('tp', 3, (6, 7)), ('rank', 6, (6,))]

    Errors: LayoutError for another word than high or low.
    """
    if worse not in ("high", "low"):
        raise not_a_choice("worse", worse, ("high", "low"), [{"worse": "high"}, {"worse": "low"}])
    sign = 1.0 if worse == "high" else -1.0
    outliers = _standing_out("rank", values, np.arange(len(values)), sign)
    indices = {
        name: grouping.index()
        for name, grouping in every.items()
        if 1 < grouping.size < len(values)
    }
    pipeline = every.get("pp")
    if pipeline is not None and pipeline.size > 1:
        indices["stage"] = _stages(pipeline)
    for name, index in indices.items():
        outliers += _standing_out(name, values, index, sign)
    return sorted(_once(outliers), key=lambda grouping: -grouping.times)


def _once(outliers: Iterable[Slow]) -> list[Slow]:
    by_ranks: dict[tuple[int, ...], Slow] = {}
    for outlier in outliers:
        same = by_ranks.get(outlier.ranks)
        if same is not None:
            names, indices = (*same.names, *outlier.names), (*same.indices, *outlier.indices)
            outlier = replace(
                same, names=names, indices=indices, times=max(same.times, outlier.times)
            )
        by_ranks[outlier.ranks] = outlier
    return list(by_ranks.values())


def _stages(pipeline: Grouping) -> np.ndarray:
    """The stage of each rank: its place in its pipeline."""
    stages = np.zeros(pipeline.world_size, dtype=np.int64)
    for stage, ranks in enumerate(np.asarray(pipeline.groups()).T):
        stages[ranks - pipeline.mesh.offset] = stage
    return stages


def _standing_out(kind: str, values: np.ndarray, index: np.ndarray, sign: float) -> list[Slow]:
    """The groups of one kind whose median is worse than the others' by more than THRESHOLD."""
    medians, ranks, bounds = medians_of(values, index)
    known = medians[~np.isnan(medians)]
    if len(known) < 3:
        return []
    away, middle = sign * deviations(medians), np.median(known)
    worse = sign * (medians - middle)
    is_slow = (away > THRESHOLD) & (worse > LEAST * abs(middle))
    if middle and not np.median(abs(known - middle)):
        is_slow |= worse > SURE * abs(middle)
    return [
        Slow(
            (kind,),
            (at,),
            float(medians[at]),
            round(float(away[at]), 1),
            tuple(sorted(ranks[bounds[at] : bounds[at + 1]].tolist())),
        )
        for at in np.flatnonzero(is_slow).tolist()
    ]


def medians_of(values: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The median of each group's known values, NaN without any; the ranks, group by group; and the
    start of each group among them, with the end of the last.

    index: the group of each rank, -1 for none.
    """
    order = np.lexsort((values, index))  # not a number comes last
    order = order[index[order] >= 0]
    starts = np.flatnonzero(np.diff(index[order], prepend=-1))
    ranked = values[order]
    known = np.add.reduceat((~np.isnan(ranked)).astype(np.int64), starts)
    medians = (ranked[starts + (known - 1) // 2] + ranked[starts + known // 2]) / 2
    return medians, order, np.append(starts, len(order))
