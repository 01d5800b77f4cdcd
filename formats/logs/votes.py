"""Who is the odd one out: by the others of the same group, then by the same place elsewhere.

Ranks of a job run one program, so a group's fellows (same description, other ranks) call the same
at the same number, and in the same order relative to other groups. Where that does not settle it,
nobody is named.
"""

from __future__ import annotations

from collections.abc import Iterable

from .job import Group, LoggedJob
from .model import Wait
from .waits import Signature, signature


def odd_parties(wait: Wait, job: LoggedJob) -> tuple[int, ...]:
    """The ranks that called something else than they should have, or none if that is open."""
    size = max(len(wait.group.members), sum(len(one.ranks) for one in wait.parties))
    largest = wait.parties[0]
    if 2 * len(largest.ranks) > size:
        right = largest
    else:
        supported = [one for one in wait.parties if _support(wait, (one.op, one.sizes), job)]
        if len(supported) != 1 or wait.peers:
            return ()
        right = supported[0]
    return tuple(sorted(rank for one in wait.parties if one is not right for rank in one.ranks))


def _support(wait: Wait, called: Signature, job: LoggedJob) -> int:
    """Ranks of other groups of the family that called just this at the same number."""
    family = next(group.family for group in job.groups.values() if group.group is wait.group)
    return sum(
        signature(calls[wait.seq], sizes=called[1] != "") == called
        for group in job.groups.values()
        if group.family == family and group.group is not wait.group
        for calls in group.calls.values()
        if wait.seq in calls
    )


def odd_orders(
    ranks: Iterable[int], waits: Iterable[Wait], job: LoggedJob
) -> dict[int, bool | None]:
    """Of ranks that wait for each other in a circle: who entered the groups in an order of its own.

    Returns:
        for each rank True (odd), False (as the others do) or None (nothing tells).
    """
    waits = [wait for wait in waits if not wait.peers]
    groups = {id(group.group): group for group in job.groups.values()}
    answers: dict[int, bool | None] = {}
    for rank in ranks:
        verdicts = [
            _verdict(rank, groups[id(own.group)], own.seq, groups[id(left.group)], left.seq, job)
            for own in waits
            if rank in own.waiting
            for left in waits
            if rank in left.absent or rank in left.possible
        ]
        known = [one for one in verdicts if one is not None]
        answers[rank] = None if not known else any(known)
    return answers


def _verdict(
    rank: int, entered: Group, entered_seq: int, left: Group, left_seq: int, job: LoggedJob
) -> bool | None:
    """Whether this rank alone went into one group before it had been in the other."""
    same = other = 0
    for one in job.dumped:
        if one == rank:
            continue
        first = _place(job.of_family(entered.family, one), one, entered_seq)
        second = _place(job.of_family(left.family, one), one, left_seq)
        if first is None and second is None:
            continue
        if second is None or (first is not None and first < second):
            same += 1
        else:
            other += 1
    if other >= 2 and other > 2 * same:
        return True
    return False if same > other else None


def _place(group: Group | None, rank: int, seq: int) -> int | None:
    calls = group.calls.get(rank, {}).get(seq) if group else None
    return calls[0].order if calls else None
