"""The timelines of the Pipeline view, with what the page's script says about each op, and for
files."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from descriptions import PAGE
from formats.documents.trace import chrome_trace
from groups import LayoutError
from groups.budget import spend
from groups.kept import kept
from render.scenes.charts import HELD, Entry, HeldChart, TimelineChart
from render.scenes.timeline import AXIS, PHASES, Strip, shade, strips_of
from render.svg.timeline import memory_svg, strip_svg
from request.answers.pipeline.inputs import (
    MOST_RANKS,
    clock_of,
    follows_layers,
    group_of,
    has_virtual_stages,
    schedule_of,
    spend_on,
    stages_of,
)
from request.answers.pipeline.timed import (
    TimedSchedule,
    about_percent,
    amount,
    timed,
    timed_schedule,
)
from request.context import Context
from request.inputs import OF_MATHS
from request.state import is_empty
from request.trained import schedule_name
from request.words import saying
from training.pipeline.plan import WAITS
from training.pipeline.spec import ScheduleSpec

from ..base.html import player_buttons, tag
from ..base.view import Pictures
from ..parts.zooms import axis_pictures

LABEL = 12
"""Pixels that the label of a row needs."""

WORDS = (
    "stage",
    "virtual",
    "card",
    "card_layers",
    "card_needs",
    "card_feeds",
    "card_pair",
    "waits",
    "idle",
    "idle_touch",
)
"""Sentences that the page's script fills in, by the ends of their names."""

MOST_ZOOM = 6
"""The largest zoom is two to this power."""

TRACED = 4
"""Units of work per op of a trace."""


@dataclass(frozen=True)
class _Drawn:
    """A schedule's timeline, and its memory curves, in which ``most`` fills a row."""

    schedule: TimedSchedule
    strip: Strip
    caption: str
    held: str  # what is said of the memory curves
    most: float


def _drawn(schedules: Sequence[TimedSchedule], ranks: Sequence[int], language: str) -> list[_Drawn]:
    """Timelines to compare, on one axis."""
    say = saying(PAGE, language)
    strips = strips_of([timed(schedule)[0] for schedule in schedules], ranks)
    most = [float(strip.held.max()) for strip in strips]
    drawn = []
    for schedule, strip, held in zip(schedules, strips, most):
        title = schedule_text(schedule, language)
        below = say("pipeline_memory", schedule=schedule.title, most=amount(held))
        drawn.append(_Drawn(schedule, strip, title, below, max(most)))
    return drawn


def schedule_text(schedule: TimedSchedule, language: str) -> str:
    """One sentence about a schedule: its time, bubble and memory."""
    figures = timed(schedule)[1]
    shares = figures.bubble_of_total, figures.bubble_of_span
    idle, span = map(about_percent, shares)
    words = "pipeline_picture" if idle != span else "pipeline_picture_even"
    return PAGE[words][language].format(
        schedule=schedule.title,
        p=schedule.spec.p,
        m=schedule.spec.m,
        makespan=amount(figures.makespan),
        idle=idle,
        **({} if idle == span else {"span": span}),
    )


@kept
def chart_html(
    schedules: tuple[TimedSchedule, ...], ranks: tuple[int, ...], language: str
) -> Markup:
    """The timelines on one axis, the memory curves, legend, toolbar, and the card of an op."""
    say, drawn = saying(PAGE, language), _drawn(schedules, ranks, language)
    labels, pictures = list[Markup](), list[Markup]()

    def lane(title: str, svg: str, row: int, below: int) -> None:
        labels.append(_labels(ranks, row, below, len(labels)))
        pictures.extend((tag("h3", title, class_="pipeline-name"), Markup(svg)))

    for number, each in enumerate(drawn):
        svg = strip_svg(each.strip, each.caption, number)
        lane(each.schedule.title, svg, each.strip.row, AXIS)
    for each in drawn:
        svg = memory_svg(each.strip, each.most, each.held)
        lane(each.held, svg, each.strip.memory_row, 0)
    words: dict[str, object] = {name: say(f"pipeline_{name}") for name in WORDS}
    words["kinds"] = {
        kind: say("pipeline_kind", letter=kind, name=say(f"pipeline_legend_{kind.lower()}"))
        for kind in PHASES
    }
    lanes = tag("div", *pictures, class_="pipeline-lanes")
    chart = (
        tag("div", *labels, class_="pipeline-ranks"),
        tag("div", lanes, class_="pipeline-scroll"),
    )
    return tag(
        "div",
        tag("div", *chart, class_="pipeline-chart"),
        _legend(schedules, language),
        _toolbar(drawn[0].strip, language),
        tag("p", words["idle"], class_="pipeline-card", role="status"),
        class_="pipeline-views",
        data_strips=[_data(each.schedule, each.strip) for each in drawn],
        data_words=words,
        data_waits=list(WAITS.values()),
    )


