"""Which layer is of which kind: lists, patterns and intervals by which configurations say so."""

from __future__ import annotations

from groups.errors import quoted

from ..errors import refusal
from .fields import Fields

FULL, SLIDING, CHUNKED, LINEAR = (
    *("full_attention", "sliding_attention", "chunked_attention", "linear_attention"),
)

TYPES = {"attention": FULL, "mamba": LINEAR, "mamba2": LINEAR, "conv": "conv", "hybrid": "hybrid"}
"""Older names of layer types."""

PATTERN = {"M": LINEAR, "*": FULL, "-": "mlp", "E": "moe", "G": "delta", "D": "dsa", "+": "mla"}
"""The letters of hybrid patterns (Megatron's --hybrid-layer-pattern, Nemotron-H's)."""


def listed(fields: Fields, name: str, layers: int) -> list[str] | None:
    """A list of one type for each layer; None where it is absent.

    Errors: LayoutError for a list of another length or of other things than texts.
    """
    found = fields.items(name)
    if found is None:
        return None
    types = [TYPES.get(one, one) if isinstance(one, str) else "" for one in found]
    if len(types) != layers or not all(types):
        raise refusal("config-list-of-layers", name, field=name, count=len(types), layers=layers)
    return types


def interval(every: int, layers: int, last: str, others: str) -> list[str]:
    """Of ``every`` layers the last one is of its own type.

    >>> interval(3, 4, "full_attention", "sliding_attention")[1:]
    ['sliding_attention', 'full_attention', 'sliding_attention']
    """
    if every < 1:
        return [others] * layers
    return [last if (layer + 1) % every == 0 else others for layer in range(layers)]


def of_pattern(text: str) -> list[str]:
    """The types of a pattern's layers; "|" ends a stage, "/" starts MTP modules.

    >>> of_pattern("M*-E")
    ['linear_attention', 'full_attention', 'mlp', 'moe']

    Errors: LayoutError for a letter that means no layer.
    """
    letters = text.split("/")[0].replace("|", "")
    for letter in letters:
        if letter not in PATTERN:
            raise refusal("config-pattern", "pattern", value=quoted(letter), known="".join(PATTERN))
    return [PATTERN[letter] for letter in letters]


def mixer_types(fields: Fields, rule: str, layers: int) -> list[str]:
    """The type of each layer's mixer, by the rule of an architecture."""
    types = listed(fields, "layer_types", layers)
    if types is not None:
        return types
    return _RULES[rule](fields, layers)


def _full(fields: Fields, layers: int) -> list[str]:
    return [FULL] * layers


def _windows(fields: Fields, layers: int) -> list[str]:
    """A window in every layer where one is given (Mistral), from a layer on (Qwen2)."""
    if not fields.flag("use_sliding_window", True) or not fields.size("sliding_window", 0):
        return [FULL] * layers
    first = fields.size("max_window_layers", 0)
    return [SLIDING if layer >= first else FULL for layer in range(layers)]


def _sliding(fields: Fields, layers: int) -> list[str]:
    every = fields.size("sliding_window_pattern", fields.size("_sliding_window_pattern", 2))
    return interval(every, layers, FULL, SLIDING)


def _delta(fields: Fields, layers: int) -> list[str]:
    return interval(fields.size("full_attention_interval", 4), layers, FULL, LINEAR)


def _period(fields: Fields, layers: int) -> list[str]:
    period, offset = fields.positive("attn_layer_period"), fields.size("attn_layer_offset")
    return [FULL if layer % period == offset else LINEAR for layer in range(layers)]


def _kimi(fields: Fields, layers: int) -> list[str]:
    """Lists of layers, counted from 1; without them every fourth but the first attends to all."""
    part = fields.part("linear_attn_config")
    lists = [part.items(name) if part else None for name in ("kda_layers", "full_attn_layers")]
    linear, full = lists
    if linear is None or full is None:
        return [FULL if layer and layer % 4 == 0 else LINEAR for layer in range(layers)]
    if sorted([*linear, *full], key=str) != sorted(range(1, layers + 1), key=str):
        facts = {"field": "kda_layers", "count": len(linear) + len(full), "layers": layers}
        raise refusal("config-list-of-layers", "linear_attn_config", **facts)
    return [LINEAR if layer + 1 in linear else FULL for layer in range(layers)]


COMPRESSED = {
    0: SLIDING,
    4: "compressed_sparse_attention",
    128: "heavily_compressed_attention",
}
"""DeepSeek-V4's layers by the tokens that one key stands for, as its published configurations say
them (``compress_ratios``)."""


def _compressed(fields: Fields, layers: int) -> list[str]:
    ratios = fields.items("compress_ratios")
    if ratios is None:
        heavy, sparse = COMPRESSED[128], COMPRESSED[4]
        return [sparse if layer > 1 and layer % 2 else heavy for layer in range(layers)]
    for ratio in ratios[:layers]:
        if ratio not in COMPRESSED:
            raise refusal("config-value", "compress_ratios", field="compress_ratios", value=ratio)
    if len(ratios) < layers:
        facts = {"field": "compress_ratios", "count": len(ratios), "layers": layers}
        raise refusal("config-list-of-layers", "compress_ratios", **facts)
    return [COMPRESSED[ratio] for ratio in ratios[:layers]]  # type: ignore[index]


