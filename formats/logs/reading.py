"""What has been read so far: filled line by line, file by file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .model import Counts, Failure, Note, ProcessGroup
from .names import WORLD, kind_of

MOST_STALLS = 200_000


class Printed(NamedTuple):
    """A group and a place in it, as a line prints them."""

    group: ProcessGroup
    group_rank: int


@dataclass
class LogReading:
    """The state of a reading; the public face is `formats.logs.read_log`."""

    ranks: set[int] = field(default_factory=set)
    group_ranks: set[int] = field(default_factory=set)
    local_ranks: set[int] = field(default_factory=set)
    groups: dict[str, ProcessGroup] = field(default_factory=dict)
    printed_as: dict[str, ProcessGroup] = field(
        default_factory=dict
    )  # by what is before " Rank r]"
    stalls: dict[tuple[Any, ...], None] = field(default_factory=dict)  # fields of `Stall`
    relayed: set[int] = field(default_factory=set)  # ranks that only passed a signal on
    failures: list[Failure] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    hosts: dict[int, str] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)
    missing: dict[int, str | None] = field(default_factory=dict)
    bare_works: dict[int, set[Any]] = field(default_factory=dict)
    ranks_by_head: bool = False  # a line has said [rankG]: PyTorch 2.2 or newer
    maybe_missing: set[int] = field(default_factory=set)  # in the numbers of bare ranks
    barriers_in_groups: bool = False  # a line has said that each group has its own
    # where the reading stands
    current: Printed | None = None
    speaker: int | None = None  # the rank that headed the last line with a head
    reports: dict[int, list[tuple[bool, tuple[int, ...]]]] = field(default_factory=dict)
    block: int | None = None  # the rank of the launcher's block that is being read
    host: str | None = None
    communicator: str | None = None
    launched: int | None = None
    collective: str | None = None
    recorder_seq: int | None = None
    recorded: ProcessGroup | None = None
    _lists: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def begin_text(self) -> None:
        self.current = self.block = self.host = self.communicator = self.recorded = None
        self.speaker = None

    def note(self, code: str, **facts: object) -> None:
        said = f"{code}{facts}"
        if said not in self.notes and len(self.notes) < 1000:
            self.notes[said] = Note(code, facts)

    def named(self, name: str | None, description: str | None, guid: bool) -> ProcessGroup:
        """The group that a line prints; its name counts where that is the same on all ranks."""
        kind = WORLD if name == "0" and not description else kind_of(description)
        if description == "undefined":
            description = None
        key = description or (f"PG GUID {name}" if guid else f"PG {name}" if name else "PG")
        is_known = guid or kind == WORLD
        group = ProcessGroup(key, name if is_known else None, description, kind)
        self.groups.setdefault(key, group)
        return group

    def listed(self, text: str) -> tuple[int, ...]:
        """The numbers of a list; ranks print the same one again and again."""
        numbers = self._lists.get(text)
        if numbers is None:
            if len(self._lists) == 256:
                self._lists.clear()
            numbers = self._lists[text] = tuple(map(int, re.findall(r"\d{1,7}", text)))
        return numbers

    def stall(
        self, rank: int | None, printed: Printed | None, relayed: bool = False,
        seq: int | None = None, op: str | None = None, *rest: int | None,
    ) -> None:  # fmt: skip
        """Work that did not finish; without a rank and a group that of the line before."""
        if printed is None and rank is None:
            printed = self.current
        place = key = guid = None
        if printed is not None:
            place, key, guid = printed.group_rank, printed.group.key, printed.group.name
            if rank is None and printed.group.kind == WORLD:
                rank = place
        if relayed and rank is not None:
            self.relayed.add(rank)
        if len(self.stalls) < MOST_STALLS:
            self.stalls[(rank, place, key, guid, seq, op, *rest)] = None

    def unsettled(self, absent: bool, numbers: Iterable[int]) -> None:
        """Numbers of a report of a group that no line names."""
        for number in numbers:
            self.bare_works.setdefault(number, set())
        if absent:
            self.maybe_missing.update(numbers)

    def absent(self, ranks: Iterable[int], op: str | None) -> None:
        for rank in ranks:
            self.missing.setdefault(rank, op)

    def count(
        self, place: object, launched: int | None, host: object, missing: bool = False
    ) -> None:
        """What a report of NCCL's RAS says of a rank of the communicator that it has come to."""
        if type(place) is not int:
            return
        self.group_ranks.add(place)
        name = self.communicator or "?"
        known = host if isinstance(host, str) and host != "unknown" else None
        self.counts.append(Counts(name, place, launched, known, missing))
        if missing:
            self.note("process-unreachable", communicator=name, rank=place)
