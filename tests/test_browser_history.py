"""The way back and forth, on a server that is slow, and one that is away for a while."""

from __future__ import annotations

import random
import re
import time

import pytest
from browser import expect, expect_layout, expect_refusal, pass_time, settle
from seen import seen

from descriptions import SHELL, TRAFFIC
from request.state import State
from views import page as served

pytestmark = pytest.mark.browser

SET = "changes => document.dispatchEvent(new CustomEvent('set', { detail: changes }))"
SIZES = ((1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 2), (4, 2), (8, 2), (1, 4), (2, 4))


def take_steps(page, steps=SIZES) -> None:
    """Quick changes, each a step of its own: a link in the page is one, however quick."""
    page.evaluate(
        """async (queries) => {
          for (const query of queries) {
            document.dispatchEvent(new CustomEvent('open', { detail: { query } }));
            await new Promise((then) => setTimeout(then, 7));
          }
        }""",
        [f"v=2&tp={tp}&pp={pp}" for tp, pp in steps],
    )


def go(page, *walk: tuple[int, int]) -> None:
    """Steps back and forth, each followed by a pause of so many milliseconds.

    None waits for the server; but for the browser to have taken the one before, which may lose it
    otherwise.
    """
    page.evaluate(
        """async (walk) => {
          const wait = (time) => new Promise((then) => setTimeout(then, time));
          for (const [step, pause] of walk) {
            const taken = new Promise((then) => addEventListener('popstate', then, { once: true }));
            history.go(step);
            await Promise.race([taken, wait(5000)]);
            await wait(pause);
          }
        }""",
        walk,
    )


NOW = """() => [
  document.querySelector('#field-tp').value,
  new URLSearchParams(location.search).toString(),
  document.querySelectorAll('#notice .refusal').length,
]"""


def expect_step(page, number: int) -> None:
    """The layout, the boxes and the address are those of one step."""
    tp, pp = SIZES[number]
    settle(page)
    expect_layout(page, tp=tp, pp=pp)
    # Both sizes are 2 as the page starts, and what is as at the start is in no link.
    wanted = "&".join(f"{name}={size}" for name, size in (("tp", tp), ("pp", pp)) if size != 2)
    assert page.evaluate(NOW) == [str(tp), f"v=2&{wanted}" if wanted else "", 0]


@pytest.fixture
def slow(monkeypatch):
    """A server that takes so many seconds for each drawing."""
    took = [0.3]
    answer = served.answer

    def slow_answer(*given, **more):
        time.sleep(took[0])
        return answer(*given, **more)

    monkeypatch.setattr(served, "answer", slow_answer)
    return took


@pytest.mark.parametrize(("steps", "pause"), [(5, 20), (2, 240)])
def test_quick_steps_back_and_forth_end_where_they_lead(open_page, slow, steps, pause):
    page = open_page()
    take_steps(page)
    go(page, *[(-1, pause)] * steps)
    expect_step(page, len(SIZES) - 1 - steps)
    go(page, *[(1, pause)] * steps)
    expect_step(page, len(SIZES) - 1)


def test_twenty_walks_by_chance_end_on_their_own_layouts(open_page, slow):
    slow[0] = 0.04
    page = open_page()
    take_steps(page)
    chance, at = random.Random(7), len(SIZES) - 1
    for _ in range(20):
        walk = []
        for _ in range(chance.randint(1, 6)):
            step = chance.choice([one for one in (-3, -2, -1, 1, 2) if 0 <= at + one < len(SIZES)])
            walk.append((step, chance.choice([0, 10, 30, 90])))
            at += step
        go(page, *walk)
        expect_step(page, at)


def test_a_change_counts_above_a_link_that_is_not_read_yet_and_is_a_step_of_its_own(
    open_page, slow
):
    page = open_page()
    slow[0] = 0.9  # the link is not read before the change, however busy the machine is
    page.locator("#field-pp").fill("8")  # not told yet, and of the state before
    take_steps(page, SIZES[:2])
    page.evaluate(SET, {"pp": "4"})
    slow[0] = 0
    expect_step(page, SIZES.index((2, 4)))
    go(page, (-1, 0))
    expect_step(page, 1)
    go(page, (-1, 0))
    expect_step(page, 0)
    go(page, (2, 0))
    expect_step(page, SIZES.index((2, 4)))


def test_a_change_made_while_a_link_is_being_read_is_kept(open_page, slow):
    page = open_page()
    slow[0] = 0.9
    take_steps(page, SIZES[:1])  # is asked about at once, without the change
    page.evaluate(SET, {"pp": "4"})
    slow[0] = 0
    expect_step(page, SIZES.index((1, 4)))


def test_a_link_that_takes_long_says_that_it_is_worked_out_where_its_title_will_stand(
    open_page, slow, server
):
    page = open_page()
    slow[0] = 2
    page.goto(f"{server}?v=2&show=search&tp=4", wait_until="commit")
    working, title = page.locator(".working h2"), page.locator(".picture .intro h2")
    expect(working).to_have_text(SHELL["working"]["en"])
    expect(page.locator("#main > .bar")).to_have_css("opacity", "0")
    before = working.bounding_box()
    expect(title).to_have_text(TRAFFIC["search_title"]["en"])
    after = title.bounding_box()
    assert (before["x"], before["y"]) == pytest.approx((after["x"], after["y"]), abs=2)
    page.goto(f"{server}?v=2&tp=3", wait_until="commit")  # that cannot be
    expect(working).to_have_text(SHELL["working"]["en"])
    expect_refusal(page, State(tp=3), still=seen(State()))


def test_a_change_made_while_the_server_is_away_is_kept_and_sent_when_it_is_back(open_page):
    page = open_page()
    page.route(re.compile("component_server|run/predict"), lambda route: route.abort())
    page.evaluate(SET, {"tp": "4"})
    expect(page.locator("#hint")).to_contain_text("kept")
    page.evaluate(SET, {"pp": "4"})
    page.unroute(re.compile("component_server|run/predict"))
    pass_time(page, 1500)  # AGAIN of state.js
    expect_layout(page, tp=4, pp=4)
    expect(page.locator("#hint")).to_have_text("")
    # Chromium says itself that requests failed.
    served_problems(page)


def served_problems(page) -> None:
    from browser import WATCHES

    problems = WATCHES[page].problems
    problems[:] = [one for one in problems if "Failed to load" not in one and "warn" not in one]
