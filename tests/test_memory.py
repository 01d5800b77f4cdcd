"""Memory per rank: ZeRO's figure and table, Korthikanti's formulas, Megatron's estimator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from training.memory.activations import embedding_activations, layer_activations, output_activations
from training.memory.per_stage import memory_per_stage, zero_model_state_bytes
from training.model import Model
from training.models import MODELS
from training.parameters import stage_parameters
from training.recipe import PRECISIONS, Training
from training.split import Split

FACTS = json.loads((Path(__file__).parent / "data" / "memory.json").read_text(encoding="utf-8"))
GB = 1e9


# -- model states --------------------------------------------------------------------------------


def test_zero_figure_1():
    figure = FACTS["zero"]["figure1"]
    found = [zero_model_state_bytes(7.5e9, dp=64, stage=stage) / GB for stage in range(4)]
    assert found == [120.0, 31.40625, 16.640625, 1.875]
    assert [round(one, 1) for one in found] == list(figure["paper_GB"].values())


@pytest.mark.parametrize(
    "row", FACTS["zero"]["table1"], ids=lambda row: f"{row['model']}-{row['nd']}-{row['stage']}"
)
def test_zero_table_1(row):
    stage = int(row["stage"][-1])
    found = zero_model_state_bytes(row["psi"], dp=row["nd"], stage=stage) / GB
    printed = str(row["paper_GB"])
    last_digit = 10.0 ** -len(printed.partition(".")[2])  # the paper rounds here, truncates there
    assert found == pytest.approx(row["formula_GB"], abs=5.1e-5)  # stored in four decimals
    assert found == pytest.approx(row["paper_GB"], abs=last_digit)


FORMATS = {"fp16_fp16": "fp16-fp16", "bf16_fp32": "bf16-fp32", "fp32_fp32": "fp32-fp32"}


@pytest.mark.parametrize("name", FORMATS)
def test_megatrons_distributed_optimizer_is_zero_1_in_its_precisions(name):
    one = PRECISIONS[FORMATS[name]]
    for row in FACTS["megatron_distributed_optimizer"]["vectors"]:
        found = zero_model_state_bytes(
            1,
            dp=row["d"],
            stage=1,
            optimizer_bytes=one.optimizer,
            weight_bytes=one.weight,
            gradient_bytes=one.gradient,
        )
        assert found == row[name]


def test_moments_in_16_bits_save_four_bytes_of_each_parameter():
    """DeepSeek-V3 keeps its copy of the weights in 32 bits, and both moments in 16."""
    wide, narrow = PRECISIONS["bf16-fp32"], PRECISIONS["bf16-fp32-bf16"]
    assert replace(narrow, optimizer=narrow.optimizer + 4, moments=narrow.moments + 4) == wide


# -- what arXiv:2205.05198 leaves out --------------------------------------------------------------

PLAIN = Model(layers=4, hidden=4096, heads=32, ffn=14336, gated=True, vocabulary=256_000,
              sequence=4096)  # fmt: skip


def test_masks_are_those_of_dropout_and_scores_those_without_flash_attention():
    kept = {
        (dropout, flash): sum(
            layer_activations(
                PLAIN,
                Split(),
                Training(recompute="none", sequence_parallel=False, dropout=dropout, flash=flash),
            ).values()
        )
        for dropout in (False, True)
        for flash in (False, True)
    }
    tokens, scores = PLAIN.sequence, PLAIN.heads * PLAIN.sequence**2
    assert kept[True, True] - kept[False, True] == 2 * tokens * PLAIN.hidden
    assert kept[False, False] - kept[False, True] == 2 * scores
    assert kept[True, False] - kept[True, True] == 5 * scores


def test_every_number_of_activations_has_32_bits_with_the_weights_but_for_masks():
    split = Split(tp=2)
    for recompute in ("none", "selective", "full"):
        for model in (PLAIN, MODELS["deepseek-v3"].model):
            bf16, fp32 = (
                Training(recompute=recompute, flash=False, precision=precision, micro_batch=2)
                for precision in ("bf16-fp32", "fp32-fp32")
            )
            kept, twice = (
                layer_activations(model, split, training, model.kinds[-1])
                for training in (bf16, fp32)
            )
            assert twice == {part: 2 * number for part, number in kept.items()}
            masked, wide = (
                sum(layer_activations(model, split, replace(each, dropout=True)).values())
                for each in (bf16, fp32)
            )
            masks = 2 * masked - wide
            assert (masks > 0) == (recompute != "full")
            assert wide == 2 * (masked - masks) + masks
    logits = 4 * PLAIN.sequence * PLAIN.vocabulary
    inputs = [
        output_activations(PLAIN, Split(), Training(precision=precision)) - logits
        for precision in ("bf16-fp32", "fp32-fp32")
    ]
    assert inputs[1] == 2 * inputs[0]


def test_a_large_vocabulary_has_its_logits_twice_at_the_loss():
    many = memory_per_stage(PLAIN, Split(), Training(micro_batch=8))[0]
    assert many.parts["working"] == 2 * 8 * PLAIN.sequence * PLAIN.vocabulary  # 16 bits beside 32


def test_a_product_s_gradient_waits_beside_the_sum():
    narrow = replace(PLAIN, vocabulary=1024)
    first = memory_per_stage(narrow, Split(pp=2), Training())[0]
    widest = 2 * PLAIN.ffn
    assert first.parts["working"] == widest * (2 * PLAIN.sequence + 4 * PLAIN.hidden)


# -- activations, arXiv:2205.05198 ---------------------------------------------------------------

ACTIVATIONS = FACTS["activations"]["vectors"]
TECHNIQUES = {
    #                t cuts   SP     recompute
    "none": (False, False, "none"),
    "tp": (True, False, "none"),
    "tp_sp": (True, True, "none"),
    "tp_sel": (True, False, "selective"),
    "tp_sp_sel": (True, True, "selective"),
    "full": (True, False, "full"),
    "full_sharded": (True, True, "full"),
}


def configuration(row: dict) -> tuple[Model, Split, Training]:
    model = Model(
        layers=row["L"],
        hidden=row["h"],
        heads=row["a"],
        vocabulary=row["vocab"],
        sequence=row["s"],
        tied=True,
    )
    v = row["v_interleave"]
    split = Split(tp=row["t"], pp=row["p"], vpp=v or 1)
    training = Training(
        micro_batch=row["b"],
        micro_batches=row["global_batch"] // row["b"],
        schedule="interleaved" if v else "1f1b",
        flash=False,
        dropout=True,
    )
    return model, split, training


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row["model"])
def test_activations_per_layer_and_of_the_first_stage(row, technique):
    cuts, sequence_parallel, recompute = TECHNIQUES[technique]
    model, split, training = configuration(row)
    split = split if cuts else replace(split, tp=1, etp=1)
    training = replace(training, recompute=recompute, sequence_parallel=sequence_parallel)
    layer = layer_activations(model, split, training)
    first = memory_per_stage(model, split, training)[0]
    assert sum(layer.values()) == pytest.approx(row["per_layer_bytes"][technique])
    assert first.parts["activations"] == pytest.approx(row["first_stage_bytes"][technique])
    assert first.in_flight * first.parameters.layers == row["first_stage_layers_equivalent"]


@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row["model"])
def test_embedding_and_output_extra(row):
    model, split, training = configuration(row)
    first = memory_per_stage(model, split, training)[0]
    extra = first.parts["embedding"] + first.parts.get("output", 0)
    assert extra == pytest.approx(row["embedding_and_output_extra_bytes"])


@pytest.mark.parametrize(
    ("name", "core", "saved"), [("gpt3-175b", 80, 0.70), ("gpt-529.6b", 64, 0.65)]
)
def test_what_selective_recomputation_saves(name, core, saved):
    """The paper's text: 5as/h is 80 for GPT-3 and 64 for MT-NLG, saving 70% and 65%."""
    model = MODELS[name].model
    training = Training(recompute="none", flash=False, dropout=True)
    found = layer_activations(model, Split(tp=8), training)
    assert 5 * model.heads * model.sequence / model.hidden == core
    assert round(found["core"] / sum(found.values()), 2) == saved


