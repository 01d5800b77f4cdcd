"""The keys and values of configuration files, each with its place: YAML, JSON and TOML.

PyYAML reads YAML and JSON event by event, so that a file pasted in part is read as far as it goes
and no depth is too much; tomlkit reads each value of TOML. Lists of plain values are one entry;
the members of other lists are sections named by their number. A value that TOML would not take is
its text; what goes beyond is handed back as not read: block scalars, tables as values.

>>> source = Source.of('[parallelism]\\ntensor_parallel_degree = 8')
>>> entries, left, faults = read_file(source, "toml")
>>> [(entry.path, [value.text for value in entry.values]) for entry in entries]
[(('parallelism', 'tensor_parallel_degree'), ['8'])]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import tomlkit
import yaml
from tomlkit.exceptions import TOMLKitError

from groups.budget import spend
from groups.errors import LayoutError

from .words import STEP, CommandRun, Fault, Source, Word


class Entry(NamedTuple):
    """A key in its sections, with its values."""

    path: tuple[str, ...]
    values: list[Word]
    key: Word


_Path = tuple[str, ...]

Read = tuple[list[Entry], list[Word], list[Fault]]
"""Entries, words that were not read, and faults that no reader of the format accepts."""

MAX_DEPTH = 60
"""The deepest nesting of sections."""

MOST_INDENT = 200
"""The largest indent of a block's line."""

CHARACTERS = 8
"""Characters of names and values per unit of work, wherever they are repeated."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_SECTION = re.compile(r"^[ \t]*\[\[?[A-Za-z_][A-Za-z0-9_. -]*\]\]?[ \t\r]*(?:#.*)?$", re.MULTILINE)
_YAML_START = re.compile(r"[\"']?[A-Za-z_-][A-Za-z0-9_.-]*[\"']?[ \t]*:(?:[ \t]|\r?\n|$)")
_PYTHON = re.compile(r"^(?:from [A-Za-z_.][\w.]* import |import [A-Za-z_]|def [A-Za-z_])", re.M)
_TOML_KEY = re.compile(r"[ \t]*((?:[A-Za-z0-9_.-]|\"[^\"\n]*\"|'[^'\n]*')+)[ \t]*=(?!=)")


def form_of(text: str) -> str:
    """The form of a text: "json", "toml", "yaml", "python" or "shell".

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


COMMANDS = ("image", "command", "args", "entrypoint", "run")
"""Keys of commands in a container or on a cluster, in the order in which they make one command
(Kubernetes, pods: command and args; Ray, RayJob: entrypoint; SkyPilot, tasks: run)."""


# -- YAML and JSON -------------------------------------------------------------------------------

_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class _Anchored(NamedTuple):
    """The value of an anchor."""

    depth: int  # of its path
    entries: list[Entry]
    deepest: int  # sections below it
    work: int  # of unfolding it once


def _work(entry: Entry) -> int:
    """Units of work of repeating an entry, by the length of its values and name.

    >>> source = Source.of("a: [1, 2]")
    >>> _work(read_file(source, "yaml")[0][0])
    16
    """
    characters = sum(map(len, entry.path)) + sum(len(word.text) for word in entry.values)
    return STEP * len(entry.values) + characters // CHARACTERS


