"""The name of each group of the chosen GPU at its end: a second cue beside colour where cells are
too small for numbers and lines.

A tag stands beside the member that is furthest from the chosen GPU in its row or column, or
furthest of all where there is none: beyond it in a row, in a column to its right, as the labels of
the next rows stand below; within its band, beside which those of the next one stand; and never on
another tag. The page's script does the same
(gradio/picture/marks.js).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

TALL, LETTER, AROUND = 14.0, 6.2, 8.0
"""Pixels: height of a tag, width of a letter in it, and of what is round its letters."""

AGAIN = 6
"""How often a tag makes way for others."""


@dataclass(frozen=True)
class Tag:
    """A name in its tone; x and y are the middle, in pixels."""

    name: str
    tone: str
    x: float
    y: float

    @property
    def width(self) -> float:
        return LETTER * len(self.name) + AROUND


def tags_of(
    marks: Sequence[tuple[str, str, np.ndarray]],
    rank: int,
    middles: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    reach: Callable[[int], float],
    room: tuple[float, float, float, float],
    jump: float = 0.0,
) -> tuple[Tag, ...]:
    """A tag a group of several ranks.

    marks: name, tone and ranks of each. middles: x and y of the middles of ranks' cells. reach:
    pixels from the middle of a marked cell to its side, by the size of its group. room: left, top,
    right and bottom of where tags stand. jump: pixels from a band to the next beside it, if any.

    >>> row = lambda ranks: (10.0 * ranks + 5, np.full(len(ranks), 5.0))
    >>> tag, = tags_of([("dp", "dp", np.arange(3))], 0, row, lambda size: 5.0, (0, 0, 99, 30))
    >>> (tag.x, tag.y, tag.width)
    (40.2, 7.0, 20.4)
    """
    from_x, from_y = (float(middle[0]) for middle in middles(np.array([rank])))
    taken = [(from_x, from_y, TALL)]
    tags = []
    for name, tone, ranks in marks:
        others = ranks[ranks != rank]
        if not len(others):
            continue
        xs, ys = middles(others)
        dx, dy = xs - from_x, ys - from_y
        aligned = np.flatnonzero((np.abs(dx) < 0.5) | (np.abs(dy) < 0.5))
        places = aligned if len(aligned) else np.arange(len(others))
        far = places[np.argmax(np.rint(np.abs(dx[places]) + np.abs(dy[places])))]
        wide = LETTER * len(name) + AROUND
        x, y = float(xs[far]), float(ys[far])
        _, top, _, bottom = room
        left, right = _band(room, jump, x, wide)
        beside = reach(len(ranks)) + wide / 2
        is_left = dx[far] < 0 if abs(dx[far]) >= abs(dy[far]) else x + beside > right - wide / 2
        x += -beside if is_left else beside
        x = min(max(x, left + wide / 2), right - wide / 2)
        y = min(max(y, top + TALL / 2), bottom - TALL / 2)
        for _ in range(AGAIN):
            if all(abs(x - at) >= (wide + w) / 2 or abs(y - on) >= TALL for at, on, w in taken):
                break
            y += TALL if y + 1.5 * TALL <= bottom else -TALL * AGAIN / 2
        taken.append((x, y, wide))
        tags.append(Tag(name, tone, round(float(x), 2), round(float(y), 2)))
    return tuple(tags)


def _band(
    room: tuple[float, float, float, float], jump: float, x: float, wide: float
) -> tuple[float, float]:
    """Left and right of the band at x; of the room where a band has none for what is so wide."""
    left, _, right, _ = room
    if not jump:
        return left, right
    band = left + (x - left) // jump * jump, right - (right - x) // jump * jump
    return (left, right) if band[1] - band[0] < wide else band
