"""One tensor as a matrix, cut as both sides of a move cut it, as plain data.

a piece     what lies between two neighbouring cuts of either side
a bracket   the pieces that are one part of a side: of the source before the matrix, of the target
            behind it
a frame     what the chosen GPU is to hold

Where rows are cut, pieces are bands below one another; where columns are, beside one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from ..marks import LABEL, advance

BAND, WIDE, GAP, REST = 22.0, 250.0, 10.0, 12.0
"""Pixels: height and least width of a band, and between two blocks; of the mark for pieces left
out."""

SLOT, TALL = 66.0, 92.0
"""Pixels: width of a piece beside others, and their height."""

GUTTER, BRACKET, FLAT = 8.0, 16.0, 46.0
"""Pixels: from the matrix to a bracket, of a bracket beside its name, and above and below the
matrix with its name."""


@dataclass(frozen=True)
class Piece:
    """A piece: its block, its part of either side (empty: none), its rows or columns, its origin in
    one line and in a few letters, and its colour.

    shade: empty where the chosen GPU has it or does not want it. after_gap: whether some are left
    out before it.
    """

    block: int
    source: str
    target: str
    label: str
    origin: str
    short: str = ""
    shade: str = ""
    is_own: bool = False
    is_wanted: bool = False
    after_gap: bool = False


class Bracket(NamedTuple):
    """A part of a side along the cut axis: start and end in pixels, and its name."""

    start: float
    end: float
    name: str


@dataclass(frozen=True)
class TensorPicture:
    """A tensor as pieces. names: of its blocks, one empty name for one; sides: of source and
    target; is_across: whether columns are cut; ends_in_gap: pieces after the last are left out."""

    pieces: tuple[Piece, ...]
    names: tuple[str, ...]
    sides: tuple[str, str] = ("", "")
    is_across: bool = False
    ends_in_gap: bool = False

    @cached_property
    def bracket(self) -> float:
        """The width of a bracket with the longest name of a part, in pixels."""
        names = [name for piece in self.pieces for name in (piece.source, piece.target)]
        return BRACKET + LABEL * max(map(advance, names), default=0.0)

    @cached_property
    def room(self) -> float:
        """Pixels left of the bands: the names of blocks and the brackets of the source."""
        names = max(map(advance, self.names)) * LABEL
        return names + (8 if names else 0) + self.bracket

    @cached_property
    def step(self) -> float:
        """Pixels from one piece to the next."""
        return SLOT if self.is_across else BAND

    @cached_property
    def wide(self) -> float:
        """The width of a band in pixels: that of the longest text."""
        texts = (f"{piece.label}  {piece.origin}" for piece in self.pieces)
        return max(WIDE, 24 + LABEL * max(map(advance, texts), default=0.0))

    @cached_property
    def starts(self) -> tuple[float, ...]:
        """The start of each piece, along the cut axis."""
        at, before = (4.0 if self.is_across else LABEL + 10), 0
        starts = []
        for piece in self.pieces:
            at += GAP * (piece.block - before) + REST * piece.after_gap
            starts.append(at)
            at, before = at + self.step, piece.block
        return tuple(starts)

    @property
    def _end(self) -> float:
        last = self.starts[-1] + self.step if self.starts else 0.0
        return last + REST * self.ends_in_gap

    @property
    def width(self) -> float:
        if self.is_across:
            names = max(map(advance, self.sides)) * LABEL
            return names + 12 + max(self._end, SLOT) + 6
        return self.room + self.wide + self.bracket

    @property
    def height(self) -> float:
        return 2 * FLAT + TALL - 14 if self.is_across else self._end + 4

    def brackets(self, of: Callable[[Piece], str]) -> Iterator[Bracket]:
        """The parts of a side, each over its run of pieces; none over pieces of no part."""
        placed = zip(self.pieces, self.starts)
        for (name, _), run in groupby(placed, lambda item: (of(item[0]), item[0].block)):
            starts = [start for _, start in run]
            if name:
                yield Bracket(starts[0], starts[-1] + self.step - 2, name)

    def frames(self) -> Iterator[tuple[float, float]]:
        """The ends of the runs of pieces that the selected GPU receives, block by block."""
        placed = zip(self.pieces, self.starts)
        for (_, is_wanted), run in groupby(placed, lambda item: (item[0].block, item[0].is_wanted)):
            starts = [start for _, start in run]
            if is_wanted:
                yield starts[0] - 2, starts[-1] + self.step
