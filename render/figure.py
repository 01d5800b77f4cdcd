"""Scene -> matplotlib Figure, for what leaves the page: PNG, SVG and PDF for papers and slides.

The same picture as `render.svg` paints on the page: one scene pixel is 1/96 inch, and sizes and
places are the scene's own. Never pyplot, and no state but cached glyphs, so that any number of
threads may draw at once.

>>> from groups import fit
>>> from groups.grouping import plain
>>> from render import scene
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from .palette import NO_GROUP, PALETTE, STAGE_GREYS, ink, kind_colour, ramp, rgb
from .scene import GAP, Overview, Panel

Scene = Panel | Overview


@dataclass(frozen=True)
class Look:
    """The colours of one theme that are not the palette's."""

    page: str
    ink: str
    edge: str  # of a node's frame
    greys: tuple[str, str]  # first and last stage


LOOKS: dict[str, Look] = {
    "light": Look("#ffffff", "#1f2937", "#9ca3af", STAGE_GREYS["light"]),
    "dark": Look("#0b0f19", "#e5e7eb", "#6b7280", STAGE_GREYS["dark"]),
}

MARGIN = 16.0
"""Pixels round the whole figure."""

TITLE, LABEL, SMALL = 15.0, 11.0, 11.0
"""Font sizes in pixels: titles, row and column labels, legend and caption."""

BASELINE = 0.36
"""How far below its middle a line of digits has its baseline, in font sizes."""


@dataclass(frozen=True)
class Words:
    """One line of text; x is its left, middle or right by ``anchor``, y its baseline."""

    x: float
    y: float
    text: str
    size: float
    ink: str
    anchor: str = "start"
    bold: bool = False


def figure(
    scenes: Sequence[Scene], titles: Sequence[str], caption: str = "", theme: str = "light"
) -> Figure:
    """Scenes one below the other, each under its title; legend and caption at the bottom.

    titles: one a scene. The legend says which colour marks which kind in overviews.

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
    y += 2 * SMALL if legend.entries else 0
    if caption:
        words.append(Words(MARGIN, y + SMALL, caption, SMALL, look.ink))
        y += SMALL + MARGIN
    right = max((MARGIN + scene.width for scene in scenes), default=0.0)
    right = max([right, legend.right, *(_right(word) for word in words)])
    made, page = _blank(math.ceil(right + MARGIN), math.ceil(y), look)
    for scene, top in zip(scenes, tops):
        ax = _axes(made, MARGIN, top, scene.width, scene.height)
        (draw_panel if isinstance(scene, Panel) else draw_overview)(ax, scene, theme)
    legend.draw(page)
    _draw_words(page, words)
    return made


def to_bytes(figure: Figure, format: str) -> bytes:
    """The figure as a file: "png" (two pixels a scene pixel), "svg" or "pdf"; no dates in it.

    Errors: ValueError for any other format.
    """
    buffer = io.BytesIO()
    if format == "png":
        figure.savefig(buffer, format="png", dpi=192, metadata={"Software": None})
    elif format == "svg":
        # The salt is a setting of the process: one writer at a time, or another resets it.
        with _SVG_SETTINGS, mpl.rc_context({"svg.hashsalt": "scene"}):
            figure.savefig(buffer, format="svg", metadata={"Date": None})
    elif format == "pdf":
        figure.savefig(buffer, format="pdf", metadata={"CreationDate": None})
    else:
        raise ValueError(f"there is no format {format!r:.40}; try png, svg or pdf")
    return buffer.getvalue()


_SVG_SETTINGS = threading.Lock()


def draw_panel(ax: Axes, panel: Panel, theme: str = "light") -> None:
    """One kind's groups on their nodes; one data unit is one scene pixel, y downwards."""
    look = LOOKS[theme]
    _prepare(ax, panel.width, panel.height)
    frames = [_rounded(w, h, 6.0) + np.array([x, y]) for x, y, w, h in panel.frames]
    edge = {"edgecolors": look.edge, "linewidths": 0.75}
    _add(ax, PolyCollection(frames, facecolors="none", **edge))
    side = panel.side
    corners = np.stack([panel.x, panel.y], axis=-1) + GAP / 2
    cells = _rounded(side, side, min(6.0, side / 6)) + corners[:, None, :]
    fills = [_fill(colour, theme) for colour in panel.colour.tolist()]
    _add(ax, PolyCollection(cells, facecolors=fills, edgecolors="none"))
    _draw_words(ax, [*_row_labels(panel, look), *_cell_words(panel, corners, side, theme)])


