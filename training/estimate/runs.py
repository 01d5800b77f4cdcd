"""Public training runs that others measured, how each is asked of `estimate`, and which are near.

data/runs.csv has a row a run, data/models.json the shapes, data/sources.csv where each row stands,
data/README.md how they were read. ``counts``: shape, settings and measurement are sure.

Runs are near a layout by what decides their speed. Each difference counts by its size in doublings,
one axis like the other; another family of GPUs, other number formats, or experts where there are
none count as several doublings.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np

from groups.kept import kept

from ..clusters import machine_of
from ..model import Model
from ..parameters import active_parameters, total_parameters
from ..split import Split
from .constants import DATA, fitted_constants
from .request import Arguments, Request


@dataclass(frozen=True)
class MeasuredRun:
    """A measured run. ``seconds`` and ``memory`` (GiB) are None if the source does not state them.

    Attributes:
        group: the runs of one source on one GPU, for which errors are reported together.
        source: its number in sources.csv.
        line: its line in the source's table.
        model: its name in models.json.
        arguments: those of `estimate`, without the model.
        status: ok, oom, or crashed.
        kind: which memory: allocated, reserved, or unknown.
        software: version or kernel, if runs of one source differ in it.
    """

    group: str
    source: str
    line: str
    model: str
    arguments: Arguments
    status: str
    seconds: float | None
    memory: float | None
    kind: str
    software: str
    counts: bool

    @property
    def shape(self) -> Model:
        return shape_of(self.model, self.arguments.sequence)


@kept
def shape_of(name: str, sequence: int) -> Model:
    """The model with a run's name, with the run's sequence length."""
    return Model(sequence=sequence, **_shapes()[name])  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _shapes() -> dict[str, dict[str, int]]:
    shapes: dict[str, dict[str, int]] = json.loads((DATA / "models.json").read_text("utf-8"))
    return shapes


@lru_cache(maxsize=1)
def runs() -> tuple[MeasuredRun, ...]:
    """Every run, in the order of the sources.

    >>> run = runs()[0]
    >>> run.model, run.arguments.cluster, run.arguments.gpus, run.seconds
    ('DeepSeekV3', 'gb300-nvl72', 256, 10.422)
    """
    return tuple(_run(row) for row in _rows("runs.csv"))


def is_nanotron(run: MeasuredRun) -> bool:
    """Whether the run used nanotron, as all runs of the Ultra-Scale Playbook did."""
    return run.group == "Playbook"


@lru_cache(maxsize=1)
def sources() -> dict[str, dict[str, str]]:
    """The sources by number: name, address (with commit), licence."""
    return {row["source"]: row for row in _rows("sources.csv")}


@lru_cache(maxsize=1)
def error_table() -> tuple[dict[str, str], ...]:
    """data/errors.csv: the errors by group of runs, in the fit and with the group left out."""
    return tuple(_rows("errors.csv"))


def _rows(file: str) -> list[dict[str, str]]:
    with (DATA / file).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _run(row: dict[str, str]) -> MeasuredRun:
    run: Callable[..., MeasuredRun] = MeasuredRun
    arguments_of: Callable[..., Arguments] = Arguments
    texts = ("group", "source", "line", "model", "status", "software")
    arguments = {
        one.name: _typed(one.default, row[one.name]) for one in fields(Arguments) if one.name in row
    }
    return run(
        **{name: row[name] for name in texts},
        arguments=arguments_of(**arguments),
        seconds=float(row["seconds"]) if row["seconds"] else None,
        memory=float(row["memory_gib"]) if row["memory_gib"] else None,
        kind=row["memory_kind"],
        counts=row["counts"] == "1",
    )


def _typed(default: object, cell: str) -> object:
    """The text of a cell as a value of its default's type; None for an empty cell."""
    if isinstance(default, bool):
        return cell == "1"
    return cell if isinstance(default, str) else int(cell) if cell else None


# -- which are near ------------------------------------------------------------------------------

_EIGHT_BITS = {"fp8": 1.0, "mxfp8": 1.0, "nvfp4": 2.0}
_MIXED = 6.0
FAR_FAMILY = 8.0
"""Doublings that stand for a number format of fewer bits than 16, for a model with experts instead
of one without, and for another family of GPUs."""

NEAR_SIZE = math.log2(12)
"""Doublings of parameters up to which a run still says something about a model."""


@kept
def _sizes(model: Model) -> tuple[float, float]:
    return math.log2(total_parameters(model)), math.log2(active_parameters(model))


def _place(
    model: Model, axes: Split | Arguments, sizes: tuple[int, int, int], precision: str
) -> list[float]:
    """The position of a run or request, in doublings (log2); sizes: GPUs, micro-batch, global
    batch."""
    gpus, micro_batch, global_batch = sizes
    batch = (model.sequence, micro_batch * model.sequence, global_batch)
    counts = (gpus, *batch, axes.tp, axes.pp, axes.cp, axes.ep, axes.vpp)
    bits = 2 * _EIGHT_BITS.get(precision, 0.0)
    return [*_sizes(model), *map(math.log2, counts), bits, _MIXED * bool(model.experts)]


@lru_cache(maxsize=1)
def _map() -> tuple[tuple[MeasuredRun, ...], np.ndarray, np.ndarray]:
    """The runs that have a step time, their positions, and their GPUs' families."""
    timed = tuple(run for run in runs() if run.seconds)
    places = [
        _place(run.shape, each, (each.gpus, each.micro_batch, each.global_batch), each.precision)
        for run in timed
        for each in [run.arguments]
    ]
    families = np.array([machine_of(run.arguments.cluster).family for run in timed])
    return timed, np.array(places), families


def nearest_runs(
    request: Request, most: int = 5, software: str = "nanotron"
) -> tuple[MeasuredRun, ...]:
    """The runs nearest to a request, nearest first; nanotron's only if ``software`` is nanotron."""
    timed, places, families = _map()
    sizes = (request.gpus, request.training.micro_batch, request.global_batch)
    here = _place(request.model, request.split, sizes, request.training.products)
    other = FAR_FAMILY * (families != request.machine.family)
    distance = np.sqrt(((places - np.array(here)) ** 2).sum(axis=1) + other**2)
    if software != "nanotron":
        distance = distance + np.where([is_nanotron(run) for run in timed], np.inf, 0.0)
    return tuple(timed[at] for at in np.argsort(distance, kind="stable")[:most])


def lacks(request: Request) -> tuple[str, ...]:
    """Why no public run is near: none on this GPU, of this kind of model (with or without experts),
    near this size, on as many GPUs, with states in host memory, or in FP32; empty if there are
    some."""
    lacking = ["offload"] * (request.training.offload != "none")
    lacking += ["fp32"] * (request.training.element == 4)
    seen = fitted_constants()["seen"].get(request.machine.family, {})
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
