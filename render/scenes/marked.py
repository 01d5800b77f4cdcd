"""The groups of one selected rank among many cells: marks, wider cells, and names.

A tag is the name of a group at its end: a second cue beside colour where cells are too small for
numbers and lines. It stands beside the member that is furthest from the chosen GPU in its row or
column, or furthest of all where there is none: beyond it in a row, in a column to its right, as the
labels of the next rows stand below; within its band, beside which those of the next one stand; and
never on another tag. The page's script does the same (views/client/picture/marks.js).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groups.grouping import Grouping

from ..palette import tones

Places = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Mark:
    """The members of the selected rank's group of one kind, and its tone."""

    kind: str
    ranks: np.ndarray
    tone: str


def marks_of(
    groupings: Sequence[Grouping], rank: int, tone: Mapping[str, str] | None = None
) -> tuple[Mark, ...]:
    """The groups of ``rank``, largest first. tone: by name; by default as in `tones`.

    >>> from groups import parse_mesh
    >>> from groups.grouping import plain
    >>> mesh = parse_mesh("tp2-dp4")
    >>> marks = marks_of([plain(mesh, "tp"), plain(mesh, "dp")], rank=3)
    >>> [(mark.kind, mark.ranks.tolist()) for mark in marks]
    [('dp', [1, 3, 5, 7]), ('tp', [2, 3])]
    """
    tone = tone or tones([grouping.name for grouping in groupings])
    marks = [
        Mark(grouping.name, grouping.members(rank), tone[grouping.name]) for grouping in groupings
    ]
    return tuple(sorted((m for m in marks if len(m.ranks)), key=lambda mark: -len(mark.ranks)))


def swell_of(ranks: int, seen: float, cells: int) -> int:
    """Cells added to marks on every side, so that they are at least ``seen`` cells wide.

    A few small cells among thousands are lost on a page; a group that would then cover a quarter of
    all cells stays as it is.

    >>> swell_of(8, 3.0, 16384), swell_of(4096, 3.0, 16384)
    (1, 0)
    """
    swell = max(0, math.ceil((seen - 1) / 2))
    while swell and ranks * (2 * swell + 1) ** 2 > cells / 4:
        swell -= 1
    return swell


TALL, LETTER, AROUND = 14.0, 6.4, 8.0
"""Pixels: height of a tag, width of each letter in it (all have one width), and padding."""

NAME = 10.5
"""The size of the letters of a tag in pixels."""

AGAIN = 6
"""The most attempts to move a tag out of the way of others."""


class Tag(NamedTuple):
    """A group's name in its tone; x and y are the centre, in pixels."""

    name: str
    tone: str
    x: float
    y: float

    @property
    def width(self) -> float:
        return LETTER * len(self.name) + AROUND


