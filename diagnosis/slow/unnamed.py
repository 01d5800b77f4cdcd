"""Assigns calls without a group to the group that they fit, if only one does.

Gloo's calls say no group, nor do kernels of old versions or Nsight Systems. Of the groups that a
rank is in, by the traces or by the layout, a call belongs to the only kind that has groups of its
size (recorded since torch 2.2), all of whose members make as many such calls in the same order.
Where several kinds fit, nothing is assumed: times alone mislead, as groups wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from groups.group_names import WORLD
from groups.layout import Layout

from .calls import BETWEEN_TWO, ONE_WAY, JobCalls
from .model import SlowGroup

KINDS = ("tp", "cp", "dp", "dp-cp", "pp", "ep", "edp", "etp", "mp")
"""Kinds of groups of a layout in which calls may be."""

Members = Mapping[int, tuple[int, tuple[int, ...]]]
"""By rank its group of a kind: the index in `JobCalls.groups`, and the ranks."""


def with_groups(job: JobCalls, layout: Layout | None = None) -> JobCalls:
    """The calls, with groups for those without; unchanged if none needs one."""
    if not job.unknown:
        return job
    kinds = _kinds(job, layout)
    settled = 0
    for size, calls in _by_size(job).items():
        fitting = [of for of in kinds.values() if _fits(job, calls, of, size)]
        if len(fitting) != 1:
            continue
        for rank, some in calls.items():
            job.ranks[rank].group[some] = fitting[0][rank][0]
            settled += len(some)
    if settled:
        job.notes.add("groups-matched")
        job.unknown -= settled
    return job


def _kinds(job: JobCalls, layout: Layout | None) -> dict[str, Members]:
    """The groups of each kind: of the traces, else of the layout; only one of two that are
    equal."""
    found: dict[str, dict[int, tuple[int, tuple[int, ...]]]] = defaultdict(dict)
    for place, group in enumerate(job.groups):
        if len(group.ranks) > 1 and group.kind != WORLD:
            for rank in group.ranks:
                found[group.title].setdefault(rank, (place, group.ranks))
    if found or layout is None or any(rank >= layout.world_size for rank in job.ranks):
        return {**found}
    seen: set[tuple[tuple[int, ...], ...]] = set()
    for kind in KINDS:
        grouping = layout.kind(kind)
        if grouping is None or grouping.size < 2:
            continue
        groups = tuple(tuple(sorted(map(int, one))) for one in grouping.groups())
        if groups in seen:
            continue
        seen.add(groups)
        for ranks in groups:
            job.groups.append(SlowGroup(kind, kind, ranks))
            for rank in ranks:
                found[kind][rank] = (len(job.groups) - 1, ranks)
    return {**found}


def _by_size(job: JobCalls) -> dict[int, dict[int, np.ndarray]]:
    """Calls without a group by the size that it has, -1 unknown, and by rank."""
    one_way = np.array([name in ONE_WAY | BETWEEN_TWO for name in job.ops] or [False])
    found: dict[int, dict[int, np.ndarray]] = defaultdict(dict)
    for rank, one in job.ranks.items():
        bare = np.flatnonzero((one.group < 0) & ~one_way[one.op])
        for size in {*one.size[bare].tolist()}:
            found[size][rank] = bare[one.size[bare] == size]
    return found


def _fits(job: JobCalls, calls: Mapping[int, np.ndarray], of: Members, size: int) -> bool:
    """Whether calls of all ranks may be those of one kind of groups."""
    if not {*calls} <= {*of}:
        return False
    for _, ranks in {of[rank] for rank in calls}:
        if size not in (-1, len(ranks)):
            return False
        order = {
            tuple(job.ranks[rank].op[calls[rank]].tolist()) if rank in calls else None
            for rank in ranks
            if rank in job.ranks
        }
        if len(order) > 1:
            return False
    return True
