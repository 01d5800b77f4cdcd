"""Charts of memory and traffic -> marks of a file; and the table of all charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..marks import BASELINE, LABEL, LOOKS, Blocks, Lines, Look, Mark, Pixels, Words, ring
from ..palette import ink, ramp, rgb
from ..scenes.charts import BarsChart, HeldChart, MatrixChart, PointsChart, TimelineChart
from ..scenes.exchange import Exchange, draw_exchange
from ..scenes.groups import GAP
from ..scenes.shards import Shards, draw_shards
from ..svg.heat import Heat, cell_texts
from ..svg.matrix import COLOURS, LEVELS, label_place
from .tables import CodeChart, TableChart, draw_code, draw_points, draw_table
from .timeline import draw_held, draw_timeline

WARNING = {"light": "#b91c1c", "dark": "#fca5a5"}
"""The ink of what is above its limit."""

DARK_COLOURS = ("#1d2752", "#c9d4ff")
"""Least and most of a matrix on a dark page."""

THICK = 0.75
"""How much of its row a bar is high."""


def draw_bars(chart: BarsChart, theme: str) -> Iterator[Mark]:
    """One bar a row, its parts side by side, and the limit as a dashed line across all."""
    look = LOOKS[theme]
    side = THICK * chart.row
    corners, sizes, fills = [], [], []
    words = []
    for row, bar in enumerate(chart.bars):
        top = chart.top + row * chart.row + (chart.row - side) / 2
        x = chart.left
        for colour, size in bar.parts:
            corners.append((x, top))
            sizes.append((size * chart.pixels, side))
            fills.append(colour)
            x += size * chart.pixels
        line = top + side / 2 + BASELINE * LABEL
        warned = WARNING[theme] if bar.is_over else look.ink
        words.append(Words(chart.left - 8, line, bar.name, LABEL, look.ink, "end"))
        words.append(Words(chart.width, line, bar.caption, LABEL, warned, "end", bar.is_over))
    if corners:
        yield Blocks(np.array(corners), np.array(sizes), fills, edge=look.page, width=0.8)
    at = chart.left + chart.limit * chart.pixels
    line = [(at, chart.top - 4), (at, chart.height)]
    yield Lines([line], look.ink, 2.0, (7.4, 3.2))
    anchor = "end" if chart.limit * chart.pixels > chart.plot / 2 else "start"
    words.append(Words(at, chart.top - 9, chart.limit_name, LABEL, look.ink, anchor, True))
    yield from words


def draw_heat(heat: Heat, theme: str) -> Iterator[Mark]:
    """Every GPU on its node, filled by its level; a large world as one picture."""
    look = LOOKS[theme]
    if heat.is_large:
        colours = np.array([rgb(look.page), *map(rgb, heat.palette)], dtype=np.uint8)
        bottom = heat.nodes.grid.rows * heat.cell
        yield Pixels(colours[heat.board()], (heat.left, 0.0, heat.width, bottom))
        for x, y, radius in heat.rings:
            yield ring(x, y, radius, look.page, 4.0)
            yield ring(x, y, radius, look.ink, 2.0)
    else:
        yield from _heat_cells(heat, look)
    for x, y, text in heat.labels:
        yield Words(x, y + BASELINE * LABEL, text, LABEL, look.quiet, "end")


def _heat_cells(heat: Heat, look: Look) -> Iterator[Mark]:
    tiles, colours = heat.tiles, heat.palette
    side = tiles.cell - GAP
    frames = np.array(tiles.frames)
    yield Blocks(frames[:, :2], frames[:, 2:], edge=look.edge, radius=6.0)
    corners = np.stack([tiles.x, tiles.y], axis=-1) + GAP / 2
    fills = [colours[level] for level in heat.level.tolist()]
    yield Blocks(corners, np.full(2, side), fills, radius=side / 8)
    inks = [ink(colour) for colour in colours]
    for rank, (x, y) in enumerate(corners.tolist()):
        for line, size, text in cell_texts(rank, heat.amounts[rank], side):
            yield Words(x + side / 2, y + line, text, size, inks[heat.level[rank]], "middle")


def draw_matrix(chart: MatrixChart, theme: str) -> Iterator[Mark]:
    """One pixel a pair, lines between nodes, labels at both axes, the scale at the right."""
    look, picture = LOOKS[theme], chart.picture
    colours = ramp(*(COLOURS if theme == "light" else DARK_COLOURS), LEVELS)
    pixels = np.array([rgb(look.page), *colours], dtype=np.uint8)[picture.levels]
    left, top, side = chart.left, chart.top, chart.side
    cell = side / len(picture.levels)
    right, bottom = left + side, top + side
    yield Pixels(pixels, (left, top, right, bottom))
    scale = right + 18
    steps = np.array(colours[::-1], dtype=np.uint8)[:, None, :]
    yield Pixels(steps, (scale, top, scale + chart.bar, bottom))
    lines = [
        line
        for at in picture.borders
        for line in (
            [(left + at * cell, top), (left + at * cell, bottom)],
            [(left, top + at * cell), (right, top + at * cell)],
        )
    ]
    yield Lines(lines, look.edge, 0.6)
    corners = np.array([(left, top), (scale, top)])
    yield Blocks(corners, np.array([(side, side), (chart.bar, side)]), edge=look.edge)
    down = BASELINE * LABEL
    yield Words(left, LABEL, chart.axes, LABEL, look.quiet)
    right_of, below, anchor = label_place(cell)
    for at, text in picture.labels:
        x, y = left + at * cell + right_of, top + at * cell + below + down
        yield Words(left - 5, y, text, LABEL, look.ink, "end")
        yield Words(x, top - 6, text, LABEL, look.ink, anchor)
    for at, text in chart.scale:
        yield Words(scale + chart.bar + 6, bottom - at * side + down, text, LABEL, look.ink)


CHARTS: dict[type, Callable[[Any, str], Iterator[Mark]]] = {
    TimelineChart: draw_timeline,
    HeldChart: draw_held,
    BarsChart: draw_bars,
    Heat: draw_heat,
    Shards: draw_shards,
    MatrixChart: draw_matrix,
    Exchange: draw_exchange,
    TableChart: draw_table,
    CodeChart: draw_code,
    PointsChart: draw_points,
}
"""How each type of chart is drawn; every one has a width and a height in pixels."""
