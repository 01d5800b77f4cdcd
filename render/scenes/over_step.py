"""The memory of one GPU over a step -> stacked areas by cause, above the ops that it runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from training.memory.over_step import MemoryOverStep
from training.memory.per_stage import PARTS

from ..palette import FILLS
from .areas import AreasChart, OpBox, stacked

COLOURS = dict(zip(PARTS, FILLS["light"]))
"""The fill of each part of memory by its name: inks for states and weights, shades of the scale for
what a step makes and frees."""

GIB = 2.0**30


def over_step_chart(held: MemoryOverStep, capacity: float, words: Mapping[str, str]) -> AreasChart:
    """The areas below a line at the GPU's capacity, in bytes.

    words: the line's name ("limit"), the fullest moment's ("most"), and each part's by its own.
    """
    points: list[tuple[float, Mapping[str, float]]] = []
    for op in held.ops:
        if points and points[-1][0] < op.start:
            points.append((op.start, points[-1][1]))  # it waits
        points += [(point.at, point.parts) for point in op.points]
    times, sizes = stacked(points, PARTS)
    return AreasChart(
        times,
        tuple((COLOURS[name], each) for name, each in sizes.items()),
        tuple(OpBox(op.start, op.end, op.kinds) for op in held.ops if op.end > op.start),
        capacity,
        words["limit"],
        int(np.argmax(np.sum([*sizes.values()], axis=0))),
        words["most"],
        GIB,
        tuple((COLOURS[name], words[name]) for name in sizes),
    )
