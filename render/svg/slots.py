"""The slots of every member of a group as SVG, in which the page's script plays the steps.

One row a rank, one column a slot. The script (views/collectives/view.js) gets all states as data
and fills in numbers, contributors and arrows; what is drawn here is the state before the first
step, which is also what is seen without a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..palette import PALETTE
from .exchange import STRIP, Cell, cell_width

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
    width = max(cell_width(longest), 38.0)
    step = width + COLUMN_GAP
    members = len(ranks)
    total = LABEL + step * len(heads)
    head = "".join(
        f'<text class="head" x="{LABEL + step * i + width / 2:g}" y="16">{escape(text)}</text>'
        for i, text in enumerate(heads)
    )
    rows = "".join(
        _row(place, rank, cells, TOP + place * ROW, width, step, members)
        for place, (rank, cells) in enumerate(zip(ranks, slots))
    )
    height = TOP + ROW * members
    return (
        f'<svg class="collectives-slots" role="img" aria-label="{escape(description)}" '
        f'width="{total:g}" height="{height:g}" viewBox="0 0 {total:g} {height:g}" '
        f'data-width="{width:g}" data-step="{step:g}" data-left="{LABEL:g}" data-top="{TOP:g}" '
        f'data-row="{ROW:g}" data-height="{HEIGHT:g}">'
        f'{head}<g class="arrows"></g>{rows}</svg>'
    )


def _row(
    place: int,
    rank: int,
    row: Sequence[Cell | None],
    top: float,
    width: float,
    step: float,
    members: int,
) -> str:
    colour = place % len(PALETTE)
    cells = "".join(
        _slot(place, slot, cell, LABEL + step * slot, top, width, members)
        for slot, cell in enumerate(row)
    )
    return (
        f'<g class="g{colour}"><rect class="who" x="2" y="{top + 10:g}" width="12" height="12" '
        f'rx="3"/></g><text class="rank" x="{LABEL - 12:g}" y="{top + 21:g}" text-anchor="end">'
        f"{rank}</text>{cells}"
    )


def _slot(
    place: int, slot: int, cell: Cell | None, x: float, top: float, width: float, members: int
) -> str:
    who = cell.who if cell else ()
    kind = "empty" if cell is None else f"g{who[0] % len(PALETTE)}" if len(who) == 1 else "sum"
    field = (width - 6) / members
    fields = "".join(
        f'<rect class="who{" on" if one in who else ""}" x="{x + 3 + one * field:.1f}" '
        f'y="{top + HEIGHT - STRIP - 3:g}" width="{field:.1f}" height="{STRIP:g}" '
        f'fill="var(--g{one % len(PALETTE)})"/>'
        for one in range(members)
    )
    return (
        f'<g class="slot {kind}" data-slot="{place},{slot}"><rect class="box" x="{x:g}" '
        f'y="{top:g}" width="{width:g}" height="{HEIGHT:g}" rx="4"/>'
        f'<text x="{x + width / 2:g}" y="{top + 18:g}">{escape(cell.text) if cell else ""}</text>'
        f'<g class="strip">{fields}</g></g>'
    )
