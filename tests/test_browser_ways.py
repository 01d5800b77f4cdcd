"""Ways into the page: a tour of seven steps, six stories, a script or evidence that is pasted."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from browser import box, expect, pass_time, settle, show, wait_until

from descriptions import ENTRIES, RUN, STORIES, tour
from request.answers.compare.sides import comparison_of
from request.answers.traffic import rows_of
from request.context import Context
from request.link import from_query, to_query
from request.state import State
from views.base.html import unparted
from views.page import answer
from views.parts.examples import BRINGS, EVIDENCE, LINKS
from views.stories import tour_html

TOUR = tour()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_story_and_step_is_a_state_that_the_page_shows_whole(language):
    links = {name: LINKS[name] for name in STORIES}
    links |= {f"step {number}": step.query for number, step in enumerate(TOUR)}
    wrong = []
    for name, query in links.items():
        shown = answer(replace(from_query(query), lang=language, **BRINGS.get(name, {})))
        if shown.picture is None or 'class="refusal' in shown.picture or shown.status:
            wrong.append(name)
    assert wrong == []
    assert (len(STORIES), len(TOUR)) == (6, 7)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_step_of_the_tour_comes_with_the_page_and_nothing_does_off_it(language):
    for number, step in enumerate(TOUR):
        drawn = tour_html(State(tour=str(number), lang=language))
        assert unparted(step.text[language]) in drawn
        assert drawn.count(" disabled") == (number in (0, len(TOUR) - 1))
    for off in ("", "7", "-1", "x", "1.0", None, 2.0, ["1"]):
        assert tour_html(State(tour=off, lang=language)) == ""
    assert "tour" not in to_query(State(tour="3", tp=4))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tour_ends_with_the_proof_and_its_numbers_are_those_of_the_page(language):
    shown = [Context.of(from_query(step.query)) for step in TOUR]
    texts = [step.text[language] for step in TOUR]
    assert "DDP" in texts[0]
    assert shown[0].layout.mesh.size("dp") == shown[0].layout.world_size
    needs = shown[1].trained.estimate(shown[1].layout)
    assert not needs.fits
    assert f"{needs.fit.needed / 2**30:.0f} GiB" in texts[1]
    rows = rows_of(shown[5].layout, shown[5].trained)
    for kind, digits in (("tp", 1), ("pp", 2)):
        sent = max(map(sum, zip(*(row.by_stage for row in rows if row.kind == kind))))
        assert f"{sent / 1e9:.{digits}f} GB" in texts[5]
    cluster = shown[5].trained.cluster
    assert cluster.nvlink == 9 * cluster.nic
    proof = shown[6].once(comparison_of)
    assert [side.layout.mesh.size("tp") for side in proof.sides] == [8, 16]
    for side in proof.sides:
        assert f"{side.estimate.seconds:.1f} s" in texts[6]
    assert (proof.verdict.better, proof.verdict.by) == (0, "time")


def test_the_tour_changes_model_and_batch_only_where_it_says_so():
    shown = [Context.of(from_query(step.query)) for step in TOUR]
    batches = {context.trained.batch.global_batch for context in shown[:-1]}
    models = {context.trained.chosen for context in shown[:-1]}
    assert (len(batches), len(models)) == (1, 1)
    last = shown[-1].trained
    for text in TOUR[-1].text.en, TOUR[-1].text.zh:
        assert str(last.batch.global_batch) in text
        assert last.name("en") in text


def open_start(page):
    page.evaluate("document.dispatchEvent(new CustomEvent('open', {detail: {query: ''}}))")
    settle(page)


@pytest.mark.browser
def test_the_tour_opens_when_asked_and_is_left_at_any_step(shared_page):
    page = shared_page
    open_start(page)
    tour = page.locator("#tour")
    expect(tour).to_be_hidden()
    page.locator("#toolbar .menu > summary").click()
    page.get_by_role("button", name=ENTRIES["tour"]["en"]).click()
    for number, step in enumerate(TOUR):
        expect(tour.locator("p")).to_have_text(step.text["en"])
        expect(tour.locator("small")).to_have_text(f"{number + 1} of {len(TOUR)}")
        wanted = from_query(step.query)
        wait_until(page, "query => location.search === '?' + query", step.query)
        expect(page.locator(".picture")).to_have_attribute("data-view", wanted.view)
        expect(tour.locator("button:focus")).to_have_count(1)
        next_step = tour.get_by_role("button", name="Next")
        if number < len(TOUR) - 1:
            next_step.click()
    expect(next_step).to_be_disabled()
    back = tour.get_by_role("button", name="Back")
    expect(back).to_be_focused()  # the other can do no more
    back.click()
    expect(tour.locator("small")).to_have_text("6 of 7")
    expect(back).to_be_focused()
    tour.get_by_role("button", name="Leave").click()
    expect(tour).to_be_hidden()
    expect(page.locator("#main")).to_be_focused()  # in this view there is no way back to it
    settle(page)
    page.reload()
    page.wait_for_selector(".picture")
    expect(tour).to_be_hidden()


@pytest.mark.browser
@pytest.mark.parametrize("entry", ["hang", "launch"])
def test_an_engineer_comes_to_an_answer_with_one_click_and_one_paste(shared_page, entry):
    page = shared_page
    open_start(page)
    if entry == "launch":
        page.locator("#head .paste").click()
    else:
        show(page, "hang")
        box(page, "evidence").focus()
    field, text, said = {
        "hang": ("evidence", EVIDENCE, "GPU 5"),
        "launch": (
            "paste",
            "torchrun --nnodes 4 train.py --tensor-model-parallel-size 8",
            "32 GPUs, 4 × 8: tp8 · dp4",
        ),
    }[entry]
    expect(box(page, field)).to_be_focused()
    page.keyboard.insert_text(text)
    pass_time(page, 350)
    found = page.locator("#picture").get_by_text(said).first
    found.wait_for()
    area = found.bounding_box()
    assert area
    assert area["y"] + area["height"] < page.viewport_size["height"]


@pytest.mark.browser
def test_the_examples_are_links_that_bring_what_no_link_holds(shared_page):
    page = shared_page
    open_start(page)
    menu = page.locator("#toolbar .menu")
    for name in ("hang", "rack"):
        menu.locator("summary").click()
        link = menu.get_by_role("link", name=STORIES[name]["en"])
        assert urlsplit(link.get_attribute("href")).query == LINKS[name]
        link.click()
        settle(page)
        expect(page.locator(".picture")).to_have_attribute(
            "data-view", name if name == "hang" else "hosts"
        )
        for field, text in BRINGS[name].items():
            expect(box(page, field)).to_have_value(text)
        assert menu.get_attribute("open") is None
    expect(page.locator("#picture")).to_contain_text(RUN["order_title"]["en"])
