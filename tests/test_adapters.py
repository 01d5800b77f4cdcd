"""LoRA: adapters by peft's own count (tests/data/models/adapters.jsonl), and what a rank holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groups.errors import LayoutError
from tests.reference.ranks import configs
from training.adapters import FROZEN, adapter_memory, adapters
from training.configs.reading import read_config
from training.models import MODELS
from training.parameters import total_parameters
from training.recipe import Training
from training.split import Split

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("data").joinpath("models/adapters.jsonl").open()
]
LLAMA = MODELS["llama3-8b"].model


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']} {'+'.join(row['targets'])}")
def test_adapters_are_as_many_as_peft_adds(row):
    model = read_config(configs()[row["id"]]).model
    assert adapters(model, row["rank"], row["targets"]).parameters == row["parameters"]


def test_a_rank_twice_as_large_has_twice_the_adapters():
    assert adapters(LLAMA, 32).parameters == 2 * adapters(LLAMA, 16).parameters


def test_gradients_and_moments_are_of_adapters_alone():
    added = adapters(LLAMA, 16).parameters
    (stage,) = adapter_memory(LLAMA, Split(), Training(zero=0), 16)
    assert stage["frozen"] == 2 * total_parameters(LLAMA)
    assert stage["gradients"] == 4 * added
    assert stage["optimizer"] == 12 * added


def test_frozen_weights_are_in_their_format():
    (wide,), (narrow,) = (
        adapter_memory(LLAMA, Split(), Training(), 16, frozen=name) for name in ("bf16", "nf4")
    )
    tables = 2 * 2 * LLAMA.vocabulary * LLAMA.hidden
    share = (narrow["frozen"] - tables) / (wide["frozen"] - tables)
    assert share == pytest.approx(FROZEN["nf4"] / 2, rel=0.01)


def test_stages_share_the_adapters_of_their_layers():
    stages = adapter_memory(LLAMA, Split(pp=4), Training(), 16)
    assert sum(stage["parameters"] for stage in stages) == adapters(LLAMA, 16).parameters


def test_targets_that_there_are_not_are_named():
    with pytest.raises(LayoutError, match="there are") as refused:
        adapters(LLAMA, 16, ("query",))
    assert refused.value.code == "no-such-targets"
