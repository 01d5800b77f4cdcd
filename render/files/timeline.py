"""Timelines and what ranks hold meanwhile -> matplotlib, for files."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from ..palette import ink, rgb
from ..scenes.charts import HELD, HeldChart, TimelineChart
from ..scenes.timeline import LABEL_ROOM, MOST_SHADES, Strip, shade
from ..svg.timeline import AXIS, DIGIT, KINDS, MARGIN, axis_of, gap, level_steps, places
from .canvas import BASELINE, LABEL, LOOKS, Look, Words, add, boxes, draw_words, prepare

DARKER = 0.86
"""How much darker every other micro-batch of an embedded picture is."""


def draw_timeline(ax: Axes, chart: TimelineChart, theme: str = "light") -> None:
    """One op a box with its micro-batch where it fits; very many ops as one picture."""
    strip, look = chart.strip, LOOKS[theme]
    if strip.is_picture:
        _image(ax, chart, look)
        prepare(ax, chart.width, chart.height)  # after imshow, which moves the limits
    else:
        prepare(ax, chart.width, chart.height)
        _ground(ax, chart, strip.row, look)
        _ops(ax, chart, look)
    draw_words(ax, [*_rank_words(chart, strip.row, look), *_axis_words(chart, look)])


def draw_held(ax: Axes, chart: HeldChart, theme: str = "light") -> None:
    """The areas under the curves, one row a rank."""
    strip, look = chart.strip, LOOKS[theme]
    row = strip.memory_row
    prepare(ax, chart.width, chart.height)
    _ground(ax, chart, row, look)
    for name, held in (("weights", strip.held), ("input", strip.held_input)):
        areas = [_area(chart, place, curve) for place, curve in enumerate(held)]
        add(ax, PolyCollection(areas, facecolors=HELD[name], edgecolors="none"))
    draw_words(ax, _rank_words(chart, row, look))


def _ground(ax: Axes, chart: TimelineChart | HeldChart, row: int, look: Look) -> None:
    tops = row * np.arange(len(chart.strip.ranks))
    corners = np.stack([np.full(len(tops), chart.left), tops], axis=-1)
    sizes = np.full((len(tops), 2), (chart.plot, row - gap(row)))
    boxes(ax, corners, sizes, facecolors=look.ground)


def _rank_words(chart: TimelineChart | HeldChart, row: int, look: Look) -> list[Words]:
    """The ranks' numbers, as many as there is room for."""
    ranks = chart.strip.ranks
    step = -(-LABEL_ROOM // row)
    middle = (row - gap(row)) / 2 + BASELINE * LABEL
    return [
        Words(chart.left - 6, place * row + middle, str(ranks[place]), LABEL, look.ink, "end")
        for place in range(0, len(ranks), step)
    ]


def _axis_words(chart: TimelineChart, look: Look) -> list[Words]:
    y = chart.strip.height + AXIS - 5
    return [
        Words(chart.left + at * chart.plot, y, f"{time:g}", LABEL, look.quiet, anchor)
        for at, time, anchor in axis_of(chart.strip)
    ]


def _ops(ax: Axes, chart: TimelineChart, look: Look) -> None:
    """The boxes, one collection for all, parted by lines of the page's colour; their numbers."""
    strip = chart.strip
    top, height = places(strip)
    tick = chart.plot / strip.ticks
    left, right = (chart.left + tick * at for at in (strip.boxes.start, strip.boxes.end))
    fills = np.array(_fills())[strip.colour]
    corners, sizes = np.stack([left, top], axis=-1), np.stack([right - left, height], axis=-1)
    boxes(ax, corners, sizes, facecolors=fills)
    ends = np.stack([np.stack([right, top], axis=-1), np.stack([right, top + height], axis=-1)], 1)
    add(ax, LineCollection(ends, colors=look.page, linewidths=0.75, capstyle="butt"))
    draw_words(ax, _numbers(strip, (left + right) / 2, right - left, top, height))


def _numbers(
    strip: Strip, middle: np.ndarray, width: np.ndarray, top: np.ndarray, height: np.ndarray
) -> list[Words]:
    """The micro-batch of each box that has room for it."""
    inks = [ink(fill) for fill in _fills()]
    size = np.minimum(np.minimum(12.0, LABEL + 1), height - 2)
    digits = np.char.str_len(strip.boxes.micro_batch.astype(str))
    shown = (height + 2 >= LABEL_ROOM) & (digits * DIGIT * size / 12 + MARGIN <= width)
    return [
        Words(
            float(middle[i]),
            float(top[i] + height[i] / 2 + BASELINE * size[i]),
            str(strip.boxes.micro_batch[i]),
            float(size[i]),
            inks[strip.colour[i]],
            "middle",
        )
        for i in np.flatnonzero(shown).tolist()
    ]


def _fills() -> list[str]:
    """The colour of an op by its number in `Strip.colour`."""
    return [shade(kind, chunk) for kind in KINDS for chunk in range(MOST_SHADES)]


def _image(ax: Axes, chart: TimelineChart, look: Look) -> None:
    """All ops as one picture, some ticks a column."""
    strip, several = chart.strip, chart.ticks_a_part
    fills = np.array([rgb(fill) for fill in _fills()])
    shades = np.stack([fills, np.rint(DARKER * fills)], axis=1).reshape(-1, 3)
    # Opaque in so many words: matplotlib would add it in eight bytes a channel.
    palette = np.pad([rgb(look.ground), *shades], ((0, 0), (0, 1)), constant_values=255)
    palette, pixels = palette.astype(np.uint8), strip.pixels()
    # A few rows at a time: four bytes for each tick of all of them would be a lot.
    rows = [_averaged(palette[part], several) for part in np.array_split(pixels, len(strip.ranks))]
    cells = np.concatenate(rows)
    columns = cells.shape[1]
    right = chart.left + chart.plot * columns * several / strip.ticks
    box = (chart.left, right, strip.height, 0)
    ax.imshow(cells, interpolation="none", extent=box, aspect="auto", clip_on=False)


def _averaged(cells: np.ndarray, several: int) -> np.ndarray:
    """Columns in the mean colour of so many: uint8, shape (rows, fewer columns, 4)."""
    if several == 1:
        return cells
    starts = np.arange(0, cells.shape[1], several)
    sums = np.add.reduceat(cells, starts, axis=1, dtype=np.uint32)
    lengths = np.diff(starts, append=cells.shape[1]).astype(np.uint32)
    return (sums // lengths[:, None]).astype(np.uint8)


def _area(chart: HeldChart, place: int, curve: np.ndarray) -> np.ndarray:
    """The outline of the area under one curve: a step wherever it changes."""
    row = chart.strip.memory_row
    tall = row - gap(row)
    at, levels = level_steps(curve, tall, chart.most)
    base, parts = place * row + tall, len(curve)
    edges = chart.left + chart.plot / parts * np.array([*at, parts])
    x = [edges[0], *np.stack([edges[:-1], edges[1:]], axis=-1).ravel(), edges[-1]]
    y = [base, *np.repeat(base - levels, 2), base]
    return np.stack([x, y], axis=-1)
