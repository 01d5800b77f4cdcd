"""The time of a move by each rule, and measured times -> marks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from ..marks import BASELINE, LABEL, LOOKS, Blocks, Lines, Mark, Slot, Words, ring
from ..palette import FILLS
from ..scenes.times import AXIS, ROW, TOP, TimesChart

DOT, BAR = 4.5, 9.0
"""Pixels: radius of a dot, and height of a bar."""

UNITS = {-6: "1 µs", -5: "10 µs", -4: "100 µs", -3: "1 ms", -2: "10 ms", -1: "100 ms"}
"""Labels of powers of ten in seconds; others are in seconds."""


def draw_times(chart: TimesChart, theme: str) -> Iterator[Mark]:
    """A row for each rule, one for measured times, and an axis with powers of ten."""
    look = LOOKS[theme]
    colour, tint, seen = (FILLS[theme][name] for name in ("step3", "step2", "kept1"))
    bottom = chart.height - AXIS
    low, high = chart.powers
    for power in range(low, high + 1):
        x = chart.x(10.0**power)
        yield Lines([[(x, TOP), (x, bottom)]], look.ground if power > low else look.edge)
        text = UNITS.get(power, f"{10**power if power >= 0 else 10.0**power:g} s")
        anchor = "end" if power == high else "start" if power == low else "middle"
        yield Words(x, bottom + LABEL + 4, text, LABEL, look.quiet, anchor)
    for row, rule in enumerate(chart.rules):
        y = chart.y(row)
        ink = look.ink if rule.is_chosen else look.quiet
        label = chart.left - 10, y + BASELINE * LABEL, rule.label
        yield Words(*label, LABEL, ink, "end", bold=rule.is_chosen)
        if rule.seconds <= 0:
            continue
        start, end = chart.x(rule.low), chart.x(rule.high)
        box = np.array([[start, y - BAR / 2]]), np.array([max(2.0, end - start), BAR])
        yield Blocks(*box, tint, radius=3, edge=colour if rule.is_chosen else "none")
        yield Lines([[(chart.x(rule.seconds), y), (start, y)]], colour, 1.0, (2.0, 3.0))
        yield ring(chart.x(rule.seconds), y, DOT, colour, 1.5, colour)
    y = chart.y(len(chart.rules))
    label = chart.left - 10, y + BASELINE * LABEL, chart.measured_label
    yield Words(*label, LABEL, look.quiet, "end")
    for place, one in enumerate(chart.measured):
        at = chart.x(one.seconds), y + (place % 3 - 1) * ROW / 5
        fill = seen if one.is_direct else look.page
        if theme == "page":
            circle = f'cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{DOT}" fill="{fill}"'
            stroke = f'stroke="{seen}" stroke-width="1.5"'
            yield Slot(f"<circle {circle} {stroke}><title>{escape(one.text)}</title></circle>")
        else:
            yield ring(*at, DOT, seen, 1.5, fill)
    seconds, least_text = chart.least
    if seconds > 0:
        x = chart.x(seconds)
        yield Lines([[(x, TOP - 4), (x, bottom)]], look.ink, 1.2, (4.0, 3.0))
        is_right = x > chart.left + (chart.width - chart.left) / 2
        anchor = "end" if is_right else "start"
        yield Words(x, TOP - 9, least_text, LABEL, look.ink, anchor)
