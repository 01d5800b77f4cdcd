"""Tensors before and after, one row a rank, and what moved between them.

A cell has the colour of the member whose number it holds; a cell to which several contributed is
plain, with a strip that has one field for each member, filled if it contributed. The numbers and
the ranks at the left say the same without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..marks import BASELINE, LOOKS, Blocks, Lines, Mark, Words, ring
from ..palette import GROUP_INK, GROUPS

HEIGHT = 24.0
GAP, CLOSE = 10.0, 2.0
STRIP = 5.0
MIDDLE = 130.0
HUB = 14.0
LABEL = 74.0
CHARACTER = 7.4
"""Widths and heights in pixels; a digit of 12 px is at most that wide."""

NUMBER, RANK, SIGN = 12.0, 13.0, 15.0
"""Font sizes in pixels: of a cell's number, of a rank, and of the hub's sign."""


class Cell(NamedTuple):
    """One number of a tensor, and the places of the members that contributed to it."""

    text: str
    who: tuple[int, ...]


Block = Sequence[Sequence[Cell]]
"""A tensor as rows of cells; tensors of more dims have their first dims as rows."""


class Member(NamedTuple):
    """One row: the rank, its tensor before and after."""

    rank: int
    before: Block
    after: Block


class Flow(NamedTuple):
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
        return self if self.height <= room[1] else replace(self, gap=CLOSE)

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


class Line(NamedTuple):
    """A curve that leaves and arrives level; ``stays``: nothing moves along it."""

    x0: float
    y0: float
    x1: float
    y1: float
    stays: bool = False

    @property
    def points(self) -> list[tuple[float, float]]:
        """Its ends, and two points of control between them."""
        middle = (self.x0 + self.x1) / 2
        return [(self.x0, self.y0), (middle, self.y0), (middle, self.y1), (self.x1, self.y1)]


def draw_exchange(exchange: Exchange, theme: str) -> Iterator[Mark]:
    """Cells in the colour of the member whose number it is, or with a strip of who contributed."""
    look = LOOKS[theme]
    yield from _draw_lines(exchange, theme)
    yield from _draw_ranks(exchange, theme)
    members = len(exchange.members)
    cells = list(exchange.cells())
    corners = np.array([(x + 1, y + 1) for x, y, _ in cells])
    colours = GROUPS[theme]
    fills = [
        colours[cell.who[0] % len(colours)] if len(cell.who) == 1 else look.ground
        for _, _, cell in cells
    ]
    side = np.array([exchange.cell - 2, HEIGHT - 2])
    yield Blocks(corners, side, fills, edge=look.edge, width=0.8, radius=3.0)
    field = (exchange.cell - 6) / members
    shares = [
        (x + 3 + place * field, y + HEIGHT - STRIP - 3, colours[place % len(colours)])
        for x, y, cell in cells
        if len(cell.who) != 1
        for place in cell.who
    ]
    if shares:
        corners = np.array([(x, y) for x, y, _ in shares])
        yield Blocks(corners, np.array([field, STRIP]), [colour for _, _, colour in shares])
    for x, y, cell in cells:
        down, reads = (16, GROUP_INK[theme]) if len(cell.who) == 1 else (14, look.ink)
        yield Words(x + exchange.cell / 2, y + down, cell.text, NUMBER, reads, "middle")


def _draw_ranks(exchange: Exchange, theme: str) -> Iterator[Mark]:
    look, middles = LOOKS[theme], exchange.middles
    marks = np.array([(2.0, middle - 6) for middle in middles])
    fills = [GROUPS[theme][place % len(GROUPS[theme])] for place in range(len(middles))]
    yield Blocks(marks, np.array([12.0, 12.0]), fills, radius=3.0)
    for member, middle in zip(exchange.members, middles):
        y = middle + BASELINE * RANK
        yield Words(LABEL - 8, y, str(member.rank), RANK, look.ink, "end", True)


def _draw_lines(exchange: Exchange, theme: str) -> Iterator[Mark]:
    look, lines = LOOKS[theme], exchange.lines()
    for stays, dashes in ((False, ()), (True, (2.0, 4.0))):
        ways = [line.points for line in lines if line.stays == stays]
        yield Lines(ways, look.quiet, 1.2, dashes, opacity=0.75, is_curved=True)
    if exchange.flow.hub:
        x, y = exchange.hub
        yield ring(x, y, HUB, look.ink, 1.5, look.page)
        yield Words(x, y + 5, exchange.flow.hub, SIGN, look.ink, "middle", True)


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
