"""The times of every op of a plan: one simulator for all schedules.

A rank runs its ops in their order, each as soon as the one before it has ended and its input is
there:

    an op     waits for one other, as WAITS has it
    a pair    waits for what both of its ops wait for

An input from another rank is there ``send`` after it was made. Own ops stand earlier in the order,
so they are no wait. Times are in any one unit; the first op starts at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from groups.bundles import bundle
from groups.errors import quoted

from ..errors import is_amount, refusal
from .plan import PipelinePlan

Duration = float | Sequence[float]
"""One number for all stages, or one for each stage."""

ABREAST = 12
"""The number of ranks from which on it is faster to run all side by side than one after the
other."""

Waits = Sequence[tuple[np.ndarray, np.ndarray]]
"""For each place, twice: the place that it waits for (-1: none), and the delay after that one's
end."""

TURNS = 16
"""Turns of all ranks between two checks for progress."""

LONGEST = 1e9
"""The longest duration of one op: beyond it, sums lose digits that are shown."""


@dataclass(frozen=True)
class Durations:
    """The duration of an op of one stage, and of a message; a scalar applies to all stages.

    overlapped: duration of a pair; None: the sum of both ops. send: duration of a message from one
    rank to another, which keeps neither of them busy.
    """

    forward: Duration = 1.0
    backward: Duration = 2.0
    for_input: Duration = 1.0
    for_weights: Duration = 1.0
    overlapped: Duration | None = None
    send: float = 0.0

    def table(self, stages: int) -> np.ndarray:
        """Durations by kind and stage, those of pairs last: float64, shape (5, stages).

        >>> Durations().table(2).tolist()[:2]
        [[1.0, 1.0], [2.0, 2.0]]

        Errors: LayoutError for a value that is no number from 0 up, or not one for each stage.
        """
        rows = [self._row(field.name, stages) for field in fields(self)[:4]]
        has_pairs = self.overlapped is not None
        rows.append(self._row("overlapped", stages) if has_pairs else [np.nan] * stages)
        return np.array(rows, dtype=float)

    def _row(self, name: str, stages: int) -> list[float]:
        value = getattr(self, name)
        listed = isinstance(value, (list, tuple, np.ndarray))
        numbers = list(value) if listed else [value]
        for number in numbers:
            check_duration(number, name)
        if listed and len(numbers) != stages:
            raise refusal("not-one-per-stage", name, count=len(numbers), stages=stages)
        return numbers if listed else numbers * stages


def check_duration(value: object, name: str, most: float = LONGEST) -> float:
    """The value as a float, if it is a number from 0 to ``most``.

    Errors: LayoutError about the control ``name``.
    """
    if not is_amount(value, most):
        raise refusal("bad-duration", name, value=quoted(value), most=int(most))
    return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Timeline:
    """A plan with the times of every place: float64 arrays in the order of ``plan.flat``."""

    plan: PipelinePlan
    start: np.ndarray
    end: np.ndarray

    @property
    def makespan(self) -> float:
        """The time from the start of the first op to the end of the last."""
        return float(self.end.max())

    def __str__(self) -> str:
        return f"{self.plan.p} ranks, {len(self.start):,} ops, {self.makespan:g} units of time"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The notebook representation: the ops of every rank over time (`groups.bundles`)."""
        return bundle(self, str(self))

    def rows(self) -> list[list[tuple[str, float, float]]]:
        """(op, start, end) of every place, by rank.

        >>> from training.pipeline import plan_of
        >>> simulate(plan_of("gpipe", p=1, m=1)).rows()
        [[('0F0', 0.0, 1.0), ('0B0', 1.0, 3.0)]]
        """
        return [
            [
                (self.plan.text(place), start, end)
                for place, start, end in zip(
                    self.plan.flat[a:b].tolist(), self.start[a:b].tolist(), self.end[a:b].tolist()
                )
            ]
            for a, b in zip(self.plan.starts[:-1].tolist(), self.plan.starts[1:].tolist())
        ]


def simulate(plan: PipelinePlan, durations: Durations | None = None) -> Timeline:
    """The start and end of every op.

    >>> from training.pipeline import plan_of
    >>> simulate(plan_of("1f1b", p=4, m=8)).makespan
    33.0

    Errors: LayoutError for a bad duration, and for an order in which ranks wait for each
    other for ever.
    Source: rules and published rates that they reproduce, 2401.10241 Table 5 with Table 9.
    """
    durations = durations or Durations()
    cost = _costs(plan, durations.table(plan.stages))
    send = check_duration(durations.send, "send")
    rank = plan.rank_of_place
    waits = []
    for ops in (plan.first, plan.second):
        place = np.where(ops < 0, -1, plan.needed[ops])
        waits.append((place, send * (rank[place] != rank) if send else np.zeros(len(place))))
    run = _run_abreast if plan.p >= ABREAST else _run
    return Timeline(plan, *run(plan.starts, cost, waits))