@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row["model"])
def test_megatrons_estimator_of_activations(row):
    """Ours, with its own extras: 8 bytes a token for ids, and the embedding interleaved too."""
    model, split, training = configuration(row)
    tokens, p = row["s"] * row["b"], row["p"]
    penalty = 1 + (p - 1) / (p * split.vpp) if split.vpp > 1 else 1
    output = output_activations(model, split, training) if p == 1 else 0
    embedding = embedding_activations(model, split, training)
    layers = memory_per_stage(model, split, training)[0].parts["activations"]
    found = layers + penalty * p * (8 * tokens / row["t"] + embedding) + output
    stated = row["megatron_theoretical"]
    assert found == pytest.approx(stated["activation_bytes_sp_selective"])

    training = replace(training, sequence_parallel=False)
    layers = memory_per_stage(model, split, training)[0].parts["activations"]
    embedding = embedding_activations(model, split, training)
    sixteen_bit_logits = 2 * tokens * (row["vocab"] / row["t"] + row["h"]) if p == 1 else 0
    found = layers + penalty * p * (8 * tokens + embedding) + sixteen_bit_logits
    assert 1.05 * found == pytest.approx(stated["activation_bytes_without_sp"])


@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row["model"])
def test_megatrons_estimator_of_weights_and_optimizer(row):
    model, split, _ = configuration(row)
    split = replace(split, dp=8)
    stages = stage_parameters(model, split)
    table = stages[0].by_kind["embedding"]
    layers = sum(one.total for one in stages) - table * (2 if split.pp > 1 else 1)
    most_loaded = layers / split.pp + table
    stated = row["megatron_theoretical"]
    for stage, key in ((0, "no_distopt"), (1, "distopt_d8")):
        found = zero_model_state_bytes(most_loaded, dp=8, stage=stage, gradient_bytes=4)
        assert found == pytest.approx(stated[f"weight_and_optimizer_bytes_{key}"], rel=1e-12)


RUNS = {
    run["model"]: run["weight_and_optimizer_bytes"] for run in FACTS["parameters"]["megatron_runs"]
}


@pytest.mark.parametrize(
    ("run", "name", "split"),
    [
        ("Mixtral 8x22B", "mixtral-8x22b", Split(tp=2, pp=8, dp=8, ep=8, etp=1)),
        (
            "DeepSeek-V3 (without MTP)",
            "deepseek-v3",
            Split(pp=16, dp=128, ep=64, spread="nearly"),
        ),
    ],
)
def test_experts_are_shared_out_over_their_own_data_parallel_ranks(run, name, split):
    stages = stage_parameters(MODELS[name].model, split)
    table = stages[0].by_kind["embedding"]
    dense = (sum(one.dense for one in stages) - 2 * table) / split.pp + table
    experts = sum(one.experts for one in stages) / split.pp
    assert split.edp == 2
    found = sum(
        zero_model_state_bytes(number, dp=ranks, stage=1, gradient_bytes=4)
        for number, ranks in ((dense, split.dp * split.cp), (experts, split.edp))
    )
    assert found == pytest.approx(RUNS[run], rel=1e-9)
