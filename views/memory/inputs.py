"""Changes after which a model fits into the memory of its GPUs."""

from __future__ import annotations

from groups.alternatives import MOST
from training.memory.per_stage import largest

from ..base.context import Context
from ..base.fixes import Changes, stages_after


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
