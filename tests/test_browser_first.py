"""The picture comes first in every view, and a view that has been told nothing shows an example."""

from __future__ import annotations

import pytest
from addresses import expect_address, follow_link
from browser import expect, overflow, settle, show
from test_browser_access import open_state
from test_browser_looks import WITHIN

from descriptions import PAGE
from request.state import State

pytestmark = pytest.mark.browser

EXAMPLES = {"compare": "kept", "hang": "evidence", "hosts": "hosts", "launch": "paste"}
"""Views that wait for something, by the field that takes it."""


@pytest.mark.parametrize(("view", "language"), [*zip(EXAMPLES, ("en", "zh", "en", "zh"))])
def test_a_view_that_was_told_nothing_shows_an_example_in_grey_one_click_away(
    open_page, view, language
):
    page = open_page()
    follow_link(page, f"v=2&tp=4&show={view}&lang={language}")
    example = page.locator(".example")
    shown = example.locator(".grey")
    expect(shown).to_be_in_viewport()
    assert shown.evaluate("one => one.inert && getComputedStyle(one).filter") == "grayscale(1)"
    told = shown.locator(".verdict > p").first.inner_text()
    example.get_by_role("button", name=PAGE["example_use"][language], exact=True).click()
    settle(page)
    expect(example).to_have_count(0)
    expect(page.locator(f"#field-{EXAMPLES[view]}")).not_to_have_value("")
    expect(page.locator("#picture .verdict > p").first).to_have_text(told)
    show(page, "groups", language)
    if view != "compare":  # whose kept layout a link holds
        expect_address(page, State(tp=4, lang=language))  # nothing else has changed


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_picture_of_an_example_begins_within_350_pixels_too(shared_page, language):
    late = {}
    told = dict.fromkeys(("paste", "evidence", "digest", "traces", "traces_digest"), "")
    for view, picture in {"launch": "svg.asked", "hang": "svg.heat", "slow": "svg.lost"}.items():
        open_state(shared_page, view=view, lang=language, **told)
        first = shared_page.locator(f".example {picture}").first
        top = first.evaluate("one => one.getBoundingClientRect().top + scrollY")
        if top > WITHIN:
            late[view] = round(top)
    assert late == {}


def test_examples_fit_into_a_phone(open_page):
    page = open_page(width=400, height=800, touch=True)
    for view in (*EXAMPLES, "slow"):
        follow_link(page, f"v=2&show={view}")
        expect(page.locator(".example .grey")).to_be_visible()
        assert overflow(page) == (0, []), view
