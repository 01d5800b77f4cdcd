"""A time axis at several scales -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LOOKS, Blocks, Lines, Mark, Words, fits
from ..palette import KIND_MARKS, WAITING, ink
from ..scenes.timeline import PHASES, shade
from ..scenes.zooms import GUTTER, LEVEL, WEDGE, ZoomLevel, ZoomsPicture

SIZE = 12.0
"""Font size of all words."""


def colour_of(kind: str, theme: str) -> str:
    """The colour of a part: of an op as in timelines, of a transfer that of its kind."""
    look = LOOKS[theme]
    if kind in PHASES:
        return shade(kind, 0)
    own = {"idle": WAITING[theme], "rest": look.ground, "optimizer": look.edge}
    return own.get(kind) or KIND_MARKS[theme].get(kind) or shade("I", 0)


def draw_zooms(picture: ZoomsPicture, theme: str) -> Iterator[Mark]:
    """A bar for each level, its name before it, and a wedge from the part that the next one is."""
    look, wide = LOOKS[theme], picture.width - GUTTER
    for number, level in enumerate(picture.levels):
        y = number * (LEVEL + WEDGE) + 1.0
        yield Words(0.0, y + LEVEL / 2, level.name, SIZE, look.ink, bold=True, is_middle=True)
        yield from _bar(level, wide, y, theme)
        if level.at is not None and number + 1 < len(picture.levels):
            left, right = (GUTTER + at * wide for at in (level.at.start, level.at.end))
            top, foot = y + LEVEL, y + LEVEL + WEDGE
            wedge = [(left, top), (right, top), (GUTTER + wide, foot), (GUTTER, foot)]
            yield Lines([np.array(wedge)], fill=look.ground)


def _bar(level: ZoomLevel, wide: float, y: float, theme: str) -> Iterator[Mark]:
    look = LOOKS[theme]
    corners = np.array([[GUTTER + part.start * wide, y] for part in level.parts])
    sizes = np.array([[max(part.wide * wide - 0.7, 0.3), LEVEL] for part in level.parts])
    yield Blocks(corners, sizes, [colour_of(part.kind, theme) for part in level.parts])
    for part, (x, _), (size, _) in zip(level.parts, corners.tolist(), sizes.tolist()):
        if part.text and fits(part.text, (size - 8) / SIZE):
            reads = look.ink if part.kind == "rest" else ink(colour_of(part.kind, theme))
            yield Words(
                x + size / 2, y + LEVEL / 2, part.text, SIZE, reads, "middle", is_middle=True
            )
    if level.at is not None:
        at = level.at
        box = np.array([[GUTTER + at.start * wide, y]])
        size = np.array([max(at.wide * wide - 0.7, 1.0), LEVEL])
        yield Blocks(box, size, edge=look.ink, width=2.0)