def _fill(colour: int, theme: str) -> str:
    return PALETTE[colour] if colour >= 0 else NO_GROUP[theme]


def draw_overview(ax: Axes, overview: Overview, theme: str = "light") -> None:
    """The logical mesh or the physical view; one data unit is one scene pixel, y downwards."""
    look = LOOKS[theme]
    box = (overview.left, overview.width, overview.height, overview.top)
    cells = _pixels(overview, theme)
    ax.imshow(cells, interpolation="none", extent=box, aspect="auto", clip_on=False)
    _prepare(ax, overview.width, overview.height)  # after imshow, which moves the limits
    _draw_gaps(ax, overview, look)
    _draw_ring(ax, *_chosen(overview), overview.ring, look)
    _draw_words(ax, _overview_labels(overview, look))


@dataclass(frozen=True)
class Legend:
    """What the colours of overviews mean: kinds, stages, the chosen rank, in one line."""

    entries: tuple[tuple[str, Words], ...]  # swatch: a colour, two joined by a dash, or "ring"
    look: Look

    @classmethod
    def of(cls, scenes: Sequence[Scene], theme: str, baseline: float) -> Legend:
        look = LOOKS[theme]
        overviews = (scene for scene in scenes if isinstance(scene, Overview))
        texts = dict.fromkeys(entry for one in overviews for entry in _legend_texts(one, theme))
        entries, x = [], MARGIN
        for swatch, text in texts:
            word = Words(x + 18, baseline, text, SMALL, look.ink)
            entries.append((swatch, word))
            x = _right(word) + 18
        return cls(tuple(entries), look)

    @property
    def right(self) -> float:
        return max((_right(word) for _, word in self.entries), default=0.0)

    def draw(self, ax: Axes) -> None:
        for swatch, word in self.entries:
            middle = word.y - BASELINE * word.size
            if swatch == "ring":
                _draw_ring(ax, word.x - 12, middle, 5.0, self.look)
                continue
            for number, colour in enumerate(swatch.split("-")):
                corner = np.array([word.x - 18 + 6 * number, middle - 6])
                square = _rounded(6.0 if "-" in swatch else 12.0, 12.0, 0.0) + corner
                _add(ax, PolyCollection([square], facecolors=colour, edgecolors="none"))
        _draw_words(ax, [word for _, word in self.entries])


def _legend_texts(overview: Overview, theme: str) -> Iterable[tuple[str, str]]:
    for mark in overview.marks:
        yield kind_colour(mark.tone, theme), f"{mark.kind} group, {_count(mark.ranks)}"
    yield "ring", f"rank {overview.rank}"
    if overview.num_stages > 1:
        yield "-".join(LOOKS[theme].greys), f"pp 0 to {overview.num_stages - 1}"


def _count(ranks: np.ndarray) -> str:
    return "1 rank" if len(ranks) == 1 else f"{len(ranks):,} ranks"


# -- the canvas ----------------------------------------------------------------------------------


def _blank(width: int, height: int, look: Look) -> tuple[Figure, Axes]:
    """A figure of this many scene pixels, and axes over all of it."""
    made = Figure(figsize=(width / 96, height / 96), dpi=96, facecolor=look.page)
    FigureCanvasAgg(made)
    page = _axes(made, 0, 0, width, height)
    _prepare(page, width, height)
    return made, page


