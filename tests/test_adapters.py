"""LoRA: adapters by peft's own count (tests/data/models/adapters.jsonl), and what a rank holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groups.errors import LayoutError
from tests.reference.ranks import configs
from training.adapters import ONE, adapters
from training.configs.reading import read_config
from training.estimate import estimate
from training.estimate.used import Use
from training.memory.per_stage import memory_per_stage
from training.model import Model
from training.models import MODELS
from training.parameters import total_parameters
from training.recipe import FROZEN, Training
from training.split import Split
from training.traffic.demands import demands

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("data").joinpath("models/adapters.jsonl").open()
]
LLAMA = MODELS["llama3-8b"].model


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']} {'+'.join(row['targets'])}")
def test_adapters_are_as_many_as_peft_adds(row):
    model = read_config(configs()[row["id"]]).model
    assert adapters(model, row["rank"], row["targets"]).parameters == row["parameters"]


@pytest.mark.parametrize(
    ("name", "own", "usual", "sizes"),
    [("phi-0", "dense", "o_proj", ("hidden", "hidden")),
     ("opt-0", "out_proj", "o_proj", ("hidden", "hidden")),
     ("opt-0", "fc1", "up_proj", ("hidden", "ffn")),
     ("phi-0", "fc2", "down_proj", ("ffn", "hidden"))],
)  # fmt: skip
def test_targets_are_found_by_the_names_of_the_architectures_code(name, own, usual, sizes):
    """Modules are found by name: with one that is not there it counts the others alone."""
    model = read_config(configs()[name]).model
    each = 16 * sum(getattr(model, size) for size in sizes)
    assert adapters(model, 16, (own,)).parameters == model.layers * each
    others = adapters(model, 16, ("q_proj", "v_proj")).parameters
    assert adapters(model, 16, ("q_proj", "v_proj", usual)).parameters == others
    with pytest.raises(LayoutError, match=own):
        adapters(model, 16, (usual,))


def test_what_published_code_fuses_is_found_by_its_name():
    model = read_config(configs()["gpt_neox-0"]).model
    each = 16 * (model.hidden + 3 * model.hidden)
    assert adapters(model, 16, ("query_key_value",)).parameters == model.layers * each


def test_a_rank_twice_as_large_has_twice_the_adapters():
    assert adapters(LLAMA, 32).parameters == 2 * adapters(LLAMA, 16).parameters


def stages_of(split=ONE, **how):
    return memory_per_stage(LLAMA, split, Training(lora_rank=16, **how))


def test_gradients_and_moments_are_of_adapters_alone():
    added = adapters(LLAMA, 16).parameters
    (stage,) = stages_of(zero=0)
    assert stage.parts["weights"] == 2 * (total_parameters(LLAMA) + added)
    assert stage.parts["gradients"] == 4 * added
    assert stage.parts["optimizer"] == 12 * added


def test_frozen_weights_are_in_their_format():
    added = 2 * adapters(LLAMA, 16).parameters
    tables = 2 * 2 * LLAMA.vocabulary * LLAMA.hidden
    (wide,), (narrow,) = (stages_of(frozen=name) for name in ("bf16", "nf4"))
    sizes = [stage.parts["weights"] - added - tables for stage in (wide, narrow)]
    assert sizes[1] / sizes[0] == pytest.approx(FROZEN["nf4"] / 2, rel=0.01)


@pytest.mark.parametrize("how", [{"pp": 4}, {"pp": 2, "tp": 2}])
def test_stages_share_the_adapters_of_their_layers(how):
    split = Split(**how)
    trained = sum(stage.trained[0] for stage in stages_of(split))
    whole = adapters(LLAMA, 16).parameters
    assert trained == whole if split.tp == 1 else whole / 2 < trained < whole


@pytest.mark.parametrize(
    ("engine", "zero", "weights", "others"),
    [("megatron", 0, 1, 1), ("megatron", 1, 1, 1), ("megatron", 3, 8, 8), ("ddp", 0, 1, 1),
     ("fsdp2", 3, 8, 8), ("zero", 2, 1, 8), ("zero", 3, 8, 8)],
)  # fmt: skip
def test_ranks_cut_frozen_weights_where_they_cut_weights(engine, zero, weights, others):
    (one,) = stages_of(engine=engine, zero=zero)
    (eight,) = stages_of(Split(dp=8), engine=engine, zero=zero)
    assert eight.parts["weights"] == pytest.approx(one.parts["weights"] / weights)
    assert eight.parts["gradients"] == pytest.approx(one.parts["gradients"] / others)


def test_experts_have_adapters_where_peft_has_them_and_ep_deals_them():
    model = read_config(configs()["qwen3_moe-0"]).model
    whole, half = (
        memory_per_stage(model, split, Training(lora_rank=8))[0].trained
        for split in (Split(dp=2), Split(dp=2, ep=2))
    )
    assert half[1] == whole[1] / 2 > 0
    assert half[0] == whole[0]


def test_ranks_send_gradients_of_adapters_alone():
    split = Split(dp=8)
    sent = {
        rank: {
            one.what: max(one.volumes) for one in demands(LLAMA, split, Training(lora_rank=rank))
        }
        for rank in (0, 16)
    }
    share = adapters(LLAMA, 16).parameters / total_parameters(LLAMA)
    for what in ("gradients", "parameters"):
        assert sent[16][what] == pytest.approx(sent[0][what] * share)
    cut = {
        frozen: {
            one.what: max(one.volumes)
            for one in demands(LLAMA, split, Training(zero=3, lora_rank=16, frozen=frozen))
        }
        for frozen in ("bf16", "nf4")
    }
    assert cut["nf4"]["gradients"] == cut["bf16"]["gradients"] < cut["nf4"]["parameters"]
    assert cut["nf4"]["parameters"] < cut["bf16"]["parameters"] / 2


def test_a_step_with_frozen_weights_computes_two_thirds():
    full, lora = (
        estimate(LLAMA, gpus=8, tp=1, global_batch=64, sequence=4096, **more)
        for more in ({}, {"lora_rank": 16})
    )
    needed = [Use(one.request, 1.0).model_operations() for one in (full, lora)]
    assert 0.66 < needed[1] / needed[0] < 0.72
    assert 0.6 < lora.seconds / full.seconds < 0.85
    assert lora.memory < 0.6 * full.memory


def test_adapters_save_the_memory_that_was_measured():
    """modelscope/ms-swift docs/source_en/Megatron-SWIFT/LoRA-Training.md: Qwen2.5-7B on two GPUs
    with tp 2, adapters of rank 8 on all layers, full recomputation: 14 GiB and 0.45 s; with all
    weights trained 70 GiB and 0.61 s."""
    sizes = {"layers": 28, "hidden": 3584, "heads": 28, "kv_heads": 4, "ffn": 18944}
    qwen = Model(**sizes, vocabulary=152064, sequence=2048, gated=True, rms_norm=True, biases="qkv")
    (full,), (lora,) = (
        memory_per_stage(qwen, Split(tp=2), Training(recompute="full", lora_rank=rank))
        for rank in (0, 8)
    )
    assert (full.total - lora.total) / 2**30 == pytest.approx(70 - 14, abs=2)
    how = {"gpus": 2, "gpus_per_node": 2, "tp": 2, "global_batch": 16, "micro_batch": 16}
    times = [
        estimate(qwen, **how, sequence=512, recompute="full", lora_rank=rank).seconds
        for rank in (0, 8)
    ]
    assert times[1] / times[0] == pytest.approx(0.45 / 0.61, abs=0.08)


def test_targets_that_there_are_not_are_named():
    with pytest.raises(LayoutError, match="there are") as refused:
        adapters(LLAMA, 16, ("query",))
    assert refused.value.code == "no-such-targets"
