"""The dumps of many ranks as one job: its groups, each member's calls, and the unfinished
operations: who entered them, who did not, who made another call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from groups.budget import spend
from groups.group_names import WORLD, kind_of

from .calls import Call, Dump, GroupKey
from .model import Party, ProcessGroup, Wait

_UNEVEN_INPUTS = ("all_to_all", "alltoall", "scatter")
_UNEVEN_OUTPUTS = ("all_to_all", "alltoall", "gather")
_ANY_SIZES = ("coalesced", "_v", "v_single")


@dataclass
class Group:
    """A group and its members' calls, by rank and by number in the group."""

    group: ProcessGroup
    family: str  # groups of one family do the same in the ranks' program
    calls: dict[int, dict[int, list[Call]]] = field(default_factory=lambda: defaultdict(dict))
    p2p: dict[int, list[Call]] = field(default_factory=lambda: defaultdict(list))

    def called(self, rank: int, seq: int) -> bool:
        """Whether a rank has called the collective with this number, or a later one."""
        return self._last.get(rank, -1) >= seq

    @cached_property
    def _last(self) -> dict[int, int]:
        """The number of each rank's last collective."""
        return {rank: max(calls) for rank, calls in self.calls.items() if calls}

    @cached_property
    def by_number(self) -> dict[int, dict[int, list[Call]]]:
        """The collectives by number, then by rank."""
        numbers: dict[int, dict[int, list[Call]]] = defaultdict(dict)
        for rank, calls in self.calls.items():
            for seq, made in calls.items():
                numbers[seq][rank] = made
        return numbers

    def pending(self, rank: int) -> int | None:
        """The number of the first collective that a rank has called and that did not end."""
        calls = self.calls.get(rank, {}).items()
        return min(
            (seq for seq, made in calls if not all(call.ended for call in made)), default=None
        )


@dataclass
class LoggedJob:
    """All groups in the dumps, and the ranks with a dump."""

    groups: dict[GroupKey, Group]
    dumped: tuple[int, ...]
    recorded_from: dict[int, int]  # by rank: time of its oldest call, 0 if that is its first ever
    backend: str

    def has_dump(self, rank: int) -> bool:
        return rank in self.recorded_from

    def group_of(self, wait: Wait) -> Group:
        return self._by_identity[id(wait.group)]

    def of_family(self, family: str, rank: int) -> Group | None:
        return self._families.get((family, rank))

    def __post_init__(self) -> None:
        self._by_identity = {id(group.group): group for group in self.groups.values()}
        self._families: dict[tuple[str, int], Group] = {}
        for group in self.groups.values():
            for rank in group.calls:
                self._families.setdefault((group.family, rank), group)


def job_of(dumps: Sequence[Dump], members: Mapping[str, Iterable[int]] | None = None) -> LoggedJob:
    """Joins the dumps of one job; ``members``: of groups by name, if the dumps do not have them.

    A name can be several groups (split_group), so a group is its name and its members.
    """
    known: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    for dump in dumps:
        for name, ranks in dump.members.items():
            known[name].add(ranks)
    for name, its_ranks in (members or {}).items():
        known[name] = known[name] or {tuple(its_ranks)}
    backend = next((dump.backend for dump in dumps if dump.backend), "")
    ranked = [(dump.rank, dump) for dump in dumps if dump.rank is not None]
    dumped = tuple(sorted({rank for rank, _ in ranked}))
    callers: dict[str, set[int]] = defaultdict(set)
    recorded_from = {}
    for rank, dump in ranked:
        recorded_from[rank] = dump.calls[0].created_ns if dump.wrapped and dump.calls else 0
        for name in {call.group for call in dump.calls}:
            callers[name].add(rank)
    groups: dict[GroupKey, Group] = {}
    members_of = _Members(known)
    for rank, dump in ranked:
        for call in dump.calls:
            key = (call.group, members_of(call.group, rank))
            if key not in groups:
                groups[key] = _new_group(dump, *key, callers[call.group], dumped)
            group = groups[key]
            if call.peers:
                group.p2p[rank].append(call)
            else:
                group.calls[rank].setdefault(call.seq, []).append(call)
    return LoggedJob(groups, dumped, recorded_from, backend)


