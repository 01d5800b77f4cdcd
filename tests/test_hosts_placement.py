"""Ranks on machines by name, and racks as a level of the audit beside nodes and domains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descriptions import REFUSALS
from diagnosis.machines.placing import placement_of
from formats.hosts import read_hosts
from groups import LayoutError, parse_mesh
from groups.audit import audit, span, spans_of
from groups.grouping import Grouping, plain
from groups.megatron import groupings
from groups.placement import Placement, filled, local_rank, node_of


def test_equal_machines_in_order_stand_as_the_law_says():
    placement = filled(["a", "b", "c"], [4, 4, 4], world=12)
    assert placement.of_ranks().tolist() == node_of(range(12), 4).tolist()
    assert placement.local_ranks.tolist() == local_rank(range(12), 4).tolist()


def test_machines_of_other_sizes_are_filled_one_after_the_other():
    """a: 0 1 2   b: 3   c: 4 5"""
    placement = filled(["a", "b", "c"], [3, 1, 2], world=6)
    assert [placement.host(rank) for rank in range(6)] == list("aaabcc")
    assert placement.local_ranks.tolist() == [0, 1, 2, 0, 0, 1]


def test_a_task_list_may_go_to_and_fro():
    placement = placement_of(read_hosts("a\nb\na\nb\nb"), world=5)
    assert [placement.host(rank) for rank in range(5)] == list("ababb")
    assert placement.local_ranks.tolist() == [0, 0, 1, 1, 2]


def test_machines_too_few_or_left_over_are_refused_with_the_nodes_that_fit():
    hosts = read_hosts("a slots=8\nb slots=8\nc slots=8")
    for world, code in ((32, "too-few-hosts"), (16, "too-many-hosts-for-job"), (8, None)):
        with pytest.raises(LayoutError) as caught:
            placement_of(hosts, world)
        error = caught.value
        assert error.code == code or code is None
        assert error.alternatives == ({"nodes": 3, "gpus_per_node": 8},)
        assert REFUSALS[error.code]["zh"].format(**error.facts)
    assert placement_of(hosts, 24).world_size == 24
    for world in (4, 6):
        with pytest.raises(LayoutError) as caught:
            placement_of(read_hosts("a\nb\na\nb\nb"), world)
        assert REFUSALS[caught.value.code]["zh"].format(**caught.value.facts)
    with pytest.raises(LayoutError) as caught:
        placement_of(read_hosts("a\nb"), 16)
    assert caught.value.code == "slots-unknown"
    assert placement_of(read_hosts("a\nb"), 16, gpus_per_node=8).hosts == ("a", "b")


RACKS = "SwitchName=s0 Nodes=n[0-2]\nSwitchName=s1 Nodes=n3\nSwitchName=top Switches=s[0-1]"


def test_racks_of_different_sizes_are_levels_of_the_audit():
    """Four nodes of 4, tp 8: nodes 0 and 1 are in s0, node 2 too, node 3 in s1."""
    placement = placement_of(read_hosts(RACKS), 16, gpus_per_node=4)
    every = groupings(16, tp=8)
    levels = {kind: placement.of_ranks(kind) for kind in ("node", *placement.levels)}
    (row,) = audit([every["tp"]], [4, 8], levels)
    assert [(one.level, one.domain, one.crossing, one.most) for one in row] == [
        ("", 4, 2, 2),
        ("", 8, 0, 1),
        ("node", 4, 2, 2),
        ("switch", 12, 1, 2),
        ("switch-1", 16, 0, 1),
    ]
    assert row[3].is_slow
    assert placement.places(13) == {"switch": "s1", "switch-1": "top"}
    assert dict(placement.columns())["switch"][8:] == ["s0"] * 4 + ["s1"] * 4


def test_machines_that_a_level_does_not_name_stand_alone_in_it():
    placement = filled(["a", "b", "c"], [1, 1, 1], world=3, levels={"rack": {"b": "a"}})
    assert placement.of_ranks("rack").tolist() == [0, 1, 2]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["tp2-cp2-dp3-pp2", "tp4-cp1-dp2-pp3", "tp1-cp3-dp4-pp2"]),
    st.sampled_from(["tp", "cp", "dp", "pp", "tp-dp", "cp-pp"]),
    st.lists(st.integers(0, 5), min_size=24, max_size=24),
)
def test_a_group_stands_in_as_many_places_as_its_members_name(text, kind, places):
    grouping = plain(parse_mesh(text), kind)
    of_rank = np.array(places)
    plainly = [len({places[rank] for rank in ranks}) for ranks in grouping.groups().tolist()]
    assert spans_of(grouping, of_rank).tolist() == plainly
    for domain in (4, 8, 72):
        consecutive = np.arange(24) // domain
        assert spans_of(grouping, consecutive).tolist() == spans_of(grouping, domain).tolist()


def test_groups_of_different_sizes_have_places_too():
    runs = Grouping("runs", parse_mesh("dp5"), "dp", length=2)
    assert spans_of(runs, np.array([0, 1, 1, 1, 2])).tolist() == [2, 1, 1]
    assert span(runs, np.array([0, 1, 1, 1, 2]), "rack").level == "rack"


def test_a_placement_is_a_value_that_needs_no_racks():
    placement = Placement(("a", "b"), np.array([0, 1]))
    assert placement.places(1) == {}
    assert [name for name, _ in placement.columns()] == ["host", "device"]
