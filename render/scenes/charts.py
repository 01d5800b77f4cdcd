"""Charts as data to draw, for what leaves the page: each has a width, a height and a legend.

Lengths are pixels. What the words of a chart say is the caller's, who knows the language; colours
of a legend's entries are those of the chart.

    TimelineChart   one op a box, ranks down, time across
    HeldChart       what each rank holds meanwhile
    BarsChart       one bar of parts a row, under a line that they should not cross
    MatrixChart     who sends how much to whom, with the scale of its colours
"""

from __future__ import annotations

from dataclasses import dataclass

from ..svg.matrix import LEFT, SIDE, TOP, MatrixPicture
from ..svg.timeline import AXIS
from .timeline import Strip

Entry = tuple[str, str]
"""A line of a legend: a colour, and what it means."""

DIGIT = 7.2
"""Pixels of a digit of a label."""

PLOT, NARROWEST = 1200, 240
"""Pixels across a timeline at most and at least; a file has two dots a pixel."""

HELD = {"input": "#5b8def", "weights": "#8f86a6"}
"""The colours of what is held until the gradient of the input, and on until that of weights."""

UNIT = 44
"""Pixels of one tick at most: a short timeline stays small."""


@dataclass(frozen=True, eq=False)
class _OverTime:
    """Ranks down, time across."""

    strip: Strip
    legend: tuple[Entry, ...] = ()

    @property
    def left(self) -> float:
        """Room for the ranks' numbers."""
        return 8 + DIGIT * len(str(max(self.strip.ranks)))

    @property
    def ticks_a_part(self) -> int:
        """Ticks that one dot of a file shows: more than 1 where an axis has too many."""
        return -(-self.strip.ticks // (2 * PLOT))

    @property
    def plot(self) -> float:
        """Pixels across the axis: whole dots for each part of it, so that all parts look alike."""
        parts = -(-self.strip.ticks // self.ticks_a_part)
        return max(NARROWEST, parts * min(2 * UNIT, 2 * PLOT // parts) / 2)

    @property
    def width(self) -> float:
        return self.left + self.plot


@dataclass(frozen=True, eq=False)
class TimelineChart(_OverTime):
    """The ops of one timeline, with its axis."""

    @property
    def height(self) -> float:
        return self.strip.height + AXIS


@dataclass(frozen=True, eq=False)
class HeldChart(_OverTime):
    """What each rank of a timeline holds, a curve a rank; ``most`` fills a row."""

    most: float = 0.0

    @property
    def height(self) -> float:
        return self.strip.memory_row * len(self.strip.ranks)


@dataclass(frozen=True)
class Bar:
    """One row: its name, the colour and size of each part, and what stands at its end."""

    name: str
    parts: tuple[tuple[str, float], ...]
    told: str
    is_over: bool = False

    @property
    def total(self) -> float:
        return sum(size for _, size in self.parts)


@dataclass(frozen=True)
class BarsChart:
    """Bars on one scale, and the line at ``limit`` with its name."""

    bars: tuple[Bar, ...]
    limit: float
    limit_name: str
    legend: tuple[Entry, ...] = ()

    left, plot, right, top, row = 62.0, 720.0, 92.0, 22.0, 24.0

    @property
    def pixels(self) -> float:
        """Pixels of one unit."""
        return self.plot / (1.02 * max(self.limit, *(bar.total for bar in self.bars)))

    @property
    def width(self) -> float:
        return self.left + self.plot + self.right

    @property
    def height(self) -> float:
        return self.top + self.row * len(self.bars)


@dataclass(frozen=True, eq=False)
class MatrixChart:
    """A matrix with names of its axes above it and its colour scale beside it.

    scale: places on the scale, 0 to 1, with what they mean.
    """

    picture: MatrixPicture
    axes: str
    scale: tuple[tuple[float, str], ...]

    left, top, side = LEFT, TOP + 18.0, SIDE
    bar, beside = 14.0, 110.0  # width of the scale, and of all that stands beside the matrix

    @property
    def width(self) -> float:
        return self.left + self.side + self.beside

    @property
    def height(self) -> float:
        return self.top + self.side + 6
