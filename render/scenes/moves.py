"""Who sends what to one GPU, as plain data: both layouts beside each other, and one tensor cut.

a row       a pipeline stage
a box       a shard of the model: one tp group
a line      what the chosen GPU receives, thick by bytes; dashed: it has that already
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Lines, Mark, Words
from ..palette import GROUP_INK, KIND_COLOURS, KIND_TINTS, PLAIN_CELL, TONES

CELL, DIGIT, APART, BETWEEN = 27.0, 9.0, 2.0, 10.0
"""Pixels: width of a GPU with up to three digits, of each further one, from one GPU to the next,
and from box to box."""

LETTER = 12.5
"""Pixels of letters: of 16 rows a slide has room for them in ten points."""

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
        first = max((row.width for row in self.sides[0]), default=0.0)
        return LEFT, LEFT + first + MIDDLE + LEFT

    @property
    def width(self) -> float:
        last = max((row.width for row in self.sides[1]), default=0.0)
        return self.starts[1] + max(last, 180.0)

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


def draw_moves(picture: MovesPicture, theme: str) -> Iterator[Mark]:
    """Both layouts, and a line from each sender to the chosen GPU."""
    look, ink = LOOKS[theme], GROUP_INK[theme]
    own = {line.rank for line in picture.lines if line.is_own}
    places: dict[tuple[int, int], tuple[float, float]] = {}
    corners, fills = [], []
    words: list[Mark] = []
    for side in (0, 1):
        x = picture.starts[side]
        words.append(Words(x, TOP - 12, picture.titles[side], LETTER + 0.5, look.ink, bold=True))
        for number, row in enumerate(picture.sides[side]):
            y = TOP + number * picture.pitch + picture.tall / 2
            words.append(
                Words(x - 8, y, row.label, LETTER, look.quiet, anchor="end", is_middle=True)
            )
        for rank, left, top in picture.cells(side):
            middle = (left + picture.cell / 2, top + picture.tall / 2)
            if rank < 0:
                words.append(Words(*middle, "…", LETTER, look.quiet, "middle", is_middle=True))
                continue
            places[side, rank] = middle
            tone = picture.tone(rank) if side == 0 else ""
            is_chosen = side == 1 and rank == picture.chosen
            fill = KIND_TINTS[theme][tone] if tone else PLAIN_CELL[theme]
            corners.append((left, top))
            fills.append(ink if is_chosen else look.edge if side == 0 and rank in own else fill)
            if tone or is_chosen or (side == 0 and rank in own):
                colour = look.page if is_chosen else ink
                words.append(
                    Words(*middle, str(rank), LETTER, colour, "middle", bold=True, is_middle=True)
                )
    yield from _lines(picture, places, theme)
    yield Blocks(np.array(corners), np.array([picture.cell, picture.tall]), fills, radius=3)
    yield from words


def _lines(
    picture: MovesPicture, places: dict[tuple[int, int], tuple[float, float]], theme: str
) -> Iterator[Mark]:
    """Down from a sender, below its row to the room between both, and up to the chosen GPU."""
    end, half = places.get((1, picture.chosen)), picture.tall / 2
    drawn = [line for line in picture.lines if (0, line.rank) in places and end]
    starts = [places[0, line.rank] for line in drawn]
    below = [sum(other[1] == start[1] for other in starts[:at]) for at, start in enumerate(starts)]
    for number, (line, start) in enumerate(zip(drawn, starts)):
        assert end is not None
        lane = start[1] + half + 3 + min(below[number], 3 if half * 2 == TALL else 1) * LANE
        turn = picture.starts[1] - LEFT - 14 - number * min(LANE, (MIDDLE - 30) / len(drawn))
        last = end[1] + half + 4 + number * LANE
        at = end[0] + (number - (len(drawn) - 1) / 2) * min(LANE, (picture.cell - 6) / len(drawn))
        path = [
            *((start[0], start[1] + half), (start[0], lane), (turn, lane)),
            *((turn, last), (at, last), (at, end[1] + half)),
        ]
        tone = picture.tone(line.rank)
        colour = LOOKS[theme].quiet if line.is_own else KIND_COLOURS[theme][tone]
        dashes = (5.0, 4.0) if line.is_own else ()
        yield Lines([np.array(path)], colour, 1.0 + 1.8 * line.share, dashes)


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


def draw_tensor(picture: TensorPicture, theme: str) -> Iterator[Mark]:
    """The parts one below the other, and a frame round those that are wanted."""
    look, ink = LOOKS[theme], GROUP_INK[theme]
    corners, fills = [], []
    words: list[Mark] = []
    frames: dict[int, list[float]] = {}
    for band, top in zip(picture.bands, picture.tops):
        corners.append((LEFT, top))
        tint = KIND_TINTS[theme][band.tone] if band.tone else PLAIN_CELL[theme]
        fills.append(look.edge if band.is_own else tint)
        middle = top + BAND / 2
        colour = ink if band.tone or band.is_own else look.quiet
        words.append(Words(LEFT + 8, middle, band.label, LABEL, colour, is_middle=True))
        words.append(
            Words(LEFT + WIDE - 12, middle, band.told, LABEL, colour, anchor="end", is_middle=True)
        )
        if band.is_wanted:
            frames.setdefault(band.block, []).append(top)
    yield Blocks(np.array(corners), np.array([WIDE - 4, BAND - 2]), fills, radius=2)
    for number, name in enumerate(picture.names):
        tops = [top for band, top in zip(picture.bands, picture.tops) if band.block == number]
        if name and tops:
            y = (tops[0] + tops[-1] + BAND) / 2
            words.append(Words(LEFT - 10, y, name, LABEL, look.quiet, anchor="end", is_middle=True))
    if frames:
        boxes = [(LEFT - 2, tops[0] - 2) for tops in frames.values()]
        sizes = [(WIDE, tops[-1] - tops[0] + BAND + 2) for tops in frames.values()]
        yield Blocks(np.array(boxes), np.array(sizes), edge=look.ink, width=1.8, radius=4)
    yield from words
