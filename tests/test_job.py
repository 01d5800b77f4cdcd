# ruff: noqa: RUF001
"""The picture of the job as data, and the sentence about one GPU: positions from coordinates."""

from __future__ import annotations

import html
import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from cases import every

from groups import LayoutError, coordinates, parse_mesh
from groups.grouping import plain
from render.draw.job import draw_job
from render.marks import LOOKS, Lines, flat
from render.scenes import job as scene
from render.scenes import marked
from render.scenes.job import ACROSS, JobPicture
from render.scenes.job_plan import HALF, NUMBERED, TALL, WHOLE, WIDE
from render.svg.job import job_svg
from request.answers.sentence import sentence_of, spoken
from request.context import Context
from request.link import from_query
from request.resolve import from_preset, resolve
from request.state import State
from views.base.html import unparted
from views.page import answer
from views.parts.job import job_pictures, label_words, layers_of, reading

MESHES = (
    "tp2-cp1-dp4-pp2", "tp2-cp2-dp2-pp2", "tp8-cp2-dp2-pp8", "tp1-cp1-dp16-pp1",
    "tp1-cp4-dp3-pp5", "pp4-tp2-cp1-dp4", "dp4-tp4-cp2-pp4", "tp8-cp1-dp32-pp1",
    "tp1-cp1-dp1-pp64", "etp2-ep8-edp2-pp4", "etp1-ep64-edp2-pp16", "tp1-cp1-dp128-pp16",
    "tp8-cp1-dp128-pp16", "tp1-cp1-dp127-pp16", "tp8-cp1-dp1024-pp16", "tp1-cp1-dp1-pp2048",
    "tp8-cp1-dp32-pp8", "tp2-cp1-dp8-pp64",
)  # fmt: skip


def picture(text: str, rank: int = 0, room=WHOLE, gpus_per_node: int = 8, **more):
    mesh = parse_mesh(text)
    kinds = [plain(mesh, axis.name) for axis in mesh.axes if axis.size > 1]
    return scene.job_picture(mesh, kinds, gpus_per_node, rank, room, **more)


@pytest.mark.parametrize("text", MESHES)
def test_every_gpu_has_a_place_of_its_own_inside_the_picture(text):
    drawn = picture(text, room=TALL)
    wide, tall = drawn.sides
    places = np.stack([drawn.x / wide, drawn.y / tall], axis=-1)
    assert len(np.unique(np.round(places, 3), axis=0)) == drawn.mesh.world_size
    for one, size, end in ((drawn.x, wide, drawn.width), (drawn.y, tall, drawn.height)):
        assert one.min() >= 0
        assert one.max() + size <= end + 0.01
    assert drawn.width <= TALL[0] + 1
    assert drawn.height <= TALL[1] + 1


@pytest.mark.parametrize("text", ["tp4-dp4096", "tp4-dp512-pp2", "tp8-dp32-pp8"])
def test_cells_are_parted_by_a_line_a_row_and_a_column_however_many_bands_there_are(text):
    drawn = picture(text, room=TALL, words=label_words(False, "en"))
    (gaps,) = (one for one in draw_job(drawn, "page") if getattr(one, "name", "") == "gaps")
    rows, columns = drawn.board_shape
    assert 0 < len(gaps.marks[0].lines) <= rows + columns


