"""One request's KV cache, cut as both sides cut it -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Lines, Mark, Words, fits
from ..palette import GROUP_INK, PLAIN_CELL, SHADE_INKS, SHADES
from ..scenes.kv import TALL, WIDE, KVPicture

GUTTER, FOOT, LEAST = 6.0, 4.0, 13.0
"""Pixels from the cache to a bracket, of the bracket's ends, and the least height of a name."""


def draw_kv(picture: KVPicture, theme: str) -> Iterator[Mark]:
    """The cache, the slices sent to the selected rank, the parts of both sides, and a frame."""
    look, ink = LOOKS[theme], GROUP_INK[theme]
    corner = np.array([[picture.left, picture.top]])
    yield Blocks(corner, np.array([WIDE, TALL]), PLAIN_CELL[theme], radius=2)
    for one in picture.slices:
        (first, after), (head, last) = one.layers, one.heads
        x, y = picture.x(head), picture.y(first)
        size = np.array([picture.x(last) - x - 1, picture.y(after) - y - 1])
        fill = look.edge if one.is_own else SHADES[theme][one.shade]
        yield Blocks(np.array([[x, y]]), size, fill, radius=2)
        if size[1] >= LEAST and fits(one.sender, size[0] / LABEL):
            middle = x + size[0] / 2, y + size[1] / 2
            on_slice = ink if one.is_own else SHADE_INKS[theme][one.shade]
            yield Words(*middle, one.sender, LABEL, on_slice, "middle", is_middle=True)
    yield from _cuts(picture, theme)
    yield from _stages(picture, theme)
    yield from _parts(picture, theme)
    (first, after), (head, last) = picture.own
    corner = np.array([[picture.x(head) - 2, picture.y(first) - 2]])
    wide, tall = picture.x(last) - picture.x(head), picture.y(after) - picture.y(first)
    size = np.array([wide + 3, tall + 3])
    yield Blocks(corner, size, edge=look.ink, width=1.8, radius=3)


def _cuts(picture: KVPicture, theme: str) -> Iterator[Mark]:
    """Lines where the source cuts the cache."""
    left, right = picture.left, picture.left + WIDE
    top, bottom = picture.top, picture.top + TALL
    rows = [picture.y(part.first) - 0.5 for part in picture.stages[0] if part.first]
    columns = [picture.x(part.first) - 0.5 for part in picture.parts[0] if part.first]
    lines = [[(left, y), (right, y)] for y in rows] + [[(x, top), (x, bottom)] for x in columns]
    yield Lines(lines, LOOKS[theme].page, 1.5)


def _stages(picture: KVPicture, theme: str) -> Iterator[Mark]:
    look = LOOKS[theme]
    yield Words(0, picture.y(0) - 8, picture.axes[0], LABEL, look.quiet)
    for side, at, foot, anchor in (
        (0, picture.left - GUTTER, FOOT, "end"),
        (1, picture.left + WIDE + GUTTER, -FOOT, "start"),
    ):
        for part in picture.stages[side]:
            start, end = picture.y(part.first) + 1, picture.y(part.after) - 1
            yield Lines([[(at + foot, start), (at, start), (at, end), (at + foot, end)]], look.edge)
            if end - start >= LEAST:
                y = (start + end) / 2
                yield Words(at - foot, y, part.name, LABEL, look.quiet, anchor, is_middle=True)


def _parts(picture: KVPicture, theme: str) -> Iterator[Mark]:
    look = LOOKS[theme]
    yield Words(picture.left, LABEL, picture.axes[1], LABEL, look.quiet)
    for side, at, foot, down in (
        (0, picture.top - GUTTER, FOOT, -LABEL),
        (1, picture.top + TALL + GUTTER, -FOOT, LABEL),
    ):
        for part in picture.parts[side]:
            start, end = picture.x(part.first) + 1, picture.x(part.after) - 1
            yield Lines([[(start, at + foot), (start, at), (end, at), (end, at + foot)]], look.edge)
            if fits(part.name, (end - start + 6) / LABEL):
                x = (start + end) / 2
                yield Words(x, at + down, part.name, LABEL, look.quiet, "middle", is_middle=True)
