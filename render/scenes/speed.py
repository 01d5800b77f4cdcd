"""What servers answer, as a chart: tokens a second of a user across, of a GPU up, both by powers.

A curve goes from one request at once, to the right below, to as many as fit, to the left above. Its
band is the interval of a token's seconds: both axes move with it, so it runs along the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from .charts import HERE, Entry

Spot = tuple[float, float]
"""Tokens a second of a user, and of a GPU."""

OTHER = "#94a3b8"
"""The colour of curves beside the one that is asked about."""

EDGE = {"light": "#2563eb", "dark": "#60a5fa", "page": "var(--kind-tp)"}
"""That of the points that no other beats."""


class SpeedCurve(NamedTuple):
    """A curve: its points, the text at each, and its name at the end; is_own: of the layout that is
    asked about."""

    spots: tuple[Spot, ...]
    texts: tuple[str, ...] = ()
    name: str = ""
    is_own: bool = False


@dataclass(frozen=True, eq=False)
class SpeedChart:
    """Curves between two axes of powers.

    Attributes:
        band: for each point of the own curve, the same at the ends of its interval.
        here: the point that is asked for, and its text.
        rings: what was measured.
        edge: points that no other beats, from quick to many.
        words: texts of the axes ("across", "up") and of the legend ("own", "measured", "edge").
    """

    curves: tuple[SpeedCurve, ...]
    words: Mapping[str, str]
    band: tuple[tuple[Spot, Spot], ...] = ()
    here: tuple[Spot, str] | None = None
    rings: tuple[Spot, ...] = ()
    edge: tuple[Spot, ...] = ()
    width: float = 720.0
    height: float = 380.0

    left, top = 58.0, 26.0

    @property
    def right(self) -> float:
        return self.width - 16.0

    @property
    def foot(self) -> float:
        return self.height - 44.0

    @property
    def _spots(self) -> Iterable[Spot]:
        yield from (spot for curve in self.curves for spot in curve.spots)
        yield from (spot for pair in self.band for spot in pair)
        yield from self.rings
        yield from [self.here[0]] if self.here else []

    def axis(self, at: int) -> tuple[float, float]:
        """The ends of an axis (0 across, 1 up), as powers of ten with a little room."""
        values = [math.log10(spot[at]) for spot in self._spots]
        low, high = min(values), max(values)
        room = max(0.08, 0.05 * (high - low))
        beside = 0.16 * (high - low) if at == 0 and self.here else 0.0  # its text
        return low - room, high + room + beside

    def place(self, spot: Spot) -> Spot:
        """Pixels of a point."""
        (left, right), (low, high) = self.axis(0), self.axis(1)
        x = (math.log10(spot[0]) - left) / (right - left)
        y = (math.log10(spot[1]) - low) / (high - low)
        return (
            self.left + x * (self.right - self.left),
            self.foot - y * (self.foot - self.top),
        )

    def ticks(self, at: int) -> list[tuple[float, str]]:
        """Lines of an axis: 1, 2 and 5 times each power of ten, or the powers alone where these are
        many; pixels and text."""
        low, high = self.axis(at)
        steps = (1, 2, 5) if high - low < 2.6 else (1,)
        values = [
            step * 10.0**power
            for power in range(math.floor(low), math.ceil(high) + 1)
            for step in steps
        ]
        inside = [value for value in values if low <= math.log10(value) <= high]
        spots = [(value, 1.0) if at == 0 else (1.0, value) for value in inside]
        return [(self.place(spot)[at], f"{value:,g}") for spot, value in zip(spots, inside)]

    def legend_of(self, theme: str, _: object) -> list[Entry]:
        entries: list[Entry] = []
        if any(curve.is_own for curve in self.curves):
            entries.append((HERE[theme], self.words["own"]))
        if self.edge:
            entries.append((EDGE[theme], self.words["edge"]))
        if self.rings:
            entries.append(("ring", self.words["measured"]))
        return entries

    def fitted(self, room: Sequence[float]) -> SpeedChart:
        """A smaller chart, so that a slide has larger letters."""
        wide = min(self.width, room[0])
        return replace(self, width=wide, height=min(wide * 0.6, room[1]))
