"""The command slow: which ranks measured numbers show to be slow, or who makes the others wait, by
profiler traces or a summary of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from formats.documents.tables import Table
from formats.slow import JobCalls, Slowness, account_of, read_summary, slowness_of, verdict_of
from formats.slow.files import LARGEST, is_summary
from formats.traces.stream import GZIP
from groups.errors import LayoutError
from groups.layout import Layout

from .counts import COUNTS
from .hosts import slow_ranks
from .inputs import CommandLine
from .messages import FIELDS, CommandError
from .traces import traces_in


def slow(inputs: CommandLine) -> Table:
    """By what the file is: a folder or trace, a summary, or numbers by rank."""
    path = Path(inputs.words[0])
    try:
        kind = "numbers" if str(path) == "-" else _kind(path)
        if kind == "numbers":
            return slow_ranks(inputs)
        return _waiting(inputs, _read(path, kind, inputs.remarks))
    except OSError as error:
        raise CommandError(f"cannot read {inputs.words[0]!r}: {error.strerror}") from None


def _kind(path: Path) -> str:
    if path.is_dir():
        return "traces"
    with path.open("rb") as file:
        start = file.read(65_536)
    if start.startswith(GZIP) or b'"traceEvents"' in start or b'"schemaVersion"' in start:
        return "traces"
    return "summary" if is_summary(start) else "numbers"


def _read(path: Path, kind: str, remarks: list[str]) -> Slowness:
    if kind == "summary":
        with path.open("rb") as file:
            return read_summary(file.read(LARGEST + 1), path.name)
    job = JobCalls()
    for _ in job.taken(traces_in(path, remarks)):
        pass
    return slowness_of(job)


def _waiting(inputs: CommandLine, found: Slowness) -> Table:
    """The three sentences, and a row for each rank."""
    from texts.slow import slow_note, slow_sentence

    layout = _layout(inputs, found)
    verdict = verdict_of(found, layout)
    notes = account_of(found, layout)
    sentences = [slow_sentence(note.code, note.facts, "en") for note in notes]
    columns = ["rank", "step_ms", "own_ms", "lost_ms", "cost_ms", "before"]
    return Table(
        "slow-steps",
        columns,
        [*_rows(found)],
        layout=layout,
        fields={
            "verdict": vars(verdict),
            "account": sentences,
            "facts": [{"code": note.code, **note.facts} for note in notes],
            "chain": [{**vars(hop), "group": found.groups[hop.group].title} for hop in found.chain],
        },
        before=[*sentences, "", "mean of a step: its own time, waited for others, others for it"],
        after=[slow_note(note, "en") for note in found.notes],
    )


def _rows(found: Slowness) -> Iterator[list[object]]:
    steps = max(1, len(found.steps))
    for one in found.ranks:
        times = (one.step_us, sum(one.own_us) / steps, one.lost_us, one.cost_us)
        before = [f"{part.what} {part.kind}".strip() for part in one.before[:1]]
        yield [one.rank, *(round(time / 1000, 3) for time in times), *(before or [""])]


def _layout(inputs: CommandLine, found: Slowness) -> Layout | None:
    """The layout that is asked for, else that which the traces say."""
    asked = {*FIELDS, *COUNTS, "preset", "args", "gpus"} & {*inputs.options.unread}
    if asked - {"gpus_per_node"}:
        return inputs.layout()
    each = int(inputs.options.gpus_per_node or 8)
    if found.running is None:
        return None
    try:
        return found.running.layout(each)
    except LayoutError:
        return None
