"""The missing ranks by the members of their groups, if lines alone do not tell.

    ranks r wait in operation w            w holds them
    a member m of w's group is not seen to wait in w        w -> m
    m waits in another group's operation w'                 m -> w'
    one rank waits in both, and w' began earlier            w -> w'

The sinks of this graph are where to look: a member that is seen to wait nowhere, or an operation in
which all members wait. Silence proves nothing by itself, an excerpt is silent of most ranks: it
counts where more members of a group have said that they wait than have not.

>>> from formats.logs import read_log
>>> from groups.megatron import groupings
>>> group = "PG ID 2 PG GUID 41(TENSOR_MODEL_PARALLEL_GROUP)"
>>> log = read_log("\\n".join(f"[rank{rank}]: [{group} Rank {rank - 4}] Timeout at NCCL work: 7"
...                          for rank in (4, 6, 7)), groupings(16, tp=4))
>>> log.missing, log.diagnosis.suspects, log.diagnosis.reason
((), (5,), 'silent')
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from groups.budget import spend
from groups.group_names import WORLD
from groups.grouping import Grouping

from .account import members_of
from .counters import IN_PAIRS, call_of, diagnosis_of_stalls
from .model import Diagnosis, Log, Ranks, Stall, Wait
from .origin import Edges, hops_of, sinks_of

Places = Mapping[tuple[str | None, str | None], Mapping[int, int]]
"""By a group's printed name and its name in the job: the rank at each place of it."""

HIDDEN = ("lines-hidden", "lines-left-out", "text-cut")
"""Notes of a text in which unread parts may mention a rank."""

LAST = 2**62


def heard(log: Log, groupings: Mapping[str, Grouping]) -> Log:
    """The log with the diagnosis that follows once the members of its groups are known.

    groupings: of a layout that the evidence does not contradict; none where there is no such. Dumps
    say more than silence does: a log of dumps stays as it is.
    """
    stalls = [_named(stall, log.groups, groupings) for stall in log.stalls]
    kinds = log.groups
    if groupings and not any(stall.group for stall in stalls):
        stalls, kinds = _of_all(stalls, next(iter(groupings.values())).world_size)
        log = replace(log, groups=kinds)
    known = diagnosis_of_stalls(stalls, kinds, log.relayed)
    waiting = {rank for wait in log.diagnosis.waits for rank in wait.waiting}
    if groupings and not (log.dumped or known.waits or log.missing or log.diagnosis.culprits):
        return _unnamed(log, stalls, next(iter(groupings.values())).world_size)
    if log.dumped or not known.waits or not waiting <= {stall.rank for stall in stalls}:
        return log  # or not all lines have been kept
    places = _places(stalls)
    waits = tuple(_among(wait, groupings, places) for wait in known.waits)
    is_hidden = any(note.code in HIDDEN for note in log.notes)
    is_explained = bool(known.culprits or log.missing or known.reason == "different" or is_hidden)
    named_missing = {*log.missing} - {*log.diagnosis.culprits}
    diagnosis = _spread(known, waits) if is_explained else _found(known, waits, stalls, log)
    missing = tuple(sorted(named_missing | {*diagnosis.culprits}))
    return replace(log, stalls=tuple(stalls), missing=missing, diagnosis=diagnosis)


ALL = "default_pg"
"""PyTorch's own name of the group of all ranks."""


def _of_all(stalls: list[Stall], world: int) -> tuple[list[Stall], Mapping[str, str | None]]:
    """The stalls of lines without groups in the group of all ranks, if more than half of these make
    one call, which no other group is large enough for."""
    calls = Counter(
        call_of(stall) for stall in {stall.rank: stall for stall in stalls if stall.op}.values()
    )
    ranks = {stall.rank for stall in stalls if stall.op and stall.rank is not None}
    if len(calls) != 1 or not world < 2 * len(ranks) or max(ranks) >= world:
        return stalls, {}
    return [replace(stall, group=ALL, guid="0", group_rank=stall.rank) for stall in stalls], {
        ALL: WORLD
    }


FEW = 32
"""Of so many ranks one may be silent where no line names a group."""


