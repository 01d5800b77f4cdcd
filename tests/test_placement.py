"""Which node each rank stands on, and which groups have to leave it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groups import LayoutError, fit, parse_mesh, rank_groups
from groups.placement import local_rank, node_of, nodes_spanned


def groups_leaving_node(groups, gpus_per_node):
    """How many groups have members on more than one node."""
    return int(np.count_nonzero(nodes_spanned(groups, gpus_per_node) > 1))


SIXTEEN = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)


def spans(mesh, kind, gpus_per_node):
    return nodes_spanned(rank_groups(mesh, kind), gpus_per_node).tolist()


# -- drawn by hand -------------------------------------------------------------------------------


def test_ranks_fill_one_node_after_the_other():
    ranks = np.arange(16)
    assert node_of(ranks, 8).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert local_rank(ranks, 8).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]


def test_the_last_node_may_be_partly_filled():
    ranks = range(10)
    assert node_of(ranks, 4).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert local_rank(ranks, 4).tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]


def test_nodes_keep_the_shape_of_the_ranks():
    groups = [[0, 4], [3, 7], [8, 9]]
    assert node_of(groups, 4).tolist() == [[0, 1], [0, 1], [2, 2]]
    assert local_rank(groups, 4).tolist() == [[0, 0], [3, 3], [0, 1]]


def test_only_the_pipeline_leaves_the_node_with_16_gpus_8_a_node_tp_2_pp_2():
    """Stage 0 is node 0, stage 1 is node 1; rows are dp, columns tp.

    node 0    node 1
     0  1      8  9
     2  3     10 11
     4  5     12 13
     6  7     14 15
    """
    assert spans(SIXTEEN, "tp", 8) == [1, 1, 1, 1, 1, 1, 1, 1]
    assert spans(SIXTEEN, "dp", 8) == [1, 1, 1, 1]
    assert spans(SIXTEEN, "pp", 8) == [2, 2, 2, 2, 2, 2, 2, 2]
    leaving = {k: groups_leaving_node(rank_groups(SIXTEEN, k), 8) for k in ("tp", "dp", "pp")}
    assert leaving == {"tp": 0, "dp": 0, "pp": 8}


def test_data_parallel_groups_span_all_four_nodes_of_4_gpus_when_pp_is_not_last():
    """tp2-pp2-dp4, 4 GPUs a node: a node holds one replica.

    node 0   node 1   node 2    node 3
    0 1      4 5       8  9     12 13     stage 0
    2 3      6 7      10 11     14 15     stage 1
    """
    mesh = parse_mesh("tp2-pp2-dp4")
    assert spans(mesh, "tp", 4) == [1] * 8
    assert spans(mesh, "pp", 4) == [1] * 8
    assert spans(mesh, "dp", 4) == [4, 4, 4, 4]
    assert spans(mesh, "tp-pp", 4) == [1, 1, 1, 1]


def test_with_one_gpu_a_node_every_member_stands_on_its_own():
    assert node_of(range(4), 1).tolist() == [0, 1, 2, 3]
    assert local_rank(range(4), 1).tolist() == [0, 0, 0, 0]
    assert spans(SIXTEEN, "tp", 1) == [2] * 8
    assert spans(SIXTEEN, "dp", 1) == [4] * 4
    assert spans(SIXTEEN, "cp", 1) == [1] * 16
    assert groups_leaving_node(rank_groups(SIXTEEN, "cp"), 1) == 0


def test_with_72_gpus_a_node_16_gpus_stay_on_one():
    assert node_of(range(16), 72).tolist() == [0] * 16
    assert groups_leaving_node(rank_groups(SIXTEEN, "pp"), 72) == 0


def test_of_144_gpus_72_a_node_a_group_of_16_in_a_row_can_lie_across_the_border():
    """tp16 x dp9: ranks 64..79 begin on node 0 and end on node 1."""
    mesh = parse_mesh("tp16-dp9")
    assert spans(mesh, "tp", 72) == [1, 1, 1, 1, 2, 1, 1, 1, 1]
    assert spans(mesh, "dp", 72) == [2] * 16


def test_a_tensor_group_leaves_the_node_when_tp_does_not_divide_it():
    """12 GPUs, tp 6, 4 a node: each group lies across a border.

    node 0     node 1     node 2
    0 1 2 3    4 5|6 7    8 9 10 11
    """
    mesh = parse_mesh("tp6-dp2")
    assert spans(mesh, "tp", 4) == [2, 2]
    assert spans(mesh, "dp", 4) == [2, 2, 2, 2, 2, 2]
    assert groups_leaving_node(rank_groups(mesh, "tp"), 4) == 2


def test_a_world_that_is_no_multiple_of_the_node_leaves_the_last_node_short():
    """12 GPUs, tp 4, 8 a node: node 1 holds ranks 8..11 only."""
    mesh = parse_mesh("tp4-dp3")
    assert spans(mesh, "tp", 8) == [1, 1, 1]
    assert spans(mesh, "dp", 8) == [2, 2, 2, 2]


def test_members_may_be_given_in_any_order():
    # [0, 1, 8, 9, 2, 3, 10, 11] is how Megatron writes an intra-dist-opt group.
    groups = [[0, 1, 8, 9, 2, 3, 10, 11], [15, 0, 14, 1, 13, 2, 12, 3], [7, 0, 6, 1, 5, 2, 4, 3]]
    assert nodes_spanned(groups, 8).tolist() == [2, 2, 1]
    assert groups_leaving_node(groups, 8) == 2


def test_placing_groups_leaves_the_array_as_it_was():
    groups = np.array([[9, 0, 8, 1]])
    nodes_spanned(groups, 8)
    assert groups.tolist() == [[9, 0, 8, 1]]


def test_a_mesh_with_an_offset_starts_on_a_later_node():
    mesh = parse_mesh("tp2-dp4+12")
    assert node_of(rank_groups(mesh, "dp"), 8).tolist() == [[1, 1, 2, 2], [1, 1, 2, 2]]
    assert spans(mesh, "tp", 8) == [1, 1, 1, 1]


def test_the_answers_are_whole_numbers():
    groups = rank_groups(SIXTEEN, "pp")
    assert np.issubdtype(node_of(groups, 8).dtype, np.integer)
    assert np.issubdtype(local_rank(groups, 8).dtype, np.integer)
    assert np.issubdtype(nodes_spanned(groups, 8).dtype, np.integer)
    assert type(groups_leaving_node(groups, 8)) is int


# -- laws ----------------------------------------------------------------------------------------

law = settings(max_examples=80, deadline=None)


@st.composite
def groups_of_ranks(draw):
    """Groups of equal size, members unsorted, gaps allowed."""
    size = draw(st.integers(1, 9))
    members = st.lists(st.integers(0, 2000), min_size=size, max_size=size, unique=True)
    return draw(st.lists(members, min_size=1, max_size=12))


@law
@given(groups_of_ranks(), st.integers(1, 80))
def test_a_group_spans_as_many_nodes_as_its_members_name(groups, gpus_per_node):
    plain = [len({rank // gpus_per_node for rank in group}) for group in groups]
    assert nodes_spanned(groups, gpus_per_node).tolist() == plain
    leaving = sum(1 for nodes in plain if nodes > 1)
    assert groups_leaving_node(groups, gpus_per_node) == leaving


@law
@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=50), st.integers(1, 80))
def test_node_and_local_rank_give_the_rank_back(ranks, gpus_per_node):
    nodes, local = node_of(ranks, gpus_per_node), local_rank(ranks, gpus_per_node)
    assert (nodes * gpus_per_node + local).tolist() == ranks
    assert (local >= 0).all()
    assert (local < gpus_per_node).all()


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gpus_per_node",
    [
        pytest.param(value, id=repr(value))
        for value in (0, -1, True, False, "8", "", None, 2.5, 8.0, float("nan"), float("inf"), [8])
    ],
)
@pytest.mark.parametrize("ask", [node_of, local_rank, nodes_spanned, groups_leaving_node])
def test_gpus_per_node_is_a_whole_number_from_1_up(ask, gpus_per_node):
    with pytest.raises(LayoutError) as refusal:
        ask([[0, 8]], gpus_per_node)
    assert refusal.value.control == "gpus_per_node"
    assert "gpus_per_node" in str(refusal.value)


def test_gpus_per_node_may_be_a_numpy_integer():
    assert groups_leaving_node([[0, 8], [0, 1]], np.int64(8)) == 1
