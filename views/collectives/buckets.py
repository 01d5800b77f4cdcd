"""Data parallel gradients in time: buckets behind backward, a sharded optimizer, ZeRO-3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from descriptions import PAGE, counted, joined
from groups import LayoutError
from groups.mesh import whole_number
from render.svg.lanes import LaneBar, lanes_svg
from training.collectives.buckets import (
    BucketModel,
    Event,
    Task,
    all_reduce_tasks,
    exposed_seconds,
    layer_tensors,
    model_tensors,
    sharded_tasks,
    timed,
    zero3_tasks,
)
from training.collectives.cost import bytes_per_rank
from training.split import held_by_ranks

from ..base.context import Context
from ..base.form import choice, fields, number
from ..base.html import saying, scrolling, tag
from ..base.problems import problem_html, tried
from ..base.state import State, is_empty, parse_number, require_choice
from ..base.units import bytes_text, seconds_text
from .inputs import positive, ranks_of, speed

SCHEMES: dict[str, Callable[[BucketModel], list[Task]]] = {
    "ddp": lambda model: all_reduce_tasks(model, "ddp"),
    "megatron": lambda model: all_reduce_tasks(model, "megatron"),
    "one": lambda model: all_reduce_tasks(model, "one"),
    "sharded": sharded_tasks,
    "zero3": zero3_tasks,
}

FIELDS = ("bucket_layers", "bucket_hidden", "bucket_ms")
MOST = {"bucket_layers": 128, "bucket_hidden": 65_536}
"""Layers that one rank holds, and their hidden size."""


@dataclass(frozen=True)
class _JobLayers:
    """Of the job: numbers of empty boxes, parameters of each tensor of a layer on a rank."""

    numbers: dict[str, float]
    tensors: tuple[int, ...]


def _layers_of_job(context: Context) -> _JobLayers:
    """Those of the stage that holds most layers, all as most of them are: with experts, or without.

    Errors: LayoutError about the field of the model or its training that cannot be.
    """
    trained = context.trained
    split = trained.split.placed(trained.training.rule.placement)
    held = max(held_by_ranks(trained.model, split), key=lambda held: held.layers)
    moe = 2 * held.moe_layers > held.layers
    numbers = {
        "bucket_layers": whole_number(held.layers, "bucket_layers", maximum=MOST["bucket_layers"]),
        "bucket_hidden": trained.model.hidden,
        # Forward takes half of the backward.
        "bucket_ms": trained.layer_seconds(context.layout, moe=moe) * 2 / 3 * 1e3,
    }
    return _JobLayers(numbers, model_tensors(trained.model, split, moe=moe))


def buckets_html(context: Context, state: State) -> Markup:
    """The timeline of one step of the group that reduces dense gradients.

    Of ``state`` the bandwidth has been checked; what is wrong with the others is told here.
    """
    language = context.language
    say, problems = saying(PAGE, language), list[LayoutError]()
    job = tried(problems, lambda: _layers_of_job(context))
    if all(not is_empty(getattr(state, field)) for field in FIELDS):
        problems.clear()  # nothing of the job is asked for
    hints = {field: f"{job.numbers[field]:.4g}" if job else "" for field in FIELDS}
    chosen = state.bucket_scheme or "ddp"
    scheme = tried(problems, lambda: require_choice("bucket_scheme", chosen, SCHEMES, ["ddp"]))
    typed = {
        field: tried(problems, lambda field=field: _typed(field, getattr(state, field)))
        for field in FIELDS
    }
    offered = [(say(f"buckets_{scheme}"), scheme) for scheme in SCHEMES]
    boxes = fields(
        choice("bucket_scheme", chosen, offered, language),
        *(number(field, getattr(state, field), language, hint=hints[field]) for field in FIELDS),
    )
    return tag(
        "div",
        tag("h3", say("buckets_title")),
        tag("p", say("buckets_body")),
        boxes,
        *(problem_html(error, language) for error in problems),
        *_timeline(context, state, scheme or "ddp", job, typed),
        class_="collectives-buckets",
    )


def _typed(field: str, given: Any) -> float | None:
    """None for an empty box; times may be fractions, as the job's are."""
    if is_empty(given):
        return None
    if field in MOST:
        return whole_number(parse_number(given), field, maximum=MOST[field])
    return positive(field, given, 0)


def _timeline(
    context: Context,
    state: State,
    scheme: str,
    job: _JobLayers | None,
    typed: Mapping[str, float | None],
) -> Iterator[Markup]:
    """What was typed, else the job's; nothing where neither is known."""
    numbers = {**(job.numbers if job else {}), **{k: v for k, v in typed.items() if v is not None}}
    if len(numbers) < len(FIELDS):
        return
    layout, language = context.layout, context.language
    name = "dp-cp" if "dp-cp" in layout.every else "dp"
    ranks = ranks_of(layout.every[name], 0) if name in layout.every else np.array([0])
    of_job = job is not None and typed["bucket_hidden"] is None
    model = BucketModel(
        layers=int(numbers["bucket_layers"]),
        tensors=job.tensors if job and of_job else layer_tensors(int(numbers["bucket_hidden"])),
        d=len(ranks),
        backward_seconds=numbers["bucket_ms"] * 1e-3,
        bytes_per_second=speed(layout, ranks, state),
    )
    events, say = timed(SCHEMES[scheme](model)), saying(PAGE, language)
    whose = context.trained.name if of_job else f"h = {numbers['bucket_hidden']:,.0f}"
    yield tag(
        "p",
        say("buckets_layers", layers=model.layers, whose=whose, each=f"{model.layer_parameters:,}"),
    )
    yield tag("p", _summary(events, model, name, scheme, language))
    yield _legend(events, language)
    yield scrolling("collectives-scroll", Markup(_picture(events, language)))
    yield tag("p", say("buckets_model"), class_="collectives-note")


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
