"""What of the Pipeline view goes into files: its timelines, and a trace of them."""

from __future__ import annotations

from descriptions import PAGE
from formats.documents.trace import chrome_trace
from groups import LayoutError
from groups.budget import spend
from groups.layout import Layout
from render.scenes.charts import HELD, Entry, HeldChart, TimelineChart
from render.scenes.timeline import PHASES, shade, strips_of

from ..base.context import Context, Pictures
from ..base.state import OF_MATHS, State, is_empty
from ..base.trained import schedule_name
from .chart import TimedSchedule, amount, caption, legend_rows, timed, timed_schedule
from .inputs import MOST_RANKS, clock_of, follows_layers, group_of, schedule_of, spend_on
from .layers import stages_of

TRACED = 4
"""Units of work for an op of a trace."""


def pipeline_pictures(context: Context) -> Pictures:
    """The timelines on one axis, and under them what each rank holds.

    Nothing where there is no pipeline, or one that is too long to be drawn.
    """
    schedules, ranks = _schedules(context)
    if not schedules:
        return []
    results = [timed(schedule) for schedule in schedules]
    strips = strips_of([timeline for timeline, _ in results], ranks)
    most = max(float(strip.held.max()) for strip in strips)
    language = context.language
    legend, held = _legends(schedules, language)
    pictures: Pictures = []
    for schedule, strip, (_, figures) in zip(schedules, strips, results):
        title = caption(schedule, figures, language)
        pictures.append((title.rstrip(".。"), TimelineChart(strip, legend)))
    for schedule, strip in zip(schedules, strips):
        title = PAGE["pipeline_memory"][language].format(
            schedule=schedule.title, most=amount(float(strip.held.max()))
        )
        pictures.append((title, HeldChart(strip, held, most)))
    return pictures


def pipeline_trace(context: Context) -> str:
    """The same timelines as a trace for Perfetto and Chrome.

    Errors: LayoutError where the view refuses, has no pipeline, or one too long to be drawn.
    """
    schedules, ranks = _schedules(context)
    if not schedules:
        raise LayoutError("no-picture", "the view has no picture of this layout")
    spend(
        TRACED * sum(schedule.spec.num_run for schedule in schedules),
        "ops",
        control="micro_batches",
    )
    return chrome_trace(
        {schedule.title: timed(schedule)[0].rows() for schedule in schedules}, ranks
    )


def _schedules(context: Context) -> tuple[list[TimedSchedule], tuple[int, ...]]:
    """The schedule, the one to compare with, and the ranks that run them; none where there is no
    pipeline, or one too long."""
    layout, state = context.layout, context.known
    if not 1 < layout.every["pp"].size <= MOST_RANKS:
        return [], ()
    try:
        return _checked(layout, state)
    except LayoutError as error:
        raise error.renamed(OF_MATHS) from None


def _checked(layout: Layout, state: State) -> tuple[list[TimedSchedule], tuple[int, ...]]:
    names = [schedule_name(state)]
    names += [] if is_empty(state.against) else [state.against]
    schedules = dict.fromkeys(schedule_of(name, layout, state) for name in names)
    clock, (_, ranks) = clock_of(state), group_of(layout, state)
    spend_on(list(schedules))
    clocked = []
    for schedule in schedules:
        # Layers that cannot be are no matter where they change nothing.
        stages = stages_of(schedule, state) if follows_layers(state) else None
        clocked.append(timed_schedule(schedule, stages, clock, state))
    return clocked, ranks


def _legends(
    schedules: list[TimedSchedule], language: str
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """What the colours of the timelines mean, and those of what is held."""
    ops, held, others = [], [], "-".join(shade("F", chunk) for chunk in (1, 2))
    for mark, word in legend_rows(schedules):
        text = PAGE[f"pipeline_{word}"][language].rstrip(".。")
        if mark in HELD:
            held.append((HELD[mark], text))
        else:
            is_kind = mark in PHASES
            ops.append((shade(mark, 0), f"{mark}: {text}") if is_kind else (others, text))
    return tuple(ops), tuple(held)
