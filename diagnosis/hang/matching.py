"""The groups of the evidence beside a layout: their members, whether it fits, and which layouts
would.

Older recorders (before version 1.2) and gloo write the name of a group and who called, not who its
members are; `members_by_layout` takes them from a layout where only one way fits. A family is the
groups that ranks know by one description, or by one place in their own order of creation. A
layout's kind fits a family if

    all that called in one group stand in one of the kind's groups,
    groups with different names are different ones of the kind, and
    names that are numbers, which torch counts up as groups are created, ascend as the kind's groups

and, where no description says the kind, if every group of the kind that has a dump has a name and
all members of one of them called. Two kinds that fit and have other members leave it open.

What the evidence claims of a group (`match_layout`): its kind, and its members (a dump says them)
or the place of a global rank in it (a watchdog's line does), or its size. A layout agrees or
contradicts; where nothing can be compared it does neither.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groups.alternatives import divisors
from groups.errors import LayoutError
from groups.group_names import WORLD
from groups.grouping import Grouping
from groups.megatron import groupings

from ..values import Document, Facts
from .job import Group, LoggedJob
from .model import Log

ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-cp-pp-ep-dp", "tp-pp-dp-cp-ep")
MOST_TRIED = 2_000
MOST_CLAIMS = 2_000
MOST_COMPARED = 100_000
"""The most comparisons of one search: about a second."""

Members = dict[str, tuple[int, ...]]
"""By the name of a group."""


def members_by_layout(
    job: LoggedJob, every: Mapping[str, Grouping]
) -> tuple[Members, dict[str, str]]:
    """Members by name of the group, and the kind that they come from.

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
        has_description = groups[0].group.description is not None
        known = grouping_of(kind, every)
        tried = [known] if known else [] if has_description else list(every.values())
        fitting: dict[tuple[tuple[int, ...], ...], str] = {}
        for grouping in tried:
            if _fits(groups, grouping) and (
                has_description or _is_seen(groups, grouping, job.dumped)
            ):
                ranks = tuple(_members(grouping, group.group.members[0]) for group in groups)
                fitting.setdefault(ranks, grouping.name)
        if len(fitting) == 1:
            ((ranks, kind),) = fitting.items()
            names = [group.group.name or "" for group in groups]
            members |= dict(zip(names, ranks))
            kinds |= dict.fromkeys(names, kind)
    return members, kinds


def grouping_of(kind: str | None, every: Mapping[str, Grouping]) -> Grouping | None:
    """The layout's grouping of a kind; for a second communicator that the layout lacks (dp-cp-ag,
    edp-ag) the one with the same ranks."""
    return every.get(kind or "") or every.get((kind or "").removesuffix("-ag"))


def _fits(groups: Sequence[Group], grouping: Grouping) -> bool:
    """Whether each is a different group of this kind, in the order of names that are numbers."""
    sets = [{grouping.index_of(rank) for rank in group.group.members} for group in groups]
    indices = [index for of_one in sets for index in of_one if index is not None]
    if not len(set(indices)) == len(indices) == sum(map(len, sets)) == len(groups):
        return False
    names = [group.group.name or "" for group in groups]
    if not all(map(str.isdecimal, names)):
        return True
    by_name = [index for _, index in sorted(zip(map(int, names), indices))]
    return by_name == sorted(by_name)


def _is_seen(groups: Sequence[Group], grouping: Grouping, dumped: Sequence[int]) -> bool:
    """Whether as many groups have names as the kind has with dumps, and all members called one."""
    seen = {grouping.index_of(rank) for rank in dumped} - {None}
    return len(seen) == len(groups) and any(
        len(group.group.members) == len(grouping.members(group.group.members[0]))
        for group in groups
    )


# -- what fits -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """The evidence about one group."""

    key: str  # as printed
    kind: str | None
    members: tuple[int, ...] = ()
    rank: int = 0  # of the job: the first member, or one whose place is said
    place: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Matched:
    """A claim of a log about a group, compared with the groups of a layout."""

    claim: Claim
    names: tuple[str, ...] = ()  # groupings under which the layout has this very group
    index: int | None = None  # of the group under the first of these names
    members: tuple[int, ...] = ()  # by the layout
    agrees: bool | None = None  # False: the layout contradicts; None: nothing can be compared


@dataclass(frozen=True)
class Match:
    """All claims beside a layout; ``fits`` are sizes that no claim contradicts, nearest first."""

    rows: tuple[Matched, ...]
    fits: tuple[Document, ...] = ()

    @property
    def contradictions(self) -> tuple[Matched, ...]:
        return tuple(row for row in self.rows if row.agrees is False)


def claims_of(log: Log) -> list[Claim]:
    """The claims of a log, without duplicates."""
    claims = []
    for group in log.process_groups:
        if group.complete:
            members = tuple(sorted(group.members))
            claims.append(Claim(group.key, group.kind, members, members[0], size=len(members)))
    for stall in log.stalls:
        if stall.group and stall.rank is not None and stall.group_rank is not None:
            size = None
            if stall.op == "_ALLGATHER_BASE" and stall.numel_in and stall.numel_out:
                size, rest = divmod(stall.numel_out, stall.numel_in)  # its output is all inputs
                size = None if rest else size
            kind = log.groups.get(stall.group)
            claims.append(Claim(stall.group, kind, (), stall.rank, stall.group_rank, size))
    return list(dict.fromkeys(claims))[:MOST_CLAIMS]


