"""Changes after which a model fits into the memory of its GPUs."""

from __future__ import annotations

from groups.alternatives import MOST

from ..base.context import Context
from ..base.fixes import Changes, fit_after


def fixes_to_fit(context: Context) -> list[tuple[Changes, float]]:
    """Changes after which the fullest rank fits, with what it needs then; the mildest first."""
    trained = context.trained
    training, split = trained.training, trained.split
    tries: list[Changes] = []
    if split.tp > 1 and not training.sequence_parallel:
        tries.append({"sequence_parallel": "on"})
    tries += [{"zero": zero} for zero in range(training.zero + 1, 3)]
    if training.micro_batch > 1:
        tries.append({"micro_batch": 1})
    if not training.flash:
        tries.append({"flash": "on"})
        if training.recompute == "none":
            tries.append({"recompute": "selective"})
    if training.recompute in ("none", "selective"):
        tries.append({"recompute": "partial"})
    tries.append({"recompute": "full"})
    tries += [{name: 2 * getattr(split, name)} for name in ("tp", "pp", "ep", "cp")]
    if training.zero and training.offload == "none":
        tries.append({"offload": "optimizer"})
    if training.zero < 3:
        tries.append({"zero": 3})
        tries.append({"zero": 3, "recompute": "full"})
    tries += [{"tp": 2 * split.tp, "pp": 2 * split.pp}]
    found: list[tuple[Changes, float]] = []
    for changes in tries:
        if len(found) == MOST:
            break
        fit = fit_after(changes, context)
        if fit and fit.fits:
            found.append((changes, fit.needed))
    return found
