"""Every framework's groups, from its own names and sizes, against what its own code gave.

The lists in tests/data were printed by deepspeed 0.19.8, torch 2.13.0, torchtitan 0.3.0, horovod
0.28.1 and mesh-tensorflow 0.1.21; systems_vectors.json also has orders that were read.
"""

from __future__ import annotations

import dataclasses
import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups import Axis, LayoutError, Mesh, coordinates, fit, group_index, rank_groups
from groups.conventions import CONVENTIONS, row_major
from groups.deepspeed import (
    default_topology,
    expert_mesh,
    p2p_groups,
    rank_repr,
    ranks_at,
    topology,
)
from groups.launchers import horovod_slots, parse_hosts
from groups.megatron_grids import grids
from groups.torchtitan import device_mesh, torchtitan_meshes

DATA = Path(__file__).parent / "data"
MEGATRON_AXES = ("tp", "cp", "ep", "dp", "pp")


def load(name: str) -> list[dict]:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["cases"]


CASES = {name: load(name) for name in ("deepspeed", "devicemesh", "horovod", "mesh_tensorflow")}


def cases(name: str, *kinds: str) -> list:
    return [pytest.param(c, id=c["id"]) for c in CASES[name] if c["kind"] in kinds]


def refusal(function, *args, **kwargs) -> LayoutError:
    with pytest.raises(LayoutError) as caught:
        function(*args, **kwargs)
    return caught.value


def as_sets(groups) -> set[frozenset[int]]:
    return {frozenset(map(int, group)) for group in groups}


# --- Every convention ----------------------------------------------------------------------------

EACH = [pytest.param(convention, id=key) for key, convention in CONVENTIONS.items()]


def sizes_of(axes) -> dict[str, int]:
    """Two for each axis that plays something other than dp."""
    return {own.name: 2 for own in axes if own.axis != "dp"}


@pytest.mark.parametrize("convention", EACH)
def test_a_convention_has_a_source_and_says_how_it_is_known(convention):
    assert convention.name
    assert convention.source
    assert convention.url.startswith("https://")
    assert convention.basis in ("executed", "read", "not verified")
    assert not convention.unsettled or convention.unsettled.endswith(".")


@pytest.mark.parametrize("convention", EACH)
def test_a_convention_builds_and_all_its_groups_cover_the_world(convention):
    sizes = sizes_of(convention.axes)
    world = 2 ** len(sizes) * (3 if any(own.axis == "dp" for own in convention.axes) else 1)
    mesh = convention.mesh(world, **sizes)
    assert mesh.names == tuple(own.name for own in convention.axes)
    meshes = {"dense": mesh}
    if convention.expert_axes:
        meshes["expert"] = convention.expert_mesh(48, **sizes_of(convention.expert_axes))
    kinds = [(grid, name) for grid, made in meshes.items() for name in made.names]
    kinds += [(group.grid, group.kind) for group in convention.groups]
    for grid, kind in kinds:
        groups = rank_groups(meshes[grid], kind)
        assert sorted(groups.ravel().tolist()) == list(range(meshes[grid].world_size)), kind


@pytest.mark.parametrize("convention", EACH)
def test_every_axis_plays_an_axis_of_megatrons(convention):
    for axes in (convention.axes, convention.expert_axes):
        roles = [own.axis for own in axes]
        assert set(roles) <= set(MEGATRON_AXES)
        assert all(roles.count(role) == 1 for role in roles if role != "dp")
    assert all(own.axis != "ep" for own in convention.axes)
    assert all(own.axis != "cp" for own in convention.expert_axes)
    names = [group.name for group in convention.groups]
    assert len(set(names)) == len(names)


