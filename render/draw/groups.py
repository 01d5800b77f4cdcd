"""Panels and overviews of groups -> marks, and the marks that several pictures of nodes share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..marks import (
    LABEL,
    LOOKS,
    Blocks,
    Layer,
    Lines,
    Look,
    Mark,
    Numbers,
    Pixels,
    Slot,
    Words,
    advance,
    ring,
)
from ..palette import GROUP_INK, GROUPS, KIND_COLOURS, KIND_MARKS, NO_GROUP, ROWS, rgb
from ..scenes.geometry import GAP, RowLabel
from ..scenes.groups import Overview, Panel
from ..scenes.job_plan import Rectangle
from ..scenes.marked import NAME, TALL, Tag


def draw_panel(panel: Panel, theme: str, outlined: np.ndarray | None = None) -> Iterator[Mark]:
    """The groups of one kind on their nodes: in each cell the rank and, if there is room, its
    group. outlined: ranks with a frame, bool, shape (world_size,)."""
    look, side = LOOKS[theme], panel.side
    yield Layer("node", [boxes_of(panel.frames, 6.0, look.page, look.edge)])
    yield row_names(panel.labels, look.ink)
    corners = np.stack([panel.x, panel.y], axis=-1) + GAP / 2
    colours = (*GROUPS[theme], NO_GROUP[theme])  # the last one at -1
    fills = [colours[colour] for colour in panel.colour.tolist()]
    size = np.full(2, side)
    yield Layer("cells", [Blocks(corners, size, fills, radius=min(6.0, side / 6))])
    yield Slot('<g class="marked"></g>')
    if outlined is not None and outlined.any():
        yield Layer("moved", [Blocks(corners[outlined], size, edge=look.ink)])
    yield from _cell_texts(panel, GROUP_INK[theme])


def _cell_texts(panel: Panel, ink: str) -> Iterator[Mark]:
    side, (size, small) = panel.side, panel.text_sizes
    x, y = panel.x + GAP / 2 + side / 2, panel.y + GAP / 2
    ranks = list(map(str, range(len(x))))
    if small:
        groups = panel.group.tolist()
        text_of = {group: panel.index_text(group) for group in set(groups)}
        texts = [text_of[group] for group in groups]
        yield Numbers("r", ranks, x, y + side * 0.5, size, ink, bold=True)
        yield Numbers("i", texts, x, y + side * 0.85, small, ink)
    elif size:
        yield Numbers("r", ranks, x, y + side / 2, size, ink, bold=True, is_middle=True)


def draw_overview(overview: Overview, theme: str) -> Iterator[Mark]:
    """The nodes of a large world: a pixel for each GPU, lines between cells, wider ones between
    nodes."""
    look = LOOKS[theme]
    left, top, right, bottom = box = overview.left, overview.top, overview.width, overview.height
    own = "light" if theme == "page" else theme
    yield Pixels(overview.base_pixels(), box, [*map(rgb, ROWS[own])], "base")
    # On the page only until the script marks the groups of the chosen rank, in its theme's colours.
    kinds = [rgb(KIND_MARKS[own][mark.tone]) for mark in overview.marks]
    yield Pixels(overview.mark_pixels(), box, kinds, "marks")
    for gap in overview.gaps:
        # Along the edges too, so that the outermost cells are as large as the others.
        xs, ys = (at.tolist() for at in overview.lines(gap))
        lines = [((x, top), (x, bottom)) for x in xs] + [((left, y), (right, y)) for y in ys]
        yield Layer(f"gaps {gap.name}", [Lines(lines, look.page, gap.width)])
    yield from spot("chosen", *overview.middle, overview.ring, theme)
    yield tags_of(overview.tags, theme)
    # All labels smaller if one would not fit beside the picture.
    size = min([LABEL, *((x - 2) / advance(text) for x, _, text in overview.labels)])
    yield row_names(overview.labels, look.ink, size)


def row_names(labels: Iterable[RowLabel], ink: str, size: float = LABEL) -> Layer:
    """The names of rows of nodes."""
    names = [Words(x, y, text, size, ink, "end", is_middle=True) for x, y, text in labels]
    return Layer("rows", names)


def boxes_of(
    frames: Iterable[Rectangle], radius: float, fill: str, edge: str, width: float = 1.0
) -> Blocks:
    """Rectangles from the x, y, width and height of each."""
    each = np.array(list(frames)).reshape(-1, 4)
    return Blocks(each[:, :2], each[:, 2:], fill, edge, width, radius)


def halo_ring(
    x: float, y: float, radius: float, look: Look, width: float = 1.6
) -> Iterator[Blocks]:
    """A ring that is visible on any cell: ink on a halo in the page's colour."""
    yield ring(x, y, radius, look.page, width + 1.9)
    yield ring(x, y, radius, look.ink, width)


def spot(
    name: str, x: float, y: float, radius: float, theme: str, width: float = 1.6
) -> Iterator[Mark]:
    """A ring round a cell, of a class that the page's script may move."""
    if theme == "page":
        yield Slot(f'<circle class="{name}" cx="{x:.2f}" cy="{y:.2f}" r="{radius:.2f}"/>')
    else:
        yield from halo_ring(x, y, radius, LOOKS[theme], width)


def tags_of(tags: Sequence[Tag], theme: str) -> Layer:
    """The names of groups at their ends; screen readers have them from the description."""
    return Layer("tags", [_tag(tag, theme) for tag in tags], is_hidden=True)


def _tag(tag: Tag, theme: str) -> Layer:
    corner = np.array([[tag.x - tag.width / 2, tag.y - TALL / 2]])
    box = Blocks(corner, np.array([tag.width, TALL]), KIND_COLOURS[theme][tag.tone], radius=4.0)
    ink = LOOKS[theme].page
    name = Words(tag.x, tag.y + 3.8, tag.name, NAME, ink, "middle", bold=True, mono=True)
    return Layer(f"t-{tag.tone}", [box, name])
