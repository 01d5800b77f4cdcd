""" "You are here": public runs as a cloud, the layout on screen among them, as SVG.

Across: parameters that a token passes through; up: what a GPU does a second, counted as six
operations a parameter and token (arXiv:2001.08361 section 2.1). Both axes are in doublings. Runs on
GPUs that compute like the chosen ones are dark, and the nearest ones ringed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from html import escape

from descriptions import ESTIMATE
from render.scenes.charts import PointsChart
from training.estimate import Estimate, MeasuredRun, runs
from training.estimate.constants import FAMILIES
from training.parameters import active_parameters

ACROSS, UP = (8.3, 12.1), (0.6, 3.7)
"""From which power of ten to which an axis reaches."""

BILLIONS = (0.3, 1, 3, 10, 30, 100, 300, 1000)
TERAFLOPS = (10, 30, 100, 300, 1000, 3000)


def share(value: float, axis: tuple[float, float]) -> float:
    """Where a value stands on an axis, 0 to 1; at an end what is beyond it.

    >>> share(10.0, (0.0, 2.0)), share(1e9, (0.0, 2.0))
    (0.5, 1.0)
    """
    low, high = axis
    return min(1.0, max(0.0, (math.log10(value) - low) / (high - low)))


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
    tokens = arguments.global_batch * arguments.sequence
    each = speed(active, tokens, run.seconds, arguments.gpus)
    return share(active, ACROSS), share(each / 1e12, UP)


def cloud_of(estimate: Estimate, near: Sequence[MeasuredRun], language: str) -> PointsChart:
    """The runs and the layout on screen, where they stand."""
    family, request = FAMILIES[estimate.request.cluster], estimate.request
    peers, others = [], []
    for run, x, y in _places():
        (peers if FAMILIES[run.arguments.cluster] == family else others).append((x, y))
    active = active_parameters(request.model)
    tokens = request.global_batch * request.model.sequence
    interval = (
        share(speed(active, tokens, seconds, request.gpus) / 1e12, UP)
        for seconds in (estimate.seconds, estimate.low, estimate.high)
    )
    return PointsChart(
        others=tuple(others),
        peers=tuple(peers),
        near=tuple(_place(each) for each in near if each.seconds),
        here=(share(active, ACROSS), *interval),  # type: ignore[arg-type]
        across=tuple((share(n * 1e9, ACROSS), f"{n:g}B") for n in BILLIONS),
        up=tuple((share(n, UP), f"{n:,}") for n in TERAFLOPS),
        words={name: ESTIMATE[f"cloud_{name}"][language] for name in ("across", "up", "here")},
    )


def cloud_svg(chart: PointsChart, label: str) -> str:
    others, peers = (
        "".join(f"M{x:.0f} {y:.0f}h0" for x, y in chart.pixels(spots))
        for spots in (chart.others, chart.peers)
    )
    ringed = "".join(
        f'<circle class="near" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        for x, y in chart.pixels(chart.near)
    )
    return (
        f'<svg class="cloud" viewBox="0 0 {chart.width:.0f} {chart.height:.0f}" role="img" '
        f'aria-label="{escape(label)}">{_axes(chart)}'
        f'<path class="others" d="{others}"/><path class="own" d="{peers}"/>{ringed}{_here(chart)}'
        "</svg>"
    )


def _here(chart: PointsChart) -> str:
    """The layout on screen: a mark, and its interval as a line."""
    x, (y, high, low) = chart.x(chart.here[0]), map(chart.y, chart.here[1:])
    anchor, dx = ("end", -10) if x > chart.width / 2 else ("start", 10)
    return (
        f'<g class="here"><path d="M{x:.1f} {high:.1f}V{low:.1f}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/><text x="{x + dx:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="{anchor}">{escape(chart.words["here"])}</text></g>'
    )


def _axes(chart: PointsChart) -> str:
    left, top, right, foot = chart.left, chart.top, chart.right, chart.foot
    across = "".join(
        f'<path d="M{x:.1f} {top}V{foot}"/>'
        f'<text x="{x:.1f}" y="{foot + 15}" text-anchor="middle">{text}</text>'
        for x, text in ((chart.x(share), text) for share, text in chart.across)
    )
    up = "".join(
        f'<path d="M{left} {y:.1f}H{right}"/>'
        f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        for y, text in ((chart.y(share), text) for share, text in chart.up)
    )
    return (
        f'<g class="axes">{across}{up}<text x="{(left + chart.width) / 2}" '
        f'y="{chart.height - 6}" text-anchor="middle">{escape(chart.words["across"])}</text>'
        f'<text x="{left}" y="{top - 7}">{escape(chart.words["up"])}</text></g>'
    )