class _Yaml:
    """One pass over the events of a text, which ends at the first syntax error."""

    def __init__(self, source: Source, form: str) -> None:
        self.source, self.form = source, form
        half = _SURROGATE.search(source.text)
        self.readable = half.start() if half else len(source.text)
        text = source.text[: self.readable]
        self.loader = _LOADER(text.replace("\t", " ") if form == "json" else text)
        self.entries: list[Entry] = []
        self.left: list[Word] = []
        self.anchors: dict[str, _Anchored] = {}

    def read(self) -> Read:
        faults, text = [], self.source.text
        try:
            for event in self._until(()):
                if isinstance(event, yaml.CollectionStartEvent):
                    self._value(event, (), self._word(event))
        except RecursionError:  # deeper than anybody writes
            pass
        except LayoutError:  # more work than a request may cost
            raise
        except (yaml.YAMLError, ValueError) as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            at = min(mark.index if mark else getattr(error, "position", 0), max(len(text) - 1, 0))
            code = "yaml-tab" if text[at : at + 1] == "\t" else f"bad-{self.form}"
            faults.append(Fault(code, *self.source.place(at, at + 1), {}))
        if self.readable < len(text) and not faults:
            place = self.source.place(self.readable, self.readable + 1)
            faults.append(Fault(f"bad-{self.form}", *place, {}))
        return self.entries, self.left, faults

    def _until(self, end: type | tuple[type, ...]) -> Iterator[yaml.Event]:
        """The events up to the end of the current node."""
        while self.loader.check_event():
            spend(STEP, "keys")
            event = self.loader.get_event()
            if isinstance(event, end):
                return
            yield event

    def _value(self, event: yaml.Event, path: _Path, key: Word) -> None:
        """Reads the value that begins with an event, at a path; key: the word before it."""
        first = len(self.entries)
        if isinstance(event, yaml.AliasEvent):
            self._alias(event, path, key)
            return
        if isinstance(event, yaml.ScalarEvent):
            if event.style == "|" and key.text in COMMANDS:
                self._add(Entry(path, [self._script(event)], key))
            elif event.style in ("|", ">"):
                self.left.append(key)
            else:
                self._add(Entry(path, [self._word(event)], key))
        elif len(path) == MAX_DEPTH:
            self.left.append(self._word(event))
            raise RecursionError
        elif isinstance(event, yaml.MappingStartEvent):
            self._mapping(path)
        else:
            self._sequence(path, key)
        if event.anchor:
            entries = self.entries[first:]
            spend(len(entries), "aliases")
            deepest = max((len(entry.path) for entry in entries), default=0) - len(path)
            work = sum(map(_work, entries))
            self.anchors[event.anchor] = _Anchored(len(path), entries, deepest, work)

    def _add(self, entry: Entry) -> None:
        """Adds an entry; its sections count as work, for its name contains them all."""
        spend(sum(map(len, entry.path)) // CHARACTERS, "keys")
        self.entries.append(entry)

    def _alias(self, event: yaml.Event, path: _Path, key: Word) -> None:
        """Repeats the value of an anchor here; counts its work first."""
        of = self.anchors.get(event.anchor)
        if of is None or not of.entries or len(path) + of.deepest > MAX_DEPTH:
            self.left.append(key)
            return
        above = (STEP + sum(map(len, path)) // CHARACTERS) * len(of.entries)
        spend(of.work + above, "aliases")
        self.entries += [
            entry._replace(path=(*path, *entry.path[of.depth :])) for entry in of.entries
        ]

    def _mapping(self, path: _Path) -> None:
        """Keys with their values, and those merged with ``<<`` that are not set themselves."""
        key: Word | None = None
        first, under = len(self.entries), len(path) + 1
        merged: dict[_Path, Entry] = {}
        try:
            for event in self._until(yaml.MappingEndEvent):
                if key is None and isinstance(event, yaml.ScalarEvent):
                    key = self._word(event)
                    continue
                before, name = len(self.entries), key.text if key else ""
                self._value(event, (*path, name), key or self._word(event))
                if name == "<<":  # a mapping or a list of them, of which the first counts
                    for entry in self.entries[before:]:
                        rest = entry.path[under:]
                        rest = rest[1:] if rest and rest[0].isdigit() else rest
                        if rest:
                            merged.setdefault((*path, *rest), entry)
                    del self.entries[before:]
                key = None
        finally:  # of a text that breaks off, too
            own = {entry.path[:under] for entry in self.entries[first:]} if merged else ()
            self.entries[first:first] = [
                entry._replace(path=name)
                for name, entry in merged.items()
                if name[:under] not in own
            ]

    def _sequence(self, path: _Path, owner: Word) -> None:
        """A list: its plain values are one entry, and every other member is a section."""
        row: list[Word] = []
        for at, event in enumerate(self._until(yaml.SequenceEndEvent)):
            member = (*path, str(at))
            self._value(event, member, owner)
            is_plain = not isinstance(event, yaml.CollectionStartEvent)
            if is_plain and self.entries and self.entries[-1].path == member:
                row += self.entries.pop().values
        if row and path:
            self._add(Entry(path, row, owner))

    def _script(self, event: yaml.Event) -> Word:
        """The lines of a block, each with its place."""
        at, end = event.start_mark.index, event.end_mark.index
        runs = []
        for line in event.value.splitlines(keepends=True):
            spend(STEP, "words")
            found = self.source.text.find(line.rstrip(), at, at + len(line) + MOST_INDENT)
            at = max(found, at)
            runs.append(CommandRun(line, *self.source.place(at, at + len(line))))
            at += len(line)
        return Word(tuple(runs), self.source.place(event.start_mark.index, end))

    def _word(self, event: yaml.Event) -> Word:
        """The word of an event, with its place in the text."""
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

_HEADER = re.compile(r"\[\[?([A-Za-z0-9_. \t\"'-]+)\]\]?[ \t]*(?:#.*)?$")
_TOML_TOKEN = re.compile(r"\"\"\"|'''|\"[^\"]*\"|'[^']*'|[\[\]{}]|#.*")
MOST_LINES = 40
"""The most lines of one value."""


def _toml(source: Source) -> Read:
    """``key = value`` under ``[section]``, statement by statement."""
    entries: list[Entry] = []
    left: list[Word] = []
    section: _Path = ()
    tables: Counter[_Path] = Counter()
    lines = [(match.start(), match[0]) for match in re.finditer("^.*", source.text, re.MULTILINE)]
    at = 0
    while at < len(lines):
        spend(STEP, "keys")
        start, line = lines[at]
        key, text, taken = _TOML_KEY.match(line), line.strip(), 1
        if header := _HEADER.match(text):
            section = tuple(part.strip(" \t\"'") for part in header[1].split("."))
            if text[:2] == "[[":  # one of a list
                tables[section] += 1
                section += (str(tables[section] - 1),)
        elif key:
            value, taken = _toml_value(lines, at, key.end())
            end = lines[at + taken - 1][0] + len(lines[at + taken - 1][1])
            path = (*section, *(part.strip(" \"'") for part in key[1].split(".")))
            words = _toml_words(source, start + key.end(), end, value)
            entries.append(
                Entry(path, words, source.word(start + key.start(1), start + key.end(1)))
            )
        elif text and text[0] != "#":
            low = start + line.index(text)
            left.append(source.word(low, low + len(text)))
        at += taken
    return entries, left, []


def _toml_value(lines: list[tuple[int, str]], at: int, column: int) -> tuple[object, int]:
    """The value that begins there, and its number of lines; for invalid TOML the rest of its
    line."""
    first = lines[at][1][column:].strip()
    rows = [first, *(line for _, line in lines[at + 1 : at + MOST_LINES])]
    taken = 1 + next((n for n, depth in enumerate(_depths(rows)) if not depth), 0)
    text = "\n".join(rows[:taken])
    spend(20 * (STEP + len(text)), "values")
    try:
        return tomlkit.parse(f"x = {text}").unwrap()["x"], taken
    except (TOMLKitError, RecursionError, ValueError):
        return first.partition(" #")[0].strip(), 1


def _depths(rows: Iterable[str]) -> Iterator[int]:
    """After each row of a value, the number of open brackets and multi-line strings."""
    brackets, quotes = 0, ""
    for row in rows:
        spend(STEP, "values")
        for token in _TOML_TOKEN.findall(row):
            if quotes or token in ('"""', "'''"):
                quotes = "" if token == quotes else quotes or token
            else:
                brackets += (token in "[{") - (token in "]}")
        yield bool(quotes) + max(brackets, 0)


def _toml_words(source: Source, start: int, end: int, value: object) -> list[Word]:
    """The words of a value; an inline table, which is no layout's, is one."""
    several = value if isinstance(value, list) else [value]
    if any(isinstance(item, (dict, list)) for item in several):
        several = [source.text[start:end].strip()]
    words, at = [], start
    for item in several:
        text = str(item).lower() if isinstance(item, bool) else str(item)
        offset = source.text.find(text, at, end)
        at = at if offset < 0 else offset + len(text)
        place = source.place(start, end) if offset < 0 else source.place(offset, at)
        words.append(Word((CommandRun(text, *place),), place))
    return words
