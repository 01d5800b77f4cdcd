"""Who sends what to one GPU -> marks: both layouts beside each other, and one tensor cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Lines, Mark, Words
from ..palette import GROUP_INK, KIND_COLOURS, KIND_TINTS, PLAIN_CELL
from ..scenes.moves import (
    BAND,
    LANE,
    LEFT,
    LETTER,
    MIDDLE,
    TALL,
    TITLE,
    TOP,
    WIDE,
    MovesPicture,
    TensorPicture,
)


def draw_moves(picture: MovesPicture, theme: str) -> Iterator[Mark]:
    """Both layouts, and a line from each sender to the chosen GPU."""
    look, ink = LOOKS[theme], GROUP_INK[theme]
    own = {line.rank for line in picture.lines if line.is_own}
    places: dict[tuple[int, int], tuple[float, float]] = {}
    corners, fills = [], []
    words: list[Mark] = []
    for side in (0, 1):
        x = picture.starts[side]
        words.append(Words(x, TOP - 12, picture.titles[side], TITLE, look.ink, bold=True))
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
