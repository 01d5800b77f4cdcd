"""The pictures in a real browser: hover, pin, keyboard, touch, and worlds too large for panels."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from browser import (
    cell,
    choose,
    choose_preset,
    expect,
    expect_card,
    expect_layout,
    expect_lit,
    expect_marks,
    fix,
    job_cell,
    middle_of,
    next_frame,
    overview,
    point_at,
    requests_during,
    settle,
    slider,
    turn_to_nodes,
    type_in,
    type_sizes,
    wait_until,
)
from test_browser_access import open_state

from descriptions import CARD, DP_KINDS, kind_of
from groups.frameworks import FRAMEWORKS
from request.context import Context
from request.resolve import from_preset
from request.state import State
from views.parts.job import job_pictures

pytestmark = pytest.mark.browser

# --- Hover and pin --------------------------------------------------------------------------------


def test_hover_lights_exactly_the_groups_of_that_rank_without_the_server(open_page):
    page = open_page()
    layout = expect_layout(page)

    def hover():
        for kind, rank in (("dp", 0), ("tp", 5), ("pp", 15), ("dp", 10)):
            cell(page, kind, rank).hover()
            expect_lit(page, layout, rank)
            expect_card(page, layout, rank)
        page.mouse.move(5, 5)
        expect_lit(page, layout, None)

    assert requests_during(page, hover) == []
    expect_card(page, layout, 0)


def test_card_tells_coordinates_groups_and_peers_in_both_orders(open_page):
    page = open_page()
    choose(page, "group_type", "CP + DP + TP + PP")
    type_sizes(page, cp=2, nodes=4)
    for framework in ("megatron", "llama3"):
        choose(page, "framework", FRAMEWORKS[framework].name)
        chosen = State(group_type="cp+dp+tp+pp", framework=framework, cp=2, nodes=4)
        layout = expect_layout(page, chosen)
        for rank in (0, 5, 14, 31):
            cell(page, "cp", rank).hover()
            expect_card(page, layout, rank)
            expect_lit(page, layout, rank)
    choose(page, "framework", FRAMEWORKS["megatron"].name)  # Llama 3 makes no dp-cp
    choose(page, "dp_kind", DP_KINDS["dp-cp"]["en"])
    layout = expect_layout(page, chosen.changed({"framework": "megatron", "dp_kind": "dp-cp"}))
    cell(page, "dp-cp", 21).hover()
    expect_card(page, layout, 21)
    expect_lit(page, layout, 21)


def test_a_pin_survives_redraws_until_esc_lets_go(open_page):
    page = open_page()
    layout = expect_layout(page)
    cell(page, "tp", 6).click()
    page.mouse.move(5, 5)
    expect_lit(page, layout, 6, pinned=6)
    expect_card(page, layout, 6, pinned=True)
    cell(page, "tp", 1).hover()
    expect_lit(page, layout, 1, pinned=6)
    slider(page, "tp").focus()
    page.keyboard.press("ArrowLeft")
    page.mouse.move(5, 5)
    layout = expect_layout(page, tp=1)
    expect_lit(page, layout, 6, pinned=6)
    choose(page, "group_type", "CP + TP + PP")
    layout = expect_layout(page, group_type="cp+tp+pp", tp=1)
    page.mouse.move(5, 5)
    expect_lit(page, layout, 6, pinned=6)
    expect_card(page, layout, 6, pinned=True)
    page.locator("h1").click()
    page.keyboard.press("Escape")
    expect_lit(page, layout, None)
    expect_card(page, layout, 0)
    # Another cell takes the pin; a second click lets go.
    cell(page, "cp", 6).click()
    expect_lit(page, layout, 6, pinned=6)
    cell(page, "pp", 9).click()
    expect_lit(page, layout, 9, pinned=9)
    cell(page, "tp", 9).click()
    page.mouse.move(5, 5)
    expect_lit(page, layout, None)


def test_a_pinned_rank_that_no_longer_exists_is_said(open_page):
    page = open_page()
    cell(page, "tp", 12).click()
    page.mouse.move(5, 5)
    type_in(page, "nodes", "1")
    layout = expect_layout(page, nodes=1)
    gone = CARD["norank"]["en"].format(rank=12, last=7)
    expect(page.locator(".told")).to_contain_text(gone)
    expect_lit(page, layout, None)
    type_in(page, "nodes", "2")
    layout = expect_layout(page)
    expect_lit(page, layout, 12, pinned=12)
    expect(page.locator(".told")).not_to_contain_text(gone)
    type_in(page, "nodes", "1")
    expect(page.locator(".told")).to_contain_text(gone)
    layout = expect_layout(page, nodes=1)
    page.keyboard.press("Escape")
    expect_card(page, layout, 0)


def test_a_refusal_keeps_the_pin_and_its_light(open_page):
    page = open_page()
    layout = expect_layout(page)
    cell(page, "tp", 6).click()
    page.mouse.move(5, 5)
    type_in(page, "tp", "3")
    expect(page.locator(".refusal")).to_be_visible()
    expect_lit(page, layout, 6, pinned=6)
    fix(page, 0)
    expect(page.locator(".refusal")).to_have_count(0)
    expect(page.locator(".c.pin")).to_have_count(3)


def test_keyboard_alone_reaches_lights_pins_and_lets_go(open_page):
    page = open_page()
    layout = expect_layout(page)

    def focused():
        return page.evaluate(
            "(() => { const e = document.activeElement; return e.matches('svg.panel') ? "
            "[e.dataset.kind, Number(e.querySelector('.me').dataset.r)] : null; })()"
        )

    for _ in range(60):
        page.keyboard.press("Tab")
        if focused():
            break
    assert focused() == ["tp", 0]
    expect_lit(page, layout, 0)
    for key, rank in (
        ("ArrowRight", 1),
        ("ArrowDown", 9),
        ("ArrowRight", 10),
        ("ArrowUp", 2),
        ("ArrowLeft", 1),
    ):
        page.keyboard.press(key)
        expect_lit(page, layout, rank)
        assert focused() == ["tp", rank]
    expect_card(page, layout, 1)
    page.keyboard.press("Enter")
    expect_lit(page, layout, 1, pinned=1)
    expect_card(page, layout, 1, pinned=True)
    settle(page)
    assert focused() == ["tp", 1]
    page.keyboard.press("ArrowRight")
    expect_lit(page, layout, 2, pinned=1)
    page.keyboard.press(" ")
    expect_lit(page, layout, 2, pinned=2)
    page.keyboard.press("Escape")
    expect(page.locator(".c.pin")).to_have_count(0)


def test_a_tap_pins_and_a_second_tap_lets_go(open_page):
    page = open_page(width=400, height=800, touch=True)
    layout = expect_layout(page)
    cell(page, "tp", 5).tap()
    expect_lit(page, layout, 5, pinned=5)
    expect_card(page, layout, 5, pinned=True)
    cell(page, "pp", 8).tap()
    expect_lit(page, layout, 8, pinned=8)
    cell(page, "pp", 8).tap()
    expect_lit(page, layout, None)


def test_the_card_stays_in_sight_and_in_place_while_it_is_filled(open_page):
    page = open_page(width=1400, height=700)
    top = "document.querySelector('.kinds').getBoundingClientRect().top + scrollY"
    before = page.evaluate(top)
    cell(page, "dp", 5).hover()
    expect(page.locator(".told .gpu b")).to_have_text("GPU 5")
    assert page.evaluate(top) == before


def test_cells_too_small_for_text_leave_it_out(open_page):
    page = open_page()
    type_in(page, "nodes", "32")
    expect_layout(page, nodes=32)
    seen = set()
    for width in (1400, 400, 240):
        page.set_viewport_size({"width": width, "height": 900})
        wait_until(page, "(width) => innerWidth === width", width)
        next_frame(page)
        found = page.evaluate(
            """() => [...document.querySelectorAll('svg.panel')].flatMap((svg) => {
              const [room] = JSON.parse(svg.dataset.known).sides;
              return [...svg.querySelectorAll('.digits text')].map((text) => {
                const [word] = text.textContent.split(' ');
                const pixels = parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a;
                // Chromium's checkVisibility() is true for a text in a group without a box.
                const isDrawn = text.getBoundingClientRect().height > 0;
                const spills = isDrawn && text.getSubStringLength(0, word.length) > room + 1;
                return [pixels >= 7.5, isDrawn, spills];
              });
            })"""
        )
        assert [fits for fits, *_ in found] == [drawn for _, drawn, _ in found], f"at {width} px"
        assert not any(spills for *_, spills in found), f"at {width} px"
        seen |= {drawn for _, drawn, _ in found}
    assert seen == {True, False}


def test_ranks_of_a_panel_stay_where_names_of_its_groups_have_no_room(open_page):
    page = open_page()
    served = {"nodes": "4", "tp": "32", "pp": "1", "dp": "8", "ep": "32", "framework": "sglang"}
    open_state(page, model="deepseek-v3", **served)
    next_frame(page)
    tall = "all => all.map((one) => one.getBoundingClientRect().height > 0)"
    ranks, names = (page.locator(f"svg.panel .digits.{part}") for part in "ri")
    assert ranks.evaluate_all(tall) == [True] * 3
    assert names.evaluate_all(tall) == [True, False, True]  # of attn_dp


# --- Large worlds ---------------------------------------------------------------------------------


def open_preset(page, preset):
    layout = choose_preset(page, preset)
    expect(page.locator("svg.overview")).to_have_count(1)
    expect(page.locator("svg.job.plain")).to_have_count(1)
    return layout


def test_16384_gpus_hover_tells_the_rank_under_the_pointer_without_the_server(open_page):
    page = open_page()
    layout = open_preset(page, "llama3-405b-3")
    physical = overview(layout)
    expect_marks(page, layout, 0)

    def hover():
        for view, ranks in ((physical, (1, 127, 2048, 9999, 8, 4095, 16383)),):
            for rank in ranks:
                point_at(page, view, rank)
                expect_card(page, layout, rank)
                expect_marks(page, layout, rank)
        page.mouse.move(5, 5)
        expect(page.locator(".told .gpu b")).to_have_text("GPU 0")

    assert requests_during(page, hover) == []
    expect_marks(page, layout, 0)


def test_16384_gpus_a_pin_outlives_a_redraw(open_page):
    page = open_page()
    layout = open_preset(page, "llama3-405b-3")
    physical = overview(layout)
    page.mouse.click(*middle_of(page, physical, 5000))
    page.mouse.move(5, 5)
    expect_card(page, layout, 5000, pinned=True)
    settle(page)
    type_in(page, "cp", "8")
    controls = State(**{**vars(from_preset("llama3-405b-3")), "cp": 8})
    layout = expect_layout(page, controls)
    expect_card(page, layout, 5000, pinned=True)
    expect_marks(page, layout, 5000)
    name = page.locator("svg.overview").get_attribute("aria-label")
    assert "rank 5000" in name.replace(",", "")
    settle(page)
    page.mouse.click(*middle_of(page, overview(layout), 9))
    layout = choose_preset(page, "playground-16")
    page.mouse.move(5, 5)
    expect_lit(page, layout, 9, pinned=9)


def test_16384_gpus_by_keyboard(open_page):
    page = open_page()
    layout = open_preset(page, "llama3-405b-3")
    for view in [overview(layout)]:
        rank_at = {int(place): rank for rank, place in enumerate(view.place.tolist())}
        turn_to_nodes(page)
        page.locator("svg.overview").focus()
        place = int(view.place[0])
        for key, step in (("ArrowRight", 1), ("ArrowDown", view.grid.columns), ("ArrowRight", 1)):
            page.keyboard.press(key)
            place += step
            expect_card(page, layout, rank_at[place])
        page.keyboard.press("Enter")
        expect_card(page, layout, rank_at[place], pinned=True)
        settle(page)
        assert page.evaluate("document.activeElement.dataset.view") == "physical"
        page.keyboard.press("Escape")
        expect(page.locator(".told .gpu i, .hero .hint.kept")).to_have_count(0)
        settle(page)


def test_1024_gpus_in_the_dark_mark_in_dark_colours(open_page):
    page = open_page(dark=True)
    type_in(page, "nodes", "128")
    layout = expect_layout(page, nodes=128)
    physical = overview(layout)
    point_at(page, physical, 777)
    expect_card(page, layout, 777)
    expect_marks(page, layout, 777, theme="dark")


def test_131072_gpus_are_drawn_and_told(open_page):
    page = open_page()
    type_in(page, "nodes", "16384")
    expect_layout(page, nodes=16384)
    for name, size in (("tp", "8"), ("pp", "16")):
        type_in(page, name, size)
    layout = expect_layout(page, nodes=16384, tp=8, pp=16)
    assert layout.world_size == 131_072
    expect(page.locator(".derived")).to_have_attribute("data-world", "131072")
    for view in [overview(layout)]:
        point_at(page, view, 100_000)
        told = page.locator(".told .gpu b")
        expect(told).to_have_text(f"GPU {_told_at(page, view)}")
    for kind in layout.kinds:
        expect(page.locator(".kind", has_text=kind_of(kind).title["en"])).to_contain_text(
            kind_of(kind).body["en"]
        )


def _told_at(page, view):
    """The rank that Python's scene has where the mouse was sent for rank 100,000.

    At about one pixel a GPU the mouse may be rounded to a neighbour: the nearest whole pixel.
    """
    x, y = (round(v) for v in middle_of(page, view, 100_000))
    page.mouse.move(x, y)
    area = page.locator("svg.overview").bounding_box()
    width = page.locator("svg.overview").evaluate("svg => svg.viewBox.baseVal.width")
    scale = width / area["width"]
    column = int(((x - area["x"]) * scale - view.left) // view.cell)
    row = int(((y - area["y"]) * scale - view.top) // view.cell)
    (rank,) = np.flatnonzero(view.place == row * view.grid.columns + column)
    return int(rank)


# --- The picture of the job -----------------------------------------------------------------------

JOB_NOW = """(number) => {
  const svg = document.querySelectorAll('svg.job')[number];
  const at = (frame) => ['x', 'y', 'width', 'height'].map((name) => frame[name].baseVal.value);
  return [
    [...svg.querySelectorAll('.j')].map((one) => [Number(one.dataset.r), one.classList.value]),
    [...svg.querySelectorAll('.box.on')].map(at),
    [...svg.querySelectorAll('.replica.on')].map(at),
    [...svg.querySelectorAll('.joins path')].map((path) => path.getAttribute('d')),
  ];
}"""


@pytest.mark.parametrize(
    ("framework", "sizes"),
    [
        ("megatron", {"nodes": 4, "tp": 2, "cp": 2, "pp": 4}),
        ("llama3", {"nodes": 4, "tp": 2, "cp": 2, "pp": 4}),
        ("megatron", {"nodes": 8, "tp": 4, "cp": 1, "pp": 1, "ep": 8, "etp": 4}),  # outlines
    ],
)
def test_the_script_marks_a_gpu_s_groups_as_files_have_them(open_page, framework, sizes):
    page = open_page()
    type_sizes(page, **sizes)
    choose(page, "framework", FRAMEWORKS[framework].name)
    layout = expect_layout(page, **sizes, framework=framework)
    for rank in (0, 13, 31):
        job_cell(page, rank).hover()
        expect_card(page, layout, rank)
        for number, (_, drawn) in enumerate(job_pictures(Context(layout, State(rank=str(rank))))):
            looks = {
                one: f"j m t-{mark.tone}" for mark in drawn.marks for one in mark.ranks.tolist()
            }
            looks[rank] = "j me"
            cells, *frames, joins = page.evaluate(JOB_NOW, number)
            assert dict(cells) == looks
            boxes = drawn.boxes if drawn.box_tone else ()
            for shown, held in zip(frames, (boxes, drawn.replicas)):
                wanted = [*filter(drawn.holds_rank, held)]
                assert np.array(shown) == pytest.approx(np.array(wanted), abs=0.02)
            for path, line in zip(joins, drawn.lines, strict=True):
                ends = [float(part) for part in re.findall(r"[\d.]+", path)]
                assert ends == pytest.approx([*itertools.chain(*line.segments)], abs=0.02)


def test_the_groups_of_a_gpu_are_marked_in_the_frame_in_which_a_picture_is_first_seen(open_page):
    """The server marks none in the picture of the job."""
    page = open_page()
    page.evaluate(
        """() => {
          window.seen = [];
          const isMarked = () => document.querySelector('svg.job .j.me') !== null;
          const look = () => window.seen.push(isMarked());
          document.addEventListener('drawn', () => requestAnimationFrame(look));
        }"""
    )
    type_sizes(page, nodes=4, pp=4)
    expect_layout(page, nodes=4, tp=2, pp=4)
    seen = page.evaluate("window.seen")
    assert seen
    assert all(seen)


def test_the_card_has_each_group_s_number_in_its_own_row_and_nothing_outside_of_it(open_page):
    page = open_page()
    for sizes in ({"nodes": 32, "tp": 8, "pp": 4}, {"nodes": 8, "tp": 2, "pp": 2}):
        type_sizes(page, **sizes)
        expect_layout(page, **sizes)
        expect(page.locator(".hero .told .row")).to_have_count(3)
        rows = page.evaluate(
            """() => [...document.querySelectorAll('.hero .told .row')].map((row) => {
              const names = ['.chip', '.with', '.index'];
              const boxes = names.map((name) => row.querySelector(name).getBoundingClientRect());
              const [chip, members, index] = boxes;
              return [chip.right <= members.left, members.right <= index.left,
                Math.abs(chip.top - index.top) < chip.height];
            })"""
        )
        assert all(map(all, rows))
        outside = page.evaluate(
            """() => {
              const card = document.querySelector('.hero .card').getBoundingClientRect();
              // A dot at which a line is broken is cut off (test_no_line_begins_or_ends_at_a_dot).
              return [...document.querySelectorAll('.hero .told :not(.dot)')].filter((one) => {
                const { left, right } = one.getBoundingClientRect();
                return left < card.left + 8 || right > card.right - 8;
              }).length;
            }"""
        )
        assert outside == 0


WAYS = """() => [...document.querySelectorAll('.jobs svg:is(.job, .overview)')]
  .map((svg) => svg.checkVisibility())"""


def test_a_switch_turns_the_mesh_to_its_nodes_and_costs_turn_it_back(open_page):
    page = open_page()
    type_in(page, "nodes", "64")
    expect_layout(page, nodes=64)
    switch = page.locator(".lens-row .orders button")
    assert page.evaluate(WAYS) == [True, False]
    switch.nth(1).click()
    assert page.evaluate(WAYS) == [False, True]
    type_in(page, "tp", "4")  # stays over a change of the layout
    expect_layout(page, nodes=64, tp=4)
    assert page.evaluate(WAYS) == [False, True]
    page.locator("[data-lens=memory]").click()
    assert page.evaluate(WAYS) == [True, False]
    expect(switch.nth(0)).to_have_attribute("aria-pressed", "true")
    type_in(page, "nodes", "2")
    expect_layout(page, nodes=2, tp=4)
    expect(switch).to_have_count(0)
