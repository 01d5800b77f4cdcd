"""The page's pictures, read back as XML and their embedded pixels as images."""

from __future__ import annotations

import base64
import io
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from groups import fit
from groups.grouping import Grouping, plain
from groups.megatron.parallel_state import groupings
from render import palette
from render.draw.groups import draw_overview
from render.marks import Layer
from render.scenes import groups as scene
from render.scenes.geometry import Fold, places_of
from render.svg import groups as svg

SIXTEEN = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)
BIG = fit(1024, order="tp-cp-dp-pp", tp=8, cp=2, pp=4)
KINDS = ("tp", "cp", "dp", "pp")
HOSTILE = "\"><script>alert(1)</script> & 'tp'"


def plains(mesh, *kinds):
    return [plain(mesh, kind) for kind in kinds]


def known_of(picture: ET.Element) -> dict:
    return json.loads(picture.get("data-known"))


def numbers_of(picture: ET.Element, name: str) -> list[str]:
    """The numbers of a class, as the rows of cells have them."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for text in next(g for g in picture if g.get("class") == f"digits {name}"):
        words = text.text.split(" ")
        spacing = re.fullmatch(r"word-spacing:calc\((.*)px - (\d)ch\)", text.get("style") or "")
        assert (len(words) > 1) == bool(spacing)
        if spacing:  # a word and a blank are so wide: what is left is the distance of cells
            assert {len(word) + 1 for word in words} == {int(spacing[2])}
        apart = float(spacing[1]) if spacing else 0.0
        first = float(text.get("x")) - apart * (len(words) - 1) / 2
        row = rows.setdefault(float(text.get("y")), [])
        row += [(first + at * apart, word) for at, word in enumerate(words)]
    return [word for _, row in sorted(rows.items()) for _, word in sorted(row)]


def colours_of(picture: ET.Element) -> dict[str, int]:
    """How many cells each colour has."""
    (cells,) = (g for g in picture if g.get("class") == "cells")
    return {path.get("fill")[len("var(--") : -1]: path.get("d", "M").count("M") for path in cells}


def panel_of(mesh, kind, gpus_per_node=8, description="x") -> ET.Element:
    return ET.fromstring(svg.panel_svg(scene.panel(plain(mesh, kind), gpus_per_node), description))


def image_of(picture: ET.Element, name: str) -> Image.Image:
    (image,) = [i for i in picture.iter("image") if i.get("class") == name]
    head, data = image.get("href").split(",", 1)
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


# -- panels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        ("tp", "0 0 1 1 2 2 3 3   4 4 5 5 6 6 7 7"),
        ("dp", "0 1 0 1 0 1 0 1   2 3 2 3 2 3 2 3"),
        ("pp", "0 1 2 3 4 5 6 7   0 1 2 3 4 5 6 7"),
    ],
)
def test_every_gpu_is_a_cell_whose_group_and_colour_are_known(kind, groups):
    drawn = panel_of(SIXTEEN, kind)
    assert known_of(drawn)["groups"] == list(map(int, groups.split()))
    counted = Counter(f"g{number}" for number in groups.split())
    assert colours_of(drawn) == counted


def test_colours_go_round_after_ten_but_the_group_index_does_not():
    drawn = panel_of(fit(256, tp=8), "tp")
    assert known_of(drawn)["groups"][::8] == list(range(32))
    assert set(colours_of(drawn)) == {f"g{n}" for n in range(10)}
    assert sum(colours_of(drawn).values()) == 256


def test_large_cells_say_rank_and_group():
    drawn = panel_of(SIXTEEN, "tp")
    assert numbers_of(drawn, "r") == [str(rank) for rank in range(16)]
    assert numbers_of(drawn, "i") == [f"tp{rank // 2}" for rank in range(16)]


def test_middle_cells_say_the_rank_only():
    """72 GPUs a node: cells of 30 pixels."""
    drawn = panel_of(fit(256), "dp", gpus_per_node=72)
    assert sorted(map(int, numbers_of(drawn, "r"))) == list(range(256))
    assert [g.get("class") for g in drawn.iter("g")].count("digits i") == 0


def test_cells_stand_where_the_scene_says_with_a_gap_of_two_pixels():
    """The corner, moved in by the radius that the line round it has."""
    shown = scene.panel(plain(fit(256, tp=2), "tp"), 8)
    drawn = panel_of(fit(256, tp=2), "tp")
    found = []
    for path in next(g for g in drawn if g.get("class") == "cells"):
        radius = float(path.get("stroke-width")) / 2
        for x, y, wide, tall in re.findall(r"M(\S+) (\S+?)h([\d.]+)v([\d.]+)h", path.get("d")):
            assert float(wide) == float(tall) == pytest.approx(shown.cell - 2 - 2 * radius)
            found.append((float(x) - radius, float(y) - radius))
    wanted = zip((shown.x + 1).tolist(), (shown.y + 1).tolist())
    assert np.array(sorted(found)) == pytest.approx(np.array(sorted(wanted)), abs=0.02)


@pytest.mark.parametrize("gpus_per_node", [1, 5, 8, 16, 72, 300])
def test_the_script_is_told_where_the_cells_of_a_panel_are(gpus_per_node):
    shown = scene.panel(plain(fit(240, tp=2), "tp"), gpus_per_node)
    known = known_of(ET.fromstring(svg.panel_svg(shown, "x")))
    folds = [Fold(*fold) for fold in known["folds"]]
    x, y = places_of(folds, np.arange(240))
    assert x + known["left"] == pytest.approx(shown.x + 1)
    assert y + known["top"] == pytest.approx(shown.y + 1)


def test_frames_and_row_labels_are_drawn():
    picture = panel_of(SIXTEEN, "tp")
    (frames,) = (g for g in picture if g.get("class") == "node")
    assert [path.get("d").count("M") for path in frames] == [2, 2]  # the edge, what is inside
    (rows,) = (g for g in picture if g.get("class") == "rows")
    assert [text.text for text in rows] == ["N0", "N1"]


def test_a_gpu_in_no_group_is_grey_has_no_group_number_and_says_a_dash():
    """16 GPUs, tp 2, pp 4: the middle stages share no embedding."""
    shown = scene.panel(groupings(16, tp=2, pp=4)["embd"], 8)
    drawn = ET.fromstring(svg.panel_svg(shown, "x"))
    first = [0, 1, 2, 3]
    assert known_of(drawn)["groups"] == [*first, *[-1] * 8, *first]
    assert colours_of(drawn) == {"gn": 8, "g0": 2, "g1": 2, "g2": 2, "g3": 2}
    outer = [f"embd{number}" for number in first]
    assert numbers_of(drawn, "i") == [*outer, *["–"] * 8, *outer]


def test_cells_too_small_for_a_number_have_none():
    shown = scene.panel(plain(fit(245), "dp"), 245)
    assert shown.cell < scene.RANK
    assert [t.text for t in ET.fromstring(svg.panel_svg(shown, "x")).iter("text")] == ["N0"]


def test_a_name_that_ends_in_a_digit_is_parted_from_its_index():
    shown = scene.panel(Grouping("hcp-l0", SIXTEEN, "tp"), 8)
    texts = numbers_of(ET.fromstring(svg.panel_svg(shown, "x")), "i")
    assert "hcp-l0:3" in texts
    assert "hcp-l03" not in texts


def test_outlined_cells_are_those_that_are_asked_for():
    shown = scene.panel(plain(SIXTEEN, "tp"), 8)
    outlined = np.zeros(16, dtype=bool)
    outlined[[0, 5, 15]] = True
    drawn = ET.fromstring(svg.panel_svg(shown, "x", outlined))
    (moved,) = drawn.findall("./g[@class='moved']/path")
    corners = re.findall(r"M(\S+) (\S+?)h", moved.get("d"))
    wanted = [(shown.x[rank] + 1, shown.y[rank] + 1) for rank in (0, 5, 15)]
    assert [(float(x), float(y)) for x, y in corners] == wanted
    assert known_of(drawn)["moved"] == [0, 5, 15]
    assert 'class="moved' not in svg.panel_svg(shown, "x")
    none = svg.panel_svg(shown, "x", np.zeros(16, dtype=bool))
    assert none == svg.panel_svg(shown, "x")


@pytest.mark.parametrize("view", ["panel", "overview"])
def test_a_description_is_spoken_and_can_break_nothing(view):
    if view == "panel":
        text = svg.panel_svg(scene.panel(plain(SIXTEEN, "tp"), 8), HOSTILE)
    else:
        text = svg.overview_svg(scene.overview(BIG, plains(BIG, *KINDS), 8, 0), HOSTILE)
    assert "<script" not in text
    picture = ET.fromstring(text)
    assert picture.get("aria-label") == HOSTILE
    assert picture.get("role") == "group"


@pytest.mark.parametrize(("world", "gpus_per_node"), [(1, 1), (10, 8), (256, 1), (256, 72)])
def test_any_panel_is_well_formed_and_inside_its_view_box(world, gpus_per_node):
    picture = panel_of(fit(world), "dp", gpus_per_node)
    assert sum(colours_of(picture).values()) == world
    left, top, width, height = map(float, picture.get("viewBox").split())
    assert (left, top) == (0, 0)
    for path in picture.iter("path"):
        for x, y, wide, tall in re.findall(r"M(\S+) (\S+?)h([\d.]+)v([\d.]+)h", path.get("d")):
            assert float(x) + float(wide) <= width
            assert float(y) + float(tall) <= height


# -- overviews -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 517])
def test_the_base_image_is_one_pixel_a_gpu_in_the_grey_of_its_stage(rank):
    overview = scene.overview(BIG, plains(BIG, *KINDS), 8, rank)
    image = image_of(ET.fromstring(svg.overview_svg(overview, "")), "base")
    assert image.size == (overview.grid.columns, overview.grid.rows)
    pixels = np.asarray(image.convert("RGBA")).reshape(-1, 4)
    greys = [*map(palette.rgb, palette.ROWS["light"])]
    expected = [(*greys[rank // 256 % 2], 255) for rank in range(1024)]
    assert list(map(tuple, pixels[overview.place].tolist())) == expected


@pytest.mark.parametrize("rank", [0, 517])
def test_the_marks_image_shows_the_chosen_groups_and_nothing_else(rank):
    overview = scene.overview(BIG, plains(BIG, *KINDS), 8, rank)
    image = image_of(ET.fromstring(svg.overview_svg(overview, "")), "marks")
    pixels = np.asarray(image.convert("RGBA")).reshape(-1, 4)[overview.place]
    expected = np.zeros((1024, 4), dtype=int)
    for kind in ("dp", "tp", "pp", "cp"):  # 16, 8, 4 and 2 ranks: the smallest on top
        (mark,) = [m for m in overview.marks if m.kind == kind]
        expected[mark.ranks] = (*palette.rgb(palette.KIND_MARKS["light"][kind]), 255)
    shown = pixels[:, 3] > 0
    assert np.array_equal(shown, expected[:, 3] > 0)
    assert np.array_equal(pixels[shown], expected[shown])
    assert shown.sum() == 16 + 8 + 4 + 2 - 3  # they share the chosen rank only


def test_marks_wear_their_tones():
    """Experts among dense groups, and dp-cp beside dp, which has the tone of dp already."""
    found = groupings(1024, tp=8, cp=2, pp=4, ep=16, etp=1)
    shown = [found[name] for name in ("dp", "dp-cp", "ep")]
    logical = scene.overview(BIG, shown, 8, 0)
    tones = {mark.kind: mark.tone for mark in logical.marks}
    assert tones == {"dp": "dp", "dp-cp": "tp", "ep": "ep"}
    picture = ET.fromstring(svg.overview_svg(logical, ""))
    tags = picture.findall(".//g[@class='tags']/g")
    assert {tag.find("text").text: tag.get("class") for tag in tags} == {
        kind: f"t-{tone}" for kind, tone in tones.items()
    }
    image = image_of(picture, "marks")
    seen = {tuple(pixel) for pixel in np.asarray(image.convert("RGBA")).reshape(-1, 4).tolist()}
    colours = {palette.rgb(palette.KIND_MARKS["light"][tone]) for tone in tones.values()}
    assert {pixel[:3] for pixel in seen if pixel[3]} == colours


def test_the_script_learns_the_kinds_and_how_wide_to_draw_each():
    """Marks of rank 0 only are drawn here; the script draws those of any other rank."""
    found = groupings(131072, tp=8, pp=16)
    shown = [found[name] for name in ("tp", "embd", "dp")]
    for overview in [scene.overview(fit(131072, tp=8, pp=16), shown, 8, 8192)]:
        picture = ET.fromstring(svg.overview_svg(overview, "", kinds=(4, 0, 7)))
        known = json.loads(picture.get("data-known"))
        assert known["kinds"] == [4, 0, 7]
        swells = [overview.swell(size) for size in (8, 2, 1024)]
        assert known["swell"] == swells
        assert [mark.kind for mark in overview.marks] == ["dp", "tp"]  # stage 1 is not in embd


def test_cells_without_a_gpu_are_transparent():
    mesh = fit(1021)
    physical = scene.overview(mesh, plains(mesh, "dp"), 8, 0)
    image = image_of(ET.fromstring(svg.overview_svg(physical, "")), "base")
    alpha = np.asarray(image.convert("RGBA"))[:, :, 3]
    assert (alpha > 0).sum() == 1021


def test_small_marks_swell_over_their_neighbours_but_not_over_the_edge():
    """131,072 GPUs: cells of 1.25 pixels, so that each mark covers 3 x 3."""
    mesh = fit(131072, tp=8, pp=16)
    logical = scene.overview(mesh, plains(mesh, "pp", "tp"), 8, 0)
    assert [logical.swell(len(mark.ranks)) for mark in logical.marks] == [1, 1]
    marks = logical.mark_pixels()  # a tp group is a node: 4 x 2 cells, and one more around
    assert marks[:4, :6].tolist() == [
        [2, 2, 2, 2, 2, 0],
        [2, 2, 2, 2, 2, 0],
        [2, 2, 2, 2, 2, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    assert not marks[:, -1].any()


def test_stages_take_turns_in_two_greys():
    mesh = fit(1024, tp=2, pp=512)
    logical = scene.overview(mesh, plains(mesh, "pp"), 8, 0)
    shades = logical.base_pixels().reshape(-1)[logical.place]
    assert shades.tolist() == [1 + stage % 2 for stage in range(512) for _ in range(2)]


def test_the_script_finds_every_rank_from_the_fold_alone():
    """By sum((c % period) * step + (c // period) * jump), across and down, fastest axis first."""
    for overview in [scene.overview(BIG, plains(BIG, *KINDS), 8, 0)]:
        picture = ET.fromstring(svg.overview_svg(overview, ""))
        folds = json.loads(picture.get("data-known"))["folds"]
        for rank in (0, 1, 9, 300, 1023):
            left, x, y = rank, 0.0, 0.0
            for size, period, dx, dy, jump_x, jump_y in folds:
                left, c = divmod(left, size)
                x += c % period * dx + c // period * jump_x
                y += c % period * dy + c // period * jump_y
            row, column = divmod(int(overview.place[rank]), overview.grid.columns)
            assert (x, y) == pytest.approx((column * overview.cell, row * overview.cell))


def test_the_ring_is_round_the_chosen_rank():
    for overview in [scene.overview(BIG, plains(BIG, *KINDS), 8, 517)]:
        (ring,) = ET.fromstring(svg.overview_svg(overview, "")).iter("circle")
        column = (float(ring.get("cx")) - overview.left) / overview.cell
        row = (float(ring.get("cy")) - overview.top) / overview.cell
        cell = int(row) * overview.grid.columns + int(column)
        assert cell == overview.place[517]
        assert (column % 1, row % 1) == pytest.approx((0.5, 0.5), abs=1e-2)


def gaps(overview) -> dict[str, tuple[int, int]]:
    """How many vertical and horizontal lines each kind of gap has."""
    return {
        name: tuple(sum(a[axis] == b[axis] for a, b in lines) for axis in (0, 1))
        for name, lines in gap_lines(overview).items()
    }


def gap_lines(overview) -> dict[str, list]:
    groups = [mark for mark in draw_overview(overview, "page") if isinstance(mark, Layer)]
    return {group.name: group.marks[0].lines for group in groups if group.name.startswith("gaps")}


def test_gaps_part_cells_and_nodes():
    """64 x 16 cells in tiles of 4 x 2; lines along the edges too."""
    mesh = fit(1024, tp=8, pp=4)
    physical = scene.overview(mesh, plains(mesh, "tp"), 8, 0)
    assert gaps(physical) == {
        "gaps cells": (65, 17),
        "gaps blocks": (17, 9),
    }  # those along the edges too


def test_lines_are_as_long_as_the_grid_is_high_or_wide():
    mesh = fit(1024, tp=8, pp=4)
    for overview in [scene.overview(mesh, plains(mesh, "tp"), 8, 0)]:
        grid, cell = overview.grid, overview.cell
        assert grid.rows != grid.columns
        for lines in gap_lines(overview).values():
            for (x, y), (end_x, end_y) in lines:
                start, length, many = (x, end_x - x, grid.columns)
                if x == end_x:
                    start, length, many = (y, end_y - y, grid.rows)
                assert start == (overview.top if x == end_x else overview.left)
                assert length == pytest.approx(many * cell)


def test_no_line_is_drawn_closer_than_a_pixel_of_cells_allows():
    """131,072 GPUs: rows of 1.25 pixels would vanish under a line each."""
    mesh = fit(131072, tp=8, pp=16)
    for overview in [scene.overview(mesh, plains(mesh, "tp"), 8, 0)]:
        for name, (vertical, horizontal) in gaps(overview).items():
            least = 12 if "bands" in name else 8
            assert overview.grid.columns * overview.cell / (vertical + 1) >= least
            assert overview.grid.rows * overview.cell / (horizontal + 1) >= least


@pytest.mark.parametrize(
    "mesh",
    [
        fit(131072, tp=8, pp=16),
        fit(131072, order="tp-cp-pp-dp", tp=8, cp=16, pp=16),
        fit(131072),
        fit(131072, pp=131072),
    ],
    ids=str,
)
def test_131072_gpus_fit_in_40_kilobytes(mesh):
    for overview in [scene.overview(mesh, plains(mesh, *KINDS), 8, 4242)]:
        assert len(svg.overview_svg(overview, "One sentence.").encode()) < 40_000


def test_pictures_run_nothing_and_refer_to_nothing_outside():
    pictures = [svg.panel_svg(scene.panel(plain(fit(256, tp=8), "tp"), 8), "x")]
    views = [scene.overview(BIG, plains(BIG, *KINDS), 8, 3)]
    pictures += [svg.overview_svg(one, "x") for one in views]
    for text in pictures:
        assert not re.search(r"<script|javascript:|https?:|<!|@import|<foreignObject", text)
        assert not re.search(r"\son[a-z]+=", text)
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            assert link.startswith("data:image/png;base64,")


# -- the style sheet -----------------------------------------------------------------------------


def test_the_style_sheet_gives_every_group_its_fill_and_ink():
    css = svg.style()
    for where, theme in ((":root", "light"), (".dark", "dark")):
        names = dict(re.findall(r"--([\w-]+):(#\w+);", re.search(rf"{where}\{{(.*?)\}}", css)[1]))
        assert names["gi"] == palette.GROUP_INK[theme]
        assert names["gn"] == palette.NO_GROUP[theme]
        for number, colour in enumerate(palette.GROUPS[theme]):
            assert names[f"g{number}"] == colour
            assert f".g{number}{{fill:var(--g{number});stroke:var(--g{number})}}" in css


def test_the_style_sheet_gives_every_kind_its_colour_in_both_themes():
    root, dark = re.search(r":root\{(.*?)\}\.dark\{(.*?)\}", svg.style()).groups()
    for text, theme in ((root, "light"), (dark, "dark")):
        assert dict(re.findall(r"--kind-(\w+):(#\w+);", text)) == palette.KIND_COLOURS[theme]


def test_the_style_sheet_gives_every_tone_a_class_and_no_group_a_grey():
    css = svg.style()
    for tone in palette.TONES:
        assert f".t-{tone}{{--kind:var(--kind-{tone});--tint:var(--tint-{tone})}}" in css
    assert ".gn{fill:var(--gn);stroke:var(--gn)}" in css
