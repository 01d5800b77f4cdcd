"""The tables of the Pipeline view: figures of each schedule, rank by rank too, and its layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from markupsafe import Markup

from descriptions import PAGE
from request.answers.pipeline.inputs import (
    Clock,
    Stage,
    counts_of,
    has_virtual_stages,
    stage_numbers,
)
from request.answers.pipeline.timed import TimedSchedule, amount, percent, timed
from request.state import State, is_empty
from request.units import ranges_text
from request.words import saying
from training.pipeline import Figures
from training.pipeline.spec import ScheduleSpec

from ..base.html import TableCell, cell, fold, table, tag, together
from ..base.problems import leads_html

Say = Callable[..., str]

CLOSE = 1e-6
"""Relative difference below which two times are equal."""


def figures_html(
    schedules: Sequence[TimedSchedule],
    ranks: Sequence[int],
    clock: Clock,
    message: float | None,
    language: str,
) -> Markup:
    say = saying(PAGE, language)
    columns = [_figures(schedule, clock, message, say) for schedule in schedules]
    rows = ([say(f"pipeline_{word}"), *(each[word] for each in columns)] for word in columns[0])
    heads = [say("pipeline_figure"), *(schedule.title for schedule in schedules)]
    return together(
        tag("h3", say("pipeline_figures")),
        table(heads, rows, "pipeline-figures"),
        *(_rank_by_rank(schedule, ranks, message, say) for schedule in schedules),
    )


def _figures(
    schedule: TimedSchedule, clock: Clock, message: float | None, say: Say
) -> dict[str, str]:
    """The figures of one schedule, by the ends of their texts' names."""
    figures, optimizer = timed(schedule)[1], clock.optimizer
    sends = figures.activation_sends + figures.gradient_sends
    sent = span(sends, say)
    late = {
        "with_optimizer": amount(figures.makespan + optimizer),
        "without_sync": amount(float(figures.span.max()) + optimizer),
    }
    return {
        "makespan": amount(figures.makespan),
        **(late if optimizer else {}),
        "bubble_ideal": percent(figures.bubble_of_ideal),
        "bubble_total": percent(figures.bubble_of_total),
        "bubble_span": percent(figures.bubble_of_span),
        "idle_rank": span(figures.idle, say),
        "idle_span": amount(float(figures.span_bubble.max())),
        "closed": _closed(schedule.spec, figures, clock, say),
        "peak": _peak(schedule, figures, say),
        "sends": sent if message is None else f"{sent}; {span(sends * message / 1e9, say)} GB",
    }


def span(values: np.ndarray, say: Say) -> str:
    """One number if all are equal, else the least to the largest."""
    least, most = float(values.min()), float(values.max())
    if _same(least, most):
        return amount(most)
    return say("pipeline_range", least=amount(least), most=amount(most))


def _closed(spec: ScheduleSpec, figures: Figures, clock: Clock, say: Say) -> str:
    """The published formula of the idle time, and whether the simulation agrees."""
    form = spec.rule.closed
    if form is None:
        return say("pipeline_closed_none")
    simulated = {
        "step": float(figures.idle.mean()),
        "most": float(figures.idle.max()),
        "span": float(figures.span_bubble.max()),
    }[form.sense]
    idle = form.idle(spec.p, spec.chunks, clock.times)
    value = amount(idle)
    sentence = say(f"pipeline_closed_{form.sense}") + say("colon")
    sentence += (value if form.formula == value else f"{form.formula} = {value}") + say("semicolon")
    if _same(idle, simulated):
        return sentence + say("pipeline_closed_agrees")
    condition = f", {form.when}" if form.when else ""
    return sentence + say("pipeline_closed_differs", value=amount(simulated), condition=condition)


def _peak(schedule: TimedSchedule, figures: Figures, say: Say) -> str:
    spec = schedule.spec
    simulated, form = figures.peak * schedule.share, spec.rule.closed
    text = span(simulated, say)
    # A formula that the simulation exceeds is not of this case, such as ZB-2p's where W holds less.
    if form is None or simulated.max() > max(form.peaks(spec.shape)) + CLOSE:
        return text
    return text + say("in_brackets", words=form.peak_formula)


