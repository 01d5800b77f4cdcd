"""The senders of one GPU, as plain data: both layouts beside each other.

a row       a pipeline stage
a box       a shard of the model: one tp group
a line      what the chosen GPU receives, thick by bytes; dashed: it has that already. Many lines of
            one row join in a trunk, thick by what all of them send, and those of all rows in one
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..marks import advance
from ..palette import shade_of

CELL, DIGIT, APART, BETWEEN = 27.0, 9.0, 2.0, 10.0
"""Pixels: width of a GPU with up to three digits, of each further digit, between two GPUs, and
between two boxes."""

LETTER, TITLE = 12.5, 13.0
"""Font sizes of labels and of titles in pixels: with 16 rows a slide shows them in ten points."""

FEW_ROWS, TALL, BELOW, SMALL, CLOSE = 6, 26.0, 14.0, 17.0, 7.0
"""The most rows with tall GPUs; their height and the space below, and those of more rows."""

ROOM, NARROW = 350.0, 268.0
"""The width of a row's boxes in pixels, beside the other layout and above it; as many as fit are
drawn."""

LANE = 3.5
"""Pixels between two lines."""

LEFT, TOP, MIDDLE = 64.0, 26.0, 110.0
"""Pixels: for the names of stages, for the titles, and between both layouts."""

ASIDE, UNDER = 34.0, 20.0
"""Pixels: for lines beside two stacked layouts, and between these."""

MANY = 8
"""The most lines that lead to the selected GPU separately."""

MOST_ROWS = 16
MOST_CELLS = 8
"""The most stages of a layout, and GPUs of a box, that are drawn."""


@dataclass(frozen=True)
class ShardRow:
    """A stage: its name, and groups of ranks; -1 stands for ranks that are left out."""

    label: str
    boxes: tuple[tuple[int, ...], ...]
    cell: float = CELL

    @property
    def width(self) -> float:
        return sum(len(box) * (self.cell + APART) + BETWEEN for box in self.boxes)


def cell_width(last_rank: int) -> float:
    """The width of a GPU in pixels, so that the largest number fits.

    >>> cell_width(63), cell_width(16_383)
    (27.0, 45.0)
    """
    return CELL + DIGIT * max(0, len(str(last_rank)) - 3)


@dataclass(frozen=True)
class SentLine:
    """A line from a rank of the source to the selected rank: its share of the largest line."""

    rank: int
    share: float
    is_own: bool


@dataclass(frozen=True)
class MovesPicture:
    """What to draw: the rows of both layouts, their titles, the selected rank, and its lines.

    is_stacked: the target below the source, for narrow screens.
    """

    titles: tuple[str, str]
    sides: tuple[tuple[ShardRow, ...], tuple[ShardRow, ...]]
    chosen: int
    lines: tuple[SentLine, ...]
    is_stacked: bool = False

    @cached_property
    def starts(self) -> tuple[float, float]:
        """The left edges of the cells of both sides."""
        return LEFT, LEFT if self.is_stacked else LEFT + self._wide(0) + MIDDLE + LEFT

    @cached_property
    def tops(self) -> tuple[float, float]:
        """The upper edges of the rows of both sides."""
        below = TOP + len(self.sides[0]) * self.pitch + UNDER + TOP
        return TOP, below if self.is_stacked else TOP

    @property
    def is_bundled(self) -> bool:
        return len(self.lines) > MANY

    @property
    def width(self) -> float:
        if self.is_stacked:
            rows = (row.width for side in self.sides for row in side)
            return max(*map(self._title, (0, 1)), LEFT + max(rows) + ASIDE)
        return self.starts[1] + self._wide(1)

    def _wide(self, side: int) -> float:
        """The width of a side's rows and title in pixels."""
        return max([self._title(side), *(row.width for row in self.sides[side])])

    def _title(self, side: int) -> float:
        return advance(self.titles[side], bold=True) * TITLE

    @cached_property
    def tall(self) -> float:
        """The height of a GPU in pixels."""
        return TALL if max(map(len, self.sides)) <= FEW_ROWS else SMALL

    @property
    def pitch(self) -> float:
        """Pixels from one row to the next."""
        return self.tall + (BELOW if self.tall == TALL else CLOSE)

    @property
    def height(self) -> float:
        lanes = 1 if self.is_bundled else len(self.lines)
        last = self.tops[1] + self.tall + 12 + lanes * LANE
        for rank, _, y in self.cells(1):
            if rank == self.chosen:
                last += y - self.tops[1]
        ends = (top + len(rows) * self.pitch for top, rows in zip(self.tops, self.sides))
        return max(last, max(ends) + 8)

    @property
    def cell(self) -> float:
        """The width of a GPU in pixels."""
        return max((row.cell for side in self.sides for row in side), default=CELL)

    @cached_property
    def shades(self) -> dict[int, str]:
        """The shade of each sender by its bytes: of 49 senders no colour could tell one from
        another, the numbers in their cells do."""
        return {line.rank: shade_of(line.share) for line in self.lines if not line.is_own}

    def cells(self, side: int) -> Iterator[tuple[int, float, float]]:
        """Ranks with the corner of their cells; -1 for those left out."""
        for number, row in enumerate(self.sides[side]):
            x, y = self.starts[side], self.tops[side] + number * self.pitch
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
    room: float = ROOM,
) -> tuple[ShardRow, ...]:
    """The rows of a layout: groups by stage. Ranks that do not fit are left out; those in ``shown``
    are kept first.

    >>> rows = shard_rows([[range(0, 4), range(4, 8)]], ["stage 0"], {5})
    >>> rows[0].boxes
    ((0, 1, 2, 3), (4, 5, 6, 7))
    """
    wanted = [any(rank in shown for box in row for rank in box) for row in groups]
    order = sorted(range(len(groups)), key=lambda at: (not wanted[at], at))[:MOST_ROWS]
    return tuple(
        ShardRow(labels[at], _boxes(groups[at], shown, cell, room), cell) for at in sorted(order)
    )


def _boxes(
    groups: Sequence[Sequence[int]], shown: Collection[int], cell: float, room: float
) -> tuple[tuple[int, ...], ...]:
    most = MOST_CELLS
    while most > 2 and _shown_width(groups, shown, cell, most) > room:
        most -= 1
    thin = [_thinned(box, shown, most) for box in groups]
    order = sorted(range(len(thin)), key=lambda at: (not shown & {*thin[at]}, at))  # type: ignore[operator]
    kept: list[int] = []
    width = cell
    for at in order:
        width += len(thin[at]) * (cell + APART) + BETWEEN
        if width > room and kept:
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


def _shown_width(
    groups: Sequence[Sequence[int]], shown: Collection[int], cell: float, most: int
) -> float:
    """The width in pixels of the boxes that must be drawn, with ``most`` GPUs each and a mark
    between."""
    boxes = (_thinned(box, shown, most) for box in groups if any(rank in shown for rank in box))
    return sum((len(box) + 1) * (cell + APART) + 2 * BETWEEN for box in boxes)


def _thinned(box: Sequence[int], shown: Collection[int], most: int) -> tuple[int, ...]:
    """The ranks drawn in a box: all of them, or in a wide box the ranks in ``shown`` and the first
    ones."""
    ranks = [int(rank) for rank in box]
    if len(ranks) <= most:
        return tuple(ranks)
    few = min(max(most - 1, sum(rank in shown for rank in ranks)), MOST_CELLS - 1)
    kept = sorted(ranks, key=lambda rank: (rank not in shown, rank))[:few]
    return (*sorted(kept), -1)
