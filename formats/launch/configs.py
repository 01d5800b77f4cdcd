"""The keys and values of configuration files, each with its place: JSON, TOML, YAML.

Only what a layout is written with is read: keys that hold a number, a word or a row of those, in
sections. What goes beyond (block scalars, anchors, tables of tables, flow mappings) is handed back
as not read. A file pasted in part is read as far as it goes.

>>> entries, left, faults = read_toml(Source.of('[parallelism]\\ntensor_parallel_degree = 8'))
>>> [(entry.path, [value.text for value in entry.values]) for entry in entries]
[(('parallelism', 'tensor_parallel_degree'), ['8'])]
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .expand import Fault
from .words import Source, Word


class Entry(NamedTuple):
    """A key under its sections, with its values."""

    path: tuple[str, ...]
    values: list[Word]
    key: Word
    is_list: bool = False


Read = tuple[list[Entry], list[Word], list[Fault]]
"""Entries, what was not read, and what no reader of the format would read."""

_SECTION = re.compile(r"^[ \t]*\[\[?[A-Za-z_][A-Za-z0-9_. -]*\]\]?[ \t]*(?:#.*)?$", re.MULTILINE)
_YAML_START = re.compile(r"[\"']?[A-Za-z_-][A-Za-z0-9_.-]*[\"']?:(?:[ \t]|\r?\n|$)")
MAX_DEPTH = 100


def form_of(text: str) -> str:
    """Which of "json", "toml", "yaml" or "shell" a text looks like.

    >>> form_of('{"a": 1}'), form_of("[job]\\na = 1"), form_of("model:\\n  a: 1"), form_of("ls -l")
    ('json', 'toml', 'yaml', 'shell')
    """
    start = text.lstrip()
    if start[:1] == "{" and start[1:].lstrip()[:1] in ('"', "}"):
        return "json"
    lines = (line for line in start.removeprefix("---").splitlines() if line.strip())
    first = next((line for line in lines if line.lstrip()[0] != "#"), "")
    if _YAML_START.match(first):
        return "yaml"
    section = _SECTION.search(text)
    before = text[: section.start()] if section else ""
    outside = [line for line in before.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    if section and all(_TOML_LINE.match(line) for line in outside):
        return "toml"
    return "shell"


# -- JSON ----------------------------------------------------------------------------------------

_JSON = re.compile(r'[ \t\r\n]*(?:("[^"\\\n]*(?:\\.[^"\\\n]*)*")|([{}\[\]:,])|([^\s"{}\[\]:,]+))')


def read_json(source: Source) -> Read:
    """The keys of a JSON object, those of objects inside it under their own key."""
    return _Json(source).read()


class _Json:
    """One pass over a JSON text, which ends where JSON cannot go on."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.entries: list[Entry] = []
        self.open: list[tuple[str, Word | None]] = []  # "{" or "[", and the key it belongs to
        self.path: list[str] = []
        self.key: Word | None = None
        self.row: list[Word] = []
        self.expects = {"value"}  # what may come next: these, or a sign by itself

    def read(self) -> Read:
        text = self.source.text
        at = 0
        while match := _JSON.match(text, at):
            at = match.end()
            if not self._takes(match):
                return self._left(match.start(match.lastindex or 0), at)
        rest = text[at:].lstrip()
        if rest or self.open:
            return self._left(len(text) - len(rest), len(text) - len(rest) + 1)
        return self.entries, [], []

    def _left(self, start: int, end: int) -> Read:
        place = self.source.place(start, max(end, start + 1))
        return self.entries, [], [Fault("bad-json", *place, {})]

    def _takes(self, match: re.Match[str]) -> bool:
        """Take a token in; False if it cannot stand here."""
        text, sign, scalar = match.groups()
        if sign:
            return self._takes_sign(sign)
        start, end = match.span(match.lastindex or 0)
        if text and "key" in self.expects:
            self.key, self.expects = self.source.word(start + 1, end - 1), {":"}
            return True
        if "value" not in self.expects or not self.open:
            return False
        if scalar and not _SCALAR.fullmatch(scalar):
            return False
        self._value(self.source.word(start + 1, end - 1) if text else self.source.word(start, end))
        return True

    def _takes_sign(self, sign: str) -> bool:
        if sign in "{[":
            if "value" not in self.expects or len(self.open) == MAX_DEPTH:
                return False
            if sign == "[" and not self.open:
                return False  # no key to be under
            self._begin(sign)
            return True
        if sign not in self.expects:
            return False
        if sign in "}]":
            self._end()
        elif sign == ":":
            self.expects = {"value"}
        else:
            self.key, self.expects = None, {"key" if self.open[-1][0] == "{" else "value"}
        return True

    def _begin(self, sign: str) -> None:
        if self.open:
            self.path.append(self.key.text if self.key else "")
        self.open.append((sign, self.key))
        if sign == "{":
            self.key, self.expects = None, {"key", "}"}
        else:
            self.row, self.expects = [], {"value", "]"}

    def _end(self) -> None:
        sign, owner = self.open.pop()
        if sign == "[" and owner and self.row:
            self.entries.append(Entry(tuple(self.path), self.row, owner, True))
            self.row = []
        if self.path:
            self.path.pop()
        self.key = None
        self._go_on()

    def _value(self, word: Word) -> None:
        if self.key and self.open[-1][0] == "{":
            self.entries.append(Entry((*self.path, self.key.text), [word], self.key))
            self.key = None
        else:
            self.row.append(word)
        self._go_on()

    def _go_on(self) -> None:
        """What may come behind a value."""
        self.expects = {",", "}" if self.open[-1][0] == "{" else "]"} if self.open else set()


