# ruff: noqa: RUF001
"""The script of the Traffic view in a browser, with the view's own HTML and no server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from browser import view_script

from descriptions import TRAFFIC
from request.context import Context
from request.state import State
from views.traffic.view import traffic_html

SCRIPT = view_script("traffic")
CONTROLS = State(tp=2, pp=2, layers="32", global_batch="64")


def shown(language: str = "en", controls: State = CONTROLS) -> str:
    return traffic_html(Context.of(replace(controls, lang=language)))


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1000, "height": 1400})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.set_content(f'<div id="root">{shown()}</div>')
    page.evaluate(
        """script => {
          const element = document.getElementById('root');
          const watch = (_, tell) => { window.updated = tell; };
          new Function('element', 'props', 'trigger', 'watch', script)(element, {}, () => 0, watch);
        }""",
        SCRIPT,
    )
    yield page
    page.close()
    assert not problems


def point(page: Any, sender: int, receiver: int) -> str:
    """What is told of a cell under the pointer."""
    box = page.locator("svg.traffic-matrix").bounding_box()
    scale = box["width"] / float(page.evaluate(VIEW_WIDTH))
    data = page.evaluate("({...document.querySelector('svg.traffic-matrix').dataset})")
    cell, left, top = (float(data[name]) for name in ("cell", "left", "top"))
    page.mouse.move(
        box["x"] + scale * (left + (receiver + 0.5) * cell),
        box["y"] + scale * (top + (sender + 0.5) * cell),
    )
    return page.inner_text(".traffic-told")


VIEW_WIDTH = "document.querySelector('svg.traffic-matrix').viewBox.baseVal.width"


def test_pointing_at_a_cell_names_sender_receiver_bytes_and_kinds(page):
    assert point(page, 0, 1) == "rank 0 (node 0) → rank 1 (node 0): 87.0\xa0GB (tp 87.0\xa0GB)"
    assert point(page, 0, 8) == "rank 0 (node 0) → rank 8 (node 1): 537\xa0MB (pp 537\xa0MB)"
    assert point(page, 0, 2) == "rank 0 (node 0) → rank 2 (node 0): 9.03\xa0GB (dp-cp 9.03\xa0GB)"
    assert point(page, 3, 3) == "rank 3 (node 0) → rank 3 (node 0): nothing"


def test_the_arrow_keys_move_a_cursor_and_escape_takes_it_away(page):
    told = page.locator(".traffic-told")
    page.focus("svg.traffic-matrix")
    page.keyboard.press("ArrowRight")
    assert told.inner_text().startswith("rank 0 (node 0) → rank 0")
    page.keyboard.press("ArrowRight")
    assert told.inner_text() == "rank 0 (node 0) → rank 1 (node 0): 87.0\xa0GB (tp 87.0\xa0GB)"
    for _ in range(20):
        page.keyboard.press("ArrowDown")
    assert told.inner_text().startswith("rank 15 (node 1) → rank 1")
    page.keyboard.press("Escape")
    assert told.inner_text() == TRAFFIC["matrix_hint"]["en"]
    assert page.locator(".traffic-cursor").get_attribute("visibility") == "hidden"


def test_an_update_of_the_page_is_read_anew(page):
    point(page, 0, 1)
    page.evaluate(
        "html => { document.getElementById('root').innerHTML = html; window.updated(); }",
        shown("zh", State(tp=1, pp=1, layers="32", global_batch="64")),
    )
    part = "45.2\xa0GB（dp-cp 45.2\xa0GB）"
    assert point(page, 0, 1) == f"rank 0（节点 0） → rank 1（节点 0）：{part}"


def test_without_the_view_nothing_happens(page):
    page.evaluate("document.getElementById('root').innerHTML = ''; window.updated()")
    page.mouse.move(10, 10)
    page.keyboard.press("ArrowDown")
