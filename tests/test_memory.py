"""Memory per rank: ZeRO's figure and table, Korthikanti's formulas, Megatron's estimator, laws."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups import LayoutError
from training.activations import embedding_activations, layer_activations, output_activations
from training.in_flight import SCHEDULES, micro_batches_in_flight
from training.memory import (
    PARTS,
    PRECISIONS,
    Training,
    largest,
    memory_per_stage,
    zero_model_state_bytes,
)
from training.model import Model
from training.models import MODELS
from training.parameters import stage_parameters, total_parameters
from training.pipeline import peak_micro_batches
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
    )
    return model, split, training


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row["model"])
def test_activations_per_layer_and_of_the_first_stage(row, technique):
    cuts, sequence_parallel, recompute = TECHNIQUES[technique]
    model, split, training = configuration(row)
    split = split if cuts else replace(split, tp=1, etp=1)
    training = replace(training, recompute=recompute, sequence_parallel=sequence_parallel)
    layer = layer_activations(
        model,
        split,
        micro_batch=training.micro_batch,
        recompute=recompute,
        sequence_parallel=sequence_parallel,
    )
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
    found = layer_activations(model, Split(tp=8), sequence_parallel=True)
    assert 5 * model.heads * model.sequence / model.hidden == core
    assert round(found["core"] / sum(found.values()), 2) == saved


@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row["model"])
def test_megatrons_estimator_of_activations(row):
    """Ours, with its own extras: 8 bytes a token for ids, and the embedding interleaved too."""
    model, split, training = configuration(row)
    tokens, p = row["s"] * row["b"], row["p"]
    penalty = 1 + (p - 1) / (p * split.vpp) if split.vpp > 1 else 1
    kwargs = {"micro_batch": row["b"], "sequence_parallel": True}
    output = output_activations(model, split, **kwargs) if p == 1 else 0
    embedding = embedding_activations(model, split, **kwargs)
    layers = memory_per_stage(model, split, training)[0].parts["activations"]
    found = layers + penalty * p * (8 * tokens / row["t"] + embedding) + output
    stated = row["megatron_theoretical"]
    assert found == pytest.approx(stated["activation_bytes_sp_selective"])

    training = replace(training, sequence_parallel=False)
    whole = {"micro_batch": row["b"], "sequence_parallel": False}
    layers = memory_per_stage(model, split, training)[0].parts["activations"]
    embedding = embedding_activations(model, split, **whole)
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


# -- schedules -----------------------------------------------------------------------------------

EXACT = [name for name in SCHEDULES if name not in ("zb-v", "dualpipe")]


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("p", [2, 4, 6])
def test_micro_batches_in_flight_are_the_simulators_peaks(name, p):
    v = {"interleaved": 3, "bfs": 2}.get(name, 1)
    for m in (2 * p, 4 * p):
        found = micro_batches_in_flight(name, p, m, v)
        assert found == pytest.approx(peak_micro_batches(name, p, m, v if v > 1 else None))


def test_zb_v_holds_no_more_than_1f1b_and_dualpipe_half_of_both_its_stages():
    for m in (2, 4, 8, 16):
        assert max(peak_micro_batches("zb-v", 4, m)) <= micro_batches_in_flight("zb-v", 4, m)[0]
    both_stages = [peak / 2 for peak in peak_micro_batches("dualpipe", 4, 8)]
    assert micro_batches_in_flight("dualpipe", 4, 8) == both_stages


# -- laws ----------------------------------------------------------------------------------------

MIXTURE = Model(
    layers=16,
    hidden=256,
    heads=16,
    vocabulary=8192,
    sequence=1024,
    gated=True,
    experts=16,
    top_k=2,
    expert_ffn=64,
    shared_expert_ffn=128,
    dense_layers=3,
)
DENSE = replace(MIXTURE, experts=0, top_k=0, expert_ffn=0, shared_expert_ffn=0, dense_layers=0)
MODELS_OF_LAWS = st.sampled_from([MIXTURE, DENSE, replace(MIXTURE, mtp_layers=1)])
POWERS = st.sampled_from([1, 2, 4])
SPLITS = st.builds(Split, tp=POWERS, pp=POWERS, cp=POWERS, dp=st.sampled_from([4, 8]), ep=POWERS)
TRAININGS = st.builds(
    Training,
    micro_batch=st.integers(1, 4),
    micro_batches=st.sampled_from([8, 16]),
    schedule=st.sampled_from(["1f1b", "gpipe", "zb-h1", "zb-v"]),
    precision=st.sampled_from(list(PRECISIONS)),
    zero=st.integers(0, 3),
    recompute=st.sampled_from(["none", "selective", "full"]),
    sequence_parallel=st.booleans(),
)


@given(MODELS_OF_LAWS, SPLITS, TRAININGS)
def test_parts_sum_to_the_total_and_are_named(model, split, training):
    for stage in memory_per_stage(model, split, training):
        assert stage.total == pytest.approx(sum(stage.parts.values()))
        assert set(stage.parts) <= set(PARTS)
        assert all(number > 0 for number in stage.parts.values())


@given(MODELS_OF_LAWS, SPLITS, TRAININGS)
def test_a_higher_stage_of_zero_never_costs_more(model, split, training):
    totals = [
        [one.total for one in memory_per_stage(model, split, replace(training, zero=zero))]
        for zero in range(4)
    ]
    for lower, higher in pairwise(totals):
        assert all(b <= a * (1 + 1e-12) for a, b in zip(lower, higher))


@given(MODELS_OF_LAWS, SPLITS, TRAININGS, st.sampled_from(["tp", "cp", "ep", "dp"]))
def test_cutting_further_never_costs_more(model, split, training, axis):
    """With etp 1: an etp group gathers the tokens of all its ranks."""
    split = replace(split, etp=1, edp=0)
    further = replace(split, **{axis: 2 * getattr(split, axis)}, edp=0)
    if axis == "ep":
        further = replace(further, edp=max(1, split.edp // 2))
    fewer, more = (largest(memory_per_stage(model, one, training)) for one in (split, further))
    assert more.total <= fewer.total * (1 + 1e-12)


@given(MODELS_OF_LAWS, SPLITS, TRAININGS)
def test_recomputing_more_never_keeps_more(model, split, training):
    kept = [
        [
            one.parts["activations"]
            for one in memory_per_stage(model, split, replace(training, recompute=recompute))
        ]
        for recompute in ("none", "selective", "full")
    ]
    for more, fewer in pairwise(kept):
        assert all(b <= a for a, b in zip(more, fewer))


@given(SPLITS, TRAININGS)
def test_weights_of_all_ranks_of_one_replica_make_the_model(split, training):
    split = replace(split, tp=1, etp=1, ep=1, edp=0)
    training = replace(training, zero=0, schedule="1f1b")
    stages = memory_per_stage(DENSE, split, training)
    weight = PRECISIONS[training.precision].weight
    held = sum(one.parts["weights"] for one in stages)
    assert held == weight * total_parameters(DENSE)


@settings(deadline=None)
@given(st.sampled_from(list(MODELS)), TRAININGS)
def test_every_published_model_has_a_memory(name, training):
    stages = memory_per_stage(MODELS[name].model, Split(pp=4, spread="nearly"), training)
    assert largest(stages).total > 0


# -- published layouts fit on their GPUs ----------------------------------------------------------

A100_80 = H100 = H800 = 80 * 2**30
PUBLISHED = {
    # arXiv:2104.04473 Table 1 trains with full recomputation (section 3.5)
    "megatron-2021 145.6b": (
        "gpt-145.6b",
        Split(tp=8, pp=8, dp=24, vpp=2),
        "interleaved",
        1,
        "full",
        2,
        48,
        A100_80,
    ),
    "megatron-2021 1008b": (
        "gpt-1008b",
        Split(tp=8, pp=64, dp=6),
        "1f1b",
        1,
        "full",
        1,
        512,
        A100_80,
    ),
    "korthikanti 175b": (
        "gpt3-175b",
        Split(tp=8, pp=8, vpp=3),
        "interleaved",
        0,
        "selective",
        1,
        64,
        A100_80,
    ),
    "korthikanti 1t": ("gpt-1008b", Split(tp=8, pp=64), "1f1b", 0, "selective", 1, 512, A100_80),
    "bloom": (
        "bloom-176b",
        Split(tp=4, pp=12, dp=8, account=True),
        "1f1b",
        1,
        "full",
        2,
        128,
        A100_80,
    ),
    "llama 3 405b": (
        "llama3-405b",
        Split(tp=8, pp=16, dp=64, account=True),
        "1f1b",
        2,
        "selective",
        1,
        32,
        H100,
    ),
    "deepseek-v3": (
        "deepseek-v3",
        Split(pp=16, dp=128, ep=64, spread="nearly"),
        "dualpipe",
        1,
        "full",
        1,
        64,
        H800,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_layouts_fit_on_their_published_gpus(name):
    model, split, schedule, zero, recompute, micro_batch, micro_batches, capacity = PUBLISHED[name]
    training = Training(
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        schedule=schedule,
        zero=zero,
        recompute=recompute,
    )
    most = largest(memory_per_stage(MODELS[model].model, split, training))
    assert 0.1 * capacity < most.total < capacity


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code", "control"),
    [
        ({"zero": 4}, "out-of-range", "zero"),
        ({"zero": "1"}, "not-a-whole-number", "zero"),
        ({"micro_batch": 0}, "out-of-range", "micro_batch"),
        ({"micro_batches": float("nan")}, "not-a-whole-number", "micro_batches"),
        ({"schedule": None}, "not-a-choice", "schedule"),
        ({"schedule": ["1f1b"]}, "not-a-choice", "schedule"),
        ({"precision": "int8"}, "not-a-choice", "precision"),
        ({"recompute": 1}, "not-a-choice", "recompute"),
        ({"sequence_parallel": "yes"}, "not-a-choice", "sequence_parallel"),
    ],
)
def test_a_training_that_cannot_be_is_refused_about_its_field(changes, code, control):
    with pytest.raises(LayoutError) as refused:
        Training(**changes)
    assert (refused.value.code, refused.value.control) == (code, control)


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), "7e9", None, True])
def test_parameters_that_are_no_amount_are_refused(amount):
    with pytest.raises(LayoutError) as refused:
        zero_model_state_bytes(amount, dp=64, stage=2)
    assert refused.value.code == "not-an-amount"


def test_optimizer_instances_divide_the_ranks_that_share():
    with pytest.raises(LayoutError) as refused:
        memory_per_stage(DENSE, Split(dp=4), Training(instances=3))
    assert refused.value.code == "instances-do-not-divide"
    whole, halves = (
        memory_per_stage(DENSE, Split(dp=4), Training(instances=instances))[0].parts["optimizer"]
        for instances in (1, 2)
    )
    assert halves == 2 * whole


def test_sequence_parallelism_needs_a_sequence_that_tp_cuts():
    model = replace(DENSE, sequence=1026)
    with pytest.raises(LayoutError) as refused:
        memory_per_stage(model, Split(tp=4))
    assert refused.value.control == "sequence"
    assert {"sequence_parallel": 0} in refused.value.alternatives


def test_a_schedule_refuses_sizes_that_it_does_not_take():
    with pytest.raises(LayoutError) as refused:
        memory_per_stage(DENSE, Split(pp=4, vpp=2), Training(schedule="interleaved"))
    assert refused.value.code == "schedule-needs-micro-batches"
