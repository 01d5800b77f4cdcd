"""Scene -> matplotlib Figure, for what leaves the page: PNG, SVG and PDF for papers and slides.

The same picture as `render.svg` paints on the page: one scene pixel is 1/96 inch, and sizes and
places are the scene's own. Never pyplot, and no state but cached glyphs, so that any number of
threads may draw at once.

>>> from groups import fit
>>> from groups.grouping import plain
>>> from render.scenes import groups as scene
>>> mesh = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)
>>> panel = scene.panel(plain(mesh, "tp"), gpus_per_node=8)
>>> picture = figure([panel], ["TP: 8 groups of 2 ranks"], str(mesh))
>>> to_bytes(picture, "png")[1:4]
b'PNG'
"""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.path import Path

from groups.budget import spend

from ..palette import GROUP_INK, GROUPS, NO_GROUP, kind_colour, ramp, rgb
from ..scenes.groups import GAP, Overview, Panel
from . import canvas
from .canvas import BASELINE, LABEL, LOOKS, Look, Words, add, draw_words, rounded
from .charts import CHARTS
from .job import JobScene, draw_job

MARGIN = 16.0
"""Pixels round the whole figure."""

TITLE, SMALL = 15.0, 11.0
"""Font sizes in pixels: titles, legend and caption."""

LINE, SWATCH = 18.0, 18.0
"""Pixels from one line of a legend to the next, and from a colour to its words."""

LEGEND_WIDTH = 900.0
"""Pixels after which a legend goes on in another line, if no scene is wider."""


def figure(
    scenes: Sequence[Any], titles: Sequence[str], caption: str = "", theme: str = "light"
) -> Figure:
    """Scenes one below the other, each under its title; legend and caption at the bottom.

    scenes: of the types in DRAWINGS. titles: one a scene. The legend says what the colours of
    overviews and charts mean.

    Errors: ValueError if there are not as many titles as scenes; KeyError for an unknown theme.
    """
    if len(scenes) != len(titles):
        raise ValueError(f"{len(scenes)} scenes need as many titles, not {len(titles)}")
    look = LOOKS[theme]
    words: list[Words] = []
    tops: list[float] = []
    y = MARGIN
    for scene, title in zip(scenes, titles):
        words.append(Words(MARGIN, y + TITLE, title, TITLE, look.ink, bold=True))
        tops.append(y + TITLE + 10)
        y = math.ceil(tops[-1] + scene.height) + MARGIN
    legend = Legend.of(scenes, theme, y + SMALL)
    y += legend.height
    if caption:
        words.append(Words(MARGIN, y + SMALL, caption, SMALL, look.ink))
        y += SMALL + MARGIN
    right = max((MARGIN + scene.width for scene in scenes), default=0.0)
    right = max([right, legend.right, *(canvas.right_of(word) for word in words)])
    made, page = blank(math.ceil(right + MARGIN), math.ceil(y), look)
    for scene, top in zip(scenes, tops):
        ax = canvas.axes(made, MARGIN, top, scene.width, scene.height)
        DRAWINGS[type(scene)](ax, scene, theme)
    legend.draw(page)
    draw_words(page, words)
    return made


