"""What a pasted text says, as fields of the page."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from formats.launch import Parsed, parse
from formats.launch.emit import OF_MODEL
from groups import LayoutError
from training.memory.per_stage import PRECISIONS
from training.models import MODELS

from ..base.state import State, as_text, fields_of, is_empty, parse_number
from ..base.training import UNKNOWN

UNASKED = {
    "cp": 1,
    "ep": 1,
    "etp": "",
    "instances": 1,
    "levels": "",
    "hybrid": False,
    "micro_batches": "",
    "schedule": "",
}
"""Sizes and options of a job whose text is silent about them."""


def read_pasted(state: State) -> Parsed:
    """What the pasted text says; a run of a text that stood there before counts as none.

    Errors: LayoutError if the text is no text, or too long.
    """
    try:
        return parse(state.paste, as_text(state.run))
    except LayoutError as error:
        if error.control != "run":
            raise
        return parse(state.paste)


def stated(state: State, text: Parsed) -> dict[str, Any]:
    """What the pasted text changes of the state."""
    pasted = with_pasted(state, text)
    changes = {n: value for n, value in vars(pasted).items() if value != getattr(state, n)}
    return {**changes, **training_stated(text)}


def training_stated(text: Parsed) -> dict[str, str]:
    """The fields of the model and its training that the pasted text states.

    A model is the published one of these layers, widths and heads, else one of the reader's own.

    >>> text = parse("--num-layers 80 --hidden-size 8192 --num-attention-heads 64")
    >>> {name: value for name, value in training_stated(text).items() if value}
    {'model': 'llama3-70b', 'hidden': '8192', 'heads': '64'}
    """
    said: dict[str, Any] = {**text.values, **text.training}
    fields: dict[str, Any] = {}
    if not {"hidden", "heads"}.isdisjoint(said):
        kept = ("cluster", "capacity")  # nothing else of the job that stood there before
        fields |= dict.fromkeys(fields_of("model", "training", "traffic"), "")
        fields = {name: value for name, value in fields.items() if name not in kept}
        fields |= _shape(said, text.framework.job if text.framework else "")
    fields |= {name: said[name] for name in SAME if name in said}
    fields |= {field: said[name] for name, field in RENAMED.items() if name in said}
    for name in SWITCHES:
        if isinstance(said.get(name), bool):
            fields[name] = "on" if said[name] else "off"
    for name, (field, values) in WORDS.items():
        word = str(said.get(name, "")).lower()
        if word in values:
            fields[field] = values[word]
    if said.get("linear_biases") is False:
        fields["biases"] = "none"
    if said.get("qkv_biases") is True:
        fields["biases"] = "qkv"
    if match := _FIRST_DENSE.fullmatch(str(said.get("moe_freq", ""))):
        fields["dense_layers"] = int(match[1])
    if said.get("distributed_optimizer") is True:
        fields["zero"] = fields.get("zero") or 1
    fields |= _recomputed(said) | _offload(said, fields.get("zero") or None)
    for name, precision in (("bf16", "bf16-fp32"), ("fp16", "fp16-fp16")):
        if said.get(name) is True:
            fields["precision"] = precision
    if said.get("fp8"):
        fields["products"] = "mxfp8" if said.get("fp8_recipe") == "mxfp8" else "fp8"
    return {name: as_text(value) for name, value in fields.items()}


def _shape(said: dict[str, Any], framework: str) -> dict[str, str]:
    """The published model that no stated size contradicts; else one of the reader's own, of which
    Megatron has what its options do not take away."""
    sizes = {"experts": 0, **{name: said[name] for name in SHAPE if name in said}}
    if not {"layers", "hidden", "heads"} <= sizes.keys():
        return {"model": UNKNOWN}
    is_megatron = framework.startswith("megatron")
    if is_megatron:
        wide = {} if sizes.get("gated") else {"ffn": 4 * sizes["hidden"], "gated": False}
        sizes = {"kv_heads": sizes["heads"], **wide, **sizes}
    like = (
        name for name, published in MODELS.items() if sizes.items() <= vars(published.model).items()
    )
    name = next(like, UNKNOWN)
    return {"model": name, **(MEGATRONS if is_megatron and name == UNKNOWN else {})}


_FIRST_DENSE = re.compile(r"\(?\[0\]\*(\d{1,4})\+\[1\]\*\d{1,4}\)?")
"""Megatron's pattern of layers without experts and with them, where the former come first."""

