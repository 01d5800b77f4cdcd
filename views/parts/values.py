"""A number for each GPU as colours, in equal steps from the least to the greatest."""

from __future__ import annotations

import numpy as np

from descriptions import RUN
from render.palette import HEAT_SHADES
from render.scenes.heat import LEVELS, Heat

NARROWEST = 0.1
"""The least width of the scale, of the median: GPUs of one kind differ by some percent at rest."""


def ends_of(values: np.ndarray) -> tuple[float, float]:
    """The ends of the scale: the least number and the greatest, but at least NARROWEST of the
    median apart. What hardly differs has like colours, not those of both ends.

    >>> ends_of(np.array([99.0, 100.0, np.nan, 101.0])), ends_of(np.array([50.0, 100.0, 101.0]))
    ((95.0, 105.0), (50.0, 101.0))
    """
    known = values[~np.isnan(values)]
    least, most = float(known.min()), float(known.max())
    lacks = max(0.0, NARROWEST * abs(float(np.median(known))) - (most - least))
    return (least - lacks / 2, most + lacks / 2) if most > least else (least, most)


def heat_of(values: np.ndarray, gpus_per_node: int, language: str) -> Heat:
    """The heat map with LEVELS equal steps between the ends of its scale, and its legend."""
    least, most = ends_of(values)
    step = (most - least) / LEVELS
    share = (values - least) / step if step else np.where(np.isnan(values), np.nan, 0.0)
    level = np.where(np.isnan(share), LEVELS, np.minimum(np.nan_to_num(share), LEVELS - 1))
    level = level.astype(np.int64)
    shades = (*HEAT_SHADES[:LEVELS], "blank")
    legend: list[tuple[str, str]] = []
    for step_ in sorted(set(level.tolist())):
        low, high = least + step_ * step, least + (step_ + 1) * step
        text = f"{low:,.4g} – {high:,.4g}" if step else f"{low:,.4g}"
        legend.append((shades[step_], RUN["measures_none"][language] if step_ == LEVELS else text))
    amounts = ["–" if np.isnan(value) else f"{value:.3g}" for value in values.tolist()]
    return Heat(level, amounts, gpus_per_node, tuple(legend), shades)
