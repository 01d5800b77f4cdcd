"""The endpoint for a model: what its config.json says that it is."""

from __future__ import annotations

import json

from training.configs.reading import ReadConfig, read_config
from training.facts import config_facts
from training.models import MODELS

from ..endpoint import serving
from ..state import require_choice


@serving()
def model_facts(config: str = "", model: str = "") -> str:
    """The facts of a model, from its config.json or by its name, as JSON.

    Bytes are of one layer in 16 bits, operations of one token forward.

    Args:
        config: the text of a config.json; empty: the published model.
        model: a published model, such as "llama3-70b", where there is no config.

    Returns:
        {"model_type", "parameters": {"all", "language", "outside_layers", "layers": [...],
        "routed": [...], "active", "by_kind"}, "layers": [{"mixer", "ffn"}, ...], "kinds": [...],
        "towers", "not_counted": [...], "assumed", "weights"}
    """
    if config:
        return json.dumps(config_facts(read_config(config)))
    name = require_choice("model", model, MODELS)
    published = MODELS[name]
    return json.dumps(config_facts(ReadConfig(published.model, name, weights=published.weights)))
