"""One tensor, cut as both sides of a move cut it -> marks."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Lines, Mark, Words, advance
from ..palette import GROUP_INK, PLAIN_CELL, SHADE_INKS, SHADES
from ..scenes.tensor import BAND, FLAT, GUTTER, REST, TALL, TensorPicture

FOOT = 5.0
"""Pixels of the ends of a bracket."""


def draw_tensor(picture: TensorPicture, theme: str) -> Iterator[Mark]:
    """The pieces with the parts of both sides, and a frame round those that are sent."""
    yield from (_across if picture.is_across else _down)(picture, theme)


def _fills(picture: TensorPicture, theme: str) -> list[str]:
    shades, own = SHADES[theme], LOOKS[theme].edge
    return [
        own if piece.is_own else shades[piece.shade] if piece.shade else PLAIN_CELL[theme]
        for piece in picture.pieces
    ]


def _inks(picture: TensorPicture, theme: str) -> list[str]:
    ink, quiet, inks = GROUP_INK[theme], LOOKS[theme].quiet, SHADE_INKS[theme]
    return [
        ink if piece.is_own else inks[piece.shade] if piece.shade else quiet
        for piece in picture.pieces
    ]


def _down(picture: TensorPicture, theme: str) -> Iterator[Mark]:
    """Bands below one another."""
    look, left, wide = LOOKS[theme], picture.room, picture.wide
    tops = picture.starts
    corners = np.array([(left, top) for top in tops])
    yield Blocks(corners, np.array([wide, BAND - 2]), _fills(picture, theme), radius=2)
    for piece, top, colour in zip(picture.pieces, tops, _inks(picture, theme)):
        y = top + (BAND - 2) / 2
        yield Words(left + 8, y, piece.label, LABEL, colour, is_middle=True)
        yield Words(left + wide - 8, y, piece.origin, LABEL, colour, "end", is_middle=True)
        if piece.after_gap:
            yield Words(left + wide / 2, top - REST / 2 - 2, "⋯", LABEL, look.quiet, "middle")
    if picture.ends_in_gap:
        y = tops[-1] + BAND + REST / 2
        yield Words(left + wide / 2, y, "⋯", LABEL, look.quiet, "middle")
    for number, name in enumerate(picture.names):
        own = [top for piece, top in zip(picture.pieces, tops) if piece.block == number]
        if name and own:
            y = (own[0] + own[-1] + BAND - 2) / 2
            x = left - picture.bracket - 4
            yield Words(x, y, name, LABEL, look.quiet, "end", is_middle=True)
    for of, at, foot, anchor in (
        ("source", left - GUTTER, FOOT, "end"),
        ("target", left + wide + GUTTER, -FOOT, "start"),
    ):
        side = picture.sides[of == "target"]
        yield Words(at, LABEL, side, LABEL, look.quiet, anchor, bold=True)
        for start, end, name in picture.brackets(attrgetter(of)):
            yield Lines([[(at + foot, start), (at, start), (at, end), (at + foot, end)]], look.edge)
            x, y = at - foot, (start + end) / 2
            yield Words(x, y, name, LABEL, look.quiet, anchor, is_middle=True)
    frames = [*picture.frames()]
    if frames:
        boxes = np.array([(left - 2, start) for start, _ in frames])
        sizes = np.array([(wide + 4, end - start) for start, end in frames])
        yield Blocks(boxes, sizes, edge=look.ink, width=1.8, radius=4)


def _across(picture: TensorPicture, theme: str) -> Iterator[Mark]:
    """Pieces side by side; their senders in them."""
    look, step, top = LOOKS[theme], picture.step, FLAT - 14
    left = max(map(advance, picture.sides)) * LABEL + 12
    lefts = [left + start for start in picture.starts]
    corners = np.array([(x, top) for x in lefts])
    yield Blocks(corners, np.array([step - 2, TALL]), _fills(picture, theme), radius=2)
    for piece, x, colour in zip(picture.pieces, lefts, _inks(picture, theme)):
        lines = piece.short.split("\n")
        for row, text in enumerate(lines):
            y = top + TALL / 2 + (row - (len(lines) - 1) / 2) * (LABEL + 4)
            yield Words(x + step / 2 - 1, y, text, LABEL, colour, "middle", is_middle=True)
        if piece.after_gap:
            yield Words(x - REST / 2 - 1, top + TALL / 2, "⋯", LABEL, look.quiet, "middle")
    if picture.ends_in_gap:
        x = lefts[-1] + step + REST / 2
        yield Words(x, top + TALL / 2, "⋯", LABEL, look.quiet, "middle")
    for of, at, foot, down in (
        ("source", top - GUTTER, FOOT, -LABEL),
        ("target", top + TALL + GUTTER, -FOOT, LABEL),
    ):
        side = picture.sides[of == "target"]
        yield Words(left - 8, at + down, side, LABEL, look.quiet, "end", True, is_middle=True)
        for start, end, name in picture.brackets(attrgetter(of)):
            x0, x1 = left + start, left + end
            yield Lines([[(x0, at + foot), (x0, at), (x1, at), (x1, at + foot)]], look.edge)
            yield Words((x0 + x1) / 2, at + down, name, LABEL, look.quiet, "middle", is_middle=True)
    frames = [*picture.frames()]
    if frames:
        boxes = np.array([(left + start, top - 2) for start, _ in frames])
        sizes = np.array([(end - start, TALL + 4) for start, end in frames])
        yield Blocks(boxes, sizes, edge=look.ink, width=1.8, radius=4)