ORDERS = {
    "megatron": "tp-cp-ep-dp-pp",
    "megatron-pp-dp": "tp-cp-ep-pp-dp",
    "megatron-deepspeed": "tp-dp-pp",
    "deepspeed": "tp-ep-dp-pp",
    "deepspeed-data-first": "tp-dp-ep-pp",
    "device-mesh": "tp-cp-dp-pp",
    "torchtitan": "tp-cp-ep-dp-pp",
    "llama3": "tp-cp-pp-dp",
    "nanotron": "tp-cp-dp-pp",
    "nanotron-moe": "tp-cp-ep-pp-dp",
    "picotron": "tp-cp-pp-dp",
    "vllm": "tp-cp-pp-dp",
    "mesh-tensorflow": "tp-dp",
    "horovod": "dp",
    "pytorch-ddp": "dp",
    "gpipe": "pp",
    "fairscale": "tp-cp-pp-dp",
    "paddle-fleet": "tp-cp-pp-dp",
    "oneflow": "tp-dp",
    "mindspore": "tp-cp-dp-pp",
    "whale": "tp-pp-dp",
    "palm": "tp-dp",
}


def test_the_order_of_each_in_megatrons_names():
    assert {key: convention.order for key, convention in CONVENTIONS.items()} == ORDERS


@given(st.data())
def test_the_own_mesh_is_megatrons_mesh_under_other_names(data):
    convention = CONVENTIONS[data.draw(st.sampled_from(sorted(CONVENTIONS)))]
    roles = {own.axis: own.name for own in reversed(convention.axes)}
    sizes = {role: data.draw(st.integers(1, 4), role) for role in roles if role != "dp"}
    rest = data.draw(st.integers(1, 4), "dp") if "dp" in roles else 1
    world = math.prod(sizes.values()) * rest
    own = convention.mesh(world, **{roles[role]: size for role, size in sizes.items()})
    order = "-".join(name for name in convention.order.split("-") if name != "ep")
    megatron = fit(world, order=order, **sizes)
    for role in order.split("-"):
        playing = [axis.name for axis in convention.axes if axis.axis == role]
        assert rank_groups(own, "-".join(playing)).tolist() == rank_groups(megatron, role).tolist()


@given(
    st.sampled_from(["megatron", "deepspeed", "deepspeed-data-first", "torchtitan"]),
    st.tuples(*[st.integers(1, 3)] * 4),
)
def test_the_own_expert_mesh_is_megatrons_expert_grid(key, drawn):
    convention = CONVENTIONS[key]
    sizes = dict(zip(("tp", "ep", "pp"), drawn))
    if key == "torchtitan":
        sizes["tp"] = 1  # it has no tensor parallel experts
    world = math.prod(sizes.values()) * drawn[3]
    own_names = {own.axis: own.name for own in reversed(convention.expert_axes)}
    own = convention.expert_mesh(
        world, **{own_names[role]: size for role, size in sizes.items() if role in own_names}
    )
    order = convention.order if "cp" in convention.order else "cp-" + convention.order
    _, expert = grids(world, order=order, tp=sizes["tp"], ep=sizes["ep"], pp=sizes["pp"])
    for role in ("ep", "dp", "pp"):
        assert rank_groups(own, own_names[role]).tolist() == rank_groups(expert, role).tolist()


# --- What the meshes refuse ----------------------------------------------------------------------


def test_an_axis_the_framework_does_not_have_is_refused():
    error = refusal(CONVENTIONS["deepspeed"].mesh, 16, tp=2)
    assert (error.code, error.facts["mesh"]) == ("unknown-axis", "model-data-pipe")


def test_a_framework_without_experts_has_no_expert_mesh():
    assert refusal(CONVENTIONS["llama3"].expert_mesh, 16).code == "no-axes"


@pytest.mark.parametrize(
    ("key", "world", "sizes", "code"),
    [
        ("deepspeed", 16, {"model": 3}, "does-not-divide"),
        ("deepspeed", 16, {"model": 2, "data": 2, "pipe": 2}, "does-not-fill"),
        ("gpipe", 8, {"stage": 4}, "no-dp-in-order"),
        ("gpipe", 8, {}, "no-dp-in-order"),
        ("llama3", 16, {"tp": 0, "cp": 3}, "out-of-range"),
        ("llama3", 16, {"tp": 10**5000}, "out-of-range"),
        ("llama3", 16, {"tp": 2.5}, "not-a-whole-number"),
        ("horovod", 8, {"local": 3, "cross": 2}, "does-not-fill"),
    ],
)
def test_bad_sizes_are_refused_and_every_alternative_works(key, world, sizes, code):
    error = refusal(CONVENTIONS[key].mesh, world, **sizes)
    assert error.code == code
    assert error.alternatives
    for alternative in error.alternatives:
        assert CONVENTIONS[key].mesh(world, **{**sizes, **alternative}).world_size == world


