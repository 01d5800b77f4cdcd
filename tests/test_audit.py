"""Which groups cross the border of a domain, and what another order moves."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from groups import LayoutError, fit, parse_mesh
from groups.audit import DOMAINS, LATENCY_BOUND, Span, audit, moved_ranks, moves, span, spans_of
from groups.grouping import Grouping, plain
from groups.megatron.parallel_state import groupings
from groups.placement import nodes_spanned

law = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])

AXES = ("tp", "cp", "dp", "pp")


@st.composite
def meshes(draw, offset=False):
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 8]), min_size=4, max_size=4))
    text = "-".join(f"{name}{size}" for name, size in zip(draw(st.permutations(AXES)), sizes))
    return parse_mesh(text + (f"+{draw(st.integers(0, 30))}" if offset else ""))


@st.composite
def kinds(draw):
    return "-".join(draw(st.lists(st.sampled_from(AXES), min_size=1, unique=True)))


@st.composite
def any_groupings(draw, mesh):
    """A grouping of the mesh: plain, cut evenly or not, thinned, or joined."""
    base = plain(mesh, draw(kinds()))
    size, groups = base.size, base.num_groups
    shape = draw(st.sampled_from(["plain", "cut", "levels", "thinned", "joined"]))
    if shape == "cut":
        return Grouping("cut", mesh, base.kind, length=draw(st.integers(1, size)))
    if shape == "levels":
        length = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        strides = [d for d in range(1, size // length + 1) if size // length % d == 0]
        return Grouping(
            "level", mesh, base.kind, length=length, stride=draw(st.sampled_from(strides))
        )
    if shape == "thinned":
        places = draw(st.sets(st.integers(0, size - 1), min_size=1))
        return Grouping("thinned", mesh, base.kind, places=tuple(sorted(places)))
    if shape == "joined":
        joined = draw(st.sampled_from([d for d in range(1, groups + 1) if groups % d == 0]))
        return Grouping("joined", mesh, base.kind, joined=joined)
    return base


def lists(grouping: Grouping) -> list[list[int]]:
    groups = grouping.groups()
    return groups.tolist() if isinstance(groups, np.ndarray) else groups


# -- domains -------------------------------------------------------------------------------------

SIXTEEN = groupings(16, tp=2, pp=4)
"""tp2-cp1-dp2-pp4; a stage is four ranks in a row:

 0  1  2  3     4  5  6  7     8  9 10 11    12 13 14 15
