"""How many micro-batches of activations a rank keeps at its worst moment, by schedule.

One is what one micro-batch leaves in all layers of the rank. With p ranks, rank r, m micro-batches
and v chunks on a rank (sources: arXiv:2104.04473 section 2.2, arXiv:2205.05198 section 4.2.3,
arXiv:2401.10241 section 2, arXiv:2412.19437 Table 2):

    gpipe, bfs    m
    1f1b          min(m, p - r)
    interleaved   (w + 1) / v, with w = min(2(p - r - 1) + (v - 1)p, m*v) forwards to warm up
    zb-h1, zb-v   min(m, p)
    zb-h2         min(m, 2p - 1)
    dualpipe      (p + 1) / 2      a micro-batch meets one of the rank's two stages
    dualpipev     (2p + 1) / 2

Where the backward is split (zb, dualpipe) that is an upper bound: part of an activation is free
after the first half of its backward.
"""

from __future__ import annotations

from training.pipeline.schedules import SCHEDULES as KNOWN
from training.pipeline.schedules import checked

SCHEDULES = (
    "1f1b",
    "interleaved",
    "gpipe",
    "bfs",
    "zb-h1",
    "zb-h2",
    "zb-v",
    "dualpipe",
    "dualpipev",
)


def micro_batches_in_flight(schedule: str, p: int, m: int, v: int = 1) -> list[float]:
    """For each rank of the pipeline, micro-batches of all its layers.

    >>> micro_batches_in_flight("1f1b", p=4, m=8)
    [4.0, 3.0, 2.0, 1.0]
    >>> micro_batches_in_flight("interleaved", p=2, m=8, v=2)
    [2.5, 1.5]

    Errors: LayoutError for sizes that the schedule does not take.
    """
    checked(schedule, p, m, v if KNOWN[schedule].way == "loop" else None)
    if schedule == "1f1b":
        return [float(min(m, p - r)) for r in range(p)]
    if schedule == "interleaved":
        warm_up = (min(2 * (p - r - 1) + (v - 1) * p, m * v) for r in range(p))
        return [min(w + 1, m * v) / v for w in warm_up]
    most = {"zb-h1": p, "zb-v": p, "zb-h2": 2 * p - 1, "dualpipe": (p + 1) / 2}
    most["dualpipev"] = (2 * p + 1) / 2
    return [float(min(m, most.get(schedule, m)))] * p


def outputs_in_flight(schedule: str, m: int) -> int:
    """Micro-batches whose logits the last stage keeps: all of them if no backward comes between."""
    return m if schedule in ("gpipe", "bfs") else 1


def way_of(schedule: str) -> str:
    """How the stages of a schedule lie on the ranks, as `Split` says it."""
    way = KNOWN[schedule].way
    return "loop" if way == "line" else way
