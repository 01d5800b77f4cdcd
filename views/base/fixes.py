"""Changes with which a refused training was tried, and is none any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groups import LayoutError
from groups.alternatives import MOST
from training.estimate.memory import Fit, fit_of

from .context import Context
from .resolve import resolve
from .state import OF_GROUPS, is_fix, merged
from .trained import trained_of
from .training import (
    with_micro_batches,
)

Changes = dict[str, Any]
"""Changes of the state that were tried and work."""


def fixes_of(error: LayoutError, context: Context) -> list[Changes]:
    """The alternatives of a refusal that really work, here."""
    found = []
    for alternative in error.alternatives:
        changes = _in_fields(alternative, context)
        if changes and fit_after(changes, context):
            found.append(changes)
    return found[:MOST]


def _in_fields(alternative: Mapping[str, Any], context: Context) -> Changes:
    """An alternative of the maths in the page's names; empty if it is none of the page's."""
    if not is_fix(alternative):
        return {}
    changes = merged(alternative)
    if "micro_batches" in changes:
        changes |= with_micro_batches(context.layout, context.state, changes.pop("micro_batches"))
    if "sequence_parallel" in changes:
        changes["sequence_parallel"] = "off"
    return changes


def fit_after(changes: Changes, context: Context) -> Fit | None:
    """What the fullest rank needs once a change is made; None if it is refused."""
    changed = context.state.changed({name: str(value) for name, value in changes.items()})
    try:
        is_other = not OF_GROUPS.isdisjoint(changes)
        layout = resolve(changed) if is_other else context.layout
        trained = trained_of(layout, changed)
        trained.stages()
        return fit_of(trained.request(layout))
    except LayoutError:
        return None


def fixes_of_training(error: LayoutError, context: Context) -> list[Changes]:
    """The changes with which a refused trained was tried and is none any more."""
    if error.control == "cp_algorithm":
        return [dict(changes) for changes in error.alternatives]
    if error.code == "experts-need-sequence-parallel":
        return [{"sequence_parallel": "on"}]
    return fixes_of(error, context)