def _costs(plan: PipelinePlan, table: np.ndarray) -> np.ndarray:
    """The duration of each place: float64, shape (places,)."""
    of_op = np.repeat(table[:4].T, plan.m, axis=0).ravel()
    cost = of_op[plan.first]
    paired = plan.paired
    if len(paired):
        both = cost[paired] + of_op[plan.second[paired]]
        overlapped = table[4, plan.first[paired] // (4 * plan.m)]
        cost[paired] = np.where(np.isnan(overlapped), both, overlapped)
    return cost


def _run_abreast(
    starts: np.ndarray, cost: np.ndarray, inputs: Waits
) -> tuple[np.ndarray, np.ndarray]:
    """`_run`, vectorised over ranks: in each turn every rank runs one place, if it can."""
    p, places = len(starts) - 1, len(cost)
    # After each rank's places comes one that never runs, and at the end one that ran at once.
    slots = np.arange(places) + np.repeat(np.arange(p), np.diff(starts))
    at, stop, at_once = starts[:-1] + np.arange(p), starts[1:] + np.arange(p), places + p
    end = np.full(at_once + 1, np.nan)
    end[at_once] = -np.inf
    costs = np.full(at_once, np.nan)
    costs[slots] = cost
    waits = []
    for place, after in inputs:
        if (place >= 0).any():
            needed, later = np.full(at_once, at_once), np.zeros(at_once)
            needed[slots] = np.where(place < 0, at_once, slots[place])
            later[slots] = after
            waits.append((needed, later if after.any() else None))
    clock = np.zeros(p)
    moved = True
    while moved:
        before = at.copy()
        for _ in range(TURNS):
            now = clock
            for needed, lag in waits:
                ready = end[needed[at]]
                now = np.maximum(now, ready if lag is None else ready + lag[at])
            # Not a number for places that wait for a place that has not run.
            end[at] = now = now + costs[at]
            np.fmax(clock, now, out=clock)
            np.add(at, 1, out=at, where=now == now)
        moved = not np.array_equal(at, before)
    if not np.array_equal(at, stop):
        raise refusal("pipeline-deadlock", "schedule")
    start = np.fmax(end[slots - 1], 0.0)
    for needed, lag in waits:
        ready = end[needed[slots]]
        start = np.maximum(start, ready if lag is None else ready + lag[slots])
    return start, end[slots]


def _run(starts: np.ndarray, costs: np.ndarray, waits: Waits) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of each place: every rank runs until it must wait for another rank.

    A loop over plain lists, which is faster than arrays for few ranks.
    """
    bounds, cost = starts.tolist(), costs.tolist()
    places = len(cost)
    start, end = [0.0] * places, [math.nan] * places
    (first, first_after), (second, second_after) = waits
    inputs, afters, paired = first.tolist(), first_after.tolist(), np.flatnonzero(second >= 0)
    others = dict(zip(paired.tolist(), zip(second[paired].tolist(), second_after[paired].tolist())))
    at, clock = bounds[:-1], [0.0] * (len(bounds) - 1)
    asleep: dict[int, list[int]] = {}  # ranks that wait for a place
    awake = list(range(len(at)))[::-1]
    ran = 0
    while awake:
        rank = awake.pop()
        place, now, stop = at[rank], clock[rank], bounds[rank + 1]
        while place < stop:
            needed = inputs[place]
            if needed >= 0:
                ready = end[needed] + afters[place]
                if ready != ready:  # not a number: it has not run
                    asleep.setdefault(needed, []).append(rank)
                    break
                if ready > now:
                    now = ready
            if place in others:
                needed, after = others[place]
                ready = end[needed] + after
                if ready != ready:
                    asleep.setdefault(needed, []).append(rank)
                    break
                if ready > now:
                    now = ready
            start[place] = now
            end[place] = now = now + cost[place]
            if place in asleep:
                awake += asleep.pop(place)
            place += 1
        ran += place - at[rank]
        at[rank], clock[rank] = place, now
    if ran < places:
        raise refusal("pipeline-deadlock", "schedule")
    return np.array(start), np.array(end)
