"""Part "estimate": how true estimated steps and memory are, on public runs of others.

Two tables: the constants as they are, and with each kind of source left out of the fit in turn
(nanotron's runs: each model left out in turn, for no other source has its constants). The second
takes half a minute; with --quick it is left out. `--only estimate` also writes
training/estimate/data/errors.csv, which the page shows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import numpy as np

from training.estimate.errors import Answered, Figures, answered, figures
from training.estimate.runs import DATA, Run, runs

from . import fit_estimate as fit
from .page_client import Servers
from .timing import Table

HEAD = ("runs of", "n", "step", "p90", "bias", "cover", "high/low", "order", "regret", "memory")

GOALS: dict[str, tuple[str, Callable[[Figures, Figures, Figures], bool]]] = {
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


def run(quick: bool, servers: Servers) -> Iterator[Table | str]:
    began = perf_counter()
    asked = answered(one for one in runs() if one.counts)
    took = 1e3 * (perf_counter() - began) / len(asked)
    yield Table(
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
    if quick:
        return
    unseen = unseen_errors()
    write(asked, unseen)
    yield Table(
        "Steps of sources that the fit has not seen",
        ("runs of", "n", "step", "p90", "bias"),
        [_unseen_row(name, errors) for name, errors in unseen.items()],
        "Each kind of source left out in turn; of the Playbook each model.",
    )


def parts_of(asked: Sequence[Answered]) -> tuple[Figures, Figures, Figures]:
    """The figures outside the Playbook, of it, and of all."""
    book = [fit.is_nanotron(one.run) for one in asked]
    return (
        figures([one for one, is_book in zip(asked, book) if not is_book]),
        figures([one for one, is_book in zip(asked, book) if is_book]),
        figures(asked),
    )


def _groups(asked: Sequence[Answered]) -> dict[str, list[Answered]]:
    found: dict[str, list[Answered]] = {}
    for one in asked:
        found.setdefault(one.run.group, []).append(one)
    ordered = dict(sorted(found.items(), key=lambda item: -len(item[1])))
    rest = [one for one in asked if not fit.is_nanotron(one.run)]
    return {**ordered, "all but Playbook": rest, "all": list(asked)}


def unseen_errors() -> dict[str, np.ndarray]:
    """log(estimated / measured) by group, with the fit blind to the kind of source."""
    tuned = fit.cases(lambda one: not fit.is_nanotron(one) and one.counts)
    every = fit.cases(lambda one: not fit.is_nanotron(one))
    errors = fit.held_out(every, fit.kind_of)
    counts = np.array([one.run.counts for one in every])
    found: dict[str, list[float]] = {}
    for one, error in zip(tuned, errors[counts]):
        found.setdefault(one.run.group, []).append(float(error))
    plain = fit.cases(fit.is_nanotron)
    shared, own = fit.fit_shared(every)
    base = {**shared, **own["h100"]}
    found["Playbook"] = fit.held_out_nanotron(plain, base).tolist()
    return {name: np.array(values) for name, values in found.items()}


def _percent(value: float, digits: int = 0) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _row(name: str, one: Figures) -> tuple[str, ...]:
    return (
        *(name, str(one.runs), _percent(one.step, 1), _percent(one.step90), _number(one.bias)),
        *(_percent(one.cover), _number(one.wide), _number(one.order), _percent(one.regret, 1)),
        _percent(one.memory, 1),
    )


def _unseen_row(name: str, errors: np.ndarray) -> tuple[str, ...]:
    off = abs(np.exp(errors) - 1)
    return (
        *(name, str(len(errors)), _percent(float(np.median(off)), 1)),
        *(_percent(float(np.quantile(off, 0.9))), _number(float(np.median(np.exp(errors))))),
    )


def write(asked: Sequence[Answered], unseen: dict[str, np.ndarray]) -> None:
    """data/errors.csv."""
    names = ("runs", "step", "step90", "bias", "cover", "wide", "order", "regret", "memory")
    with (DATA / "errors.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("group", *names, "unseen_step", "unseen_step90"))
        for name, several in _groups(asked).items():
            one = figures(several)
            blind = unseen.get(name, np.array([]))
            off = abs(np.exp(blind) - 1)
            more = [
                float(np.quantile(off, share)) if len(off) else math.nan for share in (0.5, 0.9)
            ]
            values = [*(getattr(one, field) for field in names), *more]
            rows.writerow([name, *("" if math.isnan(x) else f"{x:.4g}" for x in values)])


__all__ = ["GOALS", "Run", "parts_of", "run"]
