"""The senders of one GPU -> marks: both layouts beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..marks import LOOKS, Blocks, Layer, Lines, Mark, Words
from ..palette import GROUP_INK, PLAIN_CELL, SHADE_INKS, SHADES
from ..scenes.moves import (
    ASIDE,
    LANE,
    LEFT,
    LETTER,
    MIDDLE,
    TALL,
    TITLE,
    MovesPicture,
    SentLine,
)

SENT = "heat7"
"""The shade of lines, which are thick by bytes."""


def draw_moves(picture: MovesPicture, theme: str) -> Iterator[Mark]:
    """Both layouts, and a line from each sender to the selected GPU."""
    look, ink = LOOKS[theme], GROUP_INK[theme]
    own = {line.rank for line in picture.lines if line.is_own}
    places: dict[tuple[int, int], tuple[float, float]] = {}
    corners, fills = [], []
    words: list[Mark] = []
    for side in (0, 1):
        x = picture.starts[side]
        left = 0.0 if picture.is_stacked else x
        title = left, picture.tops[side] - 12, picture.titles[side], TITLE, look.ink
        words.append(Words(*title, bold=True))
        for number, row in enumerate(picture.sides[side]):
            y = picture.tops[side] + number * picture.pitch + picture.tall / 2
            words.append(
                Words(x - 8, y, row.label, LETTER, look.quiet, anchor="end", is_middle=True)
            )
        for rank, left, top in picture.cells(side):
            middle = (left + picture.cell / 2, top + picture.tall / 2)
            if rank < 0:
                words.append(Words(*middle, "…", LETTER, look.quiet, "middle", is_middle=True))
                continue
            places[side, rank] = middle
            shade = picture.shades.get(rank, "") if side == 0 else ""
            is_chosen = side == 1 and rank == picture.chosen
            fill = SHADES[theme][shade] if shade else PLAIN_CELL[theme]
            corners.append((left, top))
            fills.append(ink if is_chosen else look.edge if side == 0 and rank in own else fill)
            if shade or is_chosen or (side == 0 and rank in own):
                on_cell = SHADE_INKS[theme][shade] if shade else ink
                colour = look.page if is_chosen else on_cell
                words.append(
                    Words(*middle, str(rank), LETTER, colour, "middle", bold=True, is_middle=True)
                )
    yield from _lines(picture, places, theme)
    yield Blocks(np.array(corners), np.array([picture.cell, picture.tall]), fills, radius=3)
    yield from words


def _lines(
    picture: MovesPicture, places: dict[tuple[int, int], tuple[float, float]], theme: str
) -> Iterator[Mark]:
    """Lines down from a sender, below its row to the space beside both layouts, and up to the
    selected GPU."""
    end = places.get((1, picture.chosen))
    drawn = [line for line in picture.lines if (0, line.rank) in places and end]
    if end is None or not drawn:
        return
    if picture.is_bundled:
        yield from _bundles(picture, drawn, places, end, theme)
        return
    starts = [places[0, line.rank] for line in drawn]
    below = [sum(other[1] == start[1] for other in starts[:at]) for at, start in enumerate(starts)]
    for number, (line, start) in enumerate(zip(drawn, starts)):
        lane = _lane(picture, start[1], below[number])
        way = _way(picture, lane, end, (number, len(drawn)))
        first = [(start[0], start[1] + picture.tall / 2), (start[0], lane)]
        colour = LOOKS[theme].quiet if line.is_own else SHADES[theme][SENT]
        dashes = (5.0, 4.0) if line.is_own else ()
        drawing = Lines([np.array([*first, *way])], colour, 1.0 + 1.8 * line.share, dashes)
        yield Layer(f"way r{line.rank}", [drawing])


def _bundles(
    picture: MovesPicture,
    drawn: Sequence[SentLine],
    places: dict[tuple[int, int], tuple[float, float]],
    end: tuple[float, float],
    theme: str,
) -> Iterator[Mark]:
    """Lines of a row that join below it; the trunks of all rows become one beside them, for as many
    as there are rows would run side by side all the way."""
    look, total = LOOKS[theme], sum(line.share for line in drawn)
    rows = sorted({places[0, line.rank][1] for line in drawn})
    for row in rows:
        own = [line for line in drawn if places[0, line.rank][1] == row]
        lane = _lane(picture, row, 0)
        for line in own:
            x = places[0, line.rank][0]
            colour = look.quiet if line.is_own else SHADES[theme][SENT]
            stub = np.array([(x, row + picture.tall / 2), (x, lane)])
            yield Layer(f"way r{line.rank}", [Lines([stub], colour, 1.6)])
        first = (min(places[0, line.rank][0] for line in own), lane)
        trunk = np.array([first, *_way(picture, lane, end, (0, 1))])
        width = 1.0 + 4.0 * sum(line.share for line in own) / total
        yield Layer("trunk", [Lines([trunk], look.quiet, width)])


def _lane(picture: MovesPicture, row: float, place: int) -> float:
    """The distance of a line's horizontal part below its row."""
    half = picture.tall / 2
    return row + half + 3 + min(place, 3 if picture.tall == TALL else 1) * LANE


def _way(
    picture: MovesPicture, lane: float, end: tuple[float, float], place: tuple[int, int]
) -> list[tuple[float, float]]:
    """The path from a lane to the selected GPU; place: the index among parallel lines."""
    (number, count), half = place, picture.tall / 2
    turn = picture.starts[1] - LEFT - 14 - number * min(LANE, (MIDDLE - 30) / count)
    if picture.is_stacked:
        turn = picture.width - 3 - number * min(LANE, (ASIDE - 8) / count)
    last = end[1] + half + 4 + number * LANE
    at = end[0] + (number - (count - 1) / 2) * min(LANE, (picture.cell - 6) / count)
    return [(turn, lane), (turn, last), (at, last), (at, end[1] + half)]
