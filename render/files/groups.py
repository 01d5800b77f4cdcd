"""Scenes -> a drawing, for what leaves the page: PNG, SVG and PDF for papers and slides.

The same picture as `render.svg` paints on the page: one scene pixel is 1/96 inch, and sizes and
places are the scene's own.

>>> from groups import fit
>>> from groups.grouping import plain
>>> from render.files.paint import to_bytes
>>> from render.scenes import groups as scene
>>> mesh = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)
>>> panel = scene.panel(plain(mesh, "tp"), gpus_per_node=8)
>>> picture = figure([panel], ["TP: 8 groups of 2 ranks"], str(mesh))
>>> to_bytes(picture, "png")[1:4]
b'PNG'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..marks import (
    BASELINE,
    LABEL,
    LOOKS,
    Blocks,
    Drawing,
    Lines,
    Look,
    Mark,
    Pixels,
    Words,
    advance,
)
from ..marks import ring as circle
from ..palette import GROUP_INK, GROUPS, KIND_COLOURS, NO_GROUP, STAGE_GREYS, ramp, rgb
from ..scenes.groups import GAP, Overview, Panel
from ..scenes.job import JobPicture
from .charts import CHARTS
from .job import draw_job, draw_tags

MARGIN = 16.0
"""Pixels round the whole figure."""

TITLE, SMALL = 15.0, 11.0
"""Font sizes in pixels: titles, legend and caption."""

LINE, SWATCH = 18.0, 18.0
"""Pixels from one line of a legend to the next, and from a colour to its words."""

LEGEND_WIDTH = 900.0
"""Pixels after which a legend goes on in another line, if no scene is wider."""


def figure(
    scenes: Sequence[Any],
    titles: Sequence[str],
    caption: str = "",
    theme: str = "light",
    words: Mapping[str, str] = {},
) -> Drawing:
    """Scenes one below the other, each under its title; legend and caption at the bottom.

    scenes: of the types in DRAWINGS. titles: one a scene. words: in which the legend says what the
    colours of jobs and overviews mean (key_gpu, key_ranks, key_group, key_stages).

    Errors: ValueError if there are not as many titles as scenes; KeyError for an unknown theme.
    """
    if len(scenes) != len(titles):
        raise ValueError(f"{len(scenes)} scenes need as many titles, not {len(titles)}")
    look = LOOKS[theme]
    lines: list[Words] = []
    tops: list[float] = []
    y = MARGIN
    for scene, title in zip(scenes, titles):
        lines.append(Words(MARGIN, y + TITLE, title, TITLE, look.ink, bold=True))
        tops.append(y + TITLE + 10)
        y = math.ceil(tops[-1] + scene.height) + MARGIN
    legend = Legend.of(scenes, theme, y + SMALL, words)
    y += legend.height
    if caption:
        lines.append(Words(MARGIN, y + SMALL, caption, SMALL, look.ink))
        y += SMALL + MARGIN
    right = max((MARGIN + scene.width for scene in scenes), default=0.0)
    right = max([right, legend.right, *(word.right for word in lines)])
    placed = [(MARGIN, top, 1.0, marks_of(scene, theme)) for scene, top in zip(scenes, tops)]
    placed.append((0.0, 0.0, 1.0, [*legend.marks(), *lines]))
    return Drawing(math.ceil(right + MARGIN), math.ceil(y), look.page, placed)


def marks_of(scene: Any, theme: str) -> list[Mark]:
    """A scene of a type in DRAWINGS, in its own pixels."""
    return list(DRAWINGS[type(scene)](scene, theme))


def draw_panel(panel: Panel, theme: str) -> Iterator[Mark]:
    """One kind's groups on their nodes."""
    look, side = LOOKS[theme], panel.side
    frames = np.array(panel.frames)
    yield Blocks(frames[:, :2], frames[:, 2:], edge=look.edge, radius=6.0)
    corners = np.stack([panel.x, panel.y], axis=-1) + GAP / 2
    colours = (*GROUPS[theme], NO_GROUP[theme])  # the last one at -1
    fills = [colours[colour] for colour in panel.colour.tolist()]
    yield Blocks(corners, np.full(2, side), fills, radius=min(6.0, side / 6))
    for x, y, text in panel.labels:
        yield Words(x, y + BASELINE * LABEL, text, LABEL, look.ink, "end")
    yield from _cell_words(panel, corners, side, theme)


def draw_overview(overview: Overview, theme: str) -> Iterator[Mark]:
    """The nodes of a large world."""
    look = LOOKS[theme]
    box = (overview.left, overview.top, overview.width, overview.height)
    yield Pixels(_pixels(overview, theme), box)
    yield from _gaps(overview, look)
    yield from _ring(*overview.middles(overview.rank), overview.ring, look)
    yield from draw_tags(overview.tags, theme)
    yield from _overview_labels(overview, look)


