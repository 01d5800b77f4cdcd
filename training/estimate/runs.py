"""Public training runs that others measured: how each is asked of `estimate`, and what came out.

data/runs.csv has a row a run, data/models.json the shapes, data/sources.csv where each row stands,
data/README.md how they were read. ``counts``: shape, settings and measurement are sure.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import cast

from ..model import Model
from .request import Arguments

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class MeasuredRun:
    """One run. ``seconds`` and ``memory`` (GiB) are None where the source does not say.

    Attributes:
        group: runs of one source on one GPU, as the errors are told.
        source: its number in sources.csv.
        line: of the source's table.
        model: its name in models.json.
        arguments: of `estimate`, but the model.
        status: ok, oom, or crashed.
        kind: which memory: allocated, reserved, or unknown.
        software: version or kernel, where runs of one set may differ in it.
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


@lru_cache(maxsize=1)
def _shapes() -> dict[str, dict[str, int]]:
    text = (DATA / "models.json").read_text(encoding="utf-8")
    return cast("dict[str, dict[str, int]]", json.loads(text))


@lru_cache(maxsize=256)
def shape_of(name: str, sequence: int) -> Model:
    """The model of a run, at the run's sequence."""
    return Model(sequence=sequence, **_shapes()[name])  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def runs() -> tuple[MeasuredRun, ...]:
    """Every run, in the order of the sources.

    >>> run = runs()[0]
    >>> run.model, run.arguments.cluster, run.arguments.gpus, run.seconds
    ('DeepSeekV3', 'gb300-nvl72', 256, 10.422)
    """
    return tuple(_run(row) for row in _rows("runs.csv"))


def is_nanotron(run: MeasuredRun) -> bool:
    """Whether nanotron ran it: all of the Ultra-Scale Playbook."""
    return run.group == "Playbook"


@lru_cache(maxsize=1)
def sources() -> dict[str, dict[str, str]]:
    """By number: name, where it stands (with commit), licence."""
    return {row["source"]: row for row in _rows("sources.csv")}


@lru_cache(maxsize=1)
def error_table() -> tuple[dict[str, str], ...]:
    """data/errors.csv: the errors by group of runs, as the fit found them and with each left out.

    >>> {"group", "runs", "step", "cover", "unseen_step"} <= set(error_table()[0])
    True
    """
    return tuple(_rows("errors.csv"))


def _rows(file: str) -> list[dict[str, str]]:
    with (DATA / file).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _argument(name: str, cell: str) -> object:
    if name in ("cluster", "precision", "recompute"):
        return cell
    if name in ("flash", "sequence_parallel"):
        return cell == "1"
    return int(cell) if cell else None


def _run(row: dict[str, str]) -> MeasuredRun:
    run: Callable[..., MeasuredRun] = MeasuredRun
    arguments_of: Callable[..., Arguments] = Arguments
    texts = ("group", "source", "line", "model", "status", "software")
    arguments = {field.name: _argument(field.name, row[field.name]) for field in fields(Arguments)}
    return run(
        **{name: row[name] for name in texts},
        arguments=arguments_of(**arguments),
        seconds=float(row["seconds"]) if row["seconds"] else None,
        memory=float(row["memory_gib"]) if row["memory_gib"] else None,
        kind=row["memory_kind"],
        counts=row["counts"] == "1",
    )
