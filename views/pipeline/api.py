"""The endpoint about pipelines: a schedule op by op, and what it comes to."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from formats.documents.trace import chrome_trace
from training.pipeline import SCHEDULES, Timeline, figures_of, simulate
from training.pipeline.plan import MOST_OPS, too_many_ops
from training.pipeline.spec import ScheduleSpec, checked

from ..base.endpoint import Parameters, serving, too_large
from ..base.state import State, require_choice
from ..base.trained import micro_batches_unasked
from .inputs import MOST_RANKS, clock_of, spend_on

MOST_PLACES = 100_000
"""Ops that one answer lists: some 4 MB."""

NAMES = ", ".join(f'"{name}"' for name in SCHEDULES)

SCHEDULE = Parameters(
    "(the schedule)",
    f"""
    schedule = "1f1b": the order of the ops, {NAMES}.
    p -> pp = 4: pipeline ranks.
    m -> micro_batches = 0: micro-batches of a step; 0: four a rank, as the page takes where none
        are said.
    v -> vpp = 0: chunks of the model on each rank; 0: as the schedule has them, 2 where it
        can choose.
    group_size = 0: micro-batches of a group, for "interleaved"; 0: p.
    t_f = 1.0: time of a forward of one micro-batch through all layers of a rank.
    t_i = 1.0: the same of a backward for the inputs.
    t_w = 1.0: the same of a backward for the weights.
    t_b = 0.0: the same of a whole backward; 0: t_i + t_w.
    t_pair = 0.0: the same of a forward and a backward that overlap; 0: one after the other.
    t_send = 0.0: time of a message from one rank to another.
    w_share = 1.0: part of an activation that is held from I to W, for "zb-2p", whose order is
        found for the times.
    ops = True: whether to list the ops; without them far longer schedules are answered.
    trace = False: whether to answer with a trace for Perfetto and Chrome instead, a unit as 1 ms.
    """,
)


@serving(dict, SCHEDULE)
def pipeline_schedule(given: dict[str, Any]) -> str:
    """What every rank of a pipeline runs in a step, and when, as JSON; and its bubble.

    An op is [name, start, end]: "3F5" is the forward of micro-batch 5 through stage 3, B a whole
    backward, I and W its halves for inputs and weights, "3F6&0B0" two that overlap. Times are in
    the unit of t_f; activations are counted in micro-batches of a whole rank.

    Args:
        (the schedule)
    """
    state = State(**SCHEDULE.fields(given))
    sizes = (state.micro_batches or micro_batches_unasked(state.pp), state.vpp, state.group_size)
    spec = checked(state.schedule, state.pp, *(size or None for size in sizes))
    clock = clock_of(state)
    with_ops = require_choice("ops", given["ops"], (False, True))
    is_trace = require_choice("trace", given["trace"], (False, True))
    if spec.p > MOST_RANKS:
        raise too_large(spec.p, "pipeline-ranks", MOST_RANKS, "p")
    if spec.num_ops > MOST_OPS:
        raise too_many_ops(spec.num_ops).replace(alternatives=spec.alternatives("m"))
    spend_on([spec])
    durations = clock.durations(1 / spec.chunks, None)
    plan = replace(spec, w_share=clock.w_share).plan(durations)
    if (with_ops or is_trace) and len(plan.flat) > MOST_PLACES:
        refusal = too_large(len(plan.flat), "ops", MOST_PLACES, "ops")
        raise refusal.replace(
            alternatives=[{"ops": False, "trace": False} if is_trace else {"ops": False}]
        )
    timeline = simulate(plan, durations)
    if is_trace:
        return chrome_trace({spec.rule.title: timeline.rows()})
    return json.dumps(_answer(spec, timeline, with_ops))


def _answer(spec: ScheduleSpec, timeline: Timeline, with_ops: bool) -> dict[str, Any]:
    figures, share = figures_of(timeline), timeline.plan.share
    columns = {
        "busy": figures.busy,
        "idle": figures.idle,
        "peak_activations": figures.peak * share,
        "peak_activations_until_input_gradient": figures.peak_input * share,
        "activation_sends": figures.activation_sends,
        "gradient_sends": figures.gradient_sends,
    }
    rows = zip(*(column.tolist() for column in columns.values()))
    answer = {
        "schedule": spec.name,
        "p": spec.p,
        "m": spec.m,
        "v": spec.chunks,
        "stages": timeline.plan.stages,
        "units": {"times": "that of t_f", "activations": "micro-batches of a whole rank"},
        "makespan": figures.makespan,
        "bubble_of_ideal": figures.bubble_of_ideal,
        "bubble_of_total": figures.bubble_of_total,
        "bubble_of_span": figures.bubble_of_span,
        "ranks": [dict(zip(columns, row)) for row in rows],
    }
    if spec.rule.grouped:
        answer["group_size"] = spec.group
    return {**answer, "ops": timeline.rows()} if with_ops else answer
