"""The first screen: the job as a sentence of controls, four numbers, one picture; its budgets."""

from __future__ import annotations

import pytest
from addresses import follow_link
from browser import (
    box,
    costs_told,
    expect,
    expect_layout,
    job_cell,
    settle,
    show,
    wait_until,
)
from test_browser_access import BRINGS, open_state

from descriptions import JOB, SHELL
from request.context import Context
from request.resolve import resolve
from request.state import State
from views.all import VIEWS
from views.page import answer
from views.parts.numbers import numbers_html, rows_for

pytestmark = pytest.mark.browser

WORDS, CONTROLS, SIZES, FIRST = 120, 25, {"24px", "16px", "14px", "12px"}, 290
"""The most words outside of pictures and things to operate beside the sliders; sizes of type; where
the picture begins at the latest."""

SEEN = r"""() => {
  const language = document.querySelector('.app[data-view]').lang;
  const spots = [[.5, .5], [.1, .5], [.9, .5]];
  const isHit = (one, box) => spots.some(([x, y]) => {
    const at = document.elementFromPoint(box.left + x * box.width, box.top + y * box.height);
    return at && (at === one || one.contains(at));
  });
  const isSeen = (one) => one.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const words = [];
  const sizes = {};
  const read = (one, text) => {
    const parts = new Intl.Segmenter(language, {granularity: 'word'}).segment(text);
    const named = [...parts].filter((one) => one.isWordLike && /\p{L}/u.test(one.segment));
    words.push(...named.map(({segment}) => segment));
    (sizes[getComputedStyle(one).fontSize] ??= []).push(text.trim());
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const one = node.parentElement;
    if (!node.data.trim() || one.closest('svg, option, script, style') || !isSeen(one)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter(({width, height}) => width > 1 && height > 1);
    if (boxes.some((box) => isHit(one, box))) read(one, node.data);
  }
  const isThere = (one) => isSeen(one) && isHit(one, one.getBoundingClientRect());
  for (const one of document.querySelectorAll('select, input[type=text]')) {
    if (isThere(one)) read(one, one.selectedOptions?.[0]?.text ?? one.value);
  }
  const controls = 'button, a[href], input, select, summary, textarea, [tabindex="0"]';
  const there = [...document.querySelectorAll(controls)]
    .filter((one) => !one.closest('svg, .size') && !one.disabled && isThere(one));
  return {
    words, sizes, top: document.querySelector('#picture svg').getBoundingClientRect().top,
    controls: there.map((one) => one.outerHTML.slice(0, 60)),
  };
}"""
"""What is seen in the window, by what lies at its place: words, sizes of type, and what can be
operated beside the sliders with their boxes."""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_screen_keeps_its_budgets(open_page, language):
    page = open_page(width=1400, height=900)
    open_state(page, lang=language)
    costs_told(page)
    page.mouse.move(1, 899)
    page.evaluate("scrollTo(0, 0)")
    seen = page.evaluate(SEEN)
    assert len(seen["words"]) <= WORDS, seen["words"]
    assert len(seen["controls"]) <= CONTROLS, seen["controls"]
    assert {*seen["sizes"]} <= SIZES, seen["sizes"]
    assert seen["top"] <= FIRST


def test_what_is_counted_would_be_seen(shared_page):
    page = shared_page
    open_state(page)
    costs_told(page)
    before = page.evaluate(SEEN)
    page.evaluate(
        "document.querySelector('#notice').innerHTML ="
        " '<p style=\"font-size: 13px\">two words <button>a button</button></p>'"
    )
    after = page.evaluate(SEEN)
    page.evaluate("document.querySelector('#notice').innerHTML = ''")
    # What was there may be pushed out of the window below.
    assert {"two", "words", "button"} <= {*after["words"]} - {*before["words"]}
    assert any("a button" in one for one in after["controls"])
    assert "13px" in after["sizes"]


# -- the sentence ----------------------------------------------------------------------------------


def number(page, field):
    return page.locator(f"#job input[data-field={field}]")