"""


@pytest.mark.parametrize(
    ("name", "domain", "expected"),
    [
        ("tp", 4, [1, 1, 1, 1, 1, 1, 1, 1]),
        ("dp", 4, [1, 1, 1, 1, 1, 1, 1, 1]),
        ("pp", 4, [4, 4, 4, 4]),
        ("pp", 8, [2, 2, 2, 2]),
        ("embd", 4, [2, 2, 2, 2]),
        ("embd", 16, [1, 1, 1, 1]),
        ("mp", 8, [2, 2]),
        ("pos-embd", 4, [1, 1, 1, 1]),
        ("tp", 3, [1, 2, 1, 1, 2, 1, 1, 2]),  # 2 and 3, 8 and 9, 14 and 15 are parted
    ],
)
def test_groups_of_16_gpus_stand_on_so_many_domains(name, domain, expected):
    assert spans_of(SIXTEEN[name], domain).tolist() == expected


def test_a_short_last_run_is_counted_like_the_others():
    """dp-cp of 20 ranks in runs of 8, 8 and 4: mg-0067 has 12 in runs of 4."""
    runs = groupings(20, hybrid_context_parallel=True)["hybrid-dp-cp-8"]
    assert not runs.is_even
    assert [len(ranks) for ranks in lists(runs)] == [8, 8, 4]
    assert spans_of(runs, 4).tolist() == [2, 2, 1]
    assert spans_of(runs, 72).tolist() == [1, 1, 1]
    found = span(runs, 4)
    assert (found.groups, found.crossing, found.most, found.size) == (3, 2, 2, 8)


@pytest.mark.parametrize("world", [16, 64, 72, 144, 576, 1024])
@pytest.mark.parametrize("domain", DOMAINS)
def test_every_domain_size_counts_the_nodes_of_the_groups_themselves(world, domain):
    for name, grouping in groupings(world, tp=4, pp=2, ep=2, etp=1).items():
        groups = grouping.groups()
        assert spans_of(grouping, domain).tolist() == nodes_spanned(groups, domain).tolist(), name
        assert span(grouping, domain).crossing == np.count_nonzero(
            nodes_spanned(groups, domain) > 1
        ), name


def test_domains_go_from_half_a_node_to_a_rack():
    assert DOMAINS == (4, 8, 16, 32, 72)


@law
@given(meshes(offset=True), kinds(), st.integers(1, 80))
@example(parse_mesh("tp4-cp1-dp1-pp3"), "tp", 3)
@example(parse_mesh("tp2-cp1-dp3-pp3+5"), "tp-pp", 4)
@example(parse_mesh("tp3-cp1-dp1024-pp1"), "tp", 8)  # too large to make all groups
def test_domains_of_plain_groups_are_counted_without_making_them_all(mesh, kind, domain):
    grouping = plain(mesh, kind)
    counted = spans_of(grouping, domain)
    assert counted.tolist() == nodes_spanned(grouping.groups(), domain).tolist()
    assert np.issubdtype(counted.dtype, np.integer)


@law
@given(st.data(), st.integers(1, 80))
def test_a_group_stands_on_as_many_domains_as_its_members_name(data, domain):
    grouping = data.draw(any_groupings(data.draw(meshes())))
    plainly = [len({rank // domain for rank in ranks}) for ranks in lists(grouping)]
    assert spans_of(grouping, domain).tolist() == plainly
    found = span(grouping, domain)
    assert found.groups == len(plainly) == grouping.num_groups
    assert found.crossing == sum(domains > 1 for domains in plainly)
    assert found.most == max(plainly)


@law
@given(st.data(), st.integers(1, 40), st.integers(1, 5))
def test_a_larger_domain_of_whole_smaller_ones_is_crossed_no_more(data, domain, times):
    grouping = data.draw(any_groupings(data.draw(meshes())))
    assert (spans_of(grouping, domain * times) <= spans_of(grouping, domain)).all()


@pytest.mark.parametrize(
    ("name", "slow"),
    [("tp", True), ("ep", True), ("etp", True), ("tp-ep", True), ("gtp", True), ("egtp", True),
     ("dp", False), ("pp", False), ("dp-cp", False), ("edp", False), ("cp", False),
     ("embd", False), ("slice", False)],
)  # fmt: skip
def test_only_a_group_that_is_waited_for_is_slow_and_only_if_it_leaves(name, slow):
    crossing = Span(name, size=8, domain=4, groups=2, crossing=1, most=2)
    assert crossing.is_slow == slow == (name in LATENCY_BOUND)
    assert not Span(name, size=4, domain=4, groups=4, crossing=0, most=1).is_slow


def test_tensor_parallelism_over_two_nodes_is_slow():
    mesh = fit(32, tp=16)
    assert span(plain(mesh, "tp"), 8).is_slow
    assert not span(plain(mesh, "tp"), 16).is_slow
    assert not span(plain(mesh, "dp"), 8).is_slow
    assert not span(plain(fit(32, tp=8), "tp"), 8).is_slow


def test_an_audit_has_a_row_a_grouping_and_a_column_a_domain():
    rows = audit(SIXTEEN.values(), DOMAINS)
    assert [row[0].name for row in rows] == [
        name for name, grouping in SIXTEEN.items() if grouping.size > 1
    ]
    assert {"cp", "ep", "pos-embd"}.isdisjoint(row[0].name for row in rows)  # groups of one rank
    for row in rows:
        assert [one.domain for one in row] == list(DOMAINS)
        assert row == [span(SIXTEEN[row[0].name], domain) for domain in DOMAINS]


@pytest.mark.parametrize("domain", [0, -1, 2.5, "8", None, True])
@pytest.mark.parametrize("name", ["tp", "embd"])
def test_a_domain_is_a_whole_number_from_1_up(domain, name):
    with pytest.raises(LayoutError):
        spans_of(SIXTEEN[name], domain)


# -- moves ---------------------------------------------------------------------------------------


def moved_plainly(before: Grouping, after: Grouping) -> list[bool]:
    """Whether the set of ranks that a rank is together with is another one."""
    sets: dict[frozenset[int], int] = {}  # of equal sets one: large ones are compared once
    one, other = (
        {rank: number for ranks, number in numbered for rank in ranks}
        for numbered in (
            [(ranks, sets.setdefault(frozenset(ranks), len(sets))) for ranks in lists(grouping)]
            for grouping in (before, after)
        )
    )
    return [one.get(rank) != other.get(rank) for rank in range(before.world_size)]


def test_swapping_dp_and_pp_moves_every_dp_group_and_no_tp_group():
    """tp2-dp2-pp2 to tp2-pp2-dp2, dp groups:

    0 2   4 6        0 4   2 6
    1 3   5 7        1 5   3 7
    """
    one, two = parse_mesh("tp2-dp2-pp2"), parse_mesh("tp2-pp2-dp2")
    assert moved_ranks(plain(one, "dp"), plain(two, "dp")).tolist() == [True] * 8
    assert moved_ranks(plain(one, "tp"), plain(two, "tp")).tolist() == [False] * 8
    assert moved_ranks(plain(one, "dp-pp"), plain(two, "dp-pp")).tolist() == [False] * 8


def test_only_the_ranks_whose_group_changed_have_moved():
    """All of dp in runs of 5, then of 4: a run keeps its ranks nowhere but at the end.

    before   0 1 2 3 4   5 6 7 8 9   10
    after    0 1 2 3     4 5 6 7     8 9 10

    and in runs of 2 against runs of 3, the last run of either is rank 6.
    """

    def runs(size, length):
        return Grouping("dp", parse_mesh(f"dp{size}"), "dp", length=length)

    assert moved_ranks(runs(11, 5), runs(11, 4)).tolist() == [True] * 11
    assert moved_ranks(runs(7, 2), runs(7, 3)).tolist() == [True] * 6 + [False]


def test_a_rank_that_joins_or_leaves_a_group_has_moved():
    mesh = parse_mesh("tp2-pp4")
    ends = Grouping("embd", mesh, "pp", places=(0, 3))
    more = Grouping("embd", mesh, "pp", places=(0, 1, 3))
    first = Grouping("embd", mesh, "pp", places=(0,))
    assert moved_ranks(ends, ends).tolist() == [False] * 8
    assert moved_ranks(ends, more).tolist() == [True] * 4 + [False] * 2 + [True] * 2
    assert moved_ranks(more, ends).tolist() == [True] * 4 + [False] * 2 + [True] * 2
    assert moved_ranks(ends, first).tolist() == [True] * 2 + [False] * 4 + [True] * 2


@law
@given(st.data())
def test_a_rank_has_moved_if_it_is_together_with_other_ranks(data):
    mesh = data.draw(meshes())
    order = data.draw(st.permutations(mesh.axes))
    other = parse_mesh("-".join(f"{axis.name}{axis.size}" for axis in order))
    before, after = data.draw(any_groupings(mesh)), data.draw(any_groupings(other))
    moved = moved_ranks(before, after)
    assert moved.dtype == bool
    assert moved.tolist() == moved_plainly(before, after)
    assert moved_ranks(after, before).tolist() == moved.tolist()
    assert not moved_ranks(before, before).any()


@law
@given(meshes(), kinds())
def test_every_order_of_the_same_axes_is_compared_rightly(mesh, kind):
    for order in list(permutations(mesh.axes))[::5]:
        other = parse_mesh("-".join(f"{axis.name}{axis.size}" for axis in order))
        before, after = plain(mesh, kind), plain(other, kind)
        moved = moved_ranks(before, after)
        assert moved.tolist() == moved_plainly(before, after)
        if before.spread == after.spread:
            assert not moved.any()


def test_the_table_of_moves_has_a_row_a_name_that_both_orders_have():
    before = groupings(32, tp=4, pp=2)
    after = groupings(32, tp=4, pp=2, order="tp-cp-ep-pp-dp")
    table = {move.name: move for move in moves(before, after, gpus_per_node=8)}
    assert list(table) == [name for name, grouping in after.items() if grouping.size > 1]
    for name, move in table.items():
        assert move.moved.tolist() == moved_plainly(before[name], after[name])
        assert move.ranks == sum(moved_plainly(before[name], after[name]))
        assert move.crossing_before == span(before[name], 8).crossing
        assert move.crossing_after == span(after[name], 8).crossing
        assert move.groups == after[name].num_groups
    assert table["tp"].ranks == 0
    assert table["dp"].ranks == 32
    assert (table["pp"].crossing_before, table["pp"].crossing_after) == (16, 0)
    assert (table["dp"].crossing_before, table["dp"].crossing_after) == (8, 8)


def test_a_name_that_only_one_of_the_two_has_is_left_out():
    before = groupings(16, tp=2, pp=2)
    after = groupings(16, tp=2, pp=2, num_distributed_optimizer_instances=2)
    names = [move.name for move in moves(before, after, 8)]
    assert "inter-edp" not in names
    assert "dp" in names
    assert [move.name for move in moves(after, before, 8) if move.name == "inter-edp"] == []


def test_the_domain_of_places_is_the_largest_of_them():
    assert span(plain(parse_mesh("tp4-dp2"), "tp"), np.array([0, 0, 0, 0, 0, 0, 1, 1])).domain == 6