def match_layout(log: Log, world: int, **sizes: Any) -> Match:
    """The groups of a Megatron layout in the evidence, and layouts that would fit if it is another.

    >>> from formats.logs import read_log
    >>> log = read_log("[rank9]:[E] [PG ID 1 PG GUID 7(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] "
    ...                "Timeout at NCCL work: 3")
    >>> match = match_layout(log, 16, tp=2, pp=2)
    >>> [(row.names[0], row.index, row.members) for row in match.rows]
    [('tp', 4, (8, 9))]
    >>> match = match_layout(log, 16, tp=1, pp=2)
    >>> len(match.contradictions), match.fits[0]["tp"]
    (1, 2)

    Errors: as `groups.megatron.groupings`.
    """
    match = match_groups(log, groupings(world, **sizes))
    if not match.contradictions:
        return match
    return replace(match, fits=tuple(itertools.islice(_fitting(claims_of(log), world, sizes), 3)))


def match_groups(log: Log, every: Mapping[str, Grouping]) -> Match:
    """The groups of any layout in the evidence."""
    world = next(iter(every.values())).world_size
    return Match(tuple(_matched(claim, every, world) for claim in claims_of(log)))


def agrees(log: Log, every: Mapping[str, Grouping]) -> bool:
    """Whether no claim of a log contradicts a layout's groupings."""
    world = next(iter(every.values())).world_size
    return max(log.ranks, default=0) < world and not any(
        _matched(claim, every, world, is_named=True).agrees is False for claim in claims_of(log)
    )


def _matched(
    claim: Claim, every: Mapping[str, Grouping], world: int, is_named: bool = False
) -> Matched:
    """The claim beside a layout. is_named: whether to list the layout's other names of the
    group."""
    if claim.kind == WORLD:
        if claim.members:
            return Matched(claim, (WORLD,), 0, claim.members, claim.members == tuple(range(world)))
        return Matched(claim, (WORLD,), 0, (), None if claim.rank < world else False)
    first = claim.rank
    if max(claim.members, default=first) >= world:
        return Matched(claim, agrees=False)
    grouping = grouping_of(claim.kind, every)
    if grouping is None:  # a group without a kind is found by its members
        names = _names(every, first, claim.members)
        index = every[names[0]].index_of(first) if names else None
        return Matched(claim, names, index, claim.members, True) if names else Matched(claim)
    index = grouping.index_of(first)
    if index is None:
        return Matched(claim, agrees=False)
    members = _members(grouping, first)
    agrees = (
        claim.members in ((), members)
        and (claim.place is None or members[claim.place : claim.place + 1] == (claim.rank,))
        and claim.size in (None, len(members))
    )
    others = () if is_named else _names(every, first, members)
    every_name = dict.fromkeys((grouping.name, *others))
    return Matched(claim, tuple(every_name), index, members, agrees)


def _members(grouping: Grouping, rank: int) -> tuple[int, ...]:
    return tuple(sorted(map(int, grouping.members(rank))))


def _names(every: Mapping[str, Grouping], rank: int, members: tuple[int, ...]) -> tuple[str, ...]:
    """The groupings with this very group."""
    return tuple(
        name
        for name, grouping in every.items()
        if grouping.size == len(members) and _members(grouping, rank) == members
    )


def _fitting(claims: list[Claim], world: int, sizes: Facts) -> Iterator[Document]:
    """Sizes and orders that contradict no claim, those with the fewest changes first; none that
    contains another one's changes."""
    known = {claim.kind: claim.size for claim in claims if claim.size and claim.kind}
    now = {"tp": 1, "cp": 1, "pp": 1, "ep": 1, "order": ORDERS[0], **sizes}
    axes = {
        axis: [known[axis]] if axis in known else [now[axis], *divisors(world)]
        for axis in ("tp", "cp", "pp", "ep")
    }
    orders = dict.fromkeys([now["order"], *ORDERS])
    tries = itertools.product(*(dict.fromkeys(values) for values in axes.values()), orders)
    candidates = [
        dict(zip((*axes, "order"), values))
        for values in itertools.islice(tries, 200_000)
        if world % (values[0] * values[1] * values[2]) == 0
    ]
    candidates.sort(key=lambda claim: sum(claim[name] != now[name] for name in claim))
    likely, left = claims[:], MOST_COMPARED
    found: list[set[tuple[str, Any]]] = []
    for candidate in candidates[:MOST_TRIED]:
        changes = {item for item in candidate.items() if item[1] != now[item[0]]}
        if any(fewer <= changes for fewer in found):
            continue
        try:
            every = groupings(world, **{**sizes, **candidate})
        except LayoutError:
            continue
        for place, claim in enumerate(likely):
            if _matched(claim, every, world).agrees is False:
                likely.insert(0, likely.pop(place))  # it contradicts the next ones as well
                break
        else:
            found.append(changes)
            yield candidate
        left -= place + 1
        if left < 0:
            return
