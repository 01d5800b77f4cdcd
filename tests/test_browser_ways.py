"""Ways into the page: a tour of seven steps, six stories, a script or evidence that is pasted."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from addresses import expect_address, follow_link
from browser import box, expect, pass_time, settle, show, wait_until
from markup import select, written

from descriptions import ENTRIES, RUN, STORIES, tour
from request.answers.traffic import rows_of
from request.context import Context
from request.link import from_query, state_texts, to_query
from request.state import State
from views.base.html import unparted
from views.groups.film import film
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
def test_the_tour_comes_with_the_page_one_step_marked_and_nothing_does_off_it(language):
    for number in range(len(TOUR)):
        drawn = tour_html(State(tour=str(number), lang=language))
        items = select(drawn, "li")
        assert [written(item) for item in items] == [
            written(f"<p>{unparted(step.text[language])}</p>") for step in TOUR
        ]
        marked = [at for at, item in enumerate(items) if "aria-current" in item.attributes]
        assert marked == [number]
        assert drawn.count(" disabled") == (number in (0, len(TOUR) - 1))
    for off in ("", "7", "-1", "x", "1.0", None, 2.0, ["1"]):
        assert tour_html(State(tour=off, lang=language)) == ""
    assert "tour" not in to_query(State(tour="3", tp=4))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tour_stays_on_one_picture_and_its_numbers_are_those_of_the_page(language):
    shown = [Context.of(from_query(step.query)) for step in TOUR]
    texts = [step.text[language] for step in TOUR]
    assert {context.state.view for context in shown} == {"groups"}
    assert shown[0].layout.mesh.size("dp") == shown[0].layout.world_size == 16
    needs = shown[1].trained.estimate(shown[1].layout)
    assert not needs.fits
    assert f"{needs.fit.needed / 2**30:.0f} GiB" in texts[1]
    assert f"dp {shown[2].layout.mesh.size('dp')}" in texts[2]
    every = shown[6].layout.every
    assert every["tp"].members(5).tolist() == [4, 5]
    assert every["pp"].members(5).tolist() == [5, 13]
    assert every["dp"].members(5).tolist() == [1, 3, 5, 7]
    found = json.loads(film(json.dumps(state_texts(from_query(TOUR[3].query)))))
    assert found["message"].replace("\u00a0", " ") in texts[3]
    waits = found["busy"][1].count(" ") / len(found["busy"][1])
    assert f"{100 * waits:.0f}%" in texts[4]
    rows = rows_of(shown[6].layout, shown[6].trained)
    for kind, digits in (("tp", 1), ("pp", 2)):
        sent = sum(row.by_stage[0] for row in rows if row.kind == kind)  # GPU 5's stage
        assert f"{sent / 1e9:.{digits}f} GB" in texts[6]
    cluster = shown[6].trained.cluster
    assert cluster.nvlink == 9 * cluster.nic


def test_the_tour_keeps_model_and_batch():
    shown = [Context.of(from_query(step.query)) for step in TOUR]
    batches = {context.trained.batch.global_batch for context in shown}
    models = {context.trained.chosen for context in shown}
    assert (len(batches), len(models)) == (1, 1)


def open_start(page):
    page.evaluate("document.dispatchEvent(new CustomEvent('open', {detail: {query: ''}}))")
    settle(page)


@pytest.mark.browser
def test_the_tour_opens_when_asked_and_leads_back_to_where_it_was_opened(shared_page):
    page = shared_page
    open_start(page)
    follow_link(page, "v=2&nodes=4&tp=4&show=memory")
    tour = page.locator("#tour")
    current = tour.locator("[aria-current] p")
    expect(tour).to_be_hidden()
    page.locator("#toolbar .menu > summary").click()
    page.get_by_role("button", name=ENTRIES["tour"]["en"]).click()
    for number, step in enumerate(TOUR):
        expect(current).to_have_text(step.text["en"])
        expect(tour.locator("small")).to_have_text(f"{number + 1} of {len(TOUR)}")
        wait_until(page, "query => location.search === '?' + query", step.query)
        expect(page.locator(".picture")).to_have_attribute("data-view", "groups")
        expect(tour.locator("button:focus")).to_have_count(1)
        next_step = tour.get_by_role("button", name="Next")
        if number < len(TOUR) - 1:
            next_step.click()
    expect(next_step).to_be_disabled()
    back = tour.get_by_role("button", name="Back")
    expect(back).to_be_focused()  # the other can do no more
    back.click()
    expect(tour.locator("small")).to_have_text("6 of 7")
    expect(page.locator(".film-says")).to_contain_text("averages gradients with GPUs 1, 3 and 7")
    tour.get_by_role("button", name="Leave").click()
    expect(tour).to_be_hidden()
    expect(page.locator("#main")).to_be_focused()  # in this view there is no way back to it
    expect_address(page, State(nodes=4, tp=4, view="memory"))
    settle(page)
    page.reload()
    page.wait_for_selector(".picture")
    expect(tour).to_be_hidden()


@pytest.mark.browser
def test_scrolling_through_the_tour_changes_the_picture_beside_it_which_stays(shared_page):
    page = shared_page
    open_start(page)
    page.locator("#toolbar .menu > summary").click()
    page.get_by_role("button", name=ENTRIES["tour"]["en"]).click()
    settle(page)
    place = page.locator("#picture").bounding_box()
    for number in (2, 4, 6, 0):
        page.evaluate(
            """(number) => {
              const list = document.querySelector('#tour ol');
              list.scrollTop = list.children[number].offsetTop - list.offsetTop - 40;
            }""",
            number,
        )
        wait_until(page, "query => location.search === '?' + query", TOUR[number].query)
        settle(page)
        expect(page.locator("#tour small")).to_have_text(f"{number + 1} of {len(TOUR)}")
        assert page.locator("#picture").bounding_box()["x"] == place["x"]
    page.locator("#tour-leave").click()
    settle(page)


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
