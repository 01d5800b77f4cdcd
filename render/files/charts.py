"""Charts of memory and traffic -> matplotlib, for files; and the table of all charts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from ..palette import GROUPS, ink, ramp, rgb
from ..scenes.charts import BarsChart, HeldChart, MatrixChart, TimelineChart
from ..scenes.groups import GAP
from ..svg import shards as places
from ..svg.exchange import Exchange
from ..svg.heat import Heat, cell_texts
from ..svg.matrix import COLOURS, LEVELS
from ..svg.shards import Shards
from .canvas import BASELINE, LABEL, LOOKS, Look, Words, add, boxes, draw_words, prepare, rounded
from .exchange import draw_exchange
from .timeline import draw_held, draw_timeline

FAINT = 0.28
"""How much of a share's colour is left where it is not what it will be."""

OTHERS = "#8d8d94"
"""The share of ranks that are left out."""

WARNING = {"light": "#b91c1c", "dark": "#fca5a5"}
"""The ink of what is above its limit."""

DARK_COLOURS = ("#1d2752", "#c9d4ff")
"""Least and most of a matrix on a dark page."""

BAR_SIDE = 18.0
"""Pixels of a bar's height, in a row that is a little higher."""


def draw_bars(ax: Axes, chart: BarsChart, theme: str = "light") -> None:
    """One bar a row, its parts side by side, and the limit as a dashed line across all."""
    look = LOOKS[theme]
    prepare(ax, chart.width, chart.height)
    corners, sizes, fills, words = [], [], [], []
    for row, bar in enumerate(chart.bars):
        top = chart.top + row * chart.row + (chart.row - BAR_SIDE) / 2
        x = chart.left
        for colour, size in bar.parts:
            corners.append((x, top))
            sizes.append((size * chart.pixels, BAR_SIDE))
            fills.append(colour)
            x += size * chart.pixels
        line = top + BAR_SIDE / 2 + BASELINE * LABEL
        warned = WARNING[theme] if bar.is_over else look.ink
        words.append(Words(chart.left - 8, line, bar.name, LABEL, look.ink, "end"))
        words.append(Words(chart.width, line, bar.told, LABEL, warned, "end", bar.is_over))
    edge = {"edgecolors": look.page, "linewidths": 0.6}
    boxes(ax, np.array(corners), np.array(sizes), facecolors=fills, **edge)
    at = chart.left + chart.limit * chart.pixels
    line = [(at, chart.top - 4), (at, chart.height)]
    add(ax, LineCollection([line], colors=look.ink, linewidths=1.5, linestyles="dashed"))
    anchor = "end" if chart.limit * chart.pixels > chart.plot / 2 else "start"
    words.append(Words(at, chart.top - 9, chart.limit_name, LABEL, look.ink, anchor, True))
    draw_words(ax, words)


def draw_heat(ax: Axes, heat: Heat, theme: str = "light") -> None:
    """Every GPU on its node, filled by its level; a large world as one picture."""
    look = LOOKS[theme]
    if heat.is_large:
        colours = np.array([rgb(look.page), *map(rgb, heat.palette)], dtype=np.uint8)
        box = (heat.left, heat.width, heat.nodes.grid.rows * heat.cell, 0)
        cells = colours[heat.board()]
        ax.imshow(cells, interpolation="none", extent=box, aspect="auto", clip_on=False)
    prepare(ax, heat.width, heat.height)
    words = [
        Words(heat.left - 6, y + BASELINE * LABEL, text, LABEL, look.quiet, "end")
        for y, text in heat.labels
    ]
    draw_words(ax, words if heat.is_large else [*words, *_heat_cells(ax, heat, look)])


def _heat_cells(ax: Axes, heat: Heat, look: Look) -> list[Words]:
    """Frames and cells of a small world; the words in them."""
    tiles, colours = heat.tiles, heat.palette
    side = tiles.cell - GAP
    frames = [rounded(w, h, 6.0) + np.array([x, y]) for x, y, w, h in tiles.frames]
    edge = {"edgecolors": look.edge, "linewidths": 0.75}
    add(ax, PolyCollection(frames, facecolors="none", **edge))
    corners = np.stack([tiles.x, tiles.y], axis=-1) + GAP / 2
    fills = [colours[one] for one in heat.level.tolist()]
    cells = rounded(side, side, side / 8) + corners[:, None, :]
    add(ax, PolyCollection(cells, facecolors=fills, edgecolors="none"))
    inks = [ink(colour) for colour in colours]
    return [
        Words(x + side / 2, y + line, text, size, inks[heat.level[rank]], "middle")
        for rank, (x, y) in enumerate(corners.tolist())
        for line, size, text in cell_texts(rank, heat.amounts[rank], side)
    ]


