"""When every op of a plan runs: one simulator for all schedules.

A rank runs its ops in their order, each as soon as the one before it has ended and its input is
there:

    F of stage s        waits for F of stage s - 1
    B or I of stage s   waits for B or I of stage s + 1 (and for its own F)
    W of stage s        waits for its own I
    a pair              waits for what both of its ops wait for

An input from another rank is there ``send`` after it was made. Own ops stand earlier in the order,
so they are no wait. Times are in any one unit; the first op starts at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Real

import numpy as np

from groups.errors import LayoutError, quoted

from .plan import B, F, I, Plan

Duration = float | Sequence[float]
"""One number for all stages, or one for each stage."""

ABREAST = 12
"""Ranks from which on it is quicker to run all side by side than one after the other."""

LONGEST = 1e9
"""The longest duration that one op may have: beyond it, sums lose digits that are shown."""


@dataclass(frozen=True)
class Durations:
    """How long one op of one stage takes, and a message; a scalar is the same for all stages.

    overlapped: of a pair; None: as long as both ops one after the other. send: of a message from
    one rank to another, which keeps neither of them busy.
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

        Errors: LayoutError for what is no number from 0 up, or not one for each stage.
        """
        rows = [self._row(one.name, stages) for one in fields(self)[:4]]
        pair = self._row("overlapped", stages) if self.overlapped is not None else None
        return np.array([*rows, np.full(stages, np.nan) if pair is None else pair])

    def _row(self, name: str, stages: int) -> np.ndarray:
        value = getattr(self, name)
        listed = isinstance(value, (list, tuple, np.ndarray))
        numbers = list(value) if listed else [value]
        for number in numbers:
            check_duration(number, name)
        if listed and len(numbers) != stages:
            raise LayoutError(
                "not-one-per-stage",
                f"{name} has {len(numbers)} numbers for {stages} stages",
                control=name,
                facts={"control": name, "count": len(numbers), "stages": stages},
            )
        return np.broadcast_to(np.array(numbers, dtype=float), (stages,))


def check_duration(value: object, name: str, most: float = LONGEST) -> float:
    """The value as a float, if it is a number from 0 to ``most``.

    Errors: LayoutError about the control ``name``.
    """
    is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not 0 <= value <= most:  # type: ignore[operator]
        raise LayoutError(
            "bad-duration",
            f"{name} must be a number from 0 to {most:,.0f}, not {quoted(value)}",
            control=name,
            facts={"control": name, "value": quoted(value), "most": int(most)},
        )
    return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Timeline:
    """A plan with the time of every place: float64 arrays in the order of ``plan.flat``."""

    plan: Plan
    start: np.ndarray
    end: np.ndarray

    @property
    def makespan(self) -> float:
        """From the start of the first op of all to the end of the last."""
        return float(self.end.max())

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


def simulate(plan: Plan, durations: Durations | None = None) -> Timeline:
    """The start and end of every op.

    >>> from training.pipeline import plan_of
    >>> simulate(plan_of("1f1b", p=4, m=8)).makespan
    33.0

    Errors: LayoutError for a duration that is none, and for an order in which ranks wait for each
    other for ever.
    Source: rules and published rates that they reproduce, 2401.10241 Table 5 with Table 9.
    """
    durations = durations or Durations()
    cost = _costs(plan, durations.table(plan.stages))
    send = check_duration(durations.send, "send")
    inputs = [needed_by(plan, plan.first), needed_by(plan, plan.second)]
    rank = plan.rank_of_place
    # A wait of each place: for which place, and how long after its end.
    waits = [(place, np.where(rank[place] == rank, 0.0, send)) for place in inputs]
    run = _run_abreast if plan.p >= ABREAST else _run
    return Timeline(plan, *run(plan.starts, cost, *waits[0], *waits[1]))


def needed_by(plan: Plan, ops: np.ndarray) -> np.ndarray:
    """The place of the op of another stage that each of ``ops`` waits for; -1 if there is none."""
    kind, _, stage = plan.split(ops)
    where, step = plan.where, 4 * plan.m
    exists = ops >= 0
    ahead = exists & (kind == F) & (stage > 0)
    back = exists & ((kind == B) | (kind == I)) & (stage < plan.stages - 1)
    found = np.full(len(ops), -1, dtype=np.int64)
    found[ahead] = where[ops[ahead] - step]
    whole = ops[back] - kind[back] + step
    found[back] = np.maximum(where[whole + B], where[whole + I])
    return found


def _costs(plan: Plan, table: np.ndarray) -> np.ndarray:
    """How long each place takes: float64, shape (places,)."""
    kind, _, stage = plan.split(plan.first)
    cost = table[kind, stage]
    second = plan.second
    paired = second >= 0
    other, _, behind = plan.split(second[paired])
    both = cost[paired] + table[other, behind]
    overlapped = table[4, stage[paired]]
    cost[paired] = np.where(np.isnan(overlapped), both, overlapped)
    return cost


def _run_abreast(
    starts: np.ndarray,
    cost: np.ndarray,
    first: np.ndarray,
    first_after: np.ndarray,
    second: np.ndarray,
    second_after: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """As `_run`, all ranks side by side: in each turn every rank runs one place, if it can."""
    places = len(cost)
    # Behind the places: one that ran at once, for those that wait for nothing, and one that never
    # runs, for ranks that are through.
    never = places + 1
    at_once = np.r_[np.full(places, np.nan), -np.inf, np.nan]
    inputs = [np.r_[np.where(one < 0, places, one), never, never] for one in (first, second)]
    afters = [np.r_[one, 0.0, 0.0] for one in (first_after, second_after)]
    waits = [(one, after if after.any() else None) for one, after in zip(inputs, afters)]
    waits = waits if (second >= 0).any() else waits[:1]
    cost = np.r_[cost, 0.0, 0.0]
    start, end = np.zeros(places), at_once
    at, stop, clock = starts[:-1].copy(), starts[1:], np.zeros(len(starts) - 1)
    ran = 0
    while True:
        now = clock
        for needed, after in waits:
            ready = end[needed[at]]
            now = np.maximum(now, ready if after is None else ready + after[at])
        (able,) = np.nonzero(now == now)  # the others wait for what has not run: not a number
        if not len(able):
            break
        ran += len(able)
        now, place = now[able], at[able]
        start[place] = now
        end[place] = clock[able] = now + cost[place]
        place += 1
        at[able] = np.where(place < stop[able], place, never)
    if ran < places:
        raise _deadlock()
    return start, end[:places]


def _run(
    starts: np.ndarray,
    costs: np.ndarray,
    first: np.ndarray,
    first_after: np.ndarray,
    second: np.ndarray,
    second_after: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of each place: every rank runs on until it has to wait for another.

    A loop over plain lists: for the ops of few ranks it beats arrays.
    """
    bounds, cost = starts.tolist(), costs.tolist()
    places = len(cost)
    start, end = [0.0] * places, [math.nan] * places
    inputs, afters = first.tolist(), first_after.tolist()
    others = dict(
        zip(
            np.flatnonzero(second >= 0).tolist(),
            zip(second[second >= 0].tolist(), second_after[second >= 0].tolist()),
        )
    )
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
        raise _deadlock()
    return np.array(start), np.array(end)


def _deadlock() -> LayoutError:
    return LayoutError(
        "pipeline-deadlock",
        "ranks wait for each other for ever in this order",
        control="schedule",
    )
