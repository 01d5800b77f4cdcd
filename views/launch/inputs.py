"""What a pasted text says, as fields of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from formats.launch import Parsed, parse
from groups import LayoutError
from training.models import MODELS

from ..base.state import State, as_text, fields_of
from ..base.training import UNKNOWN

UNASKED = {
    **{"cp": 1, "ep": 1, "etp": "", "instances": 1, "levels": "", "hybrid": False},
    **{"micro_batches": "", "schedule": ""},
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
    shape = {name: said.get(name) for name in ("layers", "hidden", "heads")}
    if all(isinstance(size, int) for size in shape.values()):
        like = (name for name, one in MODELS.items() if shape.items() <= vars(one.model).items())
        fields |= dict.fromkeys(fields_of("model"), "")
        fields["model"] = next(like, UNKNOWN)
    fields |= {name: said[name] for name in SAME if name in said}
    fields |= {field: said[name] for name, field in RENAMED.items() if name in said}
    for name in ("sequence_parallel", "tied"):
        if isinstance(said.get(name), bool):
            fields[name] = "on" if said[name] else "off"
    if said.get("distributed_optimizer") is True:
        fields.setdefault("zero", 1)
    if said.get("recompute") in ("none", "selective", "full"):
        fields["recompute"] = said["recompute"]
    fields |= _offload(said, fields.get("zero"))
    for name, precision in (("bf16", "bf16-fp32"), ("fp16", "fp16-fp16")):
        if said.get(name) is True:
            fields["precision"] = precision
    return {name: as_text(value) for name, value in fields.items()}


def _offload(said: dict[str, Any], zero: Any) -> dict[str, Any]:
    """What a text says is in host memory: of DeepSpeed, torchtitan, and Megatron's whole state."""
    away = (True, "cpu")
    if said.get("offload_param") in away:
        return {"offload": "parameters", "zero": 3 if zero is None else zero}
    is_whole = str(said.get("offload_fraction", "1.0")) in ("1", "1.0")
    if said.get("offload_optimizer") in away or (said.get("offload") is True and is_whole):
        return {"offload": "optimizer", "zero": 1 if zero is None else zero}
    return {}


SAME = (
    *("hidden", "ffn", "heads", "kv_heads", "head_dim", "vocabulary"),
    *("top_k", "expert_ffn", "zero"),
)
"""What launch files and the page call alike."""

RENAMED = {
    **{"seq": "sequence", "mtp": "mtp_layers"},
    **{"first": "first_layers", "last": "last_layers"},
}
"""What the page calls otherwise."""

USED = (
    *(*SAME, "sequence_parallel", "tied", "distributed_optimizer", "recompute", "bf16", "fp16"),
    *("offload", "offload_optimizer", "offload_param"),
)
"""What of a text's training counts in the views; the rest is shown as read and not used."""


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
