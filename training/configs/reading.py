"""A config.json as a model: its layers, what is outside of them, and what was not counted.

    text or dict -> architecture (model_type) -> Fields -> layers of training.kinds -> Model

Nothing is guessed: an architecture or a field that is not understood, and that might change the
parameters, is named and refused, with what was understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import cast

from groups.errors import LayoutError, quoted

from ..errors import refusal
from ..kinds.weights import vector
from ..model import Model, Tower
from .architecture import ARCHITECTURES, Architecture, defaults_of, neutral_fields
from .fields import Fields
from .megatron import TYPE, read_megatron
from .mixers import hidden_of, says
from .parts import ends_of, layers_of
from .special import SPECIAL
from .towers import TOWERS

MAX_TEXT = 4_000_000
"""The longest config.json, in characters."""

CORE = ("hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads")
"""Sizes without which a configuration of its own says too little."""


@dataclass(frozen=True)
class ReadConfig:
    """A configuration that was read.

    Attributes:
        model_type: its architecture.
        not_counted: what the model has beyond ``model``, in words.
        assumed: fields that it does not say, with the values that its architecture has for them.
        weights: the format of its quantized weights; "" if they are not.
    """

    model: Model
    model_type: str
    not_counted: tuple[str, ...] = ()
    assumed: Mapping[str, object] | None = None
    weights: str = ""


def read_config(config: str | Mapping[str, object]) -> ReadConfig:
    """The model of a config.json: its text, or the object that it says.

    >>> read = read_config({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2,
    ...                     "num_attention_heads": 32, "intermediate_size": 11008,
    ...                     "vocab_size": 32000, "num_key_value_heads": 8, "rope_theta": 1e4})
    >>> read.model.layers, read.model.kv_heads
    (2, 8)
    >>> read_config({"model_type": "llama", "hidden_size": 4096, "extra_experts": 8})
    Traceback (most recent call last):
    groups.errors.LayoutError: config.json lacks num_hidden_layers, vocab_size, num_attention_heads

    Errors: LayoutError for what is no configuration, and for what is not understood of one.
    """
    raw = _object(config)
    kind = type_of(raw)
    if not kind:
        raise refusal("config-without-type", "model_type")
    if kind == TYPE:
        return ReadConfig(read_megatron(raw), kind)
    if kind not in ARCHITECTURES:
        raise _unknown(kind, raw)
    row = ARCHITECTURES[kind]
    return _composite(raw, kind, row) if row.tower else _language(raw, kind, row)


def type_of(raw: Mapping[str, object]) -> str:
    """The architecture of a configuration: its model_type, else that of its class's name.

    >>> type_of({"architectures": ["Qwen3MoeForCausalLM"]}), type_of({"hidden_size": 64})
    ('qwen3_moe', '')
    """
    kind, classes = raw.get("model_type"), raw.get("architectures")
    if isinstance(kind, str):
        return kind
    if not isinstance(classes, list) or len(classes) != 1 or not isinstance(classes[0], str):
        return ""
    name = _CLASS.sub("", classes[0]).lower()
    return next((one for one in ARCHITECTURES if one.replace("_", "") == name), classes[0])


_CLASS = re.compile(r"(ForCausalLM|ForConditionalGeneration|LMHeadModel|Model)$")


def _object(config: str | Mapping[str, object]) -> Mapping[str, object]:
    if isinstance(config, Mapping):
        return config
    if len(config) > MAX_TEXT:
        raise refusal("text-too-long", "config", count=len(config), limit=MAX_TEXT)
    try:
        found = json.loads(config)
    except (ValueError, RecursionError):
        raise refusal("config-no-json", "config") from None
    if not isinstance(found, dict):
        raise refusal("config-no-json", "config")
    return found


def _unknown(kind: str, raw: Mapping[str, object]) -> LayoutError:
    """The refusal of an architecture that has no row, with what was understood."""
    near = get_close_matches(kind, ARCHITECTURES, 3, 0.6)
    text = raw.get("text_config")
    inside = Fields(cast("Mapping[str, object]", text) if isinstance(text, Mapping) else raw)
    known = []
    for name in (*CORE, "num_key_value_heads", "intermediate_size", "num_experts"):
        try:
            if inside.has(name):
                known.append(f"{name} {inside.size(name)}")
        except LayoutError:
            continue
    facts = {"value": quoted(kind), "known": ", ".join(known) or "-", "near": ", ".join(near)}
    return refusal("config-unknown", "model_type", **facts)


def _composite(raw: Mapping[str, object], kind: str, row: Architecture) -> ReadConfig:
    """A language model with a tower beside it."""
    fields = Fields(raw, defaults_of(kind))
    text = fields.part("text_config")
    inner = dict(text.raw) if text else {}
    own = inner.get("model_type") or row.text
    if not isinstance(own, str) or own not in ARCHITECTURES:
        raise _unknown(str(own), raw)
    if row.tied == "either":
        own_tied = fields.flag("tie_word_embeddings")
        inner["tie_word_embeddings"] = own_tied or inner.get("tie_word_embeddings") is True
    elif row.tied != "text":
        inner["tie_word_embeddings"] = says(fields, row.tied)
    fields.value("tie_word_embeddings")
    read = _language({**inner, "model_type": own}, own, ARCHITECTURES[own], is_nested=True)
    towers, notes = TOWERS[row.tower](fields, read.model)
    _require_read(fields, kind)
    model = _with_towers(read.model, towers)
    weights = read.weights or _weights(fields)
    notes = (*read.not_counted, *notes)
    return ReadConfig(model, kind, notes, read.assumed, weights)


def _with_towers(model: Model, towers: tuple[Tower, ...]) -> Model:
    return replace(model, towers=tuple(tower for tower in towers if tower.parameters))


def _language(
    raw: Mapping[str, object], kind: str, row: Architecture, *, is_nested: bool = False
) -> ReadConfig:
    fields = Fields(raw, defaults_of(kind))
    if not is_nested:
        missing = [name for name in CORE if not _is_said(fields, name)]
        if missing:
            raise refusal("config-lacks", missing[0], field=", ".join(missing))
    for name, value in row.fixed.items():
        found = fields.value(name)
        if found is not None and found != value:
            raise refusal("config-value", name, field=name, value=quoted(found))
    hidden = hidden_of(fields)
    weights = _weights(fields)
    if row.special:
        layers, ends = SPECIAL[row.special](fields, row)
    else:
        layers = layers_of(fields, row)
        ends = ends_of(fields, row)
    if row.called:
        layers = [replace(layer, called=(*row.called.items(),)) for layer in layers]
    tied = says(fields, row.tied)
    fields.value("tie_word_embeddings")
    vocabulary = fields.positive("vocab_size")
    if row.output_bias:
        ends += vector("lm_head.bias", "output", vocabulary, "absent")
    notes = _notes(fields)
    length = fields.size("max_position_embeddings", 4096) or 4096
    _require_read(fields, kind)
    model = Model.of_layers(
        layers,
        hidden=hidden,
        vocabulary=vocabulary,
        sequence=length,
        tied=tied,
        rms_norm=row.vectors == 1,
        ends=ends,
        everywhere=row.everywhere,
    )
    return ReadConfig(model, kind, notes, fields.assumed, weights)


def _is_said(fields: Fields, name: str) -> bool:
    if name == "num_hidden_layers":
        patterns = ("layers_block_type", "hybrid_override_pattern")
        return fields.has(name) or any(map(fields.has, patterns))
    if name == "num_attention_heads":  # which a model of states lacks
        return fields.has(name) or name not in fields.defaults
    return fields.has(name)


def _notes(fields: Fields) -> tuple[str, ...]:
    """What published implementations leave out of the model, and its checkpoint may have."""
    notes = []
    for name in ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"):
        modules = fields.size(name, 0)
        if modules:
            notes.append(f"{name} {modules}: modules of multi-token prediction")
    return tuple(notes)


def _weights(fields: Fields) -> str:
    """The format of quantized weights: one of training.serving.weights.FORMATS, or its name."""
    part = fields.part("quantization_config")
    if part is None:
        return ""
    method = part.text("quant_method") or part.text("quant_algo")
    bits = part.size("bits", 0) or part.size("w_bit", 0)
    named = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4", "nvfp4": "nvfp4", "awq": "int4"}
    if method.lower() in named:
        return named[method.lower()]
    return {4: "int4", 8: "int8"}.get(bits, method)


def _require_read(fields: Fields, kind: str) -> None:
    """Raises LayoutError for fields that were not read and might change the parameters."""
    unknown = sorted(
        name
        for name in fields.unread() - neutral_fields(kind) - defaults_of(kind).keys()
        if not name.startswith("_") and fields.raw[name] not in (False, 0, "", [], {})
    )
    if unknown:
        names = ", ".join(unknown[:5]) + (" ..." if len(unknown) > 5 else "")
        raise refusal("config-not-understood", unknown[0], names=names)
