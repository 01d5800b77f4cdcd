"""The timelines of the pipeline view, and what their script needs to tell about every op."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape

from descriptions import PAGE
from render.scenes.timeline import PHASES, Strip, strips_of
from render.svg.timeline import AXIS, memory_svg, strip_svg
from training.pipeline import Durations, Figures, Timeline, figures_of, simulate
from training.pipeline.plan import WAITS
from training.pipeline.schedules import ScheduleSpec

from ..base.player import player_buttons
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

    asked: ScheduleSpec
    durations: Durations

    @property
    def title(self) -> str:
        return self.asked.rule.title


def shown_of(
    one: ScheduleSpec,
    stages: tuple[Stage, ...] | None,
    clock: Clock,
    state: State,
) -> TimedSchedule:
    """A schedule with its durations, which follow the layers of the stages if that is asked."""
    is_weighed = stages is not None and follows_layers(state)
    weights = weights_of(stages, state) if is_weighed else None
    asked = replace(one, w_share=clock.w_share)
    return TimedSchedule(asked, clock.durations(1 / one.chunks, weights))


@lru_cache(maxsize=4)
def timed(shown: TimedSchedule) -> tuple[Timeline, Figures]:
    """A schedule's timeline and its figures."""
    timeline = simulate(shown.asked.plan(shown.durations), shown.durations)
    return timeline, figures_of(timeline)


@lru_cache(maxsize=8)
def chart_html(
    shown: tuple[TimedSchedule, ...],
    ranks: tuple[int, ...],
    stages: tuple[tuple[Stage, ...] | None, ...],
    language: str,
) -> str:
    """Toolbar, legend, the timelines on one axis, the memory curves, and the card of an op."""
    found = [timed(one) for one in shown]
    strips = strips_of([timeline for timeline, _ in found], ranks)
    most = max(float(strip.held.max()) for strip in strips)
    lanes = []
    for number, (one, strip, (_, figures)) in enumerate(zip(shown, strips, found)):
        svg = strip_svg(strip, caption(one, figures, language), number)
        lanes.append(_Lane(one.title, strip.ranks, strip.row, svg, AXIS))
    for one, strip in zip(shown, strips):
        words = PAGE["pipeline_memory"][language]
        title = words.format(schedule=one.title, most=amount(float(strip.held.max())))
        svg = memory_svg(strip, most, title)
        lanes.append(_Lane(title, strip.ranks, strip.memory_row, svg, 0))
    data = [_data(one, strip, layers) for one, strip, layers in zip(shown, strips, stages)]
    words = {name: PAGE[f"pipeline_{name}"][language] for name in WORDS}
    kind_word = PAGE["pipeline_kind"][language]
    words["kinds"] = {
        kind: kind_word.format(letter=kind, name=PAGE[f"pipeline_legend_{kind.lower()}"][language])
        for kind in PHASES
    }
    return (
        f'<div class="pipeline-views" data-strips="{_attribute(data)}" '
        f'data-words="{_attribute(words)}" data-waits="{_attribute(list(WAITS.values()))}">'
        f"{_toolbar(strips[0], language)}{_legend(shown, language)}"
        f'<p class="pipeline-card" role="status">{escape(words["idle"])}</p>'
        '<div class="pipeline-chart"><div class="pipeline-ranks">'
        f"{''.join(lane.labels(number) for number, lane in enumerate(lanes))}</div>"
        '<div class="pipeline-scroll"><div class="pipeline-lanes">'
        f"{''.join(lane.picture() for lane in lanes)}</div></div></div></div>"
    )


