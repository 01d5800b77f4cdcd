"""The GPUs of a cluster with their roles -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from groups.budget import spend

from ..marks import LABEL, LOOKS, Blocks, Layer, Lines, Mark, Numbers, Pixels, Words
from ..palette import GROUP_INK, KIND_MARKS, KIND_TINTS, ROLE_CELLS, rgb
from ..scenes.cluster import LEFT, ClusterPicture
from .groups import boxes_of, row_names

PACKED = 500
"""Pixels of a role's picture for a unit of work: they are packed as PNG."""

PAINTED = 50
"""GPUs of a role, or of a group of it, that are painted for a unit of work."""

STRIP, EVERY = 6.0, 3.0
"""Pixels: the widest strip that is hatched by a role, and from a line of it to the next."""

THIN = 3.0
"""The height in pixels up to which a band has its fill alone."""

Point = tuple[float, float]


def draw_cluster(picture: ClusterPicture, theme: str) -> Iterator[Mark]:
    """A layer for each role, which the page dims while another role works; in it what is marked,
    which the page's script draws for another GPU."""
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
        fills = {gpu: KIND_TINTS[theme][tone] for tone, gpus in band.marks for gpu in gpus.tolist()}
        marks = [_boxes(picture, number, np.array([*fills]), [*fills.values()])] if fills else []
        base = _boxes(picture, number, band.gpus.array(), ROLE_CELLS[theme][band.tone])
        hatch = _hatch(picture, number, theme)
        yield Layer(f"band turn{number}", [base, Layer("marked", marks), hatch])


def _hatch(picture: ClusterPicture, number: int, theme: str) -> Mark:
    """A strip at the left end of each band that has room for one, hatched by its role: beside the
    number of the GPU."""
    band, ink = picture.bands[number], LOOKS[theme].quiet
    corners, sizes = picture.boxes(number, band.gpus.array(), picture.cell - 3.0)
    has_room = sizes[:, 1] > THIN
    corners, sizes = corners[has_room], sizes[has_room]
    wide = min(STRIP, 0.12 * picture.cell)
    if band.tone == 0:
        tall = np.stack([np.full(len(sizes), wide), sizes[:, 1] - 1.0], axis=-1)
        return Blocks(corners, tall, ink)
    lines = [
        line
        for (x, y), (_, tall) in zip(corners.tolist(), sizes.tolist())
        for line in _lines_of(band.tone, x, y, wide, tall - 1.0)
    ]
    return Lines(lines, ink, 0.9)


def _lines_of(role: int, x: float, y: float, wide: float, tall: float) -> list[list[Point]]:
    """The lines of a role's hatch in a box: rising, level, falling, upright.

    >>> _lines_of(2, 0.0, 0.0, 5.0, 8.0)
    [[(0.0, 2.0), (5.0, 2.0)], [(0.0, 5.0), (5.0, 5.0)]]
    """
    if role == 4:
        return [[(x + at, y), (x + at, y + tall)] for at in (0.5, wide / 2, wide - 0.5)]
    steps = np.arange(EVERY - 1, tall if role == 2 else tall - wide + 0.1, EVERY).tolist()
    rise = {1: (wide, 0.0), 2: (0.0, 0.0), 3: (0.0, wide)}[role]
    return [[(x, y + at + rise[0]), (x + wide, y + at + rise[1])] for at in steps]


def _boxes(picture: ClusterPicture, number: int, gpus: np.ndarray, fill: str | list[str]) -> Blocks:
    """The bands of a role on some of its GPUs."""
    corners, sizes = picture.boxes(number, gpus, picture.cell - 3.0)
    radius = min(4.0, picture.cell / 10)
    return Blocks(corners, sizes - np.array([0.0, 1.0]), fill, radius=radius)


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
    rows, columns = picture.raster
    pictures = 2 * len(themes) * len(picture.bands)
    painted = sum(len(band.gpus) for band in picture.bands)
    painted += sum(len(gpus) for band in picture.bands for _, gpus in band.marks)
    spend(pictures * rows * columns // PACKED + painted // PAINTED, "pixels", control="roles")
    for number, band in enumerate(picture.bands):
        cells, base, marked = picture.pixels(number), list[Mark](), list[Mark]()
        for own in themes:  # on the page one of both is seen
            plain = np.minimum(cells, 1)
            base.append(Pixels(plain, box, [rgb(ROLE_CELLS[own][band.tone])], f"in-{own}"))
            colours = [rgb(KIND_MARKS[own][tone]) for tone, _ in band.marks]
            marked.append(Pixels(np.maximum(cells, 1) - 1, box, colours, f"in-{own}"))
        yield Layer(f"band turn{number}", [*base, Layer("marked", marked)])
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
    edges = ((look.page, 4.0), (look.ink, 2.2))
    frame = [
        Blocks(corner, np.full(2, side), edge=edge, width=wide, radius=radius)
        for edge, wide in edges
    ]
    yield Layer("frame", frame)
    if not picture.is_numbered:
        middle = picture.width / 2
        anchor, at = ("start", x + side + 3) if x < middle else ("end", x - 5)
        words = Words(
            at, y + side / 2 + 4, f"GPU {picture.chosen}", LABEL, look.ink, anchor, bold=True
        )
        yield Layer("of-gpu", [words], is_hidden=True)
