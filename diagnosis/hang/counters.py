"""The missing ranks by the counters that watchdogs print, without a dump.

    a rank waits in work N of a group         it is stuck at N
    another rank of that very group says that E < N was the last work it enqueued
                                              it never entered N: it is missing

A group is the same on two lines only by its name in the whole job (GUID) or if it holds all ranks:
descriptions and local numbers name many groups. Who said nothing may still wait: silence is no
evidence. Nor are counters of a group whose members send to each other: each counts its own pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, pairwise

from groups.group_names import WORLD

from .job import parties_of
from .model import Diagnosis, ProcessGroup, Stall, Wait
from .origin import first_reason, hops_of

_UNEVEN = ("COALESCED", "ALLTOALL", "GATHER", "SCATTER")
IN_PAIRS = {"SEND", "RECV", "COALESCED"}
"""Operations that each member counts separately."""

_ENOUGH = 3
"""The least number of ranks with the same call for one that differs to be the odd one."""

Key = tuple[str | None, str | None]
"""A group as printed, and its name in the whole job."""

Place = tuple[str | None, str | None, int | None]
"""A group's key, and the place of a rank in it."""


def joined(stalls: Iterable[Stall], kinds: Mapping[str, str | None]) -> list[Stall]:
    """The stalls with their groups: a line without one takes that of the next line about the same
    work; where that is lost, the group of all ranks, if it is the only one of the same call.

    One rank can be stuck in two groups at the same number, so the last line is no help unless it is
    the only one.
    """
    stalls = list(stalls)
    named: dict[tuple[int | None, int | None], set[Place]] = defaultdict(set)
    for stall in stalls:
        if stall.group is not None:
            named[stall.rank, stall.seq].add((stall.group, stall.guid, stall.group_rank))
    following: dict[tuple[int | None, int | None], Place] = {}
    with_groups = []
    for stall in reversed(stalls):
        work = (stall.rank, stall.seq)
        if stall.group is not None:
            following[work] = (stall.group, stall.guid, stall.group_rank)
        elif None not in work and (work in following or len(named.get(work, ())) == 1):
            group, guid, place = following[work] if work in following else next(iter(named[work]))
            stall = replace(stall, group=group, guid=guid, group_rank=place)
        with_groups.append(stall)
    return _in_world(with_groups[::-1], kinds)


def _in_world(stalls: list[Stall], kinds: Mapping[str, str | None]) -> list[Stall]:
    """The stalls, those whose line about the group is lost in the group of all ranks, if others of
    the same call, and no group else, are."""
    groups: dict[Call, set[Key]] = defaultdict(set)
    for stall in stalls:
        if stall.group is not None and stall.op:
            groups[call_of(stall)].add((stall.group, stall.guid))
    whole = {
        call: key
        for call, (key, *others) in ((call, [*keys]) for call, keys in groups.items())
        if not others and kinds.get(key[0] or "") == WORLD
    }
    return [
        stall
        if stall.group is not None or not stall.op or call_of(stall) not in whole
        else replace(
            stall,
            group=whole[call_of(stall)][0],
            guid=whole[call_of(stall)][1],
            group_rank=stall.rank,
        )
        for stall in stalls
    ]


Call = tuple[int | None, str | None, int | None, int | None]
"""A number, an operation and its elements in and out."""


def call_of(stall: Stall) -> Call:
    return (stall.seq, stall.op, stall.numel_in, stall.numel_out)


def diagnosis_of_stalls(
    stalls: Iterable[Stall], kinds: Mapping[str, str | None], relayed: Iterable[int]
) -> Diagnosis:
    """The diagnosis of the lines; suspects are ranks that only passed a signal on."""
    by_group: dict[tuple[str, str | None], list[Stall]] = defaultdict(list)
    stuck_in: dict[int, set[Key]] = defaultdict(set)
    for stall in stalls:
        if stall.rank is None:
            continue
        if stall.seq is not None:
            stuck_in[stall.rank].add((stall.group, stall.guid))
        if stall.group and (stall.guid or kinds.get(stall.group) == WORLD):
            by_group[stall.group, stall.guid].append(stall)
    waits, relaying = [], set(relayed)
    causes: dict[int, str] = {}
    for (key, guid), lines in by_group.items():
        wait = _wait(ProcessGroup(key, guid, None, kinds.get(key)), lines)
        if wait:
            waits.append(wait)
            held = {rank for rank in wait.absent if stuck_in[rank] - {(key, guid)}}
            causes |= dict.fromkeys({*wait.absent} - held, "absent")
            causes |= dict.fromkeys(_odd(wait), "different")
    if not waits:
        waits = _local_waits(stalls)
    stuck = {rank for wait in waits for rank in wait.waiting}
    # Where groups are known to wait, a rank that is done with another group's work shows nothing.
    stuck_groups = {(wait.group.key, wait.group.name) for wait in waits}
    suspects = (
        {
            stall.rank
            for stall in chain(*by_group.values())
            if stall.rank in relaying
            and stall.last_enqueued == stall.last_completed is not None
            and (not waits or (stall.group, stall.guid) in stuck_groups)
        }
        - stuck
        - {*causes}
    )
    roots = [place for place, wait in enumerate(waits) if wait.absent or wait.parties]
    reasons = {"different"} if any(wait.parties for wait in waits) else set()
    reasons |= {"unclear"} if waits or suspects else set()
    return Diagnosis(
        culprits=tuple(sorted(causes)),
        suspects=tuple(sorted(suspects)),
        reason=first_reason(causes, reasons),
        waits=tuple(waits),
        hops=hops_of(waits, causes, roots or range(len(waits))),
    )


