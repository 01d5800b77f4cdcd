"""Downloads: the same picture as on the page, as PNG, SVG and PDF, from any thread."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache

import matplotlib as mpl
import numpy as np
import pytest
from painted import KEY
from painted import alone as painted
from PIL import Image

from groups import fit
from groups.grouping import Grouping, plain
from groups.megatron.parallel_state import groupings
from render import marks, palette
from render.files import figure as drawing
from render.files import paint
from render.files.forms import to_bytes
from render.marks import Blocks, Drawing, Words
from render.png import png as png_file
from render.scenes import groups as scene
from render.scenes.job import job_picture
from render.scenes.marked import TALL
from render.svg import groups as svg


def plains(mesh, *kinds):
    return [plain(mesh, kind) for kind in kinds]


SIXTEEN = fit(16, order="tp-cp-dp-pp", tp=2, pp=2)
PANELS = [scene.panel(plain(SIXTEEN, kind), 8) for kind in ("dp", "tp", "pp")]
TITLES = ["DP: 4 groups of 4 ranks", "TP: 8 groups of 2 ranks", "PP: 8 groups of 2 ranks"]
TITLED = [*zip(TITLES, PANELS)]
NODES = ["Nodes of 8", "Nodes of 16"]
BIG = fit(1024, order="tp-cp-dp-pp", tp=8, cp=2, pp=4)
OVERVIEWS = [
    scene.overview(BIG, plains(BIG, "tp", "cp", "dp", "pp"), node, 517) for node in (8, 16)
]
TWO_RANKS = [OVERVIEWS[0], scene.overview(BIG, plains(BIG, "tp", "cp"), 8, 0)]
ALONE = [scene.panel(plain(fit(1), "tp"), 1)]
EMBEDDING = scene.panel(groupings(16, tp=2, pp=4)["embd"], 8)
LEVELS = scene.panel(Grouping("hcp-l0", SIXTEEN, "dp", length=2), 8)
THEMES = ("light", "dark")
PAGE = {"light": (255, 255, 255), "dark": (0x0B, 0x0F, 0x19)}


def panels(theme="light") -> Drawing:
    return drawing.figure(TITLED, f"{SIXTEEN}, 2 nodes x 8 GPUs", theme)


def overviews(theme="light") -> Drawing:
    return drawing.figure([*zip(NODES, OVERVIEWS)], str(BIG), theme, KEY)


@lru_cache
def alone(shown, theme, scale=4) -> np.ndarray:
    return painted(shown, theme, scale)


def png(made: Drawing) -> np.ndarray:
    image = Image.open(io.BytesIO(to_bytes(made, "png")))
    return np.asarray(image.convert("RGB"))


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [panels, overviews])
def test_a_png_has_two_pixels_a_scene_pixel(make):
    made = make()
    assert png(made).shape == (2 * round(made.height), 2 * round(made.width), 3)


@pytest.mark.parametrize(
    ("make", "most"), [(panels, paint.MOST_PIXELS), (overviews, paint.MOST_OF_IMAGES)]
)
def test_a_png_has_no_more_pixels_than_memory_allows(make, most):
    made = replace(make(), width=3840, height=2880)
    height, width, _ = png(made).shape
    assert 0.99 * most < height * width <= 1.01 * most


@pytest.mark.parametrize(("make", "scenes"), [(panels, PANELS), (overviews, OVERVIEWS)])
def test_every_scene_keeps_its_own_size_and_none_overlap(make, scenes):
    made = make()
    *placed, (left, top, scale, _) = made.placed
    assert (left, top, scale) == (0, 0, 1)  # what stands on the page itself
    assert [scale for _, _, scale, _ in placed] == [1.0] * len(scenes)
    bottoms = [y + scene.height for (_, y, *_), scene in zip(placed, scenes)]
    for bottom, (_, below, *_) in zip(bottoms, placed[1:]):
        assert bottom + drawing.TITLE < below  # room for a title between the two
    assert all(x + one.width <= made.width for (x, *_), one in zip(placed, scenes))
    assert max(bottoms) <= made.height


def test_an_svg_is_xml_of_the_figure_s_size_and_a_pdf_is_a_pdf():
    made = panels()
    width, height = made.width, made.height
    root = ET.fromstring(to_bytes(made, "svg"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert [float(v) for v in root.get("viewBox").split()] == pytest.approx([0, 0, width, height])
    pdf = to_bytes(made, "pdf")
    assert pdf.startswith(b"%PDF-1.")
    assert pdf.rstrip().endswith(b"%%EOF")


def test_a_pdf_needs_no_fonts_and_an_svg_keeps_its_text():
    made = panels()
    assert b"/Font" not in to_bytes(made, "pdf").replace(b"/Font 3 0 R", b"")
    root = ET.fromstring(to_bytes(made, "svg"))
    said = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    wanted = [one.text for *_, drawn in made.placed for one in drawn if isinstance(one, Words)]
    assert said == wanted
    assert {*TITLES, "dp0", "15"} <= {*said}
    drawn = to_bytes(overviews(), "svg")
    assert drawn.count(b"<image") == 2  # one pixel a GPU with its marks, sharp at any zoom
    assert drawn.count(b"image-rendering:pixelated") == 2


def test_an_svg_has_every_box_of_the_picture_where_it_stands():
    root = ET.fromstring(to_bytes(drawing.figure([("", PANELS[0])]), "svg"))
    (left, top, *_), shown = drawing.figure([("", PANELS[0])]).placed[0], PANELS[0]
    group = next(one for one in root if one.get("transform", "").startswith(f"translate({left:g} "))
    assert group.get("transform") == f"translate({left:g} {top:g}) scale(1)"
    found = {}
    for path in group:
        round_by = float(path.get("stroke-width") or 0) / 2
        for x, y, wide in re.findall(r"M(\S+) (\S+?)h([\d.]+)v", path.get("d") or ""):
            place = (float(x) - round_by, float(y) - round_by, float(wide) + 2 * round_by)
            found[tuple(round(one, 1) for one in place)] = path.get("fill")
    for x, y, colour in zip(shown.x, shown.y, shown.colour):
        assert found[x + 1, y + 1, shown.side] == palette.GROUPS["light"][colour]


@pytest.mark.parametrize("format", ["jpg", "PNG", "", "exe", None])
def test_any_other_format_is_refused_by_name(format):
    with pytest.raises(ValueError, match=r"there is no format .*; try png, svg or pdf"):
        to_bytes(panels(), format)


@pytest.mark.parametrize("make", [panels, overviews])
@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_the_same_picture_is_the_same_file(make, format):
    first = to_bytes(make(), format)
    assert to_bytes(make(), format) == first
    assert b"Date" not in first or format == "pdf"
    assert b"CreationDate" not in first


def test_eight_threads_write_the_same_files():
    jobs = [(make, form) for make in (panels, overviews) for form in ("png", "svg", "pdf")] * 2
    once = {job: to_bytes(job[0](), job[1]) for job in set(jobs)}
    paint.glyphs.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda job: to_bytes(job[0](), job[1]), jobs))
    differ = [job[1] for job, data in zip(jobs, made) if data != once[job]]
    assert differ == []


def test_writing_leaves_the_settings_of_matplotlib_as_they_were():
    before = dict(mpl.rcParams)
    to_bytes(panels(), "svg")
    assert dict(mpl.rcParams) == before


def test_pyplot_is_never_imported():
    code = """
