"""The picture of the job -> marks of a file: the nested mesh as `render.svg.job` paints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..marks import BASELINE, LABEL, LOOKS, Blocks, Lines, Mark, Pixels, Words, ring
from ..palette import GROUP_INK, KIND_COLOURS, KIND_MARKS, KIND_TINTS, PLAIN_CELL, ROWS, rgb
from ..scenes.job import JobPicture, Segment
from ..scenes.job_plan import Rectangle
from ..scenes.marked import TALL, Tag


def draw_job(picture: JobPicture, theme: str) -> Iterator[Mark]:
    """The cells with the groups of the chosen GPU, the ends of nodes, the labels."""
    look = LOOKS[theme]
    if picture.is_numbered:
        yield from _draw_numbered(picture, theme)
        yield _lines(picture.node_ends, look.edge, 1.5, (4.4, 3.5))
    else:
        yield from _draw_plain(picture, theme)
        yield _lines(picture.node_ends, look.page, 2.4)
        yield from draw_tags(picture.tags, theme)
    for label in picture.labels:
        layers = picture.layers[label.first] if label.name == "layers" else ""
        text = picture.words[label.name].format(first=label.first, last=label.last, layers=layers)
        yield Words(label.x, label.y + BASELINE * LABEL, text, LABEL, look.quiet, label.anchor)


def _draw_numbered(picture: JobPicture, theme: str) -> Iterator[Mark]:
    """Replicas, boxes, cells and what joins them, from the back to the front."""
    look, scale = LOOKS[theme], picture.plan.scale
    yield _frames(picture.replicas, 14 * scale, look.ground, look.edge)
    yield _frames(picture.boxes, 10 * scale, look.page, look.edge)
    if picture.box_tone:
        around = filter(picture.holds_rank, picture.boxes)
        colour = KIND_COLOURS[theme][picture.box_tone]
        yield _frames(around, 10 * scale, "none", colour, 2.5)
    fills = [PLAIN_CELL[theme]] * picture.mesh.world_size
    for mark in picture.marks:
        for rank in mark.ranks.tolist():
            fills[rank] = KIND_TINTS[theme][mark.tone]
    fills[picture.rank] = GROUP_INK[theme]
    wide, tall = picture.cell
    corners = np.stack([picture.x, picture.y], axis=-1)
    yield Blocks(corners, np.array([wide, tall]), fills, radius=6 * scale)
    size = min(15.0, wide * 0.47, tall * 0.72)
    inks = {True: look.page, False: GROUP_INK[theme]}
    middle = wide / 2, tall / 2 + size * BASELINE
    for rank, (x, y) in enumerate((corners + middle).tolist()):
        yield Words(x, y, str(rank), size, inks[rank == picture.rank], "middle", bold=True)
    for line in picture.lines:
        dots = (2.5, 5.0) if line.is_dotted else ()
        yield _lines(line.segments, KIND_COLOURS[theme][line.tone], 2.5, dots)


def _draw_plain(picture: JobPicture, theme: str) -> Iterator[Mark]:
    """A pixel a GPU, in two shades of rows, with the groups of the chosen one in their marks."""
    look, cell = LOOKS[theme], picture.cell[0]
    marks = [rgb(KIND_MARKS[theme][mark.tone]) for mark in picture.marks]
    colours = [rgb(look.page), *map(rgb, ROWS[theme]), *marks, rgb(GROUP_INK[theme])]
    base, board = picture.base_pixels(), picture.mark_pixels()
    pixels = np.array(colours, dtype=np.uint8)[
        np.where(board > 0, 2 + board.astype(int), base.astype(int))
    ]
    rows, columns = board.shape
    left, top = picture.plan.left, picture.plan.top
    yield Pixels(pixels, (left, top, left + columns * cell, top + rows * cell))
    x, y = (corners[0] + cell / 2 for corners in picture.corners_of_marks)
    yield ring(float(x), float(y), max(8.0, cell * 1.1), look.ink, 2.0)


def draw_tags(tags: Sequence[Tag], theme: str) -> Iterator[Mark]:
    for tag in tags:
        corner = np.array([[tag.x - tag.width / 2, tag.y - TALL / 2]])
        size = np.array([tag.width, TALL])
        yield Blocks(corner, size, KIND_COLOURS[theme][tag.tone], radius=4.0)
        yield Words(tag.x, tag.y + 3.8, tag.name, LABEL, LOOKS[theme].page, "middle", bold=True)


def _frames(
    frames: Iterable[Rectangle], radius: float, fill: str, edge: str, width: float = 1.0
) -> Blocks:
    each = np.array(list(frames)).reshape(-1, 4)
    return Blocks(each[:, :2], each[:, 2:], fill, edge, width, radius)


def _lines(
    segments: Sequence[Segment], colour: str, width: float, dashes: tuple[float, ...] = ()
) -> Lines:
    return Lines([((x0, y0), (x1, y1)) for x0, y0, x1, y1 in segments], colour, width, dashes)
