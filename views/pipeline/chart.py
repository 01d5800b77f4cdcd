"""The timelines of the pipeline view, and what their script needs to tell about every op."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from markupsafe import Markup

from descriptions import PAGE
from render.scenes.timeline import PHASES, Strip, strips_of
from render.svg.timeline import AXIS, memory_svg, strip_svg
from training.pipeline import Durations, Figures, Timeline, figures_of, simulate
from training.pipeline.plan import WAITS
from training.pipeline.spec import ScheduleSpec

from ..base.html import player_buttons, saying, tag, together
from ..base.state import State
from .inputs import Clock, follows_layers
from .layers import Stage, weights_of

LABEL = 12
"""Pixels that the label of a row needs."""

WORDS = ("card", "card_layers", "card_needs", "card_feeds", "card_pair", "waits", "idle", "stage")
"""Sentences that the page's script fills in, by the end of their name."""

MOST_ZOOM = 6
"""Zoom goes up to two to this power."""


@dataclass(frozen=True)
class TimedSchedule:
    """One schedule to draw: its sizes and how long its ops take."""

    spec: ScheduleSpec
    durations: Durations

    @property
    def title(self) -> str:
        return self.spec.rule.title


def timed_schedule(
    schedule: ScheduleSpec, stages: tuple[Stage, ...] | None, clock: Clock, state: State
) -> TimedSchedule:
    """A schedule with its durations, which follow the layers of the stages if that is asked."""
    is_weighed = stages is not None and follows_layers(state)
    weights = weights_of(stages, state) if is_weighed else None
    spec = replace(schedule, w_share=clock.w_share)
    return TimedSchedule(spec, clock.durations(1 / schedule.chunks, weights))


@lru_cache(maxsize=4)
def timed(schedule: TimedSchedule) -> tuple[Timeline, Figures]:
    timeline = simulate(schedule.spec.plan(schedule.durations), schedule.durations)
    return timeline, figures_of(timeline)


@lru_cache(maxsize=8)
def chart_html(
    schedules: tuple[TimedSchedule, ...],
    ranks: tuple[int, ...],
    stages: tuple[tuple[Stage, ...] | None, ...],
    language: str,
) -> Markup:
    """Toolbar, legend, the timelines on one axis, the memory curves, and the card of an op."""
    results = [timed(schedule) for schedule in schedules]
    strips = strips_of([timeline for timeline, _ in results], ranks)
    most = max(float(strip.held.max()) for strip in strips)
    lanes = []
    for number, (schedule, strip, (_, figures)) in enumerate(zip(schedules, strips, results)):
        svg = strip_svg(strip, caption(schedule, figures, language), number)
        lanes.append(_Lane(schedule.title, strip.ranks, strip.row, svg, AXIS))
    for schedule, strip in zip(schedules, strips):
        words = PAGE["pipeline_memory"][language]
        title = words.format(schedule=schedule.title, most=amount(float(strip.held.max())))
        svg = memory_svg(strip, most, title)
        lanes.append(_Lane(title, strip.ranks, strip.memory_row, svg, 0))
    data = [
        _data(schedule, strip, layers) for schedule, strip, layers in zip(schedules, strips, stages)
    ]
    say = saying(PAGE, language)
    words = {name: say(f"pipeline_{name}") for name in WORDS}
    kinds = {
        kind: say("pipeline_kind", letter=kind, name=say(f"pipeline_legend_{kind.lower()}"))
        for kind in PHASES
    }
    labels = (lane.labels(number) for number, lane in enumerate(lanes))
    pictures = tag("div", *(lane.picture() for lane in lanes), class_="pipeline-lanes")
    chart = (
        tag("div", *labels, class_="pipeline-ranks"),
        tag("div", pictures, class_="pipeline-scroll"),
    )
    return tag(
        "div",
        _toolbar(strips[0], language),
        _legend(schedules, language),
        tag("p", words["idle"], class_="pipeline-card", role="status"),
        tag("div", *chart, class_="pipeline-chart"),
        class_="pipeline-views",
        data_strips=data,
        data_words=words | {"kinds": kinds},
        data_waits=list(WAITS.values()),
    )


@dataclass(frozen=True)
class _Lane:
    """One picture with its title and the labels of its rows; ``below``: pixels under them."""

    title: str
    ranks: tuple[int, ...]
    row: int
    svg: str
    below: int

    def labels(self, number: int) -> Markup:
        """The real ranks down the side, with room for what each does at the cursor."""
        step = -(-LABEL // self.row)
        now = tag("span", class_="pipeline-now") if self.below and step == 1 else ""
        rows = (
            tag(
                "div",
                *(tag("b", self.ranks[place]), now),
                style=f"height:{self.row * min(step, len(self.ranks) - place)}px",
                data_row=place,
            )
            for place in range(0, len(self.ranks), step)
        )
        room = f"padding-bottom:{self.below}px"
        return tag("div", *rows, class_="pipeline-labels", data_lane=number, style=room)

    def picture(self) -> Markup:
        return together(tag("h3", self.title, class_="pipeline-name"), Markup(self.svg))


def amount(value: float) -> str:
    """A number to about four digits, without idle zeros.

    >>> amount(33.0), amount(1630.5), amount(1 / 3), amount(12345678.0)
    ('33', '1,630.5', '0.3333', '12,345,678')
    """
    digits = 1 if abs(value) >= 1000 else 2 if abs(value) >= 100 else 3 if abs(value) >= 1 else 4
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """
    >>> percent(0.375), percent(3 / 11), percent(0.0)
    ('37.5%', '27.27%', '0%')
    """
    return f"{amount(round(100 * share, 2))}%"


def caption(schedule: TimedSchedule, figures: Figures, language: str) -> str:
    """What a timeline shows, in a sentence."""
    return PAGE["pipeline_picture"][language].format(
        schedule=schedule.title,
        p=schedule.spec.p,
        m=schedule.spec.m,
        makespan=amount(figures.makespan),
        idle=percent(figures.bubble_of_total),
        span=percent(figures.bubble_of_span),
    )


def _data(schedule: TimedSchedule, strip: Strip, stages: tuple[Stage, ...] | None) -> dict:
    count = schedule.spec.p * schedule.spec.chunks
    return {
        "ranks": strip.ranks,
        "row": strip.row,
        "ticks": strip.ticks,
        "tick": strip.tick,
        "m": schedule.spec.m,
        "stages": count,
        "layers": [] if stages is None else [stage.text for stage in stages],
        "ops": base64.b64encode(strip.packed()).decode(),
    }


def _toolbar(strip: Strip, language: str) -> Markup:
    """Movements in the browser alone: a time cursor and the zoom."""

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
    """What is drawn, in words beside its colours."""
    items = []
    for mark, word in legend_rows(schedules):
        shade = f"op-{mark.lower()}0" if mark in PHASES else f"held-{mark}"
        colour = tag("i", mark if mark in PHASES else "", class_=shade), " "
        items.append(tag("li", *(colour if mark else ()), PAGE[f"pipeline_{word}"][language]))
    return tag("ul", *items, class_="pipeline-legend")


def legend_rows(schedules: Sequence[TimedSchedule]) -> list[tuple[str, str]]:
    """The kinds of op, notes on their shades, what is held: a mark of the colour, and a word."""
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
