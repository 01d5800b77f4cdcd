"""The inputs of the Pipeline view, checked: a schedule, its sizes, its times, its layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import cast

from groups import LayoutError
from groups.budget import spend
from groups.layout import Layout
from groups.mesh import whole_number
from groups.stages.layout_strings import parse_layout
from training.pipeline import SCHEDULES, Durations, Times
from training.pipeline.schedules import DEFAULT_VIRTUAL
from training.pipeline.simulate import Duration
from training.pipeline.spec import ScheduleSpec, checked
from training.split import Dealing, layers_of_stages, stages_of_ranks

from ...inputs import TimesInputs
from ...model import typed_layers, typed_layout
from ...state import State, is_empty, pinned_group, require_choice
from ...trained import (
    batch_of,
    count_of,
    dealing_of,
    group_size,
    schedule_name,
    variant_of_job,
    virtual_stages,
)
from ...units import ranges_text

MOST_RANKS = 1_024
"""The longest pipeline that is drawn, in ranks."""

UNITS, TRIED = 2, 4
"""Units of work (groups.budget) per op that is simulated, drawn and packed; and per op that is
tried."""


def follows_layers(state: State) -> bool:
    return bool(state.value("by_layers"))


@dataclass(frozen=True)
class Clock:
    """Durations of ops of a whole rank, in the user's unit.

    w_share: the part of an activation that is held from I to W.
    """

    times: Times
    send: float
    optimizer: float
    w_share: float

    def durations(self, share: float, weights: tuple[float, ...] | None) -> Durations:
        """Durations of an op of each stage: ``share`` of a rank's, or its weight times that."""
        times = self.times

        def of_stages(time: float) -> Duration:
            if weights is None:
                return time * share
            return tuple(time * share * weight for weight in weights)

        overlapped = None if times.overlapped is None else of_stages(times.overlapped)
        return Durations(
            *(of_stages(times.forward), of_stages(times.backward)),
            *(of_stages(times.for_input), of_stages(times.for_weights)),
            overlapped=overlapped,
            send=self.send,
        )


def schedule_of(name: str, layout: Layout, state: State) -> ScheduleSpec:
    """The job's schedule, or another one to compare with, which has its own number of chunks if
    that is fixed.

    Errors: LayoutError for sizes that the schedule does not take, in each view alike.
    """
    m = batch_of(layout, state).micro_batches
    rule = SCHEDULES[require_choice("schedule", name, SCHEDULES)]
    v = count_of(state, "vpp", DEFAULT_VIRTUAL)  # one that is none is told of any schedule
    if rule.v is not None:
        v = virtual_stages(state) if name == schedule_name(state) else rule.v
    variant = variant_of_job(layout, state) if name == schedule_name(state) else ""
    sizes = (layout.every["pp"].size, m, v, group_size(state, name))
    return checked(name, *sizes, variant=variant)


def work_of(schedule: ScheduleSpec) -> int:
    """Units of work of simulating a schedule and of finding its order."""
    return UNITS * schedule.num_run + TRIED * schedule.num_tried


def spend_on(schedules: Sequence[ScheduleSpec]) -> None:
    """Counts the work of schedules that are about to be simulated and drawn.

    Errors: LayoutError with the most micro-batches with which all of them cost less.
    """

    def fewer(left: int) -> list[dict[str, int]]:
        most = max((spec.m for spec in schedules), default=0) * left // units
        sizes = (m for m in range(most, 0, -1) if all(replace(o, m=m).works for o in schedules))
        return [{"m": m} for m in islice(sizes, 1)]

    units = sum(map(work_of, schedules))
    spend(units, "ops", control="m", alternatives=fewer)


def clock_of(state: State) -> Clock:
    times = state.parsed(TimesInputs)
    return Clock(
        Times(times.t_f, times.t_i, times.t_w, times.t_pair, times.t_b),
        times.t_send,
        times.t_optimizer,
        times.w_share,
    )


def message_bytes(state: State) -> float | None:
    """Bytes of one message (1 MB = 1e6 bytes); None if unset."""
    megabytes: float | None = state.value("message")
    return None if megabytes is None else 1e6 * megabytes


