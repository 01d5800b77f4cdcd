"""Several people at once: nobody ever sees another's picture."""

from __future__ import annotations

import pytest
from browser import cell, choose, expect_layout, expect_lit, slider, type_in, type_sizes

from descriptions import TYPES

pytestmark = pytest.mark.browser


def test_two_pages_at_once_show_each_its_own_layout_language_and_pin(open_page):
    one, two = open_page(), open_page(locale="zh-CN")
    type_in(one, "nodes", "4")
    type_in(two, "nodes", "8")
    expect_layout(one, nodes=4)
    expect_layout(two, nodes=8)
    for tp, pp, cp in ((1, 2, 1), (4, 2, 1), (2, 4, 2), (8, 1, 2), (1, 1, 1), (2, 2, 1)):
        # Both are asked before either is waited for.
        type_sizes(one, tp=tp, pp=pp, cp=cp)
        type_sizes(two, tp=pp, pp=cp, cp=tp)
        expect_layout(one, nodes=4, tp=tp, pp=pp, cp=cp)
        expect_layout(two, nodes=8, tp=pp, pp=cp, cp=tp)
        assert one.locator(".picture").get_attribute("lang") == "en"
        assert two.locator(".picture").get_attribute("lang") == "zh"
    cell(one, "tp", 3).click()
    cell(two, "tp", 12).click()
    one.mouse.move(5, 5)
    two.mouse.move(5, 5)
    slider(one, "tp").focus()
    one.keyboard.press("ArrowLeft")
    choose(two, "group_type", TYPES["dp+tp"].title["zh"])
    first = expect_layout(one, nodes=4, tp=1)
    second = expect_layout(two, group_type="dp+tp", nodes=8, pp=1, cp=2)
    two.mouse.move(5, 5)
    expect_lit(one, first, 3, pinned=3)
    expect_lit(two, second, 12, pinned=12)
