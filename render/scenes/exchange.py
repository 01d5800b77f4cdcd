"""Tensors before and after, a row for each rank, and the moves between them.

A cell has the colour of the member whose number it holds; a cell to which several contributed is
plain, with a strip that has one field for each member, filled if it contributed. The numbers and
the ranks at the left say the same without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

HEIGHT = 24.0
GAP, CLOSE = 10.0, 2.0
STRIP = 5.0
MIDDLE = 130.0
HUB = 14.0
LABEL = 74.0
CHARACTER = 7.4
"""Widths and heights in pixels; a digit of 12 px is at most that wide."""


class Cell(NamedTuple):
    """One number of a tensor, and the places in the group of the members that contributed to it."""

    text: str
    who: tuple[int, ...]


Block = Sequence[Sequence[Cell]]
"""A tensor as rows of cells; tensors of more dims have their first dims as rows."""


class Member(NamedTuple):
    """One row: the rank, and its tensor before and after the operation."""

    rank: int
    before: Block
    after: Block


class Flow(NamedTuple):
    """The moves: (sender, receiver) places; with a hub all lines go through one sign."""

    pairs: tuple[tuple[int, int], ...]
    hub: str = ""


@dataclass(frozen=True)
class Exchange:
    """One group: tensors before on the left, after on the right, and lines for the moves."""

    members: tuple[Member, ...]
    flow: Flow
    gap: float = GAP

    def fitted(self, room: tuple[float, float]) -> Exchange:
        """The picture with rows closer together if a slide has too little room for them."""
        return self if self.height <= room[1] else replace(self, gap=CLOSE)

    @cached_property
    def cell(self) -> float:
        """The width of a cell in pixels, in which the longest number fits."""
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
        """Every cell with its left and upper edge; tensors are centred on their members."""
        for member, middle in zip(self.members, self.middles):
            for block, x in ((member.before, self.before), (member.after, self.after)):
                top = middle - len(block) * HEIGHT / 2
                for i, row in enumerate(block):
                    for j, cell in enumerate(row):
                        yield x + j * self.cell, top + i * HEIGHT, cell

    @property
    def hub(self) -> tuple[float, float]:
        """The place of the flow's sign, if it has one."""
        return (self._ends[0] + self._ends[1]) / 2, (self.middles[0] + self.middles[-1]) / 2

    @property
    def _ends(self) -> tuple[float, float]:
        return self.after - MIDDLE + 6, self.after - 6

    def lines(self) -> list[Line]:
        """The moves, from member to member, or from and to the hub."""
        left, right = self._ends
        at, pairs = self.middles, self.flow.pairs
        if not self.flow.hub:
            return [Line(left, at[i], right, at[j], i == j) for i, j in pairs]
        senders, receivers = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
        x, y = self.hub
        lines = [Line(left, at[i], x, y) for i in senders]
        return lines + [Line(x, y, right, at[j]) for j in receivers]


class Line(NamedTuple):
    """A curve with horizontal ends; ``stays``: nothing moves along it."""

    x0: float
    y0: float
    x1: float
    y1: float
    stays: bool = False

    @property
    def points(self) -> list[tuple[float, float]]:
        """The curve's end points and control points."""
        middle = (self.x0 + self.x1) / 2
        return [(self.x0, self.y0), (middle, self.y0), (middle, self.y1), (self.x1, self.y1)]


def cell_width(longest: int) -> float:
    """The width in pixels of a cell with ``longest`` characters.

    >>> cell_width(1), cell_width(6) > 50
    (30.0, True)
    """
    return max(30.0, round(CHARACTER * longest + 12))


def _columns(blocks: Iterable[Block]) -> int:
    """The number of cells in the longest row."""
    return max((len(row) for block in blocks for row in block), default=1)


def _height(member: Member) -> float:
    return max(len(member.before), len(member.after), 1) * HEIGHT
