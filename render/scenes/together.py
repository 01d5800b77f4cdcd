"""Calls of one group over time, aligned at their common ends, as plain data.

    a row       a member: its own work as ground, then the bar of each call
    a bar       from where the member came to the end of the call: first it waited for the last
                one, then data moved, which takes all as long
    a mark      who came last, for whom all others waited

No clock is shared by the rows: each has the ends of the calls where the others have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from ..marks import advance
from ..palette import SCALE_ENDS
from .geometry import LETTERS
from .timeline import round_step

WIDE, NARROWEST = 1080.0, 300.0
"""The largest and least width of a picture with the names of its rows, in pixels."""

ROWS = ((8, 26.0), (16, 22.0), (32, 16.0), (64, 12.0))
"""Pixels of a row, by the largest number of rows."""

MOST_ROWS = ROWS[-1][0]

TOP, AXIS = 20.0, 22.0
"""Pixels above the rows, for the names of calls, and below them, for times."""

LETTER = 11.0

MOVED = {"light": "#475569", "dark": "#94a3b8", "page": "var(--moved)"}
"""The colour while data moves."""


class TogetherCall(NamedTuple):
    """One call; took: seconds of each row, None without a trace; last: the row that came last, -1
    if it is not among them."""

    name: str
    end: float
    took: tuple[float | None, ...]
    last: int

    @property
    def moved(self) -> float:
        """The seconds of the row that came last: nobody waits then."""
        return min((one for one in self.took if one is not None), default=0.0)


class CallBar(NamedTuple):
    """A member in a call, in pixels: its arrival, that of the last member, and its end."""

    row: int
    came: float
    began: float
    end: float
    is_last: bool


@dataclass(frozen=True, eq=False)
class TogetherChart:
    """rows: the name of each; unit: of the axis, seconds and name; key: texts for waiting, moving
    data, and who came last; chosen: a row with a bold name, -1 for none."""

    rows: Sequence[str]
    calls: Sequence[TogetherCall]
    unit: tuple[float, str]
    key: tuple[str, str, str] = ("", "", "")
    chosen: int = -1
    wide: float = field(default=WIDE, kw_only=True)

    def fitted(self, room: tuple[float, float]) -> TogetherChart:
        """The chart as wide as a slide, relative to its height."""
        wide = max(room[0] * LETTERS / 2, self.height * room[0] / room[1])
        return replace(self, wide=min(WIDE, max(NARROWEST + self.left, wide)))

    def legend_of(self, theme: str, _: object) -> Iterator[tuple[str, str]]:
        colours = SCALE_ENDS[theme]
        fills = (colours["lost"], MOVED[theme], colours["caused"])
        yield from zip(fills, self.key)

    @cached_property
    def left(self) -> float:
        return 14.0 + LETTER * max((advance(name, bold=True) for name in self.rows), default=0.0)

    @property
    def row(self) -> float:
        return next((tall for most, tall in ROWS if len(self.rows) <= most), ROWS[-1][1])

    @property
    def width(self) -> float:
        return self.wide

    @property
    def foot(self) -> float:
        """The y below the rows."""
        return TOP + self.row * len(self.rows)

    @property
    def height(self) -> float:
        return self.foot + AXIS

    @cached_property
    def span(self) -> tuple[float, float]:
        """Seconds at the left and right edges."""
        starts = [call.end - took for call in self.calls for took in call.took if took is not None]
        ends = [call.end for call in self.calls]
        first, last = min([*starts, *ends], default=0.0), max(ends, default=0.0)
        room = 0.02 * ((last - first) or 1e-6)
        return first - room, last + room

    def x(self, seconds: float) -> float:
        first, last = self.span
        return self.left + (seconds - first) / (last - first) * (self.wide - self.left - 8.0)

    @cached_property
    def bars(self) -> tuple[CallBar, ...]:
        """
        >>> calls = [TogetherCall("all_reduce", 1.0, (0.5, 0.1), 1)]
        >>> bars = TogetherChart(["0", "1"], calls, (1.0, "s")).bars
        >>> [bar.began == bars[0].began for bar in bars], bars[0].came < bars[1].came
        ([True, True], True)
        """
        return tuple(
            CallBar(row, self.x(call.end - took), self.x(call.end - call.moved), self.x(call.end),
                row == call.last)
            for call in self.calls
            for row, took in enumerate(call.took)
            if took is not None
        )  # fmt: skip

    @cached_property
    def names(self) -> list[tuple[float, str]]:
        """Names of calls above their ends, if they have room beside the one before."""
        found, free = [], self.left
        for call in self.calls:
            x = self.x(call.end)
            wide = LETTER * advance(call.name)
            if x - wide >= free:
                found.append((x, call.name))
                free = x + 8
        return found

    @cached_property
    def ticks(self) -> list[tuple[float, str]]:
        """Places of round times, from the first end on."""
        first, last = (seconds / self.unit[0] for seconds in self.span)
        step = round_step((last - first) / 8)
        begin = -int(-first // step) if first > 0 else 0
        numbers = [round(step * at, 9) for at in range(begin - 20, begin + 40)]
        shown = [one for one in numbers if first <= one <= last]
        return [(self.x(one * self.unit[0]), f"{one:g}") for one in shown]
