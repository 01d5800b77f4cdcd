"""Who sends what to one GPU, as plain data: both layouts beside each other, and one tensor cut.

a row       a pipeline stage
a box       a shard of the model: one tp group
a line      what the chosen GPU receives, thick by bytes; dashed: it has that already
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..marks import advance
from ..palette import TONES

CELL, DIGIT, APART, BETWEEN = 27.0, 9.0, 2.0, 10.0
"""Pixels: width of a GPU with up to three digits, of each further one, from one GPU to the next,
and from box to box."""

LETTER, TITLE = 12.5, 13.0
"""Pixels of letters, and of titles: of 16 rows a slide has room for them in ten points."""

FEW_ROWS, TALL, BELOW, SMALL, CLOSE = 6, 26.0, 14.0, 17.0, 7.0
"""Up to so many rows a GPU is so tall, with so much below it; of more rows it is less."""

ROOM = 350.0
"""Pixels that the boxes of a row have; so many as fit are drawn."""

LANE = 3.5
"""Pixels from one line to the next."""

LEFT, TOP, MIDDLE = 64.0, 26.0, 110.0
"""Pixels: room for the names of stages, for the titles, and between both layouts."""

MOST_ROWS = 16
MOST_CELLS = 8
"""Stages of a layout, and GPUs of a box, that are drawn."""


@dataclass(frozen=True)
class ShardRow:
    """A stage: its name, and groups of ranks; a rank of -1 stands for those that are left out."""

    label: str
    boxes: tuple[tuple[int, ...], ...]
    cell: float = CELL

    @property
    def width(self) -> float:
        return sum(len(box) * (self.cell + APART) + BETWEEN for box in self.boxes)


def cell_width(last_rank: int) -> float:
    """Pixels of a GPU, so that the number of the last one has room.

    >>> cell_width(63), cell_width(16_383)
    (27.0, 45.0)
    """
    return CELL + DIGIT * max(0, len(str(last_rank)) - 3)


@dataclass(frozen=True)
class SentLine:
    """From a rank of the source to the chosen one: its share of the most, and whose colour."""

    rank: int
    share: float
    is_own: bool


@dataclass(frozen=True)
class MovesPicture:
    """What to draw: the rows of both layouts, their titles, the chosen rank, and its lines."""

    titles: tuple[str, str]
    sides: tuple[tuple[ShardRow, ...], tuple[ShardRow, ...]]
    chosen: int
    lines: tuple[SentLine, ...]

    @cached_property
    def starts(self) -> tuple[float, float]:
        """Where the cells of either side begin."""
        return LEFT, LEFT + self._wide(0) + MIDDLE + LEFT

    @property
    def width(self) -> float:
        return self.starts[1] + self._wide(1)

    def _wide(self, side: int) -> float:
        """Pixels that the rows and the title of a side need."""
        title = advance(self.titles[side], bold=True) * TITLE
        return max([title, *(row.width for row in self.sides[side])])

    @cached_property
    def tall(self) -> float:
        """Pixels of a GPU from top to bottom."""
        return TALL if max(map(len, self.sides)) <= FEW_ROWS else SMALL

    @property
    def pitch(self) -> float:
        """Pixels from one row to the next."""
        return self.tall + (BELOW if self.tall == TALL else CLOSE)

    @property
    def height(self) -> float:
        last = TOP + self.tall + 12 + len(self.lines) * LANE
        for rank, _, y in self.cells(1):
            if rank == self.chosen:
                last += y - TOP
        return max(last, TOP + max(map(len, self.sides)) * self.pitch + 8)

    @property
    def cell(self) -> float:
        """Pixels of a GPU from left to right."""
        return max((row.cell for side in self.sides for row in side), default=CELL)

    def tone(self, rank: int) -> str:
        """The tone of a sender: in turn, in the order of the lines."""
        senders = [line.rank for line in self.lines if not line.is_own]
        return TONES[senders.index(rank) % len(TONES)] if rank in senders else ""

    def cells(self, side: int) -> Iterator[tuple[int, float, float]]:
        """Ranks with the corner of their cells; -1 for what is left out."""
        for number, row in enumerate(self.sides[side]):
            x, y = self.starts[side], TOP + number * self.pitch
            for box in row.boxes:
                for rank in box:
                    yield rank, x, y
                    x += row.cell + APART
                x += BETWEEN


def shard_rows(
    groups: Sequence[Sequence[Sequence[int]]],
    labels: Sequence[str],
    shown: Collection[int],
    cell: float = CELL,
) -> tuple[ShardRow, ...]:
    """The rows of a layout: groups by stage. What does not fit is left out, never one of ``shown``
    while there is room.

    >>> rows = shard_rows([[range(0, 4), range(4, 8)]], ["stage 0"], {5})
    >>> rows[0].boxes
    ((0, 1, 2, 3), (4, 5, 6, 7))
    """
    wanted = [any(rank in shown for box in row for rank in box) for row in groups]
    order = sorted(range(len(groups)), key=lambda at: (not wanted[at], at))[:MOST_ROWS]
    return tuple(
        ShardRow(labels[at], _boxes(groups[at], shown, cell), cell) for at in sorted(order)
    )


def _boxes(
    groups: Sequence[Sequence[int]], shown: Collection[int], cell: float
) -> tuple[tuple[int, ...], ...]:
    thin = [_thinned(box, shown) for box in groups]
    order = sorted(range(len(thin)), key=lambda at: (not shown & {*thin[at]}, at))  # type: ignore[operator]
    kept: list[int] = []
    width = cell
    for at in order:
        width += len(thin[at]) * (cell + APART) + BETWEEN
        if width > ROOM and kept:
            break
        kept.append(at)
    boxes: list[tuple[int, ...]] = []
    before = -1
    for at in sorted(kept):
        if at != before + 1:
            boxes.append((-1,))
        boxes.append(thin[at])
        before = at
    return tuple(boxes) if before == len(thin) - 1 else (*boxes, (-1,))


def _thinned(box: Sequence[int], shown: Collection[int]) -> tuple[int, ...]:
    """The ranks of a box; of a wide one those that are shown, and the first ones."""
    ranks = [int(rank) for rank in box]
    if len(ranks) <= MOST_CELLS:
        return tuple(ranks)
    kept = sorted(ranks, key=lambda rank: (rank not in shown, rank))[: MOST_CELLS - 1]
    return (*sorted(kept), -1)


# -- one tensor ----------------------------------------------------------------------------------

BAND, WIDE, GAP = 22.0, 470.0, 10.0
"""Pixels: height and width of a part, and between two blocks."""

MOST_BANDS = 8
"""Parts of a block that are drawn."""


@dataclass(frozen=True)
class Band:
    """A part of a tensor as the source cuts it: what it is, where it comes from, whose colour."""

    block: int
    label: str
    told: str
    tone: str  # empty: the chosen GPU has it, or does not want it
    is_own: bool
    is_wanted: bool


@dataclass(frozen=True)
class TensorPicture:
    """A tensor as a stack of parts; frame: those that the chosen GPU is to hold."""

    bands: tuple[Band, ...]
    names: tuple[str, ...]  # of the blocks; one empty name for one

    width = WIDE + LEFT

    @cached_property
    def tops(self) -> tuple[float, ...]:
        return tuple(number * BAND + band.block * GAP + 2 for number, band in enumerate(self.bands))

    @property
    def height(self) -> float:
        return (self.tops[-1] if self.tops else 0.0) + BAND + 4
