"""The other views in a real browser: orders, expert grid, node audit, rank card, pasted ranks."""

from __future__ import annotations

import re

import pytest
from addresses import follow
from browser import (
    READ,
    Cell,
    alone,
    box,
    cell,
    choose,
    choose_preset,
    contrasts,
    expect,
    expect_card,
    expect_layout,
    expect_lit,
    expect_marks,
    expect_refusal,
    fix,
    groups_of,
    overflow,
    overview,
    pass_time,
    point_at,
    requests_during,
    settle,
    show,
    type_in,
    type_sizes,
    values,
    write,
)
from seen import seen

from descriptions import CARD, CONTROLS, PAGE, SHELL, TYPES, counted
from groups.audit import moves
from groups.frameworks import FRAMEWORKS
from render.scenes import groups as scene
from request.resolve import from_preset
from request.state import State

pytestmark = pytest.mark.browser


def rows_of(page, table):
    """The cells of a table, each as it is read."""
    rows = page.locator(f".{table} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return [[" ".join(cell.split()) for cell in row] for row in rows]


# --- Orders ---------------------------------------------------------------------------------------


def expect_comparison(page, layout, other):
    """The table and both pictures of every kind that moved, the ranks outlined if not all moved."""
    found = moves(other.every, {one.name: one for one in layout.shown}, layout.gpus_per_node)
    expect(page.locator(".pair")).to_have_count(sum(one.ranks > 0 for one in found))
    assert [(row[0], *row[2:]) for row in rows_of(page, "moves")] == [
        (
            one.name,
            f"{one.crossing_before} / {one.groups}",
            f"{one.crossing_after} / {one.groups}",
        )
        for one in found
    ]
    moved = [one for one in found if one.ranks]
    assert page.evaluate(READ)[6] == [
        [one.name, groups_of(side.every[one.name]), alone(side.every[one.name])]
        for one in moved
        for side in (other, layout)
    ]
    outlined = page.locator(".pair").evaluate_all(
        "all => all.map(pair => [...pair.querySelectorAll('.moved')].map(c => +c.dataset.r))"
    )
    some = [[] if one.moved.all() else [*one.moved.nonzero()[0].tolist()] * 2 for one in moved]
    assert outlined == some
    for pair in page.locator(".pair").all():
        assert [one.is_visible() for one in pair.locator("figure").all()] == [False, True]


def test_another_framework_shows_what_its_order_moves(open_page):
    page = open_page()
    type_in(page, "nodes", "4")
    expect_layout(page, nodes=4)
    expect(page.locator(".strip")).to_have_count(0)
    choose(page, "framework", FRAMEWORKS["llama3"].name)
    controls = State(nodes=4, framework="llama3")
    layout, megatron = expect_layout(page, controls), seen(State(nodes=4))
    strip = PAGE["strip"]["en"].format(order=megatron.order, kinds="dp, pp")
    expect(page.locator(".strip")).to_contain_text(strip)
    expect(box(page, "versus")).to_have_count(0)
    show(page, "orders")
    expect(box(page, "versus")).to_be_visible()
    expect(page.locator("[data-save=svg]")).to_have_count(1)
    expect_comparison(page, layout, megatron)
    for framework in ("llama3", "megatron"):
        expect(page.locator("#picture")).to_contain_text(FRAMEWORKS[framework].name)
    # Against a typed order; and an order that cannot be is refused here, not beside the controls.
    type_in(page, "versus_order", "dp-tp-cp-ep-pp")
    settle(page)
    expect(page.locator(".moves th").nth(2)).to_contain_text("dp-tp-")
    other = seen(controls.changed({"order": "dp-tp-cp-ep-pp"}))
    expect_comparison(page, layout, other)
    # A GPU pinned here lights up in both pictures of every kind.
    Cell(page.locator(".pair svg.panel:visible").first, 9).click()
    expect(page.locator(".c.pin")).to_have_count(2 * page.locator(".pair").count())
    expect(box(page, "rank")).to_have_value("9")
    type_in(page, "versus_order", "tp-dp")
    settle(page)
    expect(page.locator("#picture .refusal code")).to_contain_text("haven'tspecified the order")
    expect(page.locator("#status .refusal")).to_have_count(0)
    # What is chosen from the list is no order that was typed beside it.
    choose(page, "versus", FRAMEWORKS["megatron"].name)
    expect(page.locator("#picture .refusal")).to_have_count(0)
    expect(box(page, "versus_order")).to_have_value("")


def test_an_order_of_ones_own_is_refused_in_megatrons_words_and_mended_in_one_click(open_page):
    page = open_page()
    expect(box(page, "order")).to_be_hidden()
    choose(page, "framework", PAGE["own_order"]["en"])
    settle(page)
    expect(box(page, "order")).to_be_visible()
    layout = expect_layout(page, framework="own")
    box(page, "order").fill("tp-pp")  # counts after a pause, without Enter
    error = expect_refusal(page, State(framework="own", order="tp-pp"), still=layout)
    expect(page.locator(".quote code")).to_have_text(error.quote)
    assert "haven'tspecified the order (tp-pp)" in error.quote
    fix(page)
    mended = State(framework="own", order="tp-pp").changed(error.alternatives[0])
    expect_layout(page, mended)
    expect(box(page, "order")).to_have_value(mended.order)
    expect(page.locator(".quote")).to_have_count(0)
    # pp before dp, with experts of another data parallel size
    type_in(page, "order", "tp-cp-ep-pp-dp")
    type_in(page, "ep", "4")
    asked = State(framework="own", order="tp-cp-ep-pp-dp", ep=4)
    error = expect_refusal(page, asked)
    expect(page.locator(".quote")).to_contain_text("must be the same")
    for number, change in enumerate(error.alternatives):
        if number:
            type_sizes(page, order=asked.order, ep=asked.ep)
            expect_refusal(page, asked)
        fix(page, number)
        expect_layout(page, asked.changed(change))
    choose(page, "framework", FRAMEWORKS["deepspeed"].name)
    expect(box(page, "order")).to_be_hidden()


# --- Dense and expert grids -----------------------------------------------------------------------


def test_dense_and_expert_grids_stand_apart_with_the_pinned_rank_in_both(open_page):
    page = open_page()
    layout = choose_preset(page, "folding-mixtral-8x22b-folded")
    dense, expert = (grid.bounding_box() for grid in page.locator(".hero svg.job").all())
    beside = dense["x"] + dense["width"] <= expert["x"]
    below = dense["y"] + dense["height"] <= expert["y"]  # where half the width would fold stages
    assert beside or below
    cell(page, "ep", 77).click()
    page.mouse.move(5, 5)
    expect_lit(page, layout, 77, pinned=77)
    expect_card(page, layout, 77, pinned=True)
    expect(box(page, "rank")).to_have_value("77")
    # ep of 8 and tp of 2: an EP group holds whole TP groups, seen in both grids at once.
    lit = page.locator('svg.panel[data-kind="ep"] .c.on').count()
    assert lit == layout.expert.size("ep") == 8
    type_in(page, "etp", "2")
    layout = expect_layout(page, from_preset("folding-mixtral-8x22b-folded").changed({"etp": "2"}))
    page.mouse.move(5, 5)
    expect_lit(page, layout, 77, pinned=77)


INSETS = """all => all.map((svg) =>
  [...svg.querySelectorAll('.j text')].map((one) => Number(one.textContent)))"""


def test_deepseek_v3_marks_the_same_ranks_as_python_in_both_grids(open_page):
    page = open_page()
    layout = choose_preset(page, "deepseek-v3")
    assert (str(layout.mesh), str(layout.expert)) == ("tp1-cp1-dp128-pp16", "etp1-ep64-edp2-pp16")
    expect(page.locator("svg.overview")).to_have_count(2)

    def hover():
        for grid, rank in ((0, 700), (1, 2047)):
            point_at(page, overview(layout, grid=grid), rank, grid)
            expect_card(page, layout, rank)
            for side in (0, 1):
                expect_marks(page, layout, rank, grid=side)
            # Magnified beside each: of the dense grid 8 replicas, of the expert grid one.
            assert page.locator(".inset .me").all_text_contents() == [str(rank)] * 2
            numbers = page.locator(".inset svg").evaluate_all(INSETS)
            first = rank - rank % 8
            assert set(range(first, first + 8)) <= {*numbers[0]}
            assert numbers[1] == list(range(rank - rank % 64, rank - rank % 64 + 64))

    assert requests_during(page, hover) == []


CUT = State(
    group_type="chosen",
    more=("hcp-l0", "hcp-l1", "intra-dp-cp", "embd", "intra-edp", "inter-edp", "intra-dist-opt"),
    nodes=64,
    tp=1,
    pp=4,
    cp=8,
    ep=4,
    instances=2,
    levels="2x4",
)
HYBRID = State(
    group_type="chosen",
    more=("hybrid-dp-cp-4", "hybrid-dp-cp-32", "tp-dp-cp"),
    nodes=36,
    tp=2,
    pp=1,
    hybrid=True,
)
"""288 GPUs, dp-cp of 144: the last run of 32 is short."""


def test_groups_that_are_cut_thinned_or_joined_are_marked_as_python_makes_them(open_page):
    page = open_page()
    choose(page, "group_type", TYPES["chosen"].title["en"])
    for controls in (CUT, HYBRID):
        more = CUT.value("more") + (HYBRID.value("more") if controls is HYBRID else ())
        type_in(page, "more", ", ".join(more))
        type_sizes(page, **{name: getattr(controls, name) for name in SIZES_OF_CUT})
        box(page, "hybrid").set_checked(controls.value("hybrid"))
        if controls is HYBRID:  # what was chosen before is no group of this layout
            asked = controls.changed({"more": CUT.value("more") + HYBRID.value("more")})
            error = expect_refusal(page, asked)
            fix(page)
            controls = asked.changed(error.alternatives[0])
            assert set(HYBRID.value("more")) < set(controls.value("more"))
        layout = expect_layout(page, controls)
        grids = len(page.locator("svg.overview").all()) // 2
        for rank in (0, layout.world_size // 2 - 37, layout.world_size - 1):
            point_at(page, overview(layout), rank)
            expect_card(page, layout, rank)
            for grid in range(grids):
                expect_marks(page, layout, rank, grid=grid)


SIZES_OF_CUT = ("nodes", "tp", "pp", "cp", "ep", "instances", "levels")


def test_a_gpu_of_a_middle_stage_is_in_no_embedding_group(open_page):
    page = open_page()
    choose(page, "group_type", TYPES["model"].title["en"])
    type_in(page, "pp", "4")
    layout = expect_layout(page, group_type="model", pp=4)
    cell(page, "embd", 5).hover()  # stage 1 of 4
    expect_lit(page, layout, 5)
    expect_card(page, layout, 5)
    assert cell(page, "embd", 5).texts() == ["5", "–"]
    cell(page, "embd", 12).hover()  # stage 3, the last one
    expect_lit(page, layout, 12)


# --- Ranks ----------------------------------------------------------------------------------------


def test_a_typed_rank_is_pinned_at_once_and_one_that_does_not_exist_is_said(open_page):
    page = open_page()
    layout = expect_layout(page)
    box(page, "rank").press_sequentially("13")
    expect_lit(page, layout, 13, pinned=13)
    expect_card(page, layout, 13, pinned=True)
    write(page, "rank", "many")
    expect_card(page, layout, 0)
    expect_lit(page, layout, None)
    write(page, "rank", "16")
    gone = CARD["norank"]["en"].format(rank=16, last=15)
    expect(page.locator(".told")).to_contain_text(gone)
    expect_lit(page, layout, None)
    box(page, "rank").press("ControlOrMeta+A")
    box(page, "rank").press("Backspace")
    expect_card(page, layout, 0)
    cell(page, "tp", 3).click()
    expect(box(page, "rank")).to_have_value("3")
    page.mouse.move(5, 5)
    page.keyboard.press("Escape")
    expect(box(page, "rank")).to_have_value("")
    # In a large world the picture is drawn for it.
    type_in(page, "nodes", "128")
    layout = expect_layout(page, nodes=128)
    type_in(page, "rank", "777")
    settle(page)
    expect(page.locator("svg.overview")).to_have_attribute("aria-label", re.compile("rank 777"))
    expect_card(page, layout, 777, pinned=True)
    expect_marks(page, layout, 777)


def facts(page):
    terms = page.locator("dl.rank dt").all_inner_texts()
    return dict(zip(terms, page.locator("dl.rank dd").all_inner_texts()))


def test_the_rank_card_of_a_clicked_gpu_fills_up_with_the_model(open_page):
    page = open_page()
    type_sizes(page, ep=4)
    layout = expect_layout(page, ep=4)
    cell(page, "tp", 9).click()
    show(page, "ranks")
    expect(page.locator(".intro h2").nth(1)).to_have_text(PAGE["rank_title"]["en"].format(rank=9))
    stage, experts, samples = (PAGE[f"rank_{of}"]["en"] for of in ("stage", "experts", "samples"))
    assert "24–47" in facts(page)[stage]  # of the model that counts where none is chosen
    assert "of 128" in facts(page)[experts]
    seen_names = page.locator(".peers th[scope=row]:visible")
    assert seen_names.all_inner_texts() == ["tp etp", "dp ep", "pp"]
    page.locator(".all-names").click()
    rows = rows_of(page, "peers")
    wanted = {name: one.members(9) for name, one in layout.every.items() if one.size > 1}
    assert sorted(name for row in rows for name in row[0].split()) == sorted(wanted)
    for names, _, size, members, _ in rows:
        for name in names.split():
            assert members == ", ".join(map(str, wanted[name].tolist()))
            assert size == str(len(wanted[name]))
    for name, text in (("layers", "24"), ("experts", "64"), ("micro_batch", "1")):
        type_in(page, name, text)
    type_in(page, "global_batch", "8")
    expect(page.locator("dl.rank")).to_contain_text(counted(2, "microbatch", "en"))
    assert "12–23" in facts(page)[stage]
    place = seen(State(ep=4)).every["ep"].members(9).tolist().index(9)
    assert f"{16 * place}–{16 * place + 15}" in facts(page)[experts]
    assert re.search(r"\b0, 4\b", facts(page)[samples])  # dp rank 0 of 4
    # A number that does not fit is said where it counts; the rest stays.
    type_in(page, "layers", "25")
    expect(page.locator("dl.rank .refusal")).to_have_count(1)
    assert "25" in facts(page)[stage]
    assert page.locator("#status .refusal").count() == 0
    # Folded away and opened again, the numbers are still there.
    for _ in range(2):
        page.locator("#fold-model > summary").click()
    expect(box(page, "layers")).to_have_value("25")
    assert values(page)["experts"] == "64"
    # Jump to a rank by its number; one that does not exist is refused in words.
    type_in(page, "rank", "3")
    expect(page.locator(".intro h2").nth(1)).to_have_text(PAGE["rank_title"]["en"].format(rank=3))
    page.keyboard.press("Escape")
    expect(page.locator(".intro h2").nth(1)).to_have_text(PAGE["rank_title"]["en"].format(rank=0))
    type_in(page, "rank", "99")
    expect(page.locator("#picture .refusal")).to_contain_text("99")
    type_in(page, "rank", "5")
    expect(page.locator(".intro h2").nth(1)).to_have_text(PAGE["rank_title"]["en"].format(rank=5))
    show(page, "groups")
    expect_lit(page, layout, 5, pinned=5)


def test_pasted_log_lines_lead_to_the_group_that_hangs(open_page, server):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
    expect(box(page, "ranks")).to_have_count(0)
    show(page, "ranks")
    expect(page.locator("#picture")).to_contain_text(PAGE["together_empty"]["en"])
    log = "[rank1]: Watchdog caught timeout after 600000 ms\\n[rank 9]: the same, at 10.0.0.3:29500"
    page.evaluate(f"navigator.clipboard.writeText('{log}')")
    box(page, "ranks").focus()
    page.keyboard.press("Control+V")
    pass_time(page, 350)
    expect(page.locator("#picture")).to_contain_text(
        PAGE["together_exact"]["en"].format(kind="pp = embd", index=1)
    )
    rows = rows_of(page, "shared")
    every = seen(State()).every
    holding = {name for name, one in every.items() if one.size > 1 and 9 in one.members(1).tolist()}
    assert {name for row in rows for name in row[0].split()} == holding
    sizes = [int(row[2]) for row in rows]
    assert sizes == sorted(sizes)
    write(page, "ranks", "1, nine")
    expect(page.locator("#picture .refusal")).to_contain_text("'nine'")
    write(page, "ranks", "0-15")
    expect(page.locator("#picture .refusal")).to_have_count(0)


# --- Nodes and links, widths, languages -----------------------------------------------------------


@pytest.mark.parametrize("width", [1400, 400])
def test_every_view_fits_into_the_window(open_page, width):
    page = open_page(width=width, height=900, touch=width == 400)
    layout = choose_preset(page, "deepseek-v3")
    wide = {}
    for view in ("nodes", "orders", "ranks"):
        show(page, view)
        if view == "ranks":
            write(page, "ranks", "1-900")
            expect(page.locator(".shared, #picture :text('No group')").first).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        if (over := overflow(page)) != (0, []):
            wide[view] = over
        if view == "orders":
            lines = "all => all.map(name => name.getClientRects().length)"
            names = page.locator("#picture .unbroken:visible").evaluate_all(lines)
            room = "box => box.scrollWidth - box.clientWidth"
            assert page.locator(".moves").evaluate(room) <= 0
            assert len(names) >= 4
            assert {*names} == {1}
        page.keyboard.press("Escape")  # the menus, which are over the page
        if view == "nodes":
            warning = page.locator(".warnings li")
            expect(warning).to_have_count(1)
            expect(warning).to_contain_text("32 of 32")
            expect(warning).to_contain_text(counted(8, "node", "en"))
            assert len(rows_of(page, "audit")) >= 3
    assert wide == {}
    show(page, "groups")
    expect_layout(page, from_preset("deepseek-v3"))
    assert layout.world_size > scene.PANEL_LIMIT


def test_every_view_is_chinese_to_a_chinese_reader(open_page):
    page = open_page(locale="zh-CN")
    expect(page.locator("h1")).to_have_text(PAGE["title"]["zh"])
    expect(page.locator(".skip")).to_have_text(SHELL["skip"]["zh"])
    choose_preset(page, "folding-mixtral-8x22b-folded")
    choose(page, "framework", FRAMEWORKS["deepspeed"].name)
    type_in(page, "etp", "")
    english = [
        piece.strip(" .,:")
        for name, text in PAGE.items()
        if name != "subtitle_en" and text["en"] != text["zh"]
        for piece in re.split(r"\{\w+\}", text["en"])
    ]
    english += [text.help["en"] for text in CONTROLS.values()]
    english = [piece for piece in english if len(piece) > 8 and " " in piece]
    assert len(english) > 80
    for view in ("groups", "nodes", "orders", "ranks"):
        show(page, view, "zh")
        settle(page)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        said = page.evaluate("document.querySelector('#page').innerText")
        page.keyboard.press("Escape")
        assert [piece for piece in english if piece in said] == []
        assert len(re.findall(r"[\u4e00-\u9fff]", said)) > 300
        assert page.locator(".picture").get_attribute("lang") == "zh"
    assert len(contrasts(page, "#picture")) > 10


@pytest.mark.parametrize(("width", "rows"), [(1400, 1), (400, 3)])
def test_three_engines_stand_in_a_row_where_there_is_room(shared_page, width, rows):
    page = shared_page
    follow(page, State(framework="sglang", nodes=1, tp=8, ep=4, pp=1, model="mixtral-8x7b"))
    page.set_viewport_size({"width": width, "height": 900})
    show(page, "orders")
    engines = page.locator("#main .engines > figure")
    expect(engines).to_have_count(3)
    tops = engines.evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    page.set_viewport_size({"width": 1400, "height": 1000})
    assert len({*tops}) == rows