DRAWINGS: dict[type, Callable[[Any, str], Iterator[Mark]]] = {
    Panel: draw_panel,
    Overview: draw_overview,
    JobPicture: draw_job,
    **CHARTS,
}
"""How each type of scene is drawn; every one has a width and a height in pixels."""


@dataclass(frozen=True)
class Legend:
    """What the colours of overviews and charts mean, in as many lines as they need."""

    entries: tuple[tuple[str, Words], ...]
    """Swatches with words: a colour, two joined by a dash, "ring", or "" for words alone."""

    look: Look

    @classmethod
    def of(
        cls,
        scenes: Sequence[Any],
        theme: str,
        baseline: float,
        words: Mapping[str, str] = {},
        room: float | None = None,
    ) -> Legend:
        """room: pixels across; left out, LEGEND_WIDTH or as many as the widest scene has."""
        look = LOOKS[theme]
        most = MARGIN + (room or max((LEGEND_WIDTH, *(scene.width for scene in scenes))))
        entries: dict[tuple[str, str], Words] = {}
        y = baseline - LINE
        for scene in scenes:
            x = math.inf  # what a scene adds begins in a line of its own
            told = getattr(scene, "legend_of", None)
            for swatch, text in told(theme, words) if told else getattr(scene, "legend", ()):
                if (swatch, text) in entries:
                    continue
                room = SWATCH if swatch else 0.0
                word = Words(x + room, y, text, SMALL, look.ink)
                if word.right > most:
                    y += LINE
                    word = Words(MARGIN + room, y, text, SMALL, look.ink)
                entries[swatch, text] = word
                x = word.right + SWATCH
        return cls(tuple((swatch, word) for (swatch, _), word in entries.items()), look)

    @property
    def height(self) -> float:
        """Pixels down to what follows."""
        if not self.entries:
            return 0.0
        return 2 * SMALL + self.entries[-1][1].y - self.entries[0][1].y

    @property
    def right(self) -> float:
        return max((word.right for _, word in self.entries), default=0.0)

    def marks(self) -> Iterator[Mark]:
        for swatch, word in self.entries:
            middle = word.y - BASELINE * word.size
            if swatch == "ring":
                yield from _ring(word.x - SWATCH + 6, middle, 5.0, self.look)
                continue
            for number, colour in enumerate(filter(None, swatch.split("-"))):
                corner = np.array([[word.x - SWATCH + 6 * number, middle - 6]])
                yield Blocks(corner, np.array([6.0 if "-" in swatch else 12.0, 12.0]), colour)
        for _, word in self.entries:
            yield word


def _cell_words(panel: Panel, corners: np.ndarray, side: float, theme: str) -> list[Words]:
    """The rank in each cell, and under it the group where a cell has room for both."""
    size, small = panel.text_sizes
    rank_at = side * 0.5 if small else side / 2 + size * BASELINE
    words = []
    for rank, group in enumerate(panel.group.tolist()):
        x, y, reads = corners[rank, 0] + side / 2, corners[rank, 1], GROUP_INK[theme]
        if size:
            words.append(Words(x, y + rank_at, str(rank), size, reads, "middle", bold=True))
        if small:
            text = panel.index_text(group)
            words.append(Words(x, y + side * 0.85, text, small, reads, "middle"))
    return words


def _pixels(overview: Overview, theme: str) -> np.ndarray:
    """The colour of each cell: uint8, shape (rows, columns, 3)."""
    look = LOOKS[theme]
    greys = ramp(*STAGE_GREYS[theme], overview.num_shades)
    kinds = [rgb(KIND_COLOURS[theme][mark.tone]) for mark in overview.marks]
    colours = np.array([rgb(look.page), *greys, *kinds], dtype=np.uint8)
    base, marks = overview.base_pixels(), overview.mark_pixels()
    return colours[np.where(marks > 0, len(greys) + marks.astype(int), base)]


def _gaps(overview: Overview, look: Look) -> Iterator[Mark]:
    """Lines of the page's colour between cells, wider ones between nodes."""
    left, top, right, bottom = overview.left, overview.top, overview.width, overview.height
    for gap in overview.gaps:
        # Along the edges too, so that the outermost cells are as large as the others.
        xs, ys = overview.lines(gap)
        lines = [((x, top), (x, bottom)) for x in xs] + [((left, y), (right, y)) for y in ys]
        yield Lines(lines, look.page, gap.width)


def _ring(x: float, y: float, radius: float, look: Look) -> Iterator[Mark]:
    """A ring that stands out from any cell: ink on a halo of the page's colour."""
    for colour, width in ((look.page, 3.5), (look.ink, 1.6)):
        yield circle(x, y, radius, colour, width)


def _overview_labels(overview: Overview, look: Look) -> list[Words]:
    """Nodes; all smaller if one would not fit beside the picture."""
    size = min([LABEL, *((x - 2) / advance(text) for x, _, text in overview.labels)])
    return [
        Words(x, y + BASELINE * size, text, size, look.ink, "end") for x, y, text in overview.labels
    ]
