"""The model of a Megatron command whose layers are not alike: a hybrid pattern, or experts in some.

    --hybrid-layer-pattern M-M*-     one letter a layer; older: --hybrid-override-pattern
    --moe-layer-freq 2, ([0]*3+[1])*8    experts in every second layer, in those with a 1

Such a model is a configuration by Megatron's own names (training.configs.megatron), as a
config.json is one by its architecture's. "|" in a pattern ends a stage.

Source: NVIDIA/Megatron-LM d98e8a6 megatron/training/arguments.py (and its defaults).
"""

from __future__ import annotations

import json

from groups.stages.layout_strings import write_layout
from training.configs.megatron import TYPE

from ..values import Document, Facts
from .counts import experts_in

NAMES = {
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "ffn": "ffn_hidden_size",
    "head_dim": "kv_channels",
    "vocabulary": "vocab_size",
    "seq": "seq_length",
    "gated": "gated_linear_unit",
    "norm": "normalization",
    "qk_norm": "qk_layernorm",
    "qkv_biases": "add_qkv_bias",
    "experts": "num_moe_experts",
    "top_k": "moe_router_topk",
    "expert_ffn": "moe_ffn_hidden_size",
    "shared_expert_ffn": "moe_shared_expert_intermediate_size",
    "mtp": "mtp_num_layers",
    "mamba_state": "mamba_state_dim",
    "mamba_head": "mamba_head_dim",
    "mamba_groups": "mamba_num_groups",
    "mamba_heads": "mamba_num_heads",
    **{name: name for name in ("q_lora_rank", "kv_lora_rank", "v_head_dim")},
    "qk_nope_head_dim": "qk_head_dim",
    "qk_rope_head_dim": "qk_pos_emb_head_dim",
}
"""Megatron's own names of what its options set."""


def config_of(values: Document) -> str:
    """The configuration of a model whose layers are not alike, as text; empty where they are, or
    where the sizes do not say it.

    >>> config_of({"pattern": "M*", "hidden": 256, "heads": 4, "vocabulary": 1000, "seq": 64})[:46]
    '{"model_type": "megatron", "hidden_size": 256,'
    """
    layers, pattern = values.get("layers"), values.get("pattern")
    every: list[int] | int | None = None
    if not pattern and isinstance(layers, int) and values.get("experts"):
        every = experts_in(str(values.get("moe_freq", "1")), layers)
        if every is None or every == 1 or (isinstance(every, list) and every == sorted(every)):
            return ""  # dense layers first, which sizes say
    if not (pattern or every) or not {"hidden", "heads"} <= values.keys():
        return ""
    config: Facts = {"model_type": TYPE}
    found = {**config, **{name: values[own] for own, name in NAMES.items() if own in values}}
    found["num_layers"] = layers
    found["add_bias_linear"] = values.get("linear_biases", True)
    found["tie_word_embeddings"] = values.get("tied", True)
    if values.get("grouped") and "kv_heads" in values:
        found["num_query_groups"] = values["kv_heads"]
    unsaid = "none" if pattern else "learned_absolute"
    found["position_embedding_type"] = values.get("positions", unsaid)
    found |= {"hybrid_layer_pattern": pattern} if pattern else {"moe_layer_freq": every}
    return json.dumps({name: value for name, value in found.items() if value is not None})


def layout_of(values: Document) -> str:
    """The pipeline layout of a pattern that ends stages; empty for others.

    >>> layout_of({"pattern": "M*|M-"}), layout_of({"pattern": "M*"})
    ('Et*2|t*2L', '')
    """
    own, *modules = str(values.get("pattern", "")).split("/")
    if "|" not in own:
        return ""
    return write_layout([len(stage) for stage in own.split("|")], len(modules))