@dataclass(frozen=True)
class _Lane:
    """One picture with its title and the labels of its rows; ``below``: pixels under them."""

    title: str
    ranks: tuple[int, ...]
    row: int
    svg: str
    below: int

    def labels(self, number: int) -> str:
        """The real ranks down the side, with room for what each does at the cursor."""
        step = -(-LABEL // self.row)
        rows = "".join(
            f'<div style="height:{self.row * min(step, len(self.ranks) - place)}px" '
            f'data-row="{place}"><b>{self.ranks[place]}</b>'
            f"{_NOW if self.below and step == 1 else ''}</div>"
            for place in range(0, len(self.ranks), step)
        )
        return (
            f'<div class="pipeline-labels" data-lane="{number}" '
            f'style="padding-bottom:{self.below}px">{rows}</div>'
        )

    def picture(self) -> str:
        return f'<h3 class="pipeline-name">{escape(self.title)}</h3>{self.svg}'


_NOW = '<span class="pipeline-now"></span>'


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
    ('37.5 %', '27.27 %', '0 %')
    """
    return f"{amount(round(100 * share, 2))} %"


def caption(one: TimedSchedule, figures: Figures, language: str) -> str:
    """What a timeline shows, in a sentence."""
    return PAGE["pipeline_picture"][language].format(
        schedule=one.title,
        p=one.asked.p,
        m=one.asked.m,
        makespan=amount(figures.makespan),
        idle=percent(figures.bubble_of_total),
        span=percent(figures.bubble_of_span),
    )


def _data(one: TimedSchedule, strip: Strip, stages: tuple[Stage, ...] | None) -> dict:
    """What the script needs of one strip."""
    count = one.asked.p * one.asked.chunks
    return {
        "ranks": strip.ranks,
        "row": strip.row,
        "ticks": strip.ticks,
        "tick": strip.tick,
        "m": one.asked.m,
        "stages": count,
        "layers": [] if stages is None else [stage.text for stage in stages],
        "ops": base64.b64encode(strip.packed()).decode(),
    }


def _toolbar(strip: Strip, language: str) -> str:
    """Movements in the browser alone: a time cursor and the zoom."""

    def slider(name: str, most: int, step: str = "1") -> str:
        label = escape(PAGE[f"pipeline_{name}"][language])
        return (
            f'<label class="pipeline-slider"><span>{label}</span>'
            f'<input type="range" class="pipeline-{name}" min="0" max="{most}" step="{step}" '
            'value="0"></label>'
        )

    return (
        f'<div class="player pipeline-tools">'
        f"{player_buttons('pipeline_back', 'pipeline_on', language)}"
        f"{slider('cursor', strip.ticks)}"
        f'<output class="pipeline-at"></output>{slider("zoom", MOST_ZOOM, "0.25")}</div>'
    )


def _legend(shown: Sequence[TimedSchedule], language: str) -> str:
    """The kinds of op that are drawn, in words beside their colours."""
    kinds = [kind for kind in PHASES if any(kind in _kinds(one.asked) for one in shown)]
    items = "".join(
        f'<li><i class="op-{kind.lower()}0">{kind}</i> '
        f"{escape(PAGE[f'pipeline_legend_{kind.lower()}'][language])}</li>"
        for kind in kinds
    )
    ways = {one.asked.rule.way for one in shown}
    more = [
        PAGE["pipeline_legend_copies"][language] if "both ways" in ways else "",
        PAGE["pipeline_legend_chunks"][language] if ways & {"loop", "V"} else "",
    ]
    notes = "".join(f"<li>{escape(text)}</li>" for text in more if text)
    held = [("held-input", "pipeline_held_input")]
    if "W" in kinds:
        held.append(("held-weights", "pipeline_held_weights"))
    areas = "".join(
        f'<li><i class="{name}"></i> {escape(PAGE[word][language])}</li>' for name, word in held
    )
    return f'<ul class="pipeline-legend">{items}{notes}{areas}</ul>'


def _kinds(asked: ScheduleSpec) -> str:
    """The kinds of op that a schedule runs."""
    if not asked.rule.splits:
        return "FB"
    return "FBIW" if asked.name.startswith("dualpipe") else "FIW"


def _attribute(value: object) -> str:
    return escape(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
