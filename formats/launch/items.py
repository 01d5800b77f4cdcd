"""What was found in a launch command, word by word: codes and facts; texts/launch.py says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groups.errors import LayoutError

from .flags import Row


@dataclass(frozen=True)
class Item:
    """A word of the text, and what became of it.

    code: what kind of thing was found. line and column count
    from 1. sets: the field that it set, or was to set. error: the refusal of a layout's text.
    """

    code: str
    name: str
    value: str
    start: int
    end: int
    line: int
    column: int
    sets: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: LayoutError | None = None


@dataclass(frozen=True)
class Missing:
    """What the text leaves open, and what is assumed for it."""

    code: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Guess:
    """Which framework the text is for, and the word that says so."""

    name: str  # megatron, nemo, torchtitan, or the name of a Schema
    job: str  # the framework of a Job that numbers the ranks so
    because: str
    start: int
    end: int


@dataclass(frozen=True)
class Said:
    """One thing that the text says: this field is this value."""

    field: str
    value: Any
    item: Item
    row: Row
    default: str
    run: str = ""  # the command or the function that says it, where there may be several
    role: str = ""  # whose layout it is, in a job of several


@dataclass(frozen=True)
class Run:
    """One of the runs, or of the roles, that a text holds: its name, and what it alone would be."""

    name: str
    values: Mapping[str, object]
