"""The shortest configuration of the same model, for links and boxes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from groups.errors import LayoutError
from groups.kept import kept

from .reading import CORE, ReadConfig, read_config, type_of

KEPT = ("model_type", "max_position_embeddings", "quantization_config", *CORE)
"""Fields that stay whatever follows from others."""


@kept
def read_text(text: str) -> ReadConfig:
    """A config.json's text, read once. Errors: LayoutError, as of `read_config`."""
    return read_config(text)


def is_config(text: str) -> bool:
    """Whether a text is a config.json of a model: an object that names its architecture.

    >>> is_config('{"model_type": "llama"}'), is_config("vllm serve"), is_config("{}")
    (True, False, False)
    """
    if not text.lstrip().startswith("{") or not any(name in text for name in _TYPES):
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and type_of(found) != ""


_TYPES = ('"model_type"', '"architectures"')


def compact(config: str | Mapping[str, object]) -> str:
    """A configuration without what changes nothing, as text.

    >>> sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    >>> sizes |= {"vocab_size": 1000, "intermediate_size": 128, "max_position_embeddings": 512}
    >>> compact({"model_type": "llama", **sizes, "rope_theta": 1e4, "attention_bias": False})
    '{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,\
"vocab_size":1000,"intermediate_size":128,"max_position_embeddings":512}'

    Errors: LayoutError for what is not understood.
    """
    raw = json.loads(config) if isinstance(config, str) else dict(config)
    start = read_config(raw)
    left = dict(raw)
    for name, value in [*left.items()]:
        if isinstance(value, dict) and name != "quantization_config":
            for inner in [*value]:
                less = _without(value, inner)
                if _same({**left, name: less}, start):
                    left[name] = value = less
        elif name not in KEPT and _same(_without(left, name), start):
            left = _without(left, name)
    return json.dumps(left, separators=(",", ":"), default=str)


def _without(config: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in config.items() if key != name}


def _same(config: Mapping[str, object], start: ReadConfig) -> bool:
    try:
        return read_config(config).model == start.model
    except LayoutError:
        return False
