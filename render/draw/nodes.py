"""Nodes with the groups that leave them -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from groups.group_names import main_axis

from ..marks import BASELINE, LABEL, LOOKS, Blocks, Lines, Mark, Words
from ..palette import GROUP_INK, KIND_COLOURS, PLAIN_CELL
from ..scenes.nodes import HEAD, KEY_LINE, PAD, SAMPLE, Box, Inner, NodesPicture, wide_of

LETTER = 0.62
"""The approximate width of a letter in font sizes: exact widths are for files alone."""

NUMBERED, PARTED = 20.0, 3.0
"""The least pixels of a cell with its rank, and of one separated from the next."""


def colour_of(kind: str, theme: str) -> str:
    """The colour of a kind's lines."""
    return KIND_COLOURS[theme][main_axis(kind) or "tp"]


def draw_nodes(picture: NodesPicture, theme: str) -> Iterator[Mark]:
    """Lines below boxes, so that they end at their edges; then the boxes, their content, the
    legend."""
    look = LOOKS[theme]
    for bus in picture.buses:
        colour = colour_of(bus.thread.kind, theme)
        yield Lines([np.array(part) for part in _joined(bus.parts, bus.width)], colour, bus.width)
    corners = np.array([(box.x, box.y) for box in picture.boxes])
    sizes = np.array([(box.wide, box.tall) for box in picture.boxes])
    yield Blocks(corners, sizes, look.page, edge=look.edge, radius=6.0)
    for box, name in zip(picture.boxes, picture.names):
        yield from _box(picture, box, name, theme)
    for inner in picture.inners:
        yield from _inner(inner, picture.box_of[inner.box], theme)
    for y, text in picture.labels:
        yield Words(0.0, y + BASELINE * LABEL, text, LABEL, look.quiet)
    for left in picture.left:
        text = picture.left_words[left.is_rows].format(count=f"{left.count:,}")
        y = left.y + BASELINE * LABEL
        anchor = "start" if left.is_rows else "middle"
        yield Words(left.x, y, text, LABEL, look.quiet, anchor)
    yield from _key(picture, theme)


def _joined(
    parts: tuple[tuple[tuple[float, float], tuple[float, float]], ...], width: float
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """The parts of a line, horizontal ones longer by half its width, so that corners are filled."""
    for (x0, y0), (x1, y1) in parts:
        if y0 == y1 and x1 > x0:
            yield (x0 - width / 2, y0), (x1 + (width / 2 if len(parts) > 1 else 0), y1)
        else:
            yield (x0, y0), (x1, y1)


def _box(picture: NodesPicture, box: Box, name: str, theme: str) -> Iterator[Mark]:
    look = LOOKS[theme]
    line = box.y + HEAD - 6
    yield Words(box.x + PAD, line, name, LABEL, look.ink, bold=True)
    if _has_room_for_ranks(picture):
        ranks = f"{box.first}–{box.last}" if box.last > box.first else str(box.first)
        yield Words(box.x + box.wide - PAD, line, ranks, LABEL, look.quiet, "end")
    count, cell = box.last - box.first + 1, box.cell
    gap = 1.5 if cell > PARTED else 0.0
    plain = PLAIN_CELL[theme]
    fills = [plain] * count
    for kind, members in picture.filled:
        for rank in members:
            if box.first <= rank <= box.last:
                fills[rank - box.first] = colour_of(kind, theme)
    if picture.rank is not None and box.first <= picture.rank <= box.last:
        fills[picture.rank - box.first] = GROUP_INK[theme]
    top, tall = box.y + HEAD, picture.cell_tall
    x = box.x + PAD + cell * np.arange(count)
    corners = np.stack([x, np.full(count, top)], axis=-1)
    yield Blocks(corners, np.array([cell - gap, tall]), fills)
    if cell >= NUMBERED and len(str(box.last)) * LETTER * 10 < cell - 2:
        for rank in range(box.first, box.last + 1):
            is_plain = fills[rank - box.first] == plain
            ink = look.quiet if is_plain else look.page
            middle = top + tall / 2 + BASELINE * 10
            yield Words(box.middle(rank) - gap / 2, middle, str(rank), 10.0, ink, "middle")


def _has_room_for_ranks(picture: NodesPicture) -> bool:
    """Whether every box has room for its ranks beside its name: all show them, or none."""
    last = max(picture.boxes, key=lambda box: box.last)
    letters = max(map(len, picture.names)) + 2 * len(str(last.last)) + 3
    return letters * LETTER * LABEL <= last.wide - 2 * PAD


def _inner(inner: Inner, box: Box, theme: str) -> Iterator[Mark]:
    """A line below the cells of a group, with a tick at each of them."""
    colour, xs = colour_of(inner.kind, theme), [box.middle(rank) - 0.75 for rank in inner.ranks]
    ticks = [((x, inner.y - 3), (x, inner.y)) for x in xs]
    yield Lines([((xs[0] - 0.75, inner.y), (xs[-1] + 0.75, inner.y)), *ticks], colour, 1.5)


def _key(picture: NodesPicture, theme: str) -> Iterator[Mark]:
    """The legend: a line for each kind in its colour and thickness, then the scale of
    thicknesses."""
    look, (left, y) = LOOKS[theme], picture.key
    for kind, width, text in picture.kinds:
        middle = y + KEY_LINE / 2
        yield Lines([((left, middle), (left + SAMPLE, middle))], colour_of(kind, theme), width)
        yield Words(left + SAMPLE + 8, middle + BASELINE * LABEL, text, LABEL, look.ink)
        y += KEY_LINE
    x, middle = left, y + KEY_LINE / 2
    for width, text in picture.scale:
        yield Lines([((x, middle), (x + SAMPLE, middle))], look.quiet, width)
        yield Words(x + SAMPLE + 6, middle + BASELINE * LABEL, text, LABEL, look.quiet)
        x += SAMPLE + 28 + wide_of(text)