def _axes(made: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes over a box that is given in pixels from the top left."""
    whole_width, whole_height = made.get_size_inches() * 96
    bottom = whole_height - top - height
    box = (left / whole_width, bottom / whole_height, width / whole_width, height / whole_height)
    return made.add_axes(box)


def _prepare(ax: Axes, width: float, height: float) -> None:
    """One data unit a scene pixel, the origin at the top left, nothing but the scene."""
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    ax.set_axis_off()


def _add(ax: Axes, collection) -> None:
    collection.set(clip_on=False, zorder=1)  # what is added later is on top, of whatever class
    ax.add_collection(collection, autolim=False)


@lru_cache(maxsize=64)
def _rounded(width: float, height: float, radius: float) -> np.ndarray:
    """Outline of a rectangle with round corners at the origin: shape (corners * 4, 2)."""
    turn = np.linspace(0, np.pi / 2, 7 if radius else 1)
    arc = radius * np.stack([1 - np.cos(turn), 1 - np.sin(turn)], axis=-1)
    size, back = (width, height), arc[::-1]
    return np.concatenate(
        [arc, np.abs((width, 0) - back), size - arc, np.abs((0, height) - back)], axis=0
    )


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
    for rank, (colour, group) in enumerate(zip(panel.colour.tolist(), panel.group.tolist())):
        x, y, reads = corners[rank, 0] + side / 2, corners[rank, 1], ink(_fill(colour, theme))
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
        _add(ax, LineCollection(lines, colors=look.page, linewidths=width, capstyle="butt"))


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
        _add(ax, PathCollection([ring], facecolors="none", **line))


def _overview_labels(overview: Overview, look: Look) -> list[Words]:
    """Stages, replicas or nodes; all smaller if one would not fit beside the picture."""
    beside = [text for _, _, anchor, text in overview.labels if anchor == "end"]
    longest = max((_glyphs(text, False)[1] for text in beside), default=1.0)
    size = min(LABEL, (overview.left - 8) / longest)
    return [
        Words(x, y + (BASELINE * size if anchor == "end" else 0), text, size, look.ink, anchor)
        for x, y, anchor, text in overview.labels
    ]


# -- text as glyph outlines ----------------------------------------------------------------------


def _draw_words(ax: Axes, words: Sequence[Words]) -> None:
    """All lines of text as one collection an ink: a text artist each would take 20 times longer."""
    for colour, same in groupby(sorted(words, key=lambda word: word.ink), lambda word: word.ink):
        outlines = [_outline(word) for word in same]
        _add(ax, PathCollection(outlines, facecolors=colour, edgecolors="none"))


def _outline(words: Words) -> Path:
    """The glyphs where they stand, y downwards."""
    glyphs, advance = _glyphs(words.text, words.bold)
    shift = {"start": 0.0, "middle": -advance / 2, "end": -advance}[words.anchor]
    vertices = glyphs.vertices * (words.size, -words.size)
    vertices += (words.x + shift * words.size, words.y)
    return Path(vertices, glyphs.codes)


def _right(words: Words) -> float:
    """The right edge of a line of text that starts at its x."""
    return words.x + _glyphs(words.text, words.bold)[1] * words.size


@lru_cache(maxsize=4096)
def _glyphs(text: str, bold: bool) -> tuple[Path, float]:
    """Outline of a text of font size 1, y upwards, and the width it takes up.

    Digits and Latin letters only: DejaVu Sans comes with matplotlib and has no Chinese.
    """
    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    scale = text_to_path.FONT_SCALE
    vertices, codes = text_to_path.get_text_path(font, text)
    font.set_size(scale)
    advance, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    outline = np.asarray(vertices, dtype=float).reshape(-1, 2) / scale  # an empty text has none
    return Path(outline, np.asarray(codes, dtype=Path.code_type), readonly=True), advance / scale
