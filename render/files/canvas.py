"""What all matplotlib painters share: the looks of both themes, axes in scene pixels, text.

One data unit is one scene pixel, y downwards. Text is drawn as glyph outlines, all lines of one ink
as one collection: a text artist each would take 20 times longer, and outlines need no fonts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from ..palette import STAGE_GREYS


@dataclass(frozen=True)
class Look:
    """The colours of one theme that are not the palette's."""

    page: str
    ink: str
    quiet: str  # of labels that matter less
    edge: str  # of a node's frame, a box, an axis
    ground: str  # of an empty row
    greys: tuple[str, str]  # first and last stage


LOOKS: dict[str, Look] = {
    "light": Look("#ffffff", "#1f2937", "#4b5563", "#9ca3af", "#f3f4f6", STAGE_GREYS["light"]),
    "dark": Look("#0b0f19", "#e5e7eb", "#b6bcc8", "#6b7280", "#1b2230", STAGE_GREYS["dark"]),
}

LABEL = 11.0
"""Font size in pixels of the labels of rows and columns."""

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


def axes(made: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes over a box that is given in pixels from the top left."""
    whole_width, whole_height = made.get_size_inches() * 96
    bottom = whole_height - top - height
    box = (left / whole_width, bottom / whole_height, width / whole_width, height / whole_height)
    return made.add_axes(box)


def prepare(ax: Axes, width: float, height: float) -> None:
    """One data unit a scene pixel, the origin at the top left, nothing but the scene."""
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    ax.set_axis_off()


def add(ax: Axes, collection) -> None:
    collection.set(clip_on=False, zorder=1)  # what is added later is on top, of whatever class
    ax.add_collection(collection, autolim=False)


@lru_cache(maxsize=64)
def rounded(width: float, height: float, radius: float) -> np.ndarray:
    """Outline of a rectangle with round corners at the origin: shape (corners * 4, 2)."""
    turn = np.linspace(0, np.pi / 2, 7 if radius else 1)
    arc = radius * np.stack([1 - np.cos(turn), 1 - np.sin(turn)], axis=-1)
    size, back = (width, height), arc[::-1]
    return np.concatenate(
        [arc, np.abs((width, 0) - back), size - arc, np.abs((0, height) - back)], axis=0
    )


def boxes(ax: Axes, corners: np.ndarray, sizes: np.ndarray, **style) -> None:
    """Rectangles in one collection; corners (x, y) and sizes (width, height): shape (boxes, 2)."""
    unit = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    outlines = corners[:, None, :] + sizes[:, None, :] * unit
    add(ax, PolyCollection(outlines, **{"edgecolors": "none", **style}))


# -- text as glyph outlines ----------------------------------------------------------------------


def draw_words(ax: Axes, words: Sequence[Words]) -> None:
    """All lines of text as one collection an ink."""
    for colour, same in groupby(sorted(words, key=lambda word: word.ink), lambda word: word.ink):
        outlines = [_outline(word) for word in same]
        add(ax, PathCollection(outlines, facecolors=colour, edgecolors="none"))


def _outline(words: Words) -> Path:
    """The glyphs where they stand, y downwards."""
    outline, advance = glyphs(words.text, words.bold)
    shift = {"start": 0.0, "middle": -advance / 2, "end": -advance}[words.anchor]
    vertices = outline.vertices * (words.size, -words.size)
    vertices += (words.x + shift * words.size, words.y)
    return Path(vertices, outline.codes)


def right_of(words: Words) -> float:
    """The right edge of a line of text that starts at its x."""
    return words.x + glyphs(words.text, words.bold)[1] * words.size


@lru_cache(maxsize=4096)
def glyphs(text: str, bold: bool) -> tuple[Path, float]:
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