def _unnamed(log: Log, stalls: Iterable[Stall], world: int) -> Log:
    """The log of lines that name no group, in whose calls nearly all ranks wait: who printed
    nothing is suspected."""
    ranks = {stall.rank for stall in stalls if stall.op and stall.rank is not None}
    silent = {*range(world)} - ranks
    hidden = any(note.code in HIDDEN for note in log.notes)
    if any(stall.group for stall in stalls) or hidden or max(ranks, default=world) >= world:
        return log
    if not silent or len(silent) > max(1, world // FEW) or len(ranks) < 3:
        return log
    suspects = tuple(sorted(silent))
    return replace(log, diagnosis=replace(log.diagnosis, suspects=suspects, reason="silent"))


def _named(
    stall: Stall, kinds: Mapping[str, str | None], groupings: Mapping[str, Grouping]
) -> Stall:
    """The stall with the name of its group in the whole job, for lines of PyTorch before 2.5, which
    name only the kind: the name is the kind and the group's index in the layout."""
    grouping = groupings.get(kinds.get(stall.group or "") or "")
    if stall.guid or grouping is None or stall.rank is None or stall.rank >= grouping.world_size:
        return stall
    index = grouping.index_of(stall.rank)
    return stall if index is None else replace(stall, guid=f"{grouping.name} {index}")


def _among(wait: Wait, groupings: Mapping[str, Grouping], places: Places) -> Wait:
    """The wait with the members of its group that are not seen to wait there."""
    members: Sequence[int] = members_of(wait, groupings)
    group = wait.group
    if members:
        group = replace(group, members=tuple(members), complete=True)
    else:
        members = _between(places.get((group.key, group.name), {}))
        if not len(members) or 2 * len(wait.waiting) <= len(members):
            members = _only_group(wait.waiting, groupings) or members
    spend(1 + len(members) // 4, "ranks-of-groups", control="evidence")
    rest = {*members} - {*wait.waiting, *wait.absent, *wait.callers}
    return replace(wait, group=group, unknown=tuple(sorted(rest)))


def _only_group(waiting: Ranks, groupings: Mapping[str, Grouping]) -> Sequence[int]:
    """The members of the only group of a layout of which more than half wait, and all that wait
    are: a text that does not tell a group's members means that one. Empty if there are several."""
    found = set[tuple[int, ...]]()
    for grouping in groupings.values():
        spend(STEP_OF_GROUP, "ranks-of-groups", control="evidence")
        if len(waiting) <= grouping.size < 2 * len(waiting) and waiting[-1] < grouping.world_size:
            members = grouping.members(waiting[0])
            if {*waiting} <= {*members.tolist()}:
                found.add(tuple(members.tolist()))
    return found.pop() if len(found) == 1 else ()


STEP_OF_GROUP = 4
"""Units of work of looking at one kind of group."""


def _places(stalls: Iterable[Stall]) -> Places:
    places: dict[tuple[str | None, str | None], dict[int, int]] = defaultdict(dict)
    for stall in stalls:
        if stall.rank is not None and stall.group_rank is not None:
            places[stall.group, stall.guid][stall.group_rank] = stall.rank
    return places


def _between(ranks: Mapping[int, int]) -> range:
    """The members of a group up to the last whose place is said, where these are at equal distance.

    >>> [*_between({0: 8, 1: 10, 3: 14})], [*_between({0: 8, 1: 10, 3: 15})]
    ([8, 10, 12, 14], [])
    """
    if len(ranks) < 3:
        return range(0)
    (place, rank), *others = sorted(ranks.items())
    step, rest = divmod(others[0][1] - rank, others[0][0] - place)
    first = rank - place * step
    if rest or step < 1 or any(first + at * step != of_it for at, of_it in others):
        return range(0)
    return range(first, others[-1][1] + 1, step)


def _spread(known: Diagnosis, waits: Sequence[Wait]) -> Diagnosis:
    """The same verdict, extended by the waits that join it through members of their groups."""
    first = {id(wait) for hop in known.hops[:1] for wait in hop.waits}
    roots = [place for place, wait in enumerate(known.waits) if id(wait) in first]
    named = known.culprits or known.suspects
    return replace(known, waits=tuple(waits), hops=hops_of(waits, named, roots))


# -- who is silent -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """The time at which each rank began each operation, and the edges between operations and
    ranks."""

    begun: Mapping[int, Mapping[int, int]]  # by place of the wait and rank
    edges: Edges

    def is_idle(self, rank: int) -> bool:
        return not self.edges.get(("rank", rank))

    def first(self, place: int) -> int:
        return min(self.begun[place].values(), default=LAST)


def _found(known: Diagnosis, waits: Sequence[Wait], stalls: Iterable[Stall], log: Log) -> Diagnosis:
    seen = _seen(waits, stalls)
    silent = {
        place: ranks
        for place, wait in enumerate(waits)
        if (ranks := [rank for rank in wait.unknown if seen.is_idle(rank)])
        and len(ranks) < len(wait.waiting)
        and all(map(seen.is_idle, wait.unknown))
    }
    if silent:
        order = sorted(silent, key=lambda place: (_is_paired(waits[place]), seen.first(place)))
        family = _family(waits[order[0]])
        roots = [place for place in order if _family(waits[place]) == family]
        suspects = tuple(sorted({rank for place in roots for rank in silent[place]}))
        reason = "elsewhere" if {*suspects} & {*log.spoke} else "silent"
        return _verdict(known, waits, roots, suspects, reason)
    full = [place for place in _sink_waits(seen.edges) if _has_all(waits[place], seen.begun[place])]
    if full:
        return _verdict(known, waits, sorted(full, key=seen.first), (), "all-arrived")
    return _spread(known, waits)


def _verdict(
    known: Diagnosis, waits: Sequence[Wait], roots: Sequence[int], suspects: Ranks, reason: str
) -> Diagnosis:
    """The verdict with the roots first, in order."""
    order = [*roots, *(place for place in range(len(waits)) if place not in {*roots})]
    ordered = tuple(waits[place] for place in order)
    hops = hops_of(ordered, suspects, range(len(roots)))
    return replace(known, suspects=suspects, reason=reason, waits=ordered, hops=hops)


def _family(wait: Wait) -> str:
    return wait.group.kind or wait.group.key


def _is_paired(wait: Wait) -> bool:
    """Whether its members send to each other: each waits for one other member."""
    return wait.group.kind == "pp" or wait.op in IN_PAIRS


def _has_all(wait: Wait, begun: Mapping[int, int]) -> bool:
    """Whether all members of a group are seen to wait in the same operation."""
    is_whole = wait.group.complete and not (wait.unknown or wait.absent or wait.parties)
    return is_whole and not _is_paired(wait) and {*wait.waiting} <= {*begun}


def _sink_waits(edges: Edges) -> list[int]:
    sinks = (sink for sink in sinks_of(edges) if len(sink) == 1)
    return [number for ((kind, number),) in map(tuple, sinks) if kind == "wait"]


def _seen(waits: Sequence[Wait], stalls: Iterable[Stall]) -> _Seen:
    places = {(wait.group.key, wait.group.name): place for place, wait in enumerate(waits)}
    begun: dict[int, dict[int, int]] = defaultdict(dict)
    for stall in stalls:
        place = places.get((stall.group or "", stall.guid))
        if place is None or stall.rank is None or stall.seq != waits[place].seq:
            continue
        when = LAST if stall.begun is None else stall.begun
        begun[place][stall.rank] = min(when, begun[place].get(stall.rank, LAST))
    return _Seen(begun, _edges(waits, begun))


def _edges(waits: Sequence[Wait], begun: Mapping[int, Mapping[int, int]]) -> Edges:
    edges: Edges = {}
    waits_of_rank: dict[int, list[int]] = defaultdict(list)
    for place, wait in enumerate(waits):
        for rank in wait.waiting:
            waits_of_rank[rank].append(place)
    for place, wait in enumerate(waits):
        edges["wait", place] = {("rank", rank) for rank in (*wait.absent, *wait.unknown)}
        for rank in (*wait.absent, *wait.unknown):
            edges["rank", rank] = {("wait", at) for at in waits_of_rank.get(rank, ())}
        for rank in wait.waiting:
            own = begun.get(place, {}).get(rank, LAST)
            older = [at for at in waits_of_rank[rank] if begun.get(at, {}).get(rank, LAST) < own]
            edges["wait", place] |= {("wait", at) for at in older}
    return edges