def _local_waits(stalls: Iterable[Stall]) -> list[Wait]:
    """A wait for each group that lines number only in their own process, where its lines make one
    call: ``[PG 3 Rank r]`` of PyTorch 2.4 (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp)."""
    by_key: dict[str, list[Stall]] = defaultdict(list)
    for stall in stalls:
        if stall.rank is not None and stall.group and not stall.guid and stall.seq is not None:
            by_key[stall.group].append(stall)
    waits = []
    for key, lines in by_key.items():
        if len({call_of(stall) for stall in lines if stall.op}) == 1:
            wait = _wait(ProcessGroup(key, None, None, None), lines)
            waits += [wait] if wait and not wait.absent else []
    return waits


def _wait(group: ProcessGroup, lines: list[Stall]) -> Wait | None:
    done, enqueued = _most(lines, "last_completed"), _most(lines, "last_enqueued")
    sends = {"SEND", "RECV"} if group.kind else IN_PAIRS  # all-gathers can be coalesced too
    is_pairs = group.kind == "pp" or any(stall.op in sends for stall in lines)
    at = [
        (stall.seq, stall.rank)
        for stall in lines
        if stall.seq is not None and stall.rank is not None
        if is_pairs or stall.seq > done.get(stall.rank, -1)  # else it has left that call
    ]
    if not at:
        return None
    seq = min(number for number, _ in at) if is_pairs else _number_of(at, done, enqueued)
    waiting = {
        rank
        for number, rank in at
        if is_pairs or number == seq or number > seq > done.get(rank, -1)
    }
    absent = set() if is_pairs else {rank for rank, last in enqueued.items() if last < seq}
    if not is_pairs:  # enqueued it, and did not complete it
        waiting |= {rank for rank, last in enqueued.items() if last >= seq > done.get(rank, seq)}
    called: dict[tuple[str, str], set[int]] = defaultdict(set)
    for stall in lines:
        if stall.seq == seq and stall.op and stall.rank is not None:
            sizes = "" if stall.numel_in is None else f"{stall.numel_in} -> {stall.numel_out}"
            called[(stall.op, sizes)].add(stall.rank)
    parties = parties_of(called)
    return Wait(
        group=group,
        op=parties[0].op if parties else "",
        seq=seq,
        waiting=tuple(sorted(waiting)),
        absent=tuple(sorted(absent - waiting)),
        parties=tuple(parties) if len(parties) > 1 and not is_pairs else (),
    )


def _most(lines: list[Stall], counter: str) -> dict[int, int]:
    """The largest value of a counter that each rank prints."""
    most: dict[int, int] = {}
    for stall in lines:
        number = getattr(stall, counter)
        if stall.rank is not None and number is not None:
            most[stall.rank] = max(number, most.get(stall.rank, -1))
    return most


def _number_of(
    at: list[tuple[int, int]], done: Mapping[int, int], enqueued: Mapping[int, int]
) -> int:
    """The call in which the members wait: the first, unless those in it have enqueued nothing more
    and all others have left it, so that they are behind.

    >>> _number_of([(9, 0), (10, 1), (10, 2)], {0: 8, 1: 9, 2: 9}, {0: 9, 1: 13, 2: 13})
    10
    """
    numbers = sorted({number for number, _ in at})
    for number, following in pairwise(numbers):
        inside = {rank for other, rank in at if other == number}
        beyond = {rank for other, rank in at if other > number}
        behind = all(enqueued.get(rank, following) < following for rank in inside)
        if not (behind and all(done.get(rank, -1) >= number for rank in beyond)):
            return number
    return numbers[-1]


def _odd(wait: Wait) -> tuple[int, ...]:
    """The one rank that differs from several that agree."""
    if len(wait.parties) != 2 or len(wait.parties[0].ranks) < _ENOUGH:
        return ()
    largest, other = wait.parties
    same_op = largest.op == other.op
    uneven = same_op and largest.op.lstrip("_").startswith(_UNEVEN)
    is_one = len(other.ranks) == 1 and other.ranks[0] not in largest.ranks
    return other.ranks if is_one and not uneven else ()
