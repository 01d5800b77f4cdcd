"""The map of nodes, and the picker of frameworks, in a browser."""

from __future__ import annotations

import pytest
from addresses import follow_link
from browser import in_address, settle
from playwright.sync_api import expect

from descriptions import PAGE, TARGET_NAMES
from formats.launch import emit
from request.link import to_query
from request.resolve import resolve
from request.state import State

pytestmark = pytest.mark.browser


def test_a_click_chooses_the_groups_and_a_box_the_gpu(open_page):
    page = open_page()
    follow_link(page, to_query(State(view="nodes")))
    figure = page.locator(".nodes-figure")
    expect(figure.locator(".wide")).to_be_visible()
    expect(figure.locator(".narrow")).to_be_hidden()
    figure.get_by_role("button", name="pp", exact=True).click()
    settle(page)
    expect(figure.locator("#lines-pp")).to_have_attribute("aria-pressed", "true")
    in_address(page, "lines=pp")
    figure.get_by_role("button", name="Groups of GPU 0").click()
    settle(page)
    figure.locator(".wide .hit").nth(1).click()
    settle(page)
    expect(figure.locator("#lines-rank")).to_have_text("Groups of GPU 8")
    in_address(page, "rank=8")
    page.set_viewport_size({"width": 400, "height": 800})
    expect(figure.locator(".narrow")).to_be_visible()
    expect(figure.locator(".wide")).to_be_hidden()


def test_one_click_shows_another_frameworks_command_and_the_link_keeps_it(open_page, server):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
    controls = State(nodes=4, tp=4, pp=1, layers="32", view="launch")
    follow_link(page, to_query(controls))
    command = page.locator(".command")
    expect(command.locator("h3")).to_have_text(TARGET_NAMES["megatron"]["en"])
    page.locator("#target-torchtitan").click()
    settle(page)
    expect(command.locator("h3")).to_have_text(TARGET_NAMES["torchtitan"]["en"])
    expect(command).to_have_count(1)
    in_address(page, "target=torchtitan")
    command.locator(".copy").click()
    expect(command.locator(".copy")).to_have_text(PAGE["copied"]["en"])
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == emit(resolve(controls).job, {"layers": 32}, "torchtitan")
