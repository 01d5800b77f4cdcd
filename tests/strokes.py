"""Every stroke of a picture against every text box, from the marks that it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from render.marks import Blocks, Lines, Mark, Words, advance, flat

TALL = {"up": 0.74, "down": 0.21}
"""How far letters reach above and below their baseline, in font sizes."""

BELOW = frozenset("gjpqy,;()·Q")
"""Letters that reach below it, beside Chinese ones."""


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float


class Crossed(NamedTuple):
    """A text and the stroke that runs through its box."""

    text: str
    box: Box
    stroke: tuple[tuple[float, float], tuple[float, float]]


def text_box(words: Words) -> Box:
    """The letters of a line of text, in pixels.

    >>> text_box(Words(10, 20, "42", 10, "#000", "end"))[1:]
    (12.6, 10.0, 20.2)
    """
    wide = advance(words.text, words.bold, words.mono) * words.size
    left = words.x - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[words.anchor]
    reaches = any(one in BELOW or one > "\u2e80" for one in words.text)
    down = TALL["down"] if reaches else 0.02
    return Box(left, words.y - TALL["up"] * words.size, left + wide, words.y + down * words.size)


def crossings(marks: Iterable[Mark]) -> Iterator[Crossed]:
    """Each text with a stroke through its box, but for those that an opaque box hides."""
    drawn = list(flat(marks))
    for place, words in enumerate(drawn):
        if not isinstance(words, Words) or not words.text.strip():
            continue
        box = text_box(words)
        covers = [at for at, mark in enumerate(drawn[:place]) if _covers(mark, box)]
        hidden = max(covers, default=-1)
        for at, mark in enumerate(drawn):
            if at == place or at <= hidden:
                continue
            for first, last, width in _segments(mark):
                if _meets(np.array([*first]), np.array([*last]), box, width / 2):
                    yield Crossed(words.text, box, (first, last))


def outside(marks: Iterable[Mark]) -> Iterator[tuple[str, Box, Box]]:
    """Texts that reach out of the box that they stand on: of the smallest one painted before."""
    drawn = list(flat(marks))
    for place, words in enumerate(drawn):
        if not isinstance(words, Words):
            continue
        box = text_box(words)
        x, y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
        under = [
            Box(left, top, left + wide, top + tall)
            for mark in drawn[:place]
            if isinstance(mark, Blocks) and mark.fill != "none"
            for left, top, wide, tall in mark.each()
            if left <= x <= left + wide and top <= y <= top + tall
        ]
        if under:
            own = min(under, key=lambda one: (one.right - one.left) * (one.bottom - one.top))
            if box.left < own.left - 0.01 or box.right > own.right + 0.01:
                yield words.text, box, own


def _covers(mark: Mark, box: Box) -> bool:
    if not isinstance(mark, Blocks) or (isinstance(mark.fill, str) and mark.fill == "none"):
        return False
    return any(
        left <= box.left + 0.5
        and top <= box.top + 0.5
        and left + wide >= box.right - 0.5
        and top + tall >= box.bottom - 0.5
        for left, top, wide, tall in mark.each()
    )


Point = tuple[float, float]


def _segments(mark: Mark) -> Iterator[tuple[Point, Point, float]]:
    """The straight parts of what is stroked, and their width; a ring as a polygon."""
    if isinstance(mark, Lines) and mark.colour != "none":
        for line in mark.lines:
            points = [(float(x), float(y)) for x, y in line]
            ends = [*points, points[0]] if mark.fill != "none" else points
            yield from ((one, other, mark.width) for one, other in pairwise(ends))
    elif isinstance(mark, Blocks) and mark.edge != "none":
        for left, top, wide, tall in mark.each():
            round_ = 2 * mark.radius >= max(wide, tall) - 0.01
            turns = np.linspace(0, 2 * np.pi, 25 if round_ else 5) + (0 if round_ else np.pi / 4)
            reach = 0.5 if round_ else 0.5**0.5
            points = [
                (left + wide / 2 + reach * wide * float(np.cos(turn)),
                 top + tall / 2 + reach * tall * float(np.sin(turn)))
                for turn in turns
            ]  # fmt: skip
            yield from ((one, other, mark.width) for one, other in pairwise(points))


def _meets(first: np.ndarray, last: np.ndarray, box: Box, half: float) -> bool:
    """Whether a line of a width enters a box: Liang and Barsky's clipping."""
    low = np.array([box.left - half, box.top - half]) + 0.05
    high = np.array([box.right + half, box.bottom + half]) - 0.05
    way = last - first
    enter, leave = 0.0, 1.0
    for axis in range(2):
        if abs(way[axis]) < 1e-9:
            if not low[axis] < first[axis] < high[axis]:
                return False
            continue
        near, far = sorted((bound[axis] - first[axis]) / way[axis] for bound in (low, high))
        enter, leave = max(enter, near), min(leave, far)
    return enter < leave
