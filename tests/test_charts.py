"""Charts for files: what is at which place, in which colour, read from the painted pixels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from markup import select
from painted import alone

from render.draw.charts import WARNING
from render.draw.shards import OTHERS
from render.files import figure as drawing
from render.files.tables import draw_points
from render.marks import LOOKS, Blocks, Words
from render.palette import GROUPS, HEAT_SHADES, PALETTE, SHADES, WAITING, contrast, ramp, rgb
from render.scenes.charts import (
    HELD,
    PLOT,
    UNIT,
    Bar,
    BarsChart,
    HeldChart,
    MatrixChart,
    PointsChart,
    TimelineChart,
)
from render.scenes.exchange import HEIGHT, Cell, Exchange, Flow, Line, Member
from render.scenes.heat import Heat
from render.scenes.matrix import LEVELS, matrix_picture
from render.scenes.shards import BAR, LOCAL, NONE, OWN, ROW, STALE, TOP, WHOLE, ShardGrid
from render.scenes.shards import LEFT as SHARDS_LEFT
from render.scenes.timeline import PHASES, box_places, shade, strips_of
from request.context import Context
from request.state import State
from training.pipeline import Durations, plan_of, simulate
from views.memory.view import memory_html, memory_slide
from views.parts.scales import scale_of

THEMES = ("light", "dark")


def painted(scene, theme="light", scale=2) -> np.ndarray:
    """A scene alone, ``scale`` dots a pixel: shape (h, w, 3)."""
    return alone(scene, theme, scale).astype(int)


def at(picture: np.ndarray, x: float, y: float, scale=2) -> tuple[int, ...]:
    return tuple(picture[int(y * scale), int(x * scale)].tolist())


def strip_of(name="1f1b", p=4, m=8, ranks=None, **sizes):
    timeline = simulate(plan_of(name, p=p, m=m, **sizes))
    (strip,) = strips_of([timeline], range(p) if ranks is None else ranks)
    return strip


# -- timelines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 8, 100, 700, 3000, 9000])
def test_every_part_of_an_axis_has_whole_dots_and_no_timeline_is_wider_than_the_others(m):
    chart = TimelineChart(strip_of(p=2, m=m))
    parts = -(-chart.strip.ticks // chart.ticks_a_part)
    dots = 2 * chart.plot / parts
    assert chart.plot <= PLOT
    assert dots == round(dots) >= 1
    assert dots <= max(2 * UNIT, 2 * 240 / parts)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("name", "sizes"), [("1f1b", {}), ("interleaved", {"v": 2}), ("zb-v", {}), ("dualpipe", {})]
)
def test_every_op_has_the_colour_of_its_kind_and_chunk(name, sizes, theme):
    chart = TimelineChart(strip_of(name, **sizes))
    strip, boxes = chart.strip, chart.strip.boxes
    picture = painted(chart, theme)
    tick = chart.plot / strip.ticks
    top, height = box_places(strip)
    found, expected = [], []
    for i in range(len(boxes.rank)):  # near a corner, where no number stands
        found.append(at(picture, chart.left + tick * boxes.start[i] + 1.5, top[i] + height[i] - 1))
        expected.append(rgb(shade("FBIW"[boxes.kind[i]], int(boxes.chunk[i]))))
    assert found == expected


def test_very_short_times_are_drawn_as_longer_ones_are():
    plan = plan_of("1f1b", p=4, m=4)
    short, long = (
        strips_of([simulate(plan, Durations(*4 * (time,)))], range(4))[0] for time in (1e-9, 1.0)
    )
    assert short.ticks * short.tick == pytest.approx(1e-9 * long.ticks * long.tick)
    starts = [strip.boxes.start / strip.ticks for strip in (short, long)]
    assert starts[0] == pytest.approx(starts[1], abs=1e-3)


@pytest.mark.parametrize("theme", THEMES)
def test_where_a_rank_waits_is_what_is_coloured(theme):
    chart = TimelineChart(strip_of(p=4, m=4))
    picture = painted(chart, theme)
    tick = chart.plot / chart.strip.ticks
    waiting = [at(picture, chart.left + tick * (rank - 0.5), 30 * rank + 15) for rank in (1, 2, 3)]
    assert waiting == [rgb(WAITING[theme])] * 3


def test_very_many_ops_are_one_picture_of_the_same_colours():
    chart = TimelineChart(strip_of(p=16, m=120))
    assert chart.strip.is_picture
    picture, boxes = painted(chart), chart.strip.boxes
    tick, row = chart.plot / chart.strip.ticks, chart.strip.row
    even = np.flatnonzero(boxes.micro_batch % 2 == 0)
    found = [
        at(picture, chart.left + tick * (boxes.start[i] + 0.5), row * (boxes.rank[i] + 0.5))
        for i in even
    ]
    assert found == [rgb(PHASES["FB"[boxes.kind[i]]]) for i in even]


def test_an_axis_of_too_many_ticks_is_averaged_and_keeps_its_length():
    chart = TimelineChart(strip_of(p=2, m=2000))
    assert chart.ticks_a_part == 3
    picture = painted(chart)
    row = picture[30, int(2 * chart.left) :]
    busy = (row != rgb(LOOKS["light"].ground)).any(axis=-1)
    assert busy.mean() == pytest.approx(1.0, abs=0.01)  # 6,000 of 6,003 ticks
    mean = row[400:-400].mean(axis=0)
    darker = np.mean([1, 0.86])
    colours = [np.array(rgb(PHASES[kind])) * darker for kind in "FBB"]
    assert mean == pytest.approx(np.mean(colours, axis=0), abs=2)


def test_real_ranks_stand_beside_the_rows():
    few, many = (TimelineChart(strip_of(ranks=ranks)) for ranks in (range(4), range(0, 4096, 1024)))
    assert many.left > few.left
    ground = np.array(rgb(LOOKS["light"].page))
    beside = painted(many)[:, : int(2 * many.left) - 6]
    assert [bool((beside[60 * r : 60 * r + 56] != ground).any()) for r in range(4)] == [True] * 4
    assert (beside[:, :6] == ground).all()  # nothing is cut off


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_held_fills_its_share_of_a_row(theme):
    strip = strip_of("zb-h1", p=2, m=4)
    chart = HeldChart(strip, most=float(strip.held.max()))
    picture = painted(chart, theme)
    parts, tall = strip.held.shape[1], strip.memory_row - 2
    for rank, part in np.ndindex(strip.held.shape):
        x = int(2 * (chart.left + chart.plot * (part + 0.5) / parts))
        column = picture[60 * rank : 60 * rank + 2 * tall, x]
        for name, held in (("input", strip.held_input), ("weights", strip.held)):
            filled = (column == rgb(HELD[name])).all(axis=-1).sum()
            expected = held[rank, part] - (strip.held_input[rank, part] if name != "input" else 0)
            assert filled == pytest.approx(expected / chart.most * 2 * tall, abs=1.1)


# -- memory --------------------------------------------------------------------------------------

BARS = BarsChart(
    (Bar("PP 0", (("#006a65", 30.0), ("#d0e062", 60.0)), "90", True), Bar("PP 1", (), "0")),
    limit=80.0,
    limit_name="80",
)


def lengths(picture, colour, row) -> int:
    """Dots of a colour along the middle of a bar."""
    line = picture[int(2 * (BARS.top + BARS.row * (row + 0.5)))]
    return int((line == rgb(colour)).all(axis=-1).sum())


@pytest.mark.parametrize("theme", THEMES)
def test_a_bar_s_parts_are_as_long_as_they_are_large(theme):
    picture = painted(BARS, theme)
    first, second = (lengths(picture, colour, 0) for colour in ("#006a65", "#d0e062"))
    assert first == pytest.approx(2 * 30 * BARS.pixels, abs=4)
    assert second == pytest.approx(2 * 60 * BARS.pixels, abs=8)  # the line crosses it
    assert lengths(picture, "#006a65", 1) == 0


@pytest.mark.parametrize("theme", THEMES)
def test_the_limit_crosses_all_bars_and_what_is_above_it_is_marked(theme):
    picture = painted(BARS, theme)
    x = int(2 * (BARS.left + BARS.limit * BARS.pixels))
    line = picture[int(2 * BARS.top) :, x - 2 : x + 2]
    assert (line == rgb(LOOKS[theme].ink)).all(axis=-1).any(axis=1).mean() > 0.5
    end = picture[int(2 * BARS.top) : int(2 * (BARS.top + BARS.row)), -60:]
    assert (end == rgb(WARNING[theme])).all(axis=-1).any()
    assert contrast(WARNING[theme], LOOKS[theme].page) >= 4.5


def test_the_parts_have_the_colours_of_the_page():
    context = Context.of(State())
    (_, bars), *_ = memory_slide(context)
    listed = select(str(memory_html(context)), 'li[style^="--part:"]')
    on_page = tuple((one.attributes["style"], one.first_child.text_content) for one in listed)
    assert on_page == tuple((f"--part:var(--{fill})", words) for fill, words in bars.legend)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("world", [16, 512])
def test_every_gpu_has_the_colour_of_its_level(world, theme):
    level = np.arange(world) % 9
    heat = Heat(level, [f"{rank}" for rank in range(world)], 8)
    assert heat.is_large == (world > 256)
    picture = painted(heat, theme)
    if heat.is_large:
        cells, columns = heat.nodes.grid.cells(), heat.nodes.grid.columns
        rows, across = np.divmod(cells[:world], columns)
        spots = zip(heat.left + (across + 0.5) * heat.cell, (rows + 0.5) * heat.cell)
    else:
        spots = zip(heat.tiles.x + heat.tiles.cell / 2, heat.tiles.y + heat.tiles.cell - 5)
    colours = [SHADES[theme][name] for name in HEAT_SHADES]
    assert [at(picture, x, y) for x, y in spots] == [rgb(colours[one]) for one in level]


def test_rings_stand_round_the_gpus_that_are_marked():
    marked = (1, 9, 300, 510)
    level = np.where(np.isin(np.arange(512), marked), 7, 0)
    heat = Heat(level, (), 8, marked=marked)
    picture = painted(heat)
    assert {at(picture, x, y) for x, y, _ in heat.rings} == {rgb(SHADES["light"]["heat7"])}
    assert len(heat.rings) == len(marked)


def held(state: str, count: int) -> list[list[str]]:
    """What is seen of one tensor: for each rank that is drawn, its shares; . for nothing."""
    shards = ShardGrid(tuple(range(count)), (("W", state),))
    picture = painted(shards)
    names = {rgb(colour): str(slot) for slot, colour in enumerate(PALETTE)}
    names |= {rgb("#ffffff"): ".", rgb(OTHERS): "*"}
    found = []
    for place in range(len(shards.visible)):
        left = SHARDS_LEFT + shards.column(place) * shards.step
        each = shards.box / shards.slots
        spots = [left + (slot + 0.5) * each for slot in range(shards.slots)]
        found.append([names.get(at(picture, x, TOP + BAR / 2), "~") for x in spots])
    return found


@pytest.mark.parametrize(
    ("state", "shown"),
    [(WHOLE, "012 012 012"), (OWN, "0.. .1. ..2"), (NONE, "... ... ..."), (LOCAL, "~~~ ~~~ ~~~")],
)
def test_who_holds_which_shard(state, shown):
    assert [" ".join("".join(rank) for rank in held(state, 3))] == [shown]


def test_of_many_ranks_the_others_have_one_grey_share():
    assert "".join(held(WHOLE, 40)[0]) == "0123456*7"
    assert "".join(held(STALE, 40)[7]) == "~~~~~~~~7"
    assert ShardGrid(tuple(range(40)), (("W", WHOLE), ("G", OWN))).height == TOP + 2 * ROW


# -- traffic -------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES)
def test_every_pair_has_the_colour_of_its_bytes(theme):
    sent = np.zeros((16, 16))
    sent[0, 1], sent[1, 0], sent[15, 2] = 1e9, 1e3, 1e6
    matrix = matrix_picture(sent, 1, gpus_per_node=8)
    chart = MatrixChart(matrix, "", scale_of(matrix))
    picture = painted(chart, theme)
    colours = ramp(SHADES[theme]["heat1"], SHADES[theme]["heat7"], LEVELS)
    for row, column in np.ndindex(16, 16):
        x, y = (matrix.cell * (one + 0.5) for one in (column, row))
        level = int(matrix.levels[row, column])
        expected = colours[level - 1] if level else rgb(LOOKS[theme].page)
        assert at(picture, chart.left + x, chart.top + y) == expected
    scale = chart.left + chart.side + 18 + chart.bar / 2
    ends = [at(picture, scale, chart.top + 4), at(picture, scale, chart.top + chart.side - 4)]
    assert ends == [colours[-1], colours[0]]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (2e6, 5e8, ["2.00 MB", "10.0 MB", "100 MB", "500 MB"]),
        (9.9e6, 1.01e9, ["9.90 MB", "100 MB", "1.01 GB"]),  # 10 MB would touch the lower end
        (7.0, 7.0, ["7 B"]),
    ],
)
def test_the_scale_names_its_ends_and_powers_of_ten(low, high, words):
    sent = np.array([[0.0, low], [high, 0.0]])
    found = scale_of(matrix_picture(sent, 1, 8))
    assert [word for _, word in found] == words
    assert found[-1][0] == 1.0
    assert all(after - before > 0.02 for (before, _), (after, _) in itertools.pairwise(found))
    chart = MatrixChart(matrix_picture(sent, 1, 8), "", found).fitted((910.0, 230.0))
    ends = {found[0], found[-1]}
    assert ends <= {*chart.scale} <= {*found}
    pixels = [at * chart.side for at, _ in chart.scale]
    assert all(after - before >= 14 for before, after in itertools.pairwise(pixels))


# -- exchanges -----------------------------------------------------------------------------------


def numbers(*values, who) -> list[list[Cell]]:
    return [[Cell(str(value), who) for value in values]]


SUM = Exchange(
    tuple(
        Member(rank, numbers(place, place + 1, who=(place,)), numbers(7, 8, who=(0, 1)))
        for place, rank in enumerate((4, 12))
    ),
    Flow(((0, 0), (0, 1), (1, 0), (1, 1)), "Σ"),
)


@pytest.mark.parametrize("theme", THEMES)
def test_cells_have_their_members_colour_and_sums_a_strip_of_all(theme):
    picture = painted(SUM, theme)
    for x, y, cell in SUM.cells():
        if len(cell.who) == 1:
            assert at(picture, x + 5, y + 5) == rgb(GROUPS[theme][cell.who[0]])
        else:
            assert at(picture, x + 5, y + 5) == rgb(LOOKS[theme].ground)
            below = [at(picture, x + part * SUM.cell, y + HEIGHT - 5) for part in (0.3, 0.7)]
            assert below == [rgb(GROUPS[theme][0]), rgb(GROUPS[theme][1])]


def test_lines_go_through_the_hub_once_for_each_member():
    x, y = SUM.hub
    assert [(line.x1, line.y1) for line in SUM.lines()[:2]] == [(x, y)] * 2
    assert [(line.x0, line.y0) for line in SUM.lines()[2:]] == [(x, y)] * 2
    direct = Exchange(SUM.members, Flow(((0, 1), (1, 1))))
    first, second = direct.middles
    ends = SUM.lines()[0].x0, SUM.lines()[2].x1
    assert direct.lines() == [
        Line(ends[0], first, ends[1], second),
        Line(ends[0], second, ends[1], second, stays=True),
    ]


def test_all_cells_are_inside_and_none_overlap():
    tall = Member(0, numbers(1, who=(0,)) * 3, numbers(1000000, who=(0,)))
    exchange = Exchange((tall, *SUM.members), SUM.flow)
    found = [(x, y) for x, y, _ in exchange.cells()]
    assert len(set(found)) == len(found)
    assert all(x >= 0 and x + exchange.cell <= exchange.width for x, _ in found)
    assert all(y >= 0 and y + HEIGHT <= exchange.height for _, y in found)
    for x, y in found:
        near = [one for one in found if abs(one[0] - x) < exchange.cell and one != (x, y)]
        assert all(abs(other - y) >= HEIGHT for _, other in near)


# -- the figure of them all ----------------------------------------------------------------------


def test_a_legend_goes_on_in_another_line_and_says_nothing_twice():
    legend = tuple(("#006a65", f"a long explanation, number {number}") for number in range(9))
    scenes = [BarsChart(BARS.bars, 80.0, "80", legend)] * 2
    made = drawing.Legend.of(scenes, "light", 100.0)
    assert [word.text for _, word in made.entries] == [text for _, text in legend]
    lines = sorted({word.y for _, word in made.entries})
    assert lines[:2] == [100.0, 118.0]
    assert made.right <= drawing.MARGIN + drawing.LEGEND_WIDTH
    assert made.height == 2 * drawing.SMALL + lines[-1] - lines[0]


def test_each_scene_s_own_entries_begin_a_line():
    first = BarsChart(BARS.bars, 80.0, "80", (("#006a65", "one"),))
    second = ShardGrid((0, 1), (("W", WHOLE),), (("", "words alone"),))
    (_, one), (swatch, other) = drawing.Legend.of([first, second], "light", 50.0).entries
    assert (one.y, other.y) == (50.0, 68.0)
    assert swatch == ""
    assert other.x == drawing.MARGIN


def test_nothing_covers_the_dots_of_a_cloud_whose_legend_says_what_they_are():
    words = {name: name for name in ("across", "up", "here", "peers", "others", "near")}
    spots = [(at, 0.5) for at in np.linspace(0, 1, 50)]
    chart = PointsChart(spots, spots, (), (0.5, 0.5, 0.6, 0.4), (), (), words)
    marks = [*draw_points(chart, "dark")]
    dots = [mark for mark in marks if isinstance(mark, Blocks) and len(mark.corners) > 1]
    over = marks[marks.index(dots[-1]) + 1 :]
    assert not [mark for mark in over if isinstance(mark, Words)]
    said = drawing.Legend.of([chart], "dark", 0.0).entries
    assert [word.text for _, word in said] == ["here", "peers", "others", "near"]
    assert {mark.fill for mark in dots} == {
        swatch for swatch, word in said if word.text in ("others", "peers")
    }
