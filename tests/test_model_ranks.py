"""What one rank holds, keeps and computes of a model, against what other programs do.

tests/data/models/SOURCE.md says which programs; tests/reference/ranks.py asks the product.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reference.ranks import configs, megatron, vllm
from training.configs.reading import read_config
from training.facts import sequence_operations, token_operations
from training.kinds import Experts, LayerRun, Mamba2, StateMixer
from training.kinds.latent import Compressed
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


def as_torch_runs(name) -> Model:
    """The model, with every expert for every token where transformers' code runs them so."""
    model = model_of(name)
    if name != "llama4_text-0":
        return model
    layers = [
        replace(layer, feed_forwards=tuple(map(_of_all_experts, layer.feed_forwards)))
        for layer in model.stack
    ]
    return replace(model, runs=tuple(LayerRun(layer) for layer in layers))


def _of_all_experts(part):
    return replace(part, top_k=part.experts) if isinstance(part, Experts) else part


FLOPS = {row["id"]: row for row in rows("flops")}


@pytest.mark.parametrize("name", FLOPS)
def test_a_sequence_takes_the_operations_that_torch_counts(name):
    model = as_torch_runs(name)
    counted = {length: sequence_operations(model, int(length)) for length in ("256", "768")}
    assert counted == FLOPS[name]["operations"]


def test_a_token_takes_the_operations_of_a_sequence_where_nothing_is_padded():
    for name, row in FLOPS.items():
        model = as_torch_runs(name)
        mixers = [mixer for kind in model.kinds for mixer in kind.mixers]
        if any(isinstance(mixer, (StateMixer, Compressed)) for mixer in mixers):
            continue
        constant = token_operations(model, 0)
        slope = token_operations(model, 1) - constant
        assert constant == pytest.approx(row["per_token_constant"], rel=1e-9), name
        assert slope == pytest.approx(row["per_token_per_context_token"]), name


def test_chunks_of_tokens_are_filled_and_states_go_from_each_to_each_later_one():
    """Not in the file: 300 tokens in chunks of 128 are 3 chunks."""
    mamba = Mamba2(heads=8, dim=64, groups=1, state=128, kernel=4, norm=512, chunk=128)
    inside = 384 * (2 * 128 * (128 + 64) + 4 * 128 * 64)
    assert mamba.scan_products(300) == 8 * (inside + 2 * 4**2 * 64 * 128)
