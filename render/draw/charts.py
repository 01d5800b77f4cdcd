"""Charts of pipelines, memory and traffic -> marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Layer, Lines, Look, Mark, Pixels, Words
from ..palette import SHADE_INKS, SHADES, WAITING, fill_of, ink, ramp, rgb
from ..scenes.charts import HELD, BarsChart, HeldChart, MatrixChart, TimelineChart
from ..scenes.geometry import GAP
from ..scenes.heat import Heat, cell_texts
from ..scenes.matrix import LEVELS, MatrixPicture, label_place
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
from .groups import boxes_of, row_names, spot

WARNING = {"light": "#b91c1c", "dark": "#fca5a5"}
"""The ink of values above their limit."""

THICK = 0.75
"""The height of a bar as a share of its row."""


def draw_bars(chart: BarsChart, theme: str) -> Iterator[Mark]:
    """A bar for each row with its parts side by side, and a dashed line at a limit with a name."""
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
            fills.append(fill_of(colour, theme))
            x += size * chart.pixels
        line, is_over = top + side / 2, bar.is_over
        warned = WARNING[theme] if is_over else look.ink
        for at, text, ink_of, bold in (
            (chart.left - 8, bar.name, look.ink, False),
            (chart.width, bar.caption, warned, is_over),
        ):
            words.append(Words(at, line, text, LABEL, ink_of, "end", bold, is_middle=True))
    yield Blocks(np.array(corners), np.array(sizes), fills, edge=look.page, width=0.8)
    if chart.limit_name:
        at = chart.left + chart.limit * chart.pixels
        yield Lines([[(at, chart.top - 4), (at, chart.height)]], look.ink, 2.0, (7.4, 3.2))
        anchor = "end" if chart.limit * chart.pixels > chart.plot / 2 else "start"
        words.append(Words(at, chart.top - 9, chart.limit_name, LABEL, look.ink, anchor, True))
    yield from words


def draw_heat(heat: Heat, theme: str) -> Iterator[Mark]:
    """Every GPU on its node, coloured by its level; a large world as one picture."""
    yield row_names(heat.labels, LOOKS[theme].quiet)
    yield from (_heat_pixels if heat.is_large else _heat_cells)(heat, theme)


def _heat_pixels(heat: Heat, theme: str) -> Iterator[Mark]:
    """The pixels of a large world. The page has a picture in the colours of each theme, and shows
    one: in a picture are colours, not their names."""
    board, box = heat.board(), (heat.left, 0.0, heat.width, heat.nodes.grid.rows * heat.cell)
    for own in ("light", "dark") if theme == "page" else (theme,):
        yield Pixels(board, box, [rgb(SHADES[own][shade]) for shade in heat.shades], f"in-{own}")
    for x, y, radius in heat.rings:
        yield from spot("ring", x, y, radius, theme, 2.0)


def _heat_cells(heat: Heat, theme: str) -> Iterator[Mark]:
    look, tiles = LOOKS[theme], heat.tiles
    colours = [SHADES[theme][shade] for shade in heat.shades]
    side = tiles.cell - GAP
    yield Layer("node", [boxes_of(tiles.frames, 6.0, look.page, look.edge)])
    corners = np.stack([tiles.x, tiles.y], axis=-1) + GAP / 2
    fills = [colours[level] for level in heat.level.tolist()]
    yield Blocks(corners, np.full(2, side), fills, radius=side / 8)
    inks = [SHADE_INKS[theme][shade] for shade in heat.shades]
    texts = [
        Words(x + side / 2, y + line, text, size, inks[heat.level[rank]], "middle")
        for rank, (x, y) in enumerate(corners.tolist())
        for line, size, text in cell_texts(rank, heat.amounts[rank], side)
    ]
    yield Layer("amounts", texts)


PAIR_ROOM = 18.0
"""The least pixels of a pair's cell that is separated from the next."""


