"""Laws that hold for every mesh, kind and rank, whatever the axes are called."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from groups import (
    Axis,
    LayoutError,
    Mesh,
    coordinates,
    fit,
    group_index,
    parse_mesh,
    rank_groups,
    rank_of,
)

law = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

MOST_RANKS = 256
NAMES = st.one_of(
    st.sampled_from(["tp", "cp", "ep", "dp", "pp", "gtp_remat"]),
    st.builds(str.__add__, st.sampled_from("adptz"), st.text("adptz_", max_size=6)),
)


@st.composite
def meshes(draw, fewest_axes=1):
    names = draw(st.lists(NAMES, min_size=fewest_axes, max_size=6, unique=True))
    room, axes = MOST_RANKS, []
    for name in names:
        size = draw(st.integers(1, min(room, 12)))
        axes.append(Axis(name, size))
        room //= size
    return Mesh(tuple(draw(st.permutations(axes))), draw(st.sampled_from([0, 0, 1, 8, 1000])))


@st.composite
def kinds(draw, mesh):
    """Some axes of the mesh, in any order: a kind need not keep the order of the mesh."""
    return "-".join(draw(st.lists(st.sampled_from(mesh.names), min_size=1, unique=True)))


@st.composite
def meshes_with_kind(draw):
    mesh = draw(meshes())
    return mesh, draw(kinds(mesh))


def all_ranks(mesh: Mesh) -> list[int]:
    return list(range(mesh.offset, mesh.offset + mesh.world_size))


def size_of(mesh: Mesh) -> dict[str, int]:
    return {axis.name: axis.size for axis in mesh.axes}


# -- the text of a mesh --------------------------------------------------------------------------


@law
@given(meshes())
def test_the_text_of_a_mesh_reads_back_as_the_same_mesh(mesh):
    again = parse_mesh(str(mesh))
    assert again == mesh
    assert hash(again) == hash(mesh)
    assert (again.names, again.sizes, again.offset) == (mesh.names, mesh.sizes, mesh.offset)


def test_the_offset_is_written_only_where_there_is_one():
    assert str(Mesh((Axis("tp", 2), Axis("dp", 4)))) == "tp2-dp4"
    assert str(Mesh((Axis("tp", 2), Axis("dp", 4)), offset=8)) == "tp2-dp4+8"


@law
@given(meshes())
def test_the_stride_of_an_axis_is_the_product_of_the_sizes_before_it(mesh):
    assert mesh.strides == tuple(math.prod(mesh.sizes[:i]) for i in range(len(mesh.sizes)))
    assert mesh.world_size == math.prod(mesh.sizes)


# -- ranks and coordinates -----------------------------------------------------------------------


@law
@given(meshes())
def test_coordinates_and_rank_of_invert_each_other_at_every_rank(mesh):
    seen = set()
    for rank in all_ranks(mesh):
        place = coordinates(mesh, rank)
        assert tuple(place) == mesh.names
        assert all(0 <= place[name] < size for name, size in size_of(mesh).items())
        assert rank_of(mesh, **place) == rank
        seen.add(tuple(place.values()))
    assert len(seen) == mesh.world_size


@law
@given(meshes())
def test_a_rank_is_the_offset_plus_its_coordinates_times_the_strides(mesh):
    for rank in all_ranks(mesh):
        steps = zip(coordinates(mesh, rank).values(), mesh.strides, strict=True)
        assert rank == mesh.offset + sum(at * stride for at, stride in steps)


@law
@given(meshes(), st.data())
def test_an_axis_left_out_of_rank_of_is_at_zero(mesh, data):
    rank = data.draw(st.sampled_from(all_ranks(mesh)))
    place = coordinates(mesh, rank)
    told = {name: at for name, at in place.items() if at}
    assert rank_of(mesh, **told) == rank


# -- groups --------------------------------------------------------------------------------------


@law
@given(meshes_with_kind())
def test_every_rank_is_in_exactly_one_group_of_a_kind(mesh_and_kind):
    mesh, kind = mesh_and_kind
    assert sorted(rank_groups(mesh, kind).ravel().tolist()) == all_ranks(mesh)


@law
@given(meshes_with_kind())
def test_a_group_has_one_member_per_joint_coordinate_of_its_axes(mesh_and_kind):
    mesh, kind = mesh_and_kind
    group_size = math.prod(size_of(mesh)[name] for name in kind.split("-"))
    groups = rank_groups(mesh, kind)
    assert groups.shape == (mesh.world_size // group_size, group_size)
    assert groups.dtype == np.int64


@law
@given(meshes_with_kind())
def test_groups_ascend_inside_and_by_their_first_member(mesh_and_kind):
    groups = rank_groups(*mesh_and_kind)
    assert (np.diff(groups, axis=1) > 0).all()
    assert (np.diff(groups[:, 0]) > 0).all()


@law
@given(meshes_with_kind())
def test_members_of_a_group_differ_along_the_axes_of_the_kind_only(mesh_and_kind):
    mesh, kind = mesh_and_kind
    fixed = [name for name in mesh.names if name not in kind.split("-")]
    for group in rank_groups(mesh, kind).tolist():
        places = [coordinates(mesh, rank) for rank in group]
        assert len({tuple(place[name] for name in fixed) for place in places}) == 1


@law
@given(meshes_with_kind())
def test_group_index_is_the_row_in_which_rank_groups_has_the_rank(mesh_and_kind):
    mesh, kind = mesh_and_kind
    index = group_index(mesh, kind)
    assert index.shape == (mesh.world_size,)
    assert index.dtype == np.int64
    for row, group in enumerate(rank_groups(mesh, kind)):
        assert (index[group - mesh.offset] == row).all()


@law
@given(meshes_with_kind(), st.data())
def test_the_order_of_the_names_in_a_kind_does_not_matter(mesh_and_kind, data):
    mesh, kind = mesh_and_kind
    shuffled = "-".join(data.draw(st.permutations(kind.split("-"))))
    assert rank_groups(mesh, shuffled).tolist() == rank_groups(mesh, kind).tolist()


@law
@given(meshes_with_kind(), st.data())
def test_each_group_lies_inside_one_group_of_every_kind_that_joins_more(mesh_and_kind, data):
    mesh, kind = mesh_and_kind
    more = data.draw(st.lists(st.sampled_from(mesh.names), unique=True))
    wider = "-".join(dict.fromkeys([*kind.split("-"), *more]))
    outer = group_index(mesh, wider)[rank_groups(mesh, kind) - mesh.offset]
    assert (outer == outer[:, :1]).all()


@law
@given(meshes())
def test_joining_all_axes_is_one_group_of_all_ranks_in_order(mesh):
    assert rank_groups(mesh, "-".join(mesh.names)).tolist() == [all_ranks(mesh)]


@law
@given(meshes(fewest_axes=2), st.data())
def test_a_group_meets_a_group_of_the_remaining_axes_in_one_rank(mesh, data):
    cut = data.draw(st.integers(1, len(mesh.names) - 1))
    some, rest = "-".join(mesh.names[:cut]), "-".join(mesh.names[cut:])
    pairs = np.stack([group_index(mesh, some), group_index(mesh, rest)])
    assert np.unique(pairs, axis=1).shape == (2, mesh.world_size)


@law
@given(meshes_with_kind())
def test_an_offset_only_shifts_the_ranks(mesh_and_kind):
    mesh, kind = mesh_and_kind
    at_zero = Mesh(mesh.axes)
    assert (rank_groups(mesh, kind) - mesh.offset).tolist() == rank_groups(at_zero, kind).tolist()
    assert group_index(mesh, kind).tolist() == group_index(at_zero, kind).tolist()


def loops(mesh: Mesh, kind: str) -> list[list[int]]:
    """The same groups by nested loops over coordinates: no array, no stride."""

    def sweep(names):
        # itertools.product turns its last factor fastest, a mesh its first axis.
        slowest_first = names[::-1]
        for places in product(*(range(size_of(mesh)[name]) for name in slowest_first)):
            yield dict(zip(slowest_first, places, strict=True))

    def number(place):
        rank = 0
        for axis in reversed(mesh.axes):
            rank = rank * axis.size + place[axis.name]
        return mesh.offset + rank

    joined = kind.split("-")
    swept = [name for name in mesh.names if name in joined]
    fixed = [name for name in mesh.names if name not in joined]
    return [[number(here | there) for there in sweep(swept)] for here in sweep(fixed)]


@law
@given(meshes_with_kind())
def test_nested_loops_over_the_coordinates_give_the_same_groups(mesh_and_kind):
    assert rank_groups(*mesh_and_kind).tolist() == loops(*mesh_and_kind)


def test_the_groups_of_eight_gpus_are_those_drawn_by_hand():
    """Ranks of tp2-cp2-dp2: tp across, cp down, dp side by side.

    dp 0    dp 1
    0 1     4 5
    2 3     6 7
    """
    mesh = parse_mesh("tp2-cp2-dp2")
    assert rank_groups(mesh, "tp").tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert rank_groups(mesh, "cp").tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert rank_groups(mesh, "dp").tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert rank_groups(mesh, "dp-cp").tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert rank_groups(mesh, "tp-cp").tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert rank_groups(mesh, "tp-dp").tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]


# -- fit -----------------------------------------------------------------------------------------


@st.composite
def requests(draw, with_dp=True):
    """Arguments of fit: a world, an order (with dp or without), sizes for some of its axes."""
    others = draw(st.lists(NAMES.filter(lambda n: n != "dp"), min_size=1, max_size=5, unique=True))
    order = draw(st.permutations([*others, "dp"] if with_dp else others))
    told = draw(st.lists(st.sampled_from(others), unique=True))
    sizes = {name: draw(st.integers(1, 20)) for name in told}
    return draw(st.integers(1, 256)), "-".join(order), sizes


def assert_alternatives_work(error: LayoutError, world: int, order: str, sizes: dict) -> None:
    assert 1 <= len(error.alternatives) <= 3
    for alternative in error.alternatives:
        mesh = fit(**{"world": world, "order": order, **sizes, **alternative})
        assert mesh.world_size == alternative.get("world", world)
        for name, size in alternative.items():
            assert name == "world" or size_of(mesh)[name] == size
    assert len({tuple(sorted(a.items())) for a in error.alternatives}) == len(error.alternatives)


def outcome(world: int, order: str, sizes: dict) -> Mesh | LayoutError:
    try:
        return fit(world, order=order, **sizes)
    except LayoutError as error:
        return error


@law
@given(requests())
@example((16, "tp-cp-dp-pp", {"tp": 3}))
@example((1, "tp-dp", {"tp": 20}))
def test_fit_fills_the_world_or_offers_sizes_that_do(request_):
    world, order, sizes = request_
    answer = outcome(world, order, sizes)
    if world % math.prod(sizes.values()):
        assert isinstance(answer, LayoutError)
        assert answer.control in order.split("-")
        assert_alternatives_work(answer, world, order, sizes)
    else:
        assert answer.world_size == world
        assert "-".join(answer.names) == order
        dp = world // math.prod(sizes.values())
        assert size_of(answer) == {**dict.fromkeys(answer.names, 1), **sizes, "dp": dp}


@law
@given(requests(), st.integers(1, 20))
@example((16, "tp-cp-dp-pp", {"tp": 3}), 4)
@example((16, "tp-cp-dp-pp", {"tp": 2}), 4)
def test_fit_with_a_given_dp_fills_the_world_or_offers_sizes_that_do(request_, dp):
    world, order, sizes = request_
    assert_fills_exactly(world, order, {**sizes, "dp": dp})


@law
@given(requests(with_dp=False))
@example((16, "tp-pp", {"tp": 3, "pp": 2}))
@example((16, "tp-pp", {"tp": 2, "pp": 2}))
def test_fit_of_an_order_without_dp_fills_the_world_or_offers_sizes_that_do(request_):
    assert_fills_exactly(*request_)


def assert_fills_exactly(world: int, order: str, sizes: dict) -> None:
    """Nothing is left to derive: the sizes fill the world, or they are refused with a cure."""
    answer = outcome(world, order, sizes)
    if math.prod(sizes.values()) == world:
        assert answer.world_size == world
        assert size_of(answer) == {**dict.fromkeys(answer.names, 1), **sizes}
    else:
        assert isinstance(answer, LayoutError)
        assert_alternatives_work(answer, world, order, sizes)
