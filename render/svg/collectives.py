"""Collectives for the page: the slots of every member of a group, and what runs when.

In the slots, one row a rank and one column a slot, the page's script plays the steps: it
(views/collectives/view.js) gets all states as data and fills in numbers, contributors and arrows.
What is drawn here is the state before the first step, also seen without a script. What runs when
has one lane for computation, one for the network, and a time axis below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from ..palette import PALETTE
from ..scenes.exchange import STRIP, Cell, cell_width
from ..scenes.timeline import round_step

HEIGHT, ROW, COLUMN_GAP, LABEL, TOP = 32.0, 54.0, 18.0, 78.0, 30.0
"""Pixels: of a slot, from row to row, between slots, left of them and above."""


def slots_svg(
    ranks: Sequence[int],
    slots: Sequence[Sequence[Cell | None]],
    heads: Sequence[str],
    longest: int,
    description: str,
) -> str:
    """The state before the first step; ``longest`` is how many characters a number may get."""
    board = _Board(max(cell_width(longest), 38.0), len(ranks))
    width, step = board.width, board.width + COLUMN_GAP
    head = "".join(
        f'<text class="head" x="{LABEL + step * i + width / 2:g}" y="16">{escape(text)}</text>'
        for i, text in enumerate(heads)
    )
    rows = "".join(board.row(place, rank, slots[place]) for place, rank in enumerate(ranks))
    total, height = LABEL + step * len(heads), TOP + ROW * len(ranks)
    return (
        f'<svg class="collectives-slots" role="img" aria-label="{escape(description)}" '
        f'width="{total:g}" height="{height:g}" viewBox="0 0 {total:g} {height:g}" '
        f'data-width="{width:g}" data-step="{step:g}" data-left="{LABEL:g}" data-top="{TOP:g}" '
        f'data-row="{ROW:g}" data-height="{HEIGHT:g}">'
        f'{head}<g class="arrows"></g>{rows}</svg>'
    )


@dataclass(frozen=True)
class _Board:
    """How wide a slot is, and of how many members."""

    width: float
    members: int

    def row(self, place: int, rank: int, cells: Sequence[Cell | None]) -> str:
        top = TOP + place * ROW
        drawn = "".join(self.slot(place, number, cell, top) for number, cell in enumerate(cells))
        return (
            f'<g class="g{place % len(PALETTE)}"><rect class="who" x="2" y="{top + 10:g}" '
            f'width="12" height="12" rx="3"/></g><text class="rank" x="{LABEL - 12:g}" '
            f'y="{top + 21:g}" text-anchor="end">{rank}</text>{drawn}'
        )

    def slot(self, place: int, number: int, cell: Cell | None, top: float) -> str:
        x, who = LABEL + (self.width + COLUMN_GAP) * number, cell.who if cell else ()
        kind = "empty" if cell is None else f"g{who[0] % len(PALETTE)}" if len(who) == 1 else "sum"
        field = (self.width - 6) / self.members
        fields = "".join(
            f'<rect class="who{" on" if member in who else ""}" x="{x + 3 + member * field:.1f}" '
            f'y="{top + HEIGHT - STRIP - 3:g}" width="{field:.1f}" height="{STRIP:g}" '
            f'fill="var(--g{member % len(PALETTE)})"/>'
            for member in range(self.members)
        )
        return (
            f'<g class="slot {kind}" data-slot="{place},{number}"><rect class="box" x="{x:g}" '
            f'y="{top:g}" width="{self.width:g}" height="{HEIGHT:g}" rx="4"/>'
            f'<text x="{x + self.width / 2:g}" y="{top + 18:g}">'
            f'{escape(cell.text) if cell else ""}</text><g class="strip">{fields}</g></g>'
        )


# -- what runs when -------------------------------------------------------------------------------

WIDTH, LANE, LEFT, AXIS = 960.0, 34.0, 8.0, 26.0
"""Pixels: across all, down a lane, left of the first bar, and of the axis below."""

SMALLEST_LABEL = 17.0
"""Pixels; a narrower bar has no number."""


class LaneBar(NamedTuple):
    """One task of a lane: what it is (a class of the style sheet), its number and its times."""

    lane: int
    what: str
    number: int
    start: float
    end: float


def lanes_svg(bars: Sequence[LaneBar], lanes: int, unit: float, description: str) -> str:
    """``unit``: seconds that are 1 on the axis, such as 1e-3 where it counts milliseconds."""
    last = max((bar.end for bar in bars), default=0.0) or 1.0
    scale = (WIDTH - 2 * LEFT) / last
    drawn = "".join(_lane_bar(bar, scale, unit) for bar in bars if bar.end > bar.start)
    bottom = lanes * LANE
    ticks = "".join(
        f'<path class="tick" d="M{LEFT + at * unit * scale:.1f} 0V{bottom + 5:g}"/>'
        f'<text class="axis" x="{LEFT + at * unit * scale:.1f}" y="{bottom + 19:g}">{at:g}</text>'
        for at in ticks_of(last / unit)
    )
    return (
        f'<svg class="collectives-lanes" role="img" aria-label="{escape(description)}" '
        f'viewBox="0 0 {WIDTH + 16:g} {bottom + AXIS:g}" width="{WIDTH + 16:g}" '
        f'height="{bottom + AXIS:g}">{ticks}{drawn}</svg>'
    )


def ticks_of(last: float) -> list[float]:
    """Round numbers from 0 to the last, five to ten of them.

    >>> ticks_of(8.4)
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """
    step = round_step(last / 10)
    return [round(number * step, 9) for number in range(int(last / step) + 1)]


def _lane_bar(bar: LaneBar, scale: float, unit: float) -> str:
    x, width = LEFT + bar.start * scale, max((bar.end - bar.start) * scale, 0.6)
    text = (
        f'<text x="{x + width / 2:.1f}" y="{bar.lane * LANE + 21:g}">{bar.number}</text>'
        if width >= SMALLEST_LABEL
        else ""
    )
    times = f"{bar.number}: {bar.start / unit:.3g} - {bar.end / unit:.3g}"
    return (
        f'<g class="bar {bar.what}"><title>{times}</title><rect x="{x:.1f}" '
        f'y="{bar.lane * LANE + 3:g}" width="{width:.1f}" height="{LANE - 8:g}" rx="2"/>{text}</g>'
    )
