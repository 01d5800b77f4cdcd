"""The command model: what a config.json, or a known model, holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from formats.documents.tables import Table

from .inputs import CommandLine

COLUMNS = (
    *("mixer", "ffn", "layers", "parameters", "token_bytes", "state_bytes", "window"),
    *("operations", "operations_long"),
)


@dataclass(frozen=True)
class ModelReport(Table):
    """A row for each kind of layer, and all facts, which JSON prints alone."""

    facts: dict[str, Any] = field(default_factory=dict)

    def _json(self) -> Iterator[str]:
        yield json.dumps(self.facts, indent=2) + "\n"


def model(inputs: CommandLine) -> Table:
    """The facts of a config.json or of a model by its name."""
    from training.configs.reading import ReadConfig, read_config
    from training.facts import LENGTHS, config_facts
    from training.models import MODELS

    (word,) = inputs.words
    if word in MODELS:
        published = MODELS[word]
        read = ReadConfig(published.model, word, weights=published.weights)
    else:
        read = read_config(inputs.text(word))
    facts: Any = config_facts(read)
    rows = [
        [*(kind[name] for name in COLUMNS[:-2]), *(kind["operations"][n] for n in LENGTHS)]
        for kind in facts["kinds"]
    ]
    counted = facts["parameters"]
    active = counted["active"]
    before = [f"{facts['model_type']}: {counted['all']:,} parameters"]
    if active is not None and active != counted["all"]:
        before[0] += f", {active:,} of them for a token"
    before += [f"  {name} {number:,}" for name, number in counted["by_kind"].items()]
    after = [f"not counted: {note}" for note in facts["not_counted"]]
    if facts["assumed"]:
        told = ", ".join(f"{name} {value}" for name, value in facts["assumed"].items())
        after.append(f"not said, taken from the architecture: {told}")
    short, long = LENGTHS
    after.append(f"operations: of one token forward, with {short:,} and {long:,} before it")
    return ModelReport("model", COLUMNS, rows, before=before, after=after, facts=facts)
