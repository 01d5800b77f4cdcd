"""Figures of a timeline: idle time, bubbles, activations held, messages.

Three bubbles go by the same name, so each carries its denominator:

    of ideal    idle time / busy time                   Megatron: (p - 1) / m for 1F1B
    of total    idle time / (busy + idle time)          GPipe: (p - 1) / (m + p - 1)
    of span     the same of the rank that is at work    zero bubble: 0 for ZB-H2, where each
                longest, from its own first op to       optimizer starts when its rank has ended
                its own last

An activation counts from the start of its forward to the end of its backward. Where the backward is
split, part of it is free after I and the rest after W, so there are two counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from groups.kept import kept

from .plan import MOST_OPS, B, F, I, PipelinePlan, W
from .schedules import SCHEDULES, Times
from .simulate import Timeline, simulate
from .spec import SETTLED, ScheduleSpec, checked, plan_of


@dataclass(frozen=True, eq=False)
class Figures:
    """Key figures of a timeline; arrays have one entry for each pipeline rank.

    busy, idle, span: time; span is from the rank's first op to its last. tail: time between the
    rank's last op and the last op of all ranks. peak_input, peak: the most micro-batch chunks held,
    until I or B, and until W or B. activation_sends, gradient_sends: messages to another rank.
    """

    makespan: float
    busy: np.ndarray
    idle: np.ndarray
    span: np.ndarray
    tail: np.ndarray
    peak_input: np.ndarray
    peak: np.ndarray
    activation_sends: np.ndarray
    gradient_sends: np.ndarray

    @property
    def bubble_of_ideal(self) -> float:
        """Idle time of all ranks relative to their busy time; 0 without busy time."""
        return _ratio(self.idle.sum(), self.busy.sum())

    @property
    def bubble_of_total(self) -> float:
        """Idle time of all ranks relative to the whole step of all ranks."""
        return _ratio(self.idle.sum(), self.makespan * len(self.idle))

    @property
    def bubble_of_span(self) -> float:
        """Idle time of the rank with the longest span, relative to that span: the bubble rate of
        arXiv:2401.10241."""
        longest = self.span.argmax()
        return _ratio(self.span_bubble[longest], self.span[longest])

    @property
    def span_bubble(self) -> np.ndarray:
        """Idle time between each rank's first and last op: the bubble of "zero bubble"."""
        return self.span - self.busy


def figures_of(timeline: Timeline) -> Figures:
    """All figures of a timeline.

    >>> from training.pipeline import plan_of, simulate
    >>> figures = figures_of(simulate(plan_of("1f1b", p=4, m=8)))
    >>> figures.bubble_of_ideal, round(figures.bubble_of_total, 4), figures.peak.tolist()
    (0.375, 0.2727, [4, 3, 2, 1])
    """
    plan = timeline.plan
    firsts, lasts = plan.starts[:-1], plan.starts[1:] - 1
    busy = np.add.reduceat(timeline.end - timeline.start, firsts)
    activations, gradients = sends_of(plan)
    return Figures(
        makespan=timeline.makespan,
        busy=busy,
        idle=timeline.makespan - busy,
        span=timeline.end[lasts] - timeline.start[firsts],
        tail=timeline.makespan - timeline.end[lasts],
        peak_input=peaks_of(plan, (B, I)),
        peak=peaks_of(plan, (B, W)),
        activation_sends=activations,
        gradient_sends=gradients,
    )


def held_of(plan: PipelinePlan, until: tuple[int, int]) -> np.ndarray:
    """The number of micro-batch chunks that a rank holds during each place: int64, shape (places,).

    until: the kinds of op whose end releases a chunk.
    """
    taken, let_go = np.zeros((2, 4), dtype=np.int64)
    taken[F], let_go[[*until]] = 1, 1
    change, gone = (taken - let_go)[plan.first & 3], let_go[plan.first & 3]
    if len(plan.paired):
        second = plan.second[plan.paired] & 3
        change[plan.paired] += (taken - let_go)[second]
        gone[plan.paired] += let_go[second]
    # Each rank releases all that it took, so the sums before it are zero.
    return np.cumsum(change) + gone


def peaks_of(plan: PipelinePlan, until: tuple[int, int]) -> np.ndarray:
    """The most chunks that each rank holds at the same time: int64, shape (p,)."""
    return np.maximum.reduceat(held_of(plan, until), plan.starts[:-1])


def sends_of(plan: PipelinePlan) -> tuple[np.ndarray, np.ndarray]:
    """Messages that each rank sends in one step, of activations and of gradients: shape (p,) each.

    >>> from training.pipeline import plan_of
    >>> [sent.tolist() for sent in sends_of(plan_of("1f1b", p=4, m=8))]
    [[8, 8, 8, 0], [0, 8, 8, 8]]
    """
    rank = plan.rank_of_place[plan.where.reshape(plan.stages, plan.m, 4)[..., F]]
    before, behind = rank[:-1], rank[1:]
    crosses = before != behind
    return (
        np.bincount(before[crosses], minlength=plan.p),
        np.bincount(behind[crosses], minlength=plan.p),
    )