class _Members:
    """Finds the list of a group's name with a rank; each list is searched once."""

    def __init__(self, known: Mapping[str, set[tuple[int, ...]]]) -> None:
        lists = {id(ranks): ranks for of_name in known.values() for ranks in of_name}
        self._by_name = {name: {*map(id, of_name)} for name, of_name in known.items()}
        self._by_rank: dict[int, set[int]] = defaultdict(set)
        for at, ranks in lists.items():
            for rank in ranks:
                self._by_rank[rank].add(at)
        self._lists = lists
        self._found: dict[tuple[str, int], tuple[int, ...]] = {}

    def __call__(self, name: str, rank: int) -> tuple[int, ...]:
        """The one list with the rank; empty if there is none, or several."""
        found = self._found.get((name, rank))
        if found is None:
            of_name, of_rank = self._by_name.get(name, set()), self._by_rank.get(rank, set())
            spend(min(len(of_name), len(of_rank)) // 8, "groups")
            fitting = of_name & of_rank
            found = self._lists[fitting.pop()] if len(fitting) == 1 else ()
            self._found[name, rank] = found
        return found


def _new_group(
    dump: Dump, name: str, ranks: tuple[int, ...], callers: set[int], dumped: tuple[int, ...]
) -> Group:
    description = dump.descriptions.get(name)
    kind, complete = kind_of(description, name), bool(ranks)
    description = None if description in ("", "undefined") else description
    if not ranks:
        ranks = dumped if kind == WORLD else tuple(sorted(callers))
    key = f"{name}:{description}" if description else name
    family = description or f"#{dump.local_ids.get(name, name)}"
    return Group(ProcessGroup(key, name, description, kind, ranks, complete), family)


# -- what does not finish ------------------------------------------------------------------------

Signature = tuple[str, str]


def waits_of(job: LoggedJob) -> list[Wait]:
    """The operations that a rank waits in, oldest first."""
    begun: list[Begun] = []
    for group in job.groups.values():
        begun += [*_collective_waits(group, job), *_p2p_waits(group, job)]
    return [wait for _, wait in sorted(begun, key=lambda call: call[0])]


def signature(calls: list[Call], sizes: bool = True) -> Signature:
    """What must be equal on all members of a group: operation, types, sizes that may not vary.

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
    return op, f"{inputs} -> {outputs} {last.dtypes}"


Begun = tuple[int, Wait]
"""The time of its first call, and the wait."""


def _collective_waits(group: Group, job: LoggedJob) -> Iterator[Begun]:
    pending = {rank: group.pending(rank) for rank in group.calls}
    numbers = sorted({seq for seq in pending.values() if seq is not None})
    members = group.group.members
    for seq in _first_difference(group, numbers) if numbers else ():
        spend((len(members) + len(pending)) // 4, "groups")
        parties = _parties(group, seq)
        calls = group.by_number[seq]
        begun = min(called[0].created_ns for called in calls.values())
        absent = tuple(
            rank
            for rank in members
            if job.has_dump(rank)
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
                unknown=tuple(rank for rank in members if not job.has_dump(rank)),
                possible=_possible(group, job) if is_open else (),
                late=_late(calls) if is_open else (),
            ),
        )


def _first_difference(group: Group, numbers: list[int]) -> list[int]:
    """The pending numbers without those after the first different calls: from there on calls are
    paired wrongly."""
    if len(_parties(group, numbers[0])) > 1:
        return numbers
    lowest = max((min(calls) for calls in group.calls.values() if calls), default=numbers[0])
    for seq in sorted(seq for seq in group.by_number if lowest <= seq < numbers[0]):
        made = group.by_number[seq].values()
        if len({signature(calls, sizes=False) for calls in made}) > 1:
            return [seq, *numbers]
    return numbers


def _parties(group: Group, seq: int) -> list[Party]:
    """The ranks with each call at this place, the largest party first."""
    sizes = not _sizes_vary(group, seq)
    by_signature: dict[Signature, list[int]] = defaultdict(list)
    for rank, calls in group.by_number[seq].items():
        by_signature[signature(calls, sizes)].append(rank)
    return parties_of(by_signature)


def parties_of(called: Mapping[Signature, Iterable[int]]) -> list[Party]:
    """The ranks with each call, the largest party first."""
    parties = (Party(tuple(sorted(ranks)), op, sizes) for (op, sizes), ranks in called.items())
    return sorted(parties, key=lambda party: (-len(party.ranks), party.ranks))


def _sizes_vary(group: Group, seq: int) -> bool:
    """Whether members have finished this operation with different sizes before: then they may."""
    ops = Counter(calls[-1].op for calls in group.by_number[seq].values())
    name = next((op for op, _ in ops.most_common(1)), None)
    for earlier in range(seq - 1, max(seq - 200, -1), -1):
        calls = [*group.by_number.get(earlier, {}).values()]
        spend(len(calls), "groups")
        ended = len(calls) > 1 and all(call[-1].op == name and call[-1].ended for call in calls)
        if ended and len({signature(call) for call in calls}) > 1:
            return True
    return False


def _possible(group: Group, job: LoggedJob) -> tuple[int, ...]:
    """Ranks that may be in a group of unknown members: those in no group of its family."""
    if group.group.complete or group.group.kind == WORLD:
        return ()
    spend(len(job.dumped) // 4, "groups")
    return tuple(rank for rank in job.dumped if job.of_family(group.family, rank) is None)


def _late(called: Mapping[int, Sequence[Call]]) -> tuple[int, ...]:
    """Members that entered only after the others' timeout."""
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
                absent=tuple(rank for rank in missing if job.has_dump(rank)),
                parties=parties,
                unknown=tuple(rank for rank in missing if not job.has_dump(rank)),
                peers=(ends["send"], ends["recv"]),
            ),
        )
