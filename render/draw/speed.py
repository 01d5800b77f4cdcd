"""A chart of servers' speeds -> marks."""

from __future__ import annotations

from collections.abc import Iterator

from ..marks import LABEL, LOOKS, Lines, Mark, Words, ring
from ..scenes.charts import HERE
from ..scenes.speed import EDGE, OTHER, SpeedChart, SpeedCurve
from .axes import draw_axes

CHARACTER = 6.6
"""Pixels of a letter of a label, about."""

FAR = 24.0
"""Pixels from the chosen point within which no other has a text."""


def draw_speed(chart: SpeedChart, theme: str) -> Iterator[Mark]:
    """Axes, the band, curves with their points, what was measured, the chosen point."""
    look = LOOKS[theme]
    box = (chart.left, chart.top, chart.right, chart.foot)
    names = (chart.words["across"], chart.words["up"])
    yield from draw_axes(box, (chart.ticks(0), chart.ticks(1)), names, look)
    if chart.band:
        slow = [chart.place(low) for low, _ in chart.band]
        quick = [chart.place(high) for _, high in reversed(chart.band)]
        outline = [*slow, *quick, slow[0]]
        yield Lines([outline], fill=HERE[theme], opacity=0.14)
    for curve in sorted(chart.curves, key=lambda one: one.is_own):
        yield from _curve(chart, curve, theme)
    if chart.edge:
        yield Lines([[chart.place(spot) for spot in chart.edge]], EDGE[theme], 3.0, opacity=0.75)
    for spot in chart.rings:
        yield ring(*chart.place(spot), 4.5, look.ink, 1.5)
    if chart.here:
        x, y = chart.place(chart.here[0])
        yield ring(x, y, 6.5, look.page, 2.0, HERE[theme])
        at_end = x + CHARACTER * len(chart.here[1]) > chart.right - 12
        anchor, side = ("end", -11.0) if at_end else ("start", 11.0)
        yield Words(x + side, y - 9, chart.here[1], LABEL + 1, look.ink, anchor, bold=True)
    yield from _names(chart, theme)


def _curve(chart: SpeedChart, curve: SpeedCurve, theme: str) -> Iterator[Mark]:
    look = LOOKS[theme]
    colour = HERE[theme] if curve.is_own else OTHER
    places = [chart.place(spot) for spot in curve.spots]
    yield Lines([places], colour, 2.5 if curve.is_own else 1.5)
    for x, y in places:
        yield ring(x, y, 3.0 if curve.is_own else 2.0, look.page, 1.0, colour)
    chosen = chart.place(chart.here[0]) if chart.here else (-1e9, 0.0)
    for (x, y), text in zip(places, curve.texts):
        if text and abs(x - chosen[0]) + abs(y - chosen[1]) > FAR:
            yield Words(x + 7, y - 6, text, LABEL - 1, look.quiet)


def _names(chart: SpeedChart, theme: str) -> Iterator[Mark]:
    """Each curve's name left of its upper end, none over another."""
    look, taken = LOOKS[theme], list[tuple[float, float, float]]()
    for curve in sorted(chart.curves, key=lambda one: -one.spots[-1][1]):
        if not curve.name:
            continue
        x, y = chart.place(curve.spots[-1])
        wide = CHARACTER * len(curve.name)
        end, y = max(x - 7, chart.left + wide + 3), max(chart.top + 8, y + 4)
        while any(
            abs(y - at) < 13 and end - wide < right + 6 and left < end + 6
            for left, right, at in taken
        ):
            y += 13
        taken.append((end - wide, end, y))
        ink = HERE[theme] if curve.is_own else look.ink
        yield Words(end, y, curve.name, LABEL + 1, ink, "end", bold=True)
