"""Measurements of the GPUs as the page tells them: the numbers, and what stands out in words."""

from __future__ import annotations

import numpy as np

from descriptions import RUN
from diagnosis.slow.outliers import Slow, slow
from formats.measurements import read_measurements
from request.context import Context
from request.hosts import placement_or_none
from request.words import saying


def measured(context: Context) -> tuple[np.ndarray, list[Slow]]:
    """The number of each rank, and the findings.

    Errors: LayoutError for a text of no numbers.
    """
    layout, state = context.layout, context.state
    values = read_measurements(state.measures, layout.world_size, placement_or_none(context))
    return values, slow(values, layout.every, worse=state.value("worse"))


def range_of(values: np.ndarray) -> dict[str, str]:
    """The least, the greatest and the median of the numbers that are known, as they are printed.

    >>> range_of(np.array([10.0, np.nan, 12.5, 2000.0]))
    {'least': '10', 'most': '2,000', 'median': '12.5'}
    """
    known = values[~np.isnan(values)]
    numbers = {"least": known.min(), "most": known.max(), "median": np.median(known)}
    return {name: f"{number:,.6g}" for name, number in numbers.items()}


def outlier_name(outlier: Slow, language: str) -> str:
    """What stands out, under all of its names."""
    say = saying(RUN, language)
    names = (say("stage") if name == "stage" else name for name in outlier.names)
    return " = ".join(f"{name} {index}" for name, index in zip(names, outlier.indices))


def outlier_text(outlier: Slow, language: str) -> str:
    """What stands out, with its number and by how much."""
    facts = {"value": f"{outlier.value:,.6g}", "times": f"{outlier.times:,.1f}"}
    return RUN["slow_of"][language].format(what=outlier_name(outlier, language), **facts)
