"""Charts as data for files: each has a width, a height and a legend.

Lengths are pixels. What the words of a chart say is the caller's, who knows the language; colours
of a legend's entries are those of the chart.

    TimelineChart   one op a box, ranks down, time across
    HeldChart       what each rank holds meanwhile
    BarsChart       one bar of parts a row, under a line that they should not cross
    MatrixChart     who sends how much to whom, with the scale of its colours
    PointsChart     dots between two axes, and one place among them with its interval
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .geometry import LETTERS
from .matrix import APART, CHARACTER, LEFT, SIDE, TOP, MatrixPicture
from .timeline import AXIS, Strip

Chart = TypeVar("Chart", bound="OverTime")

Entry = tuple[str, str]
"""A line of a legend: a colour and its meaning."""

DIGIT = 7.2
"""Pixels of a digit of a label."""

PLOT, NARROWEST = 1200, 240
"""The largest and least width of a timeline in pixels; a file has two dots per pixel."""

MOST_ENLARGED = 2.0
"""The largest scale of a chart with few rows on a slide."""


def _across(room: tuple[float, float], height: float) -> float:
    """The width in pixels of a chart of this height that fills a slide's room."""
    wide, tall = room
    return max(LETTERS * wide / MOST_ENLARGED, height * wide / tall)


HELD = {"input": "#64748b", "weights": "#b3bfce"}
"""The colours of memory held until the gradient of the input, and until that of weights."""

UNIT = 44
"""The largest width of a tick in pixels: a short timeline stays small."""


