"""Tensors before and after, one row a rank, and what moved between them, as SVG.

A cell has the colour of the member whose number it holds; a cell to which several contributed is
plain, with a strip that has one field for each member, filled if it contributed. The numbers and
the ranks at the left say the same without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

from ..palette import PALETTE
from ..scenes.geometry import LETTERS

HEIGHT = 24.0
GAP, CLOSE = 10.0, 2.0
STRIP = 5.0
MIDDLE = 130.0
HUB = 14.0
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


@dataclass(frozen=True)
class Exchange:
    """One group: tensors before at the left, after at the right, lines for what moves."""

    members: tuple[Member, ...]
    flow: Flow
    gap: float = GAP

    def fitted(self, room: tuple[float, float]) -> Exchange:
        """Closer together where a slide has too little room for that many rows."""
        return self if self.height * LETTERS <= room[1] else replace(self, gap=CLOSE)

    @cached_property
    def cell(self) -> float:
        """Pixels across a cell: room for the longest number."""
        texts = (
            cell.text
            for member in self.members
            for block in (member.before, member.after)
            for row in block
            for cell in row
        )
        return cell_width(max((len(text) for text in texts), default=1))

    @property
    def before(self) -> float:
        return LABEL

    @property
    def after(self) -> float:
        return LABEL + self.cell * _columns(member.before for member in self.members) + MIDDLE

    @property
    def width(self) -> float:
        return self.after + self.cell * _columns(member.after for member in self.members) + 4

    @property
    def height(self) -> float:
        return 2 + sum(_height(member) + self.gap for member in self.members)

    @cached_property
    def middles(self) -> list[float]:
        middles, y = [], 2.0
        for member in self.members:
            middles.append(y + _height(member) / 2)
            y += _height(member) + self.gap
        return middles

    def cells(self) -> Iterator[tuple[float, float, Cell]]:
        """Every cell with its left and upper edge; a tensor stands beside its member's middle."""
        for member, middle in zip(self.members, self.middles):
            for block, x in ((member.before, self.before), (member.after, self.after)):
                top = middle - len(block) * HEIGHT / 2
                for i, row in enumerate(block):
                    for j, cell in enumerate(row):
                        yield x + j * self.cell, top + i * HEIGHT, cell

    @property
    def hub(self) -> tuple[float, float]:
        """Where the sign of the flow stands, if it has one."""
        return (self._ends[0] + self._ends[1]) / 2, (self.middles[0] + self.middles[-1]) / 2

    @property
    def _ends(self) -> tuple[float, float]:
        return self.after - MIDDLE + 6, self.after - 6

    def lines(self) -> list[Line]:
        """What moves, from member to member, or from and to the hub."""
        left, right = self._ends
        at, pairs = self.middles, self.flow.pairs
        if not self.flow.hub:
            return [Line(left, at[i], right, at[j], i == j) for i, j in pairs]
        senders, receivers = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
        x, y = self.hub
        lines = [Line(left, at[i], x, y) for i in senders]
        return lines + [Line(x, y, right, at[j]) for j in receivers]


@dataclass(frozen=True)
class Line:
    """A curve that leaves and arrives level; ``stays``: nothing moves along it."""

    x0: float
    y0: float
    x1: float
    y1: float
    stays: bool = False

    @property
    def bend(self) -> float:
        """How far its two points of control are from its ends."""
        return (self.x1 - self.x0) / 2


def exchange_svg(exchange: Exchange, description: str) -> str:
    """The picture as SVG; ``description`` is its text equivalent for screen readers."""
    rows = "".join(
        _label(place, member.rank, middle)
        for place, (member, middle) in enumerate(zip(exchange.members, exchange.middles))
    )
    cells = "".join(
        _cell(cell, x, y, exchange.cell, len(exchange.members)) for x, y, cell in exchange.cells()
    )
    width, height = exchange.width, exchange.height
    return (
        f'<svg class="collectives-exchange" role="img" aria-label="{escape(description)}" '
        f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}">'
        f"{_lines(exchange)}{rows}{cells}</svg>"
    )


def strip(who: Sequence[int], members: int, x: float, y: float, width: float) -> str:
    """One field for each member, in its colour if it contributed."""
    step = width / members
    return "".join(
        f'<rect class="who" x="{x + place * step:.1f}" y="{y:g}" width="{step:.1f}" '
        f'height="{STRIP:g}" fill="var(--g{place % len(PALETTE)})"/>'
        for place in who
    )


def cell_width(longest: int) -> float:
    """Room for so many characters.

    >>> cell_width(1), cell_width(6) > 50
    (30.0, True)
    """
    return max(30.0, round(CHARACTER * longest + 12))


def _columns(blocks: Iterable[Block]) -> int:
    """Cells of the longest row."""
    return max((len(row) for block in blocks for row in block), default=1)


def _height(member: Member) -> float:
    return max(len(member.before), len(member.after), 1) * HEIGHT


def _label(place: int, rank: int, middle: float) -> str:
    return (
        f'<g class="g{place % len(PALETTE)}"><rect class="who" x="2" y="{middle - 6:g}" width="12" '
        f'height="12" rx="3"/></g>'
        f'<text class="rank" x="{LABEL - 8:g}" y="{middle + 4.5:g}" text-anchor="end">{rank}</text>'
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


def _lines(exchange: Exchange) -> str:
    paths = "".join(
        f'<path class="{"still" if line.stays else "way"}" d="M{line.x0:g} {line.y0:g}'
        f"C{line.x0 + line.bend:g} {line.y0:g} {line.x1 - line.bend:g} {line.y1:g} "
        f'{line.x1:g} {line.y1:g}"/>'
        for line in exchange.lines()
    )
    if not exchange.flow.hub:
        return paths
    x, y = exchange.hub
    return (
        f'{paths}<g class="hub"><circle cx="{x:g}" cy="{y:g}" r="{HUB:g}"/>'
        f'<text x="{x:g}" y="{y + 5:g}">{escape(exchange.flow.hub)}</text></g>'
    )
