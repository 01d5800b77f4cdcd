"""Who is missing by the counters that watchdogs print, where there is no dump.

    a rank waits in work N of a group         it is stuck at N
    another rank of that very group says that E < N was the last work it enqueued
                                              it never entered N: it is missing

A group is the same on two lines only by its name in the whole job (GUID) or if it holds all ranks:
descriptions and local numbers name many groups. Who said nothing may still wait: silence is no
evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from .diagnosis import hops_of
from .model import Diagnosis, Party, ProcessGroup, Stall, Wait
from .names import WORLD

_UNEVEN = ("COALESCED", "ALLTOALL", "GATHER", "SCATTER")
_ENOUGH = 3
"""Ranks that called the same before one that differs is called the odd one."""


def joined(stalls: Iterable[Stall]) -> list[Stall]:
    """The stalls with their groups: a line without one takes that of the same work's next line."""
    stalls = list(stalls)
    groups: dict[tuple[int | None, int | None], Stall] = {
        (one.rank, one.seq): one for one in reversed(stalls) if one.group and one.seq
    }
    found = []
    for one in stalls:
        named = groups.get((one.rank, one.seq)) if one.group is None else None
        if named and one.rank is not None:
            one = replace(one, group=named.group, guid=named.guid, group_rank=named.group_rank)
        found.append(one)
    return found


def diagnosis_of_stalls(
    stalls: Iterable[Stall], kinds: Mapping[str, str | None], relayed: Iterable[int]
) -> Diagnosis:
    """What the lines show; suspects are ranks that passed a signal on with nothing of their own."""
    by_group: dict[tuple[str, str | None], list[Stall]] = defaultdict(list)
    for one in joined(stalls):
        if one.group and one.rank is not None and (one.guid or kinds.get(one.group) == WORLD):
            by_group[(one.group, one.guid)].append(one)
    waits = []
    for (key, guid), lines in by_group.items():
        wait = _wait(ProcessGroup(key, guid, None, kinds.get(key)), lines)
        if wait:
            waits.append(wait)
    stuck = {rank for wait in waits for rank in wait.waiting}
    idle = {
        one.rank
        for lines in by_group.values()
        for one in lines
        if one.rank in set(relayed) and one.last_enqueued == one.last_completed is not None
    }
    culprits = {rank for wait in waits for rank in (*wait.absent, *_odd(wait))} - stuck_elsewhere(
        waits
    )
    suspects = {rank for rank in idle if rank is not None} - stuck - culprits
    roots = [place for place, wait in enumerate(waits) if wait.absent or wait.parties]
    return Diagnosis(
        culprits=tuple(sorted(culprits)),
        suspects=tuple(sorted(suspects)),
        reason="different"
        if any(wait.parties for wait in waits)
        else "absent"
        if culprits
        else "unclear"
        if waits or suspects
        else "none",
        waits=tuple(waits),
        hops=hops_of(waits, culprits, roots or range(len(waits))),
    )


def stuck_elsewhere(waits: Iterable[Wait]) -> set[int]:
    """Absent ranks that wait in another group: somebody else holds them."""
    waits = list(waits)
    return {
        rank
        for wait in waits
        for rank in wait.absent
        if any(rank in other.waiting for other in waits if other is not wait)
    }


def _wait(group: ProcessGroup, lines: list[Stall]) -> Wait | None:
    numbers = [one.seq for one in lines if one.seq is not None]
    if not numbers:
        return None
    seq = min(numbers)
    waiting = {one.rank for one in lines if one.seq is not None and one.rank is not None}
    enqueued: dict[int, int] = {}
    for one in lines:
        if one.rank is not None and one.last_enqueued is not None:
            enqueued[one.rank] = max(one.last_enqueued, enqueued.get(one.rank, -1))
    absent = {rank for rank, last in enqueued.items() if last < seq} - waiting
    called: dict[tuple[str, str], set[int]] = defaultdict(set)
    for one in lines:
        if one.seq == seq and one.op and one.rank is not None:
            sizes = "" if one.numel_in is None else f"{one.numel_in} -> {one.numel_out}"
            called[(one.op, sizes)].add(one.rank)
    parties = sorted(
        (Party(tuple(sorted(ranks)), op, sizes) for (op, sizes), ranks in called.items()),
        key=lambda party: (-len(party.ranks), party.ranks),
    )
    return Wait(
        group=group,
        op=parties[0].op if parties else "",
        seq=seq,
        waiting=tuple(sorted(waiting)),
        absent=tuple(sorted(absent)),
        parties=tuple(parties) if len(parties) > 1 else (),
    )


def _odd(wait: Wait) -> tuple[int, ...]:
    """The one rank that differs from several that agree."""
    if len(wait.parties) != 2 or len(wait.parties[0].ranks) < _ENOUGH:
        return ()
    largest, other = wait.parties
    same_op = largest.op == other.op
    uneven = same_op and largest.op.lstrip("_").startswith(_UNEVEN)
    return other.ranks if len(other.ranks) == 1 and not uneven else ()
