"""The search: all that is valid, in the order of its stated cost, and published layouts in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups.megatron.parallel_state import grids
from groups.presets import PRESETS
from training import search as rooms
from training.clusters import CLUSTERS
from training.memory.per_stage import Training
from training.model import Model
from training.models import MODELS
from training.pipeline import bubble
from training.search import (
    SearchJob,
    evaluate,
    least_memory,
    least_seconds,
    search,
    valid_splits,
)
from training.split import Split

law = settings(max_examples=25, deadline=None)

GPT = Model(layers=8, hidden=2048, heads=16, vocabulary=51200, sequence=4096)
EXPERTS = Model(
    layers=6,
    hidden=2048,
    heads=16,
    kv_heads=8,
    vocabulary=32000,
    sequence=4096,
    gated=True,
    experts=8,
    top_k=2,
    expert_ffn=4096,
    shared_expert_ffn=2048,
    dense_layers=1,
)


def job(model: Model = GPT, **more) -> SearchJob:
    given = {"training": Training(), "global_batch": 64, "world": 32, "gpus_per_node": 8}
    return SearchJob(model, **{**given, "cluster": CLUSTERS["dgx-h100"], "capacity": 80e9, **more})


jobs = st.builds(
    job,
    model=st.sampled_from([GPT, EXPERTS]),
    training=st.builds(
        Training,
        zero=st.sampled_from([0, 1, 3]),
        recompute=st.sampled_from(["selective", "full"]),
        schedule=st.sampled_from(["1f1b", "gpipe", "zb-h1"]),
    ),
    world=st.sampled_from([8, 24, 32]),
    global_batch=st.sampled_from([48, 64]),
    gpus_per_node=st.sampled_from([4, 8]),
    capacity=st.sampled_from([4e9, 12e9, 80e9]),
    vpp=st.sampled_from([1, 2]),
    cluster=st.sampled_from([CLUSTERS["dgx-a100"], CLUSTERS["gb200-nvl72"]]),
)


def all_of(asked: SearchJob) -> list:
    found = (rooms._candidate(asked, split, False) for split in valid_splits(asked))
    return sorted(filter(None, found), key=lambda one: rooms._place(asked, one))


@law
@given(jobs)
def test_the_bound_loses_none_of_the_best(asked):
    """Against all valid layouts worked out to the end."""
    found = search(asked, most=5)
    assert found.complete
    everything = all_of(asked)
    fitting = [one for one in everything if one.memory <= asked.capacity]
    expected = (fitting or everything)[:5]
    assert [one.seconds for one in found.best] == [one.seconds for one in expected]
    assert [one.memory <= asked.capacity for one in found.best] == [bool(fitting)] * len(expected)


@law
@given(jobs)
def test_bounds_are_below_what_is_bounded(asked):
    for one in all_of(asked):
        assert least_seconds(asked, one.split) <= one.seconds * (1 + 1e-12)
        if not asked.model.tied:
            assert least_memory(asked, one.split) <= one.memory


@law
@given(jobs)
def test_every_layout_found_divides_its_world_its_model_and_its_batch(asked):
    for split in valid_splits(asked):
        model, sizes = asked.model, (split.tp, split.cp, split.dp, split.pp)
        assert split.tp * split.cp * split.dp * split.pp == asked.world
        assert split.etp * split.ep * split.edp * split.pp == asked.world
        assert not [size for size in sizes if size < 1]
        assert model.heads % split.tp == model.kv_heads % split.tp == 0
        assert split.etp in (1, split.tp)
        assert (model.experts or split.ep) % split.ep == 0
        assert asked.global_batch % (split.dp * asked.training.micro_batch) == 0
        assert split.pp <= model.layers
        grids(asked.world, tp=split.tp, cp=split.cp, pp=split.pp, ep=split.ep, etp=split.etp)


def test_all_valid_sizes_are_tried():
    tiny = replace(GPT, layers=2, heads=2, kv_heads=2, sequence=2048)
    told = {(one.tp, one.cp, one.pp, one.dp) for one in valid_splits(job(tiny, world=8))}
    assert told == {  # tp, cp, pp, dp: two heads, two layers, a sequence too short to cut
        (1, 1, 1, 8),
        (1, 1, 2, 4),
        (2, 1, 1, 4),
        (2, 1, 2, 2),
    }


def test_experts_are_spread_with_their_matrices_whole_or_cut_as_the_others():
    told = {(s.tp, s.ep, s.etp, s.edp) for s in valid_splits(job(EXPERTS, world=2)) if s.pp == 1}
    assert told == {(1, 1, 1, 2), (1, 2, 1, 1), (2, 1, 1, 2), (2, 2, 1, 1), (2, 1, 2, 1)}


def test_with_pp_before_dp_both_grids_have_the_same_replicas():
    order = {"dense": ("tp", "cp", "pp", "dp"), "expert": ("etp", "ep", "pp", "edp")}
    found = list(valid_splits(job(EXPERTS, **order)))
    assert found
    assert all(one.dp == one.edp for one in found)


def test_axes_that_a_framework_does_not_have_stay_one():
    found = list(valid_splits(job(EXPERTS, dense=("dp", "pp"), expert=())))
    assert found
    assert {(one.tp, one.cp, one.ep) for one in found} == {(1, 1, 1)}
    assert search(job(EXPERTS, dense=("dp", "pp"), expert=())).best


@pytest.mark.parametrize(("schedule", "v"), [("1f1b", 1), ("interleaved", 2), ("gpipe", 1)])
@pytest.mark.parametrize("pp", [1, 2, 4])
def test_idle_time_is_what_the_schedule_run_op_by_op_has(schedule, v, pp):
    asked = job(training=Training(schedule=schedule), vpp=v, world=8)
    split = next(one for one in valid_splits(asked) if (one.tp, one.cp, one.pp) == (2, 1, pp))
    found = evaluate(asked, split)
    m = found.training.micro_batches
    name = "1f1b" if split.vpp == 1 and schedule == "interleaved" else schedule
    expected = bubble(name, pp, m, split.vpp if split.vpp > 1 else None)
    assert found.idle == pytest.approx(expected * found.compute)


def test_with_dualpipe_exchanges_of_experts_hide_behind_computation():
    def waits(schedule: str) -> float:
        asked = job(EXPERTS, training=Training(schedule=schedule), world=8)
        split = Split(pp=2, dp=4, ep=4, etp=1)
        return dict(evaluate(asked, split).by_kind)["ep"]

    assert waits("dualpipe") == 0 < waits("1f1b")


def test_the_cost_is_the_sum_of_its_parts():
    for one in search(job(EXPERTS)).best:
        assert one.seconds == one.compute + one.idle + one.exposed
        assert one.exposed == pytest.approx(sum(seconds for _, seconds in one.by_kind))


def test_where_nothing_fits_those_that_lack_least_come_first():
    found = search(job(capacity=1e8))
    memories = [one.memory for one in found.best]
    assert memories == sorted(memories)
    assert memories[0] > 1e8


def test_patience_ends_and_says_so(monkeypatch):
    for name, units in (("PATIENCE", 3), ("BOUND", 0), ("WORKED_OUT", 1), ("STAGE", 0)):
        monkeypatch.setattr(rooms, name, units)
    found = search(job(EXPERTS, world=16))  # a job of which no answer is kept
    assert (found.worked_out, found.complete) == (3, False)


# -- published layouts ---------------------------------------------------------------------------

# Presets whose model has a known shape, by the GPUs of their source; zero 1 is a distributed
# optimizer, which the runs of 2021 and 2022 did not have, and OPT was sharded fully.
FEASIBLE = {
    ("dgx-a100", 0): """
        megatron2021-1.7b     gpt-1.7b      megatron2021-3.6b        gpt-3.6b
        megatron2021-7.5b     gpt-7.5b      megatron2021-18.4b       gpt-18.4b
        megatron2021-39.1b    gpt-39.1b     megatron2021-76.1b       gpt-76.1b
        megatron2021-145.6b   gpt-145.6b    megatron2021-310.1b      gpt-310.1b
        megatron2021-529.6b   gpt-529.6b    megatron2021-1008.0b     gpt-1008b
        megatron2021-fig12-175b gpt3-175b   megatron2021-fig17-145b  gpt-145.6b
        korthikanti-22b       gpt-22b       korthikanti-175b         gpt3-175b
        korthikanti-530b      gpt-529.6b    korthikanti-1t           gpt-1008b
        mtnlg-530b-280        gpt-529.6b    mtnlg-530b-350           gpt-529.6b
        mtnlg-530b-420        gpt-529.6b    korthikanti-530b-dp8     gpt-529.6b""",
    ("dgx-a100", 1): "bloom-176b  bloom-176b",
    ("dgx-a100", 3): "opt-175b    gpt3-175b",
    ("hgx-h800", 1): "deepseek-v3 deepseek-v3",
    ("dgx-h100", 1): """
        llama3-405b-1                   llama3-405b      llama3-405b-2           llama3-405b
        llama3-405b-3                   llama3-405b      nemotron4-340b-1536     nemotron4-340b
        nemotron4-340b-3072             nemotron4-340b   nemotron4-340b-6144     nemotron4-340b
        folding-mixtral-8x22b-mcore     mixtral-8x22b    folding-mixtral-ctx16k  mixtral-8x22b
        folding-mixtral-8x22b-folded    mixtral-8x22b    folding-mixtral-ctx32k  mixtral-8x22b
        folding-mixtral-ctx64k          mixtral-8x22b    folding-mixtral-ctx128k mixtral-8x22b
        bridge-llama3.1_405b-dgx-h100-1024   llama3-405b mcore-guide-llama-3-8b  llama3-8b
        bridge-qwen3_235b_a22b-dgx-h100-256  qwen3-235b-a22b
        bridge-llama3_70b-dgx-h100-64   llama3-70b       mcore-guide-llama-3-70b llama3-70b
        mcore-guide-llama-3.1-405b      llama3-405b      mcore-guide-mixtral-8x7b mixtral-8x7b
        mcore-guide-mixtral-8x22b       mixtral-8x22b
        mcore-guide-deepseek-v3-671b    deepseek-v3""",
    ("gb200-nvl72", 1): """
        bridge-deepseekv3-dgx-gb200-256        deepseek-v3
        bridge-qwen3_235b_a22b-dgx-gb200-256   qwen3-235b-a22b""",
}
PUBLISHED = [
    (preset, model, *where)
    for where, rows in FEASIBLE.items()
    for preset, model in zip(*[iter(rows.split())] * 2)
]


@pytest.mark.parametrize(
    ("preset", "model", "cluster", "zero"), PUBLISHED, ids=[row[0] for row in PUBLISHED]
)
def test_published_layouts_are_found_and_fit_their_gpus(preset, model, cluster, zero):
    one, machine = PRESETS[preset], CLUSTERS[cluster]
    shape = MODELS[model].model
    shape = replace(shape, sequence=one.model.get("seq", shape.sequence))
    micro_batch = one.model.get("micro_batch", 1)
    asked = job(
        shape,
        training=Training(micro_batch=micro_batch, zero=zero, recompute="full"),
        global_batch=one.model.get("global_batch") or 4 * one.pp * one.dp * micro_batch,
        world=one.world_size,
        gpus_per_node=one.gpus_per_node,
        cluster=machine,
        capacity=machine.memory,
        vpp=one.model.get("vpp", 1),
    )
    sizes = (one.tp, one.cp, one.pp, one.ep if shape.experts else 1, one.etp or one.tp)
    (split,) = (s for s in valid_splits(asked) if (s.tp, s.cp, s.pp, s.ep, s.etp) == sizes)
    assert (split.dp, evaluate(asked, split).memory <= machine.memory) == (one.dp, True)


def test_what_runs_on_eighty_gigabytes_does_not_fit_into_sixteen():
    asked = job(MODELS["llama3-405b"].model, global_batch=2048, world=16_384, capacity=16e9, vpp=1)
    published = Split(tp=8, pp=16, dp=128, account=True)
    assert evaluate(asked, published).memory > 16e9