@pytest.mark.parametrize("world", [0, 2**20 + 1, 1.5, "8"])
def test_a_bad_world_is_refused(world):
    assert refusal(CONVENTIONS["llama3"].mesh, world).control == "world"


def test_the_second_data_axis_takes_what_remains_if_the_first_is_given():
    assert str(CONVENTIONS["torchtitan"].mesh(16)) == "tp1-cp1-dp_shard16-dp_replicate1-pp1"
    hybrid = CONVENTIONS["torchtitan"].mesh(16, dp_shard=8)
    assert str(hybrid) == "tp1-cp1-dp_shard8-dp_replicate2-pp1"
    assert str(CONVENTIONS["vllm"].mesh(16, tp=4, dp=2)) == "tp4-pcp1-pp1-dp2-external_dp2"
    assert str(CONVENTIONS["paddle-fleet"].mesh(16, mp=4)) == "mp4-sep1-sharding1-pp1-dp4"


# --- Groups that were stated for 16 ranks --------------------------------------------------------

VECTORS = json.loads((DATA / "systems_vectors.json").read_text(encoding="utf-8"))["vectors"]

# Vector: its convention, its own sizes, and its axes where the vector calls them otherwise.
MADE = {
    "megatron tp-cp-ep-dp-pp": ("megatron", {"tp": 2, "cp": 2, "pp": 2}, {}),
    "megatron tp-cp-ep-pp-dp": ("megatron-pp-dp", {"tp": 2, "cp": 2, "pp": 2}, {}),
    "megatron docstring t2 p4 d2": ("megatron", {"tp": 2, "pp": 4}, {}),
    "megatron expert grid etp1 ep4 edp2 pp2 (16 ranks)": (
        "megatron",
        {"ep": 4, "pp": 2},
        {"tp": "etp", "dp": "edp", "tp-ep-pp": "etp-ep-pp"},
    ),
    "deepspeed PipeModelDataParallelTopology pp2 mp2 dp4": (
        "deepspeed",
        {"model": 2, "pipe": 2},
        {},
    ),
    "deepspeed PipeDataParallelTopology pp2 dp4": ("deepspeed", {"pipe": 2}, {}),
    "llama3 / fairscale main (row-major [dp, pp, cp, mp]) 2x2x2x2": (
        "fairscale",
        {"mp": 2, "cp": 2, "pp": 2},
        {"tp": "mp"},
    ),
    "torchtitan row-major [pp, dp_replicate, dp_shard, cp, tp] 2x1x2x2x2": (
        "torchtitan",
        {"tp": 2, "cp": 2, "pp": 2},
        {},
    ),
    "paddle row-major [dp, pp, sharding, sep, mp] 2x2x2x1x2": (
        "paddle-fleet",
        {"mp": 2, "sharding": 2, "pp": 2},
        {},
    ),
}


@pytest.mark.parametrize("vector", VECTORS)
def test_the_stated_groups_come_from_the_convention(vector):
    key, sizes, renamed = MADE[vector]
    world = 1 + max(rank for groups in VECTORS[vector].values() for g in groups for rank in g)
    convention = CONVENTIONS[key]
    mesh = (convention.expert_mesh if "expert grid" in vector else convention.mesh)(world, **sizes)
    for kind, expected in VECTORS[vector].items():
        assert rank_groups(mesh, renamed.get(kind, kind)).tolist() == expected, kind


def test_llama3_and_fairscale_number_ranks_alike():
    vector = VECTORS["llama3 / fairscale main (row-major [dp, pp, cp, mp]) 2x2x2x2"]
    mesh = CONVENTIONS["llama3"].mesh(16, tp=2, cp=2, pp=2)
    assert {kind: rank_groups(mesh, kind).tolist() for kind in vector} == vector


