"""The dumps of many ranks as one job: its groups, and what each member called in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .model import ProcessGroup, Wait
from .names import WORLD, kind_of
from .recorder import MOST_ENTRIES, Call, Dump, GroupKey


@dataclass
class Group:
    """A group and its members' calls, by rank and by number in the group."""

    group: ProcessGroup
    family: str  # groups of one family do the same in the ranks' program
    calls: dict[int, dict[int, list[Call]]] = field(default_factory=lambda: defaultdict(dict))
    p2p: dict[int, list[Call]] = field(default_factory=lambda: defaultdict(list))

    def called(self, rank: int, seq: int) -> bool:
        """Whether a rank has called the collective of this number, or a later one."""
        return bool(self.calls.get(rank)) and max(self.calls[rank]) >= seq

    def pending(self, rank: int) -> int | None:
        """The number of the first collective that a rank has called and that did not end."""
        open_calls = [
            seq
            for seq, calls in self.calls.get(rank, {}).items()
            if not all(call.ended for call in calls)
        ]
        return min(open_calls, default=None)


@dataclass
class LoggedJob:
    """All groups that some dump names, and who has a dump."""

    groups: dict[GroupKey, Group]
    dumped: tuple[int, ...]
    recorded_from: dict[int, int]  # by rank: time of its oldest call, 0 if that is its first ever
    backend: str

    def group_of(self, wait: Wait) -> Group:
        """The group that waits."""
        return self._by_identity[id(wait.group)]

    def of_family(self, family: str, rank: int) -> Group | None:
        """The group of a family that a rank is in."""
        return self._families.get((family, rank))

    def __post_init__(self) -> None:
        self._by_identity = {id(group.group): group for group in self.groups.values()}
        self._families: dict[tuple[str, int], Group] = {}
        for group in self.groups.values():
            for rank in group.calls:
                self._families.setdefault((group.family, rank), group)


def job_of(dumps: Sequence[Dump], members: Mapping[str, Iterable[int]] | None = None) -> LoggedJob:
    """Join the dumps of one job; ``members`` tells groups by name where the dumps do not.

    A name can be several groups (split_group), so a group is its name and its members.
    """
    known: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    for dump in dumps:
        for name, ranks in dump.members.items():
            known[name].add(ranks)
    for name, given in (members or {}).items():
        known[name] = known[name] or {tuple(given)}
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
    budget = MOST_ENTRIES
    for rank, dump in ranked:
        for call in dump.calls[:budget]:
            fitting = [ranks for ranks in known[call.group] if rank in ranks]
            key = (call.group, fitting[0] if len(fitting) == 1 else ())
            if key not in groups:
                groups[key] = _new_group(dump, *key, callers[call.group], dumped)
            group = groups[key]
            if call.peers:
                group.p2p[rank].append(call)
            else:
                group.calls[rank].setdefault(call.seq, []).append(call)
        budget -= min(budget, len(dump.calls))
    return LoggedJob(groups, dumped, recorded_from, backend)


def _new_group(
    dump: Dump, name: str, ranks: tuple[int, ...], callers: set[int], dumped: tuple[int, ...]
) -> Group:
    description = dump.descriptions.get(name) or None
    if description == "undefined":
        description = None
    kind = kind_of(description) or (WORLD if name == "0" and not description else None)
    complete = bool(ranks)
    if not ranks:
        ranks = dumped if kind == WORLD else tuple(sorted(callers))
    key = f"{name}:{description}" if description else name
    family = description or f"#{dump.local_ids.get(name, name)}"
    return Group(ProcessGroup(key, name, description, kind, ranks, complete), family)
