"""Pictures as data: what is drawn where, before anything is painted."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st

from groups import LayoutError, fit, parse_mesh, rank_groups
from groups.grouping import Grouping, plain
from groups.megatron.grids import dense_grid, expert_grid, grids
from groups.megatron.parallel_state import groupings
from groups.mesh import group_of
from render import palette
from render.scenes import geometry
from render.scenes import groups as scene
from render.scenes.cell_lines import CellLines, node_end_runs
from render.scenes.marked import Mark, MarkedCells

SIXTEEN = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)


def plains(mesh, *kinds):
    return [plain(mesh, kind) for kind in kinds]


def board(grid: geometry.Grid, world: int) -> list[list[int]]:
    """The rank in each cell, -1 where there is none, as the picture shows them."""
    ranks = np.full(grid.rows * grid.columns, -1)
    ranks[grid.cells()[:world]] = np.arange(world)
    return ranks.reshape(grid.rows, grid.columns).tolist()


# -- panels: 16 GPUs, tp 2, pp 2, two nodes of eight ---------------------------------------------

GROUPS = {
    "tp": [
        [0, 0, 1, 1, 2, 2, 3, 3],
        [4, 4, 5, 5, 6, 6, 7, 7],
    ],
    "dp": [
        [0, 1, 0, 1, 0, 1, 0, 1],
        [2, 3, 2, 3, 2, 3, 2, 3],
    ],
    "pp": [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [0, 1, 2, 3, 4, 5, 6, 7],
    ],
}


@every("kind", GROUPS)
def test_each_gpu_is_in_the_group_and_colour_that_the_picture_shows(kind):
    shown = scene.panel(plain(SIXTEEN, kind), gpus_per_node=8)
    assert shown.group.reshape(2, 8).tolist() == GROUPS[kind]
    assert shown.colour.reshape(2, 8).tolist() == GROUPS[kind]  # fewer than 11: the same numbers
    assert (shown.grouping.num_groups, shown.grouping.size) == {
        "tp": (8, 2),
        "dp": (4, 4),
        "pp": (8, 2),
    }[kind]


def test_node_is_row_and_local_rank_is_column():
    shown = scene.panel(plain(SIXTEEN, "tp"), gpus_per_node=8)
    column = ((shown.x - shown.x[0]) / shown.cell).reshape(2, 8)
    assert column.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7]] * 2
    rows = shown.y.reshape(2, 8)
    assert np.ptp(rows, axis=1).tolist() == [0, 0]
    assert rows[1, 0] - rows[0, 0] > shown.cell  # a gap between the nodes
    assert [text for _, _, text in shown.labels] == ["N0", "N1"]


def test_row_labels_stand_left_of_their_node_and_at_its_middle():
    shown = scene.panel(plain(SIXTEEN, "tp"), gpus_per_node=8)
    for (x, y, _), (left, top, _, height) in zip(shown.labels, shown.frames):
        assert x < left
        assert y == pytest.approx(top + height / 2)


def test_wide_nodes_fold_into_a_block():
    """Four of 16 GPUs side by side."""
    shown = scene.panel(plain(fit(16), "dp"), gpus_per_node=16)
    assert len(set(shown.x.tolist())) == 4
    assert len(set(shown.y.tolist())) == 4
    assert (np.diff(shown.x.reshape(4, 4)) == shown.cell).all()


def test_a_row_of_several_nodes_is_labelled_by_its_first():
    shown = scene.panel(plain(fit(256), "dp"), gpus_per_node=8)
    assert [text for _, _, text in shown.labels] == [f"N{n}" for n in range(0, 32, 2)]


SIZES = [
    *((world, g) for g in (1, 2, 4, 8, 16, 32, 72) for world in (1, g, 2 * g, 3 * g, 16, 255, 256)),
    *(
        (world, g)
        for g in (3, 5, 6, 7, 11, 17, 100, 256)
        for world in (1, g, g + 1, 2 * g - 1, 251)
    ),
]
SIZES = sorted({(world, g) for world, g in SIZES if world <= 256})


@every("world, gpus_per_node", SIZES)
def test_cells_do_not_overlap_and_stand_in_their_node_inside_the_picture(world, gpus_per_node):
    shown = scene.panel(plain(fit(world), "dp"), gpus_per_node)
    assert shown.x.shape == shown.y.shape == (world,)
    assert shown.cell >= scene.RANK  # every panel is large enough to read the ranks
    beside = np.abs(shown.x[:, None] - shown.x[None, :]) >= shown.cell
    above = np.abs(shown.y[:, None] - shown.y[None, :]) >= shown.cell
    assert (beside | above | np.eye(world, dtype=bool)).all()

    frames = np.array(shown.frames)
    assert len(frames) == math.ceil(world / gpus_per_node)
    left, top, width, height = frames[np.arange(world) // gpus_per_node].T
    assert (shown.x > left).all()
    assert (shown.y > top).all()
    assert (shown.x + shown.cell < left + width).all()
    assert (shown.y + shown.cell < top + height).all()
    assert frames[:, :2].min() >= 0
    assert (frames[:, 0] + frames[:, 2]).max() <= shown.width
    assert (frames[:, 1] + frames[:, 3]).max() <= shown.height
    assert shown.width <= geometry.PANEL[0]
    assert shown.height <= geometry.PANEL[1]


@every("world, gpus_per_node", SIZES)
def test_frames_do_not_overlap(world, gpus_per_node):
    x, y, width, height = np.array(scene.panel(plain(fit(world), "dp"), gpus_per_node).frames).T
    apart = (x[:, None] + width[:, None] <= x) | (y[:, None] + height[:, None] <= y)
    assert (apart | apart.T | np.eye(len(x), dtype=bool)).all()


@every(
    "cell, rank, index", [(64, True, True), (40, True, True), (39, True, False),
                                (22, True, False), (21, False, False)]
)  # fmt: skip
def test_what_a_cell_says_depends_on_its_size(cell, rank, index):
    shown = scene.panel(plain(SIXTEEN, "tp"), gpus_per_node=8)
    sized = replace(shown, cell=float(cell))
    assert (sized.shows_rank, sized.shows_index) == (rank, index)


@every("gpus_per_node, cell", [(8, 41), (4, 40), (16, 38), (72, 30), (1, 36)])
def test_256_gpus_have_cells_as_large_as_the_page_allows(gpus_per_node, cell):
    assert scene.panel(plain(fit(256), "dp"), gpus_per_node).cell == cell


# -- panels of groups that are cut out of others -------------------------------------------------


def test_middle_stages_are_in_no_embedding_group_and_wear_no_colour():
    """16 GPUs, tp 2, pp 4: a stage is four ranks, first and last share the embedding."""
    shown = scene.panel(groupings(16, tp=2, pp=4)["embd"], gpus_per_node=8)
    assert shown.group.reshape(4, 4).tolist() == [
        [0, 1, 2, 3],
        [-1, -1, -1, -1],
        [-1, -1, -1, -1],
        [0, 1, 2, 3],
    ]
    assert shown.colour.tolist() == shown.group.tolist()
    assert (shown.kind, shown.grouping.num_groups, shown.grouping.size) == ("embd", 4, 2)
    assert shown.index_text(-1) == "–"
    assert shown.index_text(3) == "embd3"


def test_cells_in_no_group_take_no_colour_from_the_others():
    """-1 counts as no colour: 32 groups on the first and last of eight rows keep g % 10."""
    mesh = fit(256, tp=8, pp=8)
    shown = scene.panel(groupings(256, tp=8, pp=8)["embd"], gpus_per_node=8)
    inside = shown.group >= 0
    assert inside.sum() == 64
    assert (shown.colour[~inside] == -1).all()
    assert (shown.colour[inside] == shown.group[inside] % 10).all()
    pairs = geometry.touching(geometry.physical_grid(mesh.world_size, 8, 2).grid, 256)
    both = pairs[inside[pairs].all(axis=1)]
    one, other = both.T
    differ = shown.group[one] != shown.group[other]
    assert (shown.colour[one] != shown.colour[other])[differ].all()


@every(
    "name, text",
    [
        ("tp", "tp3"),
        ("hcp-l0", "hcp-l0:3"),
        ("pos-embd", "pos-embd3"),
        ("hybrid-dp-cp-4", "#3"),
        ("intra-dist-opt", "#3"),
    ],
)
def test_a_name_that_ends_in_a_digit_is_parted_from_the_index_and_a_long_one_left_out(name, text):
    shown = scene.panel(Grouping(name, SIXTEEN, "tp"), gpus_per_node=8)
    assert (len(name) > scene.LONGEST_KIND) == (text == "#3")
    assert shown.index_text(3) == text
    assert shown.index_text(-1) == "–"
    rank_size, index_size = shown.text_sizes
    assert 0 < index_size * 0.625 * len(shown.index_text(7)) <= shown.side + 1e-6
    assert index_size <= 15 < rank_size


@every("name", ["hcp-l0", "hcp-l1", "hybrid-dp-cp-8", "intra-dist-opt"])
def test_a_cut_or_joined_group_is_coloured_as_it_is(name):
    found = groupings(
        20 if name.startswith("hybrid") else 16,
        cp=1 if name.startswith("hybrid") else 4,
        hybrid_context_parallel=name.startswith("hybrid"),
        hierarchical_context_parallel_sizes=None if name.startswith("hybrid") else (2, 2),
        num_distributed_optimizer_instances=2,
    )
    shown = scene.panel(found[name], gpus_per_node=8)
    for index, ranks in enumerate(found[name].groups()):
        assert (shown.group[list(ranks)] == index).all()
        assert len(set(shown.colour[list(ranks)].tolist())) == 1
    assert shown.grouping.num_groups == shown.group.max() + 1


def test_a_window_of_a_job_has_no_picture():
    window = parse_mesh("tp2-dp4+8")
    with pytest.raises(ValueError, match="whole job"):
        scene.panel(plain(window, "tp"), 8)
    with pytest.raises(ValueError, match="whole job"):
        scene.overview(window, [], 8, 8)


# -- the nodes of a large world ------------------------------------------------------------------


def test_an_overview_of_experts_has_the_stages_of_its_own_mesh():
    _, expert = grids(2048, ep=64, pp=16)
    mesh = expert_grid(expert)
    assert str(mesh) == "etp1-ep64-edp2-pp16"
    overview = scene.overview(mesh, plains(mesh, "ep", "edp", "pp"), 8, 0)
    assert overview.num_stages == 16
    assert overview.stage.tolist() == [rank // 128 for rank in range(2048)]
    assert overview.labels[0][2] == "N0"


EXTREMES = [
    *(f"{axis}131072" for axis in ("tp", "cp", "dp", "pp")),
    *(f"{axis}131071" for axis in ("tp", "cp", "dp", "pp")),
    *(f"{axis}997" for axis in ("tp", "cp", "dp", "pp")),
    "tp997-cp2", "tp2-cp997", "tp127-cp131-dp7", "cp127-pp1021", "dp1021-pp127", "tp1021-dp127",
    "tp8-cp16-pp16-dp64", "tp8-cp1-dp1024-pp16", "dp1-tp1-cp1-pp1", "pp3-dp5-cp7-tp11", "tp1048576",
]  # fmt: skip


@every("text", EXTREMES)
def test_every_rank_has_a_cell_of_its_own_on_the_board(text):
    mesh = parse_mesh(text)
    for grid in (geometry.physical_grid(mesh.world_size, g).grid for g in (1, 7, 8, 72)):
        cells = grid.cells()[: mesh.world_size]
        assert len(cells) == mesh.world_size
        assert cells.min() >= 0
        assert cells.max() < grid.columns * grid.rows
        assert np.bincount(cells).max() == 1
        assert 0.2 <= grid.columns / grid.rows <= 8.1  # a picture, not a line
        assert grid.columns * grid.rows <= 1.3 * mesh.world_size + 300  # mostly filled


@given(st.integers(1, 20_000), st.sampled_from([1, 3, 8, 72]))
@settings(max_examples=80, deadline=None)
def test_any_world_has_a_cell_for_every_rank(world, gpus_per_node):
    grid = geometry.physical_grid(world, gpus_per_node).grid
    cells = grid.cells()[:world]
    assert len(np.unique(cells)) == world
    assert cells.min() >= 0
    assert cells.max() < grid.columns * grid.rows


# -- the nodes as they stand ---------------------------------------------------------------------


def test_nodes_are_tiles_in_rows_and_the_last_may_be_partly_filled():
    """10 GPUs, four a node, two nodes in a row."""
    assert board(geometry.physical_grid(10, 4, across=2).grid, 10) == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [8, 9, -1, -1, -1, -1, -1, -1],
    ]


def test_a_node_of_16_is_a_tile_of_four_by_four():
    assert board(geometry.physical_grid(32, 16, across=2).grid, 32) == [
        [0, 1, 2, 3, 16, 17, 18, 19],
        [4, 5, 6, 7, 20, 21, 22, 23],
        [8, 9, 10, 11, 24, 25, 26, 27],
        [12, 13, 14, 15, 28, 29, 30, 31],
    ]


def test_touching_is_side_by_side_or_above_each_other():
    """0 1 2 3
    4 5"""
    pairs = geometry.touching(geometry.physical_grid(6, 4, across=1).grid, 6).tolist()
    assert sorted(map(tuple, pairs)) == [(0, 1), (0, 4), (1, 2), (1, 5), (2, 3), (4, 5)]


# -- overviews -----------------------------------------------------------------------------------

BIG = fit(1024, order="tp-cp-dp-pp", tp=8, cp=2, pp=4)


@every("rank", [0, 1, 517, 1023])
def test_marks_are_the_groups_of_the_chosen_rank_largest_first(rank):
    for overview in [scene.overview(BIG, plains(BIG, "tp", "cp", "dp", "pp"), 8, rank)]:
        assert overview.rank == rank
        assert [(m.kind, len(m.ranks)) for m in overview.marks] == [
            ("dp", 16), ("tp", 8), ("pp", 4), ("cp", 2)
        ]  # fmt: skip
        for mark in overview.marks:
            (own,) = [g for g in rank_groups(BIG, mark.kind).tolist() if rank in g]
            assert sorted(mark.ranks.tolist()) == own == group_of(BIG, mark.kind, rank).tolist()


def test_groups_of_another_mesh_over_the_same_ranks_may_be_marked():
    """Experts on the dense picture: 2,048 GPUs, tp 2, pp 4, ep 16 of etp 1."""
    found = groupings(2048, tp=2, pp=4, ep=16, etp=1)
    dense = dense_grid(grids(2048, tp=2, pp=4, ep=16, etp=1)[0])
    shown = [found[name] for name in ("tp", "ep", "edp", "embd")]
    for overview in [scene.overview(dense, shown, 8, 517)]:
        assert [(mark.kind, mark.tone, len(mark.ranks)) for mark in overview.marks] == [
            ("edp", "dp", 32), ("ep", "ep", 16), ("tp", "tp", 2)
        ]  # fmt: skip
        for mark in overview.marks:
            assert 517 in mark.ranks
            assert mark.ranks.tolist() == found[mark.kind].members(517).tolist()
        # embd marks nothing here: rank 517 is in the second stage of four
        assert overview.sizes == (("tp", 2), ("ep", 16), ("edp", 32), ("embd", 2))


def test_two_groups_of_one_tone_are_marked_by_two():
    found = groupings(1024, tp=8, cp=2, pp=4)
    marks = scene.marks_of([found["dp"], found["dp-cp"]], rank=3)
    assert [(mark.kind, mark.tone) for mark in marks] == [("dp-cp", "tp"), ("dp", "dp")]
    assert all(mark.tone in palette.TONES for mark in marks)


def test_an_overview_has_a_cell_a_gpu_and_its_stage():
    overview = scene.overview(BIG, plains(BIG, "tp"), 8, 0)
    assert len(np.unique(overview.place)) == 1024
    assert overview.stage.tolist() == [rank // 256 for rank in range(1024)]
    assert overview.num_stages == 4


@every("world", [257, 997, 1024, 16384, 131072, 131071])
@every("gpus_per_node", [1, 8, 72])
def test_an_overview_and_its_labels_fit_the_page(world, gpus_per_node):
    mesh = fit(world)
    for overview in [scene.overview(mesh, plains(mesh, "dp"), gpus_per_node, world - 1)]:
        assert overview.width <= scene.OVERVIEW_WIDTH + 1e-6
        assert overview.height <= scene.OVERVIEW_TOP + scene.OVERVIEW_HEIGHT + 1e-6
        assert overview.cell > 0.8
        assert overview.ring > overview.cell / 2
        beside = [y for _, y, _ in overview.labels]
        assert min(beside) > 0
        assert max(beside) < overview.height
        assert all(b - a >= geometry.LABEL_ROOM - 1e-6 for a, b in pairwise(beside))


def test_gaps_are_drawn_from_4_pixels_a_cell():
    meshes = {world: fit(world, tp=8) for world in (512, 16384, 131072)}
    by_world = {
        world: scene.overview(mesh, plains(mesh, "tp"), 8, 0) for world, mesh in meshes.items()
    }
    assert {world: one.cell >= 4 for world, one in by_world.items()} == {
        512: True, 16384: False, 131072: False
    }  # fmt: skip


@every("world", [512, 4096, 16384, 131072])
def test_a_mark_is_at_least_three_pixels_wide_and_never_a_quarter_of_the_picture(world):
    mesh = fit(world, tp=8, pp=4)
    for overview in [scene.overview(mesh, plains(mesh, "tp", "pp", "dp"), 8, 0)]:
        for mark in overview.marks:
            swell = overview.swell(len(mark.ranks))
            side = 1 + 2 * swell
            crowded = len(mark.ranks) * (side + 2) ** 2 > world / 4
            assert side * overview.cell >= scene.Overview.seen or crowded
            assert swell == 0 or len(mark.ranks) * side**2 <= world / 4
            assert swell == 0 or overview.cell < scene.Overview.seen


def test_a_rank_or_kind_that_is_not_there_is_refused():
    for rank in (-1, 1024, 2.5, "0"):
        with pytest.raises(LayoutError):
            scene.overview(BIG, plains(BIG, "tp"), 8, rank)
    with pytest.raises(LayoutError):
        scene.overview(BIG, plains(BIG, "xp"), 8, 0)


class Diagonal(MarkedCells):
    """Ten cells of 10 pixels, rank after rank from the upper left to the lower right."""

    rank, left, top, width, height, sides = 0, 0.0, 0.0, 99.0, 99.0, (10.0, 10.0)
    board_shape, seen = (10, 10), 0.0

    def __init__(self, marks):
        self.marks = marks

    def corners(self, ranks):
        return 10.0 * ranks, 10.0 * ranks


def test_a_tag_stands_at_another_member_and_at_none_for_the_chosen_gpu_alone():
    both, alone = Mark("dp", np.array([0, 3]), "dp"), Mark("tp", np.array([0]), "tp")
    (tag,) = Diagonal((both,)).tags
    assert (tag.x > 35.0, tag.y) == (True, 35.0)
    assert Diagonal((alone,)).tags == ()


def test_a_node_that_ends_between_two_lines_is_drawn():
    one = CellLines(np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool))
    for count, wanted in ((2, [(0, 0, 0)]), (4, [])):  # between any two of four says nothing
        at = np.arange(count)
        lines = CellLines(at * 10.0, at, np.zeros(count, dtype=bool))
        assert node_end_runs(lines, one, 1, near=None) == wanted