class MarkedCells(ABC):
    """A picture of many cells in rows and columns, with the groups of the selected rank marked.

    Subclasses give the rank, the marks, largest first, so that a small group is never hidden, and
    the geometry of the cells: left and top of the first, width and height of all, the sides of one,
    and the rows and columns of the board. seen: the least pixels that a mark covers, if there is
    room. jump: pixels from a band to the next one beside it, if any.
    """

    @property
    def jump(self) -> float:
        return 0.0

    if TYPE_CHECKING:  # fields in some subclasses, computed in others

        @property
        def rank(self) -> int: ...
        @property
        def marks(self) -> tuple[Mark, ...]: ...
        @property
        def left(self) -> float: ...
        @property
        def top(self) -> float: ...
        @property
        def width(self) -> float: ...
        @property
        def height(self) -> float: ...
        @property
        def seen(self) -> float: ...
        @property
        def sides(self) -> tuple[float, float]: ...
        @property
        def board_shape(self) -> tuple[int, int]: ...

    @abstractmethod
    def corners(self, ranks: np.ndarray | int) -> Places:
        """The upper left corner of each of these ranks' cells: x and y."""

    def board_places(self, ranks: np.ndarray | int) -> Places:
        """The row and the column of each of these ranks' cells."""
        return self._board_places(*self.corners(ranks))

    def _board_places(self, x: np.ndarray, y: np.ndarray) -> Places:
        row, column = (y - self.top) / self.sides[1], (x - self.left) / self.sides[0]
        return np.rint(row).astype(np.int64), np.rint(column).astype(np.int64)

    @cached_property
    def spots(self) -> Places:
        """The corners of the selected rank's cell, then of those of each mark."""
        return self.corners(np.concatenate([[self.rank], *(mark.ranks for mark in self.marks)]))

    @property
    def middle(self) -> tuple[float, float]:
        """Centre of the selected rank's cell, in pixels."""
        x, y = (float(at[0]) + side / 2 for at, side in zip(self.spots, self.sides))
        return x, y

    def swell(self, ranks: int) -> int:
        """Cells added on every side to each cell of a group of ``ranks`` ranks."""
        return swell_of(ranks, self.seen / self.sides[0], self.num_cells)

    @property
    def num_cells(self) -> int:
        return math.prod(self.board_shape)

    def mark_pixels(self) -> np.ndarray:
        """uint8, shape (rows, columns): 0, or 1 + the number of the mark, the smallest mark on top.

        At an edge, a swollen cell stays inside.
        """
        (high, across), (rows, columns) = self.board_shape, self._board_places(*self.spots)
        swells = [self.swell(len(mark.ranks)) for mark in self.marks]
        edge = max(swells, default=0)
        wide = across + 2 * edge
        board = np.zeros((high + 2 * edge) * wide, dtype=np.uint8)
        cells, first = (rows + edge) * wide + columns + edge, 1
        for number, (mark, more) in enumerate(zip(self.marks, swells), 1):
            of_mark = cells[first : first + len(mark.ranks)]
            first += len(mark.ranks)
            if more:
                ways = np.arange(-more, more + 1)
                around = np.add.outer(ways * wide, ways).reshape(-1)
                of_mark = np.add.outer(around, of_mark)
            board[of_mark] = number
        return board.reshape(-1, wide)[edge : edge + high, edge : edge + across]

    @property
    def around_rank(self) -> tuple[float, float]:
        """Width and height of what stands round the selected rank."""
        return TALL, TALL

    @cached_property
    def tags(self) -> tuple[Tag, ...]:
        """A tag for each group of several ranks, at its end."""
        x, y = (at + side / 2 for at, side in zip(self.spots, self.sides))
        dx, dy = x - x[0], y - y[0]
        across, down = np.abs(dx), np.abs(dy)
        far = np.rint(across + down)
        far[(across < 0.5) | (down < 0.5)] += far.max() + 1  # in its row or column before others
        far[(across == 0) & (down == 0)] = -1
        taken = [(*self.middle, *self.around_rank)]
        tags, first = [], 1
        for mark in self.marks:
            of_mark = slice(first, first + len(mark.ranks))
            end = first + int(far[of_mark].argmax())
            first = of_mark.stop
            if far[end] < 0:
                continue
            wide = LETTER * len(mark.kind) + AROUND
            at_x, at_y = float(x[end]), float(y[end])
            left, right = self._band(at_x, wide)
            beside = self.sides[0] * (self.swell(len(mark.ranks)) + 0.5) + wide / 2
            is_left = dx[end] < 0 if across[end] >= down[end] else at_x + beside > right - wide / 2
            at_x += -beside if is_left else beside
            at_x = min(max(at_x, left + wide / 2), right - wide / 2)
            at_y = min(max(at_y, self.top + TALL / 2), self.height - TALL / 2)
            at_y = _free_height(taken, (at_x, at_y, wide), self.height)
            taken.append((at_x, at_y, wide, TALL))
            tags.append(Tag(mark.kind, mark.tone, round(at_x, 2), round(at_y, 2)))
        return tuple(tags)

    def _band(self, x: float, wide: float) -> tuple[float, float]:
        """Left and right of the band at x; of the whole picture if a band is narrower than
        ``wide``."""
        left, right, jump = self.left, self.width, self.jump
        if not jump:
            return left, right
        band = left + (x - left) // jump * jump, right - (right - x) // jump * jump
        return (left, right) if band[1] - band[0] < wide else band


def _free_height(
    taken: Sequence[tuple[float, float, float, float]],
    tag: tuple[float, float, float],
    bottom: float,
) -> float:
    """The height at which a tag overlaps no earlier one; the others are x, y, width and height."""
    x, y, wide = tag
    for _ in range(AGAIN):
        if all(
            abs(x - at) >= (wide + w) / 2 or abs(y - on) >= (TALL + h) / 2 for at, on, w, h in taken
        ):
            break
        y += TALL if y + 1.5 * TALL <= bottom else -TALL * AGAIN / 2
    return y
