"""What lines say, each kind of statement as a step of a reading.

Every step gets texts of digits and names as they stand in the line, empty where a line has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .model import Failure, ProcessGroup
from .names import WORLD, kind_of
from .reading import MOST_STALLS, LogReading, Printed

MOST_NAMES = 20_000
"""Printed groups that are kept at a time."""

_UNSET = 2**63  # NumelIn=18446744073709551615 stands for "unset"
_GROUP_BODY = re.compile(
    r"(?:ID (\d{1,7}) ?)?(?:PG GUID )?([^\s()]{1,200})? ?(?:\(([^()]{1,200})\))?"
)


def _number(text: str | None) -> int | None:
    return int(text) if text else None


# -- ranks and places ----------------------------------------------------------------------------


def head(reading: LogReading, rank: str) -> None:
    """``[rank9]:`` of PyTorch 2.2 or newer: the global rank."""
    reading.ranks.add(int(rank))
    reading.ranks_by_head = True
    reading.block = reading.current = None
    reading.speaker = int(rank)


def ranks(reading: LogReading, *numbers: str) -> None:
    reading.ranks.update(map(int, numbers))


def places(reading: LogReading, *numbers: str) -> None:
    """Places in a group or a communicator."""
    reading.group_ranks.update(map(int, numbers))


def local_ranks(reading: LogReading, *numbers: str) -> None:
    reading.local_ranks.update(map(int, numbers))


def places_beside(reading: LogReading, rank: str, *numbers: str) -> None:
    """Places in a group, or the rank itself, that a process names."""
    reading.group_ranks.update({*map(int, numbers)} - {_number(rank)})


def listed(reading: LogReading, is_missing: bool, numbers: str) -> None:
    """A list of global ranks."""
    named = reading.listed(numbers)
    reading.ranks.update(named)
    if is_missing:
        reading.absent(named, reading.collective)


# -- watchdogs -----------------------------------------------------------------------------------


def printed(reading: LogReading, rank: str, body: str, number: str) -> None:
    """A ``[PG ... Rank r]``: in the group of all ranks the number is global."""
    group = reading.printed_as.get(body)
    if group is None:
        if len(reading.printed_as) > MOST_NAMES:
            reading.printed_as.clear()
        group = reading.printed_as[body] = reading.named(*_group(body))
    place = int(number)
    reading.current = Printed(group, place)
    if rank and (reports := reading.reports.pop(int(rank), None)):
        for absent, numbers in reports:
            _in_group(reading, group, absent, numbers)
    if group.kind != WORLD:
        reading.group_ranks.add(place)
    elif not rank:
        reading.ranks.add(place)


def _group(body: str) -> tuple[str | None, str | None, bool]:
    """Of a ``[PG ... Rank r]``: name, description, whether the name is the same on all ranks."""
    match = _GROUP_BODY.fullmatch(body.strip())
    if match and (match[2] or match[3]):
        return match[2], match[3], "GUID" in body
    words = [word for word in re.split(r"[\s().]+", body) if "_" in word]
    return None, (words[-1] if words else None), False


def place_in_printed(reading: LogReading, number: str) -> None:
    """``[Rank r]`` on a line that names a group but no rank of the job."""
    if reading.current and reading.current.group.kind != WORLD:
        reading.group_ranks.add(int(number))


def bare(reading: LogReading, number: str, *work: str) -> None:
    """A ``[Rank r]`` that nothing else explains, with the work that its line names."""
    works = reading.bare_works.setdefault(int(number), set())
    if any(work) and len(works) < 3:
        works.add(work)


def work(
    reading: LogReading, in_group: bool, relayed: bool, rank: str, seq: str, op: str, *rest: str
) -> None:
    """Work that did not finish; rest: elements in and out, timeout, and the group's counters."""
    numel_in, numel_out, timeout, stuck_at, enqueued, completed = map(_number, rest)
    reading.stall(
        _number(rank),
        reading.current if in_group else None,
        relayed,
        int(seq) if seq else stuck_at,
        op or None,
        None if numel_in is None or numel_in > _UNSET else numel_in,
        None if numel_out is None or numel_out > _UNSET else numel_out,
        timeout,
        enqueued,
        completed,
    )


# -- launchers -----------------------------------------------------------------------------------


def worker(reading: LogReading, rank: str, local_rank: str, exitcode: str) -> None:
    reading.block = global_rank = _number(rank)
    if global_rank is not None:
        reading.ranks.add(global_rank)
        if reading.host:
            reading.hosts[global_rank] = reading.host
    local = int(local_rank)
    reading.local_ranks.add(local)
    if len(reading.failures) < MOST_STALLS:
        reading.failures.append(Failure(global_rank, local, _number(exitcode), reading.host))


def exit_code(reading: LogReading, exitcode: str) -> None:
    """The line after a launcher's rank."""
    failures = reading.failures
    if failures and reading.block is not None and failures[-1].exitcode is None:
        failures[-1] = replace(failures[-1], exitcode=int(exitcode))


