"""Links, the Compare and the Launch view in a real browser: a state shared, kept and copied."""

from __future__ import annotations

from dataclasses import replace

import pytest
from addresses import expect_address, follow_link, next_step, reload, visit
from browser import (
    Cell,
    box,
    cell,
    choose_preset,
    expect,
    expect_card,
    expect_layout,
    expect_lit,
    expect_refusal,
    fix,
    overflow,
    settle,
    show,
    slider,
    type_in,
    values,
    write,
)
from pages import preset_states
from seen import seen

from descriptions import LAUNCH_NOTES, PAGE, SHELL
from formats.launch import emit, parse
from groups import LayoutError
from request.context import Context
from request.link import from_query, to_query
from request.named.launch import with_pasted
from request.resolve import from_preset, resolve
from request.state import State
from request.words import sentence
from views.launch.view import check_text, training_or_none
from views.server.lanes import BusyError, Lanes

pytestmark = pytest.mark.browser


def cells(page, table):
    """The cells of a table's rows, as text."""
    rows = page.locator(f".{table} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return {row[0]: row[1:] for row in rows}


def by_kind(page):
    """The row of each kind of group; kinds that make the same groups share one."""
    rows = cells(page, "moves").items()
    return {name: row for names, row in rows for name in names.split()}


# --- The address ----------------------------------------------------------------------------------


def test_an_address_shows_the_same_after_a_reload_to_somebody_else_and_on_the_way_back(open_page):
    page = open_page()
    expect_address(page, State())
    slider(page, "tp").focus()
    page.keyboard.press("ArrowLeft")
    first = expect_layout(page, tp=1)
    cell(page, "dp", 5).click()
    page.mouse.move(5, 5)
    expect_address(page, State(tp=1, rank="5"))
    next_step(page)
    chosen = from_preset("deepseek-v3")
    choose_preset(page, "deepseek-v3")
    show(page, "nodes")
    type_in(page, "rank", "700")
    # A published layout says its model and batch, too.
    said = preset_states()["deepseek-v3"]
    assert said["model"] == "deepseek-v3"
    chosen = replace(chosen, **said, view="nodes", preset="deepseek-v3", rank="700")
    query = expect_address(page, chosen)
    assert f"?{to_query(from_query(query))}" == query
    settle(page)
    told = page.locator("#picture").inner_text()
    reload(page)
    other = open_page()
    visit(other, query)
    for shown in (page, other):
        expect(shown.locator(".picture[data-view=nodes]")).to_be_visible()
        assert shown.locator("#picture").inner_text() == told
        expect(box(shown, "rank")).to_have_value("700")
        assert values(shown)["ep"] == "64"
        expect_address(shown, chosen)
    show(other, "groups")
    layout = expect_layout(other, chosen)
    expect_card(other, layout, 700, pinned=True)
    # The way back, and forth again: on a slow machine the three changes are not one step.
    wanted = to_query(State(tp=1, rank="5"))
    steps = 0
    while steps < 4 and page.evaluate("location.search") != f"?{wanted}":
        page.go_back()
        settle(page)
        steps += 1
    expect_layout(page, State(tp=1))
    expect_lit(page, first, 5, pinned=5)
    expect(box(page, "tp")).to_have_value("1")
    expect_address(page, State(tp=1, rank="5"))
    for _ in range(steps):
        page.go_forward()
        settle(page)
    expect(page.locator(".picture[data-view=nodes]")).to_be_visible()
    expect_address(page, chosen)


def test_a_typed_layout_is_opened_and_named_whatever_of_it_is_left(
    open_page,
):
    page, name = open_page(), "mcore-guide-llama-3-8b"
    visit(page, f"?preset={name}&pp=2")
    expect_layout(page, nodes=1, tp=1, pp=2, cp=2)
    expect(box(page, "preset")).to_have_value(name)
    named = State(nodes=1, tp=1, cp=2, model="llama3-8b", preset=name)
    expect_address(page, named)
    for size, start in (("nodes", "2"), ("tp", "2"), ("cp", "1")):
        type_in(page, size, start)
    expect_address(page, State(model="llama3-8b", preset=name))
    page.evaluate("document.dispatchEvent(new CustomEvent('set', {detail: {model: ''}}))")
    expect_address(page, State(preset=name))
    reload(page)
    expect_layout(page)
    expect(box(page, "preset")).to_have_value(name)


def test_a_published_layout_that_is_chosen_while_a_link_is_read_keeps_what_that_says(open_page):
    page, name = open_page(), "mcore-guide-llama-3-8b"
    page.evaluate(
        """name => {
          const say = (kind, detail) => document.dispatchEvent(new CustomEvent(kind, { detail }));
          say('open', { query: 'v=2&tp=4&show=memory&of_rank=3' });
          say('preset', { name });
        }""",
        name,
    )
    expect_address(page, State(**preset_states()[name], preset=name, view="memory", of_rank="3"))
    expect(page.locator(".picture[data-view=memory]")).to_be_visible()
    page.locator("#field-preset").select_option("")  # a layout of one's own
    expect_address(page, State(**preset_states()[name], view="memory", of_rank="3"))


def test_a_name_in_a_link_that_there_is_not_is_mended_in_one_click(open_page):
    page = open_page()
    visit(page, "?preset=llama3-405b&show=memory&framework=megatronn")
    notice = page.locator("#notice .refusal")
    expect(notice).to_have_count(2)
    expect(page.locator(".picture[data-view=memory]")).to_be_visible()
    notice.get_by_role("button", name="Megatron Core", exact=True).click()
    expect(notice).to_have_count(1)  # of the other it is still said
    type_in(page, "rank", "7")
    settle(page)
    notice.get_by_role("button", name="Llama 3 405B, Table 4 row 2").click()
    expect(notice).to_have_count(1)  # of the framework, which the link still says
    opened = State(**preset_states()["llama3-405b-2"], preset="llama3-405b-2", view="memory")
    expect_address(page, opened)
    expect(page.locator(".picture[data-view=memory]")).to_be_visible()
    page.go_back()
    settle(page)
    expect(box(page, "rank")).to_have_value("7")  # nothing that was had is lost


def test_a_bad_link_is_said_and_one_to_a_refused_layout_is_mended_in_one_click(open_page):
    page = open_page()
    query = "v=1&tp=4&%3Cb%3Enowhere=1"
    with pytest.raises(LayoutError) as found:
        from_query(query)
    visit(page, f"?{query}")
    notice = page.locator("#notice .refusal")
    expect(notice).to_contain_text(sentence(found.value, "en"))
    assert "<b>nowhere" in notice.inner_text()  # as text
    expect_layout(page)
    expect_address(page, State())
    notice.get_by_role("button", name=PAGE["close"]["en"]).click()
    expect(notice).to_have_count(0)
    type_in(page, "tp", "4")
    expect_layout(page, tp=4)
    expect(notice).to_have_count(0)
    expect_address(page, State(tp=4))
    asked = State(tp=3, layers="many")
    visit(page, f"?{to_query(asked)}")
    error = expect_refusal(page, asked, still=seen(State()))
    expect(notice).to_have_count(0)
    expect(box(page, "tp")).to_have_value("3")
    fix(page)
    mended = asked.changed(error.alternatives[0])
    expect_layout(page, mended)
    assert expect_address(page, mended).endswith("layers=many")
    # What is still shown is in the view and the language of the link.
    visit(page, "?v=2&tp=3&show=nodes&lang=zh")
    expect(page.locator(".picture[data-view=nodes][lang=zh]")).to_be_visible()
    expect(page.locator("#status .refusal")).to_be_visible()


def test_a_link_of_a_page_with_a_panel_of_gradios_open_is_read(open_page):
    page = open_page()
    visit(page, "?v=2&tp=4&view=settings")
    expect_layout(page, tp=4)
    expect(page.locator("#notice .refusal")).to_have_count(0)


def test_a_busy_server_says_so_in_place_of_the_first_picture_and_is_asked_again(
    open_page, monkeypatch
):
    async def nobody(*_values, **_named):
        raise BusyError

    page = open_page()
    with monkeypatch.context() as busy:
        busy.setattr(Lanes, "run", nobody)
        page.goto(page.url.split("?")[0] + "?v=2&tp=4&lang=zh")
        said = page.locator("#picture > .refusal")
        expect(said).to_have_text(SHELL["busy_for"]["zh"].format(seconds=1))
        seen_through = "(one) => one.checkVisibility({checkOpacity: true})"
        assert said.evaluate(seen_through)
        assert not page.locator("#controls").evaluate(seen_through)
    expect(page.locator("#picture > .picture")).to_be_visible()
    expect_layout(page, tp=4)
    expect(said).to_have_count(0)


# --- Launch ---------------------------------------------------------------------------------------

SCRIPT = """#!/bin/bash
#SBATCH --nodes=4 --gpus-per-node=8
srun python pretrain_gpt.py \\
  --tensor-model-parallel-size eight \\
  --pipeline-model-parallel-size 2 --num-layers 32 \\
  --save /home/somebody/confidential
"""


def test_a_pasted_script_is_read_marked_where_it_is_wrong_and_sets_the_controls(open_page):
    page = open_page()
    expect(box(page, "paste")).to_have_count(0)
    show(page, "launch")
    expect(page.locator("#picture")).to_contain_text(PAGE["launch_empty"]["en"])
    write(page, "paste", SCRIPT)
    problem = page.locator(".problems li")
    expect(problem).to_have_count(1)
    expect(problem.locator("mark")).to_have_text("eight")
    named = {"name": "--tensor-model-parallel-size", "value": "eight"}
    expect(problem).to_contain_text(LAUNCH_NOTES["bad-value"]["en"].format(**named))
    expect(problem).to_contain_text(PAGE["launch_place"]["en"].format(line=4, column=32))
    text = SCRIPT.replace("eight", "4")
    write(page, "paste", text)
    expect(problem).to_have_count(0)
    next_step(page)
    expect_address(page, State(view="launch"))
    page.get_by_role("button", name=PAGE["use_pasted"]["en"]).click()
    controls = with_pasted(State(), parse(text))
    assert (controls.nodes, controls.tp, controls.pp, controls.layers) == ("4", "4", "2", "32")
    expect(page.locator(".derived")).to_have_attribute("data-world", "32")
    # The text itself is nobody else's business.
    query = expect_address(page, replace(controls, view="launch"))
    assert "confidential" not in query
    assert "paste" not in query
    assert (values(page)["nodes"], values(page)["tp"]) == ("4", "4")
    show(page, "groups")
    expect_layout(page, controls)
    # Back to what was before the click: the text is still there to be used again.
    next_step(page)
    steps = 0
    while steps < 4 and box(page, "tp").input_value() != "2":
        page.go_back()
        settle(page)
        steps += 1
    expect(box(page, "tp")).to_have_value("2")
    expect(page.locator(".derived")).to_have_attribute("data-world", "16")
    show(page, "launch")
    expect(box(page, "paste")).to_have_value(text)


NODES = """N=${SLURM_NNODES:-1}
torchrun --nnodes $N --nproc-per-node 8 pretrain_gpt.py \\
  --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 --own-option 7
"""


def test_a_script_asks_for_its_nodes_is_judged_anew_and_given_back(open_page, server):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
    show(page, "launch")
    write(page, "paste", NODES)
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("How many nodes? Nothing sets $SLURM_NNODES")
    expect(verdict).to_contain_text("does not divide 16 GPUs")
    type_in(page, "nodes", "8")
    expect(verdict).to_contain_text("With 8: The text asks for 64 GPUs, 8 × 8")
    verdict.get_by_role("button", name="4", exact=False).first.click()
    settle(page)
    expect(verdict).to_contain_text("With 4: The page shows what the text asks for")
    assert (values(page)["nodes"], values(page)["pp"]) == ("4", "4")
    back = page.locator(".given-back")
    expect(back.locator("ins")).to_have_text("N=${SLURM_NNODES:-4}")
    back.locator(".copy").click()
    expect(back.locator(".copy")).to_have_text(PAGE["copied"]["en"])
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.rstrip("\n") == NODES.replace(":-1}", ":-4}").rstrip("\n")


def test_copied_are_exactly_the_command_and_the_check_script(open_page, server):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
    controls = State(nodes=4, tp=4, ep=2, framework="megatron", layers="32")
    follow_link(page, to_query(replace(controls, view="launch")))
    copied = "navigator.clipboard.readText()"
    buttons = page.locator(".command .copy")
    buttons.first.click()
    expect(buttons.first).to_have_text(PAGE["copied"]["en"])
    assert page.evaluate(copied) == emit(resolve(controls).job, {"layers": 32}, "megatron")
    link = page.locator("[data-copy-link]")
    link.dispatch_event("click")
    expect(link).to_have_text(PAGE["copied"]["en"])
    assert page.evaluate(copied) == page.evaluate("location.href")
    # On plain http there is no clipboard to write to: the text is copied by selecting it.
    page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('closed')); }"
    )
    page.get_by_text(PAGE["check_show"]["en"], exact=True).click()
    page.locator("#picture details .copy").last.click()
    expect(page.locator("#picture details .copy").last).to_have_text(PAGE["copied"]["en"])
    training = training_or_none(Context.of(controls))
    assert page.evaluate(copied) == check_text(resolve(controls), training=training)


