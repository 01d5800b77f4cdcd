""" "You are here": public runs as a cloud, the layout on screen among them, as SVG.

Across: parameters that a token passes through; up: what a GPU does a second, counted as six
operations a parameter and token (arXiv:2001.08361 section 2.1). Both axes are in doublings. Runs on
GPUs that compute like the chosen ones are dark, and the nearest ones ringed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from descriptions import ESTIMATE
from render.scenes.charts import PointsChart
from training.estimate import Estimate, MeasuredRun, Near, runs
from training.estimate.constants import FAMILIES
from training.parameters import active_parameters

WIDTH, HEIGHT = 720.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 20.0, 40.0


@dataclass(frozen=True)
class Scale:
    """From which power of ten to which, on how many pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)


ACROSS = Scale(8.3, 12.1, LEFT, WIDTH - RIGHT)
UP = Scale(0.6, 3.7, HEIGHT - BOTTOM, TOP)
BILLIONS = (0.3, 1, 3, 10, 30, 100, 300, 1000)
TERAFLOPS = (10, 30, 100, 300, 1000, 3000)


def speed(active: float, tokens: float, seconds: float, gpus: int) -> float:
    """Operations a second of one GPU.

    >>> speed(8e9, 1e6, 10.0, 8) / 1e12
    600.0
    """
    return 6.0 * active * tokens / (seconds * gpus)


@lru_cache(maxsize=1)
def _places() -> tuple[tuple[MeasuredRun, float, float], ...]:
    """Every run that has a step time, and where it stands."""
    return tuple(
        (run, *_place(run)) for run in runs() if run.seconds and run.counts and run.status == "ok"
    )


def _place(run: MeasuredRun) -> tuple[float, float]:
    assert run.seconds
    active, arguments = active_parameters(run.shape), run.arguments
    tokens = arguments["global_batch"] * arguments["sequence"]
    return ACROSS.at(active), UP.at(speed(active, tokens, run.seconds, arguments["gpus"]) / 1e12)


def cloud_of(estimate: Estimate, near: Sequence[Near], language: str) -> PointsChart:
    """The runs and the layout on screen, where they stand."""
    family, request = FAMILIES[estimate.request.cluster], estimate.request
    peers, others = [], []
    for run, x, y in _places():
        (peers if FAMILIES[run.arguments["cluster"]] == family else others).append((x, y))
    active = active_parameters(request.model)
    tokens = request.global_batch * request.model.sequence
    high, y, low = (
        UP.at(speed(active, tokens, seconds, request.gpus) / 1e12)
        for seconds in (estimate.low, estimate.seconds, estimate.high)
    )
    return PointsChart(
        others=tuple(others),
        peers=tuple(peers),
        near=tuple(_place(each.run) for each in near if each.run.seconds),
        here=(ACROSS.at(active), y, high, low),
        across=tuple((ACROSS.at(n * 1e9), f"{n:g}B") for n in BILLIONS),
        up=tuple((UP.at(n), f"{n:,}") for n in TERAFLOPS),
        words={name: ESTIMATE[f"cloud_{name}"][language] for name in ("across", "up", "here")},
        plot=(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM),
        width=WIDTH,
        height=HEIGHT,
    )


def cloud_svg(chart: PointsChart, label: str) -> str:
    """The picture on the page."""
    others, peers = (
        "".join(f"M{x:.0f} {y:.0f}h0" for x, y in spots) for spots in (chart.others, chart.peers)
    )
    ringed = "".join(
        f'<circle class="near" cx="{x:.1f}" cy="{y:.1f}" r="6"/>' for x, y in chart.near
    )
    return (
        f'<svg class="cloud" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" '
        f'aria-label="{escape(label)}">{_axes(chart)}'
        f'<path class="others" d="{others}"/><path class="own" d="{peers}"/>{ringed}{_here(chart)}'
        "</svg>"
    )


def _here(chart: PointsChart) -> str:
    """The layout on screen: a mark, and its interval as a line."""
    x, y, high, low = chart.here
    anchor, dx = ("end", -10) if x > WIDTH / 2 else ("start", 10)
    return (
        f'<g class="here"><path d="M{x:.1f} {high:.1f}V{low:.1f}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/><text x="{x + dx:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="{anchor}">{escape(chart.words["here"])}</text></g>'
    )


def _axes(chart: PointsChart) -> str:
    left, top, right, foot = chart.plot
    across = "".join(
        f'<path d="M{x:.1f} {top}V{foot}"/>'
        f'<text x="{x:.1f}" y="{foot + 15}" text-anchor="middle">{text}</text>'
        for x, text in chart.across
    )
    up = "".join(
        f'<path d="M{left} {y:.1f}H{right}"/>'
        f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        for y, text in chart.up
    )
    return (
        f'<g class="axes">{across}{up}<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" '
        f'text-anchor="middle">{escape(chart.words["across"])}</text>'
        f'<text x="{left}" y="{top - 7}">{escape(chart.words["up"])}</text></g>'
    )