def begin_host(reading: LogReading, host: str) -> None:
    reading.host = host
    reading.block = None


def hides_lines(reading: LogReading) -> None:
    reading.note("lines-hidden")


# -- barriers ------------------------------------------------------------------------------------


def wrapped_barrier(reading: LogReading) -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL: before each operation its group has a barrier."""
    reading.barriers_in_groups = True


def barrier(
    reading: LogReading, rank: str, speaker: str, failed: str, reached: str, *others: str
) -> None:
    """A monitored barrier's report: its numbers are places in the group that was called.

    They are global where nothing speaks against it: the barrier is of all ranks unless it is given
    another group.
    """
    absent = reading.listed(failed)
    named = {*absent, *map(int, filter(None, (speaker, reached, *others)))}
    in_group = reading.barriers_in_groups or (rank and speaker and int(rank) != int(speaker))
    (reading.group_ranks if in_group else reading.ranks).update(named)
    if absent and in_group:
        reading.note("missing-in-group", ranks=absent)
    elif absent:
        reading.absent(absent, "monitored_barrier")
        reading.note("barrier-of-all")
    if reached and not in_group:
        reading.note("barrier-reached", rank=int(reached))
    reading.stall(_number(rank), None, op="monitored_barrier")


def store_barrier(reading: LogReading, rank: str, world: str, arrived: str) -> None:
    if int(arrived) < int(world):
        reading.note("barrier-short", world=int(world), arrived=int(arrived))
        reading.stall(_number(rank), None, op="store_based_barrier")


# -- PyTorch's own reports -----------------------------------------------------------------------


def in_current_group(reading: LogReading, absent: bool, numbers: str) -> None:
    """Numbers of a report: of the group of the line before, or of its process's next line."""
    group_ranks = reading.listed(numbers)
    if reading.current:
        _in_group(reading, reading.current.group, absent, group_ranks)
    elif reading.speaker is not None:
        reading.reports.setdefault(reading.speaker, []).append((absent, group_ranks))
    else:
        reading.unsettled(absent, group_ranks)


def _in_group(
    reading: LogReading, group: ProcessGroup, absent: bool, numbers: tuple[int, ...]
) -> None:
    if group.kind != WORLD:
        reading.group_ranks.update(numbers)
        if absent:
            reading.note("missing-in-group", ranks=numbers, group=group.key)
    else:
        reading.ranks.update(numbers)
        if absent:
            reading.absent(numbers, None)


def mismatch(reading: LogReading, sides: int, rank: str, printer: str, *rest: str) -> None:
    """Who called what: for each side place, number and operation; then the shapes."""
    if printer and not rank:
        reading.ranks.add(int(printer))
    speaker = _number(rank or printer)
    speaker = reading.block if speaker is None else speaker
    called: Sequence[Sequence[str]] = [rest[3 * at : 3 * at + 3] for at in range(sides)]
    callers = tuple(int(place) for place, _, _ in called)
    (reading.ranks if speaker == callers[0] else reading.group_ranks).update(callers)
    for _, seq, op in called:
        reading.stall(None, None, seq=_number(seq), op=op or None)
    reading.note(
        "fingerprints-differ",
        ranks=callers,
        ops=tuple(op or None for _, _, op in called),
        shapes=tuple(shape for shape in rest[3 * sides :] if shape),
    )


def recorder_group(reading: LogReading, key: str) -> None:
    if reading.recorded is None or reading.recorded.key != key:
        name, _, description = key.partition(":")
        kind = kind_of(description or None)
        reading.recorded = ProcessGroup(key, name, description or None, kind)
        reading.groups.setdefault(key, reading.recorded)


def recorder_number(reading: LogReading, number: str) -> None:
    reading.recorder_seq = int(number)


def recorder_op(reading: LogReading, op: str) -> None:
    group, seq = reading.recorded, reading.recorder_seq
    if group or seq is not None:
        key, guid = (group.key, group.name) if group else (None, None)
        reading.stalls[(None, None, key, guid, seq, op)] = None
        reading.collective = op


# -- reports of NCCL's RAS -----------------------------------------------------------------------


def begin_report(reading: LogReading, communicator: str, state: str) -> None:
    reading.communicator, reading.launched = communicator, None
    if state == "MISMATCH":
        reading.note("counts-differ", communicator=communicator)


def begin_launched(reading: LogReading, count: str = "0") -> None:
    """How many operations the ranks below have launched."""
    reading.launched = int(count)


def member(reading: LogReading, place: str, count: str, idle: str, host: str) -> None:
    launched = int(count) if count else 0 if idle else reading.launched
    reading.count(int(place), launched, host)


def unreachable(reading: LogReading, numbers: str) -> None:
    for number in reading.listed(numbers):
        reading.count(number, None, None, missing=True)