# --- Compare --------------------------------------------------------------------------------------


def test_a_kept_layout_stands_beside_the_one_that_is_shown(open_page):
    page = open_page()
    expect(box(page, "kept")).to_have_count(0)
    show(page, "compare")
    expect(page.locator("#picture")).to_contain_text(PAGE["compare_empty"]["en"])
    page.get_by_role("button", name=PAGE["keep"]["en"]).click()
    settle(page)
    expect(page.locator("#picture")).to_contain_text(PAGE["compare_same"]["en"])
    type_in(page, "tp", "4")
    before, after = seen(State()), seen(State(tp=4))
    expect(page.locator(".sizes tbody tr")).to_have_count(2)

    def expect_comparison():
        sizes = cells(page, "sizes")
        assert sizes.pop(PAGE["dp_size"]["en"]) == ["4", "2"]
        assert list(sizes.values()) == [["2", "4"]]
        groups = by_kind(page)
        assert groups["tp"][0].startswith("8 groups × 2;")
        assert groups["tp"][1].startswith("4 groups × 4;")
        assert "pp" not in groups  # the same in both
        shown = page.locator(".still svg.panel").evaluate_all(
            "all => all.map(one => one.dataset.kind)"
        )
        assert shown == ["tp", "dp", "tp", "dp"]

    expect_comparison()
    # A GPU pointed at lights up in both jobs: they have the same ranks.
    jobs = page.locator(".both svg.job")
    Cell(jobs.first, 3).hover()
    for at, layout in enumerate((before, after)):
        expect(jobs.nth(at).locator(".j.me")).to_have_attribute("data-r", "3")
        marked = (
            jobs.nth(at)
            .locator(".j.m")
            .evaluate_all("all => all.map(one => Number(one.dataset.r))")
        )
        groups = (layout.every[kind].members(3).tolist() for kind in ("tp", "dp", "pp"))
        assert sorted(marked) == sorted({rank for group in groups for rank in group} - {3})
    # In panels of two layouts a cell would light up in one only.
    for side in (0, 1):
        at = Cell(page.locator(".still .grid").nth(side).locator("svg.panel").first, 3)
        at.hover()
        at.click()
    settle(page)
    expect(page.locator(".still .c")).to_have_count(0)
    expect(box(page, "rank")).to_have_value("")
    expect_address(page, State(tp=4, view="compare", kept="?v=2&zero=1"))
    reload(page)
    expect(box(page, "kept")).to_have_value("?v=2&zero=1")
    expect(page.locator(".sizes tbody tr")).to_have_count(2)
    expect_comparison()
    # What is no link is refused here alone; a whole address is a link too.
    write(page, "kept", "tp 4")
    expect(page.locator("#picture .refusal")).to_contain_text("'tp 4'")
    expect(page.locator("#status .refusal")).to_have_count(0)
    write(page, "kept", page.url.split("?")[0] + "?v=2&tp=8&pp=1")
    expect(page.locator(".sizes tbody tr").first).to_have_text("tp84")
    assert by_kind(page)["tp"][0].startswith("2 groups × 8;")
    show(page, "groups")
    expect_layout(page, tp=4)
    cell(page, "tp", 3).hover()
    expect_lit(page, after, 3)


