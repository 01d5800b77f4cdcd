"""Groups by name: what `Grouping` says of them in its many ways is one and the same.

Laws over every name that Megatron's process groups have, for both grids, and groups drawn by hand.
"""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest
from cases import every
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groups import LayoutError, coordinates, parse_mesh, rank_groups
from groups.grouping import Grouping, plain
from groups.megatron.grids import GTP, grids
from groups.megatron.parallel_state import FAMILIES, family, groupings, process_groups


def lists(groups) -> list[list[int]]:
    return groups.tolist() if isinstance(groups, np.ndarray) else groups


def assert_alternatives_work(error: LayoutError, asked: dict) -> None:
    for cure in error.alternatives:
        assert process_groups(**{**asked, **cure}), cure


# -- drawn by hand -------------------------------------------------------------------------------

LINE = parse_mesh("tp2-cp4-pp2")
"""Ranks of a stage, tp across, cp down; rank + 8 in the other stage.

0 1
2 3
4 5
6 7
"""


def test_a_cut_group_is_runs_of_members_a_stride_apart():
    near = Grouping("near", LINE, "cp", length=2)
    far = Grouping("far", LINE, "cp", length=2, stride=2)
    assert near.groups()[:4].tolist() == [[0, 2], [4, 6], [1, 3], [5, 7]]
    assert far.groups()[:4].tolist() == [[0, 4], [2, 6], [1, 5], [3, 7]]
    for grouping in (near, far):
        assert (grouping.num_groups, grouping.size, grouping.pieces) == (8, 2, 2)
        assert grouping.is_even
        assert not grouping.is_plain
        assert grouping.spread is None
    assert near.members(12).tolist() == [12, 14]
    assert far.members(12).tolist() == [8, 12]


def test_the_last_run_is_short_where_the_length_does_not_divide():
    grouping = Grouping("runs", parse_mesh("tp2-dp5"), "dp", length=2)
    assert grouping.groups() == [[0, 2], [4, 6], [8], [1, 3], [5, 7], [9]]
    assert not grouping.is_even
    assert (grouping.num_groups, grouping.size) == (6, 2)
    assert grouping.members(9).tolist() == [9]
    assert grouping.neighbours(9) == (9, 9)
    assert grouping.index().tolist() == [0, 3, 0, 3, 1, 4, 1, 4, 2, 5]


def test_of_a_thinned_group_only_some_places_take_part():
    ends = Grouping("embd", parse_mesh("tp2-pp4"), "pp", places=(0, 3))
    assert ends.groups().tolist() == [[0, 6], [1, 7]]
    assert ends.index().tolist() == [0, 1, -1, -1, -1, -1, 0, 1]
    assert (ends.num_groups, ends.size) == (2, 2)
    assert ends.members(7).tolist() == [1, 7]
    assert ends.neighbours(7) == (1, 1)
    for rank in (2, 3, 4, 5):
        assert ends.index_of(rank) is None
        assert ends.members(rank).tolist() == []
        assert ends.neighbours(rank) is None


def test_joined_groups_are_listed_as_megatron_lists_them_and_counted_as_torch_sorts_them():
    """Two groups of a stage of each pipeline: mg-0052."""
    joined = groupings(16, tp=2, pp=2, num_distributed_optimizer_instances=2)["intra-dist-opt"]
    assert joined.groups().tolist()[0] == [0, 1, 8, 9, 2, 3, 10, 11]
    assert joined.members(2).tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    assert joined.neighbours(2) == (1, 3)
    assert joined.index().tolist() == [0, 0, 0, 0, 1, 1, 1, 1] * 2


def test_a_pipeline_is_a_ring():
    stages = plain(parse_mesh("tp2-pp3"), "pp")
    assert [stages.neighbours(rank) for rank in (0, 2, 4)] == [(4, 2), (0, 4), (2, 0)]


def test_a_group_over_all_axes_is_the_world():
    everyone = plain(LINE, "tp-cp-pp")
    assert everyone.groups().tolist() == [list(range(16))]
    assert everyone.index().tolist() == [0] * 16
    assert everyone.firsts().tolist() == [0]
    halves = Grouping("halves", LINE, "tp-cp-pp", length=8)
    assert halves.groups().tolist() == [list(range(8)), list(range(8, 16))]
    assert halves.index_of(9) == 1


def test_a_window_of_the_world_counts_its_ranks_from_the_offset():
    window = Grouping("far", parse_mesh("tp2-cp4+100"), "cp", length=2, stride=2)
    assert window.groups().tolist() == [[100, 104], [102, 106], [101, 105], [103, 107]]
    assert window.members(106).tolist() == [102, 106]
    assert window.index_of(106) == window.index()[6] == 1
    assert plain(parse_mesh("tp2-dp2+100"), "dp").firsts().tolist() == [100, 101]


