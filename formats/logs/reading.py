"""What has been read so far: filled line by line, file by file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from .model import Counts, Failure, Note, Stall
from .names import WORLD, kind_of

MOST_STALLS = 200_000


@dataclass(frozen=True)
class Named:
    """A group as a line prints it; ``guid`` only where the name is the same on all ranks."""

    key: str
    guid: str | None
    description: str | None
    kind: str | None

    @property
    def is_world(self) -> bool:
        return self.kind == WORLD


@dataclass(frozen=True)
class Printed:
    group: Named
    group_rank: int


@dataclass
class LogReading:
    """The state of a reading; the public face is `formats.logs.read_log`."""

    ranks: set[int] = field(default_factory=set)
    group_ranks: set[int] = field(default_factory=set)
    local_ranks: set[int] = field(default_factory=set)
    groups: dict[str, Named] = field(default_factory=dict)
    printed_as: dict[str, Named] = field(default_factory=dict)  # by what stands before " Rank r]"
    stalls: list[Stall] = field(default_factory=list)
    relayed: set[int] = field(default_factory=set)  # ranks that only passed a signal on
    failures: list[Failure] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    hosts: dict[int, str] = field(default_factory=dict)
    notes: dict[Note, None] = field(default_factory=dict)
    missing: dict[int, str | None] = field(default_factory=dict)
    bare_works: dict[int, set[Any]] = field(default_factory=dict)
    ranks_by_head: bool = False  # a line has said [rankG]: PyTorch 2.2 or newer
    maybe_missing: set[int] = field(default_factory=set)  # in the numbers of bare ranks
    # where the reading stands
    current: Printed | None = None
    block: int | None = None  # the rank of the launcher's block that is being read
    host: str | None = None
    communicator: str | None = None
    launched: int | None = None
    collective: str | None = None
    recorder_seq: int | None = None
    recorded: Named | None = None

    def begin_text(self) -> None:
        self.current = self.block = self.host = self.communicator = self.recorded = None

    def note(self, code: str, **facts: object) -> None:
        if len(self.notes) < 1000:
            self.notes[Note(code, _frozen(facts))] = None

    def named(self, name: str | None, description: str | None, guid: bool) -> Named:
        is_first = name == "0" and not description
        kind = WORLD if is_first else kind_of(description)
        if description == "undefined":
            description = None
        key = description or (f"PG GUID {name}" if guid else f"PG {name}" if name else "PG")
        found = Named(key, name if guid or kind == WORLD else None, description, kind)
        self.groups.setdefault(key, found)
        return found

    def printed(self, group: Named, number: int, rank: int | None) -> Printed:
        """A ``[PG ... Rank r]``: in the group of all ranks the number is global."""
        printed = Printed(group, number)
        if not printed.group.is_world:
            self.group_ranks.add(number)
        elif rank is None:
            self.ranks.add(number)
        self.current = printed
        return printed

    def stall(
        self, rank: int | None, printed: Printed | None, *, relayed: bool, **facts: Any
    ) -> None:
        if printed is None and rank is None:
            printed = self.current
        if printed and rank is None and printed.group.is_world:
            rank = printed.group_rank
        if relayed and rank is not None:
            self.relayed.add(rank)
        if len(self.stalls) < MOST_STALLS:
            self.stalls.append(
                Stall(
                    rank,
                    printed.group_rank if printed else None,
                    printed.group.key if printed else None,
                    printed.group.guid if printed else None,
                    **facts,
                )
            )

    def bare(self, number: int, work: tuple[str | None, ...] | None) -> None:
        """A ``[Rank r]`` that nothing else explains, with the work that its line names."""
        works = self.bare_works.setdefault(number, set())
        if work and len(works) < 3:
            works.add(work)

    def worker(self, rank: int | None, local_rank: int | None, exitcode: int | None) -> None:
        if rank is not None:
            self.ranks.add(rank)
            if self.host:
                self.hosts[rank] = self.host
        if local_rank is not None:
            self.local_ranks.add(local_rank)
        self.block = rank
        if len(self.failures) < MOST_STALLS:
            self.failures.append(Failure(rank, local_rank, exitcode, self.host))

    def exit_code(self, exitcode: int) -> None:
        """The line after a launcher's rank."""
        if self.failures and self.block is not None and self.failures[-1].exitcode is None:
            self.failures[-1] = replace(self.failures[-1], exitcode=exitcode)

    def absent(self, ranks: Iterable[int], op: str | None) -> None:
        for rank in ranks:
            self.missing.setdefault(rank, op)

    def in_current_group(self, numbers: Iterable[int], absent: bool) -> None:
        """Numbers of a report that was printed for the group of the line before."""
        numbers = list(numbers)
        if self.current and not self.current.group.is_world:
            self.group_ranks.update(numbers)
            if absent:
                self.note("missing-in-group", ranks=tuple(numbers), group=self.current.group.key)
        elif self.current:
            self.ranks.update(numbers)
            if absent:
                self.absent(numbers, None)
        else:
            for number in numbers:
                self.bare(number, None)
            if absent:
                self.maybe_missing.update(numbers)

    def recorder_group(self, key: str, name: str, description: str | None) -> None:
        named = Named(key, name, description, kind_of(description))
        self.groups.setdefault(key, named)
        self.recorded = named

    def recorder_op(self, op: str) -> None:
        if self.recorded or self.recorder_seq is not None:
            group = self.recorded
            self.stalls.append(
                Stall(
                    None,
                    None,
                    group.key if group else None,
                    group.guid if group else None,
                    seq=self.recorder_seq,
                    op=op,
                )
            )
            self.collective = op


class _Frozen(dict[str, object]):  # facts of a note: compared and hashed by what they say
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted((key, repr(value)) for key, value in self.items())))


def _frozen(facts: dict[str, object]) -> _Frozen:
    return _Frozen(facts)
