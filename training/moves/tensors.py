"""Every tensor of a model by Megatron's name, its whole shape, and how tensor parallelism cuts it.

    axis 0    column parallel: QKV, fused by groups of KV heads; gate and up, each cut by itself, so
              that a rank has rows of both; up from MLA's ranks; rows of the vocabulary
    axis 1    row parallel: what attention and MLP hand back
    None      whole on every rank: norms, the router, MLA's projections down, biases behind a sum

Names are those of layers built with Transformer Engine, where a norm is part of the linear layer
behind it (NVIDIA/Megatron-LM megatron-core 0.16.1, megatron/core/models/gpt/gpt_layer_specs.py and
the modules named there), with the layer and the expert counted over the whole model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from ..model import Model

PLACES = ("embedding", "final", "mtp", "output")
"""Places of tensors outside of the layers: on the first stage, and on the last one."""

Place = str | int
"""A layer's number, or one of PLACES."""


@dataclass(frozen=True)
class Tensor:
    """One tensor: its name within its layer, its whole shape, and its cut.

    axis: the axis that tensor parallelism cuts; None: every rank has the whole tensor. blocks:
    number of tensors joined along that axis, each cut separately (2: gate and up). expert: whether
    each expert has one; etp cuts it, and its name ends with the expert's number.
    """

    name: str
    shape: tuple[int, ...]
    axis: int | None = None
    blocks: int = 1
    expert: bool = False
    of_vocabulary: bool = False

    @property
    def elements(self) -> int:
        return prod(self.shape)


def layer_tensors(model: Model, *, moe: bool) -> tuple[Tensor, ...]:
    """The tensors of one layer, with those of the first expert only.

    >>> from training.models import MODELS
    >>> for tensor in layer_tensors(MODELS["llama3-8b"].model, moe=False):
    ...     print(tensor.name, tensor.shape, tensor.axis, tensor.blocks)
    self_attention.linear_qkv.layer_norm_weight (4096,) None 1
    self_attention.linear_qkv.weight (6144, 4096) 0 1
    self_attention.linear_proj.weight (4096, 4096) 1 1
    mlp.linear_fc1.layer_norm_weight (4096,) None 1
    mlp.linear_fc1.weight (28672, 4096) 0 2
    mlp.linear_fc2.weight (4096, 14336) 1 1
    """
    attention = _latent_attention(model) if model.is_mla else _attention(model)
    if not moe:
        mlp = _mlp(model, "mlp.", model.ffn)
        return (*attention, *_norm(model, "mlp.linear_fc1.layer_norm_", model.hidden), *mlp)
    experts = (
        replace(tensor, expert=True) for tensor in _mlp(model, "mlp.experts.", model.expert_ffn)
    )
    shared = _mlp(model, "mlp.shared_experts.", model.shared_expert_ffn)
    return (
        *attention,
        *_norm(model, "pre_mlp_layernorm.", model.hidden),
        Tensor("mlp.router.weight", (model.experts, model.hidden)),
        *experts,
        *(shared if model.shared_expert_ffn else ()),
    )


def tensors_of(model: Model, place: Place) -> tuple[Tensor, ...]:
    """The tensors of a layer, or of one of PLACES; includes a tied output on a separate stage.

    >>> from training.models import MODELS
    >>> [tensor.name for tensor in tensors_of(MODELS["llama3-8b"].model, "final")]
    ['decoder.final_layernorm.weight']
    """
    table = (model.vocabulary, model.hidden)
    if place == "embedding":
        words = Tensor("embedding.word_embeddings.weight", table, 0, of_vocabulary=True)
        places = Tensor("embedding.position_embeddings.weight", (model.sequence, model.hidden))
        return (words, places) if model.learned_positions else (words,)
    if place == "final":
        return tuple(_norm(model, "decoder.final_layernorm.", model.hidden))
    if place == "output":
        return (Tensor("output_layer.weight", table, 0, of_vocabulary=True),)
    if place == "mtp":
        return tuple(_predictions(model))
    return layer_tensors(model, moe=model.has_experts(int(place)))


def prefix_of(place: Place) -> str:
    """The prefix of the names of a place's tensors."""
    return f"decoder.layers.{place}." if isinstance(place, int) else ""


