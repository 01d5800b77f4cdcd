"""Words of a pasted text with their places in it, however they were composed.

A word is a row of runs: characters that stand together in the text. ``--tp=$TP`` with ``TP=8``
some lines above is two runs, and the place of its value is that of the 8.

>>> source = Source.of("TP=8 # eight")
>>> word = source.word(3, 4)
>>> word.text, word.place
('8', (3, 4))
"""

from __future__ import annotations

import ast
import bisect
import contextlib
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from groups.budget import spend

from ...values import Document

STEP = 8
"""Units of work per word, or per sign between words."""


class Default(NamedTuple):
    """The default of a variable that the script does not set."""

    name: str
    value: str


class CommandRun(NamedTuple):
    """Characters of a word with their place in the text."""

    text: str
    start: int
    end: int
    why: str = ""  # why it could not be worked out; empty if it is what the shell would see
    default: Default | None = None  # that this is, or that it is worked out of


class Fault(NamedTuple):
    """Something that no shell, or no reader of a file's format, would read as it was meant."""

    code: str
    start: int
    end: int
    facts: Document


@dataclass(frozen=True)
class Word:
    """A word of a command, or a value of a file, with its place."""

    runs: tuple[CommandRun, ...]
    at: tuple[int, int]  # where it is used, if it is written elsewhere or empty

    @property
    def text(self) -> str:
        if len(self.runs) == 1:
            return self.runs[0].text
        return "".join(run.text for run in self.runs)

    @property
    def why(self) -> str:
        """Why a part of it is unknown; empty if all of it is known."""
        return next((run.why for run in self.runs if run.why), "")

    @property
    def default(self) -> Default | None:
        return next((run.default for run in self.runs if run.default), None)

    @property
    def place(self) -> tuple[int, int]:
        """Start and end in the text: of all of it, or of its first part if it is in pieces."""
        if not self.runs:
            return self.at
        start, end = self.runs[0].start, self.runs[0].end
        for run in self.runs[1:]:
            if not 0 <= run.start - end <= 4:  # quotes, escapes and continuations between
                break
            end = run.end
        return start, end

    def after(self, count: int) -> Word:
        """The word without its first characters."""
        left = tuple(sliced(self.runs, count, len(self.text)))
        end = self.place[1]
        return Word(left, (end, end))


def sliced(runs: Sequence[CommandRun], start: int, end: int) -> Iterator[CommandRun]:
    """The characters from start to end; a run that differs from the text keeps its place."""
    at = 0
    for run in runs:
        low, high = max(start - at, 0), min(end - at, len(run.text))
        if low < high:
            literal = run.end - run.start == len(run.text)
            place = (run.start + low, run.start + high) if literal else (run.start, run.end)
            yield CommandRun(run.text[low:high], *place, run.why, run.default)
        at += len(run.text)


class Source:
    """A text to read, composed of runs of the pasted text."""

    def __init__(self, runs: Sequence[CommandRun]) -> None:
        self.runs = [run for run in runs if run.text]
        self.text = "".join(run.text for run in self.runs)
        lengths = [len(run.text) for run in self.runs]
        self.plain = len(self.runs) == 1 and self.runs[0].end - self.runs[0].start == lengths[0]
        self.offsets = [0]
        for length in lengths:
            self.offsets.append(self.offsets[-1] + length)

    @classmethod
    def of(cls, text: str) -> Source:
        return cls([CommandRun(text, 0, len(text))])

    def part(self, start: int, end: int) -> list[CommandRun]:
        """The runs of a part of it."""
        if start >= end:
            return []
        if self.plain:
            whole = self.runs[0]
            base = whole.start
            text = self.text[start:end]
            return [CommandRun(text, base + start, base + end, whole.why, whole.default)]
        first = bisect.bisect_right(self.offsets, start) - 1
        last = bisect.bisect_left(self.offsets, end)
        base = self.offsets[first]
        return list(sliced(self.runs[first:last], start - base, end - base))

    def word(self, start: int, end: int) -> Word:
        return Word(tuple(self.part(start, end)), self.place(start, start))

    def place(self, start: int, end: int) -> tuple[int, int]:
        """The place of a part of it in the pasted text."""
        if self.plain:
            base = self.runs[0].start
            start = min(start, len(self.text))
            return base + start, base + min(max(end, start), len(self.text))
        start = min(start, len(self.text) - 1)
        return Word(tuple(self.part(start, max(end, start + 1))), (0, 0)).place

    @cached_property
    def closers(self) -> dict[int, int]:
        """The end of every ``${`` and ``$(``, found in one pass."""
        closing: dict[int, int] = {}
        braces: list[int] = []
        parens: list[int] = []
        for match in re.finditer(r"\\.|\$\{|\}|\$?\(|\)", self.text, re.DOTALL):
            token = match[0]
            if token == "${":
                braces.append(match.start())
            elif token == "}" and braces:
                closing[braces.pop()] = match.start()
            elif token.endswith("(") and token[0] != "\\":
                parens.append(match.start())
            elif token == ")" and parens:
                closing[parens.pop()] = match.start()
        return closing

    @cached_property
    def lines(self) -> dict[str, list[int]]:
        """The starts of lines with equal words, to find the ends of here-documents."""
        starts: dict[str, list[int]] = {}
        for match in re.finditer(r"[^\n]+", self.text):
            if len(match[0]) < 100:
                starts.setdefault(match[0].strip(), []).append(match.start())
        return starts