def draw_pairs(
    picture: MatrixPicture, corner: tuple[float, float], side: float, theme: str
) -> Iterator[Mark]:
    """A pixel for each pair, lines between nodes, labels at both axes."""
    look, (left, top) = LOOKS[theme], corner
    cell = side / len(picture.levels)
    right, bottom = left + side, top + side
    for own in ("light", "dark") if theme == "page" else (theme,):
        yield Pixels(picture.levels, (left, top, right, bottom), matrix_colours(own), f"in-{own}")

    def lines(places: Sequence[int]) -> list[list[tuple[float, float]]]:
        down = [[(left + at * cell, top), (left + at * cell, bottom)] for at in places]
        return down + [[(left, top + at * cell), (right, top + at * cell)] for at in places]

    if cell >= PAIR_ROOM:
        apart = lines(range(1, len(picture.levels)))
        yield Layer("gaps", [Lines(apart, look.page, min(4.0, cell / 12))])
    yield Layer("traffic-nodes", [Lines(lines(picture.borders), look.edge, 0.6)])
    yield Blocks(np.array([corner]), np.array([side, side]), edge=look.edge)
    right_of, below, anchor = label_place(cell)
    names = []
    for at, text in picture.labels:
        x, y = left + at * cell + right_of, top + at * cell + below
        names.append(Words(left - 5, y, text, LABEL, look.ink, "end", is_middle=True))
        names.append(Words(x, top - 6, text, LABEL, look.ink, anchor))
    yield Layer("rows", names)


def matrix_colours(theme: str) -> list[tuple[int, int, int]]:
    """The colours from least to most: those of the one scale, without its palest."""
    return ramp(SHADES[theme]["heat1"], SHADES[theme]["heat7"], LEVELS)


def draw_matrix(chart: MatrixChart, theme: str) -> Iterator[Mark]:
    """The pairs with the names of their axes above, and the colour scale beside them."""
    look, (left, top), side = LOOKS[theme], (chart.left, chart.top), chart.side
    yield from draw_pairs(chart.picture, (left, top), side, theme)
    scale, bottom = left + side + 18, top + side
    steps = np.array(matrix_colours(theme)[::-1], dtype=np.uint8)[:, None, :]
    yield Pixels(steps, (scale, top, scale + chart.bar, bottom))
    yield Blocks(np.array([(scale, top)]), np.array([chart.bar, side]), edge=look.edge)
    yield Words(left, LABEL, chart.axes, LABEL, look.quiet)
    for at, text in chart.scale:
        x, y = scale + chart.bar + 6, bottom - at * side
        yield Words(x, y, text, LABEL, look.ink, is_middle=True)


def draw_timeline(chart: TimelineChart, theme: str) -> Iterator[Mark]:
    """A box for each op, with its micro-batch if that fits; very many ops as one picture."""
    strip, look, left = chart.strip, LOOKS[theme], chart.left
    if strip.is_picture:
        yield _averaged_picture(chart, theme)
    else:
        yield from draw_ops(strip, theme, left, chart.plot / strip.ticks)
        yield from _numbers(strip, left, chart.plot / strip.ticks)
    yield from _rank_words(chart, strip.row, look)
    y = strip.height + AXIS - 5
    for at, time, anchor in axis_of(strip):
        yield Words(left + at * chart.plot, y, f"{time:g}", LABEL, look.quiet, anchor)


def draw_held(chart: HeldChart, theme: str) -> Iterator[Mark]:
    """A curve for each rank: the memory held until the gradients of inputs, and until those of
    weights."""
    look, strip = LOOKS[theme], chart.strip
    yield from draw_curves(strip, chart.most, theme, chart.left, chart.plot / strip.held.shape[1])
    yield from _rank_words(chart, strip.memory_row, look)


def draw_ops(strip: Strip, theme: str, left: float = 0.0, tick: float = 1.0) -> Iterator[Mark]:
    """The boxes, separated by lines in the page's colour; tick: the width of one tick."""
    look = LOOKS[theme]
    yield _ground(strip, strip.row, left, tick * strip.ticks, WAITING[theme])
    if strip.is_picture:
        box = left, 0.0, left + tick * strip.ticks, float(strip.height)
        yield Pixels(strip.pixels(), box, pixel_colours().tolist())
        return
    top, height = box_places(strip)
    start, end = (left + tick * at for at in (strip.boxes.start, strip.boxes.end))
    fills = np.array(op_colours())[strip.colour].tolist()
    yield Blocks(np.stack([start, top], axis=-1), np.stack([end - start, height], axis=-1), fills)
    ends = np.stack([np.stack([end, top], axis=-1), np.stack([end, top + height], axis=-1)], 1)
    yield Layer("pipeline-edges", [Lines(list(ends), look.page)])


