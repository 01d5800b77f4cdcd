"""The figures of the pipeline view: for each schedule, and rank by rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from markupsafe import Markup

from descriptions import PAGE
from training.pipeline import Figures

from ..base.html import fold, table, tag, together
from ..base.units import ranges_text
from .chart import TimedSchedule, amount, percent, timed
from .inputs import Clock
from .layers import rank_name, stage_numbers

CLOSE = 1e-6
"""Difference, of the larger, below which two times are the same."""


def figures_html(
    schedules: Sequence[TimedSchedule],
    ranks: Sequence[int],
    clock: Clock,
    message: float | None,
    language: str,
) -> str:
    results = [(schedule, timed(schedule)[1]) for schedule in schedules]

    def row(word: str, cell: Callable[[TimedSchedule, Figures], str]) -> list[str]:
        return [PAGE[word][language], *(cell(schedule, figures) for schedule, figures in results)]

    heads = [PAGE["pipeline_figure"][language], *(schedule.title for schedule, _ in results)]
    rows = [
        row("pipeline_makespan", lambda _, f: amount(f.makespan)),
        row("pipeline_bubble_ideal", lambda _, f: percent(f.bubble_of_ideal)),
        row("pipeline_bubble_total", lambda _, f: percent(f.bubble_of_total)),
        row("pipeline_bubble_span", lambda _, f: percent(f.bubble_of_span)),
        row("pipeline_idle_rank", lambda _, f: span(f.idle, language)),
        row("pipeline_idle_span", lambda _, f: amount(float(f.span_bubble.max()))),
        row("pipeline_closed", lambda schedule, f: _closed(schedule, f, clock, language)),
        row("pipeline_peak", lambda schedule, f: _peak(schedule, f, language)),
        row("pipeline_sends", lambda _, f: _sends(f, message, language)),
    ]
    if clock.optimizer:
        late = row("pipeline_with_optimizer", lambda _, f: amount(f.makespan + clock.optimizer))
        without_sync = row(
            "pipeline_without_sync",
            lambda _, f: amount(float(f.span.max()) + clock.optimizer),
        )
        rows[1:1] = [late, without_sync]
    return together(
        tag("h3", PAGE["pipeline_figures"][language]),
        table(heads, rows, "pipeline-figures"),
        *(_rank_by_rank(schedule, f, ranks, message, language) for schedule, f in results),
    )


def span(values: np.ndarray, language: str) -> str:
    """One number if all are the same, else from the least to the most."""
    least, most = float(values.min()), float(values.max())
    if _same(least, most):
        return amount(most)
    return PAGE["pipeline_range"][language].format(least=amount(least), most=amount(most))


def _closed(schedule: TimedSchedule, figures: Figures, clock: Clock, language: str) -> str:
    """What is published for the idle time, and whether the simulation agrees."""
    spec = schedule.spec
    form = spec.rule.closed
    if form is None:
        return PAGE["pipeline_closed_none"][language]
    simulated = {
        "step": float(figures.idle.mean()),
        "most": float(figures.idle.max()),
        "span": float(figures.span_bubble.max()),
    }[form.sense]
    sense = PAGE[f"pipeline_closed_{form.sense}"][language]
    idle = form.idle(spec.p, spec.chunks, clock.times)
    value = amount(idle)
    colon, semicolon = PAGE["colon"][language], PAGE["semicolon"][language]
    said = sense + colon + (value if form.formula == value else f"{form.formula} = {value}")
    if _same(idle, simulated):
        return said + semicolon + PAGE["pipeline_closed_agrees"][language]
    condition = f", {form.when[0]}" if form.when[0] else ""
    differs = PAGE["pipeline_closed_differs"][language]
    return said + semicolon + differs.format(value=amount(simulated), condition=condition)


def _peak(schedule: TimedSchedule, figures: Figures, language: str) -> str:
    spec = schedule.spec
    simulated = figures.peak * (spec.p / timed(schedule)[0].plan.stages)
    form = spec.rule.closed
    said = span(simulated, language)
    # A formula that the simulation exceeds is not of this case, such as ZB-2p's where W holds less.
    if form is None or simulated.max() > max(form.peaks(spec.p, spec.m, spec.chunks)) + CLOSE:
        return said
    return f"{said} ({form.peak_formula})"


def _sends(figures: Figures, message: float | None, language: str) -> str:
    sends = figures.activation_sends + figures.gradient_sends
    said = span(sends, language)
    return said if message is None else f"{said}; {span(sends * message / 1e9, language)} GB"


def _rank_by_rank(
    schedule: TimedSchedule,
    figures: Figures,
    ranks: Sequence[int],
    message: float | None,
    language: str,
) -> Markup:
    share = schedule.spec.p / timed(schedule)[0].plan.stages
    sends = figures.activation_sends + figures.gradient_sends
    columns = [
        ("stages", [ranges_text(sorted(stages)) for stages in stage_numbers(schedule.spec)]),
        ("busy", _amounts(figures.busy)),
        ("idle", _amounts(figures.idle)),
        ("tail", _amounts(figures.tail)),
        ("input", _amounts(figures.peak_input * share)),
        ("peak", _amounts(figures.peak * share)),
        ("forward", _amounts(figures.activation_sends)),
        ("backward", _amounts(figures.gradient_sends)),
    ]
    if message is not None:
        columns.append(("sent", [f"{amount(b)} GB" for b in (sends * message / 1e9).tolist()]))
    names = ("rank", *(name for name, _ in columns))
    heads = (PAGE[f"pipeline_column_{name}"][language] for name in names)
    rows = (
        (rank_name(rank, place), *(texts[place] for _, texts in columns))
        for place, rank in enumerate(ranks)
    )
    title = PAGE["pipeline_per_rank"][language] + PAGE["colon"][language] + schedule.title
    return fold(title, table(heads, rows, "pipeline-figures"), kind="")


def _amounts(values: np.ndarray) -> list[str]:
    return [amount(float(value)) for value in values.tolist()]


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(1.0, abs(a), abs(b))
