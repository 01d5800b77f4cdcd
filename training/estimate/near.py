"""Which public runs are near a layout: "you are here", and whether an estimate can lean on them.

Runs are near by what decides their speed. Each difference counts by its size in doublings, one
axis like the other; another family of GPUs, other number formats, or experts where there are none
count as several doublings.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..model import Model
from ..parameters import active_parameters, total_parameters
from ..split import Split
from .constants import FAMILIES, fitted
from .request import Arguments, Request
from .runs import MeasuredRun, is_nanotron, runs

_EIGHT_BITS = {"fp8": 1.0, "mxfp8": 1.0, "nvfp4": 2.0}
_MIXED = 6.0
"""Doublings that stand for a model with experts instead of one without."""

FAR_FAMILY = 8.0
NEAR_SIZE = math.log2(12)
"""Doublings of parameters up to which a run still says something about a model."""


@lru_cache(maxsize=512)
def _sizes(model: Model) -> tuple[float, float]:
    return math.log2(total_parameters(model)), math.log2(active_parameters(model))


def _place(
    model: Model, axes: Split | Arguments, sizes: tuple[int, int, int], precision: str
) -> list[float]:
    """Where a run or a request stands, as doublings; sizes: GPUs, micro-batch, global batch."""
    gpus, micro_batch, global_batch = sizes
    batch = (model.sequence, micro_batch * model.sequence, global_batch)
    counts = (gpus, *batch, axes.tp, axes.pp, axes.cp, axes.ep, axes.vpp)
    bits = 2 * _EIGHT_BITS.get(precision, 0.0)
    return [*_sizes(model), *map(math.log2, counts), bits, _MIXED * bool(model.experts)]


@lru_cache(maxsize=1)
def _map() -> tuple[tuple[MeasuredRun, ...], np.ndarray, tuple[str, ...]]:
    """The runs that have a step time, where they stand, and their GPUs' families."""
    timed = tuple(run for run in runs() if run.seconds)
    points = [(run.shape, run.arguments) for run in timed]
    places = [
        _place(shape, run, (run.gpus, run.micro_batch, run.global_batch), run.precision)
        for shape, run in points
    ]
    return timed, np.array(places), tuple(FAMILIES[run.cluster] for _, run in points)


def nearest(request: Request, most: int = 5, software: str = "nanotron") -> tuple[MeasuredRun, ...]:
    """The runs nearest to a request, the nearest first; of nanotron none for other software."""
    timed, places, families = _map()
    sizes = (request.gpus, request.training.micro_batch, request.global_batch)
    here = _place(request.model, request.split, sizes, request.training.products)
    other = FAR_FAMILY * (np.array(families) != FAMILIES[request.cluster])
    distance = np.sqrt(((places - np.array(here)) ** 2).sum(axis=1) + other**2)
    if software != "nanotron":
        distance = distance + np.where([is_nanotron(run) for run in timed], np.inf, 0.0)
    order = np.argsort(distance, kind="stable")[:most]
    return tuple(timed[at] for at in order)


def lacks(request: Request) -> tuple[str, ...]:
    """Why no public run is near: of this GPU, of such a model (with experts or without), of a size
    near this one's, on so many GPUs, with states in host memory; empty if there are some."""
    lacking = ["offload"] * (request.training.offload != "none")
    seen = fitted()["seen"].get(FAMILIES[request.cluster], {})
    kind = "moe" if request.model.experts else "dense"
    if kind not in seen:
        return (*lacking, "model" if seen else "gpu")
    least, most, gpus = seen[kind]
    size = round(_sizes(request.model)[1], 1)
    if not least - NEAR_SIZE <= size <= most + NEAR_SIZE:
        lacking.append("size")
    if math.ceil(math.log2(request.gpus)) > gpus + 2:
        lacking.append("gpus")
    return tuple(lacking)