def _rank_by_rank(
    schedule: TimedSchedule, ranks: Sequence[int], message: float | None, say: Say
) -> Markup:
    figures, share = timed(schedule)[1], schedule.share
    numbers = {
        "busy": figures.busy,
        "idle": figures.idle,
        "tail": figures.tail,
        "input": figures.peak_input * share,
        "peak": figures.peak * share,
        "forward": figures.activation_sends,
        "backward": figures.gradient_sends,
    }
    name = "virtual" if has_virtual_stages(schedule.spec) else "stages"
    columns = {name: [ranges_text(sorted(held)) for held in stage_numbers(schedule.spec)]}
    columns |= {name: list(map(amount, values.tolist())) for name, values in numbers.items()}
    if message is not None:
        sent = (figures.activation_sends + figures.gradient_sends) * message / 1e9
        columns["sent"] = [f"{amount(size)} GB" for size in sent.tolist()]
    heads = (say(f"pipeline_column_{name}") for name in ("rank", *columns))
    rows = (
        (_rank_name(rank, place), *texts)
        for place, (rank, *texts) in enumerate(zip(ranks, *columns.values()))
    )
    title = say("pipeline_per_rank") + say("colon") + schedule.title
    return fold(title, table(heads, rows, "pipeline-figures"), kind="")


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(1.0, abs(a), abs(b))


# -- layers ----------------------------------------------------------------------------------------


def layers_html(
    schedule: ScheduleSpec,
    stages: tuple[Stage, ...] | None,
    ranks: tuple[int, ...],
    state: State,
    language: str,
) -> Markup:
    """A table of stages, with a row for each rank and a column for each chunk, and remarks."""
    say, columns = saying(PAGE, language), stage_numbers(schedule)
    word = "direction" if schedule.rule.placement == "both ways" else "chunk"
    chunks = (say(f"pipeline_{word}", chunk=chunk) for chunk in range(len(columns[0])))
    stage = say("pipeline_virtual" if has_virtual_stages(schedule) else "pipeline_stage")
    rows = (
        (
            _rank_name(rank, place),
            *(_cell(n, chunk, stage, stages, language) for chunk, n in enumerate(numbers)),
        )
        for place, (rank, numbers) in enumerate(zip(ranks, columns))
    )
    notes = _notes(schedule, stages, state, language)
    heads = (say("pipeline_column_rank"), *chunks)
    return together(notes, table(heads, rows, "pipeline-layers"))


def _rank_name(rank: int, place: int) -> Markup:
    return together(f"{rank} ", tag("small", f"pp {place}"))


def _cell(
    number: int, chunk: int, words: str, stages: tuple[Stage, ...] | None, language: str
) -> TableCell:
    stage = tag("small", words.format(stage=number))
    held = "" if stages is None else stages[number].text
    is_empty_stage = stages is not None and not stages[number].layers
    if is_empty_stage:
        held = f"{held} {PAGE['pipeline_empty'][language]}".strip()
    shade = tag("i", class_=f"op-f{min(chunk, 7)}")
    return cell(shade, stage, " ", held, class_="pipeline-empty" if is_empty_stage else None)


def _notes(
    schedule: ScheduleSpec, stages: tuple[Stage, ...] | None, state: State, language: str
) -> Markup:
    """Remarks about this split."""
    say, notes = saying(PAGE, language), []
    if stages is None:
        if is_empty(state.layers):
            return tag("p", leads_html("layers", say("rank_give_layers")))
    else:
        counts = counts_of(stages, state)
        if min(counts) != max(counts):
            notes.append(say("pipeline_uneven", least=min(counts), most=max(counts)))
        empty = [number for number, stage in enumerate(stages) if not stage.layers]
        if empty:
            notes.append(say("pipeline_empties", stages=ranges_text(empty)))
    if schedule.rule.placement == "both ways":
        notes.append(say("pipeline_copies"))
    return together(*(tag("p", note, class_="pipeline-note") for note in notes))
