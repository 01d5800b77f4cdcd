"""What one rank holds, keeps and computes of a model, against what other programs do.

tests/data/models/SOURCE.md says which programs; tests/reference/ranks.py asks the product.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reference.ranks import configs, megatron, vllm
from training.configs.reading import read_config
from training.facts import token_operations
from training.model import Model
from training.serving.kept import kept_bytes, request_bytes
from training.serving.layers import stage_layers

DATA = Path(__file__).with_name("data") / "models"


def rows(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").open()]


def model_of(name) -> Model:
    return read_config(configs()[name]).model


MEGATRON = {row["id"]: row for row in rows("megatron_ranks")}


@pytest.mark.parametrize("name", MEGATRON)
def test_every_stage_holds_what_megatron_makes(name):
    row = MEGATRON[name]
    assert megatron(row) == [stage["parameters"] for stage in row["stages"]]


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_every_rank_holds_what_vllm_makes(tp):
    found = [row for row in rows("vllm_ranks") if row["tp"] == tp]
    wrong = [row["id"] for row in found if vllm(row) != row["parameters"]]
    assert found
    assert not wrong


def test_a_rank_keeps_of_a_token_and_of_a_request_what_vllm_plans():
    for row in rows("vllm_cache"):
        model, tp = model_of(row["id"]), row["tp"]
        held = stage_layers(model.layers, row["pp"], "vllm")[row["rank"] // tp]
        mixers = [mixer for at in held for mixer in model.stack[at].mixers]
        assert sum(mixer.rank_token_bytes(tp) for mixer in mixers) == row["bytes_per_token"]
        states = [kept_bytes(mixer, 0, "vllm", tp) for mixer in mixers]
        assert sum(states) == row["state_bytes_per_request"]


def test_a_request_keeps_what_transformers_keeps():
    for row in rows("state"):
        model = model_of(row["id"])
        kept = [request_bytes(model, tokens, "transformers") for tokens in (256, 768)]
        assert kept == [row["bytes_at_256_tokens"], row["bytes_at_768_tokens"]], row["id"]


WITH_STATES = {
    *("qwen3_next-0", "qwen3_5_text-0", "qwen3_5_moe_text-0", "qwen3_5-0", "qwen3_5_moe-0"),
    *("kimi_linear-0", "nemotron_h-0", "falcon_h1-0", "mamba-0", "mamba2-0"),
}
"""Their scans are counted in parts, or not at all."""

OTHERWISE = {"llama4_text-0", "deepseek_v4-0"}
"""Every expert runs on every token; a window is computed as if it were everything."""


def test_a_token_takes_the_operations_that_torch_counts():
    for row in rows("flops"):
        name, model = row["id"], model_of(row["id"])
        constant = token_operations(model, 0)
        slope = token_operations(model, 1) - constant
        near = 0.05 if name in WITH_STATES else 1e-9
        if name not in OTHERWISE:
            assert constant == pytest.approx(row["per_token_constant"], rel=near), name
        if name not in OTHERWISE | WITH_STATES:
            assert slope == pytest.approx(row["per_token_per_context_token"]), name
