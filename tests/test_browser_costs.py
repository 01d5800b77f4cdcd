"""Memory, Traffic, Better layouts and the costs of Compare in the real page, and what they share
with the other views of a step: one address, one language, names, contrast, room."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from addresses import expect_address, follow, next_step, reload
from browser import (
    box,
    contrasts,
    expect,
    next_frame,
    overflow,
    requests_during,
    settle,
    show,
    type_in,
)

from descriptions import CONTROLS, MEMORY, OPERATION_TEXTS, PAGE, TRAFFIC
from request.answers.compare.sides import COSTS, cost_of
from request.answers.estimate.words import about
from request.answers.traffic import rows_of
from request.link import published
from request.resolve import resolve
from request.state import State
from request.trained import GIB, trained_of
from request.units import bytes_text, gib, seconds_text
from training.memory.per_stage import largest, memory_per_stage
from training.search import search
from training.traffic.matrix import matrix
from training.traffic.per_step import seconds_together
from views.base.html import unparted

pytestmark = pytest.mark.browser

LLAMA = "llama3-70b"


def cells(page, table):
    """The text of a table's cells, each row by its head."""
    rows = page.locator(f"{table} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return {name: [said.replace("\xa0", " ") for said in rest] for name, *rest in rows}


# --- Memory ---------------------------------------------------------------------------------------


def test_a_model_that_does_not_fit_is_made_to_fit_in_one_click(shared_page):
    page = shared_page
    controls = State(nodes=4, tp=4, pp=2)
    follow(page, replace(controls, view="memory", cluster="hgx-h800"))
    box(page, "model").select_option("llama3-70b")
    before = trained_of(resolve(controls), replace(controls, model=LLAMA)).stages()
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text(f"holds {gib(largest(before).total)}")
    assert largest(before).total > 80 * GIB
    expect(verdict).to_have_class(re.compile("over"))
    rows = page.locator(".memory-row")
    expect(rows).to_have_count(2)
    formula = page.locator(".memory-formula")

    def look():
        for stage in (1, 0):
            rows.nth(stage).hover()
            expect(formula.locator("h4")).to_contain_text(f"Stage {stage}, layers: 40")
            told = cells(page, ".memory-formula")
            parts = {MEMORY[f"part_{part}"]["en"]: number
                     for part, number in before[stage].parts.items()}  # fmt: skip
            assert {name: told[name][0] for name in told} == {
                name: gib(number) for name, number in parts.items()
            }
            weights = f"2 B × {before[stage].parameters.total / 1e6:,.0f} M"
            assert told[MEMORY["part_weights"]["en"]][1] == weights

    assert requests_during(page, look) == []
    fix = verdict.locator(".fix").first
    (promised,) = re.findall(r"[\d,.]+\sGiB", fix.inner_text())
    fix.click()
    expect(verdict).to_have_class(re.compile("fits"))
    expect(verdict).to_contain_text(promised)
    # The change keeps what every other view was asked.
    assert "cluster=hgx-h800" in page.evaluate("location.search")
    assert "model=llama3-70b" in page.evaluate("location.search")


def test_zero_stages_are_chosen_from_their_table_for_the_pinned_rank(shared_page):
    page = shared_page
    state = State(nodes=4, tp=4, pp=2, view="memory", model=LLAMA, rank="21")
    follow(page, state)
    layout = resolve(state)
    problem = trained_of(layout, state)
    ranks = layout.every["dp-cp"].members(21).tolist()
    stage = 1  # of rank 21 of 32, with 16 ranks a stage
    expect(page.locator("#picture")).to_contain_text(f"Rank 21 (stage {stage}) shares")
    for zero in (3, 2):
        name = MEMORY[f"zero_{zero}"]["en"]
        page.locator(".memory-zero").get_by_role("button", name=name).click()
        expect(box(page, "zero")).to_have_value(str(zero))
        expect(page.locator(".memory-zero tr[aria-current]")).to_contain_text(name)
    for zero in range(4):
        training = replace(problem.training, zero=zero)
        parts = memory_per_stage(problem.model, problem.split, training)[stage].parts
        states = [parts[part] for part in ("weights", "gradients", "optimizer")]
        shown = cells(page, ".memory-zero")[MEMORY[f"zero_{zero}"]["en"]]
        assert shown == [gib(number) for number in (*states, sum(states))]
    shares = page.locator("svg.shards").first.locator("text").all_text_contents()
    assert set(map(str, ranks)) <= set(shares)
    # A rank that there is not is refused, and the rest of the view stays.
    page.evaluate("document.dispatchEvent(new CustomEvent('set', {detail: {of_rank: '99'}}))")
    expect(page.locator(".memory .refusal")).to_have_count(1)
    expect(page.locator(".memory-row")).to_have_count(2)


# --- Traffic, Better layouts, Compare -------------------------------------------------------------

SMALL = State(nodes=2, tp=2, pp=2, layers="32", global_batch="64")


def question(state):
    return trained_of(resolve(state), state)


def test_bytes_of_every_kind_and_pair_are_those_of_the_maths(shared_page):
    page = shared_page
    follow(page, replace(SMALL, view="traffic"))
    box(page, "cluster").select_option("dgx-a100")
    asked, layout = question(replace(SMALL, cluster="dgx-a100")), resolve(SMALL)
    rows = rows_of(layout, asked)
    expect(page.locator(".traffic-job")).to_contain_text(asked.cluster.name)
    kinds = cells(page, ".traffic > .traffic-table")
    assert {*kinds} - {TRAFFIC["sum"]["en"]} == {row.kind for row in rows}
    for kind in {row.kind for row in rows}:
        own = [row for row in rows if row.kind == kind]
        sent, total, across, time = kinds[kind][1:]
        assert total == bytes_text(sum(row.total for row in own))
        assert time == seconds_text(seconds_together(own))
        leaves = sum(row.across for row in own)
        assert across.startswith(bytes_text(leaves) if leaves else TRAFFIC["all_inside"]["en"])
        assert sent == bytes_text(max(map(sum, zip(*(row.by_stage for row in own)))))
    found = matrix(rows, layout.every, layout.mesh, layout.gpus_per_node)
    svg = page.locator("svg.traffic-matrix")
    svg.scroll_into_view_if_needed()
    area, data = svg.bounding_box(), svg.evaluate("svg => ({...svg.dataset})")
    scale = area["width"] / svg.evaluate("svg => svg.viewBox.baseVal.width")
    cell, left, top = (float(data[name]) for name in ("cell", "left", "top"))

    def look():
        for sender, receiver in ((0, 1), (0, 8), (3, 5), (9, 2)):
            page.mouse.move(
                area["x"] + scale * (left + (receiver + 0.5) * cell),
                area["y"] + scale * (top + (sender + 0.5) * cell),
            )
            parts = [
                f"{kind} {bytes_text(number)}"
                for kind, number in zip(found.kinds, found.sent[:, sender, receiver])
                if number
            ]
            said = f"rank {sender} (node {sender // 8}) → rank {receiver} (node {receiver // 8}): "
            told = page.locator(".traffic-told")
            expect(told).to_contain_text(said)
            expect(told).to_contain_text(", ".join(parts) or TRAFFIC["matrix_none"]["en"])

    assert requests_during(page, look) == []
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".picture[data-view=groups]")).to_have_count(1)
    expect(box(page, "rank")).to_have_value("9")  # the sender


