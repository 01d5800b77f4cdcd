"""What a hang leaves behind: watchdogs' lines, Flight Recorder dumps, NCCL's reports.

>>> log = read_log("[rank9]:[E ProcessGroupNCCL.cpp:1785] [PG ID 5 PG GUID 37"
...                "(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] Timeout at NCCL work: 7")
>>> log.ranks, log.group_ranks, log.groups  # rank 9 of the job is rank 1 of its tp group
((9,), (1,), {'TENSOR_MODEL_PARALLEL_GROUP': 'tp'})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .diagnosis import diagnosis_of
from .evidence import Evidence, read_files
from .job import Job, job_of
from .model import Diagnosis, Log
from .names import WORLD
from .reading import Named, Reading
from .recorder import Dump

__all__ = ["Diagnosis", "Log", "read_log"]


def read_log(evidence: Evidence) -> Log:
    """What a log, a dump or several files together say, and who is missing.

    Args:
        evidence: a text, bytes, or ``{file name: text or bytes}``; a dump's rank is the number at
            the end of its file's name.

    Errors: LayoutError for no or too much evidence, and for a lone dump that cannot be read.
    """
    reading, dumps = read_files(evidence)
    return _log(reading, dumps)


def _log(
    reading: Reading, dumps: Sequence[Dump], members: Mapping[str, Iterable[int]] | None = None
) -> Log:
    job = job_of(dumps, members)
    _add_dumps(reading, dumps, job)
    diagnosis = diagnosis_of(job)
    ambiguous = _settle_bare(reading)
    return Log(
        ranks=tuple(sorted(reading.ranks)),
        group_ranks=tuple(sorted(reading.group_ranks)),
        ambiguous_ranks=tuple(sorted(ambiguous)),
        local_ranks=tuple(sorted(reading.local_ranks)),
        groups={key: named.kind for key, named in reading.groups.items()},
        missing=tuple(sorted({*reading.missing, *diagnosis.culprits})),
        stalls=tuple(reading.stalls),
        failures=tuple(reading.failures),
        counts=tuple(reading.counts),
        process_groups=tuple(group.group for group in job.groups.values()),
        dumped=job.dumped,
        hosts=dict(reading.hosts),
        diagnosis=diagnosis,
        notes=tuple(reading.notes),
    )


def _add_dumps(reading: Reading, dumps: Sequence[Dump], job: Job) -> None:
    """Ranks and groups that the dumps name: those of groups that were used."""
    reading.ranks.update(job.dumped)
    for group in job.groups.values():
        one = group.group
        reading.ranks.update(one.members)
        reading.groups.setdefault(one.key, Named(one.key, one.name, one.description, one.kind))
        if group.p2p and one.kind != WORLD:
            reading.group_ranks.update(
                place
                for calls in group.p2p.values()
                for call in calls
                for place in call.peers or ()
            )
    for dump in dumps:
        if dump.rank is None:
            reading.note("dump-without-rank", file=dump.file)
        if dump.dropped:
            reading.note("entries-unreadable", file=dump.file, count=dump.dropped)


def _settle_bare(reading: Reading) -> set[int]:
    """Count ``[Rank r]`` of PyTorch before 2.2 as global, unless the lines contradict that."""
    works = reading.bare_works
    if any(len(of_one) > 1 for of_one in works.values()) or (works and reading.ranks_by_head):
        reading.note("ranks-ambiguous", ranks=tuple(sorted(works)))
        return set(works) - reading.ranks
    reading.ranks.update(works)
    reading.absent(reading.maybe_missing, None)
    return set()
