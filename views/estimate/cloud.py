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

from training.estimate import Estimate, MeasuredRun, Near, runs
from training.estimate.constants import FAMILIES
from training.parameters import active_parameters

WIDTH, HEIGHT = 720.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 12.0, 40.0


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
    active, asked = active_parameters(run.shape), run.asked
    tokens = asked["global_batch"] * asked["sequence"]
    return ACROSS.at(active), UP.at(speed(active, tokens, run.seconds, asked["gpus"]) / 1e12)


def cloud_svg(one: Estimate, near: Sequence[Near], label: str, words: dict[str, str]) -> str:
    """The picture; words: of the axes, "here" and its label."""
    family = FAMILIES[one.request.cluster]
    own, others = [], []
    for run, x, y in _places():
        where = own if FAMILIES[run.asked["cluster"]] == family else others
        where.append(f"M{x:.0f} {y:.0f}h0")
    ringed = "".join(
        f'<circle class="near" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        for x, y in (_place(each.run) for each in near if each.run.seconds)
    )
    return (
        f'<svg class="cloud" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" '
        f'aria-label="{escape(label)}">{_axes(words)}'
        f'<path class="others" d="{"".join(others)}"/><path class="own" d="{"".join(own)}"/>'
        f"{ringed}{_here(one, words['here'])}</svg>"
    )


def _here(one: Estimate, word: str) -> str:
    """The layout on screen: a mark, and its interval as a line."""
    asked = one.request
    active = active_parameters(asked.model)
    tokens = asked.global_batch * asked.model.sequence
    x = ACROSS.at(active)
    top, y, bottom = (
        UP.at(speed(active, tokens, seconds, asked.gpus) / 1e12)
        for seconds in (one.low, one.seconds, one.high)
    )
    is_right = x > WIDTH / 2
    anchor, dx = ("end", -10) if is_right else ("start", 10)
    return (
        f'<g class="here"><path d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
        f'<text x="{x + dx:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{escape(word)}</text></g>'
    )


def _axes(words: dict[str, str]) -> str:
    foot = HEIGHT - BOTTOM
    across = "".join(
        f'<path d="M{ACROSS.at(n * 1e9):.1f} {TOP}V{foot}"/>'
        f'<text x="{ACROSS.at(n * 1e9):.1f}" y="{foot + 15}" text-anchor="middle">{n:g}B</text>'
        for n in BILLIONS
    )
    up = "".join(
        f'<path d="M{LEFT} {UP.at(n):.1f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 6}" y="{UP.at(n) + 4:.1f}" text-anchor="end">{n:,}</text>'
        for n in TERAFLOPS
    )
    return (
        f'<g class="axes">{across}{up}<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" '
        f'text-anchor="middle">{escape(words["across"])}</text>'
        f'<text transform="translate(12 {foot / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(words['up'])}</text></g>"
    )
