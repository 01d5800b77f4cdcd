"""Who sends how much to whom -> inline SVG: one pixel a pair, the colour its bytes on a log scale.

The cells are one palette PNG that the browser scales; borders of nodes are lines above it. Light is
little: the colours are made for the light theme, and the page inverts them in the dark one, as it
does with the large pictures of groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from html import escape

import numpy as np

from ..palette import ramp
from ..png import png_uri

LEVELS = 24
"""Steps of the colour scale."""

COLOURS = ("#aebff2", "#14145e")
"""Least and most."""

DECADES = 6
"""The scale reaches so many powers of ten below the most; what is less has the first colour."""

SIDE = 640.0
LEFT, TOP, RIGHT = 62.0, 24.0, 18.0
CHARACTER, APART = 7.0, 9.0  # width of one in a label, and pixels between two labels
SMALL = 20.0  # pixels of a cell that a label is larger than


@dataclass(frozen=True, eq=False)
class MatrixPicture:
    """What to draw.

    Attributes:
        levels: uint8, shape (n, n), sender by receiver: 0 nothing, 1 to LEVELS little to much.
        low, high: bytes of the ends of the scale.
        borders: cells before which a node begins, where there are lines.
        labels: cells with their text, such as a rank or N3 for a node.
    """

    levels: np.ndarray
    low: float
    high: float
    borders: tuple[int, ...]
    labels: tuple[tuple[int, str], ...]

    @property
    def cell(self) -> float:
        return SIDE / len(self.levels)


def matrix_picture(sent: np.ndarray, ranks_per_cell: int, gpus_per_node: int) -> MatrixPicture:
    """The picture of bytes by sender and receiver, shape (n, n).

    >>> picture = matrix_picture(np.array([[0.0, 1e9], [1e3, 0.0]]), 1, gpus_per_node=8)
    >>> picture.levels.tolist(), picture.labels
    ([[0, 24], [1, 0]], ((0, '0'), (1, '1')))
    """
    high = float(sent.max(initial=0.0)) or 1.0
    least = float(sent[sent > 0].min(initial=high))
    low = max(least, high / 10**DECADES)
    span = np.log(high / low) or 1.0
    at = np.log(np.maximum(sent, low) / low) / span
    levels = np.where(sent > 0, 1 + np.rint((LEVELS - 1) * at), 0).astype(np.uint8)
    n = len(sent)
    nodes = ranks_per_cell > 1
    cell = SIDE / n
    widest = CHARACTER * len(_label(n - 1, ranks_per_cell, gpus_per_node)) + APART
    unit = 1 if nodes or cell >= widest else gpus_per_node
    step = unit * 2 ** max(0, math.ceil(math.log2(widest / (cell * unit))))
    labels = tuple((at, _label(at, ranks_per_cell, gpus_per_node)) for at in range(0, n, step))
    is_lined = not nodes and cell * gpus_per_node >= 6
    borders = tuple(range(gpus_per_node, n, gpus_per_node)) if is_lined else ()
    return MatrixPicture(levels, low, high, borders, labels)


def _label(cell: int, ranks_per_cell: int, gpus_per_node: int) -> str:
    """The rank of a cell, or the first node of several ranks."""
    return str(cell) if ranks_per_cell == 1 else f"N{cell * ranks_per_cell // gpus_per_node}"


def label_place(cell: float) -> tuple[float, float, str]:
    """Where a label stands, right of and below the corner of its cell, and its anchor.

    That of small cells begins where they do: in the corner of the picture two would touch.
    """
    return (0.0, CHARACTER, "start") if cell < SMALL else (cell / 2, cell / 2, "middle")


def matrix_svg(picture: MatrixPicture, description: str) -> str:
    """The picture as SVG; ``description`` is its text equivalent for screen readers."""
    colours = ramp(*COLOURS, LEVELS)
    n, cell = len(picture.levels), picture.cell
    lines = "".join(
        f"M{LEFT + at * cell:.2f} {TOP:g}v{SIDE:g}M{LEFT:g} {TOP + at * cell:.2f}h{SIDE:g}"
        for at in picture.borders
    )
    across, down, anchor = label_place(cell)
    labels = "".join(
        f'<text x="{LEFT - 5:g}" y="{TOP + at * cell + down:.1f}" text-anchor="end">{text}</text>'
        f'<text x="{LEFT + at * cell + across:.1f}" y="{TOP - 9:g}" text-anchor="{anchor}">{text}'
        "</text>"
        for at, text in picture.labels
    )
    box = f'x="{LEFT:g}" y="{TOP:g}" width="{SIDE:g}" height="{SIDE:g}"'
    return (
        f'<svg class="traffic-matrix" tabindex="0" role="img" aria-label="{escape(description)}" '
        f'data-n="{n}" data-cell="{cell:g}" data-left="{LEFT:g}" data-top="{TOP:g}" '
        f'viewBox="0 0 {LEFT + SIDE + RIGHT:g} {TOP + SIDE + 6:g}">'
        f'<rect class="traffic-ground" {box}/>'
        f'<image {box} preserveAspectRatio="none" href="{png_uri(picture.levels, colours)}"/>'
        f'<path class="traffic-nodes" d="{lines}"/>'
        f'<g class="rows">{labels}</g>'
        f'<rect class="traffic-cursor" width="{max(cell, 4):g}" height="{max(cell, 4):g}" '
        'visibility="hidden"/></svg>'
    )


@cache
def scale_png() -> str:
    """The colours from little to much, in one row."""
    return png_uri(np.arange(1, LEVELS + 1, dtype=np.uint8).reshape(1, -1), ramp(*COLOURS, LEVELS))