def split(runs: Sequence[CommandRun], at: tuple[int, int]) -> list[Word]:
    """The words of an unquoted value; unknown parts are never cut."""
    source = Source(runs)
    is_open = (run.why not in ("", "condition") for run in source.runs)
    cut = "".join("$" * len(r.text) if o else r.text for r, o in zip(source.runs, is_open))
    return [Word(tuple(source.part(*match.span())), at) for match in re.finditer(r"\S+", cut)]


def row_words(value: Word) -> list[Word]:
    """The values of an override: several in ``[2,4]``."""
    text = value.text
    if text[:1] != "[" or text[-1:] != "]" or text[:2] == "[[":
        return [value]
    inside = Source(value.runs)
    return [inside.word(*match.span()) for match in re.finditer(r"[^\s,\[\]]+", text)]


def following(words: Sequence[Word], at: int, kind: str = "") -> list[Word]:
    """The values after an option: several sizes or words, else one."""
    values: list[Word] = []
    for word in words[at + 1 :] if kind in ("sizes", "words") else words[at + 1 : at + 2]:
        option = word.text[:1] == "-" and not word.text[1:2].isdigit()
        is_size = word.text[:1].isdigit() or word.why
        if option or (kind == "sizes" and values and not is_size):
            break
        values.append(word)
    return values


def whole_place(word: Word, values: Sequence[Word]) -> tuple[int, int]:
    """The place of an option with its values, if they are adjacent."""
    start, end = word.place
    for value in values:
        low, high = value.place
        if not 0 <= low - end <= 200:
            break
        end = high
    return start, end


def says_nothing(values: Sequence[Word]) -> bool:
    return all(word.text in ("null", "None", "~", "") for word in values)


def calculate(tokens: Sequence[str]) -> int | None:
    """The value of whole numbers joined by + - * / % and parentheses, as the shell divides.

    >>> calculate("( 2 + 3 ) * 8 / 4".split()), calculate(["1", "/", "0"]), calculate(["1", "2"])
    (10, None, None)
    """
    text = " ".join(str(int(token)) if token.isdigit() else token for token in tokens)
    try:
        return next(literal(ast.parse(text, mode="eval").body, {}, SHELLS, len(tokens)), None)
    except SyntaxError:
        return None


Operators = Mapping[type[ast.operator], Callable[[int, int], int]]

PYTHONS: Operators = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    ast.FloorDiv: operator.floordiv,
}
SHELLS: Operators = {
    **PYTHONS,
    ast.Div: lambda left, right: math.trunc(Fraction(left, right)),  # towards zero
    ast.Mod: lambda left, right: left - right * math.trunc(Fraction(left, right)),
}


def literal(
    node: ast.expr, names: Mapping[str, ast.expr], operators: Operators, deepest: int
) -> Iterator[Any]:
    """The constant that an expression is, or that its whole numbers come to; none if it is open."""
    spend(1, "statements")
    match node:
        case _ if not deepest:
            return
        case ast.Constant(value):
            yield value
        case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
            yield -value
        case ast.Name(name) if name in names:
            yield from literal(names[name], names, operators, deepest - 1)
        case ast.BinOp(left, op, right) if type(op) in operators:
            sides = [*literal(left, names, operators, deepest - 1)]
            sides += literal(right, names, operators, deepest - 1)
            if [type(side) for side in sides] == [int, int]:
                with contextlib.suppress(ZeroDivisionError):
                    value = operators[type(op)](*sides)
                    yield from [value] if abs(value) < 10**15 else []
