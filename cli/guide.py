"""The options of the command line, as --help shows them: those of guide.toml, and training options,
which are the fields of typed models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from groups.tables import read_table

ON_OFF = "on|off"
"""The placeholder for the value of a switch."""


@dataclass(frozen=True)
class GuideOption:
    """An option: the placeholder for its value, its description, and the commands that read it;
    none: those of its section."""

    name: str
    value: str | None = None
    help: str | None = None
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class GuideSection:
    """Options under one title, and the commands that read them; none: all. trains: whether the
    training options are among them."""

    title: str
    options: tuple[GuideOption, ...]
    commands: tuple[str, ...] = ()
    trains: bool = False

    def of(self, command: str, more: Sequence[GuideOption] = ()) -> list[GuideOption]:
        """The options that a command reads; more: the training options."""
        every = (*self.options, *(more if self.trains else ()))
        of_each = ((one, one.commands or self.commands) for one in every)
        return [one for one, commands in of_each if not commands or command in commands]


@dataclass(frozen=True)
class GuideCommand:
    """A command: its words and what it answers.

    least, most: words that it takes, and takes: which. format: the usual one; formats: all.
    """

    name: str
    help: str
    words: str = ""
    least: int = 0
    most: int | None = None
    takes: str = ""
    format: str = "text"
    formats: tuple[str, ...] = ("text", "json", "csv")


@dataclass(frozen=True)
class Guide:
    """The texts of --help; examples and notes as they are printed."""

    examples: tuple[str, ...]
    notes: str
    commands: tuple[GuideCommand, ...]
    sections: tuple[GuideSection, ...]

    def command(self, name: str) -> GuideCommand:
        return next(one for one in self.commands if one.name == name)


@cache
def guide() -> Guide:
    return read_table(Path(__file__).with_name("guide.toml"), Guide)


ELSEWHERE = ("micro_batches", "instances", "first_layers", "last_layers")
"""Inputs of a step that are no training options here: the first follow from the batch or the job;
uneven ends are set in links and launch files."""


def ways_to_train() -> Iterator[GuideOption]:
    """An option for each input of a training and of the assignment of layers.

    >>> {one.name: one.help for one in ways_to_train()}["offload"]
    'what is in host memory: none, optimizer, parameters or chunks (none)'
    """
    from groups.inputs import inputs_of
    from training.described import MachineNumbers
    from training.recipe import Training  # a room that few commands enter
    from training.split import Split

    for name, row in {
        **inputs_of(Training),
        **inputs_of(Split),
        **inputs_of(MachineNumbers),
    }.items():
        if name in ELSEWHERE:
            continue
        value = {"count": "N", "amount": "X", "switch": ON_OFF}.get(row.kind, "ID")
        *others, last = row.choices or ("",)
        listed = f": {', '.join(others)} or {last}" if others and row.kind != "switch" else ""
        counts = row.input.otherwise or ("" if row.input.ticked else row.counts)
        text = row.input.means + listed + (f" ({counts})" if counts else "")
        yield GuideOption(name, None if row.input.ticked else value, text)


def asks_for_more(argv: Sequence[str]) -> bool:
    """Whether a command line has an option that is not in guide.toml, or asks for help."""
    named = {one.name for section in guide().sections for one in section.options}
    options = (word.partition("=")[0] for word in argv if word.startswith("-"))
    names = {name.lstrip("-").removeprefix("no-").replace("-", "_") for name in options}
    return not names <= named
