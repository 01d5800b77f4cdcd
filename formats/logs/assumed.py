"""Members of groups whose dumps do not say them, taken from a layout where only one way fits.

Older recorders (before version 1.2) and gloo write the name of a group and who called, not who its
members are. A family is the groups that ranks know by one description, or by one place in their own
order of creation. A layout's kind fits a family if

    all that called in one group stand in one of the kind's groups,
    groups with different names are different ones of the kind, and
    names that are numbers, which torch counts up as groups are created, ascend as the kind's groups

and, where no description says the kind, if every group of the kind that has a dump has a name and
all members of one of them called. Two kinds that fit and have other members leave it open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from groups.grouping import Grouping

from .job import Group, LoggedJob
from .names import WORLD

Members = dict[str, tuple[int, ...]]
"""By the name of a group."""


def members_by_layout(
    job: LoggedJob, every: Mapping[str, Grouping]
) -> tuple[Members, dict[str, str]]:
    """Members by name of the group, and the kind that they are taken from.

    Nothing is taken from a layout of other ranks, or of which most have no dump.
    """
    members: Members = {}
    kinds: dict[str, str] = {}
    world = next(iter(every.values())).world_size
    if not job.dumped or job.dumped[-1] >= world or 2 * len(job.dumped) <= world:
        return members, kinds
    families: dict[str, list[Group]] = defaultdict(list)
    for group in job.groups.values():
        if not group.group.complete and group.group.kind != WORLD and group.group.members:
            families[group.family].append(group)
    for groups in families.values():
        kind = groups[0].group.kind
        is_said = groups[0].group.description is not None
        tried = [every[kind]] if kind in every else [] if is_said else list(every.values())
        fitting: dict[tuple[tuple[int, ...], ...], str] = {}
        for grouping in tried:
            indices = _fit(groups, grouping)
            if indices and (is_said or _is_seen(groups, grouping, job.dumped)):
                firsts = (group.group.members[0] for group in groups)
                ranks_by_group = tuple(tuple(map(int, grouping.members(rank))) for rank in firsts)
                fitting.setdefault(ranks_by_group, grouping.name)
        if len(fitting) == 1:
            ((ranks_by_group, kind),) = fitting.items()
            names = [group.group.name or "" for group in groups]
            members |= {name: tuple(sorted(ranks)) for name, ranks in zip(names, ranks_by_group)}
            kinds |= dict.fromkeys(names, kind)
    return members, kinds


def _fit(groups: Sequence[Group], grouping: Grouping) -> list[int]:
    """The index of each group, if it is one of this kind; else nothing."""
    group_indices: list[int] = []
    for group in groups:
        indices = {grouping.index_of(rank) for rank in group.group.members}
        index = indices.pop()
        if indices or index is None:
            return []
        group_indices.append(index)
    names = [group.group.name or "" for group in groups]
    if all(name.isdecimal() for name in names):
        ordered = [index for _, index in sorted(zip(map(int, names), group_indices))]
        if ordered != sorted(ordered):
            return []
    return group_indices if len(set(group_indices)) == len(group_indices) else []


def _is_seen(groups: Sequence[Group], grouping: Grouping, dumped: Sequence[int]) -> bool:
    """Whether as many groups have names as the kind has with dumps, and one was called by all."""
    seen = {grouping.index_of(rank) for rank in dumped} - {None}
    return len(seen) == len(groups) and any(
        len(group.group.members) == len(grouping.members(group.group.members[0]))
        for group in groups
    )
