"""How many micro-batches of activations a rank keeps at its worst moment, by schedule.

The closed forms of the schedules (`training.pipeline.closed`): min(m, p - r) for 1F1B. Where the
backward is split they are upper bounds: part of an activation is free after its first half.
"""

from __future__ import annotations

from . import SCHEDULES as KNOWN
from . import closed_form
from .schedules import checked

SCHEDULES = tuple(name for name in KNOWN if closed_form(name, p=2, m=4, v=2))
"""Schedules whose peak is known in closed form."""


def micro_batches_in_flight(schedule: str, p: int, m: int, v: int = 1) -> list[float]:
    """For each of p ranks, micro-batches of all its layers; v chunks on a rank, m micro-batches.

    >>> micro_batches_in_flight("1f1b", p=4, m=8)
    [4.0, 3.0, 2.0, 1.0]
    >>> micro_batches_in_flight("interleaved", p=2, m=8, v=2)
    [2.5, 1.5]

    Errors: LayoutError for sizes that the schedule does not take.
    """
    is_asked = KNOWN[schedule].placement == "loop" or v > 1
    checked(schedule, p, m, v if is_asked else None)
    form = closed_form(schedule, p, m, v)
    # In DualPipe a micro-batch meets one of a rank's two stages only.
    stages = 2 if KNOWN[schedule].placement == "both ways" else 1
    return [peak / stages for peak in form.peaks] if form else []


def outputs_in_flight(schedule: str, m: int) -> int:
    """Micro-batches whose logits the last stage keeps: all of them if no backward comes between."""
    return m if schedule in ("gpipe", "bfs") else 1


def placement_of(schedule: str) -> str:
    """How the stages of a schedule lie on the ranks, as `Split` says it."""
    placement = KNOWN[schedule].placement
    return "loop" if placement == "line" else placement
