"""The layers of architectures of which a row does not say all: each what is its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import refusal
from ..kinds import MLA, MLP, Attention, Experts, LayerKind, Weight
from ..kinds.weights import linear, vector
from . import stacks
from .architecture import Architecture
from .fields import Fields
from .mixers import hidden_of, mixers_of, says
from .parts import ends_of, experts_of, layers_of, mlp_of

Built = tuple[list[LayerKind], tuple[Weight, ...]]
"""The layers, and what is outside of layers, embedding and output."""


def _gemma4(fields: Fields, row: Architecture) -> Built:
    """Full attention has other heads; the last layers reuse keys and values; a gate in every layer
    adds an embedding of its own."""
    hidden, count = hidden_of(fields), stacks.layer_count(fields)
    types = stacks.listed(fields, "layer_types", count)
    types = types or stacks.interval(6, count, stacks.FULL, stacks.SLIDING)
    types[-1] = stacks.FULL
    each = fields.part("per_layer_config")
    sizes: dict[int, Fields] = {}
    if each is not None:
        sizes = {int(at): part for at in each.raw if (part := each.part(at)) is not None}
    wide = fields.size("global_head_dim", 512)
    few = fields.size("num_global_key_value_heads", 0)
    same, last = fields.flag("attention_k_eq_v"), count - fields.size("num_kv_shared_layers", 0)
    double = fields.flag("use_double_wide_mlp")
    inner = fields.size("hidden_size_per_layer_input", 0)
    moe = _gemma_experts(fields, row) if fields.flag("enable_moe_block") else None
    others: tuple[Weight, ...] = ()
    if inner:
        others = (
            *linear("per_layer_input_gate", "others", inner, hidden),
            *linear("per_layer_projection", "others", hidden, inner),
            *vector("post_per_layer_input_norm", "norms", hidden),
        )
    layers = []
    for at, layer_type in enumerate(types):
        (mixer,) = mixers_of(fields, row, layer_type)
        assert isinstance(mixer, Attention)
        is_full, reused = layer_type == stacks.FULL, at >= last
        own = sizes.get(at)
        if own is not None:
            head_dim = own.size("head_dim", mixer.head_dim)
            kv_heads = own.size("num_key_value_heads", mixer.kv_heads)
        else:
            head_dim = wide if is_full and each is None else mixer.head_dim
            kv_heads = few if is_full and few and same and each is None else mixer.kv_heads
        mixer = replace(
            mixer,
            head_dim=head_dim,
            kv_heads=kv_heads,
            q_norm=head_dim,
            k_norm=head_dim,
            reused=reused,
            one_projection=same and is_full,
        )
        mlp = mlp_of(fields, row)
        assert mlp is not None
        mlp = replace(mlp, width=mlp.width * (2 if double and reused else 1))
        parts = (mlp, moe) if moe else (mlp,)
        layers.append(LayerKind((mixer,), parts, row.norms + (3 if moe else 0), others))
    fields.value("sliding_window")
    table = fields.size("vocab_size_per_layer_input", 0)
    ends = ends_of(fields, row)
    if inner:
        ends += (
            Weight("embed_tokens_per_layer", "embedding", table, count * inner, "server"),
            *linear("per_layer_model_projection", "others", count * inner, hidden, "server"),
            *vector("per_layer_projection_norm", "norms", inner),
        )
    return layers, ends


def _gemma_experts(fields: Fields, row: Architecture) -> Experts:
    """The router scales its input and every expert."""
    own = experts_of(fields, row)
    return replace(own, scales=hidden_of(fields) + own.experts)


def _longcat(fields: Fields, row: Architecture) -> Built:
    """Two attentions and two MLPs in a layer, and experts beside the second half."""
    (mixer,) = mixers_of(fields, row, stacks.FULL)
    whole = fields.positive("qk_head_dim", mixer.head_dim) if isinstance(mixer, MLA) else 0
    if isinstance(mixer, MLA) and whole != mixer.head_dim:
        raise refusal("config-value", "qk_head_dim", field="qk_head_dim", value=whole)
    mlp = MLP(fields.positive("intermediate_size"), gated=True)
    experts, zero = experts_of(fields, row), fields.size("zero_expert_num", 0)
    unused = zero * 2 * experts.width * hidden_of(fields)
    biased = fields.flag("router_bias")
    experts = replace(experts, zero=zero, extra_into=unused, router_bias=biased)
    layer = LayerKind((mixer, mixer), (mlp, mlp, experts), 4)
    return [layer] * stacks.layer_count(fields), ends_of(fields, row)


def _deepseek_v4(fields: Fields, row: Architecture) -> Built:
    """Several residual streams, mixed by a projection in front of attention and of experts: it
    makes a matrix for each token, with which the streams are multiplied."""
    hidden, count = hidden_of(fields), stacks.layer_count(fields)
    streams = fields.positive("hc_mult")
    types = stacks.mixer_types(fields, row.types, count)
    for name in ("mlp_layer_types", "compress_ratios", "num_hash_layers"):
        fields.value(name)
    mixes = (2 + streams) * streams
    (made,) = linear("hc.fn", "others", mixes, streams * hidden)
    mixing = (
        *vector("hc.base", "others", mixes),
        made._replace(beside=streams * streams * hidden),
        *vector("hc.scale", "others", 3),
    )
    experts = experts_of(fields, row)
    kinds = {
        kind: LayerKind(mixers_of(fields, row, kind), (experts,), row.norms, mixing * 2)
        for kind in {*types}
    }
    ends = (
        *ends_of(fields, row),
        *linear("hc_head.fn", "others", streams, streams * hidden),
        *vector("hc_head.base", "others", streams),
        *vector("hc_head.scale", "others", 1),
    )
    return [kinds[kind] for kind in types], ends


def _shared_indexers(fields: Fields, row: Architecture) -> Built:
    """Some layers use the choice of an earlier layer's indexer."""
    layers = layers_of(fields, row)
    types = fields.items("indexer_types")
    if types is not None:
        layers = [
            layer if kind == "full" else _without_indexer(layer)
            for layer, kind in zip(layers, types)
        ]
    return layers, ends_of(fields, row)


