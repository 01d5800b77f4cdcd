"""The mixers of one layer, from the fields of a configuration: a builder for each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..errors import refusal
from ..kinds import (
    KDA,
    MLA,
    Attention,
    Compressed,
    GatedDelta,
    Indexer,
    Lightning,
    Mamba1,
    Mamba2,
    Mixer,
    ShortConv,
)
from .architecture import Architecture, Value
from .fields import Fields

Builder = Callable[[Fields, Architecture], Mixer]


def says(fields: Fields, value: Value) -> bool:
    """A value of an architecture: itself, or what the field that it names says."""
    return fields.flag(value) if isinstance(value, str) else value


def mixers_of(fields: Fields, row: Architecture, layer_type: str) -> tuple[Mixer, ...]:
    """The mixers of a layer of this type.

    Errors: LayoutError for a type that the architecture does not have.
    """
    known = {**_USUAL, **row.mixers}
    if layer_type not in known:
        facts = {"value": layer_type, "known": ", ".join(known)}
        raise refusal("config-layer-type", "layer_types", **facts)
    names = known[layer_type].split("+") if known[layer_type] else []
    return tuple(_BUILDERS[name](fields, row) for name in names)


def hidden_of(fields: Fields) -> int:
    return fields.positive("hidden_size")


def _attention(fields: Fields, row: Architecture) -> Attention:
    hidden, heads = hidden_of(fields), fields.positive("num_attention_heads")
    kv_heads = fields.positive("num_key_value_heads", heads)
    head_dim = fields.positive("head_dim", hidden // heads)
    is_normed = bool(row.qk) and (not row.qk_if or fields.flag(row.qk_if))
    widths = {"head": (1, 1), "heads": (heads, kv_heads), "all": (heads, kv_heads)}
    norms = (0, 0)
    if is_normed:
        vectors = row.qk_vectors or row.vectors
        queries, keys = (vectors * number * head_dim for number in widths[row.qk])
        norms = (queries, keys)
    return Attention(
        *(heads, kv_heads, head_dim),
        bias=says(fields, row.bias),
        out_bias=says(fields, row.out_bias),
        q_norm=norms[0],
        k_norm=norms[1],
        gate=row.gate,
        sinks=row.sinks,
        even=row.even,
        fused="qkv" in row.fused,
    )


def _sliding(fields: Fields, row: Architecture) -> Attention:
    window = fields.positive(row.window)
    return replace(_attention(fields, row), reach="sliding", window=window)


def _chunked(fields: Fields, row: Architecture) -> Attention:
    chunk = fields.positive("attention_chunk_size")
    return replace(_attention(fields, row), reach="chunked", window=chunk)


def _mla(fields: Fields, row: Architecture) -> MLA:
    return MLA(
        heads=fields.positive("num_attention_heads"),
        kv_lora_rank=fields.positive("kv_lora_rank"),
        nope=fields.positive("qk_nope_head_dim"),
        rope=fields.positive("qk_rope_head_dim"),
        value=fields.positive("v_head_dim"),
        q_lora_rank=fields.size("q_lora_rank", 0),
        bias=says(fields, row.bias),
    )


def _dsa(fields: Fields, row: Architecture) -> MLA:
    own = _mla(fields, row)
    if not own.q_lora_rank:
        raise refusal("config-lacks", "q_lora_rank", field="q_lora_rank")
    heads, dim = fields.positive("index_n_heads"), fields.positive("index_head_dim")
    indexer = Indexer(heads, dim, fields.size("index_topk", 0), own.q_lora_rank)
    return replace(own, indexer=indexer)


RATES = {
    "compressed_sparse_attention": ("compress_rate_csa", 4),
    "heavily_compressed_attention": ("compress_rate_hca", 128),
}
"""The older fields of DeepSeek-V4's tokens to a key, and how many they are without any field."""


def _compressed(rate: str) -> Builder:
    def build(fields: Fields, row: Architecture) -> Compressed:
        tokens = fields.size(*RATES[rate]) if rate else 0
        rates, indexer = fields.part("compress_rates"), None
        if rates and rate and rates.has(rate):
            tokens = rates.positive(rate)
        if rate == "compressed_sparse_attention":
            heads, dim = fields.positive("index_n_heads"), fields.positive("index_head_dim")
            indexer = Indexer(heads, dim, fields.size("index_topk", 0))
        return Compressed(
            heads=fields.positive("num_attention_heads"),
            head_dim=fields.positive("head_dim"),
            q_rank=fields.positive("q_lora_rank"),
            groups=fields.positive("o_groups"),
            o_rank=fields.positive("o_lora_rank"),
            window=fields.positive("sliding_window"),
            rate=tokens,
            indexer=indexer,
        )

    return build


def _delta(fields: Fields, row: Architecture) -> GatedDelta:
    return GatedDelta(
        key_heads=fields.positive("linear_num_key_heads"),
        value_heads=fields.positive("linear_num_value_heads"),
        key_dim=fields.positive("linear_key_head_dim"),
        value_dim=fields.positive("linear_value_head_dim"),
        kernel=fields.positive("linear_conv_kernel_dim"),
        split=row.split,
    )


