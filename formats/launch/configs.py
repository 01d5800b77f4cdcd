"""The keys and values of configuration files, each with its place: YAML, JSON and TOML.

PyYAML reads YAML and JSON event by event, so that a file pasted in part is read as far as it goes
and no depth is too much; tomlkit reads each value of TOML. Lists of plain values are one entry;
the members of other lists are sections named by their number. What goes beyond is handed back as
not read: block scalars, and lines that TOML would not take.

>>> source = Source.of('[parallelism]\\ntensor_parallel_degree = 8')
>>> entries, left, faults = read_file(source, "toml")
>>> [(entry.path, [value.text for value in entry.values]) for entry in entries]
[(('parallelism', 'tensor_parallel_degree'), ['8'])]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import tomlkit
import yaml
from tomlkit.exceptions import ParseError, TOMLKitError

from groups.budget import spend

from .expand import Fault
from .words import CommandRun, Source, Word


class Entry(NamedTuple):
    """A key under its sections, with its values."""

    path: tuple[str, ...]
    values: list[Word]
    key: Word


Read = tuple[list[Entry], list[Word], list[Fault]]
"""Entries, what was not read, and what no reader of the format would read."""

MAX_DEPTH = 60
STEP = 8
"""Units of work that a key or a value costs."""

_SECTION = re.compile(r"^[ \t]*\[\[?[A-Za-z_][A-Za-z0-9_. -]*\]\]?[ \t]*(?:#.*)?$", re.MULTILINE)
_YAML_START = re.compile(r"[\"']?[A-Za-z_-][A-Za-z0-9_.-]*[\"']?[ \t]*:(?:[ \t]|\r?\n|$)")
_PYTHON = re.compile(r"^(?:from [A-Za-z_.][\w.]* import |import [A-Za-z_]|def [A-Za-z_])", re.M)
_TOML_KEY = re.compile(r"[ \t]*[A-Za-z0-9_.\"'-]+[ \t]*=")


def form_of(text: str) -> str:
    """Which of "json", "toml", "yaml", "python" or "shell" a text looks like.

    >>> form_of('{"a": 1}'), form_of("[job]\\na = 1"), form_of("model:\\n  a: 1"), form_of("ls -l")
    ('json', 'toml', 'yaml', 'shell')
    >>> form_of("import torch\\nsizes = dict(tp=2)")
    'python'
    """
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    first = next((line for line in lines if line.strip() != "---"), "").lstrip()
    if first[:1] == "{":
        second = first[1:].lstrip() or "".join(lines[1:2]).lstrip()
        if second[:1] in ('"', "}"):
            return "json"
    if text.lstrip()[:2] == "#!":
        return "python" if "python" in text.lstrip().partition("\n")[0] else "shell"
    if _PYTHON.search(text) and not _YAML_START.match(first):
        return "python"
    if _YAML_START.match(first):
        return "yaml"
    section = _SECTION.search(text)
    before = text[: section.start()] if section else ""
    outside = [line for line in before.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    if section and all(_TOML_KEY.match(line) for line in outside):
        return "toml"
    return "shell"


def read_file(source: Source, form: str) -> Read:
    """The keys of a file of one of the forms that `form_of` names."""
    return _toml(source) if form == "toml" else _Yaml(source, form).read()


# -- YAML and JSON -------------------------------------------------------------------------------

_LOADER: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_Path = tuple[str, ...]


class _Yaml:
    """One pass over the events of a text, which ends where YAML cannot go on."""

    def __init__(self, source: Source, form: str) -> None:
        self.source, self.form = source, form
        self.loader = _LOADER(source.text.replace("\t", " ") if form == "json" else source.text)
        self.entries: list[Entry] = []
        self.merged: list[Entry] = []
        self.left: list[Word] = []
        self.anchors: dict[str, tuple[int, list[Entry]]] = {}  # depth of the path, and entries

    def read(self) -> Read:
        faults, text = [], self.source.text
        try:
            for event in self._until(()):
                if isinstance(event, yaml.CollectionStartEvent):
                    self._value(event, (), None)
        except RecursionError:  # deeper than anybody writes
            pass
        except (yaml.YAMLError, ValueError) as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            at = min(mark.index if mark else getattr(error, "position", 0), max(len(text) - 1, 0))
            code = "yaml-tab" if text[at : at + 1] == "\t" else f"bad-{self.form}"
            faults.append(Fault(code, *self.source.place(at, at + 1), {}))
        given = {entry.path for entry in self.entries}
        merged = [entry for entry in self.merged if entry.path not in given]
        return merged + self.entries, self.left, faults

    def _until(self, end: Any) -> Iterator[Any]:
        """The events up to the end of what is open."""
        while self.loader.check_event():
            spend(STEP, "keys")
            event = self.loader.get_event()
            if isinstance(event, end):
                return
            yield event

    def _value(self, event: Any, path: _Path, key: Word | None) -> None:
        """What begins with an event, at a path; key: the word that it stands behind."""
        first = len(self.entries)
        if isinstance(event, yaml.ScalarEvent):
            if event.style in ("|", ">") and key:
                self.left.append(key)
                return
            word = self._word(event)
            self.entries.append(Entry(path, [word], key or word))
        elif len(path) == MAX_DEPTH:
            self.left.append(self._word(event))
            raise RecursionError
        elif isinstance(event, yaml.MappingStartEvent):
            self._mapping(path)
        else:
            self._sequence(path, key)
        if event.anchor:
            self.anchors[event.anchor] = (len(path), self.entries[first:])

    def _mapping(self, path: _Path) -> None:
        key: Word | None = None
        for event in self._until(yaml.MappingEndEvent):
            if key is None and isinstance(event, yaml.ScalarEvent):
                key = self._word(event)
                continue
            if isinstance(event, yaml.AliasEvent):
                self._alias(event, path, key)
            else:
                self._value(event, (*path, key.text if key else ""), key or self._word(event))
            key = None

    def _sequence(self, path: _Path, owner: Word | None) -> None:
        row, count = [], 0
        for event in self._until(yaml.SequenceEndEvent):
            if isinstance(event, yaml.ScalarEvent):
                row.append(self._word(event))
            elif isinstance(event, yaml.CollectionStartEvent):
                self._value(event, (*path, str(count)), owner or self._word(event))
                count += 1
        if row and owner:
            self.entries.append(Entry(path, row, owner))

    def _alias(self, event: Any, path: _Path, key: Word | None) -> None:
        """What stands under an anchor once more, here; ``<<`` is what is not given besides."""
        depth, entries = self.anchors.get(event.anchor, (0, []))
        spend(STEP * len(entries), "keys")
        merges = key is not None and key.text == "<<"
        prefix = (*path, key.text) if key and not merges else path
        copies = [entry._replace(path=(*prefix, *entry.path[depth:])) for entry in entries]
        (self.merged if merges else self.entries).extend(copies)
        if not entries:
            self.left.append(key or self._word(event))

    def _word(self, event: Any) -> Word:
        """What an event says, where it stands in the text."""
        start, end = event.start_mark.index, event.end_mark.index
        value = getattr(event, "value", None)
        if value is None:
            return self.source.word(start, max(end, start + 1))
        if getattr(event, "style", None) in ("'", '"'):
            start, end = start + 1, end - 1
        if self.source.text[start:end] == value:
            return self.source.word(start, end)
        place = self.source.place(start, end)
        return Word((CommandRun(value, *place),), place)


# -- TOML ----------------------------------------------------------------------------------------

_HEADER = re.compile(r"\[([A-Za-z0-9_. \t\"'-]+)\][ \t]*(?:#.*)?$")
_STANDS_FOR = re.compile(r"(?:\$|<)\S{1,60}$")
MOST_LINES = 40
"""Lines that one value may go over."""


def _toml(source: Source) -> Read:
    """``key = value`` under ``[section]``, statement by statement."""
    entries: list[Entry] = []
    left: list[Word] = []
    section: tuple[str, ...] | None = ()
    lines = [(match.start(), match[0]) for match in re.finditer("^.*", source.text, re.MULTILINE)]
    at = 0
    while at < len(lines):
        spend(STEP, "keys")
        start, line = lines[at]
        at += 1
        text = line.strip()
        if not text or text[0] == "#":
            continue
        if header := _HEADER.match(text):
            section = tuple(part.strip(" \t\"'") for part in header[1].split("."))
            continue
        statement, taken = (None, 1) if section is None else _statement(lines, at - 1)
        low = start + len(line) - len(line.lstrip())
        if statement is None or section is None:
            left.append(source.word(low, start + len(line.rstrip())))
            section = None if text.startswith("[[") else section  # one table out of several
            continue
        at += taken - 1
        name, value = statement
        key = source.word(low, low + len(name))
        first = start + line.index("=") + 1
        end = lines[at - 1][0] + len(lines[at - 1][1])
        words = _toml_words(source, first, end, value)
        path = (*section, *(part.strip(" \"'") for part in name.split(".")))
        if words is None:
            left.append(key)
        else:
            entries.append(Entry(path, words, key))
    return entries, left, []


def _statement(lines: list[tuple[int, str]], at: int) -> tuple[tuple[str, Any] | None, int]:
    """The key and the value that begin on a line, and how many lines they take."""
    key = _TOML_KEY.match(lines[at][1])
    if not key:
        return None, 1
    name, text = key[0][:-1].strip(), lines[at][1][key.end() :]
    if _STANDS_FOR.match(text.strip()):
        return (name, text.strip()), 1
    for taken in range(1, MOST_LINES):
        spend(20 * STEP + len(text), "values")
        try:
            return (name, tomlkit.parse(f"x = {text.strip()}").unwrap()["x"]), taken
        except (ParseError, TOMLKitError, RecursionError, ValueError):
            if at + taken >= len(lines) or text.lstrip()[:1] not in ("[", "{", '"', "'"):
                break
            text += "\n" + lines[at + taken][1]
    return None, 1


def _toml_words(source: Source, start: int, end: int, value: Any) -> list[Word] | None:
    """The words of a value; none of a table, which is no layout's."""
    several = value if isinstance(value, list) else [value]
    if any(isinstance(item, (dict, list)) for item in several):
        return None
    words, at = [], start
    for item in several:
        text = str(item).lower() if isinstance(item, bool) else str(item)
        offset = source.text.find(text, at, end)
        at = at if offset < 0 else offset + len(text)
        place = source.place(start, end) if offset < 0 else source.place(offset, at)
        words.append(Word((CommandRun(text, *place),), place))
    return words
