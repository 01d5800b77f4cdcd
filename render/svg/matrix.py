"""The matrix of bytes -> inline SVG: a palette PNG that the browser scales, and a cursor."""

from __future__ import annotations

from functools import cache
from html import escape

import numpy as np

from ..draw.charts import draw_pairs, matrix_colours
from ..png import png_uri
from ..scenes.matrix import LEFT, LEVELS, RIGHT, SIDE, TOP, MatrixPicture
from .marks import marks_svg


def matrix_svg(picture: MatrixPicture, description: str) -> str:
    """The picture as SVG; ``description`` is the text for screen readers."""
    cell = picture.cell
    return (
        f'<svg class="traffic-matrix" tabindex="0" role="img" aria-label="{escape(description)}" '
        f'data-n="{len(picture.levels)}" data-cell="{cell:g}" data-left="{LEFT:g}" '
        f'data-top="{TOP:g}" viewBox="0 0 {LEFT + SIDE + RIGHT:g} {TOP + SIDE + 6:g}">'
        f"{marks_svg(draw_pairs(picture, (LEFT, TOP), SIDE, 'page'))}"
        f'<rect class="traffic-cursor" width="{max(cell, 4):g}" height="{max(cell, 4):g}" '
        'visibility="hidden"/></svg>'
    )


@cache
def scale_png(theme: str) -> str:
    """The colours from least to most, in one row."""
    levels = np.arange(1, LEVELS + 1, dtype=np.uint8).reshape(1, -1)
    return png_uri(levels, matrix_colours(theme))
