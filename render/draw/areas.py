"""Stacked areas over time -> marks: of files with their axis, of the page the areas alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Layer, Lines, Mark, Words, advance
from ..palette import fill_of
from ..scenes.areas import AreasChart
from .charts import WARNING

REST = {"light": "#94a3b8", "dark": "#64748b", "page": "var(--body-text-color-subdued)"}
"""The colour of what is no op of the plan: the optimizer."""


OPS = {"B": "#8fa3bf", "I": "#64748b", "W": "#b3bfce"}
"""The colours of ops in each theme; a forward has the ink's."""


def draw_plot(chart: AreasChart, theme: str) -> Iterator[Mark]:
    """The areas, the ops below them, and the line at the limit."""
    look = LOOKS[theme]
    yield Layer(
        "areas", [Lines([line], fill=fill_of(colour, theme)) for colour, line in chart.outlines()]
    )
    y = chart.foot + 4
    boxes: dict[str, list[tuple[float, float, float, float]]] = {}
    for op in chart.ops:
        share = chart.strip / max(1, len(op.kinds))
        x, wide = chart.x(op.start), chart.x(op.end) - chart.x(op.start)
        for row, kind in enumerate(op.kinds or " "):
            boxes.setdefault(kind, []).append((x, y + row * share, wide, share))
    for kind, some in boxes.items():
        table = np.array(some)
        fill = look.ink if kind == "F" else OPS.get(kind, REST[theme])
        yield Blocks(table[:, :2], table[:, 2:], fill, edge=look.page, width=0.6)
    line = chart.y(chart.limit)
    ends = [(chart.left, line), (chart.left + chart.plot, line)]
    yield Lines([ends], look.ink, 1.6, (7.4, 3.2))


def draw_areas(chart: AreasChart, theme: str) -> Iterator[Mark]:
    """The plot with the axis of sizes and its two names."""
    look = LOOKS[theme]
    yield from draw_plot(chart, theme)
    for size in chart.ticks():
        text = f"{size / chart.unit:g}"
        yield Words(chart.left - 6, chart.y(size), text, LABEL, look.quiet, "end", is_middle=True)
    at, top = chart.x(float(chart.times[chart.most])), chart.y(float(chart.sums[-1][chart.most]))
    yield Lines([[(at, top), (at, chart.foot)]], look.ink, 1.2)
    wide = advance(chart.limit_name, bold=True) * LABEL
    start = chart.left + 4 if at > chart.left + wide + 12 else chart.width - wide - 4
    yield from _on_plate(start, chart.y(chart.limit) - 5, chart.limit_name, look.ink, look.page)
    is_over = chart.sums[-1][chart.most] > chart.limit
    ink = WARNING[theme] if is_over else look.ink
    wide = advance(chart.most_name, bold=True) * LABEL
    at += 5 if at + wide < chart.width else -5 - wide
    y = top + 14 if chart.name_below() else top - 5
    yield from _on_plate(max(chart.left, at), y, chart.most_name, ink, look.page)


def _on_plate(x: float, y: float, text: str, ink: str, page: str) -> Iterator[Mark]:
    """Words on a ground of their own, which stay readable over areas of any colour."""
    size = np.array([advance(text, bold=True) * LABEL + 4, LABEL + 3])
    yield Blocks(np.array([[x - 2, y - LABEL]]), size, page, radius=2.0)
    yield Words(x, y, text, LABEL, ink, bold=True)
