"""Roles of a plan in a real browser: tabs, the keyboard, the moment, and the way back."""

from __future__ import annotations

import pytest
from browser import box, expect, settle

pytestmark = pytest.mark.browser


def test_a_role_is_added_changed_put_back_and_nothing_is_lost(open_page):
    page = open_page()
    page.goto(page.url.split("?")[0] + "?v=2&nodes=4&tp=4&pp=2&rank=9")
    settle(page)
    page.locator("#fold-roles summary").click()
    page.locator("#fold-roles .fix").click()
    tabs = page.locator("#roles .tabs button")
    expect(tabs).to_have_text(["actor 32 GPUs", "rollout 32 GPUs", "+ role"])
    expect(box(page, "framework")).to_have_value("vllm")
    expect(page.locator(".plan h2")).to_have_text("Which roles does GPU 9 play?")
    page.locator("#roles .menu summary").click()
    page.locator("[data-edit=first]").fill("32")
    page.keyboard.press("Tab")
    expect(page.locator(".plan-answer")).to_contain_text("GPU 41: rollout")
    page.locator("[data-edit=name]").fill("actor")
    page.keyboard.press("Tab")
    expect(page.locator("#status .refusal")).to_contain_text("Two roles are named actor")
    tabs.first.click()
    expect(box(page, "pp")).to_have_value("2")
    expect(page.locator("#status .refusal")).to_have_count(0)
    assert "roles=*actor@0;rollout@32-63:vllm,tp=4" in page.url
    page.locator("svg.cluster").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".plan h2")).to_have_text("Which roles does GPU 1 play?")
    page.locator(".plan-step input[type=range]").press("ArrowRight")
    expect(page.locator(".cluster .band.off")).to_have_count(1)
    expect(page.locator(".plan-step output")).to_contain_text("rollout")
    page.locator(".plan-step .ways button").last.click()
    expect(page.locator("#main h2").first).to_have_text("What moves from actor to rollout?")
    page.go_back()
    expect(page.locator(".plan h2")).to_be_visible()
