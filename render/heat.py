"""How full each GPU is, on the nodes: numbers in, inline SVG out.

The fill goes from pale to dark in LEVELS steps of an equal share of the whole; what is above the
whole has a colour of its own. Small worlds print rank and amount in each cell, large ones are an
embedded picture of one pixel a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from . import geometry
from .palette import ink, ramp, rgb
from .raster import palette_png
from .scene import GAP, PANEL_LIMIT

LEVELS = 8
"""Steps between empty and full."""

PALE, DARK, OVER = "#dcefed", "#006a65", "#8d1c44"
"""Nearly empty, nearly full, and more than there is."""

WIDTH, HEIGHT = 720.0, 420.0
"""Most pixels of a picture of a large world."""

LEFT, LABEL_ROOM = 60.0, 18.0
"""Pixels left of such a picture, and that the label of a row of nodes needs."""


def level_colours() -> list[str]:
    """The colour of each level, the last one of what is above the whole.

    >>> level_colours()[0], level_colours()[-1], len(level_colours())
    ('#dcefed', '#8d1c44', 9)
    """
    steps = ramp(PALE, DARK, LEVELS)
    return ["#" + "".join(f"{channel:02x}" for channel in step) for step in steps] + [OVER]


def levels(share: np.ndarray) -> np.ndarray:
    """The level of each share of the whole: 0 to LEVELS - 1, and LEVELS above the whole.

    >>> levels(np.array([0.0, 0.49, 1.0, 1.01])).tolist()
    [0, 3, 7, 8]
    """
    within = np.minimum((share * LEVELS).astype(np.int64), LEVELS - 1)
    return np.where(share > 1, LEVELS, within)


def heat_svg(
    level: np.ndarray, amounts: Sequence[str], gpus_per_node: int, description: str
) -> str:
    """Every GPU on its node, filled by its level.

    level: of each rank, shape (world,). amounts: what to print of each rank, under its number.
    """
    if len(level) <= PANEL_LIMIT:
        return _cells(level, amounts, gpus_per_node, description)
    return _pixels(level, gpus_per_node, description)


def _cells(level: np.ndarray, amounts: Sequence[str], gpus_per_node: int, description: str) -> str:
    tiles = geometry.node_tiles(len(level), gpus_per_node)
    side = tiles.cell - GAP
    colours = level_colours()
    inks = [ink(colour) for colour in colours]
    frames = "".join(
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6"/>'
        for x, y, w, h in tiles.frames
    )
    labels = "".join(
        f'<text x="{geometry.GUTTER - 6:g}" y="{y + h / 2:g}" text-anchor="end">N{node}</text>'
        for node, (_, y, _, h) in enumerate(tiles.frames)
        if node % tiles.across == 0
    )
    cells = "".join(
        f'<g transform="translate({x + GAP / 2:g},{y + GAP / 2:g})">'
        f'<rect width="{side:g}" height="{side:g}" rx="{side / 8:g}" fill="{colours[own]}"/>'
        f"{_texts(rank, amount, side, inks[own])}</g>"
        for rank, (x, y, own, amount) in enumerate(
            zip(tiles.x.tolist(), tiles.y.tolist(), level.tolist(), amounts)
        )
    )
    return (
        f'<svg class="heat" role="img" viewBox="0 0 {tiles.width:g} {tiles.height:g}" '
        f'style="max-width:{tiles.width:g}px" aria-label="{escape(description)}">'
        f'<g class="frames">{frames}</g><g class="rows">{labels}</g>{cells}</svg>'
    )


def _texts(rank: int, amount: str, side: float, colour: str) -> str:
    """The rank, and under it the amount; a small cell has no room for them."""
    if side < 18:
        return ""
    middle = f'x="{side / 2:g}" text-anchor="middle" fill="{colour}"'
    if side < 34:
        size = min(14.0, side * 0.42)
        return (
            f'<text {middle} y="{side / 2 + size * 0.36:.1f}" font-size="{size:.1f}">{rank}</text>'
        )
    small = min(side * 0.26, side * 1.5 / len(amount))
    return (
        f'<text {middle} y="{side * 0.46:.1f}" font-size="{side * 0.36:.1f}">{rank}</text>'
        f'<text {middle} y="{side * 0.82:.1f}" font-size="{small:.1f}">{escape(amount)}</text>'
    )


def _pixels(level: np.ndarray, gpus_per_node: int, description: str) -> str:
    nodes = geometry.physical_grid(len(level), gpus_per_node)
    grid = nodes.grid
    board = np.zeros(grid.rows * grid.columns, dtype=np.uint8)
    board[grid.cells()[: len(level)]] = 1 + level
    colours = [rgb(colour) for colour in level_colours()]
    uri = palette_png(board.reshape(grid.rows, grid.columns), colours)
    cell = min(WIDTH / grid.columns, HEIGHT / grid.rows)
    width, height = grid.columns * cell, grid.rows * cell
    tall = nodes.tile[1] * cell
    every = max(1, -int(-LABEL_ROOM // tall))
    labels = "".join(
        f'<text x="{LEFT - 6:g}" y="{(row + 0.5) * tall + 4:g}" text-anchor="end">'
        f"N{row * nodes.across}</text>"
        for row in range(0, grid.rows // nodes.tile[1], every)
    )
    return (
        f'<svg class="heat large" role="img" viewBox="0 0 {LEFT + width:g} {height + 8:g}" '
        f'style="max-width:{LEFT + width:g}px" aria-label="{escape(description)}">'
        f'<g class="rows">{labels}</g><image x="{LEFT:g}" width="{width:g}" height="{height:g}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" href="{uri}"/></svg>'
    )
