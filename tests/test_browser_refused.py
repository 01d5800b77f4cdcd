"""What the page tells where the server takes no question: it never freezes, never asks in vain, and
loses nothing."""

from __future__ import annotations

import json
import re

import pytest
from addresses import follow_link
from browser import WATCHES, box, expect, expect_layout, pass_time, settle, write
from test_browser_history import SET, served_problems
from test_browser_run import files_of

from descriptions import RUN, SHELL
from diagnosis.hang.steps import share_command
from groups.layout import Job
from views.page import ADDRESSES
from views.server.bodies import LARGEST_BODY

pytestmark = pytest.mark.browser

QUESTIONS = re.compile("component_server|run/predict")
LIMIT = f"{LARGEST_BODY - ADDRESSES:,}"
ASIDE = re.compile('"fn_name":"(lens|wait)"')
"""Questions beside that of a picture: once it stands, and how long it will take."""
AGAIN = 1500
"""Milliseconds after which a question without an answer is asked again (state.js)."""


AROUND = 100
"""Bytes by which what Gradio puts around an event's values may differ from what is expected."""

LATE = 2000
"""Milliseconds after which a page asks how long it will be (ask.js)."""


class Refusing:
    """In the way of a page's questions: counts them, and refuses as many as it is told to."""

    def __init__(self, page, status: int, times: int = 10**9, path: re.Pattern = QUESTIONS) -> None:
        self.page, self.status, self.times, self.path = page, status, times, path
        self.asked: list[str] = []
        page.route(path, self._take)

    def _take(self, route) -> None:
        if ASIDE.search(said := route.request.post_data or ""):
            return route.continue_()
        self.asked.append(said)
        if len(self.asked) > self.times:
            return route.continue_()
        return route.fulfill(status=self.status, json={"detail": "no"})

    def end(self) -> None:
        self.page.unroute(self.path)
        served_problems(self.page)  # Chromium says itself that requests failed


@pytest.mark.parametrize(
    ("status", "name"),
    [(400, "unread"), (422, "unread"), (408, "slow"), (403, "refused"), (418, "refused")],
)
def test_a_refusal_is_told_as_what_it_is_and_not_asked_again(open_page, status, name):
    page = open_page()
    refusing = Refusing(page, status)
    page.evaluate(SET, {"tp": "4"})
    expect(page.locator("#hint")).to_have_text(SHELL[name]["en"].format(status=status))
    for _ in range(3):
        pass_time(page, AGAIN)
    assert len(refusing.asked) == 1
    expect(box(page, "tp")).to_have_value("4")
    page.evaluate(SET, {"lang": "zh"})
    expect(page.locator("#hint")).to_have_text(SHELL[name]["zh"].format(status=status))
    assert len(refusing.asked) == 2
    refusing.end()
    page.evaluate(SET, {"pp": "4", "lang": "en"})
    expect_layout(page, tp=4, pp=4)  # what was refused is not lost
    expect(page.locator("#hint")).to_have_text("")


def test_who_waits_is_told_for_how_long(open_page):
    page, held = open_page(), []

    def answer(route):
        if '"fn_name":"wait"' in (said := route.request.post_data):
            return route.fulfill(json=json.dumps({"seconds": 7}))
        return route.continue_() if "fn_name" in said else held.append(route)

    page.route(QUESTIONS, answer)
    page.evaluate(SET, {"tp": "4"})
    page.evaluate("(time) => pass(time)", LATE)
    expect(page.locator("#hint")).to_have_text(SHELL["ahead"]["en"].format(seconds=7))
    (question,) = held
    question.continue_()
    expect_layout(page, tp=4)
    expect(page.locator("#hint")).to_have_text("")
    page.unroute(QUESTIONS)
    pass_time(page, 2 * LATE)
    expect(page.locator("#hint")).to_have_text("")


OUTPUTS = "gradio_config.dependencies.find((one) => one.inputs.length > 5).outputs.length - 1"
"""What the page's event draws, before what is told beside it."""


def test_a_busy_server_says_for_how_many_seconds(open_page):
    page = open_page()
    nothing = [{"__type__": "update"}] * page.evaluate(OUTPUTS)
    page.route(QUESTIONS, lambda route: route.fulfill(json={"data": [*nothing, {"busy": 9}]}))
    page.evaluate(SET, {"tp": "4"})
    expect(page.locator("#status")).to_contain_text(SHELL["busy_for"]["en"].format(seconds=9))
    page.unroute(QUESTIONS)
    pass_time(page, AGAIN)
    expect_layout(page, tp=4)


def test_what_may_pass_is_asked_again(open_page):
    page = open_page()
    refusing = Refusing(page, 503, times=1)
    page.evaluate(SET, {"tp": "4"})
    expect(page.locator("#status")).to_contain_text(SHELL["busy"]["en"])
    pass_time(page, AGAIN)
    expect_layout(page, tp=4)
    assert len(refusing.asked) == 2
    refusing.end()


def test_half_a_character_that_is_pasted_is_sent_as_none(open_page):
    page = open_page()
    follow_link(page, "v=2&show=launch")
    bodies = Refusing(page, 0, times=0)
    page.evaluate(f"({SET})({{paste: '--tensor-model-parallel-size 4 # \\ud800'}})")
    settle(page)
    expect(page.locator("#hint")).to_have_text("")
    assert "\\ufffd" in ascii(json.loads(bodies.asked[-1])["data"][-1]["paste"])
    bodies.end()
    expect(page.locator("#picture")).to_contain_text("tp4 · dp2")