@every("rank", [-1, 16, 2.5, "3", None, True])
@every("ask", ["members", "index_of", "neighbours"])
@every(
    "grouping",
    [
        plain(LINE, "cp"),
        Grouping("cut", LINE, "cp", length=2),
        Grouping("ends", LINE, "cp", places=(0, 3)),
        Grouping("joined", LINE, "cp", joined=2),
        plain(LINE, "tp-cp-pp"),
        Grouping("halves", LINE, "tp-cp-pp", length=8),
    ],
    ids=lambda grouping: grouping.name,
)
def test_a_rank_that_is_not_there_is_refused(grouping, ask, rank):
    with pytest.raises(LayoutError) as refusal:
        getattr(grouping, ask)(rank)
    assert refusal.value.control == "rank"


def test_an_axis_that_is_not_there_is_refused():
    with pytest.raises(LayoutError) as refusal:
        plain(LINE, "xp").groups()
    assert refusal.value.control == "kind"


# -- laws ----------------------------------------------------------------------------------------

law = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PARTIAL = ("embd", "pos-embd")
"""Names that leave ranks out; the groups of every other name part the world."""


@st.composite
def layouts(draw, fitting=True):
    """Arguments of process_groups; with ``fitting``, sizes that both grids can have."""
    some = st.sampled_from([1, 1, 2, 3, 4])
    asked = {name: draw(some) for name in ("tp", "cp", "pp", "ep")}
    asked["etp"] = draw(st.none() | some)
    if draw(st.booleans()):
        asked |= {"gtp": draw(st.sampled_from([1, 2])), "egtp": draw(st.sampled_from([1, 2]))}
    names = ["tp", "cp", "ep", "dp", "pp"]
    pp_last = draw(st.booleans())
    order = [*draw(st.permutations(names[:4])), "pp"] if pp_last else draw(st.permutations(names))
    asked["order"] = "-".join(order)
    asked["world"] = draw(st.integers(1, 60))
    if fitting:
        etp = asked["tp"] if asked["etp"] is None else asked["etp"]
        dense = asked["tp"] * asked["cp"] * asked["pp"] * asked.get("gtp", 1)
        expert = etp * asked["ep"] * asked["pp"] * asked.get("egtp", 1)
        asked["world"] = math.lcm(dense, expert) * draw(st.integers(1, 3))
    return asked


@st.composite
def options(draw):
    asked = {}
    if draw(st.booleans()):
        asked["num_distributed_optimizer_instances"] = draw(st.sampled_from([0, 1, 2, 3, 4]))
    if draw(st.booleans()):
        levels = draw(st.lists(st.sampled_from([1, 2, 3, 4]), max_size=3))
        asked["hierarchical_context_parallel_sizes"] = levels
    if draw(st.booleans()):
        asked["hybrid_context_parallel"] = draw(st.booleans())
    if draw(st.booleans()):
        asked["embedding_stages"] = draw(st.lists(st.integers(-2, 2), min_size=1, max_size=3))
    if draw(st.booleans()):
        asked["virtual_pipeline_model_parallel_size"] = draw(st.sampled_from([None, 1, 2]))
    return asked


def outcome(ask, asked: dict):
    try:
        return ask(**asked)
    except LayoutError as error:
        return error


def made(asked: dict, extra: dict) -> dict[str, Grouping]:
    """The groupings with as many of the options as go together; none for a refused layout."""
    for name, value in extra.items():
        if isinstance(outcome(groupings, {**asked, name: value}), dict):
            asked = {**asked, name: value}
    found = outcome(groupings, asked)
    return found if isinstance(found, dict) else {}


@law
@given(layouts())
def test_both_grids_number_the_same_ranks_and_make_the_same_pipelines(asked):
    found = outcome(grids, asked)
    if isinstance(found, LayoutError):
        assert not asked["order"].endswith("pp")
        assert found.code in ("dp-and-edp-differ", "pipelines-differ")
        return
    dense, expert = found
    assert dense.world_size == expert.world_size == asked["world"]
    assert math.prod(dense.sizes) == math.prod(expert.sizes) == asked["world"]
    assert np.array_equal(rank_groups(dense, "pp"), rank_groups(expert, "pp"))
    for name in ("tp", "cp", "pp"):
        assert dense.size(name) == asked[name]
    assert (dense.size("ep"), expert.size("cp")) == (1, 1)
    assert expert.size("ep") == asked["ep"]
    assert expert.size("tp") == (asked["tp"] if asked["etp"] is None else asked["etp"])


@law
@given(layouts(), options())
def test_every_rank_is_in_exactly_one_group_of_every_name(asked, extra):
    for name, grouping in made(asked, extra).items():
        ranks = list(chain(*lists(grouping.groups())))
        assert len(ranks) == len(set(ranks)), name
        if name not in PARTIAL:
            assert sorted(ranks) == list(range(asked["world"])), name


@pytest.mark.parametrize("name", ["fsdp", "tp-4", "dp-cp-l0", ""])
def test_a_name_that_megatron_does_not_have_is_of_no_family(name):
    with pytest.raises(KeyError):
        family(name)


