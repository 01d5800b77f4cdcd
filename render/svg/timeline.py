"""Timelines and memory curves -> inline SVG that stretches with its box, sharp at any zoom.

The picture inside stretches across (``preserveAspectRatio="none"``), its numbers do not: they stand
at percentages of the width. So zooming is a matter of the width alone, in the browser. What the
script draws in the colour of an op has its class (``op-f0`` is a forward of chunk 0; see `style`).
"""

from __future__ import annotations

from html import escape

import numpy as np

from ..draw.charts import draw_curves, draw_ops
from ..palette import ink
from ..scenes.timeline import (
    AXIS,
    DIGIT,
    LABEL_ROOM,
    MARGIN,
    MOST_SHADES,
    PHASES,
    Strip,
    axis_of,
    gap,
    op_colours,
)
from .marks import marks_svg

KINDS = tuple(PHASES)

WIDTH = 900
"""The width of a timeline in pixels until the page's script has measured it."""


def style() -> str:
    """The colours of ops as CSS: fill of a box, ink of its number."""
    rules = []
    for number, fill in enumerate(op_colours()):
        name, reads = _name(number), ink(fill)
        rules.append(f".op-{name}{{fill:{fill};background:{fill};color:{reads}}}")
        rules.append(f".on-{name}{{fill:{reads};color:{reads}}}")
    return "".join(rules)


def strip_svg(strip: Strip, description: str, number: int = 0) -> str:
    """One timeline; ``number`` is its index among those compared."""
    labels = "" if strip.is_picture else _labels(strip)
    height = strip.height
    return (
        f'<svg class="pipeline-strip" data-strip="{number}" tabindex="0" role="img" '
        f'height="{height + AXIS}" aria-label="{escape(description)}">'
        f'<svg class="pipeline-plot" width="100%" height="{height}" preserveAspectRatio="none" '
        f'viewBox="0 0 {strip.ticks} {height}">{marks_svg(draw_ops(strip, "page"))}'
        f'<g class="pipeline-marks"></g></svg>{labels}{_axis(strip)}</svg>'
    )


def memory_svg(strip: Strip, most: float, description: str) -> str:
    """The memory of each rank, a curve each; ``most`` fills a row."""
    height, parts = strip.memory_row * len(strip.ranks), strip.held.shape[1]
    return (
        f'<svg class="pipeline-memory" role="img" height="{height}" '
        f'aria-label="{escape(description)}">'
        f'<svg width="100%" height="{height}" preserveAspectRatio="none" '
        f'viewBox="0 0 {parts} {height}">{marks_svg(draw_curves(strip, most, "page"))}</svg></svg>'
    )


def _labels(strip: Strip) -> str:
    """The micro-batch in each box, grouped by the width that the picture needs to show them.

    Boxes of one width have their numbers all or none: the longest has to fit.
    """
    if strip.row < LABEL_ROOM:
        return ""
    boxes = strip.boxes
    tall = strip.row - gap(strip.row)
    size = min(12, tall - 4)
    length = boxes.end - boxes.start
    room = (strip.digits * DIGIT * size / 12 + MARGIN) * strip.ticks
    need = np.ceil(room / np.maximum(length, 1) / 50).astype(np.int64) * 50
    middle = 100 * (boxes.start + boxes.end) / 2 / strip.ticks
    small = size if tall < 22 else 10
    # What stands before and behind a number's place across is the same for many of them.
    before = {
        number: f'<text class="on-{_name(number)}" x="' for number in {*strip.colour.tolist()}
    }
    behind = [
        f'%" y="{rank * strip.row + tall * share + 0.36 * pixels:.1f}"{smaller}>'
        for rank in range(len(strip.ranks))
        for share, pixels, smaller in (
            (0.5, size, ""),
            *((share, small, f' font-size="{small}"') for share in (0.25, 0.75)),
        )
    ]
    columns = (middle, strip.colour, 3 * boxes.rank + boxes.half, boxes.micro_batch)
    visible = (boxes.half == 0) | (tall >= 22)
    labels = []
    for width in np.unique(need[visible]).tolist():
        x, *others = (column[visible & (need == width)] for column in columns)
        texts = zip(x.round(2).tolist(), *(column.tolist() for column in others))
        rows = "".join(
            f"{before[colour]}{at}{behind[place]}{micro_batch}</text>"
            for at, colour, place, micro_batch in texts
        )
        off = "" if width <= WIDTH else ' class="off"'
        labels.append(f'<g data-need="{width}"{off} font-size="{size}">{rows}</g>')
    return f'<g class="pipeline-numbers">{"".join(labels)}</g>'


def _name(colour: int) -> str:
    kind, chunk = divmod(colour, MOST_SHADES)
    return f"{KINDS[kind].lower()}{chunk}"


def _axis(strip: Strip) -> str:
    y = strip.height + AXIS - 5
    labels = "".join(
        f'<text x="{100 * at:.2f}%" y="{y}" text-anchor="{anchor}">{time:g}</text>'
        for at, time, anchor in axis_of(strip)
    )
    return f'<g class="pipeline-axis">{labels}</g>'
