"""Fit the law of training.serving.speed: `python -m benchmarks.fit_serving`, `--write` the runs.

It prints the constants; the errors with each engine, GPU, model, and source left out in turn; the
interval and how many runs lie in it; and whether layouts of one model on one machine come in the
right order. An error counts by its square up to NEAR, by its size beyond; constants are drawn to
what they may physically be (USUAL, with a width in logarithms).
"""

from __future__ import annotations

import csv
import lzma
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from groups.errors import LayoutError
from tests.reference.served_speed import ENGINES as ENGINE_NAMES
from tests.reference.served_speed import asked, model_id
from training.clusters import machine_of
from training.serving import speed
from training.serving.asked import ENGINES, MAKERS, AskedServer, require_told
from training.serving.runs import cut_sizes, misses
from training.serving.speed import Amounts, amounts_of
from training.serving.work import Load

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data" / "serving_speeds.csv.xz"

USUAL = {
    "LAYER": (40e-6, 1.0),
    "EXPERTS": (20e-6, 1.0),
    "SUM": (5e-6, 1.0),
    "REQUEST": (10e-6, 1.0),
    "GRAPHS": (1.0, 0.3),
    "HBM": (0.8, 0.08),
    "PEAK": (0.7, 0.15),
    "LINK": (0.5, 0.4),
}
"""Constants of the law, where they are drawn to, and how firmly."""

PULL, NEAR, STEPS = 5.0, 0.1, 30

LEAST_RUNS, LEAST_CURVES = 20, 5
"""Runs and curves of an engine, GPU and model from which on they correct the law."""


@dataclass(frozen=True)
class Run:
    """A row of the data, as it is asked."""

    row: dict[str, str]
    server: AskedServer
    load: Load
    amounts: Amounts
    seconds: float

    @property
    def series(self) -> tuple[str, str, str]:
        return self.server.engine, self.server.machine.id, self.server.name

    @property
    def source(self) -> str:
        return self.row["source_id"]

    @property
    def publisher(self) -> str:
        """Who measured: all dumps of InferenceX are one, all comparisons of NVIDIA another."""
        return " ".join(self.source.split(" ")[:1])

    @property
    def curve(self) -> tuple[object, ...]:
        """The runs of one layout, format and lengths, which differ in requests only."""
        how = (cut_sizes(self.server), self.server.parts, self.server.weights)
        return (self.source, *self.series, *how, self.load.prompt, self.load.answer)