def draw_curves(
    strip: Strip, most: float, theme: str, left: float = 0.0, part: float = 1.0
) -> Iterator[Mark]:
    """The memory of each rank; most: the value that fills a row, part: the width of a part of the
    axis."""
    yield _ground(strip, strip.memory_row, left, part * strip.held.shape[1], LOOKS[theme].ground)
    for name, held in (("weights", strip.held), ("input", strip.held_input)):
        yield Lines([*_areas(held, strip.memory_row, most, left, part)], fill=HELD[name])


def _ground(strip: Strip, row: int, left: float, wide: float, fill: str) -> Blocks:
    """The background of each row, with a gap to the next."""
    rows = [(left, row * place, wide, row - gap(row)) for place in range(len(strip.ranks))]
    return boxes_of(rows, 0.0, fill, "none")


def _rank_words(chart: TimelineChart | HeldChart, row: int, look: Look) -> list[Words]:
    ranks, x, middle = chart.strip.ranks, chart.left - 6, (row - gap(row)) / 2
    step = -(-LABEL_ROOM // row)
    return [
        Words(x, at * row + middle, str(ranks[at]), LABEL, look.ink, "end", is_middle=True)
        for at in range(0, len(ranks), step)
    ]


def _numbers(strip: Strip, left: float, tick: float) -> list[Words]:
    """The micro-batch of each box that has room for it."""
    boxes, (top, height) = strip.boxes, box_places(strip)
    middle, width = left + tick * (boxes.start + boxes.end) / 2, tick * (boxes.end - boxes.start)
    inks = [ink(fill) for fill in op_colours()]
    size = np.minimum(np.minimum(12.0, LABEL + 1), height - 2)
    is_readable = (height + 2 >= LABEL_ROOM) & (strip.digits * DIGIT * size / 12 + MARGIN <= width)
    return [
        Words(
            float(middle[i]),
            float(top[i] + height[i] / 2),
            str(boxes.micro_batch[i]),
            float(size[i]),
            inks[strip.colour[i]],
            "middle",
            is_middle=True,
        )
        for i in np.flatnonzero(is_readable).tolist()
    ]


def _averaged_picture(chart: TimelineChart, theme: str) -> Pixels:
    """An axis with more ticks than a file has dots: each dot has the mean colour of its ticks."""
    strip, several = chart.strip, chart.ticks_a_part
    pixels = strip.pixels()
    palette = np.array([rgb(WAITING[theme]), *pixel_colours()], dtype=np.uint8)
    # A few rows at a time: three bytes for each tick of all of them would be a lot.
    rows = [_averaged(palette[part], several) for part in np.array_split(pixels, len(strip.ranks))]
    cells = np.concatenate(rows)
    columns = cells.shape[1]
    right = chart.left + chart.plot * columns * several / strip.ticks
    return Pixels(cells, (chart.left, 0.0, right, float(strip.height)))


def _averaged(cells: np.ndarray, several: int) -> np.ndarray:
    """Groups of so many columns in their mean colour: uint8, shape (rows, fewer columns, 3)."""
    if several == 1:
        return cells
    starts = np.arange(0, cells.shape[1], several)
    sums = np.add.reduceat(cells, starts, axis=1, dtype=np.uint32)
    lengths = np.diff(starts, append=cells.shape[1]).astype(np.uint32)
    return (sums // lengths[:, None]).astype(np.uint8)


def _areas(
    curves: np.ndarray, row: int, most: float, left: float, part: float
) -> Iterator[np.ndarray]:
    """The outlines of the areas below the curves, with a step at each change."""
    tall, parts = row - gap(row), curves.shape[1]
    for place, (at, levels) in enumerate(level_steps(curves, tall, most)):
        base = place * row + tall
        edges = left + part * np.array([*at, parts])
        x = np.concatenate([edges[:1], np.repeat(edges, 2)[1:-1], edges[-1:]])
        y = np.concatenate([[base], np.repeat(base - np.array(levels), 2), [base]])
        yield np.stack([x, y], axis=-1)