def draw_shards(ax: Axes, shards: Shards, theme: str = "light") -> None:
    """The ranks of a group side by side, a box a tensor, a share in its owner's colour."""
    look = LOOKS[theme]
    prepare(ax, shards.width, shards.height)
    each = shards.box / shards.slots
    frames, filled, fills, words = [], [], [], []
    for place, own in enumerate(shards.shown):
        left = places.LEFT + shards.column(place) * shards.step
        middle = left + shards.box / 2
        words.append(
            Words(middle, places.TOP - 6, str(shards.ranks[own]), LABEL, look.ink, "middle")
        )
        for row, (_, state) in enumerate(shards.holds):
            top = places.TOP + row * places.ROW
            frames.append((left, top))
            for x, slot, is_faint in shards.shares(place, state):
                filled.append((left + x, top))
                colour = OTHERS if slot < 0 else GROUPS[theme][slot]
                fills.append(_faded(colour, look.page) if is_faint else colour)
    if filled:
        boxes(ax, np.array(filled), np.full((len(filled), 2), (each, places.BAR)), facecolors=fills)
    sizes = np.full((len(frames), 2), (shards.box, places.BAR))
    boxes(ax, np.array(frames), sizes, facecolors="none", edgecolors=look.quiet, linewidths=0.75)
    for row, (letter, _) in enumerate(shards.holds):
        line = places.TOP + row * places.ROW + places.BAR - 3
        words.append(Words(places.LEFT - 8, line, letter, LABEL, look.ink, "end"))
    if shards.has_more:
        x = places.LEFT + (len(shards.shown) - 1) * shards.step + shards.box / 2
        words.append(Words(x, places.TOP + 2 * places.ROW - 3, "…", LABEL, look.ink, "middle"))
    draw_words(ax, words)


def _faded(colour: str, page: str) -> str:
    mixed = (round(FAINT * a + (1 - FAINT) * b) for a, b in zip(rgb(colour), rgb(page)))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def draw_matrix(ax: Axes, chart: MatrixChart, theme: str = "light") -> None:
    """One pixel a pair, lines between nodes, labels at both axes, the scale at the right."""
    look, picture = LOOKS[theme], chart.picture
    colours = ramp(*(COLOURS if theme == "light" else DARK_COLOURS), LEVELS)
    pixels = np.array([rgb(look.page), *colours], dtype=np.uint8)[picture.levels]
    left, top, side, cell = chart.left, chart.top, chart.side, picture.cell
    right, bottom = left + side, top + side
    picture_of = {"interpolation": "none", "aspect": "auto", "clip_on": False}
    ax.imshow(pixels, extent=(left, right, bottom, top), **picture_of)
    scale = right + 18
    steps = np.array(colours[::-1], dtype=np.uint8)[:, None, :]
    ax.imshow(steps, extent=(scale, scale + chart.bar, bottom, top), **picture_of)
    prepare(ax, chart.width, chart.height)
    lines = [
        line
        for at in picture.borders
        for line in (
            [(left + at * cell, top), (left + at * cell, bottom)],
            [(left, top + at * cell), (right, top + at * cell)],
        )
    ]
    add(ax, LineCollection(lines, colors=look.edge, linewidths=0.45, capstyle="butt"))
    corners = np.array([(left, top), (scale, top)])
    sizes = np.array([(side, side), (chart.bar, side)])
    boxes(ax, corners, sizes, facecolors="none", edgecolors=look.edge, linewidths=0.75)
    down = BASELINE * LABEL
    words = [Words(left, LABEL, chart.axes, LABEL, look.quiet)]
    for at, text in picture.labels:
        middle = (at + 0.5) * cell
        words.append(Words(left - 5, top + middle + down, text, LABEL, look.ink, "end"))
        words.append(Words(left + middle, top - 6, text, LABEL, look.ink, "middle"))
    for at, text in chart.scale:
        words.append(Words(scale + chart.bar + 6, bottom - at * side + down, text, LABEL, look.ink))
    draw_words(ax, words)


CHARTS: dict[type, Callable[[Axes, Any, str], None]] = {
    TimelineChart: draw_timeline,
    HeldChart: draw_held,
    BarsChart: draw_bars,
    Heat: draw_heat,
    Shards: draw_shards,
    MatrixChart: draw_matrix,
    Exchange: draw_exchange,
}
"""How each type of chart is drawn; every one has a width and a height in pixels."""