def _kda(fields: Fields, row: Architecture) -> KDA:
    part = fields.part("linear_attn_config")
    if part is not None and not fields.has("linear_num_heads"):
        heads, dim = part.positive("num_heads"), part.positive("head_dim")
        return KDA(heads, dim, part.positive("short_conv_kernel_size"))
    heads, dim = fields.positive("linear_num_heads"), fields.positive("linear_head_dim")
    return KDA(heads, dim, fields.positive("linear_conv_kernel_dim"))


def _lightning(fields: Fields, row: Architecture) -> Lightning:
    heads = fields.positive("num_attention_heads")
    dim = fields.positive("head_dim", hidden_of(fields) // heads)
    return Lightning(heads, dim, fields.positive("block_size", 256))


def _mamba(fields: Fields, row: Architecture) -> Mamba1:
    """Mamba-1 of Mamba's own configurations."""
    inner = fields.size("intermediate_size", 0)
    return Mamba1(
        inner=inner or fields.positive("expand") * hidden_of(fields),
        state=fields.positive("state_size"),
        kernel=fields.positive("conv_kernel"),
        rank=_rank(fields, "time_step_rank"),
        bias=fields.flag("use_bias"),
        conv_bias=fields.flag("use_conv_bias", True),
    )


def _rank(fields: Fields, name: str) -> int:
    """The width of dt: a sixteenth of the hidden size where it is "auto" or not said."""
    if fields.value(name) in (None, "auto"):
        return -(-hidden_of(fields) // 16)
    return fields.positive(name)


def _jamba(fields: Fields, row: Architecture) -> Mamba1:
    return Mamba1(
        inner=fields.positive("mamba_expand") * hidden_of(fields),
        state=fields.positive("mamba_d_state"),
        kernel=fields.positive("mamba_d_conv"),
        rank=_rank(fields, "mamba_dt_rank"),
        bias=fields.flag("mamba_proj_bias"),
        conv_bias=fields.flag("mamba_conv_bias", True),
        norms=True,
    )


def _mamba2(fields: Fields, row: Architecture) -> Mamba2:
    """Mamba-2 of Mamba's own configurations."""
    heads, dim = fields.positive("num_heads"), fields.positive("head_dim")
    expand = fields.positive("expand", 2)
    if expand * hidden_of(fields) != heads * dim:
        raise refusal("config-value", "expand", field="expand", value=expand)
    return Mamba2(
        *(heads, dim, fields.positive("n_groups"), fields.positive("state_size")),
        fields.positive("conv_kernel"),
        norm=heads * dim,
        bias=fields.flag("use_bias"),
        conv_bias=fields.flag("use_conv_bias", True),
        chunk=fields.positive("chunk_size", 256),
    )


def _nemotron(fields: Fields, row: Architecture) -> Mamba2:
    heads, dim = fields.positive("mamba_num_heads"), fields.positive("mamba_head_dim")
    return Mamba2(
        *(heads, dim, fields.positive("n_groups"), fields.positive("ssm_state_size")),
        fields.positive("conv_kernel"),
        norm=heads * dim,
        bias=fields.flag("use_bias"),
        conv_bias=fields.flag("use_conv_bias", True),
        chunk=fields.positive("chunk_size", 128),
    )


def _bamba(fields: Fields, row: Architecture) -> Mamba2:
    """Mamba-2 of Bamba and Granite 4."""
    hidden, heads = hidden_of(fields), fields.positive("mamba_n_heads")
    inner = fields.size("mamba_d_ssm", 0) or fields.positive("mamba_expand") * hidden
    dim = inner // heads
    if fields.value("mamba_d_head") != "auto":
        dim = fields.positive("mamba_d_head")
    if dim * heads != inner:
        facts = {"field": "mamba_d_head", "value": dim}
        raise refusal("config-value", "mamba_d_head", **facts)
    return Mamba2(
        *(heads, dim, fields.positive("mamba_n_groups"), fields.positive("mamba_d_state")),
        fields.positive("mamba_d_conv"),
        norm=inner,
        bias=fields.flag("mamba_proj_bias"),
        conv_bias=fields.flag("mamba_conv_bias", True),
        chunk=fields.positive("mamba_chunk_size", 256),
    )


def _falcon_h1(fields: Fields, row: Architecture) -> Mamba2:
    own = _bamba(fields, row)
    norm = own.norm if fields.flag("mamba_rms_norm") else 0
    if fields.flag("projectors_bias"):
        facts = {"field": "projectors_bias", "value": True}
        raise refusal("config-value", "projectors_bias", **facts)
    return replace(own, norm=norm)


def _conv(fields: Fields, row: Architecture) -> ShortConv:
    width, kernel = hidden_of(fields), fields.positive("conv_L_cache")
    return ShortConv(width, kernel, fields.flag("conv_bias"))


_USUAL = {
    "full_attention": "attention",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
}
"""The builder of each type of layer, where an architecture has no other."""

_BUILDERS: dict[str, Builder] = {
    "attention": _attention,
    "sliding": _sliding,
    "chunked": _chunked,
    "mla": _mla,
    "dsa": _dsa,
    "heavily_compressed": _compressed("heavily_compressed_attention"),
    "compressed_sparse": _compressed("compressed_sparse_attention"),
    "uncompressed": _compressed(""),
    "delta": _delta,
    "kda": _kda,
    "lightning": _lightning,
    "mamba": _mamba,
    "jamba": _jamba,
    "mamba2": _mamba2,
    "nemotron": _nemotron,
    "bamba": _bamba,
    "falcon_h1": _falcon_h1,
    "conv": _conv,
}
