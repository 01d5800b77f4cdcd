"""The slots of every member of a group as SVG, in which the page's script plays the steps.

One row a rank, one column a slot. The script (views/collectives/view.js) gets all states as data
and fills in numbers, contributors and arrows; what is drawn here is the state before the first
step, which is also what is seen without a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..palette import PALETTE
from ..scenes.exchange import STRIP, Cell, cell_width

HEIGHT = 32.0
ROW = 54.0
COLUMN_GAP = 18.0
LABEL = 78.0
TOP = 30.0


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