def _nope(fields: Fields, layers: int) -> list[str]:
    """Llama 4: layers without rotary positions attend to everything."""
    ropes = fields.items("no_rope_layers")
    if not ropes:
        every = fields.size("no_rope_layer_interval", 4)
        return interval(every, layers, FULL, CHUNKED)
    return [CHUNKED if rope else FULL for rope in ropes]


def _indices(fields: Fields, layers: int) -> list[str]:
    held = fields.items("attn_layer_indices") or fields.items("full_attn_idxs") or []
    return [FULL if layer in held else LINEAR for layer in range(layers)]


def _indices_or_all(fields: Fields, layers: int) -> list[str]:
    held = fields.items("full_attn_idxs")
    return [FULL] * layers if held is None else _indices(fields, layers)


def _lightning(fields: Fields, layers: int) -> list[str]:
    kinds = fields.items("attn_type_list")
    if kinds is None:
        return [FULL if layer % 2 == 0 else LINEAR for layer in range(layers)]
    return [FULL if kind == 1 else LINEAR for kind in kinds]


def _state(fields: Fields, layers: int) -> list[str]:
    return [LINEAR] * layers


def _hybrid(fields: Fields, layers: int) -> list[str]:
    return ["hybrid"] * layers


def _pattern(fields: Fields, layers: int) -> list[str]:
    types = listed(fields, "layers_block_type", layers)
    return types if types is not None else of_pattern(fields.text("hybrid_override_pattern"))


_RULES = {
    "full": _full,
    "windows": _windows,
    "sliding": _sliding,
    "delta": _delta,
    "period": _period,
    "kimi": _kimi,
    "compressed": _compressed,
    "nope": _nope,
    "indices": _indices,
    "indices_or_all": _indices_or_all,
    "lightning": _lightning,
    "state": _state,
    "hybrid": _hybrid,
    "pattern": _pattern,
}


def layer_count(fields: Fields) -> int:
    """The number of layers, which patterns may say instead of a number."""
    for name in ("layers_block_type", "hybrid_override_pattern"):
        value = fields.value(name)
        if isinstance(value, list):
            return len(value)
        if isinstance(value, str):
            return len(of_pattern(value))
    return fields.positive("num_hidden_layers")


# -- feed-forwards -------------------------------------------------------------------------------


def routed(fields: Fields, rule: str, layers: int) -> list[bool]:
    """Whether each layer has experts, by the rule of an architecture."""
    types = fields.items("mlp_layer_types")
    if types is not None:
        if len(types) != layers:
            facts = {"field": "mlp_layer_types", "count": len(types), "layers": layers}
            raise refusal("config-list-of-layers", "mlp_layer_types", **facts)
        for name in ("first_k_dense_replace", "moe_layer_freq"):
            fields.value(name)
        return [kind != "dense" for kind in types]
    return _ROUTED[rule](fields, layers)


def _all(fields: Fields, layers: int) -> list[bool]:
    return [True] * layers


def _first_dense(fields: Fields, layers: int, otherwise: int = 0) -> list[bool]:
    first = fields.size("first_k_dense_replace", fields.size("num_dense_layers", otherwise))
    every = fields.size("moe_layer_freq", 1)
    if every != 1:  # which published implementations disagree about
        raise refusal("config-value", "moe_layer_freq", field="moe_layer_freq", value=every)
    return [layer >= first for layer in range(layers)]


def _one_dense(fields: Fields, layers: int) -> list[bool]:
    return _first_dense(fields, layers, 1)


def _sparse_step(fields: Fields, layers: int) -> list[bool]:
    step, dense = fields.size("decoder_sparse_step", 1), fields.items("mlp_only_layers") or []
    return [layer not in dense and (layer + 1) % (step or 1) == 0 for layer in range(layers)]


def _expert_period(fields: Fields, layers: int) -> list[bool]:
    period, offset = fields.positive("expert_layer_period"), fields.size("expert_layer_offset")
    experts = fields.size("num_experts", 1)
    return [experts > 1 and layer % period == offset for layer in range(layers)]


def _interleaved(fields: Fields, layers: int) -> list[bool]:
    held, step = fields.items("moe_layers"), fields.size("interleave_moe_layer_step", 1)
    if held is None:
        return [step > 0 and (layer + 1) % step == 0 for layer in range(layers)]
    return [layer in held for layer in range(layers)]


def _start_to_end(fields: Fields, layers: int) -> list[bool]:
    start, end = fields.size("moe_layer_start_index", 0), fields.value("moe_layer_end_index")
    every = fields.positive("moe_layer_interval", 1)
    last = layers - 1 if not isinstance(end, int) or end < 0 else end
    return [(n + 1) % every == 0 and start <= n <= last for n in range(layers)]


def _frequencies(fields: Fields, layers: int) -> list[bool]:
    held = fields.items("moe_layer_freq")
    return [bool(one) for one in held] if held else [True] * layers


_ROUTED = {
    "all": _all,
    "first_dense": _first_dense,
    "one_dense": _one_dense,
    "sparse_step": _sparse_step,
    "expert_period": _expert_period,
    "interleaved": _interleaved,
    "start_to_end": _start_to_end,
    "frequencies": _frequencies,
}
