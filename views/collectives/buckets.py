"""Data parallel gradients in time: buckets behind backward, a sharded optimizer, ZeRO-3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup

from descriptions import PAGE, counted, joined
from groups import LayoutError
from groups.layout import Layout
from groups.mesh import whole_number
from render.svg.lanes import LaneBar, lanes_svg
from training.collectives.buckets import (
    BucketModel,
    Event,
    Task,
    all_reduce_tasks,
    exposed_seconds,
    sharded_tasks,
    timed,
    zero3_tasks,
)
from training.collectives.cost import bytes_per_rank

from ..base.form import choice, fields, number
from ..base.html import scrolling, tag
from ..base.problems import problem_html, tried
from ..base.state import State, is_empty, parse_number, require_choice
from ..base.units import bytes_text, seconds_text
from ..base.words import saying
from .inputs import ranks_of, speed

SCHEMES: dict[str, Callable[[BucketModel], list[Task]]] = {
    "ddp": lambda model: all_reduce_tasks(model, "ddp"),
    "megatron": lambda model: all_reduce_tasks(model, "megatron"),
    "one": lambda model: all_reduce_tasks(model, "one"),
    "sharded": sharded_tasks,
    "zero3": zero3_tasks,
}

DEFAULTS = {"bucket_layers": 12, "bucket_hidden": 2048, "bucket_ms": 4}
MOST = {"bucket_layers": 128, "bucket_hidden": 65_536, "bucket_ms": 100_000}
"""Layers that one rank holds, their hidden size, and milliseconds of backward for one of them."""


def buckets_html(layout: Layout, state: State, language: str) -> Markup:
    """The timeline of one step of the group that reduces dense gradients.

    Of ``state`` the bandwidth has been checked; what is wrong with the others is told here.
    """
    name = "dp-cp" if "dp-cp" in layout.every else "dp"
    ranks = ranks_of(layout.every[name], 0) if name in layout.every else np.array([0])
    numbers, scheme, problems = _read(state)
    model = BucketModel(
        layers=int(numbers["bucket_layers"]),
        hidden=int(numbers["bucket_hidden"]),
        d=len(ranks),
        backward_seconds=numbers["bucket_ms"] * 1e-3,
        bytes_per_second=speed(layout, ranks, state.collective_gbs),
    )
    events = timed(SCHEMES[scheme](model))
    say = saying(PAGE, language)
    offered = [(say(f"buckets_{scheme}"), scheme) for scheme in SCHEMES]
    boxes = fields(
        choice("bucket_scheme", state.bucket_scheme or "ddp", offered, language),
        *(
            number(field, getattr(state, field), language, hint=f"{DEFAULTS[field]:g}")
            for field in DEFAULTS
        ),
    )
    return tag(
        "div",
        tag("h3", say("buckets_title")),
        tag("p", say("buckets_body")),
        boxes,
        *(problem_html(error, language) for error in problems),
        tag("p", _summary(events, model, name, scheme, language)),
        _legend(events, language),
        scrolling("collectives-scroll", Markup(_picture(events, language))),
        tag("p", say("buckets_model"), class_="collectives-note"),
        class_="collectives-buckets",
    )


def _read(state: State) -> tuple[dict[str, float], str, list[LayoutError]]:
    problems: list[LayoutError] = []
    numbers = {
        field: tried(problems, lambda field=field: _number(field, getattr(state, field))) or default
        for field, default in DEFAULTS.items()
    }
    chosen = state.bucket_scheme or "ddp"
    scheme = tried(problems, lambda: require_choice("bucket_scheme", chosen, SCHEMES, ["ddp"]))
    return numbers, scheme or "ddp", problems


def _number(field: str, given: Any) -> float:
    if is_empty(given):
        return DEFAULTS[field]
    return whole_number(parse_number(given), field, maximum=MOST[field])


def _summary(
    events: Sequence[Event], model: BucketModel, name: str, scheme: str, language: str
) -> str:
    """How much travels, in how many pieces, and how much of it is not hidden."""
    say = saying(PAGE, language)
    moved = [event.task for event in events if event.task.lane == "network"]
    sent = sum(bytes_per_rank(task.what, model.d, task.size) for task in moved)
    parts = [
        say(f"buckets_about_{scheme}"),
        say(
            "buckets_told",
            kind=name,
            ranks=counted(model.d, "rank", language),
            messages=len(moved),
            sent=bytes_text(sent),
            extra=seconds_text(exposed_seconds(events)),
            total=seconds_text(max(event.end for event in events)),
        ),
    ]
    return joined([*parts, say("buckets_alone")] if model.d == 1 else parts, language)


def _legend(events: Sequence[Event], language: str) -> Markup:
    whats = dict.fromkeys(event.task.what for event in events if event.end > event.start)
    items = (
        tag("li", tag("i"), PAGE[f"buckets_{what}"][language], class_=f"bar {what}")
        for what in whats
    )
    return tag("ul", *items, class_="collectives-legend")


def _picture(events: Sequence[Event], language: str) -> str:
    """Two lanes; computation of one kind and number that goes on without a gap is one bar."""
    bars: list[LaneBar] = []
    last: dict[str, int] = {}  # of each lane, its last bar
    for event in events:
        task = event.task
        lane = ("compute", "network").index(task.lane)
        bar = LaneBar(lane, task.what, task.number, event.start, event.end)
        before = bars[last[task.lane]] if task.lane in last else bar
        joins = (before.what, before.number, before.end) == (bar.what, bar.number, bar.start)
        if lane == 0 and joins and before is not bar:
            bars[last[task.lane]] = replace(before, end=bar.end)
        else:
            last[task.lane] = len(bars)
            bars.append(bar)
    return lanes_svg(bars, 2, 1e-3, PAGE["buckets_picture"][language])
