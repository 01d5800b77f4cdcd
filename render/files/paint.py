"""A drawing -> a PNG or a PDF with matplotlib, which takes 2.6 seconds to import.

Every text is outlines: no font is needed where it is shown. Never pyplot, and no state but cached
glyphs, so that any number of threads may draw at once.
"""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from groups.budget import spend
from groups.kept import kept

from ..marks import CHINESE, Blocks, Drawing, Lines, Pixels, Plain, Words, is_wide, rounded
from ..png import png

MOST_PIXELS, MOST_OF_IMAGES = 4_000_000, 2_500_000
"""The most pixels of a PNG, and of one with images: matplotlib takes some 40 bytes per pixel, and
some 80 with images."""

PAINTED = 16
"""Pixels painted per unit of work (groups.budget)."""


def to_pdf(drawing: Drawing) -> bytes:
    """The drawing as a PDF without a date."""
    buffer = io.BytesIO()
    to_figure(drawing).savefig(buffer, format="pdf", metadata={"CreationDate": None})
    return buffer.getvalue()


def to_png(drawing: Drawing, scale: float = 2.0) -> bytes:
    """The drawing with so many pixels per pixel; fewer if these would be too many."""
    most = MOST_OF_IMAGES if drawing.has_pixels else MOST_PIXELS
    scale = min(scale, math.sqrt(most / (drawing.width * drawing.height)))
    spend(int(drawing.width * drawing.height * scale**2) // PAINTED, "pixels")
    figure = to_figure(drawing)
    figure.set_dpi(96 * scale)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    # Runs of one colour: about as small as zlib's usual search makes it, in 4 to 21 % less time.
    dots = (96 * scale, 96 * scale)
    return png(np.asarray(canvas.buffer_rgba()), dpi=dots, compress_type=zlib.Z_RLE)


def to_figure(drawing: Drawing) -> Figure:
    """A matplotlib figure: one data unit of its axes is one pixel of the drawing, y downwards."""
    size = drawing.width / 96, drawing.height / 96
    figure = Figure(figsize=size, dpi=96, facecolor=drawing.ground)
    FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    for x, y, scale, marks in drawing.placed:
        at = np.array([x, y])
        for kind, run in groupby(marks, key=type):
            if kind is Words:
                _words(ax, list(run), at, scale)  # type: ignore[arg-type]
            else:
                for mark in run:
                    _mark(ax, mark, at, scale)
    # After all images, which move the limits.
    ax.set(xlim=(0, drawing.width), ylim=(drawing.height, 0), aspect="auto")
    return figure


def _mark(ax: Axes, mark: Plain, at: np.ndarray, scale: float) -> None:
    if isinstance(mark, Blocks):
        fills = [mark.fill] if isinstance(mark.fill, str) else mark.fill
        outlines = [
            rounded(wide, tall, min(mark.radius, wide / 2, tall / 2)) + np.array([x, y])
            for x, y, wide, tall in mark.each()
        ]
        shapes = [outline * scale + at for outline in outlines]
        width = 0.75 * scale * mark.width
        _add(ax, PolyCollection(shapes, facecolors=fills, edgecolors=mark.edge, linewidths=width))
    elif isinstance(mark, Lines):
        lines = [np.asarray(line) * scale + at for line in mark.lines]
        lines = [_curve(line) for line in lines] if mark.is_curved else lines
        width = 0.75 * scale * mark.width
        if mark.fill != "none":
            areas = PolyCollection(lines, facecolors=mark.fill, alpha=mark.opacity)
            areas.set(edgecolor=mark.colour, linewidth=width)
            _add(ax, areas)
            return
        # Dashes are given in widths of the line.
        dashes = (0, tuple(dash / mark.width for dash in mark.dashes)) if mark.dashes else "solid"
        drawn = LineCollection(lines, colors=mark.colour, linewidths=width, linestyles=[dashes])
        drawn.set(alpha=mark.opacity, capstyle="butt")
        _add(ax, drawn)
    elif isinstance(mark, Pixels):
        (left, top), (right, bottom) = (
            np.array(corner) * scale + at for corner in (mark.box[:2], mark.box[2:])
        )
        box = (left, right, bottom, top)
        # With opacities: matplotlib would add them in eight bytes a channel.
        image = ax.imshow(mark.colours(), extent=box, interpolation="none", aspect="auto")
        image.set(clip_on=False, zorder=1)


CURVED = 24
"""The number of points of a curve."""


def _curve(points: np.ndarray) -> np.ndarray:
    """Points on a cubic Bézier curve with these ends and control points."""
    t = np.linspace(0, 1, CURVED)[:, None]
    weights = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3]
    return np.concatenate(weights, axis=1) @ points


def _words(ax: Axes, words: Sequence[Words], at: np.ndarray, scale: float) -> None:
    """Lines of text as one path for each colour: a text artist per line would take 20 times
    longer."""
    inks: dict[str, list[Path]] = {}
    for word in words:
        inks.setdefault(word.ink, []).append(_outline(word, at, scale))
    outlines = [Path.make_compound_path(*paths) for paths in inks.values()]
    _add(ax, PathCollection(outlines, facecolors=[*inks], edgecolors="none"))


def _outline(words: Words, at: np.ndarray, scale: float) -> Path:
    """The glyphs at their places, y downwards."""
    outline, width = glyphs(words.text, words.bold, words.mono)
    shift = {"start": 0.0, "middle": -width / 2, "end": -width}[words.anchor]
    vertices = np.asarray(outline.vertices) * np.array([words.size, -words.size])
    vertices += np.array([words.x + shift * words.size, words.y])
    return Path(vertices * scale + at, outline.codes)


@lru_cache(maxsize=1)
def chinese_font() -> str:
    """A font of this machine with Chinese letters; empty if there is none."""
    installed = {font.name for font in fontManager.ttflist}
    return next((name for name in CHINESE if name in installed), "")


@kept
def glyphs(text: str, bold: bool, mono: bool = False) -> tuple[Path, float]:
    """The outline of a text in font size 1, y upwards, and its width.

    DejaVu comes with matplotlib and has no Chinese, for which a font of the machine stands in.
    """
    families = ["DejaVu Sans Mono" if mono else "DejaVu Sans"]
    if is_wide(text) and chinese_font():
        families.append(chinese_font())
    font = FontProperties(family=families, weight="bold" if bold else "normal")
    scale = text_to_path.FONT_SCALE
    vertices, codes = text_to_path.get_text_path(font, text)
    font.set_size(scale)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    outline = np.asarray(vertices, dtype=float).reshape(-1, 2) / scale  # an empty text has none
    return Path(outline, np.asarray(codes, dtype=Path.code_type), readonly=True), width / scale


def _add(ax: Axes, collection: PolyCollection | LineCollection | PathCollection) -> None:
    collection.set(clip_on=False, zorder=1)  # what is added later is on top, of whatever class
    ax.add_collection(collection, autolim=False)