def bubble(name: str, p: int, m: int, v: int | None = None) -> float:
    """Idle time of a step as a fraction of its ideal time, with F = 1, B = 2, I = W = 1.

    >>> bubble("1f1b", p=4, m=8), bubble("interleaved", p=4, m=8, v=2), bubble("gpipe", p=1, m=1)
    (0.375, 0.1875, 0.0)

    Errors: LayoutError for sizes that the schedule does not take.
    """
    fewer = settled(checked(name, p, m, v))
    figures = figures_of(simulate(plan_of(name, p, fewer, v)))
    return figures.bubble_of_ideal * fewer / m


def settled(spec: ScheduleSpec) -> int:
    """A number of micro-batches, at most m, at which the ranks are idle as long as at m."""
    fewer = SETTLED * spec.p + spec.m % spec.p
    is_even = not (spec.rule.rounds and spec.m % spec.p)
    return fewer if is_even and spec.m > fewer + spec.p else spec.m


# -- what is published, or else counted ----------------------------------------------------------


@lru_cache(maxsize=256)
def idle_time(name: str, p: int, v: int) -> float:
    """Idle time of a rank in a step with enough micro-batches, for F = I = W = 1."""
    rule = SCHEDULES[name]
    if rule.closed:
        return rule.closed.idle(p, v, Times())
    plan = plan_of(name, p, max(2, rule.least_m) * p, rule.v or v)
    return float(figures_of(simulate(plan)).idle.mean() * plan.share)


def peaks(spec: ScheduleSpec) -> tuple[float, ...]:
    """The most micro-batches that each rank holds until W, in units of a rank's whole part of the
    model."""
    form = spec.rule.closed
    is_known = form is not None and form.has_peaks(spec.shape)
    return form.peaks(spec.shape) if form and is_known else counted(spec)[0]


def micro_batches_in_flight(spec: ScheduleSpec) -> list[float]:
    """The most micro-batches whose activations each of p ranks keeps, for all its layers.

    Computed from closed forms. For split backward passes they are upper bounds: part of an
    activation is freed after the first half.

    >>> micro_batches_in_flight(ScheduleSpec("1f1b", p=4, m=8))
    [4.0, 3.0, 2.0, 1.0]
    >>> micro_batches_in_flight(ScheduleSpec("interleaved", p=2, m=8, v=2))
    [2.5, 1.5]

    Errors: LayoutError for sizes that the schedule does not take.
    """
    spec.require(drawn=False)
    # In DualPipe a micro-batch runs on only one of a rank's two stages.
    stages = 2 if spec.rule.placement == "both ways" else 1
    return [peak / stages for peak in peaks(spec)]


def outputs_in_flight(spec: ScheduleSpec) -> int:
    """The most micro-batches whose logits the last stage keeps."""
    form = spec.rule.closed
    if form:
        return spec.m if form.keeps_outputs else 1
    return counted(spec)[1]


def embedded_in_flight(spec: ScheduleSpec) -> int:
    """The most micro-batches whose embedding's dropout mask the first stage keeps: p of them, or as
    many as an order holds that holds fewer.

    >>> [embedded_in_flight(ScheduleSpec(name, p=4, m=8)) for name in ("1f1b", "v-min")]
    [4, 3]
    """
    least = min(spec.p, spec.m)
    return least if spec.rule.closed else min(least, counted(spec)[2])


@kept
def counted(spec: ScheduleSpec) -> tuple[tuple[float, ...], int, int]:
    """`peaks`, `outputs_in_flight` and the most that the first stage holds, counted from the order
    itself.

    With each p more micro-batches the peak of a long step stays equal or grows by the same number,
    so two short steps determine it.

    >>> counted(ScheduleSpec("gpipe", p=2, m=4096))
    ((4096.0, 4096.0), 4096, 4096)
    """
    fewer = settled(spec)
    sizes = (fewer,) if fewer == spec.m else (fewer, fewer + spec.p)
    plans = []
    for size in sizes:
        shorter = replace(spec, m=size)
        shorter.require_drawn()
        plans.append(shorter.plan())
    held = [
        np.append(peaks_of(plan, (B, W)) * plan.share, (_kept(plan, -1, (B, I)), _kept(plan, 0)))
        for plan in plans
    ]
    *most, last, first = held[0] + (held[-1] - held[0]) * ((spec.m - fewer) / spec.p)
    return tuple(map(float, most)), round(last), round(first)


def is_known(name: str, p: int, v: int) -> bool:
    """Whether there is a closed form, or a step short enough to be counted."""
    rule = SCHEDULES[name]
    return rule.closed is not None or ScheduleSpec(name, p, 1, rule.v or v).num_settled <= MOST_OPS


def is_taken(spec: ScheduleSpec) -> bool:
    """Whether `micro_batches_in_flight` has an answer; faster than calling it."""
    longest = replace(spec, m=min(spec.m, settled(spec) + spec.p))
    return spec.is_taken and (spec.rule.closed is not None or longest.num_ops <= MOST_OPS)


def _kept(plan: PipelinePlan, stage: int, until: tuple[int, int] = (B, W)) -> int:
    """The most micro-batches between their forward and their backward in a stage."""
    where = plan.where.reshape(plan.stages, plan.m, 4)[stage]
    back = np.sort(np.maximum(where[:, until[0]], where[:, until[1]]))
    begun = np.arange(1, plan.m + 1)
    return int((begun - np.searchsorted(back, np.sort(where[:, F]))).max())


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0
