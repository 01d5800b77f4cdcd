"""The script of the Collectives view in a real browser: a ring is stepped through and read.

The view stands alone here, with its script and its styles; that the page shows it is the business
of the tests of the whole page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import view_script

import views
from render.svg.groups import style
from request.context import Context
from request.state import State
from views.collectives.view import collectives_html

pytestmark = pytest.mark.browser

VIEWS = Path(views.__file__).parent

FOUR = State(nodes=1, gpus_per_node="4", tp=4, pp=1)


def view(language: str = "en", controls: State = FOUR, **asked: str) -> str:
    state = replace(controls, **asked)
    return collectives_html(Context.of(replace(state, lang=language)))


@pytest.fixture
def opened(show_html: Callable[..., Any]) -> Callable[..., Any]:
    """Opens a view; whatever goes wrong in its script fails the test at its end."""

    def opened(html: str, width: int = 1400, dark: bool = False, clock: bool = False) -> Any:
        sheets = "".join(
            (VIEWS / name).read_text(encoding="utf-8")
            for name in ("client/page.css", "collectives/view.css")
        )
        return show_html(
            f"<!doctype html><style>{style()}{sheets}</style>"
            f'<body class="{"dark" if dark else ""}"><div class="gradio-container">'
            f'<div id="picture">{html}</div></div><script>'
            "const element = document.getElementById('picture');"
            "const watch = (name, update) => { window.updated = update; };"
            f"{view_script('collectives')}</script>",
            width,
            clock,
        )

    return opened


def slots(page: Any) -> list[list[str]]:
    """The numbers in the slots, a row a rank; an empty slot is ''."""
    rows: dict[int, list[str]] = {}
    for cell in page.locator(".slot").all():
        place = int(cell.get_attribute("data-slot").split(",")[0])
        rows.setdefault(place, []).append(cell.locator("text").text_content())
    return [rows[place] for place in sorted(rows)]


def press(page: Any, name: str, times: int = 1) -> None:
    for _ in range(times):
        page.click(f"[data-play={name}]")


def test_a_ring_all_reduce_is_stepped_through(opened):
    page = opened(view())
    start = [
        ["0", "1", "2", "3"],
        ["10", "11", "12", "13"],
        ["20", "21", "22", "23"],
        ["30", "31", "32", "33"],
    ]
    assert slots(page) == start
    press(page, "on")  # rank r sends chunk r to the next, which adds it
    assert slots(page) == [
        ["0", "1", "2", "36"],
        ["10", "11", "12", "13"],
        ["20", "32", "22", "23"],
        ["30", "31", "54", "33"],
    ]
    assert page.locator(".arrow").count() == page.locator(".slot.adds").count() == 4
    assert page.locator(".slot.takes").count() == 0
    assert "0 → 1, 1 → 2, 2 → 3, 3 → 0" in page.locator(".collectives-told").text_content()
    press(page, "on", 5)
    assert slots(page) == [["60", "64", "68", "72"]] * 4
    assert "Step 6 of 6" in page.locator(".collectives-told").text_content()
    assert page.locator("[data-play=on]").is_disabled()
    press(page, "back", 6)
    assert slots(page) == start
    assert page.locator(".arrow").count() == 0


def test_the_slider_goes_to_any_step_by_keyboard(opened):
    page = opened(view())
    slider = page.locator(".collectives-player input")
    slider.focus()
    page.keyboard.press("End")
    assert slots(page) == [["60", "64", "68", "72"]] * 4
    page.keyboard.press("ArrowLeft")
    assert "Step 5 of 6" in page.locator(".collectives-told").text_content()
    assert "Step 5 of 6" in slider.get_attribute("aria-valuetext")


def test_it_plays_to_the_end_and_stops(opened):
    html = view(collective="send_recv", collective_algorithm="pipeline_forward")
    page = opened(html, clock=True)
    button = page.locator("[data-play=play]")
    assert button.text_content() == "Play"
    button.click()
    assert button.text_content() == "Stop"
    page.clock.run_for(60_000)
    assert button.text_content() == "Play"
    assert slots(page) == [["0", "1", "2", "3"]] * 4
    button.click()  # again from the start
    assert slots(page)[1:] == [["", "", "", ""]] * 3
    button.click()
    page.clock.run_for(60_000)
    assert slots(page)[1:] == [["", "", "", ""]] * 3


def test_slots_have_their_members_colour_by_its_place_in_the_group(opened):
    """Ranks 4 to 7: the first member has the first colour, whatever its rank."""
    page = opened(view(controls=replace(FOUR, gpus_per_node="8"), collective_index="1"))
    ranks = page.locator(".collectives-slots text.rank").all_text_contents()
    marks = page.locator(".collectives-slots > g:has(> .who)").all()
    colours = [mark.get_attribute("class") for mark in marks]
    assert list(zip(ranks, colours)) == [("4", "g0"), ("5", "g1"), ("6", "g2"), ("7", "g3")]


def test_who_contributed_is_marked(opened):
    page = opened(view())
    press(page, "on", 6)
    for cell in page.locator(".slot").all():
        assert cell.locator(".strip .on").count() == 4


def test_a_step_stays_while_the_same_algorithm_is_drawn_anew(opened):
    page = opened(view())
    press(page, "on", 3)
    before = slots(page)
    redraw = "html => { document.getElementById('picture').innerHTML = html; updated(); }"
    page.evaluate(redraw, view(collective_mb="7"))
    assert slots(page) == before
    page.evaluate(redraw, view(collective_algorithm="tree_all_reduce"))
    assert page.locator(".collectives-player input").input_value() == "0"
    page.evaluate(redraw, view(collective="split"))  # nothing moves: there is no player
    assert page.locator(".slot").count() == 0


WIDE = State(tp=8)


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_wide_pictures_scroll_in_their_own_box(opened, width, language):
    page = opened(view(language, WIDE, collective="all_to_all", collective_all="1"), width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    scrolls = page.evaluate(
        "[...document.querySelectorAll('.collectives-scroll')].map(e => e.scrollWidth > 400)"
    )
    assert any(scrolls)


def luminance(colour: str) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_numbers_on_colours_can_be_read(opened, dark):
    """Of cells and of bars, which have colours of their own; contrast >= 4.5 (WCAG 2.1)."""
    layers = {"bucket_layers": "12", "bucket_hidden": "2048", "bucket_ms": "1"}
    wide = replace(WIDE, nodes=4)
    page = opened(view(controls=wide, bucket_scheme="zero3", **layers), dark=dark)
    pairs = page.evaluate(
        """() => [...document.querySelectorAll('.cell[class*=" g"], .slot[class*=" g"], .bar')]
        .filter(one => one.querySelector(':scope > text'))
        .map(one => ['rect', 'text'].map(
            name => getComputedStyle(one.querySelector(':scope > ' + name)).fill))"""
    )
    assert len(pairs) > 100
    for fill, ink in {tuple(pair) for pair in pairs}:
        low, high = sorted((luminance(fill), luminance(ink)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (fill, ink)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_on_a_phone_every_letter_of_the_pictures_can_be_read(opened, language):
    """9 pixels at least, of groups of four and of eight; and no head over the next."""
    for controls in (FOUR, WIDE):
        page = opened(view(language, controls), 400)
        sizes = page.evaluate(
            """() => [...document.querySelectorAll(
            '.collectives-slots text, .collectives-exchange text')].filter(one => one.textContent)
            .map(one => [parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a,
                one.textContent])"""
        )
        assert len(sizes) > 20
        assert [one for one in sizes if one[0] < 9] == []
        heads = page.evaluate(
            """() => [...document.querySelectorAll('.collectives-slots text.head')].map(one => {
            const box = one.getBoundingClientRect(); return [box.left, box.right]; })"""
        )
        assert all(left[1] <= right[0] for left, right in pairwise(heads))