def _without_indexer(layer: LayerKind) -> LayerKind:
    (mixer,) = layer.mixers
    if not isinstance(mixer, MLA) or mixer.indexer is None:
        return layer
    shared = replace(mixer.indexer, shared=True)
    return replace(layer, mixers=(replace(mixer, indexer=shared),))


def _falcon(fields: Fields, row: Architecture) -> Built:
    """One KV head, as many as heads, or groups; MLP beside attention or behind it."""
    hidden, heads = hidden_of(fields), fields.positive("num_attention_heads")
    is_new, multi = fields.flag("new_decoder_architecture"), fields.flag("multi_query", True)
    given = fields.size("num_key_value_heads", heads)
    kv_heads = given if is_new else 1 if multi else heads
    biased = fields.flag("bias")
    parallel, norms = fields.flag("parallel_attn", True), fields.size("num_ln_in_parallel_attn", 0)
    norms = norms or (2 if is_new else 1)
    mixer = Attention(heads, kv_heads, hidden // heads, bias=biased, out_bias=biased, fused=True)
    width = fields.size("intermediate_size", 0) or 4 * hidden
    layer = LayerKind((mixer,), (MLP(width, bias=biased),), 2 * (min(2, norms) if parallel else 2))
    return [layer] * stacks.layer_count(fields), ends_of(fields, row)


def _opt(fields: Fields, row: Architecture) -> Built:
    """Learned positions with two more, and an embedding that may be narrower than the layers."""
    hidden, biased = hidden_of(fields), fields.flag("enable_bias", True)
    if not fields.flag("layer_norm_elementwise_affine", True):
        facts = {"field": "layer_norm_elementwise_affine", "value": False}
        raise refusal("config-value", "layer_norm_elementwise_affine", **facts)
    narrow = fields.positive("word_embed_proj_dim", hidden)
    if narrow != hidden:
        facts = {"field": "word_embed_proj_dim", "value": narrow}
        raise refusal("config-value", "word_embed_proj_dim", **facts)
    (mixer,) = mixers_of(fields, replace(row, bias=biased, out_bias=biased), stacks.FULL)
    mlp = mlp_of(fields, replace(row, mlp_bias=biased))
    layer = LayerKind((mixer,), (mlp,) if mlp else (), 4)
    positions = (fields.positive("max_position_embeddings") + 2) * hidden
    removed = fields.flag("_remove_final_layer_norm")
    final = fields.flag("do_layer_norm_before", True) and not removed
    ends = (
        *vector("positions", "positions", positions),
        *vector("final_norm", "norms", 2 * hidden * final),
    )
    return [layer] * stacks.layer_count(fields), ends


def _stablelm(fields: Fields, row: Architecture) -> Built:
    parallel, normed = fields.flag("use_parallel_residual"), fields.flag("qk_layernorm")
    (mixer,) = mixers_of(fields, row, stacks.FULL)
    assert isinstance(mixer, Attention)
    if normed:  # without biases, one for each head
        keys = mixer.key_width
        mixer = replace(mixer, q_norm=mixer.query_width, k_norm=keys)
    mlp = mlp_of(fields, row)
    layer = LayerKind((mixer,), (mlp,) if mlp else (), 2 if parallel else 4)
    return [layer] * stacks.layer_count(fields), ends_of(fields, row)


def _granite_shared(fields: Fields, row: Architecture) -> Built:
    """A shared MLP in every layer, beside experts where there are any."""
    count = stacks.layer_count(fields)
    types = stacks.mixer_types(fields, row.types, count)
    shared = fields.size("shared_intermediate_size", 0)
    part: MLP | Experts
    if fields.size("num_experts", 0):
        part = replace(experts_of(fields, row), shared=shared)
    else:
        part = MLP(shared, gated=True, fused=True)
    kinds = {kind: LayerKind(mixers_of(fields, row, kind), (part,)) for kind in {*types}}
    return [kinds[kind] for kind in types], ends_of(fields, row)


def _minimax_m3(fields: Fields, row: Architecture) -> Built:
    """Attention whose sparse layers choose blocks of keys by an indexer of their own."""
    sparse = fields.part("sparse_attention_config")
    if sparse is not None:
        facts = {"field": "sparse_attention_config", "value": "..."}
        raise refusal("config-value", "sparse_attention_config", **facts)
    count = stacks.layer_count(fields)
    types = stacks.mixer_types(fields, row.types, count)
    moe = stacks.routed(fields, row.routed, count)
    heads, dim = fields.positive("index_n_heads", 4), fields.positive("index_head_dim", 128)
    layers = []
    for kind, has_experts in zip(types, moe):
        (mixer,) = mixers_of(fields, row, kind)
        assert isinstance(mixer, Attention)
        others: tuple[Weight, ...] = ()
        if kind == "minimax_m3_sparse":
            others = (
                *linear("indexer.q_proj", "indexer", heads * dim, hidden_of(fields)),
                *linear("indexer.k_proj", "indexer", dim, hidden_of(fields)),
                *vector("indexer.q_norm", "indexer", dim),
                *vector("indexer.k_norm", "indexer", dim),
            )
        part = experts_of(fields, row) if has_experts else mlp_of(fields, row)
        layers.append(LayerKind((mixer,), (part,) if part else (), row.norms, others))
    return layers, ends_of(fields, row)


def _nemotron_h(fields: Fields, row: Architecture) -> Built:
    """Every layer is one thing, with one norm: a mixer, an MLP, or experts."""
    count = stacks.layer_count(fields)
    types = stacks.mixer_types(fields, row.types, count)
    latent = fields.size("moe_latent_size", 0)
    kinds: dict[str, LayerKind] = {}
    for kind in {*types}:
        if kind == "mlp":
            part = mlp_of(fields, row)
            kinds[kind] = LayerKind((), (part,) if part else (), 1)
        elif kind == "moe":
            if says(fields, row.mlp_bias):
                raise refusal("config-value", "mlp_bias", field="mlp_bias", value=True)
            kinds[kind] = LayerKind((), (replace(experts_of(fields, row), latent=latent),), 1)
        else:
            kinds[kind] = LayerKind(mixers_of(fields, row, kind), (), 1)
    return [kinds[kind] for kind in types], ends_of(fields, row)


def _lfm2(fields: Fields, row: Architecture) -> Built:
    """The MLP's width is two thirds of what is given, rounded up."""
    width = fields.positive("intermediate_size")
    if fields.flag("block_auto_adjust_ff_dim", True):
        width = int(2 * width / 3)
        factor = fields.value("block_ffn_dim_multiplier")
        if isinstance(factor, (int, float)):
            width = int(factor * width)
        multiple = fields.positive("block_multiple_of", 256)
        width = multiple * ((width + multiple - 1) // multiple)
    count = stacks.layer_count(fields)
    types = stacks.mixer_types(fields, row.types, count)
    mlp = MLP(width, gated=True)
    kinds = {kind: LayerKind(mixers_of(fields, row, kind), (mlp,)) for kind in {*types}}
    return [kinds[kind] for kind in types], ends_of(fields, row)


SPECIAL: dict[str, Callable[[Fields, Architecture], Built]] = {
    "gemma4": _gemma4,
    "longcat": _longcat,
    "deepseek_v4": _deepseek_v4,
    "shared_indexers": _shared_indexers,
    "falcon": _falcon,
    "opt": _opt,
    "stablelm": _stablelm,
    "granite_shared": _granite_shared,
    "minimax_m3": _minimax_m3,
    "nemotron_h": _nemotron_h,
    "lfm2": _lfm2,
}
"""By the name that an architecture's row has."""
