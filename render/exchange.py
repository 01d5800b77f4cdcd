"""Tensors before and after, one row a rank, and what moved between them, as SVG.

A cell has the colour of the member whose number it holds; a cell to which several contributed is
plain, with a strip that has one field for each member, filled if it contributed. The numbers and
the ranks at the left say the same without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .palette import PALETTE

HEIGHT = 24.0
GAP = 10.0
STRIP = 5.0
MIDDLE = 130.0
LABEL = 74.0
CHARACTER = 7.4
"""Widths and heights in pixels; a digit of 12 px is at most that wide."""


@dataclass(frozen=True)
class Cell:
    """One number of a tensor, and the places of the members that contributed to it."""

    text: str
    who: tuple[int, ...]


Block = Sequence[Sequence[Cell]]
"""A tensor as rows of cells; tensors of more dims have their first dims as rows."""


@dataclass(frozen=True)
class Member:
    """One row: the rank, its tensor before and after."""

    rank: int
    before: Block
    after: Block


@dataclass(frozen=True)
class Flow:
    """What moves: (sender, receiver) places; with a hub all lines go through one sign."""

    pairs: tuple[tuple[int, int], ...]
    hub: str = ""


def exchange_svg(members: Sequence[Member], flow: Flow, description: str) -> str:
    """One group: tensors before at the left, after at the right, lines for what moves."""
    width = _cell_width(members)
    left, right = (
        max((len(row) for member in members for row in getattr(member, side)), default=1) * width
        for side in ("before", "after")
    )
    tops, bottom = _tops(members)
    before, after = LABEL, LABEL + left + MIDDLE
    rows = "".join(
        _label(place, member.rank, top, _height(member))
        + _block(member.before, before, top + _height(member) / 2, width, len(members))
        + _block(member.after, after, top + _height(member) / 2, width, len(members))
        for place, (member, top) in enumerate(zip(members, tops))
    )
    middles = [top + _height(member) / 2 for member, top in zip(members, tops)]
    lines = _lines(flow, middles, before + left + 6, after - 6)
    return (
        f'<svg class="collectives-exchange" role="img" aria-label="{escape(description)}" '
        f'width="{after + right + 4:g}" height="{bottom:g}" '
        f'viewBox="0 0 {after + right + 4:g} {bottom:g}">{lines}{rows}</svg>'
    )


def strip(who: Sequence[int], members: int, x: float, y: float, width: float) -> str:
    """One field for each member, in its colour if it contributed."""
    step = width / members
    return "".join(
        f'<rect class="who" x="{x + place * step:.1f}" y="{y:g}" width="{step:.1f}" '
        f'height="{STRIP:g}" fill="{PALETTE[place % len(PALETTE)]}"/>'
        for place in who
    )


def cell_width(longest: int, least: float = 30.0) -> float:
    """Room for so many characters.

    >>> cell_width(1), cell_width(6) > 50
    (30.0, True)
    """
    return max(least, round(CHARACTER * longest + 12))


def _cell_width(members: Sequence[Member]) -> float:
    texts = (
        cell.text
        for member in members
        for block in (member.before, member.after)
        for row in block
        for cell in row
    )
    return cell_width(max((len(text) for text in texts), default=1))


def _height(member: Member) -> float:
    return max(len(member.before), len(member.after), 1) * HEIGHT


def _tops(members: Sequence[Member]) -> tuple[list[float], float]:
    tops, y = [], 2.0
    for member in members:
        tops.append(y)
        y += _height(member) + GAP
    return tops, y


def _label(place: int, rank: int, top: float, height: float) -> str:
    middle = top + height / 2
    return (
        f'<g class="g{place % len(PALETTE)}"><rect class="who" x="2" y="{middle - 6:g}" width="12" '
        f'height="12" rx="3"/></g>'
        f'<text class="rank" x="{LABEL - 8:g}" y="{middle + 4.5:g}" text-anchor="end">{rank}</text>'
    )


def _block(block: Block, x: float, middle: float, width: float, members: int) -> str:
    top = middle - len(block) * HEIGHT / 2
    return "".join(
        _cell(cell, x + j * width, top + i * HEIGHT, width, members)
        for i, row in enumerate(block)
        for j, cell in enumerate(row)
    )


def _cell(cell: Cell, x: float, y: float, width: float, members: int) -> str:
    alone = len(cell.who) == 1
    colour = f" g{cell.who[0] % len(PALETTE)}" if alone else ""
    below = "" if alone else strip(cell.who, members, x + 3, y + HEIGHT - STRIP - 3, width - 6)
    return (
        f'<g class="cell{colour}"><rect x="{x + 1:g}" y="{y + 1:g}" width="{width - 2:g}" '
        f'height="{HEIGHT - 2:g}" rx="3"/><text x="{x + width / 2:g}" '
        f'y="{y + (16 if alone else 14):g}">{escape(cell.text)}</text>{below}</g>'
    )


def _lines(flow: Flow, middles: Sequence[float], left: float, right: float) -> str:
    if not flow.hub:
        return "".join(_line(left, middles[i], right, middles[j], i == j) for i, j in flow.pairs)
    x, y = (left + right) / 2, (middles[0] + middles[-1]) / 2
    senders, receivers = ({pair[side] for pair in flow.pairs} for side in (0, 1))
    ways = [_line(left, middles[i], x, y) for i in sorted(senders)]
    ways += [_line(x, y, right, middles[j]) for j in sorted(receivers)]
    return (
        f'{"".join(ways)}<g class="hub"><circle cx="{x:g}" cy="{y:g}" r="14"/>'
        f'<text x="{x:g}" y="{y + 5:g}">{escape(flow.hub)}</text></g>'
    )


def _line(x0: float, y0: float, x1: float, y1: float, still: bool = False) -> str:
    bend = (x1 - x0) / 2
    kind = "still" if still else "way"
    return (
        f'<path class="{kind}" d="M{x0:g} {y0:g}C{x0 + bend:g} {y0:g} {x1 - bend:g} {y1:g} '
        f'{x1:g} {y1:g}"/>'
    )
