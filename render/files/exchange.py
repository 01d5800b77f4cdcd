"""Tensors of a group before and after -> matplotlib, for files."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.path import Path

from ..palette import GROUP_INK, GROUPS, PALETTE
from ..svg.exchange import HEIGHT, HUB, LABEL, STRIP, Exchange, Line
from .canvas import BASELINE, LOOKS, Words, add, boxes, draw_words, prepare, rounded

NUMBER, RANK, SIGN = 12.0, 13.0, 15.0
"""Font sizes in pixels: of a cell's number, of a rank, and of the hub's sign."""


def draw_exchange(ax: Axes, exchange: Exchange, theme: str = "light") -> None:
    """Cells in the colour of the member whose number it is, or with a strip of who contributed."""
    look = LOOKS[theme]
    prepare(ax, exchange.width, exchange.height)
    _draw_lines(ax, exchange, theme)
    members = len(exchange.members)
    cells = list(exchange.cells())
    corners = np.array([(x + 1, y + 1) for x, y, _ in cells])
    colours = GROUPS[theme]
    fills = [_fill(cell.who, look.ground, theme) for _, _, cell in cells]
    outlines = rounded(exchange.cell - 2, HEIGHT - 2, 3.0) + corners[:, None, :]
    edge = {"edgecolors": look.edge, "linewidths": 0.6}
    add(ax, PolyCollection(outlines, facecolors=fills, **edge))
    field = (exchange.cell - 6) / members
    shares = [
        (x + 3 + place * field, y + HEIGHT - STRIP - 3, colours[place % len(colours)])
        for x, y, cell in cells
        if len(cell.who) != 1
        for place in cell.who
    ]
    if shares:
        sizes = np.full((len(shares), 2), (field, STRIP))
        corners = np.array([(x, y) for x, y, _ in shares])
        boxes(ax, corners, sizes, facecolors=[colour for _, _, colour in shares])
    words = [
        Words(
            x + exchange.cell / 2,
            y + (16 if len(cell.who) == 1 else 14),
            cell.text,
            NUMBER,
            GROUP_INK[theme] if len(cell.who) == 1 else look.ink,
            "middle",
        )
        for x, y, cell in cells
    ]
    draw_words(ax, words)
    _draw_ranks(ax, exchange, theme)


def _fill(who: tuple[int, ...], plain: str, theme: str) -> str:
    return GROUPS[theme][who[0] % len(PALETTE)] if len(who) == 1 else plain


def _draw_ranks(ax: Axes, exchange: Exchange, theme: str) -> None:
    """The rank of each row, with its colour."""
    look, middles = LOOKS[theme], exchange.middles
    marks = np.array([(2.0, middle - 6) for middle in middles])
    fills = [GROUPS[theme][place % len(PALETTE)] for place in range(len(middles))]
    squares = rounded(12.0, 12.0, 3.0) + marks[:, None, :]
    add(ax, PolyCollection(squares, facecolors=fills, edgecolors="none"))
    words = [
        Words(LABEL - 8, middle + BASELINE * RANK, str(member.rank), RANK, look.ink, "end", True)
        for member, middle in zip(exchange.members, middles)
    ]
    draw_words(ax, words)


def _draw_lines(ax: Axes, exchange: Exchange, theme: str) -> None:
    look, lines = LOOKS[theme], exchange.lines()
    for stays, style in ((False, "solid"), (True, (0, (1.5, 3.0)))):
        ways = [_curve(line) for line in lines if line.stays == stays]
        line = {"edgecolors": look.quiet, "linewidths": 0.9, "linestyles": [style]}
        add(ax, PathCollection(ways, facecolors="none", alpha=0.75, **line))
    if exchange.flow.hub:
        x, y = exchange.hub
        edge = {"edgecolors": look.ink, "linewidths": 1.1}
        add(ax, PathCollection([Path.circle((x, y), HUB)], facecolors=look.page, **edge))
        sign = Words(x, y + 5, exchange.flow.hub, SIGN, look.ink, "middle", True)
        draw_words(ax, [sign])


def _curve(line: Line) -> Path:
    vertices = [
        (line.x0, line.y0),
        (line.x0 + line.bend, line.y0),
        (line.x1 - line.bend, line.y1),
        (line.x1, line.y1),
    ]
    return Path(vertices, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