SHAPE = (
    *("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "gated", "experts"),
    *("top_k", "expert_ffn", "shared_expert_ffn", "q_lora_rank", "kv_lora_rank"),
)
"""What of a text has to be as a published model has it."""

MEGATRONS = {"tied": "on", "biases": "all", "learned_positions": "on"}
"""What a model has whose script is silent (NVIDIA/Megatron-LM d98e8a6, arguments.py), beside an
MLP of 4 x hidden, not gated, and as many heads of keys as of queries."""


def _recomputed(said: dict[str, Any]) -> dict[str, str]:
    """What is computed again, by its newest name or an older one."""
    word = said.get("recompute")
    if word not in ("none", "selective", "full"):
        word = "full" if said.get("recompute_whole") is True else ""
        word = word or ("selective" if said.get("recompute_core") is True else "")
    if word == "selective" and said.get("recompute_modules", "core_attn") != "core_attn":
        word = "partial"
    return {"recompute": word} if word else {}


def _offload(said: dict[str, Any], zero: Any) -> dict[str, Any]:
    """What a text says is in host memory: of DeepSpeed, torchtitan, and Megatron's whole state."""
    away = (True, "cpu")
    if said.get("offload_param") in away:
        return {"offload": "parameters", "zero": 3 if zero is None else zero}
    is_whole = str(said.get("offload_fraction", "1.0")) in ("1", "1.0")
    if said.get("offload_optimizer") in away or (said.get("offload") is True and is_whole):
        return {"offload": "optimizer", "zero": 1 if zero is None else zero}
    return {}


SAME = (*OF_MODEL, "head_dim", "zero")
"""What launch files and the page call alike."""

RENAMED = {
    "seq": "sequence",
    "mtp": "mtp_layers",
    "first": "first_layers",
    "last": "last_layers",
}
"""What the page calls otherwise."""

SWITCHES = ("sequence_parallel", "tied", "gated", "flash")
"""What is on or off in both."""

_OFF = dict.fromkeys(("rope", "rotary", "none", "alibi", "mrope", "yarn"), "off")
_BF16 = dict.fromkeys(("bf16", "bf16-mixed", "bf16-true", "bfloat16"), "bf16-fp32")
_FP16 = dict.fromkeys(("16", "fp16", "16-mixed", "float16"), "fp16-fp16")
WORDS: dict[str, tuple[str, dict[str, str]]] = {
    "activation": ("gated", dict.fromkeys(("swiglu", "fast-swiglu", "geglu", "fast-geglu"), "on")),
    "norm": ("rms_norm", {"rmsnorm": "on", "layernorm": "off"}),
    "positions": ("learned_positions", {"learned_absolute": "on", "learned": "on", **_OFF}),
    "attention": ("flash", {"flash": "on", "fused": "on", "unfused": "off", "local": "off"}),
    "precision": ("precision", {**_BF16, **_FP16}),
}
"""What a word says: the page's field, and its values."""

_FIELDS = {
    **{name: field for name, (field, _) in WORDS.items()},
    **dict.fromkeys(("linear_biases", "qkv_biases"), "biases"),
    **dict.fromkeys(("recompute_core", "recompute_whole", "recompute_modules"), "recompute"),
    **dict.fromkeys(("fp8", "fp8_recipe"), "products"),
    "grouped": "kv_heads",
    "latent": "kv_lora_rank",
    "moe_freq": "dense_layers",
    **dict.fromkeys(("bf16", "fp16"), "precision"),
    **dict.fromkeys(("offload", "offload_optimizer", "offload_param"), "offload"),
    "distributed_optimizer": "zero",
    "recompute": "recompute",
}

USED = {**{name: name for name in (*SAME, *SWITCHES)}, **RENAMED, **_FIELDS}
"""The page's field of what counts of a text's training; the rest is read and not used."""


def with_pasted(state: State, read: Parsed) -> State:
    """With every value that a pasted text says of the job.

    What it does not state of the job is as where nobody asks for it: its groups are the text's own.
    """
    start = State()
    stale = {"vpp": "", "account": False, "experts": ""} if "layers" in read.values else {}
    silent = {name: value for name, value in UNASKED.items() if name not in read.asks}
    values = {**silent, **stale, **read.assumed, **read.values}
    return replace(
        state,
        **{
            name: _as_control(value, getattr(start, name))
            for name, value in values.items()
            if name in fields_of("job")
        },
    )


def _as_control(value: Any, start: Any) -> Any:
    if isinstance(start, bool):
        return value is True
    if isinstance(value, (list, tuple)):
        return "x".join(map(str, value))
    return "" if value is None else str(value) if isinstance(start, str) else value


# -- what the page says, as a command has it ------------------------------------------------------


def training_said(state: State) -> dict[str, Any]:
    """How the model is trained, as far as somebody said it."""
    said: dict[str, Any] = {}
    for field, values in _SAID.items():
        said |= values.get(as_text(getattr(state, field)), {})
    if state.sequence_parallel == "on":
        said["sequence_parallel"] = True
    if not is_empty(state.zero):
        zero = parse_number(state.zero)
        said |= {"zero": zero, "distributed_optimizer": zero == 1}
    return said


_WHOLE = {"recompute_method": "uniform", "recompute_layers": 1}
_PARTS = ("layernorm", "core_attn")
_SAID: dict[str, dict[str, dict[str, Any]]] = {
    "recompute": {
        "selective": {"recompute": "selective"},
        "partial": {"recompute": "selective", "recompute_modules": _PARTS},
        "full": {"recompute": "full", **_WHOLE},
    },
    "precision": {"fp16-fp16": {"fp16": True}}
    | {name: {"bf16": True} for name in PRECISIONS if "bf16" in name},
    "products": {
        "fp8": {"fp8": "hybrid"},
        "mxfp8": {"fp8": "e4m3", "fp8_recipe": "mxfp8"},
    },
}
"""What a choice of the page is in launch files."""
