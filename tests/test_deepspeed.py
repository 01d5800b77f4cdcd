"""DeepSpeed's topologies and expert groups, against what deepspeed 0.19.8 printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import as_sets, cases, load, refusal
from reference.deepspeed import (
    default_topology,
    expert_mesh,
    p2p_groups,
    rank_repr,
    ranks_at,
    topology,
)

from formats.launch import parse
from groups import Axis, Mesh, coordinates, group_index, rank_groups
from groups.frameworks import FRAMEWORKS


@pytest.mark.parametrize("case", cases("deepspeed", "topology"))
def test_a_deepspeed_topology_is_a_row_major_mesh(case):
    mesh = topology(case["axes"], case["dims"])
    assert mesh.world_size == case["world_size"]
    for axis, expected in case["groups"].items():
        assert rank_groups(mesh, axis).tolist() == expected
    for axis, lists in case["axis_list"].items():
        assert {index: ranks_at(mesh, **{axis: int(index)}) for index in lists} == lists
    ranks = range(case["world_size"])
    at = [coordinates(mesh, rank) for rank in ranks]
    made = {
        "coords": [[found[axis] for axis in case["axes"]] for found in at],
        "rank_repr": [rank_repr(mesh, rank) for rank in ranks],
        "rank_repr_all": [rank_repr(mesh, rank, omit=()) for rank in ranks],
    }
    for key in made if case["world_size"] <= 64 else ():  # larger ones were kept without them
        assert made[key] == case[key], key


@pytest.mark.parametrize("case", cases("deepspeed", "topology"))
def test_an_axis_that_deepspeed_answers_with_nothing_is_refused(case):
    assert case["absent_axis"] == []
    mesh = topology(case["axes"], case["dims"])
    assert refusal(rank_groups, mesh, "nosuch").code == "unknown-axis"


@pytest.mark.parametrize(
    "case", [c for c in cases("deepspeed", "topology") if "Pipe" in c.values[0]["source"]]
)
def test_the_deepspeed_convention_is_its_topology(case):
    sizes = dict(zip(case["axes"], case["dims"]))
    mesh = FRAMEWORKS["deepspeed"].mesh(
        case["world_size"], model=sizes.get("model", 1), pipe=sizes["pipe"]
    )
    assert {axis: rank_groups(mesh, axis).tolist() for axis in case["axes"]} == case["groups"]


@pytest.mark.parametrize("case", cases("deepspeed", "filter_match"))
def test_filter_match(case):
    mesh = topology(list(case["dims"]), list(case["dims"].values()))
    assert ranks_at(mesh, **case["filter"]) == case["ranks"]


@pytest.mark.parametrize("case", cases("deepspeed", "error"))
def test_what_a_deepspeed_topology_refuses(case):
    mesh = topology(["pipe", "data", "model"], [2, 2, 3])
    assert "nosuch" in case["call"]
    assert refusal(ranks_at, mesh, nosuch=0).code == "unknown-axis"


def test_ranks_at_a_coordinate_outside_its_axis_is_refused():
    assert refusal(ranks_at, topology(["pipe", "data"], [2, 2]), pipe=2).code == "out-of-range"


def test_ranks_at_starts_where_the_mesh_starts():
    assert ranks_at(Mesh((Axis("tp", 2), Axis("dp", 2)), offset=8), dp=1) == [10, 11]


@pytest.mark.parametrize("case", cases("deepspeed", "pipeline_grid"))
def test_a_deepspeed_pipeline_grid(case):
    sizes = case["dims"]
    convention = FRAMEWORKS["deepspeed"]
    mesh = convention.mesh(case["world_size"], model=sizes["model"], pipe=sizes["pipe"])
    kinds = {group.name: group.kind for group in convention.groups}
    made = {name: rank_groups(mesh, kind).tolist() for name, kind in kinds.items()}
    assert rank_groups(mesh, "data").tolist() == case["dp_groups"]
    assert rank_groups(mesh, "pipe").tolist() == case["pipe_groups"]
    assert p2p_groups(mesh).tolist() == case["p2p_groups"]
    created = [*made["ds_model"], *case["dp_groups"], *case["pipe_groups"], *made["slice"]]
    assert created == case["new_group_calls_in_order"]
    for expected in case["per_rank"]:
        rank = expected["rank"]
        at = coordinates(mesh, rank)
        ds_model = made["ds_model"][group_index(mesh, kinds["ds_model"])[rank]]
        pipe = rank_groups(mesh, "pipe")[group_index(mesh, "pipe")[rank]].tolist()
        assert expected == {
            "rank": rank,
            "stage": at["pipe"],
            "data_parallel_id": at["data"],
            "ds_model_rank": ds_model.index(rank),
            "ds_model_size": len(ds_model),
            "slice_rank": at["model"],
            "dp_group": rank_groups(mesh, "data")[group_index(mesh, "data")[rank]].tolist(),
            "pp_group": pipe,
            "slice_group": made["slice"][group_index(mesh, "model")[rank]],
            "stage_to_global": pipe,
        }


@pytest.mark.parametrize("case", cases("deepspeed", "pipeline_grid_default"))
def test_the_default_topology_of_a_deepspeed_pipeline(case):
    mesh = default_topology(case["world_size"])
    assert {axis: mesh.size(axis) for axis in case["dims"]} == case["dims"]


@given(st.integers(1, 2**20))
def test_the_default_topology_fills_every_world(world):
    assert default_topology(world).world_size == world


@pytest.mark.parametrize("case", cases("deepspeed", "expert_ranks"))
def test_deepspeed_expert_groups(case):
    request = {**case["sizes"], "data_first": case["use_data_before_expert_parallel"]}
    if "error" in case:
        error = refusal(expert_mesh, case["world_size"], **request)
        assert error.quote == case["error"]["message"]
        for alternative in error.alternatives:
            sizes = {"model": "tp", "expert": "ep", "pipe": "pp"}
            changed = {sizes[name]: value for name, value in alternative.items()}
            assert expert_mesh(case["world_size"], **{**request, **changed})
        return
    mesh = expert_mesh(case["world_size"], **request)
    # As sets: DeepSpeed lists them tp lane by tp lane.
    assert as_sets(rank_groups(mesh, "expert")) == as_sets(case["groups"]["ep"])
    assert as_sets(rank_groups(mesh, "expert_data")) == as_sets(case["groups"]["edp"])


@pytest.mark.parametrize("case", load("deepspeed_zeropp"))
def test_zero_plus_plus_and_ulysses_make_these_groups(case):
    world, per_node = case["world_size"], case["gpus_per_node"]
    convention = FRAMEWORKS["deepspeed-zeropp"]
    mesh = convention.mesh(world, all_to_all_local=per_node)
    kinds = {group.name: group.kind for group in convention.groups}
    whole = rank_groups(mesh, kinds["data"]).tolist()
    assert whole == [list(range(world))]
    for axis in ("local", "global"):
        wanted = [ranks for name, ranks in case["all_to_all"].items() if name.startswith(axis)]
        found = rank_groups(mesh, f"all_to_all_{axis}").tolist()
        assert found == (wanted or [[rank] for rank in range(world)])  # on one node there is none
    assert case["zero_hpz_partition_size"] == per_node
    found = rank_groups(mesh, kinds["zero_param_intra"]).tolist()
    assert found == case["zero_param_intra_parallel"]
    ulysses = FRAMEWORKS["deepspeed-ulysses"]
    if size := case.get("sequence_parallel_size"):
        mesh = ulysses.mesh(world, sequence_parallel=size)
        assert rank_groups(mesh, "sequence_parallel").tolist() == case["sequence_parallel"]
        (joined,) = ulysses.groups
        assert rank_groups(mesh, joined.kind).tolist() == case["sequence_data_parallel"]


@given(*[st.integers(1, 4)] * 4)
def test_every_deepspeed_expert_group_lies_inside_a_data_group(tp, ep, edp, pp):
    world = tp * ep * edp * pp
    data = group_index(FRAMEWORKS["deepspeed"].mesh(world, model=tp, pipe=pp), "data")
    for data_first in (False, True):
        mesh = expert_mesh(world, tp=tp, ep=ep, pp=pp, data_first=data_first)
        assert all(len(set(data[group].tolist())) == 1 for group in rank_groups(mesh, "expert"))


@pytest.mark.parametrize("ep", [0, True, 2.5, "2"])
def test_deepspeed_has_no_words_for_an_ep_that_is_no_size(ep):
    assert refusal(expert_mesh, 8, ep=ep).quote == ""


@pytest.mark.parametrize(
    ("config", "framework"),
    [
        ('"stage": 3', "deepspeed"),
        ('"stage": 3, "zero_hpz_partition_size": 8', "deepspeed-zeropp"),
        ('"stage": 3, "zero_quantized_gradients": true', "deepspeed-zeropp"),
        ('"stage": 3}, "sequence_parallel_size": 2, "x": {"y": 1', "deepspeed-ulysses"),
    ],
)
def test_a_configuration_says_which_groups_deepspeed_makes(config, framework):
    text = f'{{"train_batch_size": 64, "zero_optimization": {{{config}}}}}'
    read = parse(text)
    assert read.framework.job == framework
    job = read.job()
    assert job.layout().world_size == job.nodes * job.gpus_per_node
