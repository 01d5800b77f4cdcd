"""Several people at once: nobody ever sees another's picture."""

from __future__ import annotations

import pytest
from browser import cell, choose, expect, expect_layout, expect_lit, slider, type_in, type_sizes

pytestmark = pytest.mark.browser


def test_two_pages_at_once_each_show_their_own_layout(open_page):
    one, two = open_page(), open_page(locale="zh-CN")
    type_in(one, "nodes", "4")
    type_in(two, "nodes", "8")
    expect_layout(one, nodes=4)
    expect_layout(two, nodes=8)
    for tp, pp, cp in ((1, 2, 1), (4, 2, 1), (2, 4, 2), (8, 1, 2), (1, 1, 1), (2, 2, 2)):
        # Both are asked before either is waited for.
        type_sizes(one, tp=tp, pp=pp, cp=cp)
        type_sizes(two, tp=pp, pp=cp, cp=tp)
        expect_layout(one, nodes=4, tp=tp, pp=pp, cp=cp)
        expect_layout(two, nodes=8, tp=pp, pp=cp, cp=tp)
        assert one.locator(".picture").get_attribute("lang") == "en"
        assert two.locator(".picture").get_attribute("lang") == "zh"


def test_two_pages_have_pins_of_their_own(open_page):
    one, two = open_page(), open_page()
    first, second = expect_layout(one), expect_layout(two)
    cell(one, "tp", 3).click()
    cell(two, "tp", 12).click()
    one.mouse.move(5, 5)
    two.mouse.move(5, 5)
    slider(one, "tp").focus()
    one.keyboard.press("ArrowLeft")
    choose(two, "group-type", "DP + TP")
    first = expect_layout(one, tp=1)
    second = expect_layout(two, group_type="dp+tp")
    expect_lit(one, first, 3, pinned=3)
    two.mouse.move(5, 5)
    expect_lit(two, second, 12, pinned=12)
    two.reload()
    two.wait_for_selector('svg.panel .c[tabindex="0"]')
    expect(two.locator(".c.pin")).to_have_count(0)
    expect_lit(one, first, 3, pinned=3)
