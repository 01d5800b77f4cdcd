"""The time axis above the views of a step: a click zooms in, and the link keeps what was chosen."""

from __future__ import annotations

import re

import pytest
from addresses import follow_link
from browser import expect, overflow, settle, show

pytestmark = pytest.mark.browser


def level(page, number: int):
    """The parts of a level that can be chosen."""
    return page.locator(".zooms > .zoom").nth(number).locator("button")


def test_a_click_on_a_part_opens_the_view_that_zooms_into_it_and_the_link_keeps_it(open_page):
    page = open_page()
    show(page, "estimate")
    level(page, 0).first.click()
    settle(page)
    expect(page.locator("#subs [aria-current]")).to_have_text("Pipeline")
    level(page, 1).nth(3).click()  # F0, F1, B0, then F2
    settle(page)
    expect(page.locator("#subs [aria-current]")).to_have_text("Traffic")
    name = page.locator(".zooms b.zoom-name")
    expect(name).to_have_text(re.compile("^forward 2 ·"))
    expect(page.locator(".traffic-top section h3")).to_contain_text("GPU 0 sends in forward 2")
    expect(level(page, 1).nth(3)).to_have_attribute("aria-pressed", "true")
    level(page, 2).nth(1).click()
    settle(page)
    expect(page.locator("#subs [aria-current]")).to_have_text("Collectives")
    expect(page.locator("#field-collective")).to_have_value("reduce_scatter")
    expect(level(page, 2).nth(1)).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile(r"[?&]collective=reduce_scatter&.*[?&]t=\d+"))
    page.reload()
    settle(page)
    expect(level(page, 1).nth(3)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#field-collective")).to_have_value("reduce_scatter")


def test_the_op_of_the_moment_is_marked_in_the_timeline(open_page):
    page = open_page()
    show(page, "pipeline")
    level(page, 1).nth(2).click()
    settle(page)
    show(page, "pipeline")
    expect(page.locator(".pipeline-marks .chosen")).to_have_count(1)
    expect(page.locator(".pipeline-card")).to_contain_text("micro-batch 0")
    expect(page.locator(".pipeline-card")).to_contain_text("backward")


def test_the_axis_has_one_stop_a_level_and_arrow_keys_move_on_it(open_page):
    page = open_page()
    show(page, "pipeline")
    for number in range(3):
        stops = level(page, number).evaluate_all(
            "all => all.filter((o) => o.tabIndex === 0).length"
        )
        assert stops == 1
    level(page, 1).first.focus()
    page.keyboard.press("ArrowRight")
    expect(level(page, 1).nth(1)).to_be_focused()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_axis_fits_into_a_phone_and_stands_still_from_view_to_view(open_page, language):
    page = open_page(width=400, height=800)
    tops = set()
    for view in ("estimate", "pipeline", "traffic", "collectives"):
        follow_link(page, f"v=2&show={view}&lang={language}")
        expect(page.locator(".zooms .zoom-name")).to_have_count(4)
        assert overflow(page) == (0, []), view
        tops.add(
            page.locator(".zooms").evaluate("one => Math.round(one.getBoundingClientRect().height)")
        )
    assert len(tops) == 1
