"""Data parallel gradients in time, as the job's own program sends them, or another scheme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
from markupsafe import Markup

from descriptions import PAGE, counted, joined
from groups import LayoutError
from groups.layout import Layout
from groups.mesh import whole_number
from render.svg.lanes import LaneBar, lanes_svg
from request.answers.collectives.inputs import ranks_of, speed
from request.context import Context
from request.fixes import fixes_of
from request.inputs import FIELDS as INPUTS
from request.state import State, is_empty
from request.units import bytes_text, seconds_text
from request.words import saying, tried
from training.collectives.buckets import (
    SCHEMES,
    BucketModel,
    Event,
    Task,
    exposed_seconds,
    layer_tensors,
    timed,
)
from training.collectives.cost import bytes_per_rank
from training.recipe import Training
from training.sharding.layers import as_sent, scheme_of, tensors_of_layer, training_unasked
from training.split import held_by_ranks

from ..base.form import choice, fields, number
from ..base.html import scrolling, tag
from ..base.problems import problem_html

FIELDS = ("bucket_layers", "bucket_hidden", "bucket_ms")
MOST_LAYERS = INPUTS["bucket_layers"].row.input.most


def buckets_html(context: Context, state: State) -> Markup:
    """The timeline of one step of the group that reduces dense gradients.

    Of ``state`` the bandwidth has been checked; what is wrong with the others is told here.
    """
    language, problems = context.language, list[LayoutError]()
    say = saying(PAGE, language)
    of_job, tensors, whose = dict[str, float](), tuple[int, ...](), ""
    try:
        of_job, tensors, whose = _layers_of_job(context)
    except LayoutError as error:
        problems.append(error.replace(alternatives=fixes_of(error, context)))
    if all(not is_empty(getattr(state, field)) for field in FIELDS):
        problems.clear()  # nothing of the job is asked for
    own = scheme_of(_training(context) or training_unasked(context.layout.made_by.engine))
    typed_scheme = tried(problems, partial(state.value, "bucket_scheme"))
    scheme = own if is_empty(state.bucket_scheme) else typed_scheme or own
    typed = {field: tried(problems, partial(state.value, field)) for field in FIELDS}
    hints = {field: _hint(of_job[field]) if of_job else "" for field in FIELDS}
    offered = [(say(f"buckets_{scheme}"), scheme) for scheme in SCHEMES]
    boxes = (number(field, state, hint=hint) for field, hint in hints.items())
    numbers = {**of_job, **{name: value for name, value in typed.items() if value is not None}}
    if hidden := typed["bucket_hidden"]:
        tensors, whose = layer_tensors(int(hidden)), f"h = {hidden:,.0f}"
    timeline = (
        _timeline(context, state, scheme, numbers, tensors, whose)
        if len(numbers) == len(FIELDS)
        else ()
    )
    return tag(
        "div",
        tag("h3", say("buckets_title")),
        tag("p", say("buckets_body")),
        fields(choice("bucket_scheme", state, offered, counts=own), *boxes),
        *(problem_html(error, language) for error in problems),
        *timeline,
        class_="collectives-buckets",
    )


def _layers_of_job(context: Context) -> tuple[dict[str, float], tuple[int, ...], str]:
    """Default numbers of empty boxes, parameters of each tensor of a layer on a rank, and the
    model's name.

    They are those of the stage that holds most layers, all as most are.

    Errors: LayoutError about the invalid field of the model or its training.
    """
    trained = context.trained
    split = trained.split.placed(trained.training.rule.placement)
    held = max(held_by_ranks(trained.model, split.dealing), key=lambda held: held.layers)
    kind = held.usual
    most = MOST_LAYERS if is_empty(context.state.bucket_layers) else None
    numbers = {
        "bucket_layers": whole_number(held.layers, "bucket_layers", maximum=most),
        "bucket_hidden": trained.model.hidden,
        # Forward takes half of the backward.
        "bucket_ms": trained.layer_seconds(context.layout, kind) * 2 / 3 * 1e3,
    }
    return (
        numbers,
        tensors_of_layer(trained.model, split, trained.training, kind),
        trained.name(context.language),
    )


def _hint(value: float) -> str:
    """
    >>> _hint(16_384), _hint(8.70312)
    ('16384', '8.703')
    """
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _timeline(
    context: Context,
    state: State,
    scheme: str,
    numbers: Mapping[str, float],
    tensors: tuple[int, ...],
    whose: str,
) -> Iterator[Markup]:
    """What is sent, in how many messages, and how much of it is exposed; and its picture."""
    layout, language = context.layout, context.language
    say = saying(PAGE, language)
    ranks, kind = _ranks(layout, INSIDE), _name(layout, INSIDE)
    model = BucketModel(
        layers=int(numbers["bucket_layers"]),
        tensors=tensors,
        d=len(ranks),
        backward_seconds=numbers["bucket_ms"] * 1e-3,
        bytes_per_second=speed(layout, ranks, state),
    )
    how = _training(context)
    if how is not None and scheme == scheme_of(how):
        between = speed(layout, _ranks(layout, BETWEEN), state)
        model = as_sent(model, how, context.trained.split, between)
    events = timed(SCHEMES[scheme](model))
    moved = [event.task for event in events if event.task.lane != "compute"]
    each = f"{model.layer_parameters:,}"
    yield tag("p", say("buckets_layers", layers=model.layers, whose=whose, each=each))
    facts = {
        "kind": kind,
        "ranks": counted(model.d, "rank", language),
        "messages": len(moved),
        "sent": bytes_text(sum(_sent(task, model) for task in moved)),
        "extra": seconds_text(exposed_seconds(events)),
        "total": seconds_text(max(event.end for event in events)),
    }
    about = [say(f"buckets_about_{scheme}")]
    if model.keeps_whole and scheme == "fsdp":
        about.append(say("buckets_kept"))
    if model.copies > 1:
        about.append(say("buckets_copies", copies=model.copies))
    if how is not None and how.engine != "megatron" and scheme == scheme_of(how):
        about.append(say(f"buckets_sync_{_sync(how, context.trained.split.pp)}"))
    parts = [*about, say("buckets_told", **facts)]
    yield tag("p", joined([*parts, say("buckets_alone")] if model.d == 1 else parts, language))
    yield _legend(events, language)
    yield scrolling("collectives-scroll", Markup(_picture(events, language)))
    notes = say("buckets_model", gradient=model.gradient, weight=model.weight)
    yield tag("p", notes, class_="collectives-note")


INSIDE, BETWEEN = ("intra-dp-cp", "dp-cp", "dp"), ("inter-edp",)
"""Roles of the groups that reduce dense gradients, and of those between copies, best ones first."""


def _name(layout: Layout, names: Sequence[str]) -> str:
    return next((name for name in names if name in layout.roles), names[-1])


def _ranks(layout: Layout, names: Sequence[str]) -> np.ndarray:
    """The ranks of the first of these groups; one rank where there is none."""
    name = _name(layout, names)
    return ranks_of(layout.roles[name], 0) if name in layout.roles else np.array([0])


def _training(context: Context) -> Training | None:
    with suppress(LayoutError):
        return context.trained.training
    return None


def _sync(training: Training, pp: int) -> str:
    """When gradients are reduced: every micro-batch, or the last; their shards every one, and
    between copies at the last."""
    if pp > 1 or (training.engine == "zero" and training.zero < 2):
        return "last"
    if training.engine == "zero":
        return "every"
    return {"kept": "last"}.get(training.sync, training.sync)


def _sent(task: Task, model: BucketModel) -> float:
    """Bytes that a rank sends in a collective."""
    return bytes_per_rank(task.what, model.copies if task.lane == "copies" else model.d, task.size)


def _legend(events: Sequence[Event], language: str) -> Markup:
    whats = dict.fromkeys(event.task.what for event in events if event.end > event.start)
    items = (
        tag("li", tag("i"), PAGE[f"buckets_{what}"][language], class_=f"bar {what}")
        for what in whats
    )
    return tag("ul", *items, class_="collectives-legend")


LANES = ("compute", "network", "copies")
"""From the top down."""


def _picture(events: Sequence[Event], language: str) -> str:
    """A picture with two lanes; consecutive computation of one kind and number is one bar."""
    bars: list[LaneBar] = []
    at = -1  # the last bar of computation
    for event in events:
        task, lane = event.task, LANES.index(event.task.lane)
        bar = LaneBar(lane, task.what, task.number, event.start, event.end)
        before = bars[at] if lane == 0 and at >= 0 else None
        if before and (before.what, before.number, before.end) == (bar.what, bar.number, bar.start):
            bars[at] = before._replace(end=bar.end)
            continue
        at = len(bars) if lane == 0 else at
        bars.append(bar)
    lanes = max((bar.lane for bar in bars), default=1) + 1
    return lanes_svg(bars, max(2, lanes), 1e-3, PAGE["buckets_picture"][language])
