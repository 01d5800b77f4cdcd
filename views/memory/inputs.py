"""What the Memory view is asked: its own fields and the column, read into a trained to solve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groups import LayoutError
from groups.alternatives import MOST
from training.memory.per_stage import StageMemory, largest

from ..base.context import Context
from ..base.resolve import resolve
from ..base.state import OF_GROUPS, is_fix, merged
from ..base.trained import trained_of
from ..base.training import (
    with_micro_batches,
)

Changes = dict[str, Any]
"""Changes of the state that were tried and work."""


def fixes_of(error: LayoutError, context: Context) -> list[Changes]:
    """The alternatives of a refusal that really work, here."""
    found = []
    for alternative in error.alternatives:
        changes = _in_fields(alternative, context)
        if changes and stages_after(changes, context):
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


def stages_after(changes: Changes, context: Context) -> tuple[StageMemory, ...]:
    """The stages once a change is made; none if it is refused."""
    changed = context.state.changed({name: str(value) for name, value in changes.items()})
    try:
        is_other = not OF_GROUPS.isdisjoint(changes)
        layout = resolve(changed) if is_other else context.layout
        return trained_of(layout, changed).stages()
    except LayoutError:
        return ()


def fixes_to_fit(context: Context) -> list[tuple[Changes, float]]:
    """Changes after which the fullest stage fits, with its bytes then; the mildest first."""
    trained = context.trained
    training, split = trained.training, trained.split
    tries: list[Changes] = []
    if split.tp > 1 and not training.sequence_parallel:
        tries.append({"sequence_parallel": "on"})
    tries += [{"zero": zero} for zero in range(training.zero + 1, 3)]
    if training.micro_batch > 1:
        tries.append({"micro_batch": 1})
    if training.recompute == "none":
        tries.append({"recompute": "selective"})
    tries.append({"recompute": "full"})
    tries += [{name: 2 * getattr(split, name)} for name in ("tp", "pp", "ep", "cp")]
    if training.zero < 3:
        tries.append({"zero": 3})
        tries.append({"zero": 3, "recompute": "full"})
    tries += [{"tp": 2 * split.tp, "pp": 2 * split.pp}]
    found: list[tuple[Changes, float]] = []
    for changes in tries:
        if len(found) == MOST:
            break
        stages = stages_after(changes, context)
        if stages and largest(stages).total <= trained.capacity:
            found.append((changes, largest(stages).total))
    return found