from descriptions import SAVED
from groups import fit
from groups.grouping import plain
from render.files import figure, forms
from render.scenes import groups as scene
import sys
mesh = fit(512, tp=8)
views = [scene.overview(mesh, [plain(mesh, "tp")], group, 3) for group in (8, 16)]
words = {name: one.en for name, one in SAVED.items()}
made = figure.figure([*zip("ab", views)], "c", "light", words)
for form in ("png", "svg", "pdf"):
    forms.to_bytes(made, form)
print("matplotlib.pyplot" in sys.modules, "tkinter" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
    assert run.stderr == ""


# -- the picture ---------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("shown", PANELS, ids=lambda shown: shown.kind)
def test_each_cell_has_its_palette_colour_and_the_page_shows_between_cells(shown, theme):
    """Sampled near the left edge, where there is no text, and in the gap before the next cell."""
    picture = alone(shown, theme)
    for rank in range(16):
        x, y = 4 * shown.x[rank], 4 * (shown.y[rank] + shown.cell / 2)
        inside = picture[int(y), int(x + 4 * 5)]
        assert tuple(inside) == palette.rgb(palette.GROUPS[theme][shown.colour[rank]])
        assert tuple(picture[int(y), int(x)]) == PAGE[theme]


@pytest.mark.parametrize(("world", "gpus_per_node", "lines"), [(16, 8, 2), (256, 72, 1)])
def test_a_cell_s_text_is_in_its_ink_and_inside_the_cell(world, gpus_per_node, lines):
    """Rank and group at 64 pixels a cell, the rank alone at 30."""
    shown = scene.panel(plain(fit(world), "pp"), gpus_per_node)
    picture = alone(shown, "dark")  # where the page is neither of the inks
    for rank in range(world):
        left, top = shown.x[rank] + 1, shown.y[rank] + 1
        side = shown.cell - 2
        x, y = (slice(int(4 * a), int(4 * (a + side))) for a in (left, top))
        ink = (picture[y, x] == palette.rgb(palette.GROUP_INK["dark"])).all(axis=-1)
        rows = ink.any(axis=1)
        assert np.count_nonzero(np.diff(rows.astype(int)) == 1) == lines
        across = np.flatnonzero(ink.any(axis=0)) / 4
        assert across.min() >= 1
        assert across.max() <= side - 1
        assert abs((across.min() + across.max()) / 2 - side / 2) < 1.5  # in the middle


@pytest.mark.parametrize("theme", THEMES)
def test_a_cell_in_no_group_is_grey_with_its_rank_and_a_dash(theme):
    """16 GPUs, tp 2, pp 4: the middle stages share no embedding."""
    picture = alone(EMBEDDING, theme)
    grey = palette.NO_GROUP[theme]
    for rank in range(16):
        left, top = EMBEDDING.x[rank] + 1, EMBEDDING.y[rank] + 1
        side = EMBEDDING.side
        x, y = (slice(int(4 * a), int(4 * (a + side))) for a in (left, top))
        cell = picture[y, x]
        fill = palette.GROUPS[theme][EMBEDDING.group[rank]] if rank < 4 or rank >= 12 else grey
        assert tuple(cell[cell.shape[0] // 2, 20]) == palette.rgb(fill)
        reads = (cell == palette.rgb(palette.GROUP_INK[theme])).all(axis=-1)
        below = reads[int(4 * side * 0.62) :]  # the group's line
        assert below.any()
        if fill == grey:  # a dash is low and narrow
            rows, columns = below.any(axis=1), below.any(axis=0)
            assert np.count_nonzero(rows) < 12
            assert np.ptp(np.flatnonzero(columns)) < 4 * side / 4


def test_a_name_that_ends_in_a_digit_is_parted_from_its_index():
    words = [mark for mark in drawing.scene_marks(LEVELS, "light") if isinstance(mark, Words)]
    said = [word.text for word in words if not word.bold and word.anchor == "middle"]
    assert said == [f"hcp-l0:{group}" for group in LEVELS.group.tolist()]


def test_each_node_has_a_frame_and_a_label_to_its_left():
    shown = PANELS[1]
    picture = alone(shown, "light").astype(int)
    edge = np.array(palette.rgb(drawing.LOOKS["light"].edge))
    for (left, top, width, height), (right, middle, _) in zip(shown.frames, shown.labels):
        for x, y in ((left, top + height / 2), (left + width, top + height / 2),
                     (left + width / 2, top), (left + width / 2, top + height)):  # fmt: skip
            around = picture[int(4 * y) - 2 : int(4 * y) + 2, int(4 * x) - 2 : int(4 * x) + 2]
            assert (np.abs(around - edge).sum(axis=-1) < 30).any()
        beside = picture[int(4 * (middle - 6)) : int(4 * (middle + 6)), : int(4 * right)]
        assert (beside.sum(axis=-1) < 300).any()


def expected_colours(overview, theme) -> list[tuple[int, int, int]]:
    """The colour of every rank: its stage's grey, or that of its smallest mark."""
    greys = [*map(palette.rgb, palette.ROWS[theme])]
    colours = [greys[stage % 2] for stage in overview.stage]
    for mark in overview.marks:
        for rank in mark.ranks:
            colours[rank] = palette.rgb(palette.KIND_MARKS[theme][mark.tone])
    return colours


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("overview", OVERVIEWS, ids=[8, 16])
def test_an_overview_has_the_stage_s_grey_or_the_kind_s_colour_in_every_cell(overview, theme):
    picture = alone(overview, theme)
    row, column = np.divmod(overview.place, overview.grid.columns)
    x = 4 * (overview.left + (column + 0.5) * overview.cell)
    y = 4 * (overview.top + (row + 0.5) * overview.cell)
    ring = 4 * (overview.ring + 4)
    far = np.hypot(x - x[overview.rank], y - y[overview.rank]) > ring
    far[overview.rank] = True  # the ring goes round it and covers some of its neighbours
    for tag in overview.tags:
        far &= (abs(x / 4 - tag.x) > tag.width / 2 + 1) | (abs(y / 4 - tag.y) > TALL / 2 + 1)
        before = picture[int(4 * tag.y), int(4 * (tag.x - tag.width / 2 + 2))]  # the first letter
        assert tuple(before) == palette.rgb(palette.KIND_COLOURS[theme][tag.tone])
    got = picture[y.astype(int), x.astype(int)]
    assert np.array_equal(got[far], np.array(expected_colours(overview, theme))[far])


@pytest.mark.parametrize("theme", THEMES)
def test_the_page_shows_in_the_gaps_of_an_overview(theme):
    overview = OVERVIEWS[0]
    picture = alone(overview, theme)
    y = int(4 * (overview.top + 3.5 * overview.cell))  # where no tag stands
    for column in (1, 2, 8, 16):
        x = int(4 * (overview.left + column * overview.cell))
        assert tuple(picture[y, x]) == PAGE[theme]


def test_gaps_are_wider_between_blocks_than_between_cells():
    overview = OVERVIEWS[0]
    y = int(4 * (overview.top + 0.5 * overview.cell))
    row = (alone(overview, "light")[y] == 255).all(axis=-1)

    def width(column):
        middle = int(4 * (overview.left + column * overview.cell))
        return row[middle - 20 : middle + 20].sum()

    assert width(8) > width(7) > 0
    assert width(8) == width(16)


@pytest.mark.parametrize("theme", THEMES)
def test_a_ring_in_the_page_s_ink_is_round_the_chosen_rank(theme):
    for overview in OVERVIEWS:
        picture = alone(overview, theme)
        row, column = divmod(int(overview.place[517]), overview.grid.columns)
        x = overview.left + (column + 0.5) * overview.cell
        y = overview.top + (row + 0.5) * overview.cell
        (ring,) = ET.fromstring(svg.overview_svg(overview, "")).iter("circle")
        radius = float(ring.get("r"))  # as on the page
        for turn in np.linspace(0, 2 * np.pi, 24):
            at = int(4 * (y + radius * np.sin(turn))), int(4 * (x + radius * np.cos(turn)))
            assert tuple(picture[at]) == palette.rgb(drawing.LOOKS[theme].ink)


def test_131072_gpus_are_all_there_with_their_marks_large_enough_to_see():
    mesh = fit(131072, tp=8, pp=16)
    for overview in [scene.overview(mesh, plains(mesh, "dp", "tp", "pp"), 8, 9)]:
        rows, columns = overview.grid.rows, overview.grid.columns
        greys = np.array([*map(palette.rgb, palette.ROWS["light"])])
        board = np.zeros((rows * columns, 3), dtype=int)
        board[overview.place] = greys[np.arange(131072) // 8192 % 2]
        board = board.reshape(rows, columns, 3)
        for mark in overview.marks:
            more, colour = overview.swell(len(mark.ranks)), palette.KIND_MARKS["light"][mark.kind]
            for row, column in zip(*np.divmod(overview.place[mark.ranks], columns)):
                around = (slice(max(0, at - more), at + more + 1) for at in (row, column))
                board[tuple(around)] = palette.rgb(colour)
        drawn = [m for m in drawing.scene_marks(overview, "light") if isinstance(m, marks.Pixels)]
        (both,) = marks.stacked(drawn)
        seen = both.colours()
        assert (seen[..., 3] == 255).all()
        assert np.array_equal(seen[..., :3], board)

        shown = alone(overview, "light", scale=2)
        for mark in overview.marks:
            colour = palette.rgb(palette.KIND_MARKS["light"][mark.kind])
            assert (shown == colour).all(axis=-1).sum() >= 4 * len(mark.ranks)


# -- words ---------------------------------------------------------------------------------------


def test_the_legend_names_each_marked_kind_with_its_size_once():
    legend = drawing.Legend.of(OVERVIEWS, "light", 0.0, KEY)
    kinds = palette.KIND_COLOURS["light"]
    assert [(swatch, word.text) for swatch, word in legend.entries] == [
        (kinds["dp"], "dp: 16 GPUs"),
        (kinds["tp"], "tp: 8 GPUs"),
        (kinds["pp"], "pp: 4 GPUs"),
        (kinds["cp"], "cp: 2 GPUs"),
        ("ring", "GPU 517"),
        ("-".join(palette.ROWS["light"]), KEY["key_stages"]),
    ]


@pytest.mark.parametrize("theme", THEMES)
def test_the_legend_s_colours_are_in_the_picture_below_the_scenes(theme):
    with_ep = [*plains(BIG, "tp", "cp", "dp", "pp"), groupings(1024, ep=16)["ep"]]
    scenes = [scene.overview(BIG, with_ep, each, 517) for each in (8, 16)]
    assert {mark.tone for mark in scenes[0].marks} == set(palette.TONES)
    picture = png(drawing.figure([*zip(NODES, scenes)], str(BIG), theme, KEY))
    bottom = picture[-2 * 70 :].reshape(-1, 3)
    for colour in palette.KIND_COLOURS[theme].values():
        assert (bottom == palette.rgb(colour)).all(axis=-1).sum() >= 4 * 100


def test_the_legend_names_a_group_of_experts_in_its_tone():
    found = groupings(1024, tp=8, pp=4, ep=16, etp=1)
    shown = [found[name] for name in ("edp", "tp-ep", "embd")]
    legend = drawing.Legend.of([scene.overview(BIG, shown, 8, 0)], "dark", 0.0, KEY)
    tones = palette.KIND_COLOURS["dark"]
    assert [(swatch, word.text) for swatch, word in legend.entries][:3] == [
        (tones["dp"], "edp: 16 GPUs"),
        (tones["ep"], "tp-ep: 16 GPUs"),
        (tones["pp"], "embd: 2 GPUs"),
    ]
    outside = drawing.Legend.of([scene.overview(BIG, shown, 8, 256)], "dark", 0.0, KEY)
    assert not any("embd" in word.text for _, word in outside.entries)


def test_panels_have_no_legend():
    assert drawing.Legend.of(PANELS, "light", 0.0).entries == ()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("shown", "title", "caption"),
    [
        (ALONE, "TP: 1 group of 1 rank, a title wider than its scene", ""),
        (PANELS[:1], "DP", "a caption wider than its scene " * 4),
        (TWO_RANKS, "a wide legend", ""),
        (OVERVIEWS[:1], "L" * 120, "a caption"),
    ],
)
def test_nothing_touches_the_edge_of_the_file(shown, title, caption, theme):
    picture = png(drawing.figure([(title, one) for one in shown], caption, theme, KEY))
    inner = np.ones(picture.shape[:2], dtype=bool)
    inner[10:-10, 10:-10] = False
    assert (picture[inner] == PAGE[theme]).all()


def test_titles_and_caption_are_drawn():
    with_words = drawing.figure([("DP: 4 groups", PANELS[0])], "tp2-cp1-dp4-pp2")
    without = drawing.figure([("", PANELS[0])], "tp2-cp1-dp4-pp2")
    assert (png(with_words)[: 2 * 36] < 100).any()
    assert (png(without)[: 2 * 36] == 255).all()
    assert (png(with_words)[-2 * 30 :] < 100).any()


def test_long_labels_shrink_to_fit_beside_the_picture():
    """The labels of a million nodes."""
    mesh = fit(1048576)
    logical = replace(scene.overview(mesh, plains(mesh, "dp"), 1, 0), left=40.0)
    picture = alone(logical, "light", scale=2)
    assert (picture[:, :4] == 255).all()
    assert (picture[:, 4 : int(2 * logical.left) - 14] < 128).any()


def test_text_is_taken_as_written():
    """No mathematics: a dollar is a dollar."""
    assert len(paint.glyphs("$x$", False)[0].codes) > len(paint.glyphs("x", False)[0].codes)


def test_an_unknown_theme_is_refused():
    with pytest.raises(KeyError):
        drawing.figure(TITLED, theme="sepia")


def test_cells_too_small_for_a_number_have_none():
    small = scene.panel(plain(fit(245), "dp"), 245)
    marks = drawing.scene_marks(small, "light")
    assert [mark.text for mark in marks if isinstance(mark, Words)] == ["N0"]


def test_the_key_of_a_world_of_one_stage_names_no_stages():
    mesh = fit(1024, tp=8)
    words = {"key_gpu": "GPU {rank}", "key_group": "{kind}: {count}"}
    key = scene.overview(mesh, plains(mesh, "tp"), 8, 3).legend_of("light", words)
    assert [text for _, text in key] == ["tp: 8", "GPU 3"]


def test_where_boxes_are_of_no_group_that_is_marked_none_is_framed():
    mesh = fit(16, pp=2)
    words = dict.fromkeys(("stage", "replica", "replicas"), "")
    shown = job_picture(mesh, plains(mesh, "dp", "pp"), 8, 3, words=words)
    assert shown.box_tone == ""
    widths = [m.width for m in drawing.scene_marks(shown, "light") if isinstance(m, Blocks)]
    assert 2.5 not in widths


def test_a_png_says_how_large_it_is_printed():
    data = png_file(np.zeros((2, 2, 3), dtype=np.uint8), dpi=(300, 300))
    assert Image.open(io.BytesIO(data)).info["dpi"] == pytest.approx((300, 300), rel=1e-3)
