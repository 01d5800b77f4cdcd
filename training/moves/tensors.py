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

from ..kinds import MLA, MLP, Attention, Experts, Weight
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


def layer_tensors(model: Model, place: int) -> tuple[Tensor, ...]:
    """The tensors of one layer, counted from 0, with those of the first expert only.

    >>> from training.models import MODELS
    >>> for tensor in layer_tensors(MODELS["llama3-8b"].model, 0):
    ...     print(tensor.name, tensor.shape, tensor.axis, tensor.blocks)
    self_attention.linear_qkv.layer_norm_weight (4096,) None 1
    self_attention.linear_qkv.weight (6144, 4096) 0 1
    self_attention.linear_proj.weight (4096, 4096) 1 1
    mlp.linear_fc1.layer_norm_weight (4096,) None 1
    mlp.linear_fc1.weight (28672, 4096) 0 2
    mlp.linear_fc2.weight (4096, 14336) 1 1
    """
    layer, hidden, vectors = model.stack[place], model.hidden, _vectors(model)
    if model.runs:
        return tuple(_by_weights(layer.weights(hidden)))
    own: list[Tensor] = []
    for mixer in layer.mixers:
        if isinstance(mixer, MLA):
            own += [*_norm(vectors, "input_layernorm.", hidden), *_latent_attention(mixer, hidden)]
        elif isinstance(mixer, Attention):
            own += _norm(vectors, "self_attention.linear_qkv.layer_norm_", hidden)
            own += _attention(mixer, hidden)
        else:
            own += [*_norm(vectors, "input_layernorm.", hidden), *_others(mixer.weights(hidden))]
    for part in layer.feed_forwards:
        if isinstance(part, MLP):
            own += _norm(vectors, "mlp.linear_fc1.layer_norm_", hidden)
            own += _mlp(part, "mlp.", hidden, part.width)
            continue
        own += _norm(vectors, "pre_mlp_layernorm.", hidden)
        own += [Tensor("mlp.router.weight", (part.experts, hidden))]
        experts = _mlp(part, "mlp.experts.", hidden, part.width)
        own += [replace(tensor, expert=True) for tensor in experts]
        own += _mlp(part, "mlp.shared_experts.", hidden, part.shared) if part.shared else ()
    return tuple(own)


def tensors_of(model: Model, place: Place) -> tuple[Tensor, ...]:
    """The tensors of a layer, or of one of PLACES; includes a tied output on a separate stage.

    >>> from training.models import MODELS
    >>> [tensor.name for tensor in tensors_of(MODELS["llama3-8b"].model, "final")]
    ['decoder.final_layernorm.weight']
    """
    table = (model.vocabulary, model.hidden)
    if model.ends is not None and place in ("embedding", "final"):
        return _ends(model, model.ends, is_first=place == "embedding")
    if place == "embedding":
        words = Tensor("embedding.word_embeddings.weight", table, 0, of_vocabulary=True)
        places = Tensor("embedding.position_embeddings.weight", (model.sequence, model.hidden))
        return (words, places) if model.learned_positions else (words,)
    if place == "final":
        return tuple(_norm(_vectors(model), "decoder.final_layernorm.", model.hidden))
    if place == "output":
        return (Tensor("output_layer.weight", table, 0, of_vocabulary=True),)
    if place == "mtp":
        return tuple(_predictions(model))
    return layer_tensors(model, int(place))


def _ends(model: Model, ends: tuple[Weight, ...], *, is_first: bool) -> tuple[Tensor, ...]:
    """Tensors outside of layers: on the first stage the embedding, what else is looked up, and
    towers; behind the last layer the others."""
    first = [weight for weight in ends if weight.kind in ("embedding", "positions")]
    if not is_first:
        return tuple(_by_weights(tuple(weight for weight in ends if weight not in first)))
    table = (model.vocabulary, model.hidden)
    words = Tensor("embedding.word_embeddings.weight", table, 0, of_vocabulary=True)
    towers = (weight for tower in model.towers for weight in tower.weights)
    return (words, *_by_weights((*first, *towers)))


def prefix_of(place: Place) -> str:
    """The prefix of the names of a place's tensors."""
    return f"decoder.layers.{place}." if isinstance(place, int) else ""


def full_name(place: Place, tensor: Tensor, expert: int | None = None) -> str:
    """A tensor's name in the whole model.

    >>> full_name(3, Tensor("mlp.experts.linear_fc1.weight", (2, 2), expert=True), 5)
    'decoder.layers.3.mlp.experts.linear_fc1.weight5'
    """
    return f"{prefix_of(place)}{tensor.name}{'' if expert is None else expert}"


def _vectors(model: Model) -> int:
    """Vectors of a norm: 1 of RMSNorm, 2 of LayerNorm."""
    return 1 if model.rms_norm else 2


def _norm(vectors: int, name: str, width: int) -> Iterator[Tensor]:
    yield Tensor(f"{name}weight", (width,))
    if vectors > 1:
        yield Tensor(f"{name}bias", (width,))


