"""A schedule with the durations of its ops, and the timeline of one step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from groups.kept import kept
from training.pipeline import Durations, Figures, Timeline, figures_of, simulate
from training.pipeline.spec import ScheduleSpec

from ...state import State
from .inputs import (
    Clock,
    Stage,
    follows_layers,
    weights_of,
)


@dataclass(frozen=True)
class TimedSchedule:
    """A schedule to draw: its sizes, the durations of its ops, and the layers of its stages."""

    spec: ScheduleSpec
    durations: Durations
    stages: tuple[Stage, ...] | None

    @property
    def title(self) -> str:
        return self.spec.rule.title

    @property
    def share(self) -> float:
        """The share of a rank's layers that one stage has."""
        return timed(self)[0].plan.share


def timed_schedule(
    schedule: ScheduleSpec, stages: tuple[Stage, ...] | None, clock: Clock, state: State
) -> TimedSchedule:
    """A schedule with its durations, which may depend on the layers of each stage."""
    weights = None
    if stages is not None and follows_layers(state):
        weights = weights_of(stages, state)
    spec = replace(schedule, w_share=clock.w_share)
    return TimedSchedule(spec, clock.durations(1 / schedule.chunks, weights), stages)


@kept
def timed(schedule: TimedSchedule) -> tuple[Timeline, Figures]:
    timeline = simulate(schedule.spec.plan(schedule.durations), schedule.durations)
    return timeline, figures_of(timeline)


def amount(value: float) -> str:
    """A number in about four digits, without trailing zeros.

    >>> amount(33.0), amount(1630.5), amount(1 / 3), amount(12345678.0)
    ('33', '1,630.5', '0.3333', '12,345,678')
    """
    digits = 1 if abs(value) >= 1000 else 2 if abs(value) >= 100 else 3 if abs(value) >= 1 else 4
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """A share as tables have it, beside published ones.

    >>> percent(0.375), percent(3 / 11), percent(0.0)
    ('37.5%', '27.27%', '0%')
    """
    return f"{amount(round(100 * share, 2))}%"


def about_percent(share: float) -> str:
    """A share as sentences have it, in two digits at most.

    >>> about_percent(0.375), about_percent(3 / 11), about_percent(0.0374), about_percent(0.0)
    ('38%', '27%', '3.7%', '0%')
    """
    parts = 100 * share
    return f"{amount(round(parts, 0 if abs(parts) >= 9.95 else 1))}%"