@dataclass(frozen=True, eq=False)
class OverTime:
    """A chart over an axis of time."""

    strip: Strip
    legend: tuple[Entry, ...] = ()
    most_plot: int = field(default=PLOT, kw_only=True)

    @property
    def left(self) -> float:
        """The width of the ranks' numbers."""
        return 8 + DIGIT * len(str(max(self.strip.ranks)))

    @property
    def ticks_a_part(self) -> int:
        """Ticks per dot of a file: more than 1 if the axis has too many."""
        return -(-self.strip.ticks // (2 * self.most_plot))

    @property
    def plot(self) -> float:
        """The width of the axis in pixels: a whole number of dots for each part, so that all parts
        look alike."""
        parts = -(-self.strip.ticks // self.ticks_a_part)
        return max(NARROWEST, parts * min(2 * UNIT, 2 * self.most_plot // parts) / 2)

    @property
    def width(self) -> float:
        return self.left + self.plot

    @property
    def height(self) -> float:
        raise NotImplementedError  # each chart's own

    def fitted(self: Chart, room: tuple[float, float]) -> Chart:
        """The chart as wide as its height requires on a slide."""
        wide = round(_across(room, self.height) - self.left)
        return replace(self, most_plot=min(PLOT, max(NARROWEST, wide)))


@dataclass(frozen=True, eq=False)
class TimelineChart(OverTime):
    """A timeline above its axis of times."""

    @property
    def height(self) -> float:
        return self.strip.height + AXIS


@dataclass(frozen=True, eq=False)
class HeldChart(OverTime):
    """The memory of each rank of a timeline, as a curve in a separate row.

    most: the amount of memory that fills the height of a row.
    """

    most: float = 0.0

    @property
    def height(self) -> float:
        return self.strip.memory_row * len(self.strip.ranks)


class Bar(NamedTuple):
    """One row: its name, the colour (or its name in `palette.FILLS`) and size of each part, and the
    text at its end."""

    name: str
    parts: tuple[tuple[str, float], ...]
    caption: str
    is_over: bool = False

    @property
    def total(self) -> float:
        return sum(size for _, size in self.parts)


@dataclass(frozen=True)
class BarsChart:
    """Bars on one scale, and a line at ``limit`` if that has a name."""

    bars: tuple[Bar, ...]
    limit: float
    limit_name: str
    legend: tuple[Entry, ...] = ()
    plot: float = 720.0
    row: float = 24.0
    right: float = 92.0  # for the captions

    left = 62.0

    @property
    def top(self) -> float:
        return 22.0 if self.limit_name else 2.0

    def fitted(self, room: tuple[float, float]) -> BarsChart:
        """The chart as wide as its height requires on a slide; lower rows if there are many, higher
        ones if there are few."""
        row = min(2 * self.row, (room[1] - self.top) / len(self.bars))
        lower = replace(self, row=row)
        return replace(lower, plot=max(240.0, _across(room, lower.height) - self.left - self.right))

    @property
    def pixels(self) -> float:
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

    scale: positions on the scale, 0 to 1, with their meanings.
    """

    picture: MatrixPicture
    axes: str
    scale: tuple[tuple[float, str], ...]

    side: float = SIDE

    left, top = LEFT, TOP + 18.0
    bar, beside = 14.0, 110.0  # width of the scale, and of everything beside the matrix

    def fitted(self, room: tuple[float, float]) -> MatrixChart:
        """A smaller chart, so that a slide has larger letters and fewer labels."""
        side = min(self.side, room[1] - self.top - 6)
        widest = max(CHARACTER * len(text) for _, text in self.picture.labels) + APART
        cells = [at for at, _ in self.picture.labels]
        between = (cells[1] - cells[0] if len(cells) > 1 else 1) * side / len(self.picture.levels)
        labels = self.picture.labels[:: max(1, math.ceil(widest / between))]
        picture = replace(self.picture, labels=labels)
        scale = [self.scale[-1]]
        for at, text in self.scale[-2::-1]:
            if at == 0.0 or min(at, scale[-1][0] - at) * side >= 14.0:
                scale.append((at, text))
        return replace(self, side=side, picture=picture, scale=tuple(reversed(scale)))

    @property
    def width(self) -> float:
        return self.left + self.side + self.beside

    @property
    def height(self) -> float:
        return self.top + self.side + 6


Spots = Sequence[tuple[float, float]] | np.ndarray

DOTS = {"others": ("#a1a1aa", 2.0), "peers": ("#577de3", 2.5)}
"""Colour and radius of the dots of a scatter chart."""

HERE = {"light": "#be123c", "dark": "#fb7185", "page": "var(--kind-pp)"}
"""The colour of the selected place among them."""


@dataclass(frozen=True, eq=False)
class PointsChart:
    """Dots between two axes, with one selected place and its interval.

    Positions are shares of the axes, 0 to 1: x from the left, y from the bottom. here: x, y, and
    the ends of the interval. across, up: position and text of each line of an axis. words: texts of
    the axes ("across", "up") and of the legend ("here", "peers", "others", "near").
    """

    others: Spots
    peers: Spots
    near: Spots
    here: tuple[float, float, float, float]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    words: Mapping[str, str]
    width: float = 720.0
    height: float = 320.0

    left, top = 58.0, 20.0

    def legend_of(self, theme: str, _: object) -> list[Entry]:
        dots = [(DOTS[name][0], self.words[name]) for name in ("peers", "others")]
        return [(HERE[theme], self.words["here"]), *dots, ("ring", self.words["near"])]

    @property
    def right(self) -> float:
        return self.width - 12.0

    @property
    def foot(self) -> float:
        return self.height - 40.0

    def x(self, share: Any) -> Any:
        return self.left + share * (self.right - self.left)

    def y(self, share: Any) -> Any:
        return self.foot - share * (self.foot - self.top)

    def pixels(self, spots: Spots) -> np.ndarray:
        """Pixels of points: shape (spots, 2)."""
        x, y = np.reshape(spots, (-1, 2)).T
        return np.stack([self.x(x), self.y(y)], axis=1)

    def fitted(self, room: tuple[float, float]) -> PointsChart:
        """A smaller chart, so that a slide has larger letters."""
        wide = min(self.width, room[0])
        return replace(self, width=wide, height=min(wide * 0.62, room[1]))
