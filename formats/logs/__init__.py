"""Evidence of a hang: watchdogs' lines, Flight Recorder dumps, NCCL's reports.

>>> log = read_log("[rank9]:[E ProcessGroupNCCL.cpp:1785] [PG ID 5 PG GUID 37"
...                "(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] Timeout at NCCL work: 7")
>>> log.ranks, log.group_ranks, log.groups  # rank 9 of the job is rank 1 of its tp group
((9,), (1,), {'TENSOR_MODEL_PARALLEL_GROUP': 'tp'})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnosis.hang.calls import Dump
from diagnosis.hang.counters import diagnosis_of_stalls, joined
from diagnosis.hang.job import LoggedJob, job_of
from diagnosis.hang.matching import agrees, members_by_layout
from diagnosis.hang.model import Log, ProcessGroup, Stall
from diagnosis.hang.origin import diagnosis_of
from diagnosis.hang.silence import heard
from diagnosis.hang.standing import outside
from groups.budget import within
from groups.group_names import WORLD
from groups.grouping import (
    LONGEST_TEXT,
    MOST_RANKS,
    Grouping,
    bad_ranks,
    parse_ranks,
    require_ranks,
)

from ..errors import refusal
from .bounds import PAGE, Bounds
from .evidence import Evidence, read_files
from .reading import LogReading


def read_log(
    evidence: Evidence,
    groupings: Mapping[str, Grouping] | None = None,
    bounds: Bounds = PAGE,
) -> Log:
    """Reads a log, a dump or several files together: who is missing, and who waits.

    evidence: a text, bytes, or ``{file name: text or bytes}``; a dump's rank is the number at the
    end of its file's name. groupings: a layout's, as of `groups.megatron.groupings`: it says who is
    in a group of whom the dumps name only those who called, or lines only those who wait. bounds:
    how much is read; the command line reads more than the page.

    Errors: LayoutError for no or too much evidence (`formats.logs.bounds`), for dumps in which too
    many operations hang together, and for a lone dump that cannot be read.
    """
    reading, dumps = read_files(evidence, bounds)
    with within(bounds.work):
        job, assumed = _joined_dumps(dumps, groupings)
        waiting = diagnosis_of(job)
    _add_dumps(reading, dumps, job)
    kinds = {key: named.kind for key, named in reading.groups.items()}
    ambiguous = _settle_bare(reading)
    stalls = joined((Stall(*stall) for stall in reading.stalls), kinds)
    _say_members(reading, [wait.group for wait in waiting.waits], assumed)
    by_lines = not waiting.waits
    diagnosis = diagnosis_of_stalls(stalls, kinds, reading.relayed) if by_lines else waiting
    stacks = tuple(one for _, one in sorted(reading.stacks.items()))
    absent = () if diagnosis.culprits or reading.missing else outside(stacks)
    log = Log(
        ranks=tuple(sorted(reading.ranks)),
        group_ranks=tuple(sorted(reading.group_ranks)),
        ambiguous_ranks=tuple(sorted(ambiguous)),
        groups=kinds,
        missing=tuple(sorted({*reading.missing, *diagnosis.culprits, *absent})),
        stalls=tuple(stalls),
        process_groups=tuple(group.group for group in job.groups.values()),
        dumped=job.dumped,
        hosts=dict(reading.hosts),
        devices=dict(reading.devices),
        diagnosis=diagnosis,
        notes=tuple(reading.notes.values()),
        files=len(evidence) if isinstance(evidence, Mapping) else 0,
        spoke=tuple(sorted(reading.spoke)),
        relayed=tuple(sorted(reading.relayed)),
        stacks=stacks,
    )
    return heard(log, groupings if groupings and agrees(log, groupings) else {})


def _joined_dumps(
    dumps: Sequence[Dump], groupings: Mapping[str, Grouping] | None
) -> tuple[LoggedJob, dict[str, str]]:
    """The dumps as one job, and the groups whose members come from the layout."""
    job = job_of(dumps)
    if not groupings:
        return job, {}
    members, assumed = members_by_layout(job, groupings)
    return (job_of(dumps, members) if members else job), assumed


def _add_dumps(reading: LogReading, dumps: Sequence[Dump], job: LoggedJob) -> None:
    """Adds ranks and groups of the dumps: only groups that were used."""
    reading.ranks.update(job.dumped)
    for group in job.groups.values():
        named = group.group
        reading.ranks.update(named.members)
        reading.groups.setdefault(named.key, named)
        if named.kind != WORLD:
            calls = (call for of_rank in group.p2p.values() for call in of_rank)
            reading.group_ranks.update(place for call in calls for place in call.peers or ())
    for dump in dumps:
        if dump.rank is None:
            reading.note("dump-without-rank", file=dump.file)
        if dump.dropped:
            reading.note("entries-unreadable", file=dump.file, count=dump.dropped)


def _say_members(
    reading: LogReading, stuck: Sequence[ProcessGroup], assumed: Mapping[str, str]
) -> None:
    """Notes the groups whose members come from the layout, and those whose members are unknown."""
    taken = {assumed[group.name] for group in stuck if group.name and group.name in assumed}
    left = {group.key for group in stuck if not group.complete and group.kind != WORLD}
    if taken:
        reading.note("members-assumed", kinds=", ".join(sorted(taken)))
    if left:
        reading.note("members-open", groups=", ".join(sorted(left)[:8]), count=len(left))


def _settle_bare(reading: LogReading) -> set[int]:
    """Counts ``[Rank r]`` of PyTorch before 2.2 as global, unless the lines contradict that."""
    for reports in reading.reports.values():
        for absent, numbers in reports:
            reading.add_unsettled(absent, numbers)
    works = reading.bare_works
    if any(len(of_one) > 1 for of_one in works.values()) or (works and reading.ranks_by_head):
        reading.note("ranks-ambiguous", ranks=tuple(sorted(works)))
        return set(works) - reading.ranks
    reading.ranks.update(works)
    if any(works.values()):  # whose stalls were read without a rank
        for stall in [one for one in reading.stalls if one[0] is None and one[2] is None]:
            del reading.stalls[stall]
    for number, of_one in works.items():
        for seq, op, elements in of_one:
            reading.add_stall(
                number, None, False, int(seq), op, int(elements) if elements else None
            )
    reading.missing.update(reading.maybe_missing)
    return set()


# -- the ranks that a pasted text names -----------------------------------------------------------


def named_ranks(text: str, world_size: int) -> tuple[tuple[int, ...], Log | None]:
    """The ranks of a text, ascending, each once; and the log, if the text is one.

    >>> named_ranks("3, 11, 5-7 3", world_size=16)
    ((3, 5, 6, 7, 11), None)
    >>> named_ranks("[rank9]: [PG ID 5 PG GUID 37(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] x", 16)[0]
    (9,)

    Errors: LayoutError that names the part that is no rank, or the ranks that the world lacks;
    ``ranks-in-groups`` where the text has only places in groups.
    """
    log = log_in(text)
    ranks = parse_ranks(text, world_size) if log is None else ranks_of(log, world_size)
    return ranks, log


def log_in(
    text: str, groupings: Mapping[str, Grouping] | None = None, longest: int = LONGEST_TEXT
) -> Log | None:
    """The log in a text; None if there is none.

    Errors: LayoutError for a value that is no text, or that is longer.
    """
    if not isinstance(text, str) or len(text) > longest:
        raise bad_ranks(text)
    log = read_log(text, groupings)
    return log if log.ranks or log.group_ranks or log.ambiguous_ranks else None


def ranks_of(log: Log, world_size: int) -> tuple[int, ...]:
    """The ranks of the job that a log names. Errors: as `named_ranks`."""
    if log.ranks:
        require_ranks(log.ranks[-1], world_size)
        if len(log.ranks) > MOST_RANKS:
            raise refusal("too-many-ranks-named", "ranks", limit=MOST_RANKS)
        return log.ranks
    numbers = sorted({*log.group_ranks, *log.ambiguous_ranks})
    if numbers:
        listed = ", ".join(map(str, numbers[:16]))
        raise refusal("ranks-in-groups", "ranks", ranks=listed)
    raise bad_ranks("the files")
