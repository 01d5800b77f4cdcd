"""Why one layout is ranked before or behind another: codes and numbers; words are the page's.

Of two layouts the parts of the cost are set against each other (computation, idle time, each kind's
exposed time), and those told that matter: the largest first, none below MATTERS of the other's
step. Of one alone the same parts are told as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .search import Candidate

MATTERS = 0.01
"""Share of a step below which a difference is not told."""

TIGHT = 0.05
"""Share of a GPU's memory that fragments and buffers may well need."""

MOST = 3


@dataclass(frozen=True)
class Reason:
    """A code, and the facts that its sentence is made of: bytes, seconds, names, sizes."""

    code: str
    facts: Mapping[str, object] = field(default_factory=dict)


def compared(one: Candidate, other: Candidate, capacity: float) -> list[Reason]:
    """What makes ``one`` cheaper or dearer than ``other``.

    >>> from dataclasses import replace
    >>> from training.memory import Training
    >>> from training.split import Split
    >>> one = Candidate(Split(), Training(), 1e9, 0, 1.0, 0.1, 0.3, (("tp", 0.3),), 0.0)
    >>> other = replace(one, idle=0.5, by_kind=(("tp", 0.2),), exposed=0.2)
    >>> [(reason.code, reason.facts["seconds"]) for reason in compared(one, other, 80e9)]
    [('idle-less', 0.4), ('waits-more', 0.09999999999999998)]
    """
    found = []
    if (one.memory <= capacity) != (other.memory <= capacity):
        code = "fits" if one.memory <= capacity else "lacks"
        found.append(Reason(code, {"memory": one.memory, "other": other.memory}))
    found += _tight(one, capacity)
    mine, theirs = _parts(one), _parts(other)
    gains = {part: mine.get(part, 0.0) - theirs.get(part, 0.0) for part in {**mine, **theirs}}
    for part, seconds in sorted(gains.items(), key=lambda item: -abs(item[1])):
        if abs(seconds) >= MATTERS * other.seconds:
            way = "less" if seconds < 0 else "more"
            found.append(_told(f"{part[0]}-{way}", part[1], abs(seconds), one))
    if not found:
        found.append(Reason("alike", {}))
    return found[:MOST]


def alone(one: Candidate, capacity: float) -> list[Reason]:
    """What one layout's step is made of, beside computation."""
    found = [Reason("lacks", {"memory": one.memory, "other": capacity})]
    found = found if one.memory > capacity else _tight(one, capacity)
    parts = sorted(_parts(one).items(), key=lambda item: -item[1])
    for (name, kind), seconds in parts:
        if name != "computes" and seconds >= MATTERS * one.seconds:
            found.append(_told(name, kind, seconds, one))
    return found[:MOST] or [Reason("nothing", {})]


def _tight(one: Candidate, capacity: float) -> list[Reason]:
    left = capacity - one.memory
    return [Reason("tight", {"left": left})] if 0 <= left < TIGHT * capacity else []


def _parts(one: Candidate) -> dict[tuple[str, str], float]:
    """Seconds by part of the cost: a name, and for exposed time the kind."""
    waits = {("waits", kind): seconds for kind, seconds in one.by_kind}
    return {("computes", ""): one.compute, ("idle", ""): one.idle, **waits}


def _told(code: str, kind: str, seconds: float, one: Candidate) -> Reason:
    facts = {"kind": kind, "seconds": seconds, "pp": one.split.pp, "vpp": one.split.vpp}
    return Reason(code, {**facts, "m": one.training.micro_batches, "layers": one.split.spread})
