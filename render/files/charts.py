"""Charts of pipelines, memory and traffic -> marks of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..marks import BASELINE, LABEL, LOOKS, Blocks, Lines, Look, Mark, Pixels, Words, ring
from ..palette import ink, ramp, rgb
from ..scenes.charts import HELD, BarsChart, HeldChart, MatrixChart, TimelineChart
from ..scenes.geometry import GAP
from ..scenes.heat import Heat, cell_texts
from ..scenes.matrix import COLOURS, LEVELS, label_place
from ..scenes.timeline import (
    AXIS,
    DIGIT,
    LABEL_ROOM,
    MARGIN,
    Strip,
    axis_of,
    box_places,
    gap,
    level_steps,
    op_colours,
    pixel_colours,
)

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
        colours = np.array([rgb(look.page), *map(rgb, heat.palette_of(theme))], dtype=np.uint8)
        bottom = heat.nodes.grid.rows * heat.cell
        yield Pixels(colours[heat.board()], (heat.left, 0.0, heat.width, bottom))
        for x, y, radius in heat.rings:
            yield ring(x, y, radius, look.page, 4.0)
            yield ring(x, y, radius, look.ink, 2.0)
    else:
        yield from _heat_cells(heat, look, heat.palette_of(theme))
    for x, y, text in heat.labels:
        yield Words(x, y + BASELINE * LABEL, text, LABEL, look.quiet, "end")


def _heat_cells(heat: Heat, look: Look, colours: Sequence[str]) -> Iterator[Mark]:
    tiles = heat.tiles
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


def draw_timeline(chart: TimelineChart, theme: str) -> Iterator[Mark]:
    """One op a box with its micro-batch where it fits; very many ops as one picture."""
    strip, look = chart.strip, LOOKS[theme]
    if strip.is_picture:
        yield _image(chart, look)
    else:
        yield _ground(chart, strip.row, look)
        yield from _ops(chart, look)
    yield from _rank_words(chart, strip.row, look)
    y = strip.height + AXIS - 5
    for at, time, anchor in axis_of(strip):
        x = chart.left + at * chart.plot
        yield Words(x, y, f"{time:g}", LABEL, look.quiet, anchor)


def draw_held(chart: HeldChart, theme: str) -> Iterator[Mark]:
    """The area under each rank's curve: held until the weights' gradient, and until the input's."""
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


def _ops(chart: TimelineChart, look: Look) -> Iterator[Mark]:
    """The boxes, parted by lines of the page's colour; their numbers."""
    strip = chart.strip
    top, height = box_places(strip)
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
    pixels = strip.pixels()
    palette = np.array([rgb(look.ground), *pixel_colours()], dtype=np.uint8)
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
    ((at, levels),) = level_steps(curve[None], tall, chart.most)
    base, parts = place * row + tall, len(curve)
    edges = chart.left + chart.plot / parts * np.array([*at, parts])
    x = [edges[0], *np.stack([edges[:-1], edges[1:]], axis=-1).ravel(), edges[-1]]
    y = [base, *np.repeat(base - np.array(levels), 2), base]
    return np.stack([x, y], axis=-1)
