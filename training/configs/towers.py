"""Parts beside a language model that read pictures: their parameters, by kind of tower.

    block    4*h*h of attention, 2 or 3 matrices of h*f, two norms, biases where the tower has them
    tower    patches into h, positions, blocks, norms; behind them what projects into the model

Source: huggingface/transformers 5.24.0, the modeling files of each model; checked against what it
builds on the meta device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ..errors import refusal
from ..kinds import Weight
from ..model import Model, Tower
from .fields import Fields

Read = tuple[tuple[Tower, ...], tuple[str, ...]]
"""Towers, and what of them was not counted."""

NEUTRAL = frozenset(
    (
        *("architectures", "attention_dropout", "chunk_size_feed_forward", "dropout", "dtype"),
        *("fullatt_block_indexes", "hidden_act", "hidden_dropout", "id2label"),
        *("initializer_factor", "initializer_range", "is_encoder_decoder", "label2id"),
        *("layer_norm_eps", "merge_type", "model_type", "norm_eps", "num_attention_heads"),
        *("num_frames", "num_heads", "output_attentions", "output_hidden_states"),
        *("pos_emb_type", "problem_type", "projection_dim", "projector_dropout", "return_dict"),
        *("rms_norm_eps", "rope_parameters", "rope_theta", "tokens_per_second", "torch_dtype"),
        *("transformers_version", "use_cache", "video_attn_type"),
        *("vision_feature_select_strategy", "vocab_size", "window_size"),
    )
)
"""Fields of a tower that change no parameters, or only how they are used."""

WIDTHS = ("hidden_size", "intermediate_size", "patch_size")
"""Sizes that every tower has."""


def _part(fields: Fields, defaults: Mapping[str, object]) -> Fields:
    part = fields.part("vision_config", defaults)
    return part if part is not None else Fields({}, defaults)


def _require_read(part: Fields) -> None:
    unknown = sorted(
        name
        for name in part.unread() - NEUTRAL
        if not name.startswith("_") and part.raw[name] not in (False, 0, "", [], {})
    )
    if unknown:
        raise refusal("config-not-understood", unknown[0], names=", ".join(unknown[:5]))


Held = Counter[str]
"""Parameters by how ranks of a server divide them (training.kinds.weights)."""


def _whole(size: int) -> Held:
    return Counter({"": size})


def _times(number: int, held: Held) -> Held:
    return Counter({cut: number * size for cut, size in held.items()})


def _block(h: int, f: int, *, gated: bool, qkv: bool, out: bool, mlp: bool, vectors: int) -> Held:
    """One block; qkv, out, mlp: whether these have biases. Heads and the MLP's width are cut, and
    biases behind a sum whole."""
    into = 2 if gated else 1
    cut = 4 * h * h + 3 * h * qkv + (1 + into) * h * f + mlp * into * f
    return Counter({"tp": cut, "": h * out + mlp * h + 2 * vectors * h})


def _linear(out: int, into: int, bias: bool = True, *, first: bool = True) -> Held:
    """A projection: the first of two is cut by its outputs, the second by its inputs."""
    return Counter({"tp": out * into + out * bias * first, "": out * bias * (not first)})


def _tower(held: Held) -> Tower:
    return Tower("vision", tuple(Weight("vision", "towers", n, 1, cut) for cut, n in held.items()))


def _qwen2_5_vl(fields: Fields, model: Model) -> Read:
    part = _part(
        fields,
        {"depth": 32, "hidden_size": 3584, "intermediate_size": 3420, "in_channels": 3}
        | {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
        | {"out_hidden_size": 3584},
    )
    h, f = part.positive("hidden_size"), part.positive("intermediate_size")
    patches = _patches(part, h, bias=False)
    block = _block(h, f, gated=True, qkv=True, out=True, mlp=True, vectors=1)
    blocks = _times(part.positive("depth"), block)
    wide, out = h * part.positive("spatial_merge_size") ** 2, part.positive("out_hidden_size")
    merger = _whole(h) + _linear(wide, wide) + _linear(out, wide, first=False)
    _require_read(part)
    return (_tower(patches + blocks + merger),), ()


def _patches(part: Fields, h: int, *, bias: bool = True) -> Held:
    side, channels = part.positive("patch_size"), part.positive("in_channels")
    return _whole(channels * part.positive("temporal_patch_size") * side * side * h + h * bias)


def _qwen3_vl(fields: Fields, model: Model) -> Read:
    part = _part(
        fields,
        {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "in_channels": 3}
        | {"patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}
        | {"out_hidden_size": 3584, "num_position_embeddings": 2304},
    )
    h, f = part.positive("hidden_size"), part.positive("intermediate_size")
    start = _patches(part, h) + _whole(part.positive("num_position_embeddings") * h)
    block = _block(h, f, gated=False, qkv=True, out=True, mlp=True, vectors=2)
    blocks = _times(part.positive("depth"), block)
    wide, out = h * part.positive("spatial_merge_size") ** 2, part.positive("out_hidden_size")
    merged = _linear(wide, wide) + _linear(out, wide, first=False)
    taken = part.items("deepstack_visual_indexes")
    if taken is None and fields.raw.get("model_type") in ("qwen3_vl", "qwen3_vl_moe"):
        taken = [8, 16, 24]
    deep = _times(len(taken or ()), _whole(2 * wide) + merged)
    _require_read(part)
    return (_tower(start + blocks + _whole(2 * h) + merged + deep),), ()


def _llama4(fields: Fields, model: Model) -> Read:
    part = _part(
        fields,
        {"hidden_size": 768, "num_hidden_layers": 34, "intermediate_size": 5632}
        | {"vision_output_dim": 7680, "image_size": 448, "patch_size": 14, "num_channels": 3}
        | {"projector_input_dim": 4096, "projector_output_dim": 4096, "pixel_shuffle_ratio": 0.5},
    )
    h, f, side = (part.positive(name) for name in WIDTHS)
    cells = (part.positive("image_size") // side) ** 2 + 1
    start = Counter({"": 5 * h + cells * h, "tp": part.positive("num_channels") * side * side * h})
    block = _block(h, f, gated=False, qkv=True, out=True, mlp=True, vectors=2)
    blocks = _times(part.positive("num_hidden_layers"), block)
    inner, out = part.positive("projector_input_dim"), part.positive("projector_output_dim")
    part.value("pixel_shuffle_ratio")
    adapter = _linear(inner, f, False) + _linear(out, inner, False)
    biased = part.flag("multi_modal_projector_bias")
    if biased:
        facts = {"field": "multi_modal_projector_bias", "value": True}
        raise refusal("config-value", "multi_modal_projector_bias", **facts)
    projector = _linear(model.hidden, part.positive("vision_output_dim"), False)
    _require_read(part)
    return (_tower(start + blocks + adapter + projector),), ()


def _mistral3(fields: Fields, model: Model) -> Read:
    part = _part(
        fields,
        {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096}
        | {"num_channels": 3, "patch_size": 16, "num_attention_heads": 16, "image_size": 1024},
    )
    h, f, side = (part.positive(name) for name in WIDTHS)
    if part.size("head_dim", 0) not in (0, h // part.positive("num_attention_heads")):
        facts = {"field": "head_dim", "value": part.size("head_dim")}
        raise refusal("config-value", "head_dim", **facts)
    part.value("image_size")
    start = _whole(part.positive("num_channels") * side * side * h + h)
    block = _block(h, f, gated=True, qkv=False, out=False, mlp=False, vectors=1)
    blocks = _times(part.positive("num_hidden_layers"), block)
    biased = fields.flag("multimodal_projector_bias")
    merge = fields.positive("spatial_merge_size", 2)
    layers = fields.value("vision_feature_layer")
    if isinstance(layers, list):
        facts = {"field": "vision_feature_layer", "value": "[...]"}
        raise refusal("config-value", "vision_feature_layer", **facts)
    projector = _whole(h + merge * merge * h * h) + _linear(model.hidden, h, biased)
    projector += _linear(model.hidden, model.hidden, biased, first=False)
    _require_read(part)
    return (_tower(start + blocks + projector),), ()


def _gemma3(fields: Fields, model: Model) -> Read:
    part = _part(
        fields,
        {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072}
        | {"num_channels": 3, "patch_size": 16, "image_size": 224, "vision_use_head": True},
    )
    h, f, side = (part.positive(name) for name in WIDTHS)
    cells = (part.positive("image_size") // side) ** 2
    start = _whole(part.positive("num_channels") * side * side * h + h + cells * h)
    block = _block(h, f, gated=False, qkv=True, out=True, mlp=True, vectors=2)
    blocks = _times(part.positive("num_hidden_layers"), block) + _whole(2 * h)
    if part.flag("vision_use_head", True):  # a probe, attention, one norm and an MLP: not served
        blocks += Counter({"absent": sum(block.values()) - h})
    fields.value("mm_tokens_per_image")
    projector = _whole(h * model.hidden + h)
    _require_read(part)
    return (_tower(start + blocks + projector),), ()


def _glm4v(fields: Fields, model: Model) -> Read:
    part = _part(
        fields,
        {"depth": 24, "hidden_size": 1536, "intermediate_size": 13696, "in_channels": 3}
        | {"patch_size": 14, "image_size": 336, "spatial_merge_size": 2}
        | {"temporal_patch_size": 2, "out_hidden_size": 4096},
    )
    h, f, out = (
        part.positive(name) for name in ("hidden_size", "intermediate_size", "out_hidden_size")
    )
    cells = (part.positive("image_size") // part.positive("patch_size")) ** 2
    start = _whole(cells * h + 2 * h) + _patches(part, h)
    biased, merge = part.flag("attention_bias"), part.positive("spatial_merge_size")
    block = _block(h, out, gated=True, qkv=biased, out=False, mlp=False, vectors=1)
    blocks = _times(part.positive("depth"), block)
    merger = Counter({"tp": out * out + 3 * out * f, "": 2 * out})
    down = _whole(h * merge * merge * out + out)
    _require_read(part)
    return (_tower(start + blocks + merger + down),), ()


def _kimi_k25(fields: Fields, model: Model) -> Read:
    part = _part(
        fields,
        {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304}
        | {"patch_size": 14, "pos_emb_height": 64, "pos_emb_width": 64, "pos_emb_time": 4},
    )
    h, f, side = (part.positive(name) for name in WIDTHS)
    part.value("pos_emb_time")
    cells = part.positive("pos_emb_height") * part.positive("pos_emb_width")
    merges = part.items("merge_kernel_size") or [2, 2]
    if merges != [2, 2]:
        facts = {"field": "merge_kernel_size", "value": str(merges)}
        raise refusal("config-value", "merge_kernel_size", **facts)
    block = _block(h, f, gated=False, qkv=True, out=True, mlp=True, vectors=2)
    start = _whole(3 * side * side * h + h + cells * h)
    blocks = _times(part.positive("num_hidden_layers"), block) + _whole(2 * h)
    wide = 4 * fields.positive("projection_hidden_size", h)
    projector = _whole(2 * fields.positive("projection_hidden_size", h))
    projector += _linear(wide, wide) + _linear(model.hidden, wide, first=False)
    _require_read(part)
    return (_tower(start + blocks + projector),), ()


def _minimax_m3(fields: Fields, model: Model) -> Read:
    part = _part(
        fields,
        {"hidden_size": 1280, "num_hidden_layers": 32, "intermediate_size": 5120}
        | {"num_channels": 3, "patch_size": 14, "temporal_patch_size": 2, "image_size": 2016}
        | {"spatial_merge_size": 2},
    )
    h, f, side = (part.positive(name) for name in WIDTHS)
    part.value("image_size")
    cells = part.positive("num_channels") * part.positive("temporal_patch_size") * side * side
    start = _whole(cells * h + 2 * h)
    block = _block(h, f, gated=False, qkv=True, out=True, mlp=True, vectors=2)
    blocks = _times(part.positive("num_hidden_layers"), block)
    inner = fields.positive("projector_hidden_size", model.hidden)
    wide = model.hidden * part.positive("spatial_merge_size") ** 2
    if fields.positive("merged_hidden_size", wide) != wide:
        facts = {"field": "merged_hidden_size", "value": fields.size("merged_hidden_size")}
        raise refusal("config-value", "merged_hidden_size", **facts)
    projector = _linear(inner, h) + _linear(model.hidden, inner, first=False)
    projector += _linear(inner, wide) + _linear(model.hidden, inner, first=False)
    _require_read(part)
    return (_tower(start + blocks + projector),), ()


def _gemma4(fields: Fields, model: Model) -> Read:
    """Its towers are counted only where there is none."""
    for name in ("vision_config", "audio_config"):
        if fields.value(name) is not None:
            raise refusal("config-value", name, field=name, value="{...}")
    return (), ()


def _llava(fields: Fields, model: Model) -> Read:
    """A tower of CLIP and two projections."""
    part = _part(
        fields,
        {"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096}
        | {"num_channels": 3, "patch_size": 14, "image_size": 336},
    )
    if part.text("model_type", "clip_vision_model") != "clip_vision_model":
        facts = {"field": "vision_config.model_type", "value": part.text("model_type")}
        raise refusal("config-value", "vision_config", **facts)
    h, f, side = (part.positive(name) for name in WIDTHS)
    cells = (part.positive("image_size") // side) ** 2 + 1
    start = _whole(part.positive("num_channels") * side * side * h + cells * h + 5 * h)
    block = _block(h, f, gated=False, qkv=True, out=True, mlp=True, vectors=2)
    blocks = _times(part.positive("num_hidden_layers"), block)
    biased = fields.flag("multimodal_projector_bias", True)
    layers = fields.value("vision_feature_layer")
    taken = len(layers) if isinstance(layers, list) else 1
    projector = _linear(model.hidden, taken * h, biased)
    projector += _linear(model.hidden, model.hidden, biased, first=False)
    _require_read(part)
    return (_tower(start + blocks + projector),), ()


TOWERS: dict[str, Callable[[Fields, Model], Read]] = {
    "qwen2_5_vl": _qwen2_5_vl,
    "qwen3_vl": _qwen3_vl,
    "llama4": _llama4,
    "mistral3": _mistral3,
    "gemma3": _gemma3,
    "gemma4": _gemma4,
    "glm4v": _glm4v,
    "kimi_k25": _kimi_k25,
    "minimax_m3_vl": _minimax_m3,
    "llava": _llava,
}
"""By the name that an architecture's row has."""
