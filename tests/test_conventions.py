"""Every framework's groups, from its own names and sizes, against what its own code gave.

The lists in tests/data were printed by deepspeed 0.19.8, torch 2.13.0, torchtitan 0.3.0, horovod
0.28.1 and mesh-tensorflow 0.1.21; systems_vectors.json also has orders that were read.
"""

from __future__ import annotations

import json
import math

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st
from recorded import CASES, DATA, cases, refusal
from reference.meshes import row_major

from groups import coordinates, fit, group_index, rank_groups
from groups.frameworks import FRAMEWORKS
from groups.megatron.grids import grids

MEGATRON_AXES = ("tp", "cp", "ep", "dp", "pp")


# --- Every convention ----------------------------------------------------------------------------

EACH = [pytest.param(convention, id=key) for key, convention in FRAMEWORKS.items()]


def sizes_of(axes) -> dict[str, int]:
    """Two for each axis that plays something other than dp."""
    return {own.name: 2 for own in axes if own.axis != "dp"}


@every("convention", EACH)
def test_a_convention_has_a_source_and_says_how_it_is_known(convention):
    assert convention.name
    assert convention.source
    assert convention.url.startswith("https://")
    assert convention.basis in ("executed", "read", "not verified")
    assert not convention.unsettled or convention.unsettled.endswith(".")


@every("convention", EACH)
def test_a_convention_builds_and_all_its_groups_cover_the_world(convention):
    sizes = sizes_of(convention.axes)
    world = 2 ** len(sizes) * (3 if any(own.axis == "dp" for own in convention.axes) else 1)
    mesh = convention.mesh(world, **sizes)
    assert mesh.names == tuple(own.name for own in convention.axes)
    meshes = {"dense": mesh}
    if convention.expert_axes:
        meshes["expert"] = convention.mesh(48, "expert", **sizes_of(convention.expert_axes))
    kinds = [(grid, name) for grid, made in meshes.items() for name in made.names]
    kinds += [(group.grid, group.kind) for group in convention.groups]
    for grid, kind in kinds:
        groups = rank_groups(meshes[grid], kind)
        assert sorted(groups.ravel().tolist()) == list(range(meshes[grid].world_size)), kind


@every("convention", EACH)
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
    "deepspeed-ulysses": "cp-dp",
    "deepspeed-zeropp": "dp",
    "deepspeed-mics": "dp",
    "deepspeed-autoep": "tp-ep-dp-pp",
    "fsdp": "tp-cp-dp",
    "device-mesh": "tp-cp-dp-pp",
    "torchtitan": "tp-cp-ep-dp-pp",
    "llama3": "tp-cp-pp-dp",
    "nanotron": "tp-cp-dp-pp",
    "nanotron-moe": "tp-cp-ep-pp-dp",
    "picotron": "tp-cp-pp-dp",
    "vllm": "tp-cp-pp-dp",
    "sglang": "tp-cp-ep-dp-pp",
    "tensorrt-llm": "ep-tp-cp-pp-dp",
    "megatron-inference": "tp-cp-ep-dp-pp",
    "mesh-tensorflow": "tp-dp",
    "horovod": "dp",
    "tf-replicator": "tp-dp",
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
    assert {key: convention.order for key, convention in FRAMEWORKS.items()} == ORDERS


@given(st.data())
def test_the_own_mesh_is_megatrons_mesh_under_other_names(data):
    convention = FRAMEWORKS[data.draw(st.sampled_from(sorted(FRAMEWORKS)))]
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
    convention = FRAMEWORKS[key]
    sizes = dict(zip(("tp", "ep", "pp"), drawn))
    if key == "torchtitan":
        sizes["tp"] = 1  # it has no tensor parallel experts
    world = math.prod(sizes.values()) * drawn[3]
    own_names = {own.axis: own.name for own in reversed(convention.expert_axes)}
    own_sizes = {own_names[role]: size for role, size in sizes.items() if role in own_names}
    own = convention.mesh(world, "expert", **own_sizes)
    order = convention.order if "cp" in convention.order else "cp-" + convention.order
    _, expert = grids(world, order=order, tp=sizes["tp"], ep=sizes["ep"], pp=sizes["pp"])
    for role in ("ep", "dp", "pp"):
        assert rank_groups(own, own_names[role]).tolist() == rank_groups(expert, role).tolist()


