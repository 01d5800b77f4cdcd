"""The job of launch flags, for the command line, and remarks about what they leave open.

A size that the flags do not settle is refused with its place, unless an option gives it; all else
that a reader should know is a remark.
"""

from __future__ import annotations

from collections.abc import Collection

from formats.launch.flags import AXES
from formats.launch.items import Item, Parsed
from formats.launch.meaning.unsaid import UNSAID
from formats.launch.rewrite import nodes_that_hold
from formats.launch.training import options_of, training_of
from formats.values import Document
from groups.errors import LayoutError
from texts.sentences import note_text
from training.models import MODELS

from .messages import FIELDS, CommandError, option

ELSEWHERE = ("configured", "inherits", "sourced", "handed")
"""Notes that another file may set what a text leaves open."""

SAYS_SOME = (*ELSEWHERE, "unknown-size", "may-hold-options")
"""Notes that a text is about a layout, though it settles nothing."""

SETTLED = ("given-twice", "contradiction", "two-frameworks")
"""Faults of launch flags where it is clear which of two words applies."""


def job_from_flags(
    parsed: Parsed, file: str, settled: Collection[str]
) -> tuple[dict[str, object], dict[str, object], list[str]]:
    """The job and model that launch flags set, and remarks about what they leave open.

    file: the text's name in messages. settled: fields of the job that command-line options set.

    >>> from formats.launch import parse
    >>> text = "torchrun --nnodes 2 --nproc-per-node 8 train.py --tensor-model-parallel-size 4"
    >>> job, _, remarks = job_from_flags(parse(text), "run.sh", ["framework"])
    >>> job["nodes"], job["tp"], remarks
    (2, 4, [])

    Errors: CommandError for a size that is invalid, or missing and not in ``settled``.
    """
    if not parsed.values and not any(item.code in SAYS_SOME for item in parsed.unresolved):
        raise CommandError(f"nothing in {file} says how a job is laid out")
    fixed = {*settled, *(set(parsed.values) - {"framework"})}  # its order of ranks is open even so
    remarks = []
    lacking = [name for name in parsed.asks if name not in settled]
    if lacking:
        raise CommandError(_lacking(parsed, lacking, file))
    for item in (*parsed.problems, *parsed.unresolved):
        is_open = item.sets in FIELDS and item.sets not in fixed
        is_broken = not item.sets and item in parsed.problems
        if (is_open or is_broken) and item.code not in SETTLED:
            fix = f" Give {option(item.sets)}." if is_open else ""
            raise CommandError(_placed(file, item) + fix)
        if item.sets not in settled:
            remarks.append(_placed(file, item))
    remarks += [_placed(file, item) for item in parsed.ignored if item.code == "not-drawn"]
    goes_without_saying = {*AXES, "dp", *UNSAID, *settled}  # what is left out is 1, or off
    for missing in parsed.missing:
        is_settled = missing.code == "nodes-default" and "nodes" in settled
        if missing.facts.get("field") not in goes_without_saying and not is_settled:
            remarks.append(f"{file}: {note_text(missing)}")
    known: Document = {**parsed.assumed, **parsed.values}
    job = {name: value for name, value in known.items() if name in FIELDS}
    if "nodes" in parsed.defaulted and not {*settled} - {"framework", "order"}:
        _require_nodes(parsed, file)
    fields: Document = {name: known[name] for name in known if name not in FIELDS}
    fields |= training_of(parsed)
    # A model's name alone says its shape.
    is_named = bool(fields.get("model")) and "hidden" not in fields
    shape = MODELS[fields["model"]].model if is_named else fields
    model = {**parsed.training, **options_of(shape, fields, known.get("pp", 1))}
    return job, model, remarks


def _require_nodes(parsed: Parsed, file: str) -> None:
    """Refuses a variable's default number of nodes if the job does not fit on so many."""
    job, name = parsed.job(), parsed.defaulted["nodes"]
    try:
        job.layout()
    except LayoutError as error:
        counts = " or ".join(f"{option('nodes')} {count}" for count in nodes_that_hold(job))
        if counts:
            reason = f"nothing sets ${name}, whose default makes {job.nodes}, and {error.what}"
            raise CommandError(f"{file}: how many nodes? {reason}. Give {counts}") from None


def _lacking(parsed: Parsed, lacking: Collection[str], file: str) -> str:
    """The error message for sizes that the script leaves out."""
    if parsed.runs and not parsed.run:
        return choose_run(parsed, file)
    notes = (*parsed.problems, *parsed.unresolved)
    may_say = (item for item in notes if item.sets in ("", *lacking) or item.code in ELSEWHERE)
    unsaid = f"{file} does not say {', '.join(lacking)}."
    what = next((_placed(file, item) for item in may_say), unsaid)
    return f"{what} Give {' and '.join(map(option, lacking))}."


def choose_run(parsed: Parsed, file: str) -> str:
    """The error that one of several runs must be named."""
    names = ", ".join(run.name for run in parsed.runs)
    return f"{file} holds {len(parsed.runs)} runs: give --run, one of {names}"


def _placed(file: str, item: Item) -> str:
    return f"{file}:{item.line}:{item.column}: {note_text(item)}"
