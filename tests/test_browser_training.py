"""The Collectives and the Pipeline view in the real page: what people pick, read, step and mend."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from addresses import expect_address, follow
from browser import box, expect, next_frame, pass_time, requests_during, settle, type_in

from descriptions import PAGE
from groups.stages.layout_strings import stage_layers_of_layout
from request.answers.collectives.inputs import resolve_inputs
from request.answers.pipeline.inputs import schedule_of
from request.answers.pipeline.timed import amount, percent
from request.resolve import resolve
from request.state import State
from request.units import ranges_text
from request.words import fix_label, sentence
from training.collectives.algorithms import algorithm_of
from training.collectives.operations import apply
from training.collectives.transfers import loaded, run
from training.pipeline import Durations, figures_of, plan_of, simulate

pytestmark = pytest.mark.browser


def pick(page, name, option):
    """Choose an entry of a view's list, and wait for the answer."""
    box(page, name).select_option(option)
    settle(page)


def slide(page, slider, value):
    """Move a slider of the view, as the arrow keys or the mouse do."""
    page.locator(slider).evaluate(
        "(box, value) => { box.value = value;"
        " box.dispatchEvent(new Event('input', {bubbles: true})); }",
        value,
    )
    next_frame(page)


# --- Collectives ----------------------------------------------------------------------------------

EXCHANGES = """() => [...document.querySelectorAll('.collectives-exchange')].map((svg) => {
  const place = (node, name) => Number(node.getAttribute(name));
  const cells = [...svg.querySelectorAll('text[font-size="12"]')].map((cell) =>
    [place(cell, 'x'), place(cell, 'y'), cell.textContent]);
  return [...svg.querySelectorAll('text[text-anchor=end]')].map((rank) => [
    Number(rank.textContent),
    cells.filter((cell) => Math.abs(cell[1] - place(rank, 'y')) < 3)
      .sort((a, b) => a[0] - b[0]).map((cell) => cell[2]),
  ]);
})"""
"""Of each group that is drawn: each rank with its numbers, those before and then those after."""

SLOTS = """() => {
  const rows = [];
  for (const slot of document.querySelectorAll('.slot')) {
    const [place, at] = slot.dataset.slot.split(',');
    (rows[place] ??= [])[at] = slot.querySelector('text').textContent;
  }
  return rows;
}"""


def counted_up(members, numbers):
    """The tensors that a view starts from: 10 times the place and then on."""
    return [10 * place + np.arange(numbers) for place in range(members)]


def texts(tensors):
    return [[str(number) for number in np.ravel(tensor)] for tensor in tensors]


def expect_exchange(page, ranks, op, before, direction="forward"):
    """The first group drawn is of these ranks, with their numbers before and after."""
    after = apply(op, before, [list(range(len(ranks)))], direction=direction)
    wanted = [[rank, b + a] for rank, b, a in zip(ranks, texts(before), texts(after))]
    settle(page)
    assert page.evaluate(EXCHANGES)[0] == wanted


def test_a_group_of_the_pinned_rank_is_read_before_and_after_and_stepped_through(shared_page):
    page = shared_page
    controls = State(tp=4)
    tp, dp = (resolve(controls).every[kind] for kind in ("tp", "dp"))
    follow(page, replace(controls, view="collectives", rank="6"))
    assert tp.members(6).tolist() == [4, 5, 6, 7]
    expect_exchange(page, [4, 5, 6, 7], "all_reduce", counted_up(4, 4))
    ring = algorithm_of("ring_all_reduce", 4)
    states = [texts(state) for state in run(ring.steps, loaded(ring, counted_up(4, 4)))]
    slider, told = page.locator(".collectives-player input"), page.locator(".collectives-told")
    play = page.locator("[data-play=play]")

    def step_play_and_stop():
        for step, state in enumerate(states):
            assert page.evaluate(SLOTS) == state
            expect(told).to_contain_text(f"Step {step} of 6" if step else "Before the first of 6")
            if step < 6:
                page.locator("[data-play=on]").click()
        expect(page.locator("[data-play=on]")).to_be_disabled()
        page.locator("[data-play=back]").click()
        assert page.evaluate(SLOTS) == states[5]
        slide(page, ".collectives-player input", 0)
        play.click()
        expect(play).to_have_text(PAGE["stop"]["en"])
        expect(slider).not_to_have_value("0")
        play.click()
        expect(play).to_have_text(PAGE["play"]["en"])
        stopped = int(slider.input_value())  # 1, or more on a slow machine
        assert page.evaluate(SLOTS) == states[stopped]
        slide(page, ".collectives-player input", 1)
        assert page.evaluate(SLOTS) == states[1]

    assert requests_during(page, step_play_and_stop) == []
    # Another buffer changes the times that are told, and not where one is.
    type_in(page, "collective_mb", "800")
    expect(told).to_contain_text("Step 1 of 6")
    expect(told).to_contain_text("1.20 GB")
    assert page.evaluate(SLOTS) == states[1]
    pick(page, "collective_group", "dp")
    expect_exchange(page, dp.members(6).tolist(), "all_reduce", counted_up(2, 2))
    type_in(page, "collective_index", "5")
    expect_exchange(page, dp.groups()[5].tolist(), "all_reduce", counted_up(2, 2))
    box(page, "collective_all").check()
    expect(page.locator(".collectives-exchange")).to_have_count(4)
    shown = {tuple(rank for rank, _ in group) for group in page.evaluate(EXCHANGES)}
    assert shown <= {tuple(ranks.tolist()) for ranks in dp.groups()}
    assert len(shown) == 4


