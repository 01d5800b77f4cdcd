"""Configurations with what transformers builds of them on the meta device, as lines of JSON.

    python -m tests.configs_of_transformers OUT [--seed N] [--each N] [model_type ...]

Of each architecture, the configuration that its class has without arguments, and random changes of
it: other sizes, switches turned, other layers. Needs torch and transformers, which no test of the
project does: what it wrote is kept in tests/data/models.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomllib

ROWS = Path(__file__).parents[1] / "training" / "configs" / "architectures.toml"
IGNORED = {"architectures", "model_type", "dtype", "torch_dtype", "id2label", "label2id"}
SECONDS = 60


class TooLongError(Exception):
    """A configuration that takes longer than SECONDS."""


def built(config: Any) -> Any:
    """The model of a configuration, without its numbers."""
    import torch
    from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING as WITH_PICTURES
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    auto = AutoModelForImageTextToText if type(config) in WITH_PICTURES else AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(config)
    model.tie_weights()
    return model


def layers_of(model: Any, count: int) -> list[int] | None:
    """Parameters of each layer: of the longest list of modules outside of towers."""
    import torch

    found = [
        module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList)
        and name.split(".")[-1] in ("layers", "h", "blocks")
        and "visual" not in name
        and "vision" not in name
    ]
    stack = next((module for module in found if len(module) == count), None)
    if stack is None:
        return None
    return [sum(weight.numel() for weight in layer.parameters()) for layer in stack]


def changed(config: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A configuration with a few sizes and switches changed."""
    other = copy.deepcopy(config)
    text = other.get("text_config") if isinstance(other.get("text_config"), dict) else other
    names = [name for name in text if name not in IGNORED and not name.startswith("_")]
    for name in draw.sample(names, min(len(names), draw.randint(1, 8))):
        value = text[name]
        if isinstance(value, bool):
            text[name] = not value
        elif isinstance(value, int) and value > 0 and "token" not in name:
            text[name] = max(1, int(value * draw.choice((0.5, 2, 1.5, 0.25))))
    for name in ("num_hidden_layers", "n_layer", "num_layers"):
        if name in text and draw.random() < 0.7:
            text[name] = draw.randint(1, 12)
            for lists in ("layer_types", "mlp_layer_types", "no_rope_layers", "moe_layers"):
                text.pop(lists, None)
            text.pop("indexer_types", None)
            text.pop("per_layer_config", None)
    if draw.random() < 0.4:  # what configurations leave out
        kept = {
            "model_type",
            "hidden_size",
            "num_attention_heads",
            "vocab_size",
            "n_embd",
            "n_head",
        }
        for name in draw.sample(sorted(text), len(text) // 3):
            if name not in kept:
                text.pop(name)
    if draw.random() < 0.4:  # what they say is not there
        names = sorted(name for name in text if name not in IGNORED | {"hidden_size", "vocab_size"})
        text |= dict.fromkeys(draw.sample(names, min(3, len(names))))
    types = text.get("layer_types")
    if isinstance(types, list) and draw.random() < 0.5:
        draw.shuffle(types)
    return other


def row_of(kind: str, config: dict[str, Any], number: int) -> dict[str, Any] | None:
    from transformers import CONFIG_MAPPING

    signal.alarm(SECONDS)
    try:
        given = {name: value for name, value in config.items() if name != "model_type"}
        made = CONFIG_MAPPING[kind](**copy.deepcopy(given))
        model = built(made)
        text = made.get_text_config()
        layers = layers_of(model, getattr(text, "num_hidden_layers", 0))
        total = sum(weight.numel() for weight in model.parameters())
        whole = {**config, "model_type": kind}
        expected = {"parameters": total, "layers": layers}
        return {"id": f"{kind}~{number}", "model_type": kind, "config": whole, "expected": expected}
    except Exception:  # what transformers refuses says nothing about parameters
        return None
    finally:
        signal.alarm(0)


def rows(kinds: list[str], each: int, seed: int) -> Iterator[dict[str, Any]]:
    from transformers import CONFIG_MAPPING

    for kind in kinds:
        if kind not in CONFIG_MAPPING:
            continue
        draw = random.Random(f"{seed} {kind}")
        start = json.loads(json.dumps(CONFIG_MAPPING[kind]().to_dict(), default=str))
        start.pop("transformers_version", None)
        for number in range(each):
            row = row_of(kind, start if not number else changed(start, draw), number)
            if row:
                yield row


def main() -> None:
    def alarm(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, alarm)
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("kinds", nargs="*")
    told = parser.parse_args()
    kinds = told.kinds or [*tomllib.loads(ROWS.read_text())]
    with Path(told.out).open("w") as file:
        for row in rows(kinds, told.each, told.seed):
            file.write(json.dumps(row) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
