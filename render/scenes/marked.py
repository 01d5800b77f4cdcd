"""The groups of one chosen rank among many cells: which they are, wider cells, and their names.

A tag is the name of a group at its end: a second cue beside colour where cells are too small for
numbers and lines. It stands beside the member that is furthest from the chosen GPU in its row or
column, or furthest of all where there is none: beyond it in a row, in a column to its right, as the
labels of the next rows stand below; within its band, beside which those of the next one stand; and
never on another tag. The page's script does the same (views/gradio/picture/marks.js).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from groups.grouping import Grouping

from ..palette import tones


@dataclass(frozen=True, eq=False)
class Mark:
    """The members of the chosen rank's group of one kind, and the tone that marks them."""

    kind: str
    ranks: np.ndarray
    tone: str


def marks_of(
    groupings: Sequence[Grouping], rank: int, tone: Mapping[str, str] | None = None
) -> tuple[Mark, ...]:
    """The groups that ``rank`` is in, largest first. tone: of each name; left out, as `tones`.

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


def spots(rank: int, marks: Sequence[Mark]) -> np.ndarray:
    """The chosen rank, then the members of each mark."""
    return np.concatenate([[rank], *(mark.ranks for mark in marks)])


def swell_of(ranks: int, seen: float, cells: int) -> int:
    """Cells by which marks are drawn wider on every side, so that they are ``seen`` cells wide.

    A few small cells among thousands are lost on a page; a group that would then cover a quarter of
    all cells stays as it is.

    >>> swell_of(8, 3.0, 16384), swell_of(4096, 3.0, 16384)
    (1, 0)
    """
    swell = max(0, math.ceil((seen - 1) / 2))
    while swell and ranks * (2 * swell + 1) ** 2 > cells / 4:
        swell -= 1
    return swell


def mark_board(
    shape: tuple[int, int],
    marks: Sequence[Mark],
    swell: Callable[[int], int],
    rows: np.ndarray,
    columns: np.ndarray,
) -> np.ndarray:
    """uint8 of this shape: 0 or 1 + the number of the mark, the last on top.

    rows, columns: of the cells of `spots`. At an edge, a swollen cell stays inside.
    """
    swells = [swell(len(mark.ranks)) for mark in marks]
    edge = max(swells, default=0)
    wide = shape[1] + 2 * edge
    board = np.zeros((shape[0] + 2 * edge) * wide, dtype=np.uint8)
    cells, first = (rows + edge) * wide + columns + edge, 1
    for number, (mark, more) in enumerate(zip(marks, swells), 1):
        of_mark = cells[first : first + len(mark.ranks)]
        first += len(mark.ranks)
        if more:
            ways = np.arange(-more, more + 1)
            around = np.add.outer(ways * wide, ways).reshape(-1)
            of_mark = np.add.outer(around, of_mark)
        board[of_mark] = number
    return board.reshape(-1, wide)[edge : edge + shape[0], edge : edge + shape[1]]


# -- the names of groups -------------------------------------------------------------------------

TALL, LETTER, AROUND = 14.0, 6.2, 8.0
"""Pixels: height of a tag, width of a letter in it, and of what is round its letters."""

AGAIN = 6
"""How often a tag makes way for others."""


class Tag(NamedTuple):
    """A name in its tone; x and y are the middle, in pixels."""

    name: str
    tone: str
    x: float
    y: float

    @property
    def width(self) -> float:
        return LETTER * len(self.name) + AROUND


def tags_of(
    marks: Sequence[Mark],
    rank: int,
    x: np.ndarray,
    y: np.ndarray,
    reach: Callable[[int], float],
    room: tuple[float, float, float, float],
    jump: float = 0.0,
) -> tuple[Tag, ...]:
    """A tag a group of several ranks.

    x, y: the middles of the cells of `spots`. reach: pixels from the middle of a marked cell to its
    side, by the size of its group. room: left, top, right and bottom of where tags stand. jump:
    pixels from a band to the next beside it, if any.

    >>> marks = [Mark("dp", np.arange(3), "dp")]
    >>> x = 10.0 * spots(0, marks) + 5
    >>> tag, = tags_of(marks, 0, x, np.full(4, 5.0), lambda size: 5.0, (0, 0, 99, 30))
    >>> (tag.x, tag.y, tag.width)
    (40.2, 7.0, 20.4)
    """
    dx, dy = x - x[0], y - y[0]
    across, down = np.abs(dx), np.abs(dy)
    far = np.rint(across + down)
    far[(across < 0.5) | (down < 0.5)] += far.max() + 1  # in its row or column before all others
    far[spots(rank, marks) == rank] = -1
    _, top, _, bottom = room
    taken = [(float(x[0]), float(y[0]), TALL)]
    tags, first = [], 1
    for mark in marks:
        of_mark = slice(first, first + len(mark.ranks))
        end = first + int(far[of_mark].argmax())
        first = of_mark.stop
        if far[end] < 0:
            continue
        wide = LETTER * len(mark.kind) + AROUND
        at_x, at_y = float(x[end]), float(y[end])
        left, right = _band(room, jump, at_x, wide)
        beside = reach(len(mark.ranks)) + wide / 2
        is_left = dx[end] < 0 if across[end] >= down[end] else at_x + beside > right - wide / 2
        at_x += -beside if is_left else beside
        at_x = min(max(at_x, left + wide / 2), right - wide / 2)
        at_y = min(max(at_y, top + TALL / 2), bottom - TALL / 2)
        at_y = _free_height(taken, (at_x, at_y, wide), bottom)
        taken.append((at_x, at_y, wide))
        tags.append(Tag(mark.kind, mark.tone, round(at_x, 2), round(at_y, 2)))
    return tuple(tags)


def _free_height(
    taken: Sequence[tuple[float, float, float]], tag: tuple[float, float, float], bottom: float
) -> float:
    """The height at which a tag is on none of those before; all as x, y and width."""
    x, y, wide = tag
    for _ in range(AGAIN):
        if all(abs(x - at) >= (wide + w) / 2 or abs(y - on) >= TALL for at, on, w in taken):
            break
        y += TALL if y + 1.5 * TALL <= bottom else -TALL * AGAIN / 2
    return y


def _band(
    room: tuple[float, float, float, float], jump: float, x: float, wide: float
) -> tuple[float, float]:
    """Left and right of the band at x; of the room where a band has none for what is so wide."""
    left, _, right, _ = room
    if not jump:
        return left, right
    band = left + (x - left) // jump * jump, right - (right - x) // jump * jump
    return (left, right) if band[1] - band[0] < wide else band