def measured_rows() -> list[dict[str, str]]:
    with lzma.open(DATA, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def runs() -> Iterator[Run]:
    """The rows that the law tells of: one server, its layout, requests and seconds stated."""
    for row in measured_rows():
        is_doubted = "suspect" in row["notes"]
        if row["mode"] != "aggregated" or not row["tpot_ms"] or is_doubted:
            continue
        try:
            server, load = asked(row)
            require_told(server)
            amounts = amounts_of(server, load)
        except LayoutError:
            continue
        yield Run(row, server, load, amounts, float(row["tpot_ms"]) / 1e3)


class Law:
    """The law over many runs at once."""

    def __init__(self, several: Sequence[Run]) -> None:
        table = np.array([run.amounts for run in several], dtype=float)
        self.memory, self.compute = table[:, 0] + table[:, 1], table[:, 2]
        self.messages, self.requests = table[:, 3], table[:, 7]
        self.counts = table[:, 4:7]
        self.graphs = np.array([run.server.engine == "tensorrt-llm" for run in several])
        self.seconds = np.array([run.seconds for run in several])

    def errors(self, constants: np.ndarray, at: np.ndarray) -> np.ndarray:
        """log(worked out / measured) of the runs ``at``."""
        graphs = np.where(self.graphs[at], constants[4], 1.0)
        told = graphs * (self.counts[at] @ constants[:3]) + constants[3] * self.requests[at]
        told = told + self.memory[at] / constants[5] + self.compute[at] / constants[6]
        told = told + self.messages[at] / constants[7]
        return np.asarray(np.log(told / self.seconds[at]))

    def fit(self, at: np.ndarray) -> np.ndarray:
        """The constants, in the order of USUAL."""
        usual = np.log([value for value, _ in USUAL.values()])
        firm = np.array([PULL / width**2 for _, width in USUAL.values()])
        moved = usual.copy()
        for _ in range(STEPS):
            found = self.errors(np.exp(moved), at)
            slope = np.empty((len(found), len(moved)))
            for column in range(len(moved)):
                beside = moved.copy()
                beside[column] += 1e-4
                slope[:, column] = (self.errors(np.exp(beside), at) - found) / 1e-4
            weights = 1 / np.maximum(abs(found), NEAR)
            square = slope.T @ (weights[:, None] * slope) + np.diag(firm)
            down = slope.T @ (weights * found) + firm * (moved - usual)
            moved = moved - 0.8 * np.clip(np.linalg.solve(square, down), -1, 1)
        return np.exp(moved)

    def left_out(self, keys: Sequence[object]) -> np.ndarray:
        """The errors of each key's runs, by constants that are fitted to the others."""
        names = np.array([hash(key) for key in keys])
        found = np.zeros(len(names))
        for name in np.unique(names):
            out = names == name
            found[out] = self.errors(self.fit(np.flatnonzero(~out)), np.flatnonzero(out))
        return found


def drawn(missed: np.ndarray, curves: int) -> float:
    """log(measured / worked out) in the median, drawn to 0 where few curves say so."""
    return float(np.median(missed)) * curves / (curves + 1)


def corrected(several: Sequence[Run], errors: np.ndarray) -> np.ndarray:
    """The errors where the other curves of the same engine, GPU and model say how far it misses;
    nan where there is no other."""
    found = np.full(len(several), np.nan)
    curves = [run.curve for run in several]
    for curve in set(curves):
        out = np.array([one == curve for one in curves])
        series = several[int(np.flatnonzero(out)[0])].series
        others = [
            at for at, run in enumerate(several) if run.series == series and curves[at] != curve
        ]
        if others:
            number = len({curves[at] for at in others})
            found[out] = errors[out] + drawn(-errors[others], number)
    return found


def order(several: Sequence[Run], errors: np.ndarray) -> tuple[int, float, float, float]:
    """Pairs of layouts of one model on one machine for the same requests whose measured seconds
    differ by more than 5 %: how many, the share in the right order, of user and of GPU, and the
    median loss of whoever takes the best by the law."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for at, run in enumerate(several):
        lengths = (run.row["isl"], run.row["osl"], run.row["concurrency"])
        groups.setdefault((run.source, *run.series, run.server.weights, *lengths), []).append(at)
    right, of_gpus, lost = [], [], []
    for members in groups.values():
        each: dict[tuple[object, ...], tuple[float, float, float]] = {}
        for at in members:
            run = several[at]
            rate = run.server.gpus / run.load.requests
            each[run.curve] = (run.seconds, run.seconds * float(np.exp(errors[at])), rate)
        for one, other in combinations(each.values(), 2):
            if max(one[0], other[0]) > 1.05 * min(one[0], other[0]):
                right.append((one[0] < other[0]) == (one[1] < other[1]))
            by = [(run[0] * run[2], run[1] * run[2]) for run in (one, other)]
            if max(by[0][0], by[1][0]) > 1.05 * min(by[0][0], by[1][0]):
                of_gpus.append((by[0][0] < by[1][0]) == (by[0][1] < by[1][1]))
        if len(each) > 1:
            chosen = min(each.values(), key=lambda run: run[1])
            lost.append(chosen[0] / min(run[0] for run in each.values()) - 1)
    return len(right), float(np.mean(right)), float(np.mean(of_gpus)), float(np.mean(lost))


# -- what is printed -------------------------------------------------------------------------------


def told(found: np.ndarray) -> str:
    off = abs(np.expm1(found))
    low, high = np.quantile(np.exp(-found), [0.05, 0.95])
    return (
        f"{100 * np.median(off):.1f} % in the median, {np.mean(off < 0.25):.0%} within 25 %, "
        f"{np.mean(abs(found) < np.log(2)):.0%} within twice, measured/told {low:.2f} to {high:.2f}"
    )


def by(several: Sequence[Run], found: np.ndarray, key: Callable[[Run], object]) -> None:
    for name in sorted({str(key(run)) for run in several}):
        at = np.array([str(key(run)) == name for run in several])
        print(f"    {name}: {at.sum()} runs, {told(found[at])}")


def covered(found: np.ndarray, low: float, high: float) -> str:
    inside = (np.exp(-found) >= low) & (np.exp(-found) <= high)
    return f"{np.mean(inside):.1%} of {len(found)} within {low} to {high}"


def intervals(several: Sequence[Run], near: np.ndarray) -> str:
    """How many corrected runs lie in the interval of their engine, GPU and model, and how wide
    these are."""
    places = np.flatnonzero(np.isfinite(near)).tolist()
    known = [at for at in places if several[at].series in misses()]
    if not known:
        return "none is written"
    bounds = [misses()[several[at].series] for at in known]
    inside = [miss.low <= np.exp(-near[at]) <= miss.high for at, miss in zip(known, bounds)]
    wide = np.median([miss.high / miss.low for miss in bounds])
    return f"{np.mean(inside):.1%} of {len(known)}, from low to high {wide:.2f} times"


def main() -> None:
    several = list(runs())
    law, every = Law(several), np.arange(len(several))
    constants = law.fit(every)
    now = np.array([getattr(speed, name) for name in USUAL])
    print(len(several), "runs,", len({run.curve for run in several}), "curves, engines", ENGINES)
    for name, fitted, own in zip(USUAL, constants, now):
        print(f"  {name} {fitted:.3g} (now {own:.3g})")
    print("fitted on all:", told(law.errors(now, every)))
    for name, key in {
        "engine": lambda run: run.server.engine,
        "GPU": lambda run: run.server.machine.id,
        "model": lambda run: run.server.name,
        "engine, GPU and model": lambda run: run.series,
        "publisher": lambda run: run.publisher,
        "source": lambda run: run.source,
    }.items():
        found = law.left_out([key(run) for run in several])
        print(f"{name} left out:", told(found))
        if "--by" in sys.argv:
            by(several, found, key)
    print("interval, a source left out:", covered(found, speed.LOW, speed.HIGH))
    near = corrected(several, law.errors(now, every))
    print("same engine, GPU and model, a curve left out:", told(near[np.isfinite(near)]))
    print("its interval:", intervals(several, near))
    print("order: {} pairs, {:.1%} right, by GPU {:.1%}; best chosen loses {:.1%}".format(
        *order(several, found)))  # fmt: skip
    if "--write" in sys.argv:
        write(several, law.errors(now, every))


RUNS = (
    *("model", "machine", "engine", "version", "cut", "parts", "weights", "requests", "prompt"),
    *("answer", "tpot_ms", "ttft_ms", "source"),
)
ALONE = (
    *("model", "machine", "engine", "version", "how", "weights", "requests", "prompt", "answer"),
    *("tpot_ms", "ttft_ms", "source"),
)
MISSES = ("engine", "machine", "model", "times", "low", "high", "runs", "curves")


def write(several: Sequence[Run], errors: np.ndarray) -> None:
    """Writes what the product knows of measured runs."""
    _write("runs.csv", RUNS, map(_run_row, several))
    _write("others.csv", ALONE, _alone_rows())
    _write("misses.csv", MISSES, _miss_rows(several, errors))


def _write(name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    file = ROOT / "training" / "serving" / name
    with file.open("w", encoding="utf-8", newline="") as written:
        csv.writer(written, lineterminator="\n").writerows([head, *rows])


PUBLISHERS = {
    "aic:InferenceX": "InferenceX",
    "aic:gap": "NVIDIA aiconfigurator",
    "InferenceX": "InferenceX",
    "sgl-cookbook": "SGLang cookbook",
    "SGLang on Ascend": "SGLang",
}
"""Who published a run, by how its source's id begins."""


def _source(row: dict[str, str]) -> str:
    """Who published a run, and the run or the file of it."""
    path, _, run = row["source"].partition(" id=")
    who = next(name for start, name in PUBLISHERS.items() if row["source_id"].startswith(start))
    return f"{who}: {run or path.split(' (')[0].split('/')[-1]}"


def _alone_rows() -> Iterator[Sequence[object]]:
    """Runs of which the law does not tell: as their source says them."""
    for row in measured_rows():
        is_pair = row["mode"].startswith("disaggregated")
        if not (is_pair or row["mode"].startswith("aggregated")) or not row["tpot_ms"]:
            continue
        try:
            name, machine = model_id(row["model"]), machine_of(row["gpu"].replace("Atlas 800I", ""))
            amounts = [f"{float(row[each]):g}" for each in ("concurrency", "isl", "osl")]
        except (LayoutError, ValueError):
            continue
        is_guessing = row["spec_decode"].startswith(("yes", "mtp"))
        if not (is_pair or is_guessing or machine.maker not in MAKERS):
            continue
        engine = ENGINE_NAMES.get(row["engine"], row["engine"])
        times = row["tpot_ms"], row["ttft_ms"]
        start = (name, machine.id, engine, row["engine_version"], _how(row, is_pair, is_guessing))
        yield (*start, row["precision"].split(" ")[0], *amounts, *times, _source(row))


def _how(row: dict[str, str], is_pair: bool, is_guessing: bool) -> str:
    """The layout of a run as its source says it, ones and what is not known left out."""

    def short(text: str) -> str:
        words = text.split()
        return " ".join(
            w for w in words if w[-1:].isdigit() and not w.endswith(("p1", "dp0", "x1"))
        )

    if is_pair:
        how = f"prefill {short(row['prefill']) or '1'}, decode {short(row['decode']) or '1'}"
    else:
        sizes = {"tp": row["tp"], "dp": row["attn_dp"], "ep": row["ep"], "pp": row["pp"]}
        numbers = {name: int(float(size or 1)) for name, size in sizes.items()}
        how = " ".join(f"{name}{size}" for name, size in numbers.items() if size > 1) or "tp1"
    return f"{how}, {row['spec_decode']}" if is_guessing and not is_pair else how


def _run_row(run: Run) -> Sequence[object]:
    engine, machine, model = run.series
    source = _source(run.row)
    cut, load = "-".join(map(str, cut_sizes(run.server))), run.load
    amounts = (f"{value:g}" for value in (load.requests, load.prompt, load.answer))
    times = run.row["tpot_ms"], run.row["ttft_ms"]
    how = (run.row["engine_version"], cut, run.server.parts, run.server.weights)
    return (model, machine, engine, *how, *amounts, *times, source)


def _miss_rows(several: Sequence[Run], errors: np.ndarray) -> Iterator[Sequence[object]]:
    """The miss of each engine, GPU and model of which there are many runs, with the interval of
    these, each curve left out."""
    near, numbers = corrected(several, errors), Counter(run.series for run in several)
    for series in sorted(numbers):
        at = np.array([run.series == series for run in several])
        curves = len({run.curve for run in several if run.series == series})
        if numbers[series] >= LEAST_RUNS and curves >= LEAST_CURVES:
            times = np.exp(drawn(-errors[at], curves))
            figures = (f"{value:.3f}" for value in (times, *_interval(near[at])))
            yield (*series, *figures, numbers[series], curves)


def _interval(errors: np.ndarray) -> tuple[float, float]:
    """Measured over worked out, at 5 and 95 %, no wider than where nothing was measured."""
    low, high = np.quantile(np.exp(-errors), [0.05, 0.95])
    return max(float(low), speed.LOW), min(float(high), speed.HIGH)


if __name__ == "__main__":
    main()
