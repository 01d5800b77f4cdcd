"""A value of a kind, or why it is none: what single words say of a field, each with its place."""

from __future__ import annotations

import bisect
import re
from dataclasses import replace
from typing import Any

from groups.budget import spend
from groups.errors import LayoutError
from groups.stages.layout_strings import parse_layout

from .flags import BOTH_ENDS, Row, limit_of
from .items import Item, Said
from .words import Word

_WHOLE = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_RANGE = re.compile(r"([0-9]{1,9})[:-]([0-9]{1,9})")
_GRES = re.compile(r"(?:gres/)?(?:gpu:)?(?:[A-Za-z][A-Za-z0-9_.-]*:)?([0-9]{1,9})")
VARIABLE = re.compile(r"\$[A-Za-z_0-9@*{(]")
ON, OFF = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
DEVICES = ("gpu", "auto", "cpu", "xpu", "-1")


class Sayings:
    """What is said in a text, and what of it is ignored, unresolved or a problem."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.breaks = [match.end() for match in re.finditer(r"\n", text)]
        self.said: list[Said] = []
        self.ignored: list[Item] = []
        self.unresolved: list[Item] = []
        self.problems: list[Item] = []
        self.speaking: list[tuple[str, Item]] = []  # which framework, and what says so
        self.run = ""  # the command or function that is read now

    def item(self, code: str, name: str, value: str, place: tuple[int, int], **more: Any) -> Item:
        start, end = place
        line = bisect.bisect_right(self.breaks, start)
        column = start - (self.breaks[line - 1] if line else 0) + 1
        return Item(code, name, value, start, end, line + 1, column, **more)

    def read_value(
        self, name: str, row: Row, words: list[Word], place: tuple[int, int], role: str = ""
    ) -> None:
        """A value of a kind, or why it is none."""
        shown = " ".join(word.text for word in words[:20])
        item = self.item("understood", name, shown, place, sets=row.sets)
        if row.speaks:
            self.speaking.append((row.speaks, item))
        value = self._read(name, row, words, place)
        if value is not None:
            default = next((word.default for word in words if word.default), None)
            default = None if row.kind == "switch" else default
            start, end = words[0].place if len(words) == 1 else (0, 0)
            if shown and self.text[start:end] == shown:
                item = replace(item, written=(start, end))
            self.said.append(Said(row.field, value, item, row, default, self.run, role))

    def _read(self, name: str, row: Row, words: list[Word], place: tuple[int, int]) -> Any:
        """The value of an option's words; None if it is none, and that has been said."""
        if not words and row.kind in ("switch", "off"):
            return row.kind == "switch"
        if not words:
            self.problems.append(self.item("no-value", name, "", place, sets=row.sets))
            return None
        spend(20 * len(words), "values")
        if len(words) > 1 and row.kind not in ("sizes", "words"):
            return self._bad("bad-value", name, row, words[1])
        values = []
        for word in words:
            if row.kind != "text" and (word.why or VARIABLE.search(word.text)):
                return self._open(name, row, word)
            values.append(self._value(name, row, word))
            if values[-1] is None:
                return None
        if row.kind == "words":
            return " ".join(values)
        return tuple(values) if row.kind == "sizes" else values[0]

    def _open(self, name: str, row: Row, word: Word, code: str = "size-unresolved") -> None:
        codes = {"condition": "decided-by-condition", "loop": "decided-by-loop"}
        code = codes.get(word.why, code)
        self.unresolved.append(self.item(code, name, word.text, word.place, sets=row.sets))

    def _bad(self, code: str, name: str, row: Row, word: Word, **facts: Any) -> None:
        item = self.item(code, name, word.text, word.place, sets=row.sets, facts=facts)
        self.problems.append(item)

    def _value(self, name: str, row: Row, word: Word) -> Any:
        """The value of one word; None if it is none, and that has been said."""
        text = word.text
        if row.kind == "text":
            return True
        if row.kind in ("word", "words"):
            return text
        if row.kind == "partition":
            if text != BOTH_ENDS:
                self.ignored.append(self.item("not-drawn", name, text, word.place))
            return True if text == BOTH_ENDS else None
        if row.kind == "layout":
            try:
                parse_layout(text)
            except LayoutError as error:
                item = self.item(error.code, name, text, word.place, sets="layers", error=error)
                self.problems.append(item)
                return None
            return text
        if row.kind == "devices" and text in DEVICES:
            return self._open(name, row, word, "left-to-machine")
        if text == "auto":
            return self._open(name, row, word, "left-to-trainer")
        if row.kind in ("switch", "off"):
            if text.lower() not in ON + OFF:
                return self._bad("bad-switch", name, row, word)
            return (text.lower() in ON) == (row.kind == "switch")
        if row.kind == "nodes" and (match := _RANGE.fullmatch(text)):
            text = match[1]
            if text != match[2]:
                return self._open(name, row, word, "range-of-nodes")
        return self._number(name, row, word, text)

    def _number(self, name: str, row: Row, word: Word, text: str) -> int | None:
        """A whole number in its range."""
        if row.kind == "gres":
            part = next((part for part in text.split(",") if "gpu" in part or part.isdigit()), text)
            if match := _GRES.fullmatch(part):
                text = match[1]
        if not _WHOLE.fullmatch(text) or len(text) > 15:
            return self._bad("bad-value", name, row, word)
        value, lowest, highest = int(text), int(row.kind != "count"), limit_of(row.field)
        if lowest <= value <= highest or (value == -1 and row.kind == "degree"):
            return value
        return self._bad("value-out-of-range", name, row, word, minimum=lowest, maximum=highest)