def _attention(mixer: Attention, hidden: int) -> Iterator[Tensor]:
    """The rows of linear_qkv are ordered by groups: the queries of a KV head, its key, its value.
    Ranks get whole groups, so cutting evenly is right; more ranks than KV heads cut groups too
    (megatron/core/transformer/attention.py gathers them before use)."""
    gates = mixer.output_width if mixer.gate == "element" else 0
    rows = mixer.query_width + gates + mixer.key_width + mixer.value_width
    yield Tensor("self_attention.linear_qkv.weight", (rows, hidden), 0)
    if mixer.bias:
        yield Tensor("self_attention.linear_qkv.bias", (rows,), 0)
    yield Tensor("self_attention.linear_proj.weight", (hidden, mixer.output_width), 1)
    if mixer.out_bias:
        yield Tensor("self_attention.linear_proj.bias", (hidden,))
    for name, width in (("q", mixer.q_norm), ("k", mixer.k_norm)):
        if width:
            yield Tensor(f"self_attention.{name}_layernorm.weight", (width,))


def _latent_attention(mixer: MLA, hidden: int) -> Iterator[Tensor]:
    """MLA's tensors: down-projections whole, up-projections cut by heads
    (megatron/core/transformer/multi_latent_attention.py)."""
    queries, lora = mixer.query_width, mixer.kv_lora_rank
    if mixer.q_lora_rank:
        down, up = (f"self_attention.linear_q_{way}_proj." for way in ("down", "up"))
        yield Tensor(f"{down}weight", (mixer.q_lora_rank, hidden))
        yield from _norm(mixer.norms, f"{up}layer_norm_", mixer.q_lora_rank)
        yield Tensor(f"{up}weight", (queries, mixer.q_lora_rank), 0)
    else:
        yield Tensor("self_attention.linear_q_proj.weight", (queries, hidden), 0)
    rows = mixer.heads * (mixer.nope + mixer.value)
    down, up = (f"self_attention.linear_kv_{way}_proj." for way in ("down", "up"))
    yield Tensor(f"{down}weight", (mixer.token_elements, hidden))
    yield from _norm(mixer.norms, f"{up}layer_norm_", lora)
    yield Tensor(f"{up}weight", (rows, lora), 0)
    yield Tensor("self_attention.linear_proj.weight", (hidden, mixer.output_width), 1)
    if mixer.indexer:
        yield from _others(mixer.indexer.weights(hidden))


def _others(weights: tuple[Weight, ...]) -> Iterator[Tensor]:
    """Tensors by the names of published implementations: rows are cut, of outputs columns."""
    for weight in weights:
        shape = (weight.rows,) if weight.columns == 1 else (weight.rows, weight.columns)
        axis = int(weight.name in ("o_proj", "out_proj")) if weight.cut else None
        yield Tensor(f"self_attention.{weight.name}.weight", shape, axis)


def _by_weights(weights: tuple[Weight, ...]) -> Iterator[Tensor]:
    """Tensors of a layer that Megatron does not name, by the names of published code."""
    for weight in weights:
        if not weight.rows:
            continue
        is_expert = weight.kind == "experts" and weight.number > 1
        shape = (weight.rows,) if weight.columns == 1 else (weight.rows, weight.columns)
        is_out = weight.name in ("o_proj", "out_proj", "down_proj")
        axis = int(is_out and len(shape) > 1) if weight.is_cut else None
        name = f"mlp.experts.{weight.name}" if is_expert else f"{weight.kind}.{weight.name}"
        yield Tensor(f"{name}.weight", shape, axis, expert=is_expert)


def _mlp(part: MLP | Experts, name: str, hidden: int, ffn: int) -> tuple[Tensor, ...]:
    """The MLP's tensors: gate above up in one matrix; a rank's part has its rows of gate above its
    rows of up (megatron/core/transformer/mlp.py, apply_swiglu_sharded_factory)."""
    blocks = 2 if part.gated else 1
    first = Tensor(f"{name}linear_fc1.weight", (blocks * ffn, hidden), 0, blocks)
    last = Tensor(f"{name}linear_fc2.weight", (hidden, ffn), 1)
    if not part.bias:
        return first, last
    bias = Tensor(f"{name}linear_fc1.bias", (blocks * ffn,), 0, blocks)
    return first, bias, last, Tensor(f"{name}linear_fc2.bias", (hidden,))


def _predictions(model: Model) -> Iterator[Tensor]:
    """Tensors of multi-token prediction (megatron/core/transformer/multi_token_prediction.py)."""
    vectors = _vectors(model)
    for number in range(model.mtp_layers):
        name = f"mtp.layers.{number}."
        yield from _norm(vectors, f"{name}enorm.", model.hidden)
        yield from _norm(vectors, f"{name}hnorm.", model.hidden)
        yield Tensor(f"{name}eh_proj.weight", (model.hidden, 2 * model.hidden), 0)
        for tensor in layer_tensors(model, model.layers - 1):
            yield replace(tensor, name=f"{name}transformer_layer.{tensor.name}")
        yield from _norm(vectors, f"{name}final_layernorm.", model.hidden)
