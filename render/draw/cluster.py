"""The GPUs of a cluster with their roles -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Layer, Lines, Mark, Numbers, Pixels, Words
from ..palette import GROUP_INK, KIND_MARKS, KIND_TINTS, ROLE_CELLS, rgb
from ..scenes.cluster import LEFT, ClusterPicture
from .groups import boxes_of, row_names


def draw_cluster(picture: ClusterPicture, theme: str) -> Iterator[Mark]:
    """A layer for each role, which the page dims while another role works."""
    look = LOOKS[theme]
    if picture.is_numbered:
        yield Layer("frames", [boxes_of(picture.tiles.frames, 6.0, look.page, look.edge)])
        yield row_names(picture.labels, look.ink)
        yield from _bands(picture, theme)
        yield from _numbers(picture, theme)
    else:
        yield row_names(picture.labels, look.ink)
        yield from _rasters(picture, theme)
    yield from _chosen(picture, theme)


def _bands(picture: ClusterPicture, theme: str) -> Iterator[Mark]:
    inner = picture.cell - 3.0
    world = np.arange(picture.world)
    free = world[picture.shared[0] == 0]
    if len(free):
        x, y = picture.corners(free)
        corners = np.stack([x, y], axis=-1) + 1.5
        yield Layer("free", [Blocks(corners, np.full(2, inner), "none", LOOKS[theme].edge)])
    for number, band in enumerate(picture.bands):
        fills = np.full(picture.world, ROLE_CELLS[theme][band.tone], dtype=object)
        for tone, gpus in band.marks:
            fills[gpus] = KIND_TINTS[theme][tone]
        corners, sizes = picture.boxes(number, band.gpus, inner)
        radius = min(4.0, picture.cell / 10)
        sizes = sizes - np.array([0.0, 1.0])
        blocks = Blocks(corners, sizes, fills[band.gpus].tolist(), radius=radius)
        yield Layer(f"band turn{number}", [blocks])


def _numbers(picture: ClusterPicture, theme: str) -> Iterator[Mark]:
    if picture.cell < 17:
        return
    every = np.arange(picture.world)
    x, y = picture.corners(every)
    half = picture.cell / 2
    size = number_size(picture)
    texts = [str(gpu) for gpu in every.tolist()]
    ink = GROUP_INK[theme]
    yield Numbers("n", texts, x + half, y + half, size, ink, bold=True, is_middle=True)


def number_size(picture: ClusterPicture) -> float:
    """The font size of a number in its cell, in pixels."""
    return min(14.0, picture.cell * 0.38)


def _rasters(picture: ClusterPicture, theme: str) -> Iterator[Mark]:
    themes = ("light", "dark") if theme == "page" else (theme,)
    box = (LEFT, 0.0, picture.width, picture.height)
    for number, band in enumerate(picture.bands):
        cells, layers = picture.pixels(number), []
        for own in themes:  # on the page one of both is seen
            colours = [rgb(ROLE_CELLS[own][band.tone])]
            colours += [rgb(KIND_MARKS[own][tone]) for tone, _ in band.marks]
            layers.append(Pixels(cells, box, colours, f"in-{own}"))
        yield Layer(f"band turn{number}", layers)
    wide, tall = (side * picture.cell for side in picture.grid.tile)
    if min(wide, tall) < 8:
        return
    xs, ys = np.arange(LEFT, picture.width + 1, wide), np.arange(0, picture.height + 1, tall)
    lines = [((x, 0.0), (x, picture.height)) for x in xs.tolist()]
    lines += [((LEFT, y), (picture.width, y)) for y in ys.tolist()]
    yield Layer("gaps blocks", [Lines(lines, LOOKS[theme].page, min(2.0, 0.3 * picture.cell))])


def _chosen(picture: ClusterPicture, theme: str) -> Iterator[Mark]:
    x, y = (float(at) for at in picture.corners(picture.chosen))
    side = max(picture.cell, 9.0)
    off = (side - picture.cell) / 2
    corner, look = np.array([[x - off, y - off]]), LOOKS[theme]
    radius = min(6.0, side / 6)
    yield Blocks(corner, np.full(2, side), edge=look.page, width=4.0, radius=radius)
    yield Blocks(corner, np.full(2, side), edge=look.ink, width=2.2, radius=radius)
    if not picture.is_numbered:
        middle = picture.width / 2
        anchor, at = ("start", x + side + 3) if x < middle else ("end", x - 5)
        words = Words(
            at, y + side / 2 + 4, f"GPU {picture.chosen}", LABEL, look.ink, anchor, bold=True
        )
        yield Layer("of-gpu", [words], is_hidden=True)
