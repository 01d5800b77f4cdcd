"""The words of a command line: its options, its help, and the sentences that refuse it.

Options are the fields of a `Job` with dashes, so that what a refusal offers can be given back.
guide.txt says what they mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn

from formats.sections import sections
from groups.errors import LayoutError, alternative_text
from groups.job import Job

PROGRAM = "python -m groups"

FIELDS = tuple(field.name for field in fields(Job))

SIZES = ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp", "instances")

OF_MATHS = {
    "num_distributed_optimizer_instances": "instances",
    "hierarchical_context_parallel_sizes": "levels",
    "hybrid_context_parallel": "hybrid",
}
"""The field of `Job` of an argument of the maths, where they have different names."""

_EITHER = {"framework": "order", "order": "order", "preset": "args", "args": "args"}
"""Options of which one is given at most."""

_OTHERWISE: dict[str, dict[str, Any]] = {
    "hybrid": {"action": argparse.BooleanOptionalAction},
    "worse": {"choices": ("high", "low"), "default": "high"},
    "format": {"choices": ("text", "json", "csv"), "default": "text"},
}
"""What sets an option apart from one that takes any text."""


class CommandError(Exception):
    """A command line that cannot be understood, in one sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(message)


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:  # else it is as wide as the environment says
        super().__init__(prog, max_help_position=26, width=100)


def options_parser() -> argparse.ArgumentParser:
    """The parser of guide.txt."""
    *tables, (_, guide) = sections(__file__, "guide.txt")
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [COMMAND] [LAYOUT] [NAME ...]",
        description="Which GPUs of a training job are in which process groups.",
        epilog=guide,
        formatter_class=_Help,
        add_help=False,
        allow_abbrev=False,
    )
    parser.color = False  # type: ignore[attr-defined]  # Pythons from 3.14 on colour their help
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    either: dict[str, argparse._MutuallyExclusiveGroup] = {}
    for title, lines in tables:
        group = parser.add_argument_group(title)
        for name, value, *said in (line.split(maxsplit=2) for line in lines.split("\n") if line):
            more = _OTHERWISE.get(name) or {"metavar": None if value == "-" else value}
            place: argparse._ActionsContainer = group
            if name in _EITHER:
                one_of = _EITHER[name]
                place = either[one_of] = either.get(one_of) or group.add_mutually_exclusive_group()
            place.add_argument(option(name), help=said[0] if said else None, **more)
    group.add_argument("-h", "--help", action="store_true", help="this text")
    return parser


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# -- messages ------------------------------------------------------------------------------------


def sentence(error: Exception) -> str:
    """What is wrong, the options that would work, and what Megatron says."""
    if not isinstance(error, LayoutError):
        return str(error)
    what = error.what
    for name, option in OF_MATHS.items():
        what = what.replace(name, option)
    fixes = [_fix(alternative) for alternative in error.alternatives]
    if fixes:
        what += f"; try {' or '.join(fixes)}"
    elif error.why:
        what += f": {error.why}"
    return what + (f" (Megatron: {error.quote})" if error.quote else "")


def _fix(alternative: Mapping[str, Any]) -> str:
    """An alternative as the options to give: ``--tp 2 --pp 4``."""
    if "group" in alternative:
        return str(alternative["group"])
    if not set(alternative) <= {*FIELDS, "preset", "domains"}:
        return alternative_text(alternative)
    return " ".join(_asoption(name, value) for name, value in alternative.items())


def _asoption(name: str, value: Any) -> str:
    if value is None:
        return f"without {option(name)}"
    if isinstance(value, bool):
        return option(name) if value else option(f"no_{name}")
    text = "x".join(map(str, value)) if isinstance(value, (list, tuple)) else value
    return f"{option(name)} {text}"


def one_line(text: str) -> str:
    """On one line, and nothing that a terminal would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
