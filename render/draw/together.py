"""Calls of one group, aligned at their ends -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LOOKS, Blocks, Layer, Lines, Mark, Words
from ..palette import SCALE_ENDS, STEPS, scale_of
from ..scenes.together import LETTER, MOVED, TOP, CallBar, TogetherChart

LEAST = 1.0
"""The least pixels of a bar, so that it is visible."""


def draw_together(chart: TogetherChart, theme: str) -> Iterator[Mark]:
    """A row for each member: waiting, then moving data; a triangle where the last one arrived."""
    look, tall = LOOKS[theme], chart.row
    thick = tall - (4.0 if tall > 14 else 2.0)
    tops = [TOP + tall * row + (tall - thick) / 2 for row in range(len(chart.rows))]
    ground = np.array([(chart.left, top) for top in tops])
    size = np.array([chart.wide - chart.left - 4.0, thick])
    yield Layer("own", [Blocks(ground, size, look.ground, radius=3.0)])
    ends = [[(x, TOP), (x, chart.foot)] for x in sorted({bar.end for bar in chart.bars})]
    yield Layer("ends", [Lines(ends, look.edge, 1.0)])
    for name, fill, of in (
        ("lost", _colour("lost", theme), [(bar, bar.came, bar.began) for bar in chart.bars]),
        ("moving", MOVED[theme], [(bar, bar.began, bar.end) for bar in chart.bars]),
    ):
        some = [(bar, x0, x1) for bar, x0, x1 in of if x1 - x0 > 0.2]
        if some:
            corners = np.array([(x0, tops[bar.row]) for bar, x0, _ in some])
            sizes = np.array([(max(LEAST, x1 - x0), thick) for _, x0, x1 in some])
            yield Layer(name, [Blocks(corners, sizes, fill)])
    yield from _lasts([bar for bar in chart.bars if bar.is_last], tops, thick, theme)
    rows = [
        Words(chart.left - 8, top + thick / 2, name, min(LETTER, tall - 1), look.ink, "end",
              row == chart.chosen, is_middle=True)
        for row, (name, top) in enumerate(zip(chart.rows, tops))
    ]  # fmt: skip
    yield Layer("rows", rows)
    names = [Words(x, TOP - 7, text, LETTER, look.quiet, "end") for x, text in chart.names]
    yield Layer("calls", names)
    below = chart.foot + 14
    times = [Words(x, below, text, LETTER, look.quiet, "middle") for x, text in chart.ticks]
    times.append(Words(chart.left - 8, below, chart.unit[1], LETTER, look.quiet, "end"))
    yield Layer("axis", times)


def _lasts(bars: list[CallBar], tops: list[float], thick: float, theme: str) -> Iterator[Mark]:
    """The member that came last: its bar in orange with a triangle before it, which is visible
    without colour."""
    if not bars:
        return
    colour, side = _colour("caused", theme), min(6.0, thick / 2)
    triangles = [
        [(bar.came - 2 * side, y - side), (bar.came, y), (bar.came - 2 * side, y + side)]
        for bar in bars
        for y in (tops[bar.row] + thick / 2,)
    ]
    corners = np.array([(bar.came, tops[bar.row]) for bar in bars])
    sizes = np.array([(max(2.0, bar.end - bar.came), thick) for bar in bars])
    outlines = Lines(triangles, LOOKS[theme].ink, 0.8, fill=colour)
    yield Layer("last", [Blocks(corners, sizes, colour), outlines])


def _colour(name: str, theme: str) -> str:
    return scale_of(name, theme)[STEPS] if theme == "page" else SCALE_ENDS[theme][name]
