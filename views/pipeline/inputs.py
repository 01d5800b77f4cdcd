"""The inputs of the Pipeline view, checked: a schedule, its sizes, its times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from groups.budget import spend
from groups.layout import Layout
from groups.mesh import whole_number
from training.pipeline import SCHEDULES, Durations, Times
from training.pipeline.schedules import DEFAULT_VIRTUAL
from training.pipeline.simulate import LONGEST, check_duration
from training.pipeline.spec import ScheduleSpec, checked

from ..base.state import State, is_empty, parse_number, pinned_group
from ..base.trained import batch_of

MOST_RANKS = 1_024
"""Ranks of the longest pipeline that is drawn."""

UNITS, TRIED = 2, 4
"""Units of work (groups.budget) of an op that is simulated, drawn and packed; of one tried."""


def follows_layers(state: State) -> bool:
    return state.by_layers in (True, "1")


@dataclass(frozen=True)
class Clock:
    """Times of a whole rank, in the unit that the reader has in mind.

    w_share: the part of an activation that is held from I to W.
    """

    times: Times
    backward: float
    send: float
    optimizer: float
    w_share: float

    def durations(self, share: float, weights: tuple[float, ...] | None) -> Durations:
        """Of one op of each stage: a stage has ``share`` of a rank, or its weight times that."""
        times = self.times
        whole = (times.forward, self.backward, times.for_input, times.for_weights)

        def of_stages(time: float) -> Any:
            if weights is None:
                return time * share
            return tuple(time * share * weight for weight in weights)

        overlapped = None if times.overlapped is None else of_stages(times.overlapped)
        return Durations(*map(of_stages, whole), overlapped, self.send)


def schedule_of(name: Any, layout: Layout, state: State) -> ScheduleSpec:
    p = layout.every["pp"].size
    m = batch_of(layout, state).micro_batches
    rule = SCHEDULES.get(name) if isinstance(name, str) else None
    v = group = None
    if rule is not None and rule.v is None:
        v = DEFAULT_VIRTUAL if is_empty(state.vpp) else parse_number(state.vpp)
    if rule is not None and rule.grouped and not is_empty(state.group_size):
        group = parse_number(state.group_size)
    return checked(name, p, m, v, group)


def spend_on(schedules: Sequence[ScheduleSpec]) -> None:
    """Count the work of schedules that are to be run and drawn.

    Errors: LayoutError with the most micro-batches with which all of them cost less.
    """

    def fewer(left: int) -> list[dict[str, int]]:
        most = max((spec.m for spec in schedules), default=0) * left // units
        sizes = (m for m in range(most, 0, -1) if all(replace(o, m=m).works for o in schedules))
        return [{"m": m} for m in islice(sizes, 1)]

    units = sum(UNITS * spec.num_run + TRIED * spec.num_tried for spec in schedules)
    spend(units, "ops", control="m", alternatives=fewer)


def clock_of(state: State) -> Clock:
    def time(name: str, otherwise: float, most: float = LONGEST) -> float:
        value = getattr(state, name)
        return otherwise if is_empty(value) else check_duration(parse_number(value), name, most)

    forward, for_input, for_weights = (time(name, 1.0) for name in ("t_f", "t_i", "t_w"))
    return Clock(
        Times(
            forward, for_input, for_weights, None if is_empty(state.t_pair) else time("t_pair", 0.0)
        ),
        backward=time("t_b", for_input + for_weights),
        send=time("t_send", 0.0),
        optimizer=time("t_optimizer", 0.0),
        w_share=time("w_share", 1.0, most=1.0),
    )


def message_bytes(state: State) -> float | None:
    """Bytes of one message (1 MB = 1e6 bytes); None if it is not stated."""
    if is_empty(state.message):
        return None
    return 1e6 * check_duration(parse_number(state.message), "message")


def group_of(layout: Layout, state: State) -> tuple[int, tuple[int, ...]]:
    """The pipeline group to show, its number and its ranks: as asked, or the pinned rank's."""
    every = layout.every["pp"]
    is_pinned = is_empty(state.pipe_group)
    number = pinned_group(every, state.rank) if is_pinned else parse_number(state.pipe_group)
    index = whole_number(number, "pipe_group", minimum=0, maximum=every.num_groups - 1)
    return index, tuple(int(rank) for rank in every.groups()[index])
