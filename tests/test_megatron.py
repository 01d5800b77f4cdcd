"""Every group of a real job, against megatron-core 0.16.1 run for real."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups import LayoutError, rank_groups
from groups.families import FAMILIES
from groups.megatron import grids, process_groups

DATA = json.loads((Path(__file__).parent / "data" / "megatron_groups.json").read_text())
MADE = [case for case in DATA["cases"] if "error" not in case]
ERRORS = [case for case in DATA["cases"] if "error" in case]
OPTIONS = {
    "n_dist_opt": "num_distributed_optimizer_instances",
    "hcp": "hierarchical_context_parallel_sizes",
    "hybrid_cp": "hybrid_context_parallel",
    "embedding_indices": "embedding_stages",
}


def lists(groups) -> list[list[int]]:
    return groups.tolist() if isinstance(groups, np.ndarray) else groups


def made(case) -> dict:
    sizes = {name: case["sizes"][name] for name in ("tp", "cp", "pp", "ep")}
    etp = case["sizes"]["etp"] if case["etp_given"] else None
    options = {OPTIONS[name]: value for name, value in case["options"].items()}
    return process_groups(case["world_size"], order=case["order"], etp=etp, **sizes, **options)


@pytest.mark.parametrize("case", MADE, ids=lambda case: case["id"])
def test_every_group_is_megatrons_to_the_last_rank(case):
    found = made(case)
    hashed = case.get("groups_sha256", {})
    named = {name for name, family in FAMILIES.items() if family.kind}
    assert set(found) - named == (set(case.get("groups", {})) | set(hashed)) - named
    for name, expected in case.get("groups", {}).items():
        assert lists(found[name]) == expected, name
    for name, expected in hashed.items():
        text = json.dumps(lists(found[name]), separators=(",", ":")).encode()
        assert hashlib.sha256(text).hexdigest() == expected, name


# What Megatron accepts as arguments that this project does not have.
OTHER = {"use_sharp", "sharp_enabled_group", "vpp"}


@pytest.mark.parametrize(
    "case",
    [case for case in ERRORS if not OTHER & set(case["config"]) and case["world_size"]],
    ids=lambda case: case["id"],
)
def test_what_megatron_refuses_is_refused_and_its_message_quoted(case):
    config = dict(case["config"])
    options = {OPTIONS[name]: config.pop(name) for name in OPTIONS if name in config}
    with pytest.raises(LayoutError) as refusal:
        process_groups(config.pop("world"), **config, **options)
    said = case["error"]["message"]
    if case["error"]["type"] in ("RuntimeError", "AssertionError") and case["config"]["order"]:
        assert refusal.value.quote
        assert said.startswith(refusal.value.quote)


def test_an_expert_group_may_span_the_context_parallel_ranks():
    """16 GPUs, tp 2, cp 2, dp 2, pp 2: with ep 8 one ep group is a whole pipeline stage."""
    groups = process_groups(16, tp=2, cp=2, pp=2, ep=8, etp=1)
    assert groups["ep"].tolist() == [list(range(8)), list(range(8, 16))]
    assert groups["edp"].tolist() == [[rank] for rank in range(16)]
    assert groups["dp"].shape == (8, 2)


def test_expert_tensor_parallelism_is_tp_unless_it_is_given():
    _, expert = grids(16, tp=4)
    assert (expert.size("tp"), expert.size("dp")) == (4, 4)
    _, expert = grids(16, tp=4, etp=1)
    assert (expert.size("tp"), expert.size("dp")) == (1, 16)


@pytest.mark.parametrize(
    "order", ["tp-tp-dp", "tp-xx-dp-pp-cp-ep", "", "tp dp pp", "tp-dp-pp-", "TP-DP-PP", None, 3]
)
def test_an_order_that_is_none_is_refused(order):
    with pytest.raises(LayoutError) as refusal:
        process_groups(8, tp=2, order=order)
    assert refusal.value.control == "order"


@pytest.mark.parametrize("name", ["tp", "cp", "pp", "ep", "etp"])
@pytest.mark.parametrize("size", [0, -1, 2.0, "2", True, float("nan")])
def test_a_size_that_is_none_is_refused(name, size):
    with pytest.raises(LayoutError) as refusal:
        process_groups(8, **{name: size})
    assert refusal.value.control == name


@given(
    st.lists(st.integers(1, 4), min_size=4, max_size=4),
    st.integers(1, 4),
    st.integers(1, 3),
)
@settings(deadline=None, max_examples=60)
def test_both_grids_number_the_same_ranks_and_make_the_same_pipelines(sizes, ep, dp):
    tp, cp, pp, etp = sizes
    world = tp * cp * pp * dp
    try:
        dense, expert = grids(world, tp=tp, cp=cp, pp=pp, ep=ep, etp=etp)
    except LayoutError:
        assert world % (etp * ep * pp)
        return
    assert dense.world_size == expert.world_size == world
    assert np.array_equal(rank_groups(dense, "pp"), rank_groups(expert, "pp"))
    for name, groups in process_groups(world, tp=tp, cp=cp, pp=pp, ep=ep, etp=etp).items():
        if name not in ("embd", "pos-embd"):
            assert sorted(np.concatenate(lists(groups))) == list(range(world)), name