def test_a_click_into_a_large_matrix_shows_the_ranks_around_its_sender(shared_page):
    page = shared_page
    follow(page, State(**published("llama3-405b-1")).changed({"view": "traffic"}))
    part = box(page, "traffic_part")
    expect(part).to_have_value("replica")
    part.select_option("all")
    svg = page.locator("svg.traffic-matrix")
    expect(svg).to_have_attribute("data-n", "256")
    svg.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator(".traffic-told")).to_contain_text("ranks 64–95")
    page.keyboard.press("Enter")
    expect(part).to_have_value("replica")
    expect(svg).to_have_attribute("data-n", "128")
    expect(box(page, "rank")).to_have_value("64")


def test_a_better_layout_is_opened_in_one_click_and_compared_with_the_one_before(shared_page):
    page = shared_page
    start = replace(SMALL, view="search", cluster="dgx-a100", rank="3")
    follow(page, start)
    best = search(question(start).job(resolve(start))).best
    split, trained = best[0].request.split, best[0].request.training
    names = page.locator(".search-name")
    expect(names.first).to_contain_text(f"tp{split.tp} cp{split.cp} pp{split.pp}")
    steps = page.locator('.search-table td[data-label^="Step"]').all_inner_texts()
    assert [text.strip().splitlines()[0] for text in steps[:3]] == [
        unparted(about(one)) for one in best[:3]
    ]
    show(page, "compare")
    page.get_by_role("button", name=PAGE["keep"]["en"]).click()
    expect(page.locator("#picture")).to_contain_text(PAGE["compare_same"]["en"])
    kept = box(page, "kept").input_value()
    show(page, "search")
    next_step(page)
    names.first.locator("a").click()
    expect(page.locator("tr.current th")).to_contain_text("1")
    expect(page.locator("tr.current th")).to_contain_text(TRAFFIC["on_screen"]["en"])
    start = replace(start, kept=kept)
    opened = start.changed(
        {
            **{name: getattr(split, name) for name in ("tp", "cp", "pp")},
            "recompute": trained.recompute,
            "micro_batch": "" if trained.micro_batch == 1 else str(trained.micro_batch),
            "vpp": "" if split.vpp == 1 else str(split.vpp),
        }
    )
    # The same view with the same inputs, and a step of its own for the back button.
    expect_address(page, opened)
    expect(box(page, "cluster")).to_have_value("dgx-a100")
    page.go_back()
    settle(page)
    expect_address(page, start)
    page.go_forward()
    settle(page)
    show(page, "compare")
    sides = []
    for state in (start, opened):
        sides.append(cost_of(resolve(state), question(state)))
    expect(page.locator(".costs tbody tr")).to_have_count(len(COSTS))
    assert {name: said[:2] for name, said in cells(page, ".costs").items()} == {
        PAGE[name]["en"]: [side[name][1] for side in sides] for name in COSTS
    }


