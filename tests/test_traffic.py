"""Volumes of a step: published vectors, who sends over which link, laws."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups import LayoutError
from groups.grouping import Grouping
from groups.megatron.parallel_state import groupings
from groups.mesh import Axis, Mesh
from training.clusters import CLUSTERS
from training.collectives.cost import bytes_per_rank
from training.model import Model
from training.models import MODELS
from training.parameters import StageParameters
from training.pipeline import SCHEDULES, plan_of
from training.pipeline.figures import sends_of
from training.recipe import Training
from training.split import Split, divided_sizes
from training.traffic.demands import CP_ALGORITHMS, PAIRWISE, RING, Demand, demands
from training.traffic.matrix import CELLS, matrix, ranks_per_cell
from training.traffic.per_step import reach, traffic

law = settings(max_examples=60, deadline=None)
VECTORS = json.loads((Path(__file__).parent / "data" / "comm_traffic.json").read_text())
H100 = CLUSTERS["dgx-h100"]


def sent(rows: Iterable[Demand], size: int, *whats: str) -> float:
    """Bytes of one rank, of the stage that sends most."""
    return sum(
        bytes_per_rank(row.operation, size, max(row.volumes)) for row in rows if row.what in whats
    )


def of_kind(kind: str, *args, **options) -> list[Demand]:
    return [row for row in demands(*args, **options) if row.kind == kind]


def one_layer(hidden: int, sequence: int, **more) -> Model:
    shape = {"layers": 1, "heads": hidden // 128, "vocabulary": 51200, **more}
    return Model(hidden=hidden, sequence=sequence, **shape)


def ids(row: dict) -> str:
    return "-".join(
        f"{name}{value:g}" for name, value in row.items() if not isinstance(value, (dict, str))
    )


# -- published vectors ---------------------------------------------------------------------------


@pytest.mark.parametrize("row", VECTORS["tp"], ids=ids)
@pytest.mark.parametrize("name", ["no_sp", "sp"])
def test_tensor_parallel_layer(row, name):
    split = Split(tp=row["t"], cp=row["c"])
    training = Training(micro_batch=row["b"], sequence_parallel=name == "sp", recompute="full")
    found = of_kind("tp", one_layer(row["h"], row["s"]), split, training)
    told = {
        "fwd": sent(found, row["t"], "forward"),
        "bwd": sent(found, row["t"], "backward", "regather"),
    }
    assert told == {"fwd": row[name]["fwd"], "bwd": row[name]["bwd"]}
    assert sum(told.values()) == row[name]["total"]
    assert sent(found, row["t"], "recompute") == row["recompute_full_extra"]


def test_sequence_parallelism_costs_ten_where_the_paper_counts_eight():
    found = of_kind("tp", one_layer(12288, 2048), Split(tp=8), Training())
    unit = 7 / 8 * 2048 * 12288 * 2
    assert sent(found, 8, "forward", "backward") == 8 * unit
    assert sent(found, 8, "forward", "backward", "regather") == 10 * unit


ZERO = {"all_reduce": 0, "zero1": 1, "zero2_one_reduction": 2, "zero3_per_microbatch": 3}


def replicas(parameters: float, d: int, training: Training, experts: float = 0) -> list[Demand]:
    held = StageParameters(
        0, 1, (1,), 0, True, True, True, 0, {"mlp": parameters, "experts": experts}
    )
    return demands(one_layer(1024, 1024), Split(dp=d), training, stages=[held])


@pytest.mark.parametrize("row", VECTORS["dp"], ids=ids)
@pytest.mark.parametrize("name", ZERO)
def test_data_parallel(row, name):
    found = replicas(row["params_local"], row["d"], Training(zero=ZERO[name]))
    whats = ("gradients", "parameters", "parameters_again")
    assert sent(found, row["d"], *whats) == row[name]
    if name == "zero3_per_microbatch":
        kept = sent(found, row["d"], "gradients", "parameters")
        assert kept == row["zero3_no_reshard_after_forward"]


@pytest.mark.parametrize(
    ("zero", "elements"),
    list(enumerate(VECTORS["zero_paper"]["elements_per_step"].values())),
)
def test_elements_of_the_zero_paper(zero, elements):
    """The paper drops (d-1)/d, and counts elements of one size."""
    found = replicas(1e9, 64, Training(zero=zero, precision="bf16-bf16"))
    whats = ("gradients", "parameters", "parameters_again")
    assert f"{sent(found, 64, *whats) / 2 / 1e9 / (63 / 64):g}P" == elements


def test_what_zero_repeats_for_every_micro_batch():
    times = {
        zero: {row.what: row.count for row in replicas(1e9, 8, Training(4, 16, zero=zero))}
        for zero in (0, 1, 2, 3)
    }
    assert times == {
        0: {"gradients": 1},
        1: {"gradients": 1, "parameters": 1},
        2: {"gradients": 16, "parameters": 1},
        3: {"parameters": 16, "parameters_again": 16, "gradients": 16},
    }


@pytest.mark.parametrize("row", VECTORS["pp"], ids=ids)
def test_pipeline_boundary(row):
    split = Split(tp=row["t"], cp=row["c"], pp=2)
    training = Training(micro_batch=row["b"], sequence_parallel=row["sp"])
    model = one_layer(row["h"], row["s"], layers=2)
    for one in of_kind("pp", model, split, training):
        assert one.buffer == row["bytes_per_microbatch_per_direction_per_rank"]


@pytest.mark.parametrize("row", VECTORS["cp"], ids=ids)
@pytest.mark.parametrize("algorithm", CP_ALGORITHMS)
def test_context_parallel_layer(row, algorithm):
    heads = {"heads": row["hq_local"] // 128, "kv_heads": row["hkv_local"] // 128}
    model = one_layer(row["hq_local"], row["s"], **heads)
    training = Training(micro_batch=row["b"])
    found = of_kind("cp", model, Split(cp=row["c"]), training, cp_algorithm=algorithm)
    told = {"fwd": sent(found, row["c"], "forward"), "bwd": sent(found, row["c"], "backward")}
    assert told == row[algorithm]


@pytest.mark.parametrize("row", VECTORS["ep"], ids=ids)
def test_expert_parallel_layer(row):
    experts = {"experts": 64, "top_k": row["k"]}
    model = one_layer(row["h"], row["tokens_local"], **experts)
    found = of_kind("ep", model, Split(dp=row["ep"], ep=row["ep"]), Training())
    told = {"fwd": sent(found, row["ep"], "forward"), "bwd": sent(found, row["ep"], "backward")}
    assert told == {"fwd": row["fwd"], "bwd": row["bwd"]}
    assert row["fwd"] == row["dispatch"] + row["combine"]


@pytest.mark.parametrize("name", SCHEDULES)
def test_stages_send_what_the_schedules_send(name):
    """Counts by rank, against the schedule run op by op."""
    p, m, v = 4, 8, 2 if SCHEDULES[name].v is None else 1
    model = one_layer(1024, 1024, layers=16)
    training = Training(micro_batches=m, schedule=name)
    found = of_kind("pp", model, Split(pp=p, vpp=v), training)
    plan = plan_of(name, p, m, v if v > 1 else None)
    for what, expected in zip(("activations", "gradients"), sends_of(plan)):
        counts = np.sum([row.counts for row in found if row.what == what], axis=0)
        assert counts.tolist() == expected.tolist(), what


def test_a_tied_embedding_is_summed_between_the_first_and_the_last_stage():
    model = one_layer(1024, 1024, layers=4, tied=True)
    (row,) = of_kind("embd", model, Split(tp=2, pp=4), Training())
    assert row.counts == (1, 0, 0, 1)
    assert row.buffer == 51200 * 1024 / 2 * 4
    both_ends = Training(schedule="zb-v")  # the first rank of a V has the last stage too
    assert of_kind("embd", model, Split(tp=2, pp=2, vpp=2), both_ends) == []
    untied = replace(model, tied=False)  # whose last stage predicts further tokens, from embeddings
    assert of_kind("embd", untied, Split(tp=2, pp=4), Training()) == []
    (again,) = of_kind("embd", replace(untied, mtp_layers=1), Split(tp=2, pp=4), Training())
    assert (again.buffer, again.volumes) == (row.buffer, row.volumes)


def test_of_a_layer_with_experts_tp_carries_attention_and_the_shared_expert():
    def volume(**more) -> float:
        model = one_layer(1024, 1024, **more)
        return sent(of_kind("tp", model, Split(tp=2, etp=1), Training()), 2, "forward")

    dense = volume()
    experts = {"experts": 8, "top_k": 2}
    assert volume(**experts) == dense / 2
    assert volume(**experts, shared_expert_ffn=1024) == dense


# -- refusals ------------------------------------------------------------------------------------

REFUSED = {
    "ep-without-experts": (one_layer(1024, 1024), Split(ep=2, dp=2), Training(), "p2p"),
    "experts-need-sequence-parallel": (
        one_layer(1024, 1024, experts=8, top_k=2),
        Split(tp=2),
        Training(sequence_parallel=False),
        "p2p",
    ),
    "not-a-choice": (one_layer(1024, 1024), Split(cp=2), Training(), "ring"),
    "not-a-multiple": (one_layer(1024, 4096), Split(tp=4, cp=4), Training(), "a2a"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_is_refused(code):
    with pytest.raises(LayoutError) as refused:
        demands(*REFUSED[code])
    assert refused.value.code == code
    for cure in refused.value.alternatives:
        model, split, training, algorithm = REFUSED[code]
        if "sequence_parallel" in cure:
            training = replace(training, sequence_parallel=bool(cure["sequence_parallel"]))
        else:
            split = replace(split, **cure)
        demands(model, split, training, algorithm)


@pytest.mark.parametrize("strange", [None, 3, "", ["p2p"], float("nan")])
def test_a_strange_algorithm_is_refused(strange):
    with pytest.raises(LayoutError, match="is not a choice of cp_algorithm"):
        demands(one_layer(1024, 1024), Split(cp=2), Training(), strange)


# -- links ---------------------------------------------------------------------------------------


def ring_of(*axes: tuple[str, int]) -> Grouping:
    return Grouping("dp", Mesh(tuple(Axis(*axis) for axis in axes)), "dp")


# ranks of group 0, nodes of 8                                links out of a node, cards a node
RINGS = {
    "one in each node": (ring_of(("tp", 8), ("dp", 4)), 1.0, 1.0),
    "all of two nodes": (ring_of(("dp", 16)), 2 / 16, 1 / 8),
    "four in each of two": (ring_of(("tp", 2), ("dp", 8)), 2 / 8, 1 / 4),
    "inside a node": (ring_of(("dp", 8), ("pp", 2)), 0.0, 0.0),
}


@pytest.mark.parametrize("name", RINGS)
def test_a_ring_in_order_of_members_crosses_so_many_borders(name):
    grouping, share, card = RINGS[name]
    found = reach(grouping, domain=8)
    assert (found.ring, found.card) == (share, card)


def test_the_reach_of_large_groups_is_not_kept():
    """Each holds a number a member: of a thousand large groups they would fill the memory."""
    small, large = ring_of(("dp", 16)), ring_of(("dp", 65_536))
    assert reach(small, 8) is reach(small, 8)
    assert reach(large, 8) is not reach(large, 8)


def test_a_ring_is_as_slow_as_its_slowest_link():
    inside, across = reach(RINGS["inside a node"][0], 8), reach(RINGS["one in each node"][0], 8)
    assert inside.seconds(RING, 450e9, 450e9, 50e9) == 1.0
    assert across.seconds(RING, 50e9, 450e9, 50e9) == 1.0


def test_an_exchange_of_pairs_sends_each_part_over_its_own_link():
    found = reach(ring_of(("dp", 16)), domain=8)
    assert found.outside == 8 / 15
    assert found.inside == 7 / 15
    assert found.seconds(PAIRWISE, 15.0, nvlink=7.0, nic=8.0) == 1.0


# -- who sends to whom ---------------------------------------------------------------------------

powers = st.sampled_from([1, 2, 4])
jobs = st.builds(
    dict,
    tp=powers,
    cp=powers,
    pp=powers,
    ep=powers,
    etp=st.just(1),
    order=st.sampled_from(["tp-cp-ep-dp-pp", "tp-pp-cp-ep-dp", "dp-tp-cp-ep-pp"]),
)


def rows_of(sizes: dict, world: int, gpus_per_node: int, **training):
    every = groupings(world, **sizes)
    split = Split(
        **{name: every[name].size for name in ("tp", "cp", "dp", "pp", "ep", "etp", "edp")}
    )
    model = one_layer(1024, 4096, layers=8, experts=8, top_k=2, dense_layers=2, tied=True)
    rows = traffic(model, split, Training(**training), every, H100, gpus_per_node)
    return rows, every


@law
@given(jobs, st.sampled_from([2, 4, 8]), st.sampled_from([0, 1, 3]))
def test_what_crosses_nodes_is_what_the_matrix_has_between_them(sizes, gpus_per_node, zero):
    """The short cut over groups that are alike, against every sender and receiver."""
    world = 64
    try:
        rows, every = rows_of(sizes, world, gpus_per_node, zero=zero, micro_batches=4)
    except LayoutError:
        return  # this order cuts the two grids into different pipelines
    found = matrix(rows, every, every["tp"].mesh, gpus_per_node)
    node = np.arange(world) // gpus_per_node
    differ = node[:, None] != node[None, :]
    for number, kind in enumerate(found.kinds):
        of_it = [row for row in rows if row.kind == kind]
        assert found.sent[number].sum() == pytest.approx(sum(row.total for row in of_it))
        assert found.sent[number][differ].sum() == pytest.approx(
            sum(row.across for row in of_it), rel=1e-9, abs=1
        )
    assert np.all(np.diagonal(found.total) == 0)  # nobody sends to itself


def test_a_ring_sends_to_the_next_and_a_pipeline_both_ways():
    model = one_layer(1024, 1024, layers=4)
    every = groupings(4, pp=4)
    rows = traffic(model, Split(pp=4), Training(), every, H100, 8)
    unit = 1024 * 1024 * 2
    told = matrix(rows, every, every["tp"].mesh, 8).total / unit
    assert told.tolist() == [
        [0, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 1, 0, 1],
        [0, 0, 1, 0],
    ]


def test_the_way_back_crosses_the_borders_of_the_way_forth():
    """Stages 0 1 2 | 3 on nodes of three GPUs: one of three borders is between nodes."""
    model = one_layer(1024, 1024, layers=4)
    rows = traffic(model, Split(pp=4), Training(), groupings(4, pp=4), H100, 3)
    crossing = {row.what: row.across / row.total for row in rows if row.kind == "pp"}
    assert crossing == {"activations": 1 / 3, "gradients": 1 / 3}


@pytest.mark.parametrize("few", [True, False], ids=["places", "cells"])
def test_pairs_are_counted_alike_by_places_and_by_cells(few, monkeypatch):
    monkeypatch.setattr("training.traffic.matrix.FEW", 100 if few else 0)
    model = one_layer(1024, 1024, experts=8, top_k=2)
    every = groupings(8, ep=4)
    rows = traffic(model, Split(dp=8, ep=4, edp=2), Training(), every, H100, 8)
    ep = [row for row in rows if row.kind == "ep"]
    found = matrix(ep, every, every["tp"].mesh, 8).total
    each = sum(row.sent for row in ep) / 3
    expected = np.kron(np.eye(2), 1 - np.eye(4)) * each
    assert np.allclose(found, expected)


@pytest.mark.parametrize("world", [1, 8, 256, 264, 2048, 2056, 16_384, 131_072])
def test_a_matrix_has_no_more_rows_than_can_be_seen_and_holds_whole_nodes(world):
    per_cell = ranks_per_cell(world, 8)
    assert -(-world // per_cell) <= CELLS
    assert per_cell == 1 or per_cell % 8 == 0


# -- time ----------------------------------------------------------------------------------------


def test_rows_come_by_time():
    rows, _ = rows_of({"tp": 4, "pp": 2, "ep": 2, "etp": 1}, 64, 8, micro_batches=4)
    seconds = [row.seconds for row in rows]
    assert seconds == sorted(seconds, reverse=True)
    assert {row.kind for row in rows} == {"tp", "pp", "ep", "dp-cp", "edp", "embd"}


@pytest.mark.parametrize("name", MODELS)
def test_bytes_outside_are_part_of_all(name):
    model = MODELS[name].model
    tp = 1 if any(size % 2 for _, size in divided_sizes(model, 2)["tp"]) else 2
    every = groupings(16, tp=tp, pp=2, etp=1)
    split = Split(tp=tp, pp=2, dp=8 // tp, etp=1, spread="nearly")
    for row in traffic(model, split, Training(micro_batches=8), every, H100, 8):
        assert 0 <= row.across <= row.total
        assert row.sent == max(row.by_stage)


def test_eight_bit_weights_are_gathered_in_eight_bits_and_activations_sent_in_sixteen():
    def buffers(precision: str) -> dict[str, float]:
        training = Training(precision=precision, micro_batches=2)
        rows = demands(one_layer(1024, 1024, layers=4), Split(pp=2, dp=2), training)
        return {row.what: row.buffer for row in rows if row.what in ("parameters", "activations")}

    wide, narrow = buffers("bf16-fp32"), buffers("fp8-fp32")
    assert narrow["parameters"] == wide["parameters"] / 2
    assert narrow["activations"] == wide["activations"]


def test_a_group_that_a_framework_does_not_make_is_left_out():
    model = one_layer(1024, 1024, layers=2)
    every = {"pp": groupings(4, pp=2)["pp"]}
    rows = traffic(model, Split(pp=2, dp=2), Training(), every, H100, 8)
    assert {row.kind for row in rows} == {"pp"}
