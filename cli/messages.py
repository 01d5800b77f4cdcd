"""The messages of the command line: its options, and the sentences of refusals."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import fields

from groups.errors import LayoutError, alternative_text
from groups.layout import Job

from .guide import guide, ways_to_train

FIELDS = tuple(field.name for field in fields(Job))

_NO_OPTIONS = ("rank", "run", "args", "hosts", "racks", "format", "worse")
"""Names that a refusal does not offer as options: words of a command, or of a file."""


def _options() -> set[str]:
    """The names that a refusal may offer as options."""
    named = {one.name for section in guide().sections for one in section.options}
    return {*named, *(one.name for one in ways_to_train())} - {*_NO_OPTIONS}


class CommandError(Exception):
    """A command line that cannot be parsed, in one sentence."""


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def sentence(error: Exception) -> str:
    """The sentence of a refusal, the options that would work, and Megatron's message."""
    if not isinstance(error, LayoutError):
        return str(error)
    fixes = " or ".join(map(fix_text, filter(_can_be_typed, error.alternatives)))
    what = error.what + (f"; try {fixes}" if fixes else f": {error.why}" if error.why else "")
    return what + (f" ({error.speaker}: {error.quote})" if error.quote else "")


def _can_be_typed(alternative: Mapping[str, object]) -> bool:
    """Whether a fix is of options, of a group, or of settings of a text; fields that only the page
    has are none."""
    from request.inputs import FIELDS as ON_PAGE  # of the page, which few refusals need

    return {*alternative} <= _options() or not {*alternative} <= {*ON_PAGE} - {*_NO_OPTIONS}


def fix_text(alternative: Mapping[str, object]) -> str:
    """An alternative as options: ``--tp 2 --pp 4``."""
    if "group" in alternative:
        return str(alternative["group"])
    if not set(alternative) <= _options():
        return alternative_text(alternative)
    return " ".join(_asoption(name, value) for name, value in alternative.items())


def _asoption(name: str, value: object) -> str:
    if value is None:
        return f"without {option(name)}"
    if isinstance(value, bool):
        return option(name) if value else option(f"no_{name}")
    text = "x".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    if name == "changes" and isinstance(value, (str, Mapping)):  # as a shell takes it, in one word
        changes = json.loads(value) if isinstance(value, str) else value
        text = shlex.quote(json.dumps(changes, separators=(",", ":")))
    return f"{option(name)} {text}"


def one_line(text: str) -> str:
    """A text on one line, without control characters of terminals."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