def test_a_number_of_the_sentence_is_typed_pulled_or_moved_by_keys(open_page):
    page = open_page()
    number(page, "tp").click()
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    expect_layout(page, tp=4)
    expect(box(page, "tp")).to_have_value("4")
    page.keyboard.press("ArrowUp")
    expect_layout(page, tp=8)
    page.keyboard.press("ArrowDown")
    expect_layout(page, tp=4)
    area = number(page, "pp").bounding_box()
    x, y = area["x"] + area["width"] / 2, area["y"] + area["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 16, y, steps=4)
    page.mouse.up()
    expect_layout(page, tp=4, pp=4)
    expect(number(page, "pp")).to_have_value("4")
    box(page, "pp").fill("1")
    box(page, "pp").press("Enter")
    expect(number(page, "pp")).to_have_value("1")


def test_the_gpus_of_the_sentence_are_nodes_and_what_cannot_be_is_refused_in_words(open_page):
    page = open_page()
    number(page, "nodes").click()
    page.keyboard.type("2,048")
    page.keyboard.press("Enter")
    expect_layout(page, nodes=256)
    page.keyboard.press("Control+a")
    page.keyboard.type("12")
    page.keyboard.press("Enter")
    expect(page.locator("#status .refusal")).to_be_visible()
    expect(box(page, "nodes")).to_have_value("1.5")
    expect(number(page, "nodes")).to_have_attribute("aria-invalid", "true")


def test_model_machine_and_batch_are_chosen_in_the_sentence(open_page):
    page = open_page()
    page.locator("#job select[data-field=model]").focus()
    page.locator("#job select[data-field=model]").select_option("llama3-70b")
    settle(page)
    expect(box(page, "model")).to_have_value("llama3-70b")
    page.locator("#job select[data-field=cluster]").focus()
    page.locator("#job select[data-field=cluster]").select_option("dgx-a100")
    settle(page)
    number(page, "global_batch").click()
    page.keyboard.type("64")
    page.keyboard.press("Enter")
    settle(page)
    expect(box(page, "global_batch")).to_have_value("64")
    wait_until(page, "() => location.search.includes('cluster=dgx-a100')")
    expect(page.locator("#job .sentence")).to_contain_text("4 replicas share a batch of")
    follow_link(page, "")  # every list shows again what counts where nothing is said
    expect(page.locator("#job select[data-field=cluster]")).to_have_value("dgx-h100")
    expect(box(page, "cluster")).to_have_value("dgx-h100")


# -- the four numbers ------------------------------------------------------------------------------


def told(page):
    costs_told(page)
    return [text.split("\n")[0] for text in page.locator("#numbers button").all_inner_texts()]


def test_the_four_numbers_follow_the_job_and_lead_through_the_page(open_page):
    page = open_page()
    first = told(page)
    assert first[0] == SHELL["number_groups"]["en"].format(count=3)
    box(page, "tp").fill("4")
    box(page, "tp").press("Enter")
    expect_layout(page, tp=4)
    now = told(page)
    assert all(one != other for one, other in zip(first[1:], now[1:], strict=True))
    page.locator("#numbers button").nth(1).click()
    expect(page.locator(".question")).to_have_text(JOB["lens_asks_memory"]["en"])
    expect(page.locator("#numbers [aria-pressed=true]")).to_contain_text("GiB")
    job_cell(page, 5).hover()
    expect(page.locator(".answer")).to_contain_text("GPU 5 needs")
    page.locator("#numbers button").first.click()
    expect(page.locator(".tint")).to_have_count(0)
    show(page, "pipeline")
    assert told(page)[2] in now[2]
    page.locator("#numbers button").nth(3).click()
    expect(page.locator(".picture")).to_have_attribute("data-view", "traffic")
    expect(page.locator("#numbers [aria-current]")).to_contain_text("GB")


def test_a_number_that_is_not_known_says_so_and_servers_have_their_own():
    context = Context.of(State(layers="31", model="llama3-8b"))
    drawn = numbers_html(context, "groups")
    assert SHELL["number_unknown_memory"]["en"] in drawn
    server = State(framework="vllm", pp=1, tp=8, model="llama3-8b")
    own = Context(resolve(server), server)
    assert [view for _, view, _ in rows_for(own)] == ["groups", "memory", "estimate", "nodes"]
    assert "tokens" in numbers_html(own, "memory")


# -- the chosen GPU --------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
def test_the_chosen_gpu_means_something_in_each_view_that_asks_for_it(view):
    """GPU 1 and GPU 10 are in no group of one kind but the expert ones."""
    brought = {"view": view, **BRINGS.get(view, {})}
    one, other = (answer(State(rank=rank, **brought)).picture for rank in ("1", "10"))
    assert (one != other) == VIEWS[view].of_gpu


def test_a_view_without_a_chosen_gpu_does_not_ask_for_one_and_memory_opens_its_stage(open_page):
    page = open_page()
    show(page, "hang")
    expect(page.locator("#field-rank")).to_have_count(0)
    show(page, "memory")
    expect(page.locator(".memory-formula h4")).to_contain_text("Stage 0")
    box(page, "rank").fill("9")
    box(page, "rank").press("Enter")
    expect(page.locator(".memory-formula h4")).to_contain_text("Stage 1")
    expect(page.locator("#field-of_rank")).to_have_count(0)


OVER_THEIR_BORDER = """() =>
[...document.querySelectorAll('#numbers .figure')].flatMap((figure) => {
  const { right } = figure.getBoundingClientRect();
  const texts = document.createRange();
  texts.selectNodeContents(figure);
  return texts.getBoundingClientRect().right > right - 4 ? [figure.textContent] : [];
})"""


@pytest.mark.parametrize("preset", ["", "llama3-405b-1", "serve-deepseek-v3-decode"])
def test_no_number_runs_over_its_border_at_any_width(shared_page, preset):
    """What the source measured stands beside the step: the longest of them."""
    page = shared_page
    open_state(page, **({"preset": preset} if preset else {}))
    costs_told(page)
    for width in (1000, 1024, 1180, 1239, 1240, 1280, 1366, 1400, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(OVER_THEIR_BORDER) == [], width
    page.set_viewport_size({"width": 1400, "height": 900})


# -- below the picture -----------------------------------------------------------------------------

BELOW = """() => Object.fromEntries(
  ['.film-track', '.hero .card', '.kinds', '.kind figure', '#whole'].map((name) => {
    const {top, bottom} = document.querySelector(name).getBoundingClientRect();
    return [name, {top: Math.round(top), bottom: Math.round(bottom)}];
  }))"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_panels_pictures_are_on_the_first_screen_and_a_gpu_is_told_of_in_between(
    open_page, language
):
    page = open_page(width=1400, height=900)
    open_state(page, lang=language)
    costs_told(page)
    at = page.evaluate(BELOW)
    assert 0 < at[".hero .card"]["top"] - at[".film-track"]["bottom"] < 24
    assert at[".kinds"]["top"] - at[".film-track"]["bottom"] < 160
    assert at[".kind figure"]["top"] < 840
    expect(page.locator(".hero .hint")).to_be_visible()
    expect(page.locator(".hero .told .gpu b")).to_be_hidden()
    job_cell(page, 5).hover()
    expect(page.locator(".hero .told .gpu b")).to_be_visible()
    expect(page.locator(".hero .hint")).to_be_hidden()
    assert page.evaluate(BELOW) == at


def test_a_step_that_is_played_says_what_happens_where_the_card_stood(open_page):
    page = open_page(width=1400, height=900)
    open_state(page, rank="5")
    costs_told(page)
    at = page.evaluate(BELOW)
    expect(page.locator(".hero .told .gpu b")).to_be_visible()
    slider = page.locator(".film input")
    slider.evaluate(
        "one => { one.value = 300; one.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    expect(page.locator(".film-says")).not_to_be_empty()
    expect(page.locator(".film-says")).to_be_visible()
    expect(page.locator(".hero .told .gpu b")).to_be_hidden()
    assert page.evaluate(BELOW) == at


def test_a_frame_of_another_page_has_no_room_without_content(open_page, server):
    page = open_page(width=800, height=900)
    page.goto(f"{server}?v=2&embed=1")
    expect(page.locator(".hero .told .gpu b")).to_have_text("GPU 0")
    expect(page.locator(".hero .told .gpu b")).to_be_visible()
    wait_until(page, "() => /of 80\\sGiB/.test(document.querySelector('.costs').textContent)")
    at = page.evaluate(BELOW)
    assert 0 < at[".hero .card"]["top"] - at[".film-track"]["bottom"] < 30
    assert 0 < at["#whole"]["top"] - at[".hero .card"]["bottom"] < 30
    told = page.locator(".hero .costs").evaluate(
        "one => one.closest('.card').getBoundingClientRect().bottom"
        " - one.lastElementChild.getBoundingClientRect().bottom"
    )
    assert told < 40
