"""A timeline for the page: a lane for computation, one for the network, a time axis below."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ..scenes.timeline import round_step

WIDTH, LANE, LEFT, AXIS = 960.0, 34.0, 8.0, 26.0
"""Pixels: total width, height of a lane, left of the first bar, and of the axis."""

SMALLEST_LABEL = 17.0
"""The least pixels of a bar with a number."""


class LaneBar(NamedTuple):
    """One task of a lane: its class in the style sheet, its number and its times."""

    lane: int
    what: str
    number: int
    start: float
    end: float


def lanes_svg(bars: Sequence[LaneBar], lanes: int, unit: float, description: str) -> str:
    """The lanes. ``unit``: seconds per unit of the axis, such as 1e-3 for milliseconds."""
    last = max((bar.end for bar in bars), default=0.0) or 1.0
    scale = (WIDTH - 2 * LEFT) / last
    drawn = "".join(_lane_bar(bar, scale, unit) for bar in bars if bar.end > bar.start)
    bottom = lanes * LANE
    ticks = "".join(
        f'<path class="tick" d="M{LEFT + at * unit * scale:.1f} 0V{bottom + 5:g}"/>'
        f'<text class="axis" x="{LEFT + at * unit * scale:.1f}" y="{bottom + 19:g}">{at:g}</text>'
        for at in ticks_of(last / unit)
    )
    return (
        f'<svg class="collectives-lanes" role="img" aria-label="{escape(description)}" '
        f'viewBox="0 0 {WIDTH + 16:g} {bottom + AXIS:g}" width="{WIDTH + 16:g}" '
        f'height="{bottom + AXIS:g}">{ticks}{drawn}</svg>'
    )


def ticks_of(last: float) -> list[float]:
    """Five to ten round numbers from 0 to the last.

    >>> ticks_of(8.4)
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """
    step = round_step(last / 10)
    return [round(number * step, 9) for number in range(int(last / step) + 1)]


def _lane_bar(bar: LaneBar, scale: float, unit: float) -> str:
    x, width = LEFT + bar.start * scale, max((bar.end - bar.start) * scale, 0.6)
    text = (
        f'<text x="{x + width / 2:.1f}" y="{bar.lane * LANE + 21:g}">{bar.number}</text>'
        if width >= SMALLEST_LABEL
        else ""
    )
    times = f"{bar.number}: {bar.start / unit:.3g} - {bar.end / unit:.3g}"
    return (
        f'<g class="bar {bar.what}"><title>{times}</title><rect x="{x:.1f}" '
        f'y="{bar.lane * LANE + 3:g}" width="{width:.1f}" height="{LANE - 8:g}" rx="2"/>{text}</g>'
    )
