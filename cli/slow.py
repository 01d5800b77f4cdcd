"""The command slow: the ranks that are slow by measurements, by profiler traces or by a summary of
them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diagnosis.slow import Slowness, account_of, verdict_of
from formats.documents.tables import Table
from formats.errors import refusal
from formats.slow.files import is_summary
from formats.slow.reading import START, SlowReading
from formats.slow.timers import is_timers
from formats.traces.files import MOST_FILES
from formats.traces.inspector import is_inspector
from formats.traces.nsys import is_nsys
from formats.traces.stream import GZIP
from groups.errors import LayoutError, quoted
from groups.layout import Layout

from .counts import COUNTS
from .hosts import slow_ranks
from .inputs import CommandLine
from .messages import FIELDS, CommandError, sentence

LONGEST_LOG = 1 << 26
"""The longest log in which Megatron's timers are looked for, in bytes."""


def slow(inputs: CommandLine) -> Table:
    """The slow ranks; the file is a trace or a folder of them, a summary, or numbers by rank."""
    path = Path(inputs.words[0])
    try:
        if str(path) == "-" or _is_numbers(path):
            return slow_ranks(inputs)
        layout = _layout_of_options(inputs)
        return _waiting(layout, inputs, _read(path, layout, inputs.remarks))
    except OSError as error:
        raise CommandError(f"cannot read {inputs.words[0]!r}: {error.strerror}") from None


def _is_numbers(path: Path) -> bool:
    if path.is_dir():
        return False
    with path.open("rb") as file:
        start = file.read(START)
        if is_timers(start + file.read(LONGEST_LOG)):  # behind the options that a log begins with
            return False
    known = (is_summary, is_inspector, is_nsys)
    is_trace = start.startswith(GZIP) or b'"traceEvents"' in start or b'"schemaVersion"' in start
    return not is_trace and not any(knows(start) for knows in known)


def _read(path: Path, layout: Layout | None, remarks: list[str]) -> Slowness:
    """The content of a file, or of all readable files of a folder; the others become remarks."""
    reading = SlowReading()
    files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    if not files or len(files) > MOST_FILES:
        code = "too-many-traces" if files else "no-traces"
        facts = {"folder": quoted(str(path)), "count": len(files), "limit": MOST_FILES}
        raise refusal(code, "trace", **facts)
    for one in files:
        with one.open("rb") as file:
            reading.add(one.name, file)
    found = reading.slowness(layout)
    remarks += map(sentence, reading.refused)
    return found


def _waiting(layout: Layout | None, inputs: CommandLine, found: Slowness) -> Table:
    """The three sentences, and a row for each rank."""
    from texts.slow import slow_note, slow_sentence

    layout = layout or _running(inputs, found)
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
            "chain": [
                {**vars(hop), "group": found.groups[hop.group].title}
                for hop in found.chain_to(verdict.ranks, verdict.cause)
            ],
        },
        before=[
            *sentences,
            *_differs(found, layout),
            "",
            "mean of a step: its own time, waited for others, others for it",
        ],
        after=[slow_note(note, "en") for note in found.notes],
    )


def _rows(found: Slowness) -> Iterator[list[object]]:
    steps = max(1, len(found.steps))
    for one in found.ranks:
        times = (one.step_us, sum(one.own_us) / steps, one.lost_us, one.cost_us)
        before = [f"{part.what} {part.kind}".strip() for part in one.before[:1]]
        yield [one.rank, *(round(time / 1000, 3) for time in times), *(before or [""])]


def _differs(found: Slowness, layout: Layout | None) -> Iterator[str]:
    """A line if the traces ran in another layout than this one."""
    if found.running is None or layout is None:
        return
    ranks = {one.rank for one in found.running.differences(layout)}
    if ranks:
        whole = f"{len(ranks):,} of {found.running.world:,} ranks"
        yield f"{whole} ran in other groups than those of this layout: running FILE says which"


def _layout_of_options(inputs: CommandLine) -> Layout | None:
    """The layout of the options; None if no option sets one."""
    named = {*FIELDS, *COUNTS, "preset", "args", "gpus"} & {*inputs.options.unread}
    return inputs.layout() if named - {"gpus_per_node"} else None


def _running(inputs: CommandLine, found: Slowness) -> Layout | None:
    """The layout that the traces show; None if they do not."""
    each = inputs.gpus_per_node
    if found.running is None:
        return None
    try:
        return found.running.layout(each)
    except LayoutError:
        return None
