"""Measured runs of servers, and how far the law of a step missed those like one.

runs.csv has a row a run: model, machine and engine, the ranks over which the server cut each part,
formats, requests at once and their tokens, and the seconds that were measured. misses.csv has a row
for each engine, machine and model of which there are twenty runs and five curves, which are the
runs of one layout, format and lengths: measured over worked out seconds in the median, its
logarithm times c / (c + 1) of c curves, and the interval of these runs, each curve left out.
others.csv has runs of which the law does not tell, which are shown alone: other makers' GPUs,
servers that guess, those that only prefill or decode. `python -m benchmarks.fit_serving --write`
writes all.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path

from .asked import AskedServer
from .work import Load

FOLDER = Path(__file__).parent
MOST_RUNS, MOST_ALONE = 3, 6
"""The most runs that stand beside an answer, and in place of one."""

OTHER_CUT, OTHER_FORMAT = 4.0, 2.0
"""Doublings as which another layout and another format count."""


@dataclass(frozen=True)
class ServedRun:
    """A measured run: what it served and how, and the seconds of a token and to the first one.

    cut: attention, dense, ep, etp and pp of `Cut`; parts: attention's data parallel parts; first: 0
    where it is not stated; how: the layout as its source says it, of runs that no law tells.
    """

    model: str
    machine: str
    engine: str
    version: str
    cut: tuple[int, ...]
    parts: int
    weights: str
    requests: float
    prompt: float
    answer: float
    seconds: float
    first: float
    source: str
    how: str = ""

    @property
    def gpus(self) -> int:
        return self.cut[0] * self.cut[4] * self.parts


@dataclass(frozen=True)
class Miss:
    """How far the law missed: measured over worked out, what is left of that at 5 and 95 % of the
    runs once it is corrected, and the number of runs and curves."""

    times: float
    low: float
    high: float
    runs: int
    curves: int


Runs = Mapping[tuple[str, str, str], tuple[ServedRun, ...]]


@cache
def served_runs(name: str = "runs") -> Runs:
    """All runs that the law tells of, by engine, machine and model; "others": that it does not.

    >>> sum(map(len, served_runs().values())) > 1000
    True
    """
    found: dict[tuple[str, str, str], list[ServedRun]] = {}
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            run = ServedRun(
                model=row["model"],
                machine=row["machine"],
                engine=row["engine"],
                version=row["version"],
                cut=tuple(map(int, row.get("cut", "0-0-0-0-0").split("-"))),
                parts=int(row.get("parts", 0)),
                weights=row["weights"],
                requests=float(row["requests"]),
                prompt=float(row["prompt"]),
                answer=float(row["answer"]),
                seconds=float(row["tpot_ms"]) / 1e3,
                first=float(row["ttft_ms"] or 0) / 1e3,
                source=row["source"],
                how=row.get("how", ""),
            )
            found.setdefault((run.engine, run.machine, run.model), []).append(run)
    return {key: tuple(runs) for key, runs in found.items()}


def runs_alone(machine: str, model: str, load: Load) -> tuple[ServedRun, ...]:
    """Measured runs of a model on a GPU of which the law does not tell, in any engine: those with
    about as many requests of about the same lengths.

    >>> [run.how for run in runs_alone("mi300x", "kimi-linear", Load(16, 1024, 1024))][:1]
    ['tp4']
    """
    every = served_runs("others").items()
    runs = [run for key, each in every if key[1:] == (machine, model) for run in each]
    return tuple(sorted(runs, key=lambda run: _apart(run, load))[:MOST_ALONE])


def _apart(run: ServedRun, load: Load) -> float:
    """Doublings between the requests of a run and those that are asked about."""
    sizes = (
        (load.requests, run.requests),
        (load.prompt, run.prompt),
        (load.answer, run.answer),
    )
    return sum(abs(log2(max(one, 1) / max(other, 1))) for one, other in sizes)


@cache
def misses() -> Mapping[tuple[str, str, str], Miss]:
    with (FOLDER / "misses.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["engine"], row["machine"], row["model"]): Miss(
                times=float(row["times"]),
                low=float(row["low"]),
                high=float(row["high"]),
                runs=int(row["runs"]),
                curves=int(row["curves"]),
            )
            for row in csv.DictReader(file)
        }


def miss_of(engine: str, machine: str, model: str) -> Miss | None:
    """How far the law missed runs of this engine, machine and model; None without many."""
    return misses().get((engine, machine, model))


def runs_like(server: AskedServer, load: Load) -> tuple[ServedRun, ...]:
    """The measured runs of the same engine, machine and model that are nearest: of the same layout
    and format first, then those with about as many requests of about the same lengths."""
    own = cut_sizes(server)

    def apart(run: ServedRun) -> float:
        far = _apart(run, load)
        is_other = (run.cut, run.parts) != (own, server.parts)
        return (
            far
            + OTHER_CUT * is_other
            + OTHER_FORMAT * (_bits(run.weights) != _bits(server.weights))
        )

    runs = served_runs().get((server.engine, server.machine.id, server.name), ())
    return tuple(sorted(runs, key=apart)[:MOST_RUNS])


def runs_of_layout(server: AskedServer, load: Load) -> tuple[ServedRun, ...]:
    """The measured runs of the same layout and format, and of the same lengths but for a tenth."""

    def is_same(run: ServedRun) -> bool:
        lengths = ((load.prompt, run.prompt), (load.answer, run.answer))
        is_alike = all(abs(one - other) <= 0.1 * max(one, other) for one, other in lengths)
        is_format = _bits(run.weights) == _bits(server.weights)
        return is_alike and is_format and (run.cut, run.parts) == (cut_sizes(server), server.parts)

    runs = served_runs().get((server.engine, server.machine.id, server.name), ())
    return tuple(filter(is_same, runs))


def _bits(weights: str) -> str:
    """A format without how its scales are kept, which sources do not tell."""
    return weights.removesuffix("_plain")


def cut_sizes(server: AskedServer) -> tuple[int, ...]:
    cut = server.cut
    return cut.attention, cut.dense, cut.ep, cut.etp, cut.pp
