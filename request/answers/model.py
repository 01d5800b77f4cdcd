"""The endpoint for a model: what its config.json says that it is."""

from __future__ import annotations

import json

from groups.mesh import whole_number
from training.adapters import adapter_facts
from training.configs.reading import ReadConfig, read_config
from training.facts import config_facts
from training.models import MODELS

from ..endpoint import serving
from ..state import require_choice


@serving()
def model_facts(
    config: str = "", model: str = "", lora_rank: int = 0, lora_targets: str = "all-linear"
) -> str:
    """The facts of a model, from its config.json or by its name, as JSON.

    Bytes are of one layer in 16 bits, operations of one token forward, and of a whole sequence
    as torch counts them in transformers (products of matrices and convolutions; no window is used).

    Args:
        config: the text of a config.json; empty: the published model.
        model: a published model, such as "llama3-70b", where there is no config.
        lora_rank: the rank of adapters that are counted too; 0: none.
        lora_targets: names of linear layers with adapters, with commas between them.

    Returns:
        {"model_type", "parameters": {"all", "language", "outside_layers", "layers": [...],
        "routed": [...], "active", "by_kind"}, "layers": [{"mixer", "ffn"}, ...], "kinds": [...],
        "sequence_operations", "towers", "not_counted": [...], "assumed", "weights"}, and of
        adapters "adapters": {"rank", "targets", "parameters", "frozen_bytes", "state_bytes",
        "gradient_bytes", "full_gradient_bytes"}
    """
    if config:
        read = read_config(config)
    else:
        name = require_choice("model", model, MODELS)
        read = ReadConfig(MODELS[name].model, name, weights=MODELS[name].weights)
    facts = config_facts(read)
    if whole_number(lora_rank, "lora_rank", minimum=0):
        targets = [name.strip() for name in lora_targets.split(",") if name.strip()]
        facts["adapters"] = adapter_facts(read.model, lora_rank, targets)
    return json.dumps(facts)