_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]{0,40}|true|false|null|\$\S*|<[^>\n]*>")

# -- TOML ----------------------------------------------------------------------------------------

_TOML_KEY = r"[ \t]*[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*[ \t]*="
_TOML_LINE = re.compile(_TOML_KEY)
_TOML_SECTION = re.compile(r"[ \t]*\[[ \t]*([A-Za-z0-9_.-]+)[ \t]*\][ \t]*(?:#.*)?\r?$")
_QUOTED = r"\"([^\"\\\n]*)\"|'([^'\n]*)'|(\[[^\[\]{}\n\"']*\])"
_TOML_VALUE = re.compile(rf"[ \t]*(?:{_QUOTED}|([A-Za-z0-9_.+$<>{{}}:-]+))[ \t\r]*(?:#.*)?$")


def read_toml(source: Source) -> Read:
    """``key = value`` under ``[section]``; a value on one line."""
    entries: list[Entry] = []
    left: list[Word] = []
    section: tuple[str, ...] | None = ()
    waiting = ""  # for the end of a value of several lines
    for start, line in _lines(source.text):
        text = line.strip()
        if waiting:
            waiting = "" if waiting in line else waiting
            continue
        if not text or text[0] == "#":
            continue
        if match := _TOML_SECTION.match(line):
            section = tuple(match[1].split("."))
            continue
        key = _TOML_LINE.match(line)
        value = _TOML_VALUE.match(line, key.end()) if key else None
        if key and value and section is not None:
            name = source.word(
                start + len(line) - len(line.lstrip()), start + len(key[0][:-1].rstrip())
            )
            words = _values(source, start, value)
            path = (*section, *name.text.split("."))
            entries.append(Entry(path, words, name, bool(value[3])))
            continue
        left.append(source.word(start + line.index(text), start + line.index(text) + len(text)))
        if text.startswith("[["):
            section = None  # its keys are of one table out of several
        rest = line[key.end() :].strip() if key else ""
        for opener, closer in (('"""', '"""'), ("'''", "'''"), ("[", "]"), ("{", "}")):
            if rest.startswith(opener) and closer not in rest[len(opener) :]:
                waiting = closer
                break
    return entries, left, []


