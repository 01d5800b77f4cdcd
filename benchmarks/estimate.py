"""Part "estimate": how true estimated steps and memory are, on public runs of others.

Every run is asked anew; errors on sources that the fit has not seen are as the fit left them in
training/estimate/data/errors.csv (`python -m benchmarks.fit_estimate`).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import numpy as np

from training.estimate import error_table
from training.estimate.constants import DATA
from training.estimate.runs import is_nanotron, runs

from .estimate_errors import Answered, ErrorFigures, answered, figures
from .page_client import Servers
from .timing import ResultTable

STEPS = ("step", "step90")
HEAD = (
    *("runs of", "n", "step", "p90", "bias", "cover", "high/low", "order", "regret"),
    *("memory", "holds"),
)

GOALS: dict[str, tuple[str, Callable[[ErrorFigures, ErrorFigures, ErrorFigures], bool]]] = {
    "step <= 12 %": ("step", lambda own, book, every: own.step <= 0.12),
    "p90 <= 30 %": ("step90", lambda own, book, every: own.step90 <= 0.30),
    "cover 85 to 97 %": ("cover", lambda own, book, every: 0.85 <= own.cover <= 0.97),
    "high/low <= 1.8": ("wide", lambda own, book, every: own.wide <= 1.8),
    "regret <= 5 %": ("regret", lambda own, book, every: own.regret <= 0.05),
    "its p90 <= 15 %": ("regret90", lambda own, book, every: own.regret90 <= 0.15),
    "Playbook step <= 35 %": ("step", lambda own, book, every: book.step <= 0.35),
    "Playbook order >= 0.80": ("order", lambda own, book, every: book.order >= 0.80),
    "Playbook cover 85 to 97 %": ("cover", lambda own, book, every: 0.85 <= book.cover <= 0.97),
    "Playbook regret <= 6 %": ("regret", lambda own, book, every: book.regret <= 0.06),
    "memory <= 3 %": ("memory", lambda own, book, every: every.memory <= 0.03),
    "memory p90 <= 8 %": ("memory90", lambda own, book, every: every.memory90 <= 0.08),
    "out of memory right >= 90 %": ("right", lambda own, book, every: every.right >= 0.90),
    "good runs lost <= 5 %": ("lost", lambda own, book, every: every.lost <= 0.05),
    "refused <= 5 %": ("refused", lambda own, book, every: every.refused <= 0.05 * every.runs),
}
"""The figures that hold, by name: what of outside the Playbook, of it, and of all."""


def run(quick: bool, servers: Servers) -> Iterator[ResultTable | str]:
    began = perf_counter()
    asked = answered(run for run in runs() if run.counts)
    took = 1e3 * (perf_counter() - began) / len(asked)
    yield ResultTable(
        "Estimates of public runs",
        HEAD,
        [_row(name, figures(several)) for name, several in _groups(asked).items()],
        f"{took:.2f} ms an estimate. Rows that count only; errors are |estimated / measured - 1|.",
    )
    own, book, every = parts_of(asked)
    yield "\n".join(
        f"{'holds' if holds(own, book, every) else 'does not hold'}: {name}"
        for name, (_, holds) in GOALS.items()
    )
    yield ResultTable(
        "Steps of sources that the fit has not seen",
        ("runs of", "n", "step", "p90"),
        [
            (row["group"], row["runs"], *(_percent(float(row[f"unseen_{of}"]), 1) for of in STEPS))
            for row in error_table()
            if row["unseen_step"]
        ],
        "Each kind of source left out in turn; of the Playbook, which alone tells of nanotron, "
        "each model.",
    )


def parts_of(asked: Sequence[Answered]) -> tuple[ErrorFigures, ErrorFigures, ErrorFigures]:
    """The figures outside the Playbook, of it, and of all."""
    book = [is_nanotron(answer.run) for answer in asked]
    return (
        figures([answer for answer, is_book in zip(asked, book) if not is_book]),
        figures([answer for answer, is_book in zip(asked, book) if is_book]),
        figures(asked),
    )


def _groups(asked: Sequence[Answered]) -> dict[str, list[Answered]]:
    found: dict[str, list[Answered]] = {}
    for answer in asked:
        found.setdefault(answer.run.group, []).append(answer)
    ordered = dict(sorted(found.items(), key=lambda item: -len(item[1])))
    rest = [answer for answer in asked if not is_nanotron(answer.run)]
    return {**ordered, "all but Playbook": rest, "all": list(asked)}


def _percent(value: float, digits: int = 0) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _row(name: str, figures: ErrorFigures) -> tuple[str, ...]:
    return (
        *(
            name,
            str(figures.runs),
            _percent(figures.step, 1),
            _percent(figures.step90),
            _number(figures.bias),
        ),
        *(
            _percent(figures.cover),
            _number(figures.wide),
            _number(figures.order),
            _percent(figures.regret, 1),
        ),
        _percent(figures.held, 1),
        _percent(figures.holds),
    )


WRITTEN = (
    *("runs", "step", "step90", "bias", "cover", "wide", "order", "regret", "memory"),
    *("held", "holds"),
)
"""The figures of data/errors.csv, which the page shows, that need no other fit."""


def errors_by_group(asked: Sequence[Answered]) -> dict[str, ErrorFigures]:
    """The figures of each group of runs, of all but nanotron's, and of all."""
    return {name: figures(several) for name, several in _groups(asked).items()}


def write(asked: Sequence[Answered], unseen: dict[str, np.ndarray]) -> None:
    """data/errors.csv; unseen: log(estimated / measured) by group, the fit blind to the source."""
    with (DATA / "errors.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("group", *WRITTEN, "unseen_step", "unseen_step90"))
        for name, total in errors_by_group(asked).items():
            blind = unseen.get(name, np.array([]))
            off = abs(np.exp(blind) - 1)
            more = [
                float(np.quantile(off, share)) if len(off) else math.nan for share in (0.5, 0.9)
            ]
            values = [*(getattr(total, field) for field in WRITTEN), *more]
            rows.writerow([name, *("" if math.isnan(x) else f"{x:.4g}" for x in values)])
