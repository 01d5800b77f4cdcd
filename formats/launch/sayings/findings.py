"""The findings of reading a text word by word: values of fields, and words without effect.

An `Assignment` says that a field is a value, and which words of the text say it; all else that is
read of a word is an `Item` with the reason. A `Reading` is everything that was found in a text, in
the order of the text; what it comes to together is worked out in `meaning`.

>>> found = Findings("--tp eight")
>>> item = found.add(found.problems, "bad-value", "--tp", "eight", (5, 10), sets="tp")
>>> (item.line, item.column), found.reading("shell").problems == (item,)
((1, 6), True)
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from groups.errors import LayoutError

from ..flags import Row
from ..items import Item
from ..schemas import Schema
from ..syntax.words import Default, Source, Word


class Assignment(NamedTuple):
    """A field with a value that the text sets."""

    field: str
    value: Any
    item: Item  # the words that say it
    row: Row
    default: Default | None  # of a variable that nothing sets, where the value comes of it
    run: str = ""  # the command or the function that says it, where there may be several
    role: str = ""  # whose layout it is, in a job of several


@dataclass(frozen=True)
class Reading:
    """The findings in a text, word by word."""

    text: str
    form: str  # "shell", "python", "yaml", "json" or "toml"
    starts: bool  # whether it is a whole configuration, or a command that starts a program
    assignments: tuple[Assignment, ...]
    ignored: tuple[Item, ...]
    unresolved: tuple[Item, ...]
    problems: tuple[Item, ...]
    removed: tuple[Item, ...]  # what Megatron refuses of options, and others may take
    configured: tuple[Item, ...]  # files or recipes that a command begins with
    programs: tuple[Item, ...]  # scripts of Megatron-LM's own that are run
    frameworks: tuple[tuple[str, Item], ...]  # what only one framework has, and where
    schemas: tuple[Schema, ...]  # the frameworks with a table of their own, as they were found
    schema_of_run: Mapping[str, Schema]  # of each command that one of them reads
    setting_texts: Mapping[str, str]  # texts of single values, by path or option
    settings: Mapping[tuple[str, str], Sequence[Word]]  # every option and key, by its command

    @property
    def schema(self) -> Schema | None:
        """The first of its frameworks with a table of its own."""
        return next(iter(self.schemas), None)

    @property
    def engine(self) -> str:
        """The name of the server that the text starts; empty if it starts none."""
        return next((schema.name for schema in self.schemas if schema.serves), "")

    def leaves(self, *codes: str) -> bool:
        """Whether something is unresolved for one of these reasons."""
        return any(item.code in codes for item in self.unresolved)


class Findings:
    """The findings in a text so far; the functions that read it add to them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = False
        self.assignments: list[Assignment] = []
        self.ignored: list[Item] = []
        self.unresolved: list[Item] = []
        self.problems: list[Item] = []
        self.removed: list[Item] = []
        self.configured: list[Item] = []
        self.programs: list[Item] = []
        self.frameworks: list[tuple[str, Item]] = []
        self.schemas: dict[str, Schema] = {}
        self.schema_of_run: dict[str, Schema] = {}
        self.setting_texts: dict[str, str] = {}
        self.settings: dict[tuple[str, str], Sequence[Word]] = {}
        self.files: dict[str, Source] = {}  # that are pasted too, by their names
        self.taken: set[str] = set()  # those of them that a script takes in
        self.valued: list[Item] = []  # switches with a value, which Megatron refuses
        self.handed: list[Item] = []  # to scripts that are not here
        self._breaks = [match.end() for match in re.finditer(r"\n", text)]

    def item(
        self,
        code: str,
        name: str,
        value: str,
        place: tuple[int, int],
        sets: str = "",
        facts: Mapping[str, object] = MappingProxyType({}),
        error: LayoutError | None = None,
    ) -> Item:
        """A word at a place, with its line and column."""
        start, end = place
        line = bisect.bisect_right(self._breaks, start)
        column = start - (self._breaks[line - 1] if line else 0) + 1
        return Item(code, name, value, start, end, line + 1, column, sets, facts, error)

    def add(
        self,
        items: list[Item],
        code: str,
        name: str,
        value: str,
        place: tuple[int, int],
        sets: str = "",
        facts: Mapping[str, object] = MappingProxyType({}),
        error: LayoutError | None = None,
    ) -> Item:
        """Adds an item to one of the lists of these findings."""
        items.append(self.item(code, name, value, place, sets, facts, error))
        return items[-1]

    def add_schema(
        self, schema: Schema | None, text: str, place: tuple[int, int], run: str = ""
    ) -> None:
        """Records a framework with a table of its own, by the first word that shows it."""
        if schema and run:
            self.schema_of_run[run] = schema
        if schema and schema.name not in self.schemas:
            self.schemas[schema.name] = schema
            self.frameworks.append((schema.name, self.item("understood", text[:40], "", place)))

    def reading(self, form: str) -> Reading:
        """The findings as an immutable value. What is handed to another script is unresolved where
        the text starts no program itself."""
        if not (self.starts or self.schema_of_run):
            self.unresolved += self.handed
        return Reading(
            self.text,
            form,
            self.starts,
            assignments=tuple(self.assignments),
            ignored=tuple(self.ignored),
            unresolved=tuple(self.unresolved),
            problems=tuple(self.problems),
            removed=(*self.removed, *self.valued),
            configured=tuple(self.configured),
            programs=tuple(self.programs),
            frameworks=tuple(self.frameworks),
            schemas=tuple(self.schemas.values()),
            schema_of_run=self.schema_of_run,
            setting_texts=self.setting_texts,
            settings=self.settings,
        )
