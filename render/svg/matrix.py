"""Who sends how much to whom -> inline SVG.

The cells are one palette PNG that the browser scales; borders of nodes are lines above it. Light is
little: the colours are made for the light theme, and the page inverts them in the dark one, as it
does with the large pictures of groups.
"""

from __future__ import annotations

from functools import cache
from html import escape

import numpy as np

from ..palette import ramp
from ..png import png_uri
from ..scenes.matrix import COLOURS, LEFT, LEVELS, RIGHT, SIDE, TOP, MatrixPicture, label_place


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
