"""The step of a job in time: its pipeline, gradients and optimizer, and where the film of it is."""

from __future__ import annotations

from contextlib import suppress

from groups import LayoutError
from training.estimate import Estimate
from training.pipeline import Timeline

from ...context import Context
from ...trained import schedule_name
from .inputs import clock_of, follows_layers, schedule_of, spend_on, stages_of
from .timed import timed, timed_schedule

AFTER = {"dp": ("dp",), "optimizer": ("optimizer", "offload")}
"""What follows the pipeline, with the parts of a step (training.estimate) that it consists of."""

LEAST_TAIL = {"dp": 0.12, "optimizer": 0.07}
"""Shares of the film that what follows the pipeline has at least, or it would not be seen."""

LARGEST_TAIL = 0.3

MOMENTS = 10_000
"""The parts of a film, in which a moment is said."""


def timeline_of(context: Context) -> Timeline:
    """The timeline of the job's pipeline; a job without stages is a single rank.

    Errors: LayoutError for an invalid schedule, batch or layers.
    """
    state = context.known
    spec = schedule_of(schedule_name(state), context.layout, state)
    spend_on([spec])
    stages = stages_of(spec, state)
    held = stages if follows_layers(state) else None
    return timed(timed_schedule(spec, held, clock_of(state), state))[0]


def step_of(context: Context) -> Estimate:
    """The estimate of the job's step, for `Context.once`. Errors: as of `Trained.estimate`."""
    return context.trained.estimate(context.layout)


def seconds_of(context: Context) -> dict[str, float]:
    """Seconds of the pipeline, and of what follows it. Errors: as of `Trained.estimate`."""
    estimate = context.once(step_of)
    after = {name: sum(estimate.parts[part] for part in parts) for name, parts in AFTER.items()}
    return {"pipeline": estimate.seconds - sum(after.values()), **after}


def known_seconds(context: Context) -> dict[str, float | None]:
    """The same, None where they are not known: ops need no model, their seconds do."""
    with suppress(LayoutError):
        return {**seconds_of(context)}
    return dict.fromkeys(("pipeline", *AFTER))


def ends_of(context: Context) -> dict[str, float]:
    """Where the pipeline, the gradients and the optimizer end in the film, from 0 to 1: each long
    enough to be seen."""
    seconds, layout = known_seconds(context), context.layout
    averages = any(
        one.size > 1 for name, one in layout.every.items() if name in ("dp", "dp-cp", "edp")
    )
    whole = sum(filter(None, seconds.values()))

    def share(name: str) -> float:
        if name == "dp" and not averages:
            return 0.0
        part = (seconds[name] or 0.0) / whole if whole else 0.0
        return min(max(part, LEAST_TAIL[name]), LARGEST_TAIL)

    dp, optimizer = share("dp"), share("optimizer")
    return {"pipeline": 1.0 - dp - optimizer, "dp": 1.0 - optimizer, "optimizer": 1.0}