def test_both_views_fit_into_a_phone_and_a_link_keeps_the_language(open_page):
    page = open_page(width=400, height=900, touch=True)
    kept = f"?{to_query(State(nodes=3))}"
    state = replace(from_preset("deepseek-v3"), view="compare", kept=kept)
    follow_link(page, to_query(state))
    expect(page.locator(".sizes tbody tr").nth(3)).to_be_visible()
    assert overflow(page) == (0, [])
    page.locator(".languages").select_option("zh")
    settle(page)
    expect(page.locator(".picture")).to_have_attribute("lang", "zh")
    assert expect_address(page, replace(state, lang="zh")).endswith("&lang=zh")
    reload(page)
    expect(page.locator("h1")).to_have_text(PAGE["title"]["zh"])
    expect(page.locator(".picture")).to_have_attribute("lang", "zh")
    expect(page.locator("#picture h2").first).to_have_text(PAGE["compare_title"]["zh"])
    assert overflow(page) == (0, [])
    show(page, "launch", "zh")
    write(page, "paste", SCRIPT + "x" * 300 + " --unknown-" + "y" * 300)
    page.locator(".problems mark").wait_for()
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert overflow(page) == (0, [])
    said = page.locator("#page").inner_text()
    words = ("launch_title", "launch_understood", "emit_title", "emit_body", "copy_text", "keep")
    assert [PAGE[word]["en"] for word in words if PAGE[word]["en"] in said] == []
