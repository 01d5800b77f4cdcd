"""The Moves view in a real browser: slices under the pointer, tensors one by one, nodes to GPUs."""

from __future__ import annotations

import json

import pytest
from addresses import follow_link
from browser import expect, in_address, requests_during, settle

pytestmark = pytest.mark.browser

PULL = """(slider, to) => {
  slider.value = to;
  slider.dispatchEvent(new Event('input', {bubbles: true}));
}"""

ACTOR = "v=2&nodes=8&tp=4&pp=2&model=llama3-8b&rank=12&show=moves"


def test_a_gpu_tells_its_slices_tensors_play_and_a_cell_of_nodes_opens(open_page):
    page = open_page(width=1400, height=900)
    follow_link(page, ACTOR)
    job, told = page.locator(".moves-scroll.wide"), page.locator(".moves-told")
    job.focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(told).to_contain_text("GPU 9 sends GPU 12 2.01")
    assert job.locator(".way.off").count() == 4  # all lines but its own
    page.keyboard.press("Escape")
    assert job.locator(".way.off").count() == 0

    # Reduced motion is asked for here: nothing plays by itself, the steps are there.
    assert not page.locator(".moves-player [data-play=play]").is_visible()
    page.locator(".moves-player [data-play=on]").click()
    settle(page)
    expect(page.locator(".moves-name")).to_contain_text("decoder.layers.0.mlp.linear_fc2.weight")
    in_address(page, "moves_tensor=decoder.layers.0.mlp.linear_fc2.weight")
    slider = page.locator(".moves-player input")

    def scrub():
        for to in ("150", "100", "60"):
            slider.evaluate(PULL, to)

    scrub()
    settle(page)
    assert requests_during(page, scrub) == []  # asked once, then all is in the page
    expect(page.locator(".moves-step")).to_have_text("tensor 61 of 195")
    expect(page.locator(".moves-name")).to_contain_text("decoder.layers.9.mlp.linear_fc2.weight")

    matrix = page.locator("svg.traffic-matrix")
    matrix.focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    settle(page)
    expect(page.locator(".traffic-figure")).to_contain_text("a cell is a GPU")
    in_address(page, "moves_cell=1-0")
    page.get_by_role("button", name="Back to the nodes").click()
    settle(page)
    expect(page.locator(".traffic-figure")).to_contain_text("a cell is a node")

    page.emulate_media(reduced_motion="no-preference")
    play = page.locator(".moves-player [data-play=play]")
    play.click()
    expect(page.locator(".moves-step")).not_to_have_text("tensor 7 of 195")
    play.click()
    settle(page)
    in_address(page, "moves_tensor=")


def reels(page, first) -> list:
    """What the page asks for tensors from now on; `first` answers the first of them instead."""
    asked: list = []

    def answer(route):
        if "moves_reel" not in route.request.post_data:
            return route.continue_()
        asked.append(route)
        return first(route) if len(asked) == 1 else route.continue_()

    page.route("**/component_server", answer)
    return asked


def test_a_step_asked_for_while_other_sides_come_is_taken_among_their_tensors(open_page):
    page = open_page(width=1400, height=900)
    follow_link(page, ACTOR)
    asked = reels(page, lambda route: None)
    page.locator(".moves-player [data-play=on]").click()
    page.evaluate(
        "query => document.dispatchEvent(new CustomEvent('open', {detail: {query}}))",
        ACTOR.replace("tp=4", "tp=2"),
    )
    expect(page.locator("#picture")).to_contain_text("from this layout to dp 64")
    asked[0].continue_()
    settle(page)
    expect(page.locator(".moves-name")).to_contain_text("decoder.layers.0.mlp.linear_fc2.weight")
    in_address(page, "tp=", there=False)  # 2 is where it starts
    assert len(asked) == 2


def test_a_busy_server_is_asked_for_the_tensors_again(open_page):
    page = open_page(width=1400, height=900)
    follow_link(page, ACTOR)
    busy = {"status": 200, "content_type": "application/json", "body": json.dumps('{"busy": true}')}
    asked = reels(page, lambda route: route.fulfill(**busy))
    page.locator(".moves-player [data-play=on]").click()
    expect(page.locator(".moves-step")).to_contain_text("busy")
    page.evaluate("window.pass(1500)")
    settle(page)
    expect(page.locator(".moves-name")).to_contain_text("decoder.layers.0.mlp.linear_fc2.weight")
    assert len(asked) == 2
