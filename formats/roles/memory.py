"""The moments of a step at which the roles of a GPU do not fit in its memory, by what they hold at
least: weights, gradients and the optimizer's state of one that trains, without activations; of a
server the share of the GPU that it takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

import numpy as np

from groups.errors import LayoutError
from groups.layout import Layout
from groups.notes import Note
from groups.plan import Plan
from groups.plan_notes import memory_note
from training.memory import memory_per_stage
from training.models import MODELS
from training.recipe import PRECISIONS, Training
from training.serving.server import SHARES
from training.serving.sglang import prefill_chunk, sglang_share
from training.split import Split

from .model import PARTS, PlanRead, RoleRead

FORWARD = ("log-probs", "reference", "values", "reward", "teacher")
"""Phases in which nothing is updated."""

SCORES = ("reference", "reward", "teacher")
"""Roles that have weights alone."""


def crowded(read: PlanRead, capacity: float) -> Iterator[Note]:
    """For GPUs that several roles share, the fullest moment, where it is beyond their memory.

    capacity: bytes of a GPU.

    >>> from formats.roles.presets import preset_plan
    >>> read = preset_plan("nemo-rl-qwen3-235b")
    >>> [note.facts["phase"] for note in crowded(read, 24 * 2**30)], [*crowded(read, 80 * 2**30)]
    (['update'], [])
    """
    parts = {role.name: _least(role, capacity) for role in read.roles}
    for gpu, names in _shared(read.plan):
        notes = []
        for phase in read.phases:
            if phase.name == "weights":
                continue  # a server's cache need not be there yet
            working = {*phase.roles, *read.beside}
            used = ("weights", "cache") if phase.name in FORWARD else PARTS
            needed = {name: _held(read.role(name), parts[name], working, used) for name in names}
            if note := memory_note(phase.name, needed, capacity, gpu):
                notes.append((sum(needed.values()), note))
        if notes:
            yield max(notes, key=lambda one: one[0])[1]


def _shared(plan: Plan) -> Iterator[tuple[int, list[str]]]:
    """The first GPU of each set of several roles that some GPUs have."""
    codes = np.zeros(plan.world_size, dtype=np.int64)
    for number, role in enumerate(plan.roles):
        codes[role.ranks] |= 1 << number
    for code, gpu in zip(*np.unique(codes, return_index=True)):
        names = [role.name for at, role in enumerate(plan.roles) if int(code) >> at & 1]
        if len(names) > 1:
            yield int(gpu), names


def _held(
    read: RoleRead, parts: Mapping[str, float], working: set[str], used: Collection[str]
) -> float:
    """Bytes of a role: what does not leave, and while it works what it uses."""
    here = used if read.name in working else ()
    return sum(size for part, size in parts.items() if part in here or part not in read.away)


def _least(read: RoleRead, capacity: float) -> dict[str, float]:
    """What a rank of the fullest stage holds, by part; nothing of a model that is not known."""
    layout = read.role.layout
    if layout.is_server:
        share = read.training.get("served_share")
        taken = _usual_share(layout, capacity) if share is None else float(str(share))
        return {"cache": taken * capacity}  # its weights are in its share
    published = MODELS.get(str(read.training.get("model", "")))
    if published is None:
        return {}
    job = layout.job
    copies = layout.world_size // (job.tp * job.pp * job.cp)
    is_sharded = layout.framework == "device-mesh"
    zero = int(str(read.training.get("zero", 3 if is_sharded else 1)))
    precision = str(read.training.get("precision", "bf16-fp32"))
    with suppress(LayoutError):
        split = Split(job.tp, job.cp, job.pp, copies, job.ep, job.etp or 0, spread="nearly")
        training = Training(
            zero=zero,
            precision=precision if precision in PRECISIONS else "bf16-fp32",
            offload=str(read.training.get("offload", "none")),
            micro_batches=job.pp,
        )
        stages = memory_per_stage(published.model, split, training)
        fullest = max(stages, key=lambda stage: sum(_states(stage.parts).values()))
        states = _states(fullest.parts)
        only = read.name.startswith(SCORES)
        return {"weights": states["weights"]} if only else states
    return {}


def _usual_share(layout: Layout, capacity: float) -> float:
    """Of a GPU, what an engine takes where nothing says it."""
    _, share = SHARES.get(layout.framework, SHARES["megatron"])
    job = layout.job
    sizes = {"tp": job.tp, "pp": job.pp, "attention_dp": layout.mesh.size("dp")}
    return share or max(0.0, sglang_share(capacity, prefill_chunk(capacity), **sizes))


def _states(parts: Mapping[str, float]) -> dict[str, float]:
    return {name: parts.get(name, 0.0) for name in ("weights", "gradients", "optimizer")}
