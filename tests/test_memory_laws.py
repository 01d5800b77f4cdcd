"""Memory per rank: micro-batches in flight, laws, published layouts that fit, refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference.plans import peaks

from groups import LayoutError
from training.memory.per_stage import PARTS, largest, memory_per_stage, zero_model_state_bytes
from training.model import Model
from training.models import MODELS
from training.parameters import total_parameters
from training.pipeline import SCHEDULES
from training.pipeline.figures import micro_batches_in_flight
from training.pipeline.spec import ScheduleSpec
from training.recipe import PRECISIONS, Training
from training.split import Split

# -- schedules -----------------------------------------------------------------------------------

EXACT = [name for name in SCHEDULES if name not in ("zb-v", "dualpipe")]


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("p", [2, 4, 6])
def test_micro_batches_in_flight_are_the_simulators_peaks(name, p):
    v = 3 if SCHEDULES[name].v is None else 1
    for m in (2 * p, 4 * p):
        found = micro_batches_in_flight(ScheduleSpec(name, p, m, SCHEDULES[name].v or v))
        assert found == pytest.approx(peaks(name, p, m, v if v > 1 else None))


def test_zb_v_holds_no_more_than_1f1b_and_dualpipe_half_of_both_its_stages():
    for m in (2, 4, 8, 16):
        assert max(peaks("zb-v", 4, m)) <= max(micro_batches_in_flight(ScheduleSpec("zb-v", 4, m)))
    both_stages = [peak / 2 for peak in peaks("dualpipe", 4, 8)]
    assert micro_batches_in_flight(ScheduleSpec("dualpipe", 4, 8)) == both_stages


@pytest.mark.parametrize(("p", "m", "nearest"), [(128, 1_000_000, 999_936), (3, 10**6, 999_999)])
def test_memory_offers_rounds_that_are_too_many_to_draw(p, m, nearest):
    with pytest.raises(LayoutError) as refused:
        micro_batches_in_flight(ScheduleSpec("interleaved-zb", p, m, 2))
    assert refused.value.alternatives == ({"m": nearest},)
    fewer = ScheduleSpec("interleaved-zb", p, nearest, 2)
    assert micro_batches_in_flight(fewer)[0] >= p / 2


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
    assume(axis != "ep" or split.edp > 1)
    further = replace(split, **{axis: 2 * getattr(split, axis)}, edp=0)
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


def test_zero_3_gathers_what_a_rank_lacks_of_one_layer():
    """A layer of DENSE: four matrices of attention, three of its gated MLP, two norms with bias."""
    h = DENSE.hidden
    layer = 4 * h * h + 3 * h * DENSE.ffn + 4 * h
    alone, shared = (
        memory_per_stage(DENSE, Split(dp=dp), Training(zero=3, precision="bf16-bf16"))[0].parts
        for dp in (1, 8)
    )
    assert "gathered" not in alone
    assert shared["gathered"] == 2 * layer * 7 / 8


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
