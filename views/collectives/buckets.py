"""Data parallel gradients in time: buckets behind backward, a sharded optimizer, ZeRO-3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from descriptions import PAGE, counted, joined
from groups import LayoutError
from groups.errors import quoted
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
from ..base.problems import problem_html
from ..base.state import State, is_empty, parse_number
from ..base.units import bytes_text, seconds_text
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


def buckets_html(layout: Layout, state: State, language: str) -> str:
    """The timeline of one step of the group that reduces dense gradients.

    Of ``asked`` the bandwidth has been checked; what is wrong with the others is told here.
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
    offered = [(PAGE[f"buckets_{one}"][language], one) for one in SCHEMES]
    boxes = fields(
        choice("bucket_scheme", state.bucket_scheme or "ddp", offered, language),
        *(
            number(field, getattr(state, field), language, hint=f"{DEFAULTS[field]:g}")
            for field in DEFAULTS
        ),
    )
    return (
        f'<div class="collectives-buckets"><h3>{PAGE["buckets_title"][language]}</h3>'
        f"<p>{escape(PAGE['buckets_body'][language])}</p>{boxes}"
        f"{''.join(problem_html(error, language) for error in problems)}"
        f"<p>{escape(_told(events, model, name, scheme, language))}</p>"
        f"{_legend(events, language)}"
        f'<div class="collectives-scroll" tabindex="0">{_picture(events, language)}</div>'
        f'<p class="collectives-note">{escape(PAGE["buckets_model"][language])}</p></div>'
    )


def _read(state: State) -> tuple[dict[str, float], str, list[LayoutError]]:
    """The numbers that count, the scheme, and what was wrong."""
    numbers: dict[str, float] = {}
    problems: list[LayoutError] = []
    for field, default in DEFAULTS.items():
        try:
            numbers[field] = _number(field, getattr(state, field))
        except LayoutError as error:
            problems.append(error)
            numbers[field] = default
    scheme = state.bucket_scheme or "ddp"
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        problems.append(
            LayoutError(
                "not-offered",
                f"bucket_scheme does not offer {quoted(scheme)}",
                control="bucket_scheme",
                alternatives=[{"bucket_scheme": "ddp"}],  # type: ignore[dict-item]
                facts={"value": quoted(scheme), "control": "bucket_scheme"},
            )
        )
        scheme = "ddp"
    return numbers, scheme, problems


def _number(field: str, given: Any) -> float:
    if is_empty(given):
        return DEFAULTS[field]
    return whole_number(parse_number(given), field, maximum=MOST[field])


def _told(
    events: Sequence[Event], model: BucketModel, name: str, scheme: str, language: str
) -> str:
    """How much travels, in how many pieces, and how much of it is not hidden."""
    moved = [event.task for event in events if event.task.lane == "network"]
    sent = sum(bytes_per_rank(task.what, model.d, task.size) for task in moved)
    parts = [
        PAGE[f"buckets_about_{scheme}"][language],
        PAGE["buckets_told"][language].format(
            kind=name,
            ranks=counted(model.d, "rank", language),
            messages=len(moved),
            sent=bytes_text(sent),
            extra=seconds_text(exposed_seconds(events)),
            total=seconds_text(max(event.end for event in events)),
        ),
    ]
    if model.d == 1:
        parts.append(PAGE["buckets_alone"][language])
    return joined(parts, language)


def _legend(events: Sequence[Event], language: str) -> str:
    whats = dict.fromkeys(event.task.what for event in events if event.end > event.start)
    items = "".join(
        f'<li class="bar {what}"><i></i>{escape(PAGE[f"buckets_{what}"][language])}</li>'
        for what in whats
    )
    return f'<ul class="collectives-legend">{items}</ul>'


def _picture(events: Sequence[Event], language: str) -> str:
    lanes = {"compute": 0, "network": 1}
    bars: list[LaneBar] = []
    for event in events:
        task = event.task
        bar = LaneBar(lanes[task.lane], task.what, task.number, event.start, event.end)
        last = next((one for one in reversed(bars) if one.lane == bar.lane), None)
        joins = (
            task.lane == "compute"
            and last is not None
            and (last.what, last.number, last.end) == (bar.what, bar.number, bar.start)
        )
        if joins and last is not None:
            bars[bars.index(last)] = replace(last, end=bar.end)
        else:
            bars.append(bar)
    return lanes_svg(bars, len(lanes), 1e-3, PAGE["buckets_picture"][language])
