"""The shape of a line: the places of its numbers, and the steps for each.

A shape is a line with every digit a zero. Expressions see shapes alone, so that what they find
holds for all lines of one shape, and only the steps see the digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

Span = tuple[int, int]

NOTHING: Span = (0, 0)
"""The span of a missing part of a line: a step gets an empty text."""

Step = Callable[..., None]
"""A method of `reading.LogReading`."""


class LineShape(NamedTuple):
    """The steps for a line: methods of a reading, with their first arguments and the places of the
    others in the line."""

    steps: tuple[tuple[Step, tuple[object, ...], tuple[slice, ...]], ...]
    work: int  # of finding it
    cost: int  # of each line
    is_source: bool  # the line names one of a Python file


@dataclass
class Part:
    """What one process prints in a line. Text that is taken is blank from then on."""

    text: str
    start: int = 0
    rank: Span = NOTHING  # in the line
    steps: list[tuple[Step, tuple[object, ...], tuple[Span, ...]]] = field(default_factory=list)
    work: int = 1

    def part(self, rank: Span, start: int, end: int) -> Part:
        return Part(self.text[start:end], start, rank, self.steps)

    def add(self, step: Step, *spans: Span, arguments: tuple[object, ...] = ()) -> None:
        self.steps.append((step, arguments, spans))

    def add_first(self, pattern: re.Pattern[str], step: Step, *before: Span) -> bool:
        """Adds a step for the first match, if there is one, with all its groups."""
        match = pattern.search(self.text)
        if match:
            self.add(step, *before, *self.spans(match))
        return match is not None

    def add_each(self, step: Step, spans: Iterable[Span]) -> None:
        """Adds one step for all of these, if there are any."""
        if spans := tuple(spans):
            self.add(step, *spans)

    def span(self, match: re.Match[str] | None, group: int) -> Span:
        start, end = match.span(group) if match else NOTHING
        return (self.start + start, self.start + end) if start < end else NOTHING

    def spans(self, match: re.Match[str]) -> list[Span]:
        """The spans of all its groups."""
        return [self.span(match, group) for group in range(1, match.re.groups + 1)]

    def matched(self, pattern: re.Pattern[str]) -> list[Span]:
        """The span of the group that took part in each match."""
        return [self.span(match, match.lastindex or 0) for match in pattern.finditer(self.text)]

    def take(self, pattern: re.Pattern[str]) -> None:
        self.text = pattern.sub(lambda match: " " * len(match[0]), self.text)
