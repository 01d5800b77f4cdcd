"""Our groups against those of Megatron itself, kept as data: same groups, same members, same order.

tests/data/megatron_dense.json holds what megatron-core 0.16.1 printed, megatron_legacy.json what
0.2.0 printed, an older generator written as nested loops.
"""

from __future__ import annotations

import hashlib
import json
import math
from itertools import compress
from pathlib import Path

import pytest
from cases import every

from groups import Axis, LayoutError, Mesh, fit, rank_groups

DATA = Path(__file__).parent / "data"
CURRENT = json.loads((DATA / "megatron_dense.json").read_text())["cases"]
LEGACY = json.loads((DATA / "megatron_legacy.json").read_text())["cases"]

DENSE = ("tp", "cp", "dp", "pp")

# Megatron answers these, with groups that leave the world, are empty, or ignore what was asked.
NONSENSE = {
    "mg-0374": "negative rank_offset",
    "mg-0411": "tp twice in the order",
    "mg-0412": "dp twice in the order",
    "mg-0413": "tp twice in the order",
    "mg-0423": "negative tp",
}

# What each error of Megatron's RankGenerator is about.
REFUSED_CONTROL = {
    "mg-0403": "order",
    "mg-0405": "order",
    "mg-0410": "order",
    "mg-0416": "kind",
    "mg-0417": "kind",
    "mg-0419": "kind",
    "mg-0420": "kind",
    "mg-0421": "tp",
    "mg-0422": "dp",
}


def cases(kind: str, source: list[dict] = CURRENT) -> list:
    chosen = [case for case in source if case["kind"] == kind and case["id"] not in NONSENSE]
    return [pytest.param(case, id=case["id"]) for case in chosen]


def nonsense() -> list:
    return [
        pytest.param(case, id=f"{case['id']} {NONSENSE[case['id']]}")
        for case in CURRENT
        if case["id"] in NONSENSE
    ]


def mesh_of(order: str, sizes: dict[str, int], offset: int = 0) -> Mesh:
    """The mesh of a case: Megatron reads any letter case and appends the axes left out."""
    named = order.lower().split("-")
    left_out = [name for name in sizes if name not in named]
    return Mesh(tuple(Axis(name, sizes[name]) for name in [*named, *left_out]), offset)


def dense_mesh(case: dict) -> Mesh:
    """The mesh of a case's dense grid, which has no ep axis even where the order names one."""
    named = [name for name in case["order"].lower().split("-") if name in DENSE]
    return mesh_of("-".join(named), case["sizes"])


def kind_of(name: str) -> str:
    return "tp-pp" if name == "mp" else name


def lists(mesh: Mesh, kind: str) -> list[list[int]]:
    return rank_groups(mesh, kind).tolist()


def sha256(groups: list[list[int]]) -> str:
    return hashlib.sha256(json.dumps(groups, separators=(",", ":")).encode()).hexdigest()


@every("case", cases("rank_generator"))
def test_every_kind_of_a_rank_generator_is_reproduced(case):
    mesh = mesh_of(case["completed_order"], case["sizes"], case["rank_offset"])
    assert mesh.world_size == case["world_size"]
    assert {kind: lists(mesh, kind) for kind in case["groups"]} == case["groups"]


@every("case", cases("initialize_model_parallel"))
def test_the_dense_groups_of_a_started_job_are_reproduced(case):
    mesh = dense_mesh(case)
    assert mesh.world_size == case["world_size"]
    if "groups" in case:
        ours = {name: lists(mesh, kind_of(name)) for name in case["groups"]}
        assert ours == case["groups"]
    else:  # above 256 ranks the lists are kept as their hash
        ours = {name: sha256(lists(mesh, kind_of(name))) for name in case["groups_sha256"]}
        assert ours == case["groups_sha256"]


@every("case", cases("initialize_model_parallel"))
def test_fit_derives_the_dp_that_megatron_derives(case):
    mesh = dense_mesh(case)
    given = {name: size for name, size in case["sizes"].items() if name != "dp"}
    assert fit(case["world_size"], order="-".join(mesh.names), **given) == mesh


@every("case", cases("masked_orthogonal"))
def test_a_mask_over_unnamed_axes_is_a_kind_over_named_ones(case):
    letters = "abcdefgh"[: len(case["mask"])]
    axes = [Axis(name, size) for name, size in zip(letters, case["parallel_size"], strict=True)]
    kind = "-".join(compress(letters, case["mask"]))
    if not kind:
        # A kind names at least one axis. The empty mask sweeps nothing, which is what a kind over
        # one more axis, of size 1, does: every rank is a group of its own.
        axes.append(Axis("alone", 1))
        kind = "alone"
    mesh = Mesh(tuple(axes))
    assert mesh.world_size == case["world_size"]
    assert lists(mesh, kind) == case["groups"]["masked"]


@every("case", cases("initialize_model_parallel", LEGACY))
def test_the_nested_loops_of_megatron_0_2_give_the_same_groups(case):
    mesh = mesh_of(case["order"], case["sizes"])
    assert mesh.world_size == case["world_size"]
    assert {name: lists(mesh, kind_of(name)) for name in case["groups"]} == case["groups"]


@every("case", nonsense())
def test_nonsense_that_megatron_answers_is_refused(case):
    names = case["completed_order"].split("-")
    with pytest.raises(LayoutError):
        Mesh(tuple(Axis(name, case["sizes"][name]) for name in names), case["rank_offset"])


def test_every_nonsense_case_is_still_in_the_data():
    assert set(NONSENSE) <= {case["id"] for case in CURRENT}


@every("case", cases("error"))
def test_what_megatron_refuses_is_refused_with_its_control(case):
    sizes = case["sizes"]
    if case["tokens"] is None:
        world = math.prod(max(size, 1) for size in sizes.values())
        # Megatron appends an axis of size 1 that the order leaves out; fit wants it named.
        told = {name: size for name, size in sizes.items() if size != 1}
        with pytest.raises(LayoutError) as refusal:
            fit(world, order=case["order"], **told)
    else:
        mesh = mesh_of(case["order"], sizes)
        (kind,) = case["tokens"]
        with pytest.raises(LayoutError) as refusal:
            rank_groups(mesh, kind)
    assert refusal.value.control == REFUSED_CONTROL[case["id"]]
