"""Device meshes and torchtitan's groups, against what torch 2.13.0 and torchtitan 0.3.0 printed."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import CASES, cases, refusal
from reference.deepspeed import (
    default_topology,
    expert_mesh,
)
from reference.meshes import row_major
from reference.torchtitan import device_mesh, torchtitan_meshes

from groups import Mesh, coordinates, rank_groups
from groups.frameworks import FRAMEWORKS
from groups.megatron.grids import grids


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
    said = {field.name for field in dataclasses.fields(Mesh) if field.init}
    assert said == {"axes", "offset"}
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
    joined = {group.name: group.kind for group in FRAMEWORKS["torchtitan"].groups}
    joined["fsdp"] = joined["dp_shard_cp"]  # its name with spmd_backend partial_dtensor
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


def test_torchtitan_s_fsdp_has_no_group_of_that_name_by_default():
    """fully_shard joins (dp_shard, cp) to dp_shard_cp (torch 2.13.0 _fsdp_init.py); the backend
    that makes a mesh "fsdp" is no longer the default (b5bcd76 parallel_dims.py, fsdp.py)."""
    convention = FRAMEWORKS["torchtitan"]
    joined = {group.name: group.kind for group in convention.groups}
    assert "fsdp" not in joined
    mesh = convention.mesh(16, tp=2, cp=2, pp=2)
    (name,) = (name for name in joined if name.startswith("dp_shard_"))
    assert rank_groups(mesh, joined[name]).tolist()[0] == [0, 2, 4, 6]


def test_torchtitan_numbers_experts_as_megatron_does_with_etp_1():
    dense, sparse = torchtitan_meshes(32, tp=2, cp=2, pp=2, ep=8)
    megatron, expert = grids(32, tp=2, cp=2, pp=2, ep=8, etp=1)
    assert rank_groups(sparse, "ep").tolist() == rank_groups(expert, "ep").tolist()
    assert rank_groups(sparse, "efsdp").tolist() == rank_groups(expert, "dp").tolist()
    assert rank_groups(dense, "dp_shard").tolist() == rank_groups(megatron, "dp").tolist()
