"""The command trace: the groups that ran, and how long their collectives were hidden and
exposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from diagnosis.slow import JobCalls, slowness_of
from diagnosis.slow.summary import NOTES, VERSION, GroupTime, JobSummary, job_of
from diagnosis.slow.trace import RankTrace, TraceGroup
from formats.documents.tables import Table
from formats.slow import as_json
from formats.traces import read_file, read_folder
from groups.errors import LayoutError
from groups.layout import framework_name

from .inputs import CommandLine
from .messages import CommandError, sentence

COLUMNS = ("name", "kind", "size", "ranks", "files", "collectives")
TIMES = ("busy_ms", "overlapped_ms", "exposed_ms")


def trace(inputs: CommandLine) -> Table:
    """A row for each group: its collectives on the ranks with traces."""
    gpus_per_node = inputs.gpus_per_node
    calls = JobCalls()
    try:
        job = job_of(calls.taken(traces_in(Path(inputs.words[0]), inputs.remarks)), gpus_per_node)
    except OSError as error:
        raise CommandError(f"cannot read {inputs.words[0]!r}: {error.strerror}") from None
    named = {note for rank in job.ranks for note in rank.notes}
    return Table(
        "trace",
        [*COLUMNS, *TIMES],
        [_row(group, times) for group, times in _by_group(job)],
        layout=job.layout,
        fields={"summary": _summary(job, calls)},
        before=[*_summary_lines(job), "times are the mean of the ranks whose traces are here"],
        after=[NOTES[note] for note in NOTES if note in named],
    )


def _summary(job: JobSummary, calls: JobCalls) -> dict[str, object]:
    return {"version": VERSION, "slow": as_json(slowness_of(calls)), **job.as_json()}


def traces_in(path: Path, remarks: list[str]) -> Iterator[RankTrace]:
    """The traces of a file or folder; other files become remarks."""
    if not path.is_dir():
        yield read_file(path)
        return
    refused: list[LayoutError] = []
    is_any = False
    for found in read_folder(path):
        if isinstance(found, LayoutError):
            refused.append(found)
        else:
            is_any = True
            yield found
    if not is_any:
        raise refused[0]
    remarks += map(sentence, refused)


def _by_group(job: JobSummary) -> list[tuple[TraceGroup | None, list[GroupTime]]]:
    """The times of each group on its ranks; unknown groups last."""
    times: dict[int | None, list[GroupTime]] = {place: [] for place in range(len(job.groups))}
    for rank, plain in zip(job.ranks, job.as_json()["ranks"]):
        for time, one in zip(rank.groups, plain["groups"]):
            times.setdefault(one["group"], []).append(time)
    return [(None if at is None else job.groups[at], some) for at, some in times.items()]


def _row(group: TraceGroup | None, times: Sequence[GroupTime]) -> list[object]:
    busy = [time.busy_us for time in times]
    hidden = [time.overlapped_us for time in times if time.overlapped_us is not None]
    exposed = [time.exposed_us for time in times if time.exposed_us is not None]
    averages = [_average(some, len(times)) for some in (busy, hidden, exposed)]
    ranks = None if group is None or group.ranks is None else [*group.ranks]
    name = "unknown" if group is None else group.title
    about = [name, (group and group.kind) or "", ranks and len(ranks), ranks]
    return [*about, len(times), sum(time.count for time in times), *averages]


def _average(values: Sequence[float], of: int) -> float | None:
    """The mean in milliseconds; None if a rank's value is unknown."""
    return round(sum(values) / of / 1000, 3) if values and len(values) == of else None


def _summary_lines(job: JobSummary) -> Iterator[str]:
    """What ran, in one or two lines."""
    known = {rank.rank for rank in job.ranks if rank.rank is not None}
    of = f" of {job.world}" if job.world is not None else ""
    count = len(job.ranks)
    yield f"{count} trace{'s' * (count != 1)}, of {len(known)}{of} ranks"
    if job.layout is not None:
        expert = f", experts {job.layout.expert}" if job.layout.has_experts else ""
        yield f"ran: {job.layout.mesh}{expert} ({framework_name(job.layout.framework)})"
    elif job.why:
        yield f"the layout is not told: {job.why}"