def test_any_set_of_modules_is_typed_beside_the_choices_and_shown_among_them(shared_page):
    page = shared_page
    modules = "core_attn,mla_up_proj,norms,mlp_act"
    follow(page, State(recompute=modules, view="memory"))
    chosen, typed = box(page, "recompute"), box(page, "recompute_modules")
    expect(chosen).to_have_value(modules)
    expect(typed).to_have_value(modules)
    type_in(page, "recompute_modules", "mlp,moe")
    settle(page)
    expect(chosen).to_have_value("mlp,moe")
    expect_address(page, State(recompute="mlp,moe", view="memory"))
    chosen.select_option("full")
    settle(page)
    expect(typed).to_have_value("")
    expect(chosen.locator("option:not([hidden])")).to_have_count(4)  # and what counts unasked
    type_in(page, "recompute_modules", "mlps")
    settle(page)
    expect(page.locator("#picture .refusal")).to_contain_text("shared_experts")


# --- What all views share -------------------------------------------------------------------------

INPUTS = {
    "collective": "broadcast",
    "collective_shape": "2x2",
    "schedule": "interleaved",
    "micro_batches": "16",
    "model": "mixtral-8x7b",
    "capacity": "64",
    "cluster": "dgx-a100",
    "recompute": "full",
}
"""Inputs of all views; each is there in at least one."""

OF_VIEWS = {
    "collectives": ("collective", "collective_shape"),
    "pipeline": ("schedule", "micro_batches"),
    "memory": ("model", "capacity", "recompute"),
    "traffic": ("model", "cluster", "recompute"),
    "search": ("model", "cluster", "recompute"),
}

JOB = State(nodes=4, tp=4, pp=4, layers="32", experts="8", vpp="4", view="collectives", **INPUTS)

NAMELESS = """() => [
  ...document.querySelectorAll('#picture :is(input, select, button, textarea, a)'),
].filter((one) => {
  const labels = [...(one.labels ?? [])].map((label) => label.textContent);
  const own = one.getAttribute('aria-label') ?? '';
  return !(own + labels.join('') + (one.matches('button, a') ? one.textContent : '')).trim();
}).map((one) => one.outerHTML.slice(0, 100))"""


def expect_inputs(page, view):
    for name in OF_VIEWS[view]:
        expect(box(page, name)).to_have_value(INPUTS[name])


def look_at(page, view, language):
    """Everything opened; what is wrong with its looks and names, by view."""
    show(page, view, language)
    settle(page)
    page.evaluate("document.querySelectorAll('#picture details').forEach(d => { d.open = true; })")
    next_frame(page)
    faint = [one for one in contrasts(page, "#picture") if one[0] < 4.5]
    wider, out = overflow(page)
    return [*faint, *page.evaluate(NAMELESS), *([f"{wider} px wider"] if wider else []), *out]


