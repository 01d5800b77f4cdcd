"""What one GPU holds over time as stacked areas, above the ops that it runs.

Sizes are summed from the first part up; a part that jumps has two points at one time. Of more
points than MOST the fullest and the emptiest of each part of the axis are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..marks import LABEL, advance

MOST = 600
"""The most points that are all drawn."""

STEPS = 5
"""About as many lines of the axis of sizes."""


class OpBox(NamedTuple):
    """An op below the areas: its time, and its kinds, one or two."""

    start: float
    end: float
    kinds: str


@dataclass(frozen=True, eq=False)
class AreasChart:
    """Areas below a dashed line at ``limit``.

    times: float64, shape (points,); parts: colour (or its name in
    `palette.FILLS`) and sizes of each, from the lowest up; unit: of
    sizes, with which the axis is labelled; most: the fullest point, with its text.
    """

    times: np.ndarray
    parts: tuple[tuple[str, np.ndarray], ...]
    ops: tuple[OpBox, ...]
    limit: float
    limit_name: str
    most: int
    most_name: str
    unit: float = 1.0
    legend: tuple[tuple[str, str], ...] = ()
    plot: float = 900.0
    tall: float = 190.0
    left: float = field(default=0.0, kw_only=True)
    beside: float = field(default=0.0, kw_only=True)

    strip = 14.0
    top = 18.0

    @property
    def width(self) -> float:
        return self.left + self.plot + self.beside

    @property
    def height(self) -> float:
        return self.top + self.tall + 4 + self.strip

    @property
    def foot(self) -> float:
        """The y of no bytes."""
        return self.top + self.tall

    @cached_property
    def sums(self) -> np.ndarray:
        """The upper edge of each part: float64, shape (parts, points)."""
        return np.cumsum([sizes for _, sizes in self.parts], axis=0)

    @cached_property
    def highest(self) -> float:
        return 1.04 * max(self.limit, float(self.sums[-1].max()))

    @property
    def end(self) -> float:
        return float(self.times[-1]) or 1.0

    def x(self, time: float) -> float:
        return self.left + self.plot * time / self.end

    def y(self, size: float) -> float:
        return self.foot - self.tall * size / self.highest

    def outlines(self) -> list[tuple[str, np.ndarray]]:
        """The areas from the highest down, each as far as the ground: colour, shape (points, 2)."""
        kept = self._kept()
        x = self.left + self.plot * self.times[kept] / self.end
        found = []
        for (colour, _), sums in zip(reversed(self.parts), self.sums[::-1]):
            y = self.foot - self.tall * sums[kept] / self.highest
            bends = np.ones(len(y), dtype=bool)
            bends[1:-1] = (y[1:-1] != y[:-2]) | (y[1:-1] != y[2:])
            line = np.stack([x[bends], y[bends]], axis=1)
            ends = [(line[-1, 0], self.foot), (line[0, 0], self.foot)]
            found.append((colour, np.concatenate([line, ends]).round(2)))
        return found

    def _kept(self) -> np.ndarray:
        """The points that are drawn, by index."""
        if len(self.times) <= MOST:
            return np.arange(len(self.times))
        bins = np.minimum(MOST // 2 - 1, (self.times / self.end * (MOST // 2)).astype(np.int64))
        total = self.sums[-1]
        order = np.lexsort((total, bins))
        edges = np.flatnonzero(np.diff(bins[order])) + 1
        least, most = order[[0, *edges]], order[[*(edges - 1), len(order) - 1]]
        ends = [0, len(self.times) - 1, self.most]
        return np.unique(np.concatenate([least, most, ends]))

    def with_axis(self) -> AreasChart:
        """The chart with room for the axis of sizes at its left, as files show it."""
        widest = max(advance(f"{size / self.unit:g}") for size in self.ticks())
        return replace(self, left=round(widest * LABEL) + 10.0, beside=2.0)

    def ticks(self) -> list[float]:
        """The sizes of the axis: round numbers of its unit."""
        rough = self.highest / self.unit / STEPS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
        return [n * step * self.unit for n in range(int(self.highest / self.unit / step) + 1)]

    def name_below(self) -> bool:
        """Whether the name of the fullest point is below it: above it is the line of the limit."""
        top, line = self.y(float(self.sums[-1][self.most])), self.y(self.limit)
        return line - 34 < top < line + 38

    def fitted(self, room: tuple[float, float]) -> AreasChart:
        """The chart as large as a slide has room."""
        tall = max(120.0, room[1] - self.top - self.strip - 4)
        wide = max(360.0, min(room[0], 3.4 * tall)) - self.left - self.beside
        return replace(self, plot=wide, tall=min(tall, wide / 2.2))


def stacked(
    points: Sequence[tuple[float, Mapping[str, float]]], names: Sequence[str]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times, and sizes of each part that there is, in the order of ``names``."""
    times = np.array([at for at, _ in points])
    sizes = {name: np.array([parts.get(name, 0.0) for _, parts in points]) for name in names}
    return times, {name: each for name, each in sizes.items() if each.any()}