def test_gradients_go_back_and_what_cannot_be_is_mended_beside_its_field(shared_page):
    page = shared_page
    gather = "gather_from_tensor_model_parallel_region"
    controls = State(tp=4)
    follow(page, replace(controls, view="collectives"))
    pick(page, "collective", gather)
    expect_exchange(page, [0, 1, 2, 3], gather, counted_up(4, 1))
    pick(page, "collective_direction", "backward")
    expect_exchange(page, [0, 1, 2, 3], gather, counted_up(4, 4), "backward")
    # Some functions have no backward: said, and one click away from one that has.
    pick(page, "collective", "_gather")
    problem = page.locator(".collectives .refusal")
    expect(problem).to_have_count(1)
    problem.locator(".fix").first.click()
    expect(problem).to_have_count(0)
    expect(box(page, "collective_direction")).to_have_value("forward")
    pick(page, "collective", "reduce_scatter")
    type_in(page, "collective_shape", "6")
    typed = {"collective": "reduce_scatter", "collective_direction": "forward"}
    refused = replace(controls, **typed, collective_shape="6")
    (error,) = resolve_inputs(resolve(refused), refused)[2]
    expect(problem.locator("p").first).to_have_text(sentence(error, "en"))
    expect(box(page, "collective_shape")).to_have_attribute("aria-invalid", "true")
    labels = [fix_label(cure, "en") for cure in error.alternatives]
    expect(problem.locator(".fix")).to_have_text(labels)
    # Right below the boxes of the operation, above everything that it makes.
    assert page.locator(".collectives .fields + .refusal").count() == 1
    problem.locator(".fix").first.click()
    expect(problem).to_have_count(0)
    (shape,) = error.alternatives[0].values()
    expect(box(page, "collective_shape")).to_have_value(str(shape))
    expect(box(page, "collective_shape")).not_to_have_attribute("aria-invalid", "true")
    expect_exchange(page, [0, 1, 2, 3], "reduce_scatter", counted_up(4, int(shape)))
    # While the view is drawn anew for what is typed so far, the focus stays in the box.
    box(page, "collective_shape").fill("")
    box(page, "collective_shape").press_sequentially("1")
    pass_time(page, 350)
    expect(problem).to_have_count(1)  # one number does not split over four ranks
    box(page, "collective_shape").press_sequentially("2")
    pass_time(page, 350)
    expect(problem).to_have_count(0)
    expect(box(page, "collective_shape")).to_be_focused()
    expect_exchange(page, [0, 1, 2, 3], "reduce_scatter", counted_up(4, 12))
    expect_address(page, replace(refused, view="collectives", collective_shape="12"))


# --- Pipeline -------------------------------------------------------------------------------------

NAMES = {"F": "forward", "B": "backward", "I": "backward for the input",
         "W": "backward for the weights"}  # fmt: skip


def parts(op):
    """The stage, the kind and the micro-batch of an op, such as 3F5."""
    kind = next(letter for letter in op if letter.isalpha())
    stage, micro_batch = op.split(kind)
    return int(stage), kind, int(micro_batch)


