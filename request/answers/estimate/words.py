"""The sentences about the time of a step, for every view that shows one."""

from __future__ import annotations

import math

from descriptions import ESTIMATE, MACHINE, PAGE
from training.estimate import Estimate, Use
from training.search import Order

from ...units import HOUR, LONG, SECONDS, bracketed, gib, interval_text

KINDS = ("tp", "cp", "ep", "pp", "dp")
"""Parts of a step that are waits for a kind of group."""


def about(estimate: Estimate, language: str = "en") -> str:
    """The step and its interval in one unit: "2.9 s (2.5 to 3.6)".

    >>> from training.estimate import estimate
    >>> from training.models import MODELS
    >>> small = estimate(MODELS["llama3-8b"].model, gpus=8, tp=1, global_batch=8, sequence=8192)
    >>> about(small)
    '0.97 s (0.87–1.3)'
    """
    size, unit = _unit_of(estimate.seconds)
    low, high = (_two(seconds / size) for seconds in (estimate.low, estimate.high))
    return f"{_two(estimate.seconds / size)} {unit}{bracketed(f'{low}–{high}', language)}"


def seconds_about(seconds: float) -> str:
    """Seconds of an estimate, in two digits: "58 ms".

    >>> seconds_about(0.0577), seconds_about(2.38), seconds_about(10_689)
    ('58 ms', '2.4 s', '3.0 h')
    """
    size, unit = _unit_of(seconds)
    return f"{_two(seconds / size)} {unit}"


def _unit_of(seconds: float) -> tuple[float, str]:
    if seconds >= LONG:
        return HOUR, "h"
    return next(((size, unit) for size, unit in SECONDS if seconds >= 0.2 * size), SECONDS[-1])


def step_text(estimate: Estimate) -> str:
    """The step without its interval: "2.9 s"."""
    return about(estimate).partition(" (")[0]


def _two(number: float) -> str:
    """A number in two digits, or with all its integer digits."""
    places = max(0, 1 - math.floor(math.log10(number))) if number > 0 else 0
    return f"{number:,.{places}f}"


def fit_text(estimate: Estimate, language: str) -> str:
    """Whether it fits, with the memory that nine of ten real runs need, in one sentence."""
    capacity = gib(estimate.request.bytes_of_gpu)
    interval = interval_text(estimate.fit, language)
    return ESTIMATE[f"memory_{estimate.verdict}"][language].format(
        interval=interval, capacity=capacity
    )


def lacks_text(estimate: Estimate, language: str) -> str:
    """In what way no measured run is like this one."""
    return PAGE["and_list"][language].join(
        ESTIMATE[f"lacks_{name}"][language] for name in estimate.lacks
    )


def estimate_facts(estimate: Estimate) -> dict[str, object]:
    """The step, the interval with 90 % of real runs, its parts, and how well it uses its GPUs, as
    JSON values."""
    return {
        "step_seconds": estimate.seconds,
        "low_seconds": estimate.low,
        "high_seconds": estimate.high,
        "computation_seconds": estimate.parts["compute"],
        "idle_seconds": estimate.parts["bubble"],
        "exposed_seconds_by_kind": {kind: estimate.parts[kind] for kind in KINDS},
        "parts_seconds": estimate.parts,
        "no_runs_near": list(estimate.lacks),
        "used": use_of(estimate).facts(),
    }


def use_of(estimate: Estimate) -> Use:
    """How well the estimated step uses its GPUs."""
    return Use(estimate.request, estimate.seconds)


def use_short(use: Use, language: str) -> str:
    """TFLOP/s a GPU, MFU and tokens of a step in a few words.

    >>> from training.estimate import estimate
    >>> from training.models import MODELS
    >>> step = estimate(MODELS["llama3-8b"].model, gpus=8, tp=1, global_batch=64, sequence=8192)
    >>> use_short(Use(step.request, 5.0), "en")
    '675 TFLOP/s a GPU, MFU 68.2%, 13,107 tokens/s a GPU'
    """
    return MACHINE["used_short"][language].format(
        tflops=f"{use.per_gpu() / 1e12:,.0f}",
        mfu=f"{use.mfu():.1%}",
        each=f"{use.tokens_per_second / use.request.gpus:,.0f}",
    )


def share_text(share: float) -> str:
    """How sure something is: never quite.

    >>> [share_text(share) for share in (0.5, 0.873, 0.9999, 0.0001)]
    ['50%', '87%', '99%', '1%']
    """
    return f"{min(max(share, 0.01), 0.99):.0%}"


def order_facts(order: Order) -> dict[str, float]:
    """How sure it is that a layout is quicker than another, and where nine of ten real ratios of
    their steps are, as JSON values."""
    return {"is_quicker": order.share, "ratio_low": order.low, "ratio_high": order.high}


def part_name(name: str, language: str) -> str:
    """The name of a part; of a wait without its kind."""
    return ESTIMATE[f"part_{'waits' if name in KINDS else name}"][language]