def full_name(place: Place, tensor: Tensor, expert: int | None = None) -> str:
    """A tensor's name in the whole model.

    >>> full_name(3, Tensor("mlp.experts.linear_fc1.weight", (2, 2), expert=True), 5)
    'decoder.layers.3.mlp.experts.linear_fc1.weight5'
    """
    return f"{prefix_of(place)}{tensor.name}{'' if expert is None else expert}"


def _norm(model: Model, name: str, width: int) -> Iterator[Tensor]:
    yield Tensor(f"{name}weight", (width,))
    if not model.rms_norm:
        yield Tensor(f"{name}bias", (width,))


def _attention(model: Model) -> Iterator[Tensor]:
    """The rows of linear_qkv are ordered by groups: the queries of a KV head, its key, its value.
    Ranks get whole groups, so cutting evenly is right; more ranks than KV heads cut groups too
    (megatron/core/transformer/attention.py gathers them before use)."""
    hidden, rows = model.hidden, model.query_width + model.key_width + model.value_width
    yield from _norm(model, "self_attention.linear_qkv.layer_norm_", hidden)
    yield Tensor("self_attention.linear_qkv.weight", (rows, hidden), 0)
    if model.biases != "none":
        yield Tensor("self_attention.linear_qkv.bias", (rows,), 0)
    yield Tensor("self_attention.linear_proj.weight", (hidden, model.attention_width), 1)
    if model.biases == "all":
        yield Tensor("self_attention.linear_proj.bias", (hidden,))


def _latent_attention(model: Model) -> Iterator[Tensor]:
    """MLA's tensors: down-projections whole, up-projections cut by heads
    (megatron/core/transformer/multi_latent_attention.py)."""
    hidden, lora = model.hidden, model.kv_lora_rank
    yield from _norm(model, "input_layernorm.", hidden)
    if model.q_lora_rank:
        down, up = (f"self_attention.linear_q_{way}_proj." for way in ("down", "up"))
        yield Tensor(f"{down}weight", (model.q_lora_rank, hidden))
        yield from _norm(model, f"{up}layer_norm_", model.q_lora_rank)
        yield Tensor(f"{up}weight", (model.query_width, model.q_lora_rank), 0)
    else:
        yield Tensor("self_attention.linear_q_proj.weight", (model.query_width, hidden), 0)
    rows = model.heads * (model.qk_nope_head_dim + model.v_head_dim)
    down, up = (f"self_attention.linear_kv_{way}_proj." for way in ("down", "up"))
    yield Tensor(f"{down}weight", (lora + model.qk_rope_head_dim, hidden))
    yield from _norm(model, f"{up}layer_norm_", lora)
    yield Tensor(f"{up}weight", (rows, lora), 0)
    yield Tensor("self_attention.linear_proj.weight", (hidden, model.attention_width), 1)


def _mlp(model: Model, name: str, ffn: int) -> tuple[Tensor, ...]:
    """The MLP's tensors: gate above up in one matrix; a rank's part has its rows of gate above its
    rows of up (megatron/core/transformer/mlp.py, apply_swiglu_sharded_factory)."""
    blocks = 2 if model.gated else 1
    first = Tensor(f"{name}linear_fc1.weight", (blocks * ffn, model.hidden), 0, blocks)
    last = Tensor(f"{name}linear_fc2.weight", (model.hidden, ffn), 1)
    if model.biases != "all":
        return first, last
    bias = Tensor(f"{name}linear_fc1.bias", (blocks * ffn,), 0, blocks)
    return first, bias, last, Tensor(f"{name}linear_fc2.bias", (model.hidden,))


def _predictions(model: Model) -> Iterator[Tensor]:
    """Tensors of multi-token prediction (megatron/core/transformer/multi_token_prediction.py)."""
    moe = model.has_experts(model.layers - 1)
    for number in range(model.mtp_layers):
        name = f"mtp.layers.{number}."
        yield from _norm(model, f"{name}enorm.", model.hidden)
        yield from _norm(model, f"{name}hnorm.", model.hidden)
        yield Tensor(f"{name}eh_proj.weight", (model.hidden, 2 * model.hidden), 0)
        for tensor in layer_tensors(model, moe=moe):
            yield replace(tensor, name=f"{name}transformer_layer.{tensor.name}")
        yield from _norm(model, f"{name}final_layernorm.", model.hidden)