def point_at_op(page, timeline, rank, number, strip=0):
    """Move the mouse to the middle of an op of a rank."""
    svg = page.locator(".pipeline-strip").nth(strip)
    svg.scroll_into_view_if_needed()
    area = svg.bounding_box()
    assert area
    height = float(svg.locator(".pipeline-plot").get_attribute("height"))
    _, start, end = timeline.rows()[rank][number]
    ticks = page.evaluate(STRIPS)[strip]
    share = (start + end) / 2 / (ticks[0] * ticks[1])
    row = height / len(timeline.rows())
    page.mouse.move(area["x"] + share * area["width"], area["y"] + (rank + 0.4) * row)
    next_frame(page)


STRIPS = """() => JSON.parse(document.querySelector('.pipeline-views').dataset.strips)
  .map((strip) => [strip.ticks, strip.tick])"""


def said_of(timeline, rank, number, ranks):
    """What the card must say of an op first, and of the F of the stage before if it waits for it.
    One stage a rank."""
    op, start, end = timeline.rows()[rank][number]
    stage, kind, micro_batch = parts(op)
    words = PAGE["pipeline_card"]["en"].format(
        kind=PAGE["pipeline_kind"]["en"].format(letter=kind, name=NAMES[kind]),
        micro_batch=micro_batch,
        stage=PAGE["pipeline_stage"]["en"].format(stage=stage),
        rank=ranks[rank],
        place=rank,
        start=amount(start),
        end=amount(end),
    )
    if kind != "F" or not rank:
        return words, ""
    (before,) = (row for row in timeline.rows()[rank - 1] if row[0] == f"{stage - 1}F{micro_batch}")
    return words, PAGE["pipeline_card_needs"]["en"].format(
        op=f"F{micro_batch} (stage {stage - 1})", rank=ranks[rank - 1], end=amount(before[2])
    )


