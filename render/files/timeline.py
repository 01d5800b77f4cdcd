"""Timelines and what ranks hold meanwhile -> marks of a file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import BASELINE, LABEL, LOOKS, Blocks, Lines, Look, Mark, Pixels, Words
from ..palette import ink, rgb
from ..scenes.charts import HELD, HeldChart, TimelineChart
from ..scenes.timeline import LABEL_ROOM, Strip, op_colours
from ..svg.timeline import AXIS, DIGIT, MARGIN, axis_of, gap, level_steps, places

DARKER = 0.86
"""How much darker every other micro-batch of an embedded picture is."""


def draw_timeline(chart: TimelineChart, theme: str) -> Iterator[Mark]:
    """One op a box with its micro-batch where it fits; very many ops as one picture."""
    strip, look = chart.strip, LOOKS[theme]
    if strip.is_picture:
        yield _image(chart, look)
    else:
        yield _ground(chart, strip.row, look)
        yield from _ops(chart, look)
    yield from _rank_words(chart, strip.row, look)
    yield from _axis_words(chart, look)


def draw_held(chart: HeldChart, theme: str) -> Iterator[Mark]:
    strip, look = chart.strip, LOOKS[theme]
    row = strip.memory_row
    yield _ground(chart, row, look)
    for name, held in (("weights", strip.held), ("input", strip.held_input)):
        yield Lines([_area(chart, at, curve) for at, curve in enumerate(held)], fill=HELD[name])
    yield from _rank_words(chart, row, look)


def _ground(chart: TimelineChart | HeldChart, row: int, look: Look) -> Blocks:
    tops = row * np.arange(len(chart.strip.ranks))
    corners = np.stack([np.full(len(tops), chart.left), tops], axis=-1)
    return Blocks(corners, np.array([chart.plot, row - gap(row)]), look.ground)


def _rank_words(chart: TimelineChart | HeldChart, row: int, look: Look) -> list[Words]:
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


def _ops(chart: TimelineChart, look: Look) -> Iterator[Mark]:
    """The boxes, parted by lines of the page's colour; their numbers."""
    strip = chart.strip
    top, height = places(strip)
    tick = chart.plot / strip.ticks
    left, right = (chart.left + tick * at for at in (strip.boxes.start, strip.boxes.end))
    fills = np.array(op_colours())[strip.colour].tolist()
    corners, sizes = np.stack([left, top], axis=-1), np.stack([right - left, height], axis=-1)
    yield Blocks(corners, sizes, fills)
    ends = np.stack([np.stack([right, top], axis=-1), np.stack([right, top + height], axis=-1)], 1)
    yield Lines(list(ends), look.page)
    yield from _numbers(strip, (left + right) / 2, right - left, top, height)


def _numbers(
    strip: Strip, middle: np.ndarray, width: np.ndarray, top: np.ndarray, height: np.ndarray
) -> list[Words]:
    """The micro-batch of each box that has room for it."""
    inks = [ink(fill) for fill in op_colours()]
    size = np.minimum(np.minimum(12.0, LABEL + 1), height - 2)
    is_readable = (height + 2 >= LABEL_ROOM) & (strip.digits * DIGIT * size / 12 + MARGIN <= width)
    return [
        Words(
            float(middle[i]),
            float(top[i] + height[i] / 2 + BASELINE * size[i]),
            str(strip.boxes.micro_batch[i]),
            float(size[i]),
            inks[strip.colour[i]],
            "middle",
        )
        for i in np.flatnonzero(is_readable).tolist()
    ]


def _image(chart: TimelineChart, look: Look) -> Pixels:
    strip, several = chart.strip, chart.ticks_a_part
    fills = np.array([rgb(fill) for fill in op_colours()])
    shades = np.stack([fills, np.rint(DARKER * fills)], axis=1).reshape(-1, 3)
    palette, pixels = np.array([rgb(look.ground), *shades], dtype=np.uint8), strip.pixels()
    # A few rows at a time: three bytes for each tick of all of them would be a lot.
    rows = [_averaged(palette[part], several) for part in np.array_split(pixels, len(strip.ranks))]
    cells = np.concatenate(rows)
    columns = cells.shape[1]
    right = chart.left + chart.plot * columns * several / strip.ticks
    return Pixels(cells, (chart.left, 0.0, right, float(strip.height)))


def _averaged(cells: np.ndarray, several: int) -> np.ndarray:
    """Columns in the mean colour of so many: uint8, shape (rows, fewer columns, 3)."""
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
