"""A training step, for the page's script to play on the picture of the job.

The ops are those of the Pipeline view, the seconds those of Step time: nothing is timed here.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from groups import LayoutError
from groups.budget import within
from request.answers.estimate.words import step_text
from request.answers.pipeline.inputs import counts_of, schedule_of, stages_of
from request.answers.pipeline.step import ends_of, known_seconds, timeline_of
from request.answers.traffic import rows_of
from request.context import Context
from request.link import from_values, parsed
from request.resolve import resolve
from request.trained import schedule_name
from request.units import bytes_text
from request.words import sentence
from training.pipeline import PipelinePlan, Timeline
from training.pipeline.plan import KINDS, F

from ..base.html import as_json
from .replicas import data_of, ops_of

PARTS = 600
"""The number of time slots of the pipeline, in each of which a rank does one thing; fewer for many
ranks."""

LETTERS = 64 * PARTS
"""The most slots of all ranks together."""

MOST_MOVES = 4_000
"""The most ops with which the way of each micro-batch is shown."""

PAIR = "P"
"""The letter of a rank that runs two ops whose kernels overlap."""

IDLE = " "

WHOLE = 10_000
"""The duration of the pipeline in the units of moves."""


@within()
def film(sent: object) -> str:
    """The film of a state sent by the page, as JSON; {"refused": sentence} if the state is not
    valid.

    busy      per pipeline rank a letter for each part of the time: F, B, I, W as ops are named
              (training.pipeline.plan), P two at once, a space where it waits
    moves     [micro-batch, 0 forward or 1 backward, rank before (-1: none), rank, made, begun,
              ended]: when what the op needs was made, when it begins, when it ends
    seconds   of the pipeline, of gradients, of the optimizer; null where they are not known
    ends      where these end, as shares of the step that can be seen
    step      the whole step in words; layers: that an op runs through, at most
    message   bytes of a message from stage to stage, in words
    shared    by kind, bytes that a GPU of each stage sends over it in a forward, and in a backward
    data      what data parallelism sends, in which ops (`replicas.data_of`)
    """
    state = from_values(parsed(sent))
    try:
        return as_json(film_of(Context(resolve(state), state)))
    except LayoutError as error:
        return as_json({"refused": sentence(error, state.language)})


def strip_of(context: Context) -> dict[str, object]:
    """What of the film stands below the picture before it plays: ``busy``, ``seconds``, ``ends``.

    Errors: LayoutError for an invalid schedule, batch or layers.
    """
    return {
        "busy": busy_texts(timeline_of(context)),
        "seconds": known_seconds(context),
        "ends": ends_of(context),
    }


def film_of(context: Context) -> dict[str, object]:
    """The film of a context. Errors: LayoutError for an invalid schedule, batch or layers."""
    layout, state = context.layout, context.known
    timeline = timeline_of(context)
    stages = stages_of(schedule_of(schedule_name(state), layout, state), state)
    step, sent = "", dict[str, object]()
    with suppress(LayoutError):
        step = step_text(context.trained.estimate(layout))
        sent = sent_in(context, timeline.plan)
    return {
        **strip_of(context),
        "moves": moves_of(timeline),
        "step": step,
        "layers": max(counts_of(stages, state), default=1) if stages else 1,
        **{"message": "", "shared": {}, "data": None, **sent},
    }


def sent_in(context: Context, plan: PipelinePlan) -> dict[str, object]:
    """The bytes of a message, of an op, and of data parallelism, in words: those of Traffic."""
    rows = rows_of(context.layout, context.trained)
    messages = [row.buffer for row in rows if row.kind == "pp"]
    by_kind = {
        kind: [
            [row.by_stage for row in rows if row.kind == kind and row.what == what]
            for what in ("forward", "backward")
        ]
        for kind in SHARED
    }
    ops = [ops_of(plan, letters) for letters in ("F", "BI")]
    return {
        "message": bytes_text(max(messages)) if messages else "",
        "shared": {
            kind: [
                [bytes_text(sum(stage) / max(1, n)) for n, stage in zip(runs, zip(*each))]
                for runs, each in zip(ops, ways)
            ]
            for kind, ways in by_kind.items()
            if any(ways)
        },
        "data": data_of(context, rows, plan),
    }


SHARED = ("tp", "cp", "ep")
"""The groups that a layer sends over while it computes, in the order that captions name them."""


def busy_texts(timeline: Timeline) -> list[str]:
    """What each rank does in each of the equal time slots: its op in the middle of the slot.

    >>> from training.pipeline import plan_of, simulate
    >>> first, last = busy_texts(simulate(plan_of("1f1b", p=2, m=1)))
    >>> [(kind, first.count(kind)) for kind in "F B"], last[99:101], last[-99:]  == " " * 99
    ([('F', 100), (' ', 300), ('B', 200)], ' F', True)
    """
    plan = timeline.plan
    parts = min(PARTS, max(1, LETTERS // plan.p))
    middles = (np.arange(parts) + 0.5) * timeline.makespan / parts
    letters = np.array([*KINDS, PAIR])
    letter = np.where(plan.second >= 0, PAIR, letters[plan.first & 3])
    texts = []
    for begin, end in zip(plan.starts[:-1], plan.starts[1:]):
        place = begin + np.searchsorted(timeline.start[begin:end], middles, side="right") - 1
        is_busy = (place >= begin) & (timeline.end[np.maximum(place, 0)] > middles)
        texts.append("".join(np.where(is_busy, letter[np.maximum(place, 0)], IDLE).tolist()))
    return texts


def moves_of(timeline: Timeline) -> list[list[int]]:
    """The way of each micro-batch from op to op; empty if there are more than MOST_MOVES.

    >>> from training.pipeline import plan_of, simulate
    >>> for move in moves_of(simulate(plan_of("1f1b", p=2, m=1))): print(move)
    [0, 0, -1, 0, 0, 0, 1667]
    [0, 1, 1, 0, 6667, 6667, 10000]
    [0, 0, 0, 1, 1667, 1667, 3333]
    [0, 1, 1, 1, 3333, 3333, 6667]
    """
    plan = timeline.plan
    ops, place = plan.ops
    if len(ops) > MOST_MOVES:
        return []
    kind, micro_batch, _ = plan.split(ops)
    needed, rank = plan.needed[ops], plan.rank_of_place
    before = np.where(needed >= 0, rank[needed], np.where(kind == F, -1, rank[place]))
    start, end = timeline.start[place], timeline.end[place]
    made = np.where(needed >= 0, timeline.end[needed], start)
    times = np.rint(np.array([made, start, end]) * (WHOLE / (timeline.makespan or 1.0)))
    rows = np.stack([micro_batch, kind != F, before, rank[place], *times.astype(int)], axis=1)
    is_way = kind != KINDS.index("W")  # which nothing is sent for
    return [[int(value) for value in row] for row in rows[is_way]]