def group_of(
    layout: Layout, state: State, *, is_pinned: bool = False
) -> tuple[int, tuple[int, ...]]:
    """The pipeline group to show: its number and its ranks, as selected or that of the pinned
    rank."""
    every = layout.every["pp"]
    chosen = state.values["pipe_group"]
    is_pinned = is_pinned or chosen is None
    number = pinned_group(every, state.values["rank"]) if is_pinned else chosen
    index = whole_number(number, "pipe_group", minimum=0, maximum=every.num_groups - 1)
    return index, tuple(map(int, every.groups()[index]))


# -- layers ----------------------------------------------------------------------------------------

LETTER = {"embedding": "E", "mtp": "m", "loss": "L"}


@dataclass(frozen=True)
class Stage:
    """The content of a stage: decoder layers, and letters of the rest: E, m, L."""

    layers: tuple[int, ...]
    others: str

    @property
    def text(self) -> str:
        """The content as in ``E 0-3``; empty if there is none.

        >>> Stage((0, 1, 2), "E").text, Stage((), "").text
        ('E 0–2', '')
        """
        before, after = self.others.replace("L", "").replace("m", ""), self.others.lstrip("E")
        return " ".join(part for part in (before, ranges_text(self.layers), after) if part)


def stages_by_rank(pp: int, state: State) -> list[list[Stage]]:
    """The stages of each rank, chunk by chunk, for any number of micro-batches; empty if the number
    of layers is unknown.

    Errors: those of `stages_of`, and for chunks that the schedule does not have.
    """
    schedule = ScheduleSpec(schedule_name(state), pp, 1, virtual_stages(state))
    schedule.require_chunks()
    stages = stages_of(schedule, state)
    return [[stages[number] for number in row] for row in stage_numbers(schedule)] if stages else []


def has_virtual_stages(schedule: ScheduleSpec) -> bool:
    """Whether ranks hold several chunks, as opposed to the copies of two directions."""
    return schedule.chunks > 1 and schedule.rule.placement != "both ways"


def stages_of(schedule: ScheduleSpec, state: State) -> tuple[Stage, ...] | None:
    """Every stage of the model in order; None if the number of layers is unknown.

    Errors: LayoutError where Megatron would refuse, as training.split says.
    """
    layers = typed_layers(state)
    if layers is None:
        return None
    sizes = (schedule.p, schedule.chunks, schedule.rule.placement)
    dealing = Dealing(*sizes, **dealing_of(state))
    try:
        held = layers_of_stages(cast("int", layers), dealing)  # which checks it
    except LayoutError as error:
        is_typed = not is_empty(state.pipe_layout) and error.code != "layout-has-other-layers"
        raise error.renamed({"layers": "pipe_layout"} if is_typed else {}) from None
    others = [""] * len(held)
    if typed_layout(state):
        others = [_letters(names) for names in parse_layout(dealing.spread)]
    else:
        others[0] += "E"
        others[-1] += "L"
    return tuple(Stage(tuple(numbers), letters) for numbers, letters in zip(held, others))


def weights_of(stages: tuple[Stage, ...], state: State) -> tuple[float, ...] | None:
    """The duration of each stage relative to the mean; None if no stage holds a layer.

    A layer counts 1, multi-token prediction too, and the embedding and the loss if they are counted
    as layers.
    """
    counts = counts_of(stages, state)
    mean = sum(counts) / len(counts)
    return tuple(count / mean for count in counts) if mean else None


def counts_of(stages: tuple[Stage, ...], state: State) -> list[int]:
    """The number of layers that each stage counts as."""
    account = bool(state.value("account"))
    return [
        len(stage.layers)
        + stage.others.count("m")
        + account * (stage.others.count("E") + stage.others.count("L"))
        for stage in stages
    ]


def stage_numbers(schedule: ScheduleSpec) -> list[list[int]]:
    """The stages of each rank, chunk by chunk."""
    return stages_of_ranks(schedule.p, schedule.chunks, schedule.rule.placement)


def _letters(names: list[str]) -> str:
    return "".join(LETTER[name] for name in names if name in LETTER)
