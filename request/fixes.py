"""Changes that make a refused training valid, or a job fit; each was tried."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice

from groups import LayoutError, Mesh
from groups.alternatives import MOST, divisors, with_working, works
from training.estimate.memory import FITS, Fit, fit_of
from training.machine import NUMBERS

from .context import Context
from .inputs import OF_GROUPS
from .resolve import resolve
from .state import fixes_or_reset
from .trained import with_micro_batches

Changes = Mapping[str, object]
"""Changes of fields of the state."""


UNFIXED = {"server-has-no-step", *(code for code, _ in NUMBERS.values())}
"""What no change mends: a request about a server, and a number of a machine that only its owner can
tell."""


def fixes_of(error: LayoutError, context: Context) -> list[Changes]:
    """The alternatives of a refusal that work on this page."""
    if error.code in UNFIXED:
        return []

    def attempt(changes: Changes) -> Fit:
        return _fit_of(_changed(context, changes))

    named = error.replace(alternatives=_in_fields(error, context))
    fixes = with_working(named, attempt).alternatives
    if not fixes and error.code == "not-a-multiple":
        cuts = (changes for changes in _cuts(context.layout.mesh) if works(attempt, changes))
        return [*islice(cuts, MOST)]
    return [*fixes]


def _cuts(mesh: Mesh) -> Iterator[Changes]:
    """Other sizes of tp, then of cp, on the same GPUs, nearest first."""
    for name in ("tp", "cp"):
        now = mesh.size(name)
        sizes = divisors(now * mesh.size("dp"))
        near = sorted(sizes, key=lambda size: abs(math.log(size / now)))
        yield from ({name: size} for size in near if size != now)


def _in_fields(error: LayoutError, context: Context) -> list[Changes]:
    """The alternatives of the maths as changes of fields."""
    fixes = list[Changes]()
    for changes in fixes_or_reset(error):
        if "micro_batches" in changes:
            count = changes.pop("micro_batches")
            changes |= with_micro_batches(context.layout, context.state, count)
        fixes.append(changes)
    return fixes


def _changed(context: Context, changes: Changes) -> Context:
    """The context after some changes. Errors: LayoutError if the layout is refused."""
    state = context.state.changed(changes)
    is_other = not OF_GROUPS.isdisjoint(changes)
    return Context(resolve(state) if is_other else context.layout, state)


def _fit_of(context: Context) -> Fit:
    """The memory of the fullest rank. Errors: LayoutError whose alternatives are changes of
    fields."""
    try:
        context.trained.stages()
        return fit_of(context.trained.request(context.layout))
    except LayoutError as error:
        raise error.replace(alternatives=_in_fields(error, context)) from None


def fit_after(changes: Changes, context: Context) -> Fit | None:
    """The memory of the fullest rank after a change; None if the change is refused."""
    try:
        return _fit_of(_changed(context, changes))
    except LayoutError:
        return None


def fixes_to_fit(context: Context) -> list[tuple[Changes, float]]:
    """Changes after which the fullest rank certainly fits, each with its memory; the mildest first.

    Changes that leave the tensors' bytes as they are do not count, even if the estimate outside of
    tensors falls: for example FlashAttention when scores are recomputed anyway.
    """
    now = fit_of(context.trained.request(context.layout))
    tried = ((changes, fit_after(changes, context)) for changes in _milder(context))
    fitting = ((changes, fit) for changes, fit in tried if fit and fit.verdict == FITS)
    smaller = (
        (changes, fit.needed)
        for changes, fit in fitting
        if fit.allocated < now.allocated or fit.host < now.host
    )
    return list(islice(smaller, MOST))


def _milder(context: Context) -> Iterator[Changes]:
    """Changes that need less memory, the mildest first."""
    training, split = context.trained.training, context.trained.split
    sharing = training.ranks_sharing(split)[: 2 if context.trained.model.experts else 1]
    is_shared = max(sharing) > 1  # else no stage of ZeRO cuts anything
    if split.tp > 1 and not training.sequence_parallel:
        yield {"sequence_parallel": "on"}
    yield from ({"zero": zero} for zero in range(training.zero + 1, 3) if is_shared)
    if training.micro_batch > 1:
        yield {"micro_batch": 1}
    if not training.flash:
        yield {"flash": "on"}
    choices = context.trained.recomputations
    for recompute in choices[choices.index(training.recompute) + 1 :]:
        if recompute != "selective" or not training.flash:  # it recomputes scores itself
            yield {"recompute": recompute}
    yield from ({name: 2 * getattr(split, name)} for name in ("tp", "pp", "ep", "cp"))
    if training.zero and training.offload == "none":
        yield {"offload": "optimizer"}
    if training.zero < 3 and is_shared:
        yield {"zero": 3}
        yield {"zero": 3, "recompute": "full"}
    yield {"tp": 2 * split.tp, "pp": 2 * split.pp}
