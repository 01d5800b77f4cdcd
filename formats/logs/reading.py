"""The state of a reading, and what each kind of line adds to it.

What a line says is a step: a method that gets texts of digits and names as they stand in the line,
empty where a line has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from diagnosis.hang.model import ProcessGroup, Standing
from groups.group_names import WORLD, kind_of
from groups.notes import Note

MOST_STALLS = 200_000
MOST_NAMES = 20_000
"""The most printed groups kept at a time."""

_UNSET = 2**63  # NumelIn=18446744073709551615 stands for "unset"
_GROUP_BODY = re.compile(
    r"(?:ID (\d{1,7}) ?)?(?:PG GUID )?([^\s()]{1,200})? ?(?:\(([^()]{1,200})\))?"
)


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _seconds(month: int, day: int, hour: int, minute: int, second: int, ran: int) -> int:
    """The start of work by the clock of its line. The fraction is of another clock and is ignored
    (c10/util/Logging.cpp)."""
    return ((month * 31 + day) * 24 + hour) * 3600 + minute * 60 + second - ran // 1000


Printed = tuple[ProcessGroup, int]
"""A group and a place in it, as a line prints them."""


@dataclass
class LogReading:
    """The state of a reading; the public face is `formats.logs.read_log`."""

    ranks: set[int] = field(default_factory=set)
    group_ranks: set[int] = field(default_factory=set)
    groups: dict[str, ProcessGroup] = field(default_factory=dict)
    printed_as: dict[str, ProcessGroup] = field(default_factory=dict)  # by text before " Rank r]"
    stalls: dict[tuple[Any, ...], None] = field(default_factory=dict)  # fields of `Stall`
    relayed: set[int] = field(default_factory=set)  # ranks that only passed a signal on
    spoke: set[int] = field(default_factory=set)  # ranks that head a line
    hosts: dict[int, str] = field(default_factory=dict)
    devices: dict[int, int] = field(default_factory=dict)
    notes: dict[str, Note] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)
    bare_works: dict[int, set[tuple[str, ...]]] = field(default_factory=dict)
    ranks_by_head: bool = False  # a line has said [rankG]: PyTorch 2.2 or newer
    maybe_missing: set[int] = field(default_factory=set)  # in the numbers of bare ranks
    work_of_lines: int = 0  # what reading them has cost
    barriers_in_groups: bool = False  # a line has said that each group has its own
    stacks: dict[int, Standing] = field(default_factory=dict)
    # where the reading stands
    current: Printed | None = None
    speaker: int | None = None  # the rank that headed the last line with a head
    reports: dict[int, list[tuple[bool, tuple[int, ...]]]] = field(default_factory=dict)
    block: int | None = None  # the rank of the launcher's block that is being read
    host: str | None = None
    communicator: str | None = None
    job_size: int = 0  # GPUs, by a report's summary
    launched: dict[int, int] = field(default_factory=dict)  # ranks by what they launched last
    minority: set[int] = field(default_factory=set)
    mismatch: str | None = None  # the communicator whose counts differ
    recorder_seq: int | None = None
    recorded: ProcessGroup | None = None
    _lists: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def begin_text(self) -> None:
        self.current = self.block = self.host = self.communicator = self.recorded = None
        self.speaker = None

    def note(self, code: str, **facts: object) -> None:
        key = f"{code}{facts}"
        if key not in self.notes and len(self.notes) < 1000:
            self.notes[key] = Note(code, facts)

    def add_stacks(self, stacks: Iterable[Standing]) -> None:
        """Adds the positions of ranks; of two stacks of a rank the later one applies."""
        for one in stacks:
            self.stacks[one.rank] = one
            self.ranks.add(one.rank)
            self.spoke.add(one.rank)

    def listed(self, text: str) -> tuple[int, ...]:
        """The numbers of a list; cached, as ranks print the same one again and again."""
        numbers = self._lists.get(text)
        if numbers is None:
            if len(self._lists) == 256:
                self._lists.clear()
            numbers = self._lists[text] = tuple(map(int, re.findall(r"\d{1,7}", text)))
        return numbers

    def add_stall(
        self, rank: int | None, printed: Printed | None, relayed: bool = False,
        seq: int | None = None, op: str | None = None, *rest: int | None,
    ) -> None:  # fmt: skip
        """Adds unfinished work; without a rank and a group, that of the line before."""
        if printed is None and rank is None:
            printed = self.current
        place = key = guid = None
        if printed is not None:
            group, place = printed
            key, guid = group.key, group.name
            if rank is None and group.kind == WORLD:
                rank = place
        if relayed and rank is not None:
            self.relayed.add(rank)
        if len(self.stalls) < MOST_STALLS:
            stall = (rank, place, key, guid, seq, op, *rest)
            self.stalls[stall] = None

    def add_unsettled(self, absent: bool, numbers: Iterable[int]) -> None:
        """Adds numbers of a report about a group that no line names."""
        for number in numbers:
            self.bare_works.setdefault(number, set())
        if absent:
            self.maybe_missing.update(numbers)

    def add_unreached(self, place: int) -> None:
        """Records a rank whose process did not answer, in the report's current communicator."""
        self.group_ranks.add(place)
        self.note("process-unreachable", communicator=self.communicator or "?", rank=place)

    # -- ranks and places --------------------------------------------------------------------------

    def add_head(self, rank: str) -> None:
        """Adds a ``[rank9]:`` of PyTorch 2.2 or newer: the global rank."""
        self.ranks.add(int(rank))
        self.spoke.add(int(rank))
        self.ranks_by_head = True
        self.block = self.current = None
        self.speaker = int(rank)

    def add_tag(self, rank: str) -> None:
        """Adds a ``[1,3]<stdout>:`` of mpirun, before each line of a process."""
        self.ranks.add(int(rank))
        self.spoke.add(int(rank))
        if self.speaker != int(rank):
            self.block = self.current = None
            self.speaker = int(rank)

    def add_ranks(self, *numbers: str) -> None:
        self.ranks.update(map(int, numbers))

    def add_places(self, *numbers: str) -> None:
        """Adds places in a group or a communicator."""
        self.group_ranks.update(map(int, numbers))

    def add_places_beside(self, rank: str, *numbers: str) -> None:
        """Adds places in a group, or the rank itself, that a process names."""
        self.group_ranks.update({*map(int, numbers)} - {_number(rank)})

    def add_listed(self, is_missing: bool, numbers: str) -> None:
        """Adds a list of global ranks."""
        named = self.listed(numbers)
        self.ranks.update(named)
        if is_missing:
            self.missing.update(named)

    # -- watchdogs ---------------------------------------------------------------------------------

    def add_printed(self, rank: str, body: str, number: str) -> None:
        """Adds a ``[PG ... Rank r]``: in the group of all ranks the number is global."""
        group = self.printed_as.get(body)
        if group is None:
            if len(self.printed_as) > MOST_NAMES:
                self.printed_as.clear()
            group = self.printed_as[body] = _group(body)
            self.groups.setdefault(group.key, group)
        place = int(number)
        self.current = group, place
        if rank and (reports := self.reports.pop(int(rank), None)):
            for absent, numbers in reports:
                self._in_group(group, absent, numbers)
        if group.kind != WORLD:
            self.group_ranks.add(place)
        elif not rank:
            self.ranks.add(place)

    def add_place_in_printed(self, number: str) -> None:
        """Adds a ``[Rank r]`` on a line that names a group but no rank of the job."""
        if self.current and self.current[0].kind != WORLD:
            self.group_ranks.add(int(number))

    def add_bare(self, number: str, *work: str) -> None:
        """Adds a ``[Rank r]`` that nothing else explains, with the work on its line."""
        works = self.bare_works.setdefault(int(number), set())
        if any(work) and len(works) < 3:
            works.add(work)

    def add_work(
        self, in_group: bool, relayed: bool, rank: str, seq: str, op: str, *rest: str
    ) -> None:
        """Adds unfinished work; rest: elements in and out, the group's counters, then month, day,
        hour, minute and second of the line, and the milliseconds that the work ran."""
        numel_in, numel_out, stuck_at, *counters = map(_number, rest[:5])
        printed = self.current if in_group else None
        number = int(seq) if seq else stuck_at
        sizes = (None if n is None or n > _UNSET else n for n in (numel_in, numel_out))
        begun = _seconds(*map(int, rest[5:])) if all(rest[5:]) else None
        self.add_stall(
            _number(rank), printed, relayed, number, op or None, *sizes, *counters, begun
        )

    # -- launchers ---------------------------------------------------------------------------------

    def add_worker(self, rank: str, local_rank: str) -> None:
        """Adds a worker that a launcher saw die."""
        self.block = int(rank)
        self.ranks.add(self.block)
        self.devices[self.block] = int(local_rank)
        if self.host:
            self.hosts[self.block] = self.host

    def begin_host(self, host: str) -> None:
        self.host = host
        self.block = None

    def hides_lines(self) -> None:
        self.note("lines-hidden")

    def leaves_out(self) -> None:
        """A line breaks off, or says that others are not shown."""
        self.note("lines-left-out")

    # -- barriers ----------------------------------------------------------------------------------

    def begin_wrapped_barrier(self) -> None:
        """A barrier of TORCH_DISTRIBUTED_DEBUG=DETAIL, which runs in a group before each of its
        operations."""
        self.barriers_in_groups = True

    def add_barrier(self, rank: str, speaker: str, failed: str, reached: str, *others: str) -> None:
        """Adds a monitored barrier's report, whose numbers are places in the group that was called.

        They are global where nothing speaks against it: the barrier is of all ranks unless it is
        given another group.
        """
        absent = self.listed(failed)
        named = {*absent, *map(int, filter(None, (speaker, reached, *others)))}
        in_group = self.barriers_in_groups or (rank and speaker and int(rank) != int(speaker))
        (self.group_ranks if in_group else self.ranks).update(named)
        if absent and in_group:
            self.note("missing-in-group", ranks=absent)
        elif absent:
            self.missing.update(absent)
            self.note("barrier-of-all")
        if reached and not in_group:
            self.note("barrier-reached", rank=int(reached))
        self.add_stall(_number(rank), None, op="monitored_barrier")

    def add_store_barrier(self, rank: str, world: str, arrived: str) -> None:
        if int(arrived) < int(world):
            self.note("barrier-short", world=int(world), arrived=int(arrived))
            self.add_stall(_number(rank), None, op="store_based_barrier")

    # -- PyTorch's own reports ---------------------------------------------------------------------

    def add_in_current_group(self, absent: bool, numbers: str) -> None:
        """Adds numbers of a report about the group of the line before, or of its process's next
        line."""
        group_ranks = self.listed(numbers)
        if self.current:
            self._in_group(self.current[0], absent, group_ranks)
        elif self.speaker is not None:
            self.reports.setdefault(self.speaker, []).append((absent, group_ranks))
        else:
            self.add_unsettled(absent, group_ranks)

    def _in_group(self, group: ProcessGroup, absent: bool, numbers: tuple[int, ...]) -> None:
        if group.kind != WORLD:
            self.group_ranks.update(numbers)
            if absent:
                self.note("missing-in-group", ranks=numbers, group=group.key)
        else:
            self.ranks.update(numbers)
            if absent:
                self.missing.update(numbers)

    def add_mismatch(self, sides: int, rank: str, printer: str, *rest: str) -> None:
        """Adds who called what: for each side place, number and operation; then the shapes."""
        if printer and not rank:
            self.ranks.add(int(printer))
        speaker = _number(rank or printer)
        speaker = self.block if speaker is None else speaker
        called: Sequence[Sequence[str]] = [rest[3 * at : 3 * at + 3] for at in range(sides)]
        callers = tuple(int(place) for place, _, _ in called)
        (self.ranks if speaker == callers[0] else self.group_ranks).update(callers)
        for _, seq, op in called:
            self.add_stall(None, None, seq=_number(seq), op=op or None)
        ops = tuple(op or None for _, _, op in called)
        shapes = tuple(filter(None, rest[3 * sides :]))
        self.note("fingerprints-differ", ranks=callers, ops=ops, shapes=shapes)

    def set_recorder_group(self, key: str) -> None:
        if self.recorded is None or self.recorded.key != key:
            name, _, description = key.partition(":")
            self.recorded = ProcessGroup(key, name, description or None, kind_of(description, name))
            self.groups.setdefault(key, self.recorded)

    def set_recorder_number(self, number: str) -> None:
        self.recorder_seq = int(number)

    def add_recorder_op(self, op: str) -> None:
        group, seq = self.recorded, self.recorder_seq
        if group or seq is not None:
            key, guid = (group.key, group.name) if group else (None, None)
            self.stalls[(None, None, key, guid, seq, op)] = None

    # -- reports of NCCL's RAS ---------------------------------------------------------------------

    def begin_report(self, communicator: str, state: str) -> None:
        self.end_report()
        self.communicator = communicator
        if state == "MISMATCH":
            self.mismatch = communicator

    def set_job_size(self, gpus: str) -> None:
        """Sets the GPUs of the job that a report's summary counts."""
        self.job_size = int(gpus)

    def add_launched(self, ranks: str, number: str) -> None:
        """Adds how many ranks have launched up to an operation; none of it: before the first."""
        self.launched[int(number or -1)] = int(ranks)

    def add_member(self, rank: str) -> None:
        """Adds a listed rank of a communicator: one of the smaller set, which may be ahead."""
        self.minority.add(int(rank))

    def end_report(self) -> None:
        """Settles the counts of the report's communicator: the ranks with a lower one have not
        launched the operation. In a communicator of the whole job they are the job's ranks.

        Source: NCCL user guide, RAS ("Communicator ranks have different ... operation counts").
        """
        total, listed = sum(self.launched.values()), {*self.minority}
        low = min(self.launched, default=0)
        late = total - self.launched.get(max(self.launched, default=0), 0)
        is_clear = len(self.launched) == 2 and len(set(self.launched.values())) == 2
        is_clear = is_clear and len(listed) in self.launched.values()
        is_listed = bool(listed) and len(listed) == late
        if (is_clear or (is_listed and late < total - late)) and total == self.job_size:
            behind = listed if is_listed else {*range(total)} - listed
            self.ranks.update(range(total))
            self.missing.update(behind)
            self.note(
                "report-behind",
                communicator=self.mismatch or "?",
                ranks=tuple(sorted(behind)),
                number=low,
            )
        else:
            self.group_ranks.update(listed)
            if self.mismatch:
                self.note("counts-differ", communicator=self.mismatch)
        self.launched, self.minority, self.mismatch = {}, set(), None

    def add_unreachable(self, numbers: str) -> None:
        for number in self.listed(numbers):
            self.add_unreached(number)


def _group(body: str) -> ProcessGroup:
    """The group of a ``[PG ... Rank r]``; its name counts if it is the same on all ranks."""
    match, has_guid = _GROUP_BODY.fullmatch(body.strip()), "GUID" in body
    if match and (match[2] or match[3]):
        name, description = match[2], match[3]
    else:
        words = [word for word in re.split(r"[\s().]+", body) if "_" in word]
        name, description, has_guid = None, words[-1] if words else None, False
    kind = kind_of(description, name)
    description = None if description == "undefined" else description
    key = description or (f"PG GUID {name}" if has_guid else f"PG {name}" if name else "PG")
    return ProcessGroup(key, name if has_guid or kind == WORLD else None, description, kind)
