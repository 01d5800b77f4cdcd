"""The pictures of groups -> marks of a file: panels, nodes, and the job as a nested mesh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..marks import BASELINE, LABEL, LOOKS, Blocks, Lines, Look, Mark, Pixels, Words, advance, ring
from ..palette import (
    GROUP_INK,
    GROUPS,
    KIND_COLOURS,
    KIND_MARKS,
    KIND_TINTS,
    NO_GROUP,
    PLAIN_CELL,
    ROWS,
    STAGE_GREYS,
    ramp,
    rgb,
)
from ..scenes.geometry import GAP
from ..scenes.groups import Overview, Panel
from ..scenes.job import JobPicture, Segment
from ..scenes.job_plan import Rectangle
from ..scenes.marked import TALL, Tag


def draw_panel(panel: Panel, theme: str) -> Iterator[Mark]:
    """One kind's groups on their nodes: in each cell the rank, and under it the group where there
    is room for both."""
    look, side = LOOKS[theme], panel.side
    frames = np.array(panel.frames)
    yield Blocks(frames[:, :2], frames[:, 2:], edge=look.edge, radius=6.0)
    corners = np.stack([panel.x, panel.y], axis=-1) + GAP / 2
    colours = (*GROUPS[theme], NO_GROUP[theme])  # the last one at -1
    fills = [colours[colour] for colour in panel.colour.tolist()]
    yield Blocks(corners, np.full(2, side), fills, radius=min(6.0, side / 6))
    for x, y, text in panel.labels:
        yield Words(x, y + BASELINE * LABEL, text, LABEL, look.ink, "end")
    ink, (size, small) = GROUP_INK[theme], panel.text_sizes
    down = side * 0.5 if small else side / 2 + size * BASELINE
    for rank, (x, y) in enumerate(corners):
        if size:
            yield Words(x + side / 2, y + down, str(rank), size, ink, "middle", bold=True)
        if small:
            text = panel.index_text(int(panel.group[rank]))
            yield Words(x + side / 2, y + side * 0.85, text, small, ink, "middle")


def draw_overview(overview: Overview, theme: str) -> Iterator[Mark]:
    """The nodes of a large world: a pixel a GPU, lines between cells, wider ones between nodes."""
    look = LOOKS[theme]
    left, top, right, bottom = overview.left, overview.top, overview.width, overview.height
    greys = ramp(*STAGE_GREYS[theme], overview.num_shades)
    kinds = [rgb(KIND_COLOURS[theme][mark.tone]) for mark in overview.marks]
    colours = np.array([rgb(look.page), *greys, *kinds], dtype=np.uint8)
    base, marks = overview.base_pixels(), overview.mark_pixels()
    pixels = colours[np.where(marks > 0, len(greys) + marks.astype(int), base)]
    yield Pixels(pixels, (left, top, right, bottom))
    for gap in overview.gaps:
        # Along the edges too, so that the outermost cells are as large as the others.
        xs, ys = overview.lines(gap)
        lines = [((x, top), (x, bottom)) for x in xs] + [((left, y), (right, y)) for y in ys]
        yield Lines(lines, look.page, gap.width)
    yield from chosen_ring(*overview.middle, overview.ring, look)
    yield from _draw_tags(overview.tags, theme)
    # All labels smaller if one would not fit beside the picture.
    size = min([LABEL, *((x - 2) / advance(text) for x, _, text in overview.labels)])
    for x, y, text in overview.labels:
        yield Words(x, y + BASELINE * size, text, size, look.ink, "end")


def chosen_ring(x: float, y: float, radius: float, look: Look) -> Iterator[Mark]:
    """A ring that stands out from any cell: ink on a halo of the page's colour."""
    for colour, width in ((look.page, 3.5), (look.ink, 1.6)):
        yield ring(x, y, radius, colour, width)


def draw_job(picture: JobPicture, theme: str) -> Iterator[Mark]:
    """The cells with the groups of the chosen GPU, the ends of nodes, the labels."""
    look = LOOKS[theme]
    if picture.is_numbered:
        yield from _draw_numbered(picture, theme)
        yield _lines(picture.node_ends, look.edge, 1.5, (4.4, 3.5))
    else:
        yield from _draw_plain(picture, theme)
        yield _lines(picture.node_ends, look.page, min(2.4, 0.6 * picture.sides[0]))
        yield from _draw_tags(picture.tags, theme)
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
    wide, tall = picture.sides
    corners = np.stack([picture.x, picture.y], axis=-1)
    yield Blocks(corners, np.array([wide, tall]), fills, radius=6 * scale)
    size = picture.number_size
    inks = {True: look.page, False: GROUP_INK[theme]}
    middle = wide / 2, tall / 2 + size * BASELINE
    for rank, (x, y) in enumerate((corners + middle).tolist()):
        yield Words(x, y, str(rank), size, inks[rank == picture.rank], "middle", bold=True)
    for line in picture.lines:
        dots = (2.5, 5.0) if line.is_dotted else ()
        yield _lines(line.segments, KIND_COLOURS[theme][line.tone], 2.5, dots)


def _draw_plain(picture: JobPicture, theme: str) -> Iterator[Mark]:
    """A pixel a GPU, in two shades of rows, with the groups of the chosen one in their marks."""
    look, cell = LOOKS[theme], picture.sides[0]
    marks = [rgb(KIND_MARKS[theme][mark.tone]) for mark in picture.marks]
    colours = [rgb(look.page), *map(rgb, ROWS[theme]), *marks, rgb(GROUP_INK[theme])]
    base, board = picture.base_pixels(), picture.mark_pixels()
    pixels = np.array(colours, dtype=np.uint8)[
        np.where(board > 0, 2 + board.astype(int), base.astype(int))
    ]
    rows, columns = board.shape
    left, top = picture.plan.left, picture.plan.top
    yield Pixels(pixels, (left, top, left + columns * cell, top + rows * cell))
    for tone, segments in picture.hairs:
        yield _lines(segments, KIND_COLOURS[theme][tone], 1.0)
    for mark in picture.marks:  # over what says how far the others reach
        corners = np.stack(picture.corners(mark.ranks), axis=-1)
        yield Blocks(corners, np.full(2, cell), KIND_MARKS[theme][mark.tone])
    yield Blocks(
        np.stack(picture.corners(picture.rank), axis=-1), np.full(2, cell), GROUP_INK[theme]
    )
    yield ring(*picture.middle, max(8.0, cell * 1.1), look.ink, 2.0)


def _draw_tags(tags: Sequence[Tag], theme: str) -> Iterator[Mark]:
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
