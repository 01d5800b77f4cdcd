"""Why one layout ranks before or after another: codes and numbers; the page has the texts.

Of two layouts the parts of the estimate are set against each other (computation, idle time, what
each kind of group is waited for, the optimizer), and those told that matter: the largest first,
none below MATTERS of the other's step. Of one alone the same parts are told as they are.
"""

from __future__ import annotations

from groups.notes import Note

from ..estimate import Estimate
from ..estimate.memory import CLOSE

MATTERS = 0.01
"""The share of a step below which a difference is not reported."""

MOST = 3
"""The most reasons reported for one layout."""

CODES = {
    **{"compute": "computes", "bubble": "idle", "optimizer": "updates"},
    **{"offload": "offloads", "host": "launches"},
}
"""The codes of a part's reason; all other parts are waits."""


def compared(estimate: Estimate, other: Estimate) -> list[Note]:
    """Notes on the causes that make a layout faster or slower than the ``other``.

    >>> from training.estimate import estimate
    >>> from training.models import MODELS
    >>> sizes = {"gpus": 64, "tp": 8, "global_batch": 32, "software": "megatron"}
    >>> shallow, deep = (estimate(MODELS["llama3-70b"].model, **sizes, pp=pp) for pp in (2, 8))
    >>> [reason.code for reason in compared(shallow, deep)][:2]
    ['waits-more', 'idle-less']
    """
    reasons = []
    if estimate.fits != other.fits:
        facts = {"memory": estimate.fit.needed, "other": other.fit.needed}
        reasons.append(Note("fits" if estimate.fits else "lacks", facts))
    reasons += _close(estimate)
    gains = {part: estimate.parts[part] - other.parts[part] for part in estimate.parts}
    for part, seconds in sorted(gains.items(), key=lambda item: -abs(item[1])):
        if abs(seconds) >= MATTERS * other.seconds:
            direction = "less" if seconds < 0 else "more"
            reasons.append(_reason(part, f"-{direction}", abs(seconds), estimate))
    return (reasons or [Note("alike")])[:MOST]


def alone(estimate: Estimate) -> list[Note]:
    """Notes on the largest parts of a layout's step besides computation."""
    lacks = Note("lacks", {"memory": estimate.fit.needed, "other": estimate.request.bytes_of_gpu})
    reasons = _close(estimate) if estimate.fits else [lacks]
    for part, seconds in sorted(estimate.parts.items(), key=lambda item: -item[1]):
        if part != "compute" and seconds >= MATTERS * estimate.seconds:
            reasons.append(_reason(part, "", seconds, estimate))
    return reasons[:MOST] or [Note("nothing")]


def _close(estimate: Estimate) -> list[Note]:
    fit = estimate.fit
    facts = {"memory": fit.low, "other": fit.high}
    return [Note("close", facts)] if fit.verdict == CLOSE else []


def _reason(part: str, direction: str, seconds: float, estimate: Estimate) -> Note:
    split, training = estimate.request.split, estimate.request.training
    facts = {"kind": part, "seconds": seconds, "pp": split.pp, "vpp": split.vpp}
    facts |= {"m": training.micro_batches, "recompute": training.recompute}
    return Note(CODES.get(part, "waits") + direction, facts)
