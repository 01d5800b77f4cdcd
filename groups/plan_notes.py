"""Warnings about a plan that follow from its layouts alone.

Tensor parallel groups that cross a node because of their role's first GPU; engines that straddle
nodes; GPUs without a role; a server whose tp does not divide its model's KV heads. Each is a
`Note`: a stable code, and the facts of its sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .audit import spans_of
from .mesh import whole_number
from .notes import Note
from .placement import distinct
from .plan import Plan, Role


def notes_of(plan: Plan, kv_heads: Mapping[str, int] | None = None) -> list[Note]:
    """The notes of a plan, role by role, then of the unused GPUs.

    kv_heads: KV heads of the servers' models, by role; other servers get no note about them.

    >>> from groups.layout import Job
    >>> rollout = Role("rollout", Job(tp=4, framework="vllm").layout(), first_rank=6)
    >>> notes = notes_of(Plan(nodes=2, gpus_per_node=8, roles=(rollout,)), {"rollout": 6})
    >>> for note in notes:
    ...     print(note.code, dict(note.facts))
    tp-crosses-by-start {'role': 'rollout', 'first': 6, 'crossing': 1, 'groups': 2, 'nearest': 4}
    engines-straddle {'role': 'rollout', 'straddling': 1, 'engines': 2, 'gpus': 4}
    kv-heads-do-not-divide {'role': 'rollout', 'tp': 4, 'kv_heads': 6}
    gpus-unused {'count': 8, 'first': 0, 'last': 15}
    """
    heads = {} if kv_heads is None else kv_heads
    notes = [note for role in plan.turns for note in _of_role(plan, role, heads.get(role.name))]
    unused = plan.free
    if unused:
        ends = {"first": unused.lowest, "last": unused.last}
        notes.append(Note("gpus-unused", {"count": len(unused), **ends}))
    return notes


def _of_role(plan: Plan, role: Role, kv_heads: int | None) -> Iterator[Note]:
    yield from _crossing(plan, role)
    if role.layout.is_server:
        yield from _straddling(plan, role)
        if kv_heads is not None:
            yield from _uneven_heads(role, whole_number(kv_heads, "kv_heads"))


def _crossing(plan: Plan, role: Role) -> Iterator[Note]:
    """Groups of tp that span more nodes than they would if the role began with a node."""
    tensor = role.layout.every["tp"]
    if not len(role.gpus) and role.first_rank % plan.gpus_per_node == 0:
        return  # it does begin with one

    def crossing(gpus: np.ndarray) -> int:
        return int(np.count_nonzero(spans_of(tensor, gpus // plan.gpus_per_node) > 1))

    run = np.arange(role.layout.world_size)
    here, least = crossing(role.ranks), crossing(run)
    if here <= least:
        return
    first, size = role.first_rank, tensor.size
    steps = (plan.gpus_per_node, size)  # shifted by whole nodes, no more groups cross than must
    starts = {step * (first // step + more) for step in steps for more in (0, 1)}
    last = plan.world_size - role.layout.world_size
    near = () if len(role.gpus) else starts
    good = [at for at in near if at <= last and crossing(run + at) <= least]
    nearest = min(good, key=lambda at: (abs(at - first), at), default=None)
    facts = {"role": role.name, "first": first, "crossing": here - least}
    facts |= {"groups": tensor.num_groups} | ({} if nearest is None else {"nearest": nearest})
    yield Note("tp-crosses-by-start", facts)


def _straddling(plan: Plan, role: Role) -> Iterator[Note]:
    """Engines that span more nodes than their GPUs require."""
    size = role.layout.joint_gpus
    engines = role.ranks.reshape(-1, size)
    needed = -(-size // plan.gpus_per_node)
    straddling = int(np.count_nonzero(distinct(engines // plan.gpus_per_node) > needed))
    if straddling:
        facts = {"role": role.name, "straddling": straddling, "engines": len(engines)}
        yield Note("engines-straddle", {**facts, "gpus": size})


def _uneven_heads(role: Role, kv_heads: int) -> Iterator[Note]:
    """A tp that does not divide the KV heads: heads are replicated on several ranks, or no engine
    starts.

    Source: vllm-project/vllm, vllm/model_executor/models/llama.py, LlamaAttention: of tp and the
    KV heads one must divide the other; where tp is more, each head is on several ranks.
    """
    layout = role.layout
    tp = layout.mesh.size("tp")  # tp of attention, the fastest axis
    parts = tp
    if "dcp" in layout.every:  # ranks of dcp share the tokens of a head
        parts //= int(np.count_nonzero(layout.every["dcp"].members(0) < tp))
    if kv_heads % parts == 0:
        return
    facts = {"role": role.name, "tp": tp, "kv_heads": kv_heads}
    if parts % kv_heads == 0:
        yield Note("kv-heads-copied", {**facts, "copies": parts // kv_heads})
    else:
        yield Note("kv-heads-do-not-divide", facts)