def _labels(ranks: Sequence[int], row: int, below: int, number: int) -> Markup:
    """The ranks beside a picture with so many pixels below its rows; those of a timeline have room
    for the op at the cursor."""
    step = -(-LABEL // row)
    now = tag("span", class_="pipeline-now") if below and step == 1 else ""
    rows = (
        tag(
            "div",
            *(tag("b", ranks[place]), now),
            style=f"height:{row * min(step, len(ranks) - place)}px",
            data_row=place,
        )
        for place in range(0, len(ranks), step)
    )
    room = f"padding-bottom:{below}px"
    return tag("div", *rows, class_="pipeline-labels", data_lane=number, style=room)


def _data(schedule: TimedSchedule, strip: Strip) -> dict[str, object]:
    """A timeline for the page's script."""
    return {
        "ranks": strip.ranks,
        "row": strip.row,
        "ticks": strip.ticks,
        "tick": strip.tick,
        "m": schedule.spec.m,
        "stages": schedule.spec.p * schedule.spec.chunks,
        "virtual": has_virtual_stages(schedule.spec),
        "layers": [stage.text for stage in schedule.stages or ()],
        "ops": base64.b64encode(strip.packed()).decode(),
    }


def _toolbar(strip: Strip, language: str) -> Markup:
    """Controls that work in the browser alone: a time cursor and the zoom."""

    def slider(name: str, most: int, step: str = "1") -> Markup:
        marks = {"class_": f"pipeline-{name}", "min": 0, "max": most, "step": step, "value": 0}
        box = tag("input", type="range", **marks)
        label = tag("span", PAGE[f"pipeline_{name}"][language])
        return tag("label", label, box, class_="pipeline-slider")

    return tag(
        "div",
        player_buttons("pipeline_back", "pipeline_on", language),
        slider("cursor", strip.ticks),
        tag("output", class_="pipeline-at"),
        slider("zoom", MOST_ZOOM, "0.25"),
        class_="player pipeline-tools",
    )


def _legend(schedules: Sequence[TimedSchedule], language: str) -> Markup:
    """The legend of the colours."""
    items = []
    for mark, word in legend_rows(schedules):
        shade = f"op-{mark.lower()}0" if mark in PHASES else f"held-{mark}"
        colour = tag("i", mark if mark in PHASES else "", class_=shade), " "
        items.append(tag("li", *(colour if mark else ()), PAGE[f"pipeline_{word}"][language]))
    return tag("ul", *items, class_="pipeline-legend")


def legend_rows(schedules: Sequence[TimedSchedule]) -> list[tuple[str, str]]:
    """The rows of the legend: kinds of op, notes on shades, memory; each a mark and a text."""
    kinds = [
        kind for kind in PHASES if any(kind in _kinds(schedule.spec) for schedule in schedules)
    ]
    rules = [schedule.spec.rule for schedule in schedules]
    rows = [(kind, f"legend_{kind.lower()}") for kind in kinds]
    rows += [("", "legend_copies")] if any(rule.placement == "both ways" for rule in rules) else []
    rows += [("", "legend_chunks")] if any(rule.v != 1 for rule in rules) else []
    ends = "".join(kind.lower() for kind in "BI" if kind in kinds)
    rows += [("input", f"held_{ends}")]
    return [*rows, ("weights", "held_weights")] if "W" in kinds else rows


def _kinds(spec: ScheduleSpec) -> str:
    if not spec.rule.splits:
        return "FB"
    return "FBIW" if spec.rule.pairs else "FIW"


# -- files -----------------------------------------------------------------------------------------


def pipeline_pictures(context: Context) -> Pictures:
    """The timelines on one axis, below them the memory of each rank; the axis of the whole step.

    Nothing where there is no pipeline, or one that is too long to be drawn.
    """
    schedules, ranks = _schedules(context)
    if not schedules:
        return []
    drawn = _drawn(schedules, ranks, context.language)
    legend, held = _legends(schedules, context.language)
    return [
        *((each.caption.rstrip(".。"), TimelineChart(each.strip, legend)) for each in drawn),
        *((each.held, HeldChart(each.strip, held, each.most)) for each in drawn),
        *axis_pictures(context),
    ]


def pipeline_slide(context: Context) -> Pictures:
    """The timelines and the axis of the whole step; what ranks hold has no room beside them."""
    return [
        (title, scene)
        for title, scene in pipeline_pictures(context)
        if not isinstance(scene, HeldChart)
    ]


def pipeline_trace(context: Context) -> str:
    """The timelines as a trace for Perfetto and Chrome.

    Errors: LayoutError where the view refuses, has no pipeline, or one too long to be drawn.
    """
    schedules, ranks = _schedules(context)
    if not schedules:
        raise LayoutError("no-picture", "the view has no picture of this layout")
    ops = sum(schedule.spec.num_run for schedule in schedules)
    spend(TRACED * ops, "ops", control="micro_batches")
    rows = {schedule.title: timed(schedule)[0].rows() for schedule in schedules}
    return chrome_trace(rows, ranks)


def _schedules(context: Context) -> tuple[list[TimedSchedule], tuple[int, ...]]:
    """The schedule, the one to compare with, and their ranks; none without a pipeline, or with one
    that is too long."""
    layout, state = context.layout, context.known
    if not 1 < layout.every["pp"].size <= MOST_RANKS:
        return [], ()
    names = [schedule_name(state), *([] if is_empty(state.against) else [state.against])]
    try:
        specs = list(dict.fromkeys(schedule_of(name, layout, state) for name in names))
        clock, (_, ranks) = clock_of(state), group_of(layout, state)
        spend_on(specs)
        # Layers that cannot be are no matter where they change nothing.
        stages = [stages_of(spec, state) if follows_layers(state) else None for spec in specs]
    except LayoutError as error:
        raise error.renamed(OF_MATHS) from None
    return [timed_schedule(*each, clock, state) for each in zip(specs, stages)], ranks


def _legends(
    schedules: list[TimedSchedule], language: str
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """The legends of the timelines' colours and of those of the memory curves."""
    ops, held, others = [], [], "-".join(shade("F", chunk) for chunk in (1, 2))
    for mark, word in legend_rows(schedules):
        text = PAGE[f"pipeline_{word}"][language].rstrip(".。")
        if mark in HELD:
            held.append((HELD[mark], text))
        else:
            is_kind = mark in PHASES
            ops.append((shade(mark, 0), f"{mark}: {text}") if is_kind else (others, text))
    return tuple(ops), tuple(held)
