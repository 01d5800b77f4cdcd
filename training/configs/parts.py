"""Feed-forwards, layers and ends of an architecture whose row says all of it."""

from __future__ import annotations

from ..kinds import MLP, Experts, LayerKind, Weight
from ..kinds.weights import vector
from .architecture import Architecture
from .fields import Fields
from .mixers import hidden_of, mixers_of, says
from .stacks import layer_count, mixer_types, routed


def layers_of(fields: Fields, row: Architecture) -> list[LayerKind]:
    """The layers of an architecture whose row says all of it."""
    count = layer_count(fields)
    types = mixer_types(fields, row.types, count)
    moe = routed(fields, row.routed, count) if row.routed else [False] * count
    kinds: dict[tuple[str, bool], LayerKind] = {}
    for layer_type, has_experts in zip(types, moe):
        if (layer_type, has_experts) not in kinds:
            part = experts_of(fields, row) if has_experts else mlp_of(fields, row)
            mixers = mixers_of(fields, row, layer_type)
            norms = row.norms * row.vectors
            others = vector("act_fn", "mlp", row.activation)
            kinds[layer_type, has_experts] = LayerKind(
                mixers, (part,) if part else (), norms, others
            )
    return [kinds[key] for key in zip(types, moe)]


def mlp_of(fields: Fields, row: Architecture) -> MLP | None:
    """The MLP of a layer; None in an architecture without MLPs."""
    if not row.dense_width:
        return None
    width = fields.size(row.dense_width, 0) or 4 * hidden_of(fields)
    return MLP(width, row.gated, says(fields, row.mlp_bias), "gate_up" in row.fused)


def experts_of(fields: Fields, row: Architecture) -> Experts:
    """The experts of a layer."""
    width = fields.positive(row.expert_width)
    shared = {
        "": lambda: 0,
        "count": lambda: fields.size(row.shared_by, 0) * width,
        "width": lambda: fields.size(row.shared_by, 0),
        "same": lambda: width,
    }[row.shared]()
    return Experts(
        experts=fields.positive("num_experts"),
        top_k=fields.size("num_experts_per_tok", 0),
        width=width,
        gated=row.gated,
        bias=row.expert_bias,
        shared=shared,
        shared_whole=row.shared_whole,
        adapted=row.adapted,
        linear_router=row.linear_router,
        fused="gate_up" in row.fused,
        shared_gate=row.shared_gate and shared > 0,
        router_bias=row.router_bias,
        correction=row.correction,
    )


def ends_of(fields: Fields, row: Architecture) -> tuple[Weight, ...]:
    """What is outside of layers, embedding and output."""
    hidden, norm = hidden_of(fields), row.vectors * hidden_of(fields)
    positions = 0
    if row.positions >= 0:
        positions = (fields.positive("max_position_embeddings") + row.positions) * hidden
    return (
        *vector("positions", "positions", positions),
        *vector("embedding_norm", "norms", 2 * hidden * row.embedding_norm),
        *vector("final_norm", "norms", norm * row.final),
    )