# --- What the meshes refuse ----------------------------------------------------------------------


def test_an_axis_the_framework_does_not_have_is_refused():
    error = refusal(FRAMEWORKS["deepspeed"].mesh, 16, tp=2)
    assert (error.code, error.facts["axis"]) == ("axis-not-in-order", "tp")


def test_a_framework_without_experts_has_no_expert_mesh():
    assert refusal(FRAMEWORKS["llama3"].mesh, 16, "expert").code == "no-axes"


@every(
    "key, world, sizes, code",
    [
        ("deepspeed", 16, {"model": 3}, "does-not-divide"),
        ("deepspeed", 16, {"model": 2, "data": 2, "pipe": 2}, "no-dp-in-order"),
        ("gpipe", 8, {"stage": 4}, "no-dp-in-order"),
        ("gpipe", 8, {}, "no-dp-in-order"),
        ("llama3", 16, {"tp": 0, "cp": 3}, "out-of-range"),
        ("llama3", 16, {"tp": 10**5000}, "out-of-range"),
        ("llama3", 16, {"tp": 2.5}, "not-a-whole-number"),
        ("horovod", 8, {"local": 3, "cross": 2}, "does-not-divide"),
    ],
)
def test_bad_sizes_are_refused_and_every_alternative_works(key, world, sizes, code):
    error = refusal(FRAMEWORKS[key].mesh, world, **sizes)
    assert error.code == code
    assert error.alternatives
    for alternative in error.alternatives:
        assert FRAMEWORKS[key].mesh(world, **{**sizes, **alternative}).world_size == world


@every("world", [0, 2**20 + 1, 1.5, "8"])
def test_a_bad_world_is_refused(world):
    assert refusal(FRAMEWORKS["llama3"].mesh, world).control == "world"


def test_the_second_data_axis_takes_what_remains_if_the_first_is_given():
    assert str(FRAMEWORKS["torchtitan"].mesh(16)) == "tp1-cp1-dp_shard16-dp_replicate1-pp1"
    hybrid = FRAMEWORKS["torchtitan"].mesh(16, dp_shard=8)
    assert str(hybrid) == "tp1-cp1-dp_shard8-dp_replicate2-pp1"
    assert str(FRAMEWORKS["vllm"].mesh(16, tp=4, dp=2)) == "tp4-pcp1-pp1-dp2-external_dp2"
    assert str(FRAMEWORKS["paddle-fleet"].mesh(16, mp=4)) == "mp4-sep1-sharding1-pp1-dp4"


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


@every("vector", VECTORS)
def test_the_stated_groups_come_from_the_convention(vector):
    key, sizes, renamed = MADE[vector]
    world = 1 + max(rank for groups in VECTORS[vector].values() for g in groups for rank in g)
    convention = FRAMEWORKS[key]
    grid = "expert" if "expert grid" in vector else "dense"
    mesh = convention.mesh(world, grid, **sizes)
    for kind, expected in VECTORS[vector].items():
        assert rank_groups(mesh, renamed.get(kind, kind)).tolist() == expected, kind


def test_llama3_and_fairscale_number_ranks_alike():
    vector = VECTORS["llama3 / fairscale main (row-major [dp, pp, cp, mp]) 2x2x2x2"]
    mesh = FRAMEWORKS["llama3"].mesh(16, tp=2, cp=2, pp=2)
    assert {kind: rank_groups(mesh, kind).tolist() for kind in vector} == vector


def test_llama3_figure_5():
    mesh = FRAMEWORKS["llama3"].mesh(16, tp=2, cp=2, pp=2)
    assert {name: rank_groups(mesh, name)[0].tolist() for name in mesh.names} == {
        "tp": [0, 1],
        "cp": [0, 2],
        "pp": [0, 4],
        "dp": [0, 8],
    }


def test_vllm_expert_groups_join_all_ranks_of_a_stage():
    mesh = FRAMEWORKS["vllm"].mesh(8, tp=2, pp=2)
    (ep,) = FRAMEWORKS["vllm"].groups
    assert rank_groups(mesh, ep.kind).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]


# --- Mesh TensorFlow -----------------------------------------------------------------------------


@every("case", cases("mesh_tensorflow", "mesh"))
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