# -- YAML ----------------------------------------------------------------------------------------

_YAML_KEY = re.compile(r"[\"']?([A-Za-z0-9_.-]+)[\"']?:(?=[ \t\r]|$)")
_YAML_VALUE = re.compile(rf"[ \t]*(?:{_QUOTED})[ \t\r]*(?:#.*)?$")
_YAML_PLAIN = re.compile(r"([^\s\"'\[\]{}&*!|>%@`#].*|\$\{.*\})")
_YAML_COMMENT = re.compile(r"[ \t]#")
_EMPTY = re.compile(r"[ \t\r]*(?:#.*)?$")


def read_yaml(source: Source) -> Read:
    """``key: value`` under keys that stand further left; lists are rows of single values."""
    entries: list[Entry] = []
    left: list[Word] = []
    faults: list[Fault] = []
    above: list[tuple[int, Word]] = []  # the sections this line is in, with their columns
    skipped: int | None = None  # what stands further right than this was not read
    for start, line in _lines(source.text):
        text = line.strip()
        if not text or text[0] == "#" or text in ("---", "..."):
            continue
        column = len(line) - len(line.lstrip(" "))
        if skipped is not None and column > skipped:
            continue
        skipped = None
        while above and (above[-1][0] > column or (above[-1][0] == column and text[:2] != "- ")):
            above.pop()
        key = _YAML_KEY.match(line, column)
        if line[column] == "\t":
            faults.append(Fault("yaml-tab", *source.place(start + column, start + column + 1), {}))
        elif text[:2] == "- " and above:
            item = _yaml_values(source, start, line, column + 1)
            if item and not _YAML_KEY.match(line[column + 2 :].lstrip()):
                path = tuple(word.text for _, word in above)
                if not (entries and entries[-1].path == path and entries[-1].is_list):
                    entries.append(Entry(path, [], above[-1][1], True))
                entries[-1].values.extend(item)
            else:
                left.append(source.word(start + column, start + len(line.rstrip())))
                skipped = column
        elif key and len(above) < MAX_DEPTH:
            word = source.word(start + key.start(1), start + key.end(1))
            value = _yaml_values(source, start, line, key.end())
            if _EMPTY.match(line, key.end()):
                above.append((column, word))
            elif value:
                path = (*(one.text for _, one in above), word.text)
                entries.append(Entry(path, value, word, line[key.end() :].lstrip()[:1] == "["))
            else:
                left.append(source.word(start + column, start + len(line.rstrip())))
                skipped = column
        else:
            left.append(source.word(start + column, start + len(line.rstrip())))
    return entries, left, faults


def _yaml_values(source: Source, start: int, line: str, at: int) -> list[Word]:
    """The words of a value on one line; none if it is of another kind."""
    match = _YAML_VALUE.match(line, at)
    if match:
        return _values(source, start, match)
    comment = _YAML_COMMENT.search(line, at)
    end = len(line[: comment.start() if comment else len(line)].rstrip())
    at += len(line[at:end]) - len(line[at:end].lstrip())
    return [source.word(start + at, start + end)] if _YAML_PLAIN.fullmatch(line, at, end) else []


def _values(source: Source, start: int, match: re.Match[str]) -> list[Word]:
    """The words of a value: of a row, each of its members."""
    group = match.lastindex or 0
    low, high = start + match.start(group), start + match.end(group)
    if group != 3:
        return [source.word(low, high)]
    found = re.finditer(r"[^\s,\[\]]+", match[3])
    return [source.word(low + part.start(), low + part.end()) for part in found]


def _lines(text: str) -> list[tuple[int, str]]:
    """Every line with where it starts."""
    found = []
    start = 0
    for line in text.split("\n"):
        found.append((start, line))
        start += len(line) + 1
    return found
