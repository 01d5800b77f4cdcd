"""Every operation that does not finish: who entered it, who did not, who called something else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .job import Group, LoggedJob
from .model import Party, Wait
from .names import WORLD
from .recorder import Call

_UNEVEN_INPUTS = ("all_to_all", "alltoall", "scatter")
_UNEVEN_OUTPUTS = ("all_to_all", "alltoall", "gather")
_ANY_SIZES = ("coalesced", "_v", "v_single")

Signature = tuple[str, str]


def waits_of(job: LoggedJob) -> list[Wait]:
    """The operations that some rank waits in, oldest first."""
    begun: list[Begun] = []
    for group in job.groups.values():
        begun += [*_collective_waits(group, job), *_p2p_waits(group, job)]
    return [wait for _, wait in sorted(begun, key=lambda call: call[0])]


def signature(calls: list[Call], sizes: bool = True) -> Signature:
    """What must be the same on all members of a group: operation, types, sizes that may not vary.

    As in torch/distributed/flight_recorder/components/types.py: inputs of an all-to-all and a
    scatter, outputs of an all-to-all and a gather differ between ranks by right, and so do the
    parts of a coalesced operation.
    """
    last = calls[-1]
    op = last.op.lower().lstrip("_")
    if len(calls) > 1 or not sizes or op.endswith(_ANY_SIZES):
        return op, ""
    inputs, outputs = last.sizes
    if op.startswith(_UNEVEN_INPUTS):
        inputs = "-"
    if op.startswith(_UNEVEN_OUTPUTS):
        outputs = "-"
    return op, f"{inputs} -> {outputs} {last.dtypes[0]}"


Begun = tuple[int, Wait]
"""When its first call was, and what waits."""


def _collective_waits(group: Group, job: LoggedJob) -> Iterator[Begun]:
    pending = {rank: group.pending(rank) for rank in group.calls}
    numbers = sorted({seq for seq in pending.values() if seq is not None})
    members = group.group.members
    for seq in _first_difference(group, numbers) if numbers else ():
        parties = _parties(group, seq)
        calls = {rank: calls[seq] for rank, calls in group.calls.items() if seq in calls}
        begun = min(called[0].created_ns for called in calls.values())
        absent = tuple(
            rank
            for rank in members
            if rank in job.dumped
            and not group.called(rank, seq)
            and (rank in group.calls or job.recorded_from[rank] <= begun)
        )
        ops = Counter(calls[rank][-1].op for rank in sorted(calls))
        is_open = not absent and len(parties) == 1
        yield (
            begun,
            Wait(
                group=group.group,
                op=ops.most_common(1)[0][0],
                seq=seq,
                waiting=tuple(sorted(rank for rank, number in pending.items() if number == seq)),
                absent=absent,
                parties=tuple(parties) if len(parties) > 1 else (),
                unknown=tuple(rank for rank in members if rank not in job.dumped),
                possible=_possible(group, job) if is_open else (),
                late=_late(calls) if is_open else (),
            ),
        )


def _first_difference(group: Group, numbers: list[int]) -> list[int]:
    """The numbers that are pending, after the one at which the members first called different
    operations: what comes after it is paired wrongly."""
    if len(_parties(group, numbers[0])) > 1:
        return numbers
    lowest = max((min(calls) for calls in group.calls.values() if calls), default=numbers[0])
    for seq in range(lowest, numbers[0]):
        ops = {signature(calls[seq], sizes=False) for calls in group.calls.values() if seq in calls}
        if len(ops) > 1:
            return [seq, *numbers]
    return numbers


def _parties(group: Group, seq: int) -> list[Party]:
    """Who called what at this place, the largest party first."""
    sizes = not _sizes_vary(group, seq)
    by_signature: dict[Signature, list[int]] = defaultdict(list)
    for rank, calls in group.calls.items():
        if seq in calls:
            by_signature[signature(calls[seq], sizes)].append(rank)
    return parties_of(by_signature)


def parties_of(called: Mapping[Signature, Iterable[int]]) -> list[Party]:
    """Who called what, the largest party first."""
    parties = (Party(tuple(sorted(ranks)), op, sizes) for (op, sizes), ranks in called.items())
    return sorted(parties, key=lambda party: (-len(party.ranks), party.ranks))


def _sizes_vary(group: Group, seq: int) -> bool:
    """Whether members have finished this operation with different sizes before: then they may."""
    ops = Counter(calls[seq][-1].op for calls in group.calls.values() if seq in calls)
    name = next((op for op, _ in ops.most_common(1)), None)
    for earlier in range(seq - 1, max(seq - 200, -1), -1):
        calls = [calls[earlier] for calls in group.calls.values() if earlier in calls]
        ended = len(calls) > 1 and all(call[-1].op == name and call[-1].ended for call in calls)
        if ended and len({signature(call) for call in calls}) > 1:
            return True
    return False


def _possible(group: Group, job: LoggedJob) -> tuple[int, ...]:
    """Ranks that may be in a group whose members nothing says: those in no group of its family."""
    if group.group.complete or group.group.kind == WORLD:
        return ()
    return tuple(rank for rank in job.dumped if job.of_family(group.family, rank) is None)


def _late(called: Mapping[int, Sequence[Call]]) -> tuple[int, ...]:
    """Members that entered only after the others' time was over."""
    calls = {rank: every[-1] for rank, every in called.items()}
    if not any(call.timed_out for call in calls.values()):
        return ()
    begun = min(call.created_ns for call in calls.values())
    return tuple(
        sorted(
            rank
            for rank, call in calls.items()
            if not call.timed_out and call.created_ns - begun >= call.timeout_ms * 1_000_000 > 0
        )
    )


def _p2p_waits(group: Group, job: LoggedJob) -> Iterator[Begun]:
    """Sends without their receive and receives without their send."""
    members = group.group.members
    open_calls: dict[tuple[int, int], dict[str, Call]] = defaultdict(dict)
    for calls in group.p2p.values():
        for call in calls:
            if not call.ended and call.peers:
                open_calls[call.peers].setdefault(call.op, call)
    for peers, sides in open_calls.items():
        if not group.group.complete or max(peers) >= len(members):
            continue
        ends = {"send": members[peers[0]], "recv": members[peers[1]]}
        call = next(iter(sides.values()))
        missing = [ends[op] for op in ends if op not in sides]
        parties: tuple[Party, ...] = ()
        if not missing and sides["send"].numels[0] != sides["recv"].numels[1]:
            parties = tuple(Party((ends[op],), op, shape.sizes[0]) for op, shape in sides.items())
        yield (
            call.created_ns,
            Wait(
                group=group.group,
                op="send/recv",
                seq=call.seq,
                waiting=tuple(sorted(ends[op] for op in sides)),
                absent=tuple(rank for rank in missing if rank in job.dumped),
                parties=parties,
                unknown=tuple(rank for rank in missing if rank not in job.dumped),
                peers=(ends["send"], ends["recv"]),
            ),
        )
