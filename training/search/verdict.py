"""The better of two layouts for the same work, and what decides it.

    memory   only one of them fits; one that is close to the limit may
    time     their steps are further apart than the error of an estimate's ratio
    bytes    one sends fewer bytes out of NVLink domains, over the slower links
    nothing  they are alike in all of that

The first of these that tells two layouts apart decides, and no later one is asked. What is refused,
or does not fit, is never better.
"""

from __future__ import annotations

from typing import NamedTuple

from ..estimate import Estimate
from ..estimate.answer import FAR
from ..estimate.memory import OVER

APART = 1.11
"""The ratio of two estimated steps from which on the order of the real ones is known: 9 of 10 pairs
of public runs of one model, batch, software and number of GPUs that are estimated so far apart are
in that order, and 6 of 10 of those nearer (tests/test_verdict.py counts them). Runs of nanotron,
whose stalls are partly chance, are left out."""

MATTERS = 0.01
"""The least relative difference of bytes, which are counted instead of estimated."""


class Outcome(NamedTuple):
    """The figures of a layout that a verdict compares.

    fit: "fits", "close" or "over" (training.estimate.memory). seconds: of a step. across: bytes
    that leave NVLink domains in it. lacks: reasons why no public run is near
    (training.estimate.Estimate.lacks).
    """

    fit: str
    seconds: float
    across: float
    lacks: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """better: 0 for the first layout, 1 for the second, None for neither. by: what decides, one of
    the module's table, or "refused" if one cannot be trained. error: of the ratio of the steps,
    relative."""

    better: int | None
    by: str
    error: float


def outcome_of(estimate: Estimate, across: float) -> Outcome:
    """The figures of an estimate; across: bytes that leave NVLink domains."""
    return Outcome(estimate.verdict, estimate.seconds, across, estimate.lacks)


def verdict(first: Outcome | None, second: Outcome | None) -> Verdict:
    """The better of two layouts; None for one that is refused.

    Swapping the layouts swaps the verdict; of two equal layouts neither is better.

    >>> small, large = Outcome("fits", 2.4, 9e9), Outcome("over", 2.2, 9e9)
    >>> verdict(small, large)
    Verdict(better=0, by='memory', error=0.11)
    >>> verdict(small, Outcome("fits", 2.5, 5e10)), verdict(Outcome("close", 4.8, 0), small)[:2]
    (Verdict(better=0, by='bytes', error=0.11), (1, 'time'))

    What no public run is like may be off by more; only what one of both lacks moves them apart.

    >>> round(verdict(small, Outcome("fits", 2.8, 9e9, ("gpu",))).error, 3)
    0.388
    """
    if first is None or second is None:
        can = [side is not None and side.fit != OVER for side in (first, second)]
        return Verdict(can.index(True) if any(can) else None, "refused", 0.0)
    sides = first, second
    apart = APART * FAR ** len({*first.lacks} ^ {*second.lacks})
    error = round(apart - 1, 4)
    if OVER in (first.fit, second.fit):
        return Verdict(_least(*(side.fit == OVER for side in sides)), "memory", error)
    if _exceeds(first.seconds, second.seconds, apart):
        return Verdict(_least(first.seconds, second.seconds), "time", error)
    if _exceeds(first.across, second.across, 1 + MATTERS):
        return Verdict(_least(first.across, second.across), "bytes", error)
    return Verdict(None, "nothing", error)


def _exceeds(one: float, other: float, times: float) -> bool:
    return max(one, other) > times * min(one, other)


def _least(first: float, second: float) -> int | None:
    """The index of the smaller of two numbers."""
    return None if first == second else int(second < first)