def test_llama3_figure_5():
    mesh = CONVENTIONS["llama3"].mesh(16, tp=2, cp=2, pp=2)
    assert {name: rank_groups(mesh, name)[0].tolist() for name in mesh.names} == {
        "tp": [0, 1],
        "cp": [0, 2],
        "pp": [0, 4],
        "dp": [0, 8],
    }


def test_vllm_expert_groups_join_all_ranks_of_a_stage():
    mesh = CONVENTIONS["vllm"].mesh(8, tp=2, pp=2)
    (ep,) = CONVENTIONS["vllm"].groups
    assert rank_groups(mesh, ep.kind).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]


# --- DeepSpeed -----------------------------------------------------------------------------------


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
    mesh = CONVENTIONS["deepspeed"].mesh(
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
    convention = CONVENTIONS["deepspeed"]
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


@given(*[st.integers(1, 4)] * 4)
def test_every_deepspeed_expert_group_lies_inside_a_data_group(tp, ep, edp, pp):
    world = tp * ep * edp * pp
    data = group_index(CONVENTIONS["deepspeed"].mesh(world, model=tp, pipe=pp), "data")
    for data_first in (False, True):
        mesh = expert_mesh(world, tp=tp, ep=ep, pp=pp, data_first=data_first)
        assert all(len(set(data[group].tolist())) == 1 for group in rank_groups(mesh, "expert"))


# --- DeviceMesh and torchtitan -------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("devicemesh", "device_mesh"))
def test_a_device_mesh_is_row_major(case):
    mesh = device_mesh(case["world_size"], case["mesh_shape"], case["mesh_dim_names"])
    at = [coordinates(mesh, rank) for rank in range(case["world_size"])]
    assert [[c[name] for name in case["mesh_dim_names"]] for c in at] == case["coords"]
    for slice_, expected in case["groups"].items():
        assert rank_groups(mesh, slice_.replace("+", "-")).tolist() == expected, slice_


def test_a_device_mesh_with_too_few_names_is_refused_as_torch_does():
    (case,) = [c for c in CASES["devicemesh"] if c.get("call") == "names too few"]
    error = refusal(device_mesh, 4, (2, 2), ("a",))
    assert error.code == "names-and-sizes-differ"
    assert error.quote == case["error"]["message"]


def test_a_device_mesh_smaller_than_the_world_is_refused_though_torch_accepts_it():
    (case,) = [c for c in CASES["devicemesh"] if c.get("call") == "shape (2,2) on world 8"]
    assert case["kind"] == "accepted"
    error = refusal(device_mesh, 8, (2, 2), ("a", "b"))
    assert (error.code, error.facts) == (
        "does-not-fill",
        {"sizes": "a 2 x b 2", "product": 4, "world": 8},
    )
    assert error.alternatives == ({"world": 4},)
    assert error.why == "every rank stands in the mesh once"


def test_a_device_mesh_with_a_repeated_rank_cannot_be_asked_for():
    # torch takes any array of ranks and accepts [[0, 1], [1, 2]]. A mesh here has no array: its
    # ranks follow from its sizes, each once, so only a repeated axis is left to refuse.
    (case,) = [c for c in CASES["devicemesh"] if c.get("call") == "repeated rank"]
    assert case["kind"] == "accepted"
    assert {field.name for field in dataclasses.fields(Mesh)} == {"axes", "offset"}
    assert refusal(device_mesh, 4, (2, 2), ("a", "a")).code == "repeated-axis"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_row_major_numbers_ranks_as_numpy_does(shape):
    names = ["a", "b", "c", "d", "e"][: len(shape)]
    mesh = row_major(names, shape)
    for rank, index in enumerate(product(*map(range, shape))):
        assert coordinates(mesh, rank) == dict(zip(names[::-1], index[::-1]))
    last = np.arange(mesh.world_size).reshape(-1, shape[-1])
    assert np.array_equal(rank_groups(mesh, names[-1]), last)


@pytest.mark.parametrize("case", cases("devicemesh", "torchtitan"))
def test_every_torchtitan_group(case):
    dense, sparse = torchtitan_meshes(case["world_size"], **case["degrees"])
    joined = {group.name: group.kind for group in CONVENTIONS["torchtitan"].groups}
    for name, expected in case["groups"].items():
        mesh = sparse if name in ("ep", "efsdp") else dense
        assert rank_groups(mesh, joined.get(name, name)).tolist() == expected, name


@pytest.mark.parametrize(
    "case", [c for c in cases("devicemesh", "error") if "degrees" in c.values[0]]
)
def test_what_torchtitan_refuses_is_refused_and_its_message_quoted(case):
    error = refusal(torchtitan_meshes, case["world_size"], **case["degrees"])
    assert error.quote == case["error"]["message"]
    assert error.alternatives
    for alternative in error.alternatives:
        torchtitan_meshes(case["world_size"], **{**case["degrees"], **alternative})


@pytest.mark.parametrize(
    ("degrees", "code", "quote"),
    [
        (
            {"tp": 3},
            "does-not-divide",
            "Invalid parallel dims: dp_replicate(1) * dp_shard(2) * cp(1) * tp(3) * pp(1) "
            "!= WORLD_SIZE(8)",
        ),
        ({"tp": 16}, "out-of-range", ""),  # dp_shard is filled with 0; that assert has no words
        ({"ep": 0}, "out-of-range", "Parallelism degree should be >= 1, except for dp_shard"),
        (
            {"tp": 99, "cp": 0},
            "out-of-range",
            "Parallelism degree should be >= 1, except for dp_shard",
        ),
        ({"tp": 99, "cp": None}, "out-of-range", ""),
        ({"ep": 2.5}, "not-a-whole-number", ""),
        ({"cp": None}, "not-a-whole-number", ""),
    ],
)
def test_further_refusals_of_torchtitan(degrees, code, quote):
    error = refusal(torchtitan_meshes, 8, **degrees)
    assert (error.code, error.quote) == (code, quote)
    for alternative in error.alternatives:
        torchtitan_meshes(8, **{**degrees, **alternative})


@pytest.mark.parametrize("world", [0, 2.5])
def test_a_bad_world_is_refused_in_every_function(world):
    for made in (torchtitan_meshes, default_topology, expert_mesh):
        error = refusal(made, world)
        assert (error.control, error.quote) == ("world", "")
    assert refusal(device_mesh, world, (2,), ("a",)).control == "world"


@pytest.mark.parametrize("ep", [0, True, 2.5, "2"])
def test_deepspeed_has_no_words_for_an_ep_that_is_no_size(ep):
    assert refusal(expert_mesh, 8, ep=ep).quote == ""


def test_torchtitan_numbers_experts_as_megatron_does_with_etp_1():
    dense, sparse = torchtitan_meshes(32, tp=2, cp=2, pp=2, ep=8)
    megatron, expert = grids(32, tp=2, cp=2, pp=2, ep=8, etp=1)
    assert rank_groups(sparse, "ep").tolist() == rank_groups(expert, "ep").tolist()
    assert rank_groups(sparse, "efsdp").tolist() == rank_groups(expert, "dp").tolist()
    assert rank_groups(dense, "dp_shard").tolist() == rank_groups(megatron, "dp").tolist()


# --- Horovod -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("horovod", "host_assignments"))
def test_horovod_assigns_hosts_as_its_own_launcher(case):
    slots = horovod_slots(case["hosts"], case["min_np"], case["max_np"])
    assert [dataclasses.asdict(slot) for slot in slots] == case["slots"]


def test_uneven_hosts_have_different_cross_sizes():
    slots = horovod_slots("a:3,b:1,c:2,d:4", 10)
    table = [(s.rank, s.host, s.local_rank, s.cross_rank, s.cross_size) for s in slots]
    assert table == [
        (0, "a", 0, 0, 4),
        (1, "a", 1, 0, 3),
        (2, "a", 2, 0, 2),
        (3, "b", 0, 1, 4),
        (4, "c", 0, 2, 4),
        (5, "c", 1, 1, 3),
        (6, "d", 0, 3, 4),
        (7, "d", 1, 2, 3),
        (8, "d", 2, 1, 2),
        (9, "d", 3, 0, 1),
    ]


def test_max_np_leaves_the_last_hosts_partly_or_wholly_unused():
    slots = horovod_slots("a:4,b:4,c:4", 2, 6)
    assert [(slot.host, slot.local_size) for slot in slots] == [("a", 4)] * 4 + [("b", 2)] * 2


@given(st.integers(1, 6), st.integers(1, 6))
def test_even_hosts_are_the_mesh_of_local_and_cross(local, cross):
    slots = horovod_slots(",".join(f"h{i}:{local}" for i in range(cross)), 1)
    mesh = CONVENTIONS["horovod"].mesh(local * cross, local=local)
    for slot in slots:
        at = {"local": slot.local_rank, "cross": slot.cross_rank}
        assert coordinates(mesh, slot.rank) == at
        assert (slot.local_size, slot.cross_size) == mesh.sizes


@pytest.mark.parametrize(
    "hosts", ["", "a", "a:", ":4", "a:x", "a:-1", "a:4,", "a:4;b:4", "a:4,a:2", "a:\uff14", None, 4]
)
def test_malformed_hosts_are_refused(hosts):
    error = refusal(parse_hosts, hosts)
    assert (error.code, error.control) == ("bad-hosts", "hosts")
    assert bool(error.quote) == ("a:2" not in str(hosts))  # Horovod takes a host listed twice


@pytest.mark.parametrize(("max_np", "control"), [(None, "min_np"), (6, "max_np"), (99, "min_np")])
def test_too_few_slots_are_refused_in_horovods_words(max_np, control):
    error = refusal(horovod_slots, "a:4,b:4", 9, max_np)
    slots = min(8, max_np or 8)
    assert (error.code, error.control) == ("too-few-slots", control)
    message = f"Requested more processes (9) than there are available slots ({slots})"
    assert error.quote == message
    for alternative in error.alternatives:
        assert horovod_slots("a:4,b:4", alternative["min_np"], max_np)


def test_hosts_without_slots_and_jobs_beyond_the_limit_are_refused():
    assert refusal(horovod_slots, "a:0", 1).code == "too-few-slots"
    assert refusal(horovod_slots, "a:999999999999", 1).code == "too-many-ranks"
    assert refusal(horovod_slots, "a:4", 0).code == "out-of-range"
    assert refusal(horovod_slots, "a:4", 1, 2.5).code == "not-a-whole-number"
    assert len(horovod_slots("a:999999999999", 1, 8)) == 8


# --- Mesh TensorFlow -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("mesh_tensorflow", "mesh"))
def test_a_mesh_of_mesh_tensorflow_is_row_major(case):
    names, shape = zip(*case["mesh_shape"])
    mesh = row_major(names, shape)
    written = ", ".join(f"{axis.name}={axis.size}" for axis in reversed(mesh.axes))
    assert f"Shape[{written}]" == case["string"]
    at = [coordinates(mesh, pnum) for pnum in range(case["world_size"])]
    assert [[c[name] for name in names] for c in at] == case["coords"]
    assert list(range(case["world_size"])) == case["coords_to_pnum"]
    for reduced, expected in case["reduced_dims"].items():
        if not reduced:
            # Reducing over no axis at all leaves each processor alone; a kind here names an axis.
            assert expected["groups"] == [[pnum] for pnum in range(case["world_size"])]
            assert refusal(rank_groups, mesh, "").code == "bad-names"
            continue
        kind = reduced.replace("+", "-")
        assert group_index(mesh, kind).tolist() == expected["group_of_pnum"]
        assert rank_groups(mesh, kind).tolist() == expected["groups"]
        assert rank_groups(mesh, kind).tolist() == expected["processor_groups"]


# --- Nothing is left out -------------------------------------------------------------------------


def test_every_kind_of_case_is_tested():
    kinds = {name: {case["kind"] for case in found} for name, found in CASES.items()}
    assert kinds == {
        "deepspeed": {
            "topology",
            "filter_match",
            "error",
            "pipeline_grid",
            "pipeline_grid_default",
            "expert_ranks",
            "partition_uniform",  # layers, not ranks: test_layers.py
            "partition_balanced",
        },
        "devicemesh": {"device_mesh", "accepted", "error", "torchtitan"},
        "horovod": {"host_assignments"},
        "mesh_tensorflow": {"mesh"},
    }
