"""The GPUs of servers on their nodes, and the requests of their cache -> marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Lines, Mark, Words
from ..palette import FILLS, GROUP_INK, PLAIN_CELL, fill_of
from ..scenes.server import (
    APART,
    BAR,
    BAR_TOP,
    MOST_REQUESTS,
    PAD,
    SQUARE,
    STRIP,
    TILE,
    TITLE,
    RequestStrip,
    Segment,
    ServerPicture,
    Tile,
)

CACHE = "step0"
"""The fill of the cache."""

HATCH = 5.0
"""Pixels between two lines of a hatch."""


def draw_bar(
    bar: Sequence[Segment], theme: str, left: float = 0.0, top: float = 0.0
) -> Iterator[Mark]:
    """The bar of a tile: the same on all GPUs with the same content."""
    look = LOOKS[theme]
    x, y = left + PAD, top + BAR_TOP
    yield Blocks(np.array([[x, y]]), np.array([TILE, BAR]), look.ground)
    for segment in bar:
        long = TILE * segment.share
        if long >= 0.2:
            corner, size = np.array([[x, y]]), np.array([long, BAR])
            yield Blocks(corner, size, fill_of(segment.colour, theme))
            if segment.is_copied:
                yield Lines(hatched(x, y, long, BAR), look.quiet, 0.8)
        x += long


def draw_tile(
    tile: Tile, theme: str, left: float = 0.0, top: float = 0.0, *, with_bar: bool = True
) -> Iterator[Mark]:
    """A GPU as a card; its bar may be drawn once for many."""
    look = LOOKS[theme]
    edge, wide = (look.ink, 1.8) if tile.is_chosen else (look.edge, 1.0)
    corner, size = np.array([[left + 1, top + 1]]), np.array([tile.width - 2, tile.height - 2])
    yield Blocks(corner, size, look.page, edge=edge, width=wide, radius=4)
    x = left + PAD
    yield Words(x, top + PAD + LABEL, tile.name, LABEL, look.ink, bold=True)
    if with_bar:
        yield from draw_bar(tile.bar, theme, left, top)
    y = top + BAR_TOP + BAR + PAD
    if tile.heads:
        shown = np.array([[x + place * (SQUARE + 1.5), y] for place in range(len(tile.heads))])
        yield Blocks(shown, np.array([SQUARE, SQUARE]), PLAIN_CELL[theme], edge=look.edge, radius=2)
        for (sx, sy), head in zip(shown.tolist(), tile.heads):
            if tile.is_copied:
                yield Lines(hatched(sx, sy, SQUARE, SQUARE), look.quiet, 0.6)
            middle = sx + SQUARE / 2, sy + SQUARE - 4
            yield Words(*middle, str(head), 9.5, GROUP_INK[theme], "middle", bold=True)
    if tile.note:
        after = len(tile.heads) * (SQUARE + 1.5)
        yield Words(x + after + 3 * bool(tile.heads), y + SQUARE - 4, tile.note, 10, look.quiet)
    if tile.heads or tile.note:
        y += SQUARE + PAD
    for line in tile.lines:
        y += LABEL
        yield Words(x, y, line, 10, look.quiet)
        y += 3


def draw_strip(
    strip: RequestStrip, theme: str, left: float = 0.0, top: float = 0.0
) -> Iterator[Mark]:
    """The cache as one bar, with a box for each request; the rest is too small for a whole one."""
    look, fill = LOOKS[theme], FILLS[theme][CACHE]
    whole = int(strip.requests)
    frame = np.array([[left, top]]), np.array([strip.length, STRIP])
    yield Blocks(*frame, look.ground, edge=look.edge)
    if strip.is_band:
        yield Blocks(*frame, fill)
        every = np.linspace(0, strip.length, MOST_REQUESTS + 1)[1:-1]
        lines = [[(left + at, top), (left + at, top + STRIP)] for at in every.tolist()]
        yield Lines(lines, look.page, 0.7, opacity=0.8)
    elif whole:
        each = strip.length / strip.requests
        corners = np.array([[left + place * each, top] for place in range(whole)])
        yield Blocks(corners, np.array([each, STRIP]), fill, edge=look.page)
        if each >= 16:
            for place in range(whole):
                x, y = left + (place + 0.5) * each, top + STRIP / 2 + 4
                yield Words(x, y, str(place + 1), LABEL, look.page, "middle")
    if strip.label:
        yield Words(left, top + STRIP + LABEL + 4, strip.label, LABEL, look.quiet)


def draw_server(picture: ServerPicture, theme: str) -> Iterator[Mark]:
    """The whole picture, for files; the page places the tiles by its width."""
    look, y = LOOKS[theme], 0.0
    right, down = picture.step
    for name, tiles in picture.nodes:
        yield Words(0, y + LABEL + 2, name, LABEL, look.quiet)
        y += TITLE
        for place, tile in enumerate(tiles):
            row, column = divmod(place, picture.across)
            yield from draw_tile(tile, theme, column * right, y + row * down)
        y += -(-len(tiles) // picture.across) * down
    y += APART
    yield from draw_strip(picture.strip, theme, 0.0, y)
    if picture.line:
        y += picture.strip.height + LABEL + 4
        yield Words(0, y, picture.line, LABEL, look.ink, mono=True)


def hatched(x: float, y: float, wide: float, tall: float) -> list[list[tuple[float, float]]]:
    """Slanting lines inside a box.

    >>> hatched(0, 0, 5, 5)
    [[(0.0, 5.0), (5.0, 0.0)]]
    """
    lines, offset = [], HATCH
    while offset < wide + tall:
        start = (x + max(0.0, offset - tall), y + min(offset, tall))
        end = (x + min(offset, wide), y + max(0.0, offset - wide))
        lines.append([start, end])
        offset += HATCH
    return lines