def to_bytes(figure: Figure, format: str, scale: float = 2.0) -> bytes:
    """The figure as a file: "png" (so many pixels a scene pixel; fewer, where these would be more
    than MOST_PIXELS), "svg" or "pdf"; no dates in it.

    Errors: ValueError for any other format.
    """
    buffer = io.BytesIO()
    if format == "png":
        width, height = figure.get_size_inches() * 96
        most = MOST_OF_IMAGES if any(one.images for one in figure.axes) else MOST_PIXELS
        scale = min(scale, math.sqrt(most / (width * height)))
        spend(int(width * height * scale**2) // PAINTED, "pixels")
        figure.savefig(buffer, format="png", dpi=96 * scale, metadata={"Software": None})
    elif format == "svg":
        # The salt is a setting of the process: one writer at a time, or another resets it.
        with _SVG_SETTINGS, mpl.rc_context({"svg.hashsalt": "scene"}):
            figure.savefig(buffer, format="svg", metadata={"Date": None})
    elif format == "pdf":
        figure.savefig(buffer, format="pdf", metadata={"CreationDate": None})
    else:
        raise ValueError(f"there is no format {format!r:.40}; try png, svg or pdf")
    return buffer.getvalue()


MOST_PIXELS, MOST_OF_IMAGES = 4_000_000, 2_500_000
"""Pixels of a PNG, and of one with images in it, at most: matplotlib takes some 40 bytes for each,
and for those some 80."""

PAINTED = 16
"""Pixels that are painted for a unit of work (groups.budget)."""

_SVG_SETTINGS = threading.Lock()


def draw_panel(ax: Axes, panel: Panel, theme: str = "light") -> None:
    """One kind's groups on their nodes; one data unit is one scene pixel, y downwards."""
    look = LOOKS[theme]
    canvas.prepare(ax, panel.width, panel.height)
    frames = [rounded(w, h, 6.0) + np.array([x, y]) for x, y, w, h in panel.frames]
    edge = {"edgecolors": look.edge, "linewidths": 0.75}
    add(ax, PolyCollection(frames, facecolors="none", **edge))
    side = panel.side
    corners = np.stack([panel.x, panel.y], axis=-1) + GAP / 2
    cells = rounded(side, side, min(6.0, side / 6)) + corners[:, None, :]
    fills = [_fill(colour, theme) for colour in panel.colour.tolist()]
    add(ax, PolyCollection(cells, facecolors=fills, edgecolors="none"))
    draw_words(ax, [*_row_labels(panel, look), *_cell_words(panel, corners, side, theme)])


def _fill(colour: int, theme: str) -> str:
    return GROUPS[theme][colour] if colour >= 0 else NO_GROUP[theme]


def draw_overview(ax: Axes, overview: Overview, theme: str = "light") -> None:
    """The logical mesh or the physical view; one data unit is one scene pixel, y downwards."""
    look = LOOKS[theme]
    box = (overview.left, overview.width, overview.height, overview.top)
    cells = _pixels(overview, theme)
    ax.imshow(cells, interpolation="none", extent=box, aspect="auto", clip_on=False)
    canvas.prepare(ax, overview.width, overview.height)  # after imshow, which moves the limits
    _draw_gaps(ax, overview, look)
    _draw_ring(ax, *_chosen(overview), overview.ring, look)
    draw_words(ax, _overview_labels(overview, look))


DRAWINGS: dict[type, Callable[[Axes, Any, str], None]] = {
    Panel: draw_panel,
    Overview: draw_overview,
    JobScene: draw_job,
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
    def of(cls, scenes: Sequence[Any], theme: str, baseline: float) -> Legend:
        look = LOOKS[theme]
        most = MARGIN + max((LEGEND_WIDTH, *(scene.width for scene in scenes)))
        entries: dict[tuple[str, str], Words] = {}
        y = baseline - LINE
        for scene in scenes:
            x = math.inf  # what a scene adds begins in a line of its own
            for swatch, text in _legend_texts(scene, theme):
                if (swatch, text) in entries:
                    continue
                room = SWATCH if swatch else 0.0
                word = Words(x + room, y, text, SMALL, look.ink)
                if canvas.right_of(word) > most:
                    y += LINE
                    word = Words(MARGIN + room, y, text, SMALL, look.ink)
                entries[swatch, text] = word
                x = canvas.right_of(word) + SWATCH
        return cls(tuple((swatch, word) for (swatch, _), word in entries.items()), look)

    @property
    def height(self) -> float:
        """Pixels down to what follows."""
        if not self.entries:
            return 0.0
        return 2 * SMALL + self.entries[-1][1].y - self.entries[0][1].y

    @property
    def right(self) -> float:
        return max((canvas.right_of(word) for _, word in self.entries), default=0.0)

    def draw(self, ax: Axes) -> None:
        for swatch, word in self.entries:
            middle = word.y - BASELINE * word.size
            if swatch == "ring":
                _draw_ring(ax, word.x - SWATCH + 6, middle, 5.0, self.look)
                continue
            for number, colour in enumerate(filter(None, swatch.split("-"))):
                corner = np.array([word.x - SWATCH + 6 * number, middle - 6])
                square = rounded(6.0 if "-" in swatch else 12.0, 12.0, 0.0) + corner
                add(ax, PolyCollection([square], facecolors=colour, edgecolors="none"))
        draw_words(ax, [word for _, word in self.entries])


def _legend_texts(scene: Any, theme: str) -> Iterable[tuple[str, str]]:
    """Swatches with what they mean; panels and some charts need none."""
    if isinstance(scene, Overview):
        return _overview_legend(scene, theme)
    if isinstance(scene, JobScene):
        return scene.legend_of(theme)
    return getattr(scene, "legend", ())


def _overview_legend(overview: Overview, theme: str) -> Iterable[tuple[str, str]]:
    for mark in overview.marks:
        yield kind_colour(mark.tone, theme), f"{mark.kind} group, {_count(mark.ranks)}"
    yield "ring", f"rank {overview.rank}"
    if overview.num_stages > 1:
        yield "-".join(LOOKS[theme].greys), f"pp 0 to {overview.num_stages - 1}"


def _count(ranks: np.ndarray) -> str:
    return "1 rank" if len(ranks) == 1 else f"{len(ranks):,} ranks"


def blank(width: int, height: int, look: Look) -> tuple[Figure, Axes]:
    """A figure of this many scene pixels, and axes over all of it."""
    made = Figure(figsize=(width / 96, height / 96), dpi=96, facecolor=look.page)
    FigureCanvasAgg(made)
    page = canvas.axes(made, 0, 0, width, height)
    canvas.prepare(page, width, height)
    return made, page


# -- panels --------------------------------------------------------------------------------------


def _row_labels(panel: Panel, look: Look) -> list[Words]:
    return [
        Words(x, y + BASELINE * LABEL, text, LABEL, look.ink, "end") for x, y, text in panel.labels
    ]


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


# -- overviews -----------------------------------------------------------------------------------


def _pixels(overview: Overview, theme: str) -> np.ndarray:
    """The colour of each cell: uint8, shape (rows, columns, 3)."""
    look = LOOKS[theme]
    greys = ramp(*look.greys, min(overview.num_stages, 200))
    kinds = [rgb(kind_colour(mark.tone, theme)) for mark in overview.marks]
    colours = np.array([rgb(look.page), *greys, *kinds], dtype=np.uint8)
    base, marks = overview.base_pixels(), overview.mark_pixels()
    return colours[np.where(marks > 0, len(greys) + marks.astype(int), base)]


def _draw_gaps(ax: Axes, overview: Overview, look: Look) -> None:
    """Lines of the page's colour between cells, wider ones between blocks and bands."""
    left, top, right, bottom = overview.left, overview.top, overview.width, overview.height
    for gap in overview.gaps:
        # Along the edges too, so that the outermost cells are as large as the others.
        xs = left + overview.cell * _every(gap.columns, overview.grid.columns)
        ys = top + overview.cell * _every(gap.rows, overview.grid.rows)
        lines = [((x, top), (x, bottom)) for x in xs] + [((left, y), (right, y)) for y in ys]
        width = 0.75 * gap.width  # in points
        add(ax, LineCollection(lines, colors=look.page, linewidths=width, capstyle="butt"))


def _every(step: int, count: int) -> np.ndarray:
    """0, step, 2 * step, ... and count itself; nothing if step is 0."""
    return np.append(np.arange(0, count, step), count) if step else np.empty(0)


def _chosen(overview: Overview) -> tuple[float, float]:
    """The middle of the chosen rank's cell."""
    row, column = divmod(int(overview.place[overview.rank]), overview.grid.columns)
    return (
        overview.left + (column + 0.5) * overview.cell,
        overview.top + (row + 0.5) * overview.cell,
    )


def _draw_ring(ax: Axes, x: float, y: float, radius: float, look: Look) -> None:
    """A ring that stands out from any cell: ink on a halo of the page's colour."""
    ring = Path.circle((x, y), radius)
    for colour, width in ((look.page, 3.5), (look.ink, 1.6)):
        line = {"edgecolors": colour, "linewidths": 0.75 * width}
        add(ax, PathCollection([ring], facecolors="none", **line))


def _overview_labels(overview: Overview, look: Look) -> list[Words]:
    """Stages, replicas or nodes; all smaller if one would not fit beside the picture."""
    beside = [text for _, _, anchor, text in overview.labels if anchor == "end"]
    longest = max((canvas.glyphs(text, False)[1] for text in beside), default=1.0)
    size = min(LABEL, (overview.left - 8) / longest)
    return [
        Words(x, y + (BASELINE * size if anchor == "end" else 0), text, size, look.ink, anchor)
        for x, y, anchor, text in overview.labels
    ]