def figures(page):
    """The rows of the table of figures by their head."""
    rows = page.locator(".pipeline-figures tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return {row[0]: row[1:] for row in rows}


def expect_pipeline(page, timelines):
    """The table says of every schedule what Python's own simulation comes to."""
    expect(page.locator(".pipeline-strip")).to_have_count(len(timelines))
    settle(page)
    found = [figures_of(one) for one in timelines]
    shown = figures(page)
    assert shown[PAGE["pipeline_makespan"]["en"]] == [amount(one.makespan) for one in found]
    assert shown[PAGE["pipeline_bubble_ideal"]["en"]] == [
        percent(one.bubble_of_ideal) for one in found
    ]


def test_schedules_are_chosen_compared_pointed_at_and_walked_through_in_time(shared_page):
    page = shared_page
    controls = State(pp=4, layers="16")
    follow(page, replace(controls, view="pipeline", rank="6"))
    pick(page, "schedule", "zb-h1")
    type_in(page, "micro_batches", "6")
    split = Durations(1, 2, 1, 1)
    h1 = simulate(plan_of("zb-h1", p=4, m=6), split)
    expect_pipeline(page, [h1])
    # The pipeline of the pinned rank.
    ranks = resolve(controls).every["pp"].members(6).tolist()
    assert ranks == [2, 6, 10, 14]
    expect(page.locator(".pipeline-summary")).to_contain_text(ranges_text(ranks))
    pick(page, "against", "1f1b")
    one = simulate(plan_of("1f1b", p=4, m=6), split)
    expect_pipeline(page, [h1, one])
    card = page.locator(".pipeline-card")

    def look():
        for strip, timeline, rank, number in ((0, h1, 1, 2), (0, h1, 2, 1), (1, one, 2, 5)):
            point_at_op(page, timeline, rank, number, strip)
            said, waits = said_of(timeline, rank, number, ranks)
            expect(card).to_contain_text(said)
            expect(card).to_contain_text(waits)
            stage = parts(timeline.rows()[rank][number][0])[0]
            expect(card).to_contain_text(f"Layers: {4 * stage}–{4 * stage + 3}")
        ticks, tick = page.evaluate(STRIPS)[0]
        at = ticks // 3
        slide(page, ".pipeline-cursor", at)
        now = (at - 0.5) * tick
        running = [
            next((op for op, start, end in row if start <= now < end), None) for row in h1.rows()
        ]
        wanted = ["–" if op is None else "".join(map(str, parts(op)[1:])) for op in running]
        shown = page.locator('.pipeline-labels[data-lane="0"] .pipeline-now')
        expect(shown).to_have_text(wanted)
        page.locator("[data-play=on]").click()
        assert int(page.locator(".pipeline-cursor").input_value()) > at
        page.locator("[data-play=play]").click()
        expect(page.locator("[data-play=play]")).to_have_text(PAGE["stop"]["en"])
        page.locator("[data-play=play]").click()
        expect(page.locator("[data-play=play]")).to_have_text(PAGE["play"]["en"])
        lanes = page.locator(".pipeline-lanes")
        width = lanes.bounding_box()["width"]
        slide(page, ".pipeline-zoom", 2)
        assert lanes.bounding_box()["width"] == pytest.approx(4 * width, rel=0.01)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    assert requests_during(page, look) == []


def test_a_schedule_that_cannot_be_is_mended_in_one_click_and_layers_follow_a_layout(shared_page):
    page = shared_page
    # Other views' inputs stay as they are through every cure.
    controls = State(pp=4, view="pipeline", collective="all_gather")
    follow(page, controls)
    pick(page, "schedule", "dualpipe")
    type_in(page, "micro_batches", "6")
    refusal = page.locator(".pipeline .refusal")
    expect(refusal).to_have_attribute("data-control", "micro_batches")
    expect(page.locator(".pipeline-strip")).to_have_count(0)
    refusal.locator(".fix").first.click()
    expect(refusal).to_have_count(0)
    expect(page.locator(".pipeline-strip")).to_have_count(1)
    m = int(box(page, "micro_batches").input_value())
    mended = controls.changed({"schedule": "dualpipe", "micro_batches": str(m)})
    schedule_of("dualpipe", resolve(mended), mended)  # refuses nothing
    # An odd number of ranks: the column itself is mended, and what was typed stays.
    type_in(page, "nodes", "3")
    type_in(page, "pp", "3")
    expect(refusal).to_have_attribute("data-control", "pp")
    refusal.get_by_role("button", name="pp 2").click()
    expect(refusal).to_have_count(0)
    expect(box(page, "pp")).to_have_value("2")
    expect(box(page, "micro_batches")).to_have_value(str(m))
    expect_address(page, mended.changed({"nodes": 3, "pp": 2}))
    pick(page, "schedule", "1f1b")
    text = "Et*5|t*7L"
    type_in(page, "pipe_layout", text)
    layers = stage_layers_of_layout(text, 12, 2, 1)
    cells = page.locator(".pipeline-layers tbody td")
    expect(cells).to_have_count(2)
    for cell, own, more in zip(cells.all(), layers, ("E", "L")):
        expect(cell).to_contain_text(ranges_text(own))
        expect(cell).to_contain_text(more)
    type_in(page, "pipe_layout", "Et*5|t*7")
    expect(page.locator('.pipeline .refusal[data-control="pipe_layout"]')).to_have_count(1)
    expect(page.locator(".pipeline-strip")).to_have_count(1)


def test_64_stages_of_512_micro_batches_are_drawn_and_told_op_by_op(shared_page):
    page = shared_page
    sizes = {"nodes": 64, "tp": 8, "pp": 64, "layers": "128"}
    controls = State(**sizes, schedule="1f1b", micro_batches="512")
    follow(page, replace(controls, view="pipeline"))
    timeline = simulate(plan_of("1f1b", p=64, m=512), Durations(1, 2, 1, 1))
    expect_pipeline(page, [timeline])
    expect(page.locator(".pipeline-strip image")).to_have_count(1)
    ranks = resolve(controls).every["pp"].members(0).tolist()

    def look():
        slide(page, ".pipeline-zoom", 6)
        page.locator(".pipeline-scroll").evaluate("box => { box.scrollLeft = 0; }")
        for rank, number in ((1, 3), (10, 4)):
            point_at_op(page, timeline, rank, number)
            said, waits = said_of(timeline, rank, number, ranks)
            expect(page.locator(".pipeline-card")).to_contain_text(said)
            expect(page.locator(".pipeline-card")).to_contain_text(waits)
        expect(page.locator(".pipeline-live text").first).to_be_attached()

    assert requests_during(page, look) == []
