"""How tokens reach their experts: counted draw by draw, in traffic, and against published runs."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from groups.errors import LayoutError
from groups.layout import Job
from training.clusters import CLUSTERS
from training.estimate.answer import estimate
from training.model import Model
from training.models import MODELS, variant
from training.recipe import DISPATCHERS, Training
from training.routing import copies, reached
from training.split import Split
from training.traffic.matrix import matrix
from training.traffic.per_step import traffic

QWEN, DEEPSEEK = MODELS["qwen3-30b-a3b"].model, MODELS["deepseek-v3"].model


def model(experts: int, top_k: int, groups: int = 0, chosen: int = 0) -> Model:
    return Model(
        *(4, 64, 4, 1000, 64),
        experts=experts,
        top_k=top_k,
        router_groups=groups,
        router_group_top_k=chosen,
    )


def drawn(of: Model) -> list[frozenset[int]]:
    """All sets of experts that a token may go to, each as likely as any other."""
    if not of.router_groups:
        return [frozenset(one) for one in itertools.combinations(range(of.experts), of.top_k)]
    size = of.experts // of.router_groups
    sets = []
    for groups in itertools.combinations(range(of.router_groups), of.router_group_top_k):
        own = [group * size + at for group in groups for at in range(size)]
        sets += [frozenset(one) for one in itertools.combinations(own, of.top_k)]
    return sets


@pytest.mark.parametrize("of", [model(8, 2), model(12, 4), model(8, 3, 4, 2), model(12, 2, 2, 1)])
@pytest.mark.parametrize("places", [1, 2, 4])
def test_the_chance_is_that_of_all_draws(of, places):
    each, every = of.experts // places, drawn(of)
    here = sum(any(expert < each for expert in one) for one in every) / len(every)
    assert reached(of, places) == pytest.approx(here)


@pytest.mark.parametrize("of", [QWEN, DEEPSEEK, model(64, 6, 8, 3)])
def test_no_more_copies_than_experts_or_places(of):
    for ranks, near in itertools.product((8, 16, 64), (1, 2, 8)):
        inside, outside = copies(of, ranks, near)
        most = of.router_group_top_k or of.top_k
        assert 0 <= outside <= min(of.top_k, ranks // near - 1)
        assert outside <= most or 0 < of.router_groups < ranks // near
        assert 0 <= inside <= of.top_k
    assert copies(of, 8, 8)[1] == 0.0


def test_a_limit_on_groups_saves_copies_between_nodes():
    free = replace(DEEPSEEK, router_groups=0, router_group_top_k=0)
    assert copies(DEEPSEEK, 64, 8)[1] < 0.75 * copies(free, 64, 8)[1]
    assert DEEPSEEK.router_group_top_k * 7 / 8 > copies(DEEPSEEK, 64, 8)[1]  # at most 4 nodes


def test_groups_go_with_the_experts():
    assert variant(DEEPSEEK, {"experts": 0}).router_groups == 0
    assert variant(DEEPSEEK, {"experts": 100}).router_groups == 0
    assert variant(DEEPSEEK, {"experts": 128}).router_groups == 8
    for groups, chosen in ((3, 1), (0, 2), (8, 9), (8, 0), (256, 7)):
        with pytest.raises(LayoutError):
            replace(DEEPSEEK, router_groups=groups, router_group_top_k=chosen)


def rows(job: Job, **how: object) -> list:
    layout = job.layout()
    split = Split.of(layout.mesh, layout.expert)
    cluster, every = CLUSTERS["dgx-h100"], dict(layout.every)
    how = Training(micro_batches=2, **how)
    return (
        [
            row
            for row in traffic(DEEPSEEK, split, how, every, cluster, layout.gpus_per_node)
            if row.kind == "ep"
        ],
        every,
        layout,
    )


JOBS = [{"nodes": 8, "ep": 64}, {"nodes": 8, "tp": 2, "ep": 16, "etp": 1}]
JOBS += [{"nodes": 2, "ep": 8}, {"nodes": 1, "ep": 8}]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("dispatcher", DISPATCHERS)
def test_the_matrix_adds_up_to_the_traffic(job, dispatcher):
    found, every, layout = rows(Job(**job), dispatcher=dispatcher)
    sent = matrix(found, every, layout.mesh, layout.gpus_per_node).total
    assert sent.sum() == pytest.approx(sum(row.total for row in found))
    node = np.arange(layout.world_size) // layout.gpus_per_node
    across = sent[node[:, None] != node].sum()
    assert across == pytest.approx(sum(row.across for row in found), abs=1.0)
    assert not np.diag(sent).any()


def test_one_copy_a_node_leaves_less_and_moves_more_inside():
    plain, once = (rows(Job(nodes=8, ep=64), dispatcher=name)[0] for name in DISPATCHERS[:2])
    ratio = sum(row.across for row in once) / sum(row.across for row in plain)
    assert ratio == pytest.approx(copies(DEEPSEEK, 64, 8)[1] / 7.0)
    stays = [sum(row.total - row.across for row in each) for each in (plain, once)]
    assert stays[1] > stays[0]


def test_eight_bits_on_the_way_there_only():
    plain, small = (rows(Job(nodes=8, ep=64), dispatch=name)[0] for name in ("bf16", "fp8"))
    share = sum(row.total for row in small) / sum(row.total for row in plain)
    assert share == pytest.approx((1 + (1 + 4 / 128) / 2) / 2)


# -- against runs --------------------------------------------------------------------------------


PAIRS = [("alltoall", 41.25 / 31.31), ("hybridep", 24.7138 / 21.0725)]
"""Qwen3 30B-A3B on 16 H100, BF16, ep 16, 1,024 samples of 4,096 tokens: NVIDIA-NeMo/Megatron-Bridge
067f987 skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md, steps without and with
overlap_moe_expert_parallel_comm."""

RUN = {"gpus": 16, "tp": 1, "ep": 16, "global_batch": 1024, "sequence_parallel": False}


@pytest.mark.parametrize(("dispatcher", "measured"), PAIRS)
def test_hiding_the_exchange_saves_what_was_measured(dispatcher, measured):
    plain, hidden = (
        estimate(QWEN, dispatcher=dispatcher, ep_overlap=on, **RUN).seconds for on in (False, True)
    )
    assert plain / hidden == pytest.approx(measured, rel=0.12)
    assert plain > hidden


def test_an_exchange_that_cannot_hide_is_refused_with_what_works():
    for wrong, code in (
        ({"ep": 1}, "overlap-without-ep"),
        ({"pp": 2, "ep": 8}, "overlap-needs-chunks"),
        ({"recompute": "full"}, "overlap-needs-kept"),
    ):
        with pytest.raises(LayoutError) as caught:
            estimate(QWEN, ep_overlap=True, **{**RUN, **wrong})
        assert caught.value.code == code
        assert caught.value.alternatives


def test_one_chunk_more_is_held():
    plain, hidden = (
        estimate(QWEN, ep_overlap=on, pp=2, vpp=4, **{**RUN, "ep": 8}).fit.parts
        for on in (False, True)
    )
    assert hidden["activations"] > plain["activations"]
