"""What was found in a launch command, word by word: codes and facts; texts/launch.txt says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groups.errors import LayoutError
from groups.layout import Job

from ..errors import refusal
from ..notes import Note
from .flags import MODEL, Row


@dataclass(frozen=True)
class Item:
    """A word of the text, and what became of it: its code says what."""

    code: str
    name: str
    value: str
    start: int
    end: int
    line: int  # from 1
    column: int  # from 1
    sets: str = ""  # the field that it set, or was to set
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: LayoutError | None = None  # the refusal of a layout's text


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


@dataclass(frozen=True)
class Parsed:
    """What a text says of a job."""

    text: str
    form: str  # "shell", "json", "toml" or "yaml"
    values: dict[str, object]  # in the names of Job's fields and of MODEL
    assumed: dict[str, object]  # what a Job needs, is left open, and the program has a default for
    understood: tuple[Item, ...]
    ignored: tuple[Item, ...]
    unresolved: tuple[Item, ...]
    problems: tuple[Item, ...]
    missing: tuple[Note, ...]  # what is assumed and what is asked for, in codes and facts
    framework: Guess | None
    training: dict[str, object]  # of the training and the model's shape, in the names of TRAINING
    asks: tuple[str, ...]  # what it leaves open and nobody knows
    runs: tuple[Run, ...]  # to choose from: of a text that holds several, or a job's roles
    run: str  # that the values are of
    serving: dict[str, object]  # of a server's groups, in the names of SERVING

    def job(self) -> Job:
        """The job, with what is assumed where the text is silent; `Job.layout` checks it.

        Errors: LayoutError ``launch-asks`` with everything that has to be given first.
        """
        if self.asks:
            raise refusal("launch-asks", "launch", fields=", ".join(self.asks))
        known = {**self.assumed, **self.values}
        return Job(**{name: value for name, value in known.items() if name not in MODEL})  # type: ignore[arg-type]
