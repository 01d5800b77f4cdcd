"""A drawing -> the bytes of a PNG, a PDF or an SVG.

PNG and PDF are matplotlib's, with every text as outlines: they need no font where they are shown.
Never pyplot, and no state but cached glyphs, so that any number of threads may draw at once. An SVG
keeps its text as text, in the fonts of whoever opens it.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.path import Path
from PIL import Image

from groups.budget import spend

from .marks import CHINESE, Blocks, Drawing, Lines, Mark, Pixels, Words, glyphs, rounded

MOST_PIXELS, MOST_OF_IMAGES = 4_000_000, 2_500_000
"""Pixels of a PNG, and of one with images in it, at most: matplotlib takes some 40 bytes for each,
and for those some 80."""

PAINTED = 16
"""Pixels that are painted for a unit of work (groups.budget)."""


def to_bytes(drawing: Drawing, form: str, scale: float = 2.0) -> bytes:
    """The drawing as a file: "png" (so many pixels a pixel of the drawing; fewer, where these would
    be more than MOST_PIXELS), "svg" or "pdf"; no dates in it.

    Errors: ValueError for any other form.
    """
    buffer = io.BytesIO()
    if form == "png":
        most = MOST_OF_IMAGES if drawing.has_pixels else MOST_PIXELS
        scale = min(scale, math.sqrt(most / (drawing.width * drawing.height)))
        spend(int(drawing.width * drawing.height * scale**2) // PAINTED, "pixels")
        to_figure(drawing).savefig(
            buffer, format="png", dpi=96 * scale, metadata={"Software": None}
        )
    elif form == "pdf":
        to_figure(drawing).savefig(buffer, format="pdf", metadata={"CreationDate": None})
    elif form == "svg":
        return to_svg(drawing).encode()
    else:
        raise ValueError(f"there is no format {form!r:.40}; try png, svg or pdf")
    return buffer.getvalue()


# -- matplotlib ----------------------------------------------------------------------------------


def to_figure(drawing: Drawing) -> Figure:
    """One data unit of its axes is one pixel of the drawing, y downwards."""
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


def _mark(ax: Axes, mark: Mark, at: np.ndarray, scale: float) -> None:
    if isinstance(mark, Blocks):
        fills = [mark.fill] if isinstance(mark.fill, str) else mark.fill
        outlines = [
            rounded(wide, tall, min(mark.radius, wide / 2, tall / 2)) + np.array([x, y])
            for x, y, wide, tall in mark.each()
        ]
        shapes = [outline * scale + at for outline in outlines]
        edge = {"edgecolors": mark.edge, "linewidths": 0.75 * scale * mark.width}
        _add(ax, PolyCollection(shapes, facecolors=fills, **edge))
    elif isinstance(mark, Lines):
        lines = [np.asarray(line) * scale + at for line in mark.lines]
        width = 0.75 * scale * mark.width
        if mark.fill != "none":
            style = {"edgecolors": mark.colour, "linewidths": width}
            _add(ax, PolyCollection(lines, facecolors=mark.fill, alpha=mark.opacity, **style))
            return
        # Dashes are given in widths of the line.
        dashes = (0, tuple(one / mark.width for one in mark.dashes)) if mark.dashes else "solid"
        style = {"linewidths": width, "linestyles": [dashes], "alpha": mark.opacity}
        _add(ax, LineCollection(lines, colors=mark.colour, capstyle="butt", **style))
    elif isinstance(mark, Pixels):
        (left, top), (right, bottom) = (
            np.array(corner) * scale + at for corner in (mark.box[:2], mark.box[2:])
        )
        box = (left, right, bottom, top)
        options = {"interpolation": "none", "aspect": "auto", "clip_on": False, "zorder": 1}
        ax.imshow(_opaque(mark.cells), extent=box, **options)


def _opaque(cells: np.ndarray) -> np.ndarray:
    """In so many words: matplotlib would add it in eight bytes a channel."""
    return np.pad(cells, ((0, 0), (0, 0), (0, 1)), constant_values=255)


def _words(ax: Axes, words: Sequence[Words], at: np.ndarray, scale: float) -> None:
    """Lines of text as one collection: a text artist each would take 20 times longer."""
    outlines = [_outline(word, at, scale) for word in words]
    inks = [word.ink for word in words]
    _add(ax, PathCollection(outlines, facecolors=inks, edgecolors="none"))


def _outline(words: Words, at: np.ndarray, scale: float) -> Path:
    """The glyphs where they stand, y downwards."""
    outline, width = glyphs(words.text, words.bold, words.mono)
    shift = {"start": 0.0, "middle": -width / 2, "end": -width}[words.anchor]
    vertices = outline.vertices * (words.size, -words.size)
    vertices += (words.x + shift * words.size, words.y)
    return Path(vertices * scale + at, outline.codes)


def _add(ax: Axes, collection: PolyCollection | LineCollection | PathCollection) -> None:
    collection.set(clip_on=False, zorder=1)  # what is added later is on top, of whatever class
    ax.add_collection(collection, autolim=False)


# -- SVG -----------------------------------------------------------------------------------------

FONTS = ", ".join(("system-ui", "DejaVu Sans", *(f"'{name}'" for name in CHINESE), "sans-serif"))
MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"


def to_svg(drawing: Drawing) -> str:
    """The drawing as one SVG, its text as text."""
    wide, tall = _number(drawing.width), _number(drawing.height)
    placed = "".join(
        f'<g transform="translate({_number(x)} {_number(y)}) scale({scale:.6g})">'
        f"{''.join(one for mark in marks for one in _svg(mark))}</g>"
        for x, y, scale, marks in drawing.placed
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}" '
        f'viewBox="0 0 {wide} {tall}" font-family="{FONTS}">'
        f'<rect width="{wide}" height="{tall}" fill="{drawing.ground}"/>{placed}</svg>\n'
    )


def _svg(mark: Mark) -> Iterator[str]:
    if isinstance(mark, Words):
        style = f' text-anchor="{mark.anchor}"' if mark.anchor != "start" else ""
        style += ' font-weight="600"' if mark.bold else ""
        style += f' font-family="{MONO}" xml:space="preserve"' if mark.mono else ""
        yield (
            f'<text x="{_number(mark.x)}" y="{_number(mark.y)}" font-size="{_number(mark.size)}" '
            f'fill="{mark.ink}"{style}>{escape(mark.text)}</text>'
        )
    elif isinstance(mark, Blocks):
        edge = "" if mark.edge == "none" else f' stroke="{mark.edge}"'
        yield f'<g fill="none"{edge} stroke-width="{_number(mark.width)}">'
        fills = [mark.fill] if isinstance(mark.fill, str) else mark.fill
        for number, (x, y, wide, tall) in enumerate(mark.each()):
            yield (
                f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(wide)}" '
                f'height="{_number(tall)}" rx="{_number(mark.radius)}" '
                f'fill="{fills[number % len(fills)]}"/>'
            )
        yield "</g>"
    elif isinstance(mark, Lines):
        close = "z" if mark.fill != "none" else ""
        path = "".join(
            "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in np.asarray(line).tolist())
            + close
            for line in mark.lines
        )  # fmt: skip
        dashes = " ".join(map(_number, mark.dashes))
        yield (
            f'<path d="{path}" fill="{mark.fill}" stroke="{mark.colour}" '
            f'stroke-width="{_number(mark.width)}" opacity="{mark.opacity:g}"'
            f"{f' stroke-dasharray={chr(34)}{dashes}{chr(34)}' if dashes else ''}/>"
        )
    else:
        left, top, right, bottom = mark.box
        yield (
            f'<image x="{_number(left)}" y="{_number(top)}" width="{_number(right - left)}" '
            f'height="{_number(bottom - top)}" preserveAspectRatio="none" '
            f'style="image-rendering:pixelated" href="{_png(mark.cells)}"/>'
        )


def _number(value: float) -> str:
    """To a hundredth of a pixel.

    >>> _number(2.0), _number(1 / 3)
    ('2', '0.33')
    """
    return f"{round(value, 2):.9g}"


def _png(cells: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(cells)).save(buffer, "PNG", compress_level=6)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