@law
@given(layouts(), options())
def test_the_families_of_all_names_are_known(asked, extra):
    for name, grouping in made(asked, extra).items():
        assert grouping.name == name
        row = family(name)
        assert row in FAMILIES.values()
        own = {"dense": {"tp", "cp", "dp", "pp", GTP}, "expert": {"etp", "ep", "edp", "pp", GTP}}
        assert (
            set(grouping.axes) <= own[row.grid] | own["dense" if GTP in grouping.axes else row.grid]
        )


@law
@given(layouts(), options())
def test_index_members_and_groups_agree_for_every_name(asked, extra):
    for name, grouping in made(asked, extra).items():
        groups = [sorted(ranks) for ranks in lists(grouping.groups())]
        index = grouping.index()
        assert index.shape == (asked["world"],)
        assert index.dtype == np.int64
        assert grouping.num_groups == len(groups), name
        assert grouping.size == max(map(len, groups)), name
        assert grouping.is_even == (len(set(map(len, groups))) == 1), name
        owners: list[list[int]] = [[] for _ in range(asked["world"])]
        for at, ranks in enumerate(groups):
            for rank in ranks:
                owners[rank].append(at)
        for rank, own in enumerate(owners):
            assert index[rank] == (own[0] if own else -1), name
            assert grouping.index_of(rank) == (own[0] if own else None), name
            assert grouping.members(rank).tolist() == (groups[own[0]] if own else []), name


@law
@given(layouts(fitting=False), options())
def test_all_that_is_offered_instead_of_a_refused_layout_works(asked, extra):
    asked = {**asked, **extra}
    answer = outcome(process_groups, asked)
    if isinstance(answer, LayoutError):
        assert answer.control
        assert_alternatives_work(answer, asked)


@law
@given(st.data())
def test_one_wrong_size_always_has_a_cure(data):
    """The world fits all other sizes, so that the wrong one can be mended."""
    asked = data.draw(layouts().filter(lambda one: made(one, {})))
    name = data.draw(st.sampled_from(["tp", "cp", "pp", "ep", "etp"]))
    wrong = {**asked, name: data.draw(st.integers(-3, 70) | st.just(10**30))}
    answer = outcome(process_groups, wrong)
    if isinstance(answer, LayoutError):
        assert answer.alternatives, str(answer)
        assert_alternatives_work(answer, wrong)


@st.composite
def plain_groupings(draw, world):
    """A kind of a mesh of so many ranks, in any order, under any names."""
    left, sizes = world, []
    while left > 1 and len(sizes) < 5:
        size = draw(st.sampled_from([d for d in range(2, left + 1) if left % d == 0]))
        sizes.append(size)
        left //= size
    sizes += [left] if left > 1 else []
    sizes += draw(st.lists(st.just(1), min_size=1, max_size=2))
    axes = [f"{'abcdefgh'[at]}{size}" for at, size in enumerate(draw(st.permutations(sizes)))]
    mesh = parse_mesh("-".join(axes))
    return plain(
        mesh, "-".join(draw(st.lists(st.sampled_from(mesh.names), min_size=1, unique=True)))
    )


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_plain_groups_are_the_same_exactly_if_their_spreads_are(data):
    world = data.draw(st.sampled_from([1, 2, 8, 12, 16, 24, 36]))
    one, other = (data.draw(plain_groupings(world)) for _ in range(2))
    same = one.groups().tolist() == other.groups().tolist()
    assert (one.spread == other.spread) == same


@law
@given(st.data())
def test_a_spread_is_read_off_the_first_group(data):
    one = data.draw(plain_groupings(data.draw(st.sampled_from([1, 2, 8, 12, 16, 24, 36]))))
    members = [0]
    for stride, ranks in one.spread:
        members = [rank + step * stride for step in range(ranks) for rank in members]
    assert members == one.members(0).tolist()
    assert one.firsts().tolist() == one.groups()[:, 0].tolist()


@law
@given(layouts())
def test_cut_levels_of_context_parallelism_fix_all_but_one_digit(asked):
    """A place in a cp group is written in digits, fastest first: level i sweeps digit i."""
    asked["world"] *= 4
    asked["cp"] *= 4
    sizes = (2, asked["cp"] // 4, 2)
    found = outcome(groupings, {**asked, "hierarchical_context_parallel_sizes": sizes})
    if isinstance(found, LayoutError):
        assert found.code in ("dp-and-edp-differ", "pipelines-differ")
        return
    mesh = found["cp"].mesh
    for level, size in enumerate(sizes):
        for ranks in found[f"hcp-l{level}"].groups().tolist():
            places = [coordinates(mesh, rank)["cp"] for rank in ranks]
            digits = [
                (place % 2, place // 2 % sizes[1], place // 2 // sizes[1]) for place in places
            ]
            assert [digit[level] for digit in digits] == list(range(size))
            others = {digit[:level] + digit[level + 1 :] for digit in digits}
            assert len(others) == 1