def test_inputs_of_all_views_survive_a_reload_and_the_way_back(open_page):
    page = open_page()
    follow(page, JOB)
    wrong = {}
    for view in OF_VIEWS:
        wrong[view] = look_at(page, view, "en")
        expect_inputs(page, view)
    assert wrong == {view: [] for view in OF_VIEWS}
    expect_address(page, replace(JOB, view="search"))
    reload(page)
    expect_inputs(page, "search")
    # What is changed in a view is one step; the way back undoes it, and the view is that one.
    show(page, "memory")
    next_step(page)
    type_in(page, "capacity", "192")
    expect(page.locator(".memory-line")).to_contain_text("192")
    next_step(page)
    show(page, "pipeline")
    expect_address(page, replace(JOB, view="pipeline", capacity="192"))
    page.go_back()
    settle(page)
    expect(box(page, "capacity")).to_have_value("192")
    page.go_back()
    settle(page)
    expect_inputs(page, "memory")
    expect(page.locator(".memory-line")).to_contain_text("64")


def test_a_phone_in_the_dark_shows_all_views_in_chinese_with_the_same_inputs(open_page):
    page = open_page(width=400, height=900, touch=True, dark=True)
    follow(page, JOB)
    page.locator(".languages").select_option("zh")
    expect(page.locator(".picture")).to_have_attribute("lang", "zh")
    english = [
        piece.strip(" .,:;()")
        for texts in (PAGE, TRAFFIC, MEMORY)
        for name, text in texts.items()
        if text["en"] != text["zh"] and name != "subtitle_en"
        for piece in re.split(r"\{\w+\}", text["en"])
    ]
    english += [text.help["en"] for text in CONTROLS.values()]
    english += [text.does["en"] for text in OPERATION_TEXTS.values()]
    english = [piece for piece in english if len(piece) > 8 and " " in piece]
    assert len(english) > 200
    wrong = {}
    for view in OF_VIEWS:
        wrong[view] = look_at(page, view, "zh")
        said = page.locator("#page").inner_text().replace("\xa0", " ")
        wrong[view] += [piece for piece in english if piece in said]
        expect_inputs(page, view)
        assert len(re.findall(r"[\u4e00-\u9fff]", said)) > 300
    assert wrong == {view: [] for view in OF_VIEWS}
    expect_address(page, replace(JOB, view="search", lang="zh"))


WHOLE = {
    "search": ".search-why",
    "traffic": ".traffic-matrix",
    "estimate": ".cloud",
    "memory": ".shards",
    "collectives": ".collectives-exchange",
}
"""What of a view says most, and has to be seen without going aside."""


@pytest.mark.parametrize("width", [800, 400])
def test_what_a_view_says_most_is_seen_whole_on_narrow_screens(shared_page, width):
    page = shared_page
    follow(page, State())
    page.set_viewport_size({"width": width, "height": 900})
    cut = []
    for view, part in WHOLE.items():
        show(page, view)
        right = page.locator(part).first.evaluate("one => one.getBoundingClientRect().right")
        if right > width:
            cut.append((view, right))
    page.set_viewport_size({"width": 1400, "height": 900})
    assert cut == []


TABLES = ("nodes", "ranks", "memory", "traffic", "estimate")
"""Views whose tables a phone shows whole."""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_on_a_phone_no_table_goes_aside(shared_page, language):
    page = shared_page
    page.set_viewport_size({"width": 400, "height": 900})
    aside = []
    experts = State(nodes=128, tp=2, pp=4, ep=8, etp="1", model="mixtral-8x7b")
    for state in (State(), experts):
        follow(page, replace(state, lang=language))
        for view in TABLES:
            show(page, view, language)
            every = page.locator("#picture div:has(> table)").evaluate_all(
                """boxes => boxes.filter(box => box.checkVisibility())
                    .map(box => [box.className, box.scrollWidth - box.clientWidth])"""
            )
            assert every
            aside += [(state.nodes, view, *one) for one in every if one[1] > 1]
    page.set_viewport_size({"width": 1400, "height": 900})
    assert aside == []