@pytest.mark.parametrize("text", MESHES)
def test_rows_are_stages_and_columns_are_replicas_whatever_the_order_of_the_axes(text):
    """Within a band: the same stage, the same row of boxes; the same replica, the same column."""
    drawn = picture(text, room=TALL)
    mesh, plan = drawn.mesh, drawn.plan
    data = "edp" if "edp" in mesh.names else "dp"
    ranks = range(0, mesh.world_size, max(1, mesh.world_size // 500))
    corner = {}
    for rank in ranks:
        at = coordinates(mesh, rank)
        band = at[data] // plan.replicas, at["pp"] // plan.stages
        inside = tuple(at[name] for name in mesh.names if name not in (data, "pp"))
        x, y = float(drawn.x[rank]), float(drawn.y[rank])
        assert corner.setdefault(("row", band, at["pp"], inside), y) == pytest.approx(y)
        assert corner.setdefault(("column", band, at[data], inside), x) == pytest.approx(x)


def test_the_job_of_16_gpus_is_drawn_as_the_design_has_it():
    """
    Replica   0      1      2      3
    stage 0  0 1    2 3    4 5    6 7
    stage 1  8 9   10 11  12 13  14 15
    """
    drawn = picture("tp2-cp1-dp4-pp2", rank=5)
    grid = [
        np.argsort(drawn.x[drawn.y == y]) + np.flatnonzero(drawn.y == y)[0]
        for y in np.unique(drawn.y)
    ]
    assert [row.tolist() for row in grid] == [list(range(8)), list(range(8, 16))]
    assert len(drawn.boxes) == 8
    assert len(drawn.replicas) == 4
    assert drawn.box_kind == "tp"
    assert [drawn.holds_rank(one) for one in drawn.replicas] == [False, False, True, False]
    assert [drawn.holds_rank(one) for one in drawn.boxes] == [rank == 4 for rank in range(0, 16, 2)]
    assert {mark.kind: mark.ranks.tolist() for mark in drawn.marks} == {
        "tp": [4, 5], "dp": [1, 3, 5, 7], "pp": [5, 13],
    }  # fmt: skip
    joins = {line.tone: line for line in drawn.lines}
    assert set(joins) == {"dp", "pp"}  # tp has its box
    assert joins["pp"].is_dotted
    assert not joins["dp"].is_dotted
    (*ticks, bar) = joins["dp"].segments
    assert bar[1] == bar[3] > drawn.y[0] + drawn.sides[1]  # below the row
    assert len(ticks) == 4
    names = [(label.name, label.first) for label in drawn.labels]
    assert names == [("stage", 0), ("stage", 1), *(("replica", i) for i in range(4))]


def test_cp_blocks_stand_inside_a_replica():
    drawn = picture("tp2-cp2-dp2-pp2", rank=0)
    first, second, *_ = sorted({(box[1], box[0]) for box in drawn.boxes})
    left, top, width, height = drawn.replicas[0]
    for y, x in (first, second):
        assert left < x < left + width
        assert top < y < top + height
    assert {line.tone for line in drawn.lines} == {"cp", "dp", "pp"}
    bars = {line.tone: line.segments[-1][1] for line in drawn.lines if not line.is_dotted}
    assert bars["cp"] != bars["dp"]  # they would hide each other


@pytest.mark.parametrize(
    ("text", "gpus_per_node", "ends"),
    [
        ("tp2-cp1-dp4-pp2", 8, [("across", 0)]),  # node 0 above, node 1 below
        ("tp2-cp1-dp4-pp2", 16, []),
        ("tp1-cp1-dp4-pp1", 2, [("down", 1)]),
        ("tp1-cp1-dp4-pp1", 1, []),  # each GPU a node: nothing to say
    ],
)
def test_a_mark_stands_where_a_node_ends(text, gpus_per_node, ends):
    drawn = picture(text, gpus_per_node=gpus_per_node)
    xs, ys = np.unique(drawn.x), np.unique(drawn.y)
    found = []
    for x0, y0, x1, y1 in drawn.node_ends:
        if x0 == x1:
            found.append(("down", int((xs < x0).sum()) - 1))
        else:
            assert y0 == y1
            found.append(("across", int((ys < y0).sum()) - 1))
    assert found == ends


@pytest.mark.parametrize("room", [WHOLE, (560.0, 600.0)])
def test_no_mark_of_a_node_runs_from_band_to_band_through_their_labels(room):
    drawn = picture("tp8-cp1-dp32-pp1", room=room)
    assert max(drawn.plan.bands) > 1
    heads = [label for label in drawn.labels if label.name == "replica"]
    down = [(x, *sorted((y0, y1))) for x, y0, x1, y1 in drawn.node_ends if x == x1]
    across = [(*sorted((x0, x1)), y) for x0, y, x1, y1 in drawn.node_ends if y == y1]
    assert down or across
    assert not [(x, label) for x, top, foot in down for label in heads if top < label.y < foot]
    sides = {label.x for label in drawn.labels if label.name == "stage"}
    assert not [(left, x) for left, right, _ in across for x in sides if left < x < right]


def test_numbers_of_256_gpus_have_ten_pixels_on_a_screen():
    assert picture("tp8-cp2-dp4-pp4").number_size >= 10.2  # of 738, which 724 are left for


def test_a_legend_lists_groups_in_the_order_of_the_card():
    words = dict.fromkeys(("key_ranks", "key_group"), "{kind}")
    words["key_gpu"] = "GPU {rank}"
    legend = picture("tp2-cp1-dp4-pp2").legend_of("light", words)
    assert [text for _, text in legend] == ["GPU 0", "tp", "dp", "pp"]


@pytest.mark.parametrize("text", MESHES)
def test_each_band_is_labelled_and_holds_as_many_replicas(text):
    drawn = picture(text, room=TALL)
    plan = drawn.plan
    beside, below = plan.bands
    dp, pp = math.prod(map(drawn.mesh.size, plan.columns)), drawn.mesh.size("pp")
    divides = dp % plan.replicas == 0 and pp % plan.stages == 0
    assert divides or re.search("dp127", text)  # a prime number of replicas
    if plan.is_tight:
        title, *bands = drawn.labels
        assert (title.name, title.first, title.last) == ("replicas", 0, dp - 1)
        assert {label.name for label in bands} == {"band"}
        return
    stages = [label for label in drawn.labels if label.name == "stage"]
    first = {label.first for label in stages}
    assert 0 in first
    by_band = {}
    for label in stages:
        by_band.setdefault((round(label.x), int(label.y // (drawn.height / below))), []).append(
            label
        )
    assert len({x for x, _ in by_band}) == beside
    assert len(stages) >= beside * below
    heads = [label for label in drawn.labels if label.name in ("replica", "replicas")]
    held = {n for label in heads for n in range(label.first, label.last + 1)}
    assert held == set(range(dp)) or (beside > 1 and dp == 1)
    # Columns of stages have each its own heading, never one heading twice.
    columns = [label for label in drawn.labels if label.name == "stages"]
    of_columns = {n for label in columns for n in range(label.first, label.last + 1)}
    assert of_columns == (set(range(pp)) if beside > 1 else set())
    lines = sorted({(round(label.x), label.y) for label in stages})
    assert all(b[1] - a[1] >= 13 for a, b in itertools.pairwise(lines) if a[0] == b[0])


def test_numbers_up_to_256_gpus_and_plain_cells_above():
    assert picture("tp8-cp1-dp8-pp4").is_numbered
    assert not picture("tp8-cp1-dp16-pp4").is_numbered
    assert NUMBERED == 256


def test_deepseek_s_meshes_have_as_wide_bands_as_each_other():
    dense, expert = (
        picture(text, rank=405, room=HALF) for text in ("tp1-cp1-dp128-pp16", "etp1-ep64-edp2-pp16")
    )
    assert dense.plan.replicas == expert.plan.cells_across == 64
    assert dense.plan.bands == expert.plan.bands == (1, 2)
    assert expert.box_kind == "ep"
    assert [label.first for label in expert.labels if label.name == "stage"][:4] == [0, 4, 8, 12]


SLIDE = (1184.0, 480.0)
"""About the room that a slide has for one picture."""


@pytest.mark.parametrize(
    ("text", "across"),
    [
        ("tp8-cp1-dp16-pp4", 2), ("tp8-cp1-dp16-pp8", 2), ("tp8-cp2-dp16-pp8", 2),
        ("tp8-cp1-dp16-pp16", 4), ("tp8-cp1-dp64-pp16", 2), ("tp8-cp1-dp128-pp16", 1),
    ],
)  # fmt: skip
def test_a_large_job_is_one_band_on_the_page_and_folded_so_on_a_slide(text, across):
    """Boxes are folded for it: a dp group is one line, and a pp group one column."""
    drawn = picture(text, rank=77, room=TALL)
    slide = drawn.fitted(SLIDE).plan
    assert slide.bands == drawn.plan.bands == (1, 1)
    assert slide.cells_across == drawn.plan.cells_across == across
    ranks = {mark.kind: mark.ranks for mark in drawn.marks}
    assert len(np.unique(drawn.y[ranks["dp"]].round(3))) == 1
    assert len(np.unique(drawn.x[ranks["pp"]].round(3))) == 1


def test_what_is_in_two_bands_on_a_page_is_in_one_where_a_slide_has_room():
    for text in ("tp1-cp1-dp128-pp16", "etp1-ep64-edp2-pp16"):
        drawn = picture(text, room=HALF)
        below = drawn.fitted((SLIDE[0], SLIDE[1] / 2))
        assert (drawn.plan.bands, below.plan.bands) == ((1, 2), (1, 1))
        assert below.plan.scale >= drawn.plan.fitted((SLIDE[0], SLIDE[1] / 2)).scale
        assert drawn.fitted((SLIDE[0] / 2, SLIDE[1])).plan.bands == (1, 2)  # beside the other


@pytest.mark.parametrize(
    "text", ["tp1-cp1-dp128-pp16", "tp8-cp1-dp128-pp16", "etp1-ep64-edp2-pp16"]
)
def test_the_pixels_of_a_large_picture_are_its_cells(text):
    drawn = picture(text, rank=405, room=TALL)
    base, marks = drawn.base_pixels(), drawn.mark_pixels()
    assert np.count_nonzero(base) == drawn.mesh.world_size
    assert marks[drawn.board_places(405)] == 1 + len(drawn.marks)
    for number, mark in enumerate(drawn.marks):
        own = [rank for rank in mark.ranks.tolist() if rank != 405]
        assert (marks[drawn.board_places(np.array(own))] >= 1 + number).all()
    marked = {rank for mark in drawn.marks for rank in mark.ranks.tolist()}
    # A few small cells swell, so that they are seen.
    area = (2 * max(drawn.swell(len(mark.ranks)) for mark in drawn.marks) + 1) ** 2
    assert len(marked) <= np.count_nonzero(marks) <= area * len(marked)
    assert (area > 1) == (min(drawn.sides) < JobPicture.seen)


@every("text, share", itertools.product(MESHES, (0.0, 0.21, 0.5, 0.99)))
def test_every_group_has_its_name_at_its_end_and_no_name_covers_another(text, share):
    """Beside its last member in sight of the chosen GPU, and off the ring round that."""
    mesh = parse_mesh(text)
    if mesh.world_size <= NUMBERED:
        return
    drawn = picture(text, rank=int(share * mesh.world_size), room=TALL)
    named = [(tag.name, tag.tone) for tag in drawn.tags]
    assert named == [(mark.kind, mark.tone) for mark in drawn.marks]
    wide, tall = drawn.sides
    ring = drawn.x[drawn.rank] + wide / 2, drawn.y[drawn.rank] + tall / 2, 14.0
    boxes = [ring, *((tag.x, tag.y, tag.width) for tag in drawn.tags)]
    for (x, y, w), (other_x, other_y, other_w) in itertools.combinations(boxes, 2):
        assert abs(x - other_x) >= (w + other_w) / 2 - 0.01 or abs(y - other_y) >= 13.99
    for mark, tag in zip(drawn.marks, drawn.tags):
        assert drawn.plan.left <= tag.x - tag.width / 2 + 0.01
        assert tag.x + tag.width / 2 <= drawn.width + 0.01
        assert drawn.plan.top <= tag.y - 6.99
        assert tag.y + 6.99 <= drawn.height
        near = np.hypot(drawn.x[mark.ranks] - tag.x, drawn.y[mark.ranks] - tag.y).min()
        assert near < 80
    if drawn.mesh.world_size == drawn.mesh.size("pp"):
        return  # bands side by side, of one column each: no room for a tag
    covered = [
        (tag.name, label.name, label.first, is_phone)
        for tag, label in itertools.product(drawn.tags, drawn.labels)
        for is_phone in (False, True)
        if _covers(tag, label, is_phone)
    ]
    assert covered == []


def _covers(tag, label, is_phone: bool) -> bool:
    """Whether a tag touches a label's words; a phone has both larger (views/groups/view.css)."""
    grown, letters = (1.6, 17.0) if is_phone else (1.0, 12.0)
    is_above = label.name in ("replica", "replicas")
    y = label.y - (5.0 if is_phone and is_above else 0.0)
    wide = 0.55 * letters * len(f"{label.name} {label.last}")
    left = label.x - {"start": 0.0, "middle": wide / 2, "end": wide}[label.anchor]
    around = grown * tag.width / 2
    is_beside = tag.x + around <= left or tag.x - around >= left + wide
    return not is_beside and abs(tag.y - y) < grown * marked.TALL / 2 + 0.35 * letters


def test_a_rank_that_is_not_there_is_refused():
    with pytest.raises(LayoutError):
        picture("tp2-dp2", rank=4)


def test_the_page_s_script_gets_every_place_as_folds():
    """What client/picture/places.js sums up of the folds is where the cells are."""
    for text in MESHES:
        drawn = picture(text, room=TALL, words=label_words(False, "en"))
        svg = job_svg(drawn, "described")
        known = json.loads(html.unescape(re.search('data-known="([^"]*)"', svg)[1]))
        folds, left, top = known["folds"], known["left"], known["top"]
        for rank in range(0, drawn.mesh.world_size, max(1, drawn.mesh.world_size // 97)):
            x, y, rest = left, top, rank
            for size, period, dx, dy, jump_x, jump_y in folds:
                rest, at = divmod(rest, size)
                x += at % period * dx + at // period * jump_x
                y += at % period * dy + at // period * jump_y
            assert (x, y) == pytest.approx((drawn.x[rank], drawn.y[rank]), abs=0.02)


# -- the sentence ----------------------------------------------------------------------------------

FIRST = State()


@pytest.mark.parametrize(
    ("controls", "rank", "en", "zh"),
    [
        (
            FIRST,
            5,
            "It shares each layer with GPU 4, passes activations to GPU 13, and averages gradients "
            "with GPUs 1, 3 and 7. Only its pipeline leaves the node.",
            "它与 GPU 4 分担每一层，把激活值传给 GPU 13，并与 GPU 1、3 和 7 平均梯度。"
            "只有流水线跨出节点。",
        ),
        (
            FIRST,
            13,
            "It shares each layer with GPU 12, receives activations from GPU 5, and averages "
            "gradients with GPUs 9, 11 and 15. Only its pipeline leaves the node.",
            "它与 GPU 12 分担每一层，从 GPU 5 接收激活值，并与 GPU 9、11 和 15 平均梯度。"
            "只有流水线跨出节点。",
        ),
        (
            State(nodes=1, tp=8, pp=1),
            0,
            "It shares each layer with 7 other GPUs. None of its groups leaves the node.",
            "它与另外 7 个 GPU 分担每一层。它的组都不跨出节点。",
        ),
        (State(nodes=1, gpus_per_node=1, tp=1, pp=1), 0, "It works alone.", "它单独工作。"),
        (
            from_preset("deepseek-v3"),
            405,
            "It exchanges tokens with 63 other GPUs on 8 nodes, passes activations from GPU 277 to "
            "GPU 533, and averages gradients with 127 other GPUs on 16 nodes. All of its groups "
            "leave the node.",
            "它与 8 个节点上的另外 63 个 GPU 交换 token，从 GPU 277 接收激活值并传给 GPU 533，"
            "并与 16 个节点上的另外 127 个 GPU 平均梯度。它的组全部跨出节点。",
        ),
    ],
)  # fmt: skip
def test_the_sentence_says_who_is_grouped_with_a_gpu(controls, rank, en, zh):
    layout = resolve(controls)
    assert sentence_of(layout, rank, "en") == en
    assert sentence_of(layout, rank, "zh") == zh


def test_gradients_are_averaged_over_cp_too():
    layout = resolve(State(nodes=4, cp=2))
    assert [(role, one.name) for role, one in spoken(layout)] == [
        ("tp", "tp"), ("cp", "cp"), ("pp", "pp"), ("dp", "dp-cp"),
    ]  # fmt: skip


def test_the_layers_of_the_stages_stand_beside_them_where_a_model_is_set():
    assert layers_of(State(layers="32"), 2) == ("0–15", "16–31")
    assert layers_of(State(layers="8", vpp="2"), 2) == ("0–1, 4–5", "2–3, 6–7")
    assert layers_of(State(layers="8", schedule="zb-v"), 2) == ("0–1, 6–7", "2–3, 4–5")
    assert layers_of(State(layers="8", schedule="interleaved"), 2) == ("0–1, 4–5", "2–3, 6–7")
    assert layers_of(State(layers="Ett|t|t|ttL"), 2) == ()
    assert layers_of(State(layers="Ett|t|t|ttL", vpp="2"), 2) == ("0–1, 3", "2, 4–5")
    assert layers_of(State(layers="61"), 2) == layers_of(State(), 2) == ()
    nearly = State(layers="5", spread="nearly", vpp="2")
    assert layers_of(nearly, 2) == ("0–1, 3", "2, 4")
    assert layers_of(nearly, 1) == ()
    page = answer(State(layers="32")).picture
    assert "layers </tspan>16–31" in page
    assert "of-layers" in answer(State(layers="32", vpp="2")).picture
    in_pieces = answer(State(layers="32", vpp="4", micro_batches="4")).picture
    assert "of-layers" not in in_pieces  # the card tells them
    assert "16–19" in in_pieces


@pytest.mark.parametrize("preset", ["playground-16", "deepseek-v3", "llama3-405b-3"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_screen_has_at_most_120_words_before_its_last_picture(preset, language):
    page = answer(replace(from_preset(preset), lang=language)).picture
    first = page[: page.rindex('<svg class="job')]
    words = re.sub(r"<[^>]*>", " ", first)
    assert len(words.split()) <= 120
    assert len(re.findall("[一-鿿]", words)) <= 120


# -- lines and extents -----------------------------------------------------------------------------

NUMBERED_MESHES = (
    *(text for text in MESHES if parse_mesh(text).world_size <= NUMBERED),
    *("tp8-cp1-dp8-pp4", "tp4-cp2-dp4-pp8", "etp2-ep8-edp2-pp2", "tp2-cp1-dp16-pp2"),
)


@every("text, share", itertools.product(NUMBERED_MESHES, (0.0, 0.37, 0.99)))
def test_lines_run_between_cells(text, share):
    """None of a picture's lines has a point inside of a cell, stages stand below each other."""
    drawn = picture(text, rank=int(share * parse_mesh(text).world_size), room=TALL)
    wide, tall = drawn.sides
    for line in drawn.lines:
        for x0, y0, x1, y1 in line.segments:
            (left, right), (top, foot) = sorted((x0, x1)), sorted((y0, y1))
            is_across = (drawn.x + 0.5 < right) & (drawn.x + wide - 0.5 > left)
            is_down = (drawn.y + 0.5 < foot) & (drawn.y + tall - 0.5 > top)
            assert not (is_across & is_down).any(), (line.tone, np.flatnonzero(is_across & is_down))
    if drawn.mesh.size("pp") < 64:
        assert drawn.plan.bands[0] == 1


@pytest.mark.parametrize(
    ("text", "rank", "outlined"),
    [
        ("etp4-ep8-edp2-pp2", 0, {"ep": [*range(0, 32, 4)], "tp": [0, 1, 2, 3]}),
        ("etp4-ep8-edp2-pp2", 37, {"ep": [*range(33, 64, 4)], "tp": [36, 37, 38, 39]}),
        ("etp4-ep8-edp2-pp2", 28, {"ep": [*range(0, 32, 4)]}),  # tp has its bar below the stage
        ("tp2-cp4-dp2-pp2", 6, {}),  # tp has its box, others' cells are between those of cp
    ],
)
def test_a_group_that_fills_a_part_of_a_replica_is_outlined(text, rank, outlined):
    drawn = picture(text, rank, room=HALF)
    found = {}
    for line in drawn.lines:
        (left, top, right, _), (_, foot, *end) = line.segments[0], line.segments[-1]
        if len(line.segments) == 4 and end == [left, top]:
            wide, tall = drawn.sides
            is_across = (drawn.x > left) & (drawn.x + wide < right)
            found[line.tone] = np.flatnonzero(is_across & (drawn.y > top) & (drawn.y + tall < foot))
    assert {tone: ranks.tolist() for tone, ranks in found.items()} == outlined


def test_16_gpus_of_eight_experts_stand_in_one_row_of_replicas():
    for text in ("tp2-cp1-dp8-pp1", "tp1-cp1-dp16-pp1"):
        assert picture(text, room=WIDE).plan.bands == (1, 1)
    assert "stacked" in answer(State(tp=2, pp=1, ep=8)).picture


def test_a_group_of_16384_is_as_wide_as_it_is_and_no_line_runs_through_it():
    """One cell in each of 16 stages: among many cells a group is its cells alone."""
    words = label_words(False, "en")
    drawn = picture("tp8-cp1-dp128-pp16", rank=5000, room=TALL, words=words)
    marks = drawn.mark_pixels()
    groups = {mark.kind: mark.ranks for mark in drawn.marks}
    assert np.count_nonzero(marks) == len({rank for ranks in groups.values() for rank in ranks})
    lines = [mark for mark in flat(draw_job(drawn, "light")) if isinstance(mark, Lines)]
    assert {line.colour for line in lines} <= {LOOKS["light"].page}  # gaps between cells


def test_a_million_gpus_are_rows_of_stages_with_each_group_three_pixels_wide():
    """A cell is a hundredth of a pixel: a picture of one cell a GPU would say nothing."""
    drawn = picture("tp8-cp1-dp8192-pp16", rank=65_536 * 3 + 12_345, room=TALL)
    assert (drawn.is_flat, drawn.board_shape, drawn.plan.bands) == (True, (16, 65_536), (1, 1))
    board = drawn.mark_pixels()
    assert board.shape == (16, ACROSS)
    assert (board[3] > 0).all()  # a rank of each replica: its whole stage
    of_pp, itself = 2, 4  # dp, pp and tp by their sizes, then the GPU
    assert [np.count_nonzero(row == of_pp) for row in board] == [3] * 3 + [0] + [3] * 12
    assert np.count_nonzero(board == itself) == 3
    seen = drawn.board_of(np.arange(drawn.mesh.world_size) == drawn.rank)
    assert (seen.sum(), seen.shape) == (1, (16, ACROSS))


def test_a_million_gpus_of_one_stage_are_one_row():
    drawn = picture("tp8-cp1-dp131072-pp1", rank=9, room=TALL)
    assert (drawn.is_flat, drawn.board_shape) == (True, (1, 1_048_576))


BOTH = "Columns are replicas, rows are stages."
READINGS = {
    "": BOTH,
    "nodes=64&tp=8&pp=1": "One stage; each row is 4 of its 64 replicas.",
    "nodes=64&tp=8&pp=64&layers=128": "One replica; rows are stages. "
    "They go on in the next column.",
    "nodes=1&tp=8&pp=1": "One replica of one stage.",
    "nodes=1&tp=2&pp=1": "One stage; columns are replicas.",
    "nodes=256&tp=1&pp=16": f"{BOTH} The rest stands below.",
    "nodes=131072&tp=8&pp=16": f"{BOTH} A pixel is about 101 GPUs wide.",
}  # fmt: skip


@every("query, text", READINGS.items())
def test_a_picture_says_of_its_columns_and_rows_what_is_drawn(query, text):
    context = Context.of(from_query(query))
    ((_, drawn),) = job_pictures(context)
    assert reading(context.layout, drawn, "en") == text
    assert reading(context.layout, drawn, "zh").endswith("。")
    assert text in " ".join(unparted(answer(from_query(query)).picture).split())


def test_a_picture_of_small_cells_is_flat_only_where_it_is_one_band():
    """Two pictures on a slide have cells below a pixel, and are boards of their own rows still."""
    drawn = picture("tp8-cp1-dp128-pp16", rank=5000, room=TALL).fitted((200.0, 60.0))
    assert drawn.sides[0] < 1
    assert not drawn.is_flat
    assert np.count_nonzero(drawn.mark_pixels()) > 0