TEXTS = {
    "plain": "n",
    "Chinese": "节",
    "quotes": '"',
    "lines": 40 * "n" + "\n",  # a box of lines alone takes seconds to lay out
    "control characters": "\x01",
    "faces": "\U0001f600",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts_are_counted_as_the_server_counts_them(open_page, text):
    page = open_page()
    follow_link(page, "v=2&show=hosts")
    each = len(json.dumps(text, ensure_ascii=False).encode()) - 2
    fits = (LARGEST_BODY - 2 * ADDRESSES) // each
    questions = Refusing(page, 0, times=0)
    page.evaluate(SET, {"hosts": text * fits})
    settle(page)
    expect(page.locator("#hint")).to_have_text("")
    (sent,) = questions.asked
    assert LARGEST_BODY - 3 * ADDRESSES < len(sent.encode()) <= LARGEST_BODY - ADDRESSES
    page.evaluate(SET, {"hosts": text * (fits + 2 * ADDRESSES // each)})
    hint = page.locator("#hint")
    expect(hint).to_contain_text(f"bytes of at most {LIMIT}")
    size = int(hint.inner_text().split(" bytes")[0].split()[-1].replace(",", ""))
    assert size == pytest.approx(len(sent.encode()) + 2 * ADDRESSES, abs=2 * each + AROUND)
    assert len(questions.asked) == 1
    questions.end()


def test_a_question_that_is_too_long_after_all_is_told_with_its_size(open_page):
    page = open_page()
    refusing = Refusing(page, 413)
    page.evaluate(SET, {"tp": "4", "lang": "zh"})
    expect(page.locator("#hint")).to_contain_text(LIMIT)
    (sent,) = refusing.asked
    wanted = SHELL["long"]["zh"].format(size=f"{len(sent.encode()):,}", limit=LIMIT)
    expect(page.locator("#hint")).to_have_text(wanted)
    refusing.end()


def test_a_page_of_a_server_that_was_started_anew_is_loaded_again_and_nothing_is_lost(open_page):
    page = open_page()
    follow_link(page, "v=2&show=hosts&tp=4")
    write(page, "hosts", "gpu-00\ngpu-01")
    settle(page)
    Refusing(page, 404, times=1)
    box(page, "racks").fill("gpu-00 a")  # not told yet
    with page.expect_navigation(wait_until="commit"):
        page.evaluate(SET, {"pp": "4"})
    page.wait_for_selector("#picture .picture")
    settle(page)
    expect_layout_of_hosts(page)
    served_problems(page)


def expect_layout_of_hosts(page) -> None:
    expect(page.locator(".picture[data-view=hosts]")).to_be_visible()
    expect(box(page, "hosts")).to_have_value("gpu-00\ngpu-01")
    expect(box(page, "racks")).to_have_value("gpu-00 a")
    expect(box(page, "tp")).to_have_value("4")
    expect(box(page, "pp")).to_have_value("4")
    expect(page.locator("#hint")).to_have_text("")
    assert page.evaluate("sessionStorage.length") == 0


def test_a_server_that_never_knows_the_page_makes_it_load_once_only(open_page, server):
    page = open_page()
    refusing = Refusing(page, 404)
    WATCHES[page].forget()
    page.evaluate(SET, {"tp": "4"})
    expect(page.locator("#notice")).to_contain_text("HTTP 404")
    pass_time(page, AGAIN)
    loaded = [one for one in WATCHES[page].requests if one.split("?")[0] == server]
    assert len(loaded) == 1
    assert len(refusing.asked) <= 3  # before, after, and for the start
    assert page.locator(".app.waiting").count() == 0
    # Whether "working it out" stood there or not.
    expect(page.locator("#picture .picture[data-mesh]")).to_have_count(1)
    refusing.end()
    page.evaluate("sessionStorage.clear()")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_first_question_that_is_refused_leaves_a_page_that_works(open_page, server, language):
    page = open_page()
    refusing = Refusing(page, 403, times=1)
    page.goto(f"{server}?v=2&tp=4&lang={language}", wait_until="commit")
    expect(page.locator("#notice")).to_have_text(SHELL["refused"][language].format(status=403))
    expect(page.locator("#picture .picture")).to_be_visible()
    settle(page)
    page.evaluate(SET, {"pp": "4", "lang": "en"})
    expect_layout(page, pp=4)
    assert len(refusing.asked) == 3
    refusing.end()


def test_a_file_that_is_refused_says_why(open_page):
    page = open_page()
    refusing = Refusing(page, 413)
    page.evaluate("document.querySelector('[data-save=csv]').click()")
    expect(page.locator("#hint")).to_contain_text(f"bytes of at most {LIMIT}")
    assert len(refusing.asked) == 1
    refusing.end()


@pytest.mark.parametrize(
    ("status", "name"), [(413, "large"), (408, "slow"), (503, "busy"), (400, "failed")]
)
def test_files_of_a_hang_that_are_refused_say_why(open_page, status, name):
    page = open_page()
    follow_link(page, "v=2&show=hang")
    settle(page)
    refusing = Refusing(page, status, path=re.compile("evidence"))
    page.set_input_files("#hang-files", files_of("a_missing_rank2"))
    command = share_command(Job(nodes=2, tp=2, pp=2), "FOLDER")  # which reads as much as it likes
    wanted = RUN[f"files_{name}"]["en"].format(command=command).replace("{seconds}", "10")
    expect(page.locator(".files strong")).to_have_text(wanted)
    refusing.end()
