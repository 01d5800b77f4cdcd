"""The script of the pipeline view in a real browser: hover, keys, cursor, zoom; no requests."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from browser import next_frame, view_script, wait_until

from render.svg.timeline import style
from request.context import Context
from request.state import State
from views.pipeline.view import pipeline_html

pytestmark = pytest.mark.browser

ASSETS = Path(__file__).parent.parent / "views" / "pipeline"
BASE = "* { box-sizing: border-box } body { margin: 0; font-family: sans-serif }"


def page_of(language="en", controls=None, **asked) -> str:
    """The view alone, with its script as Gradio runs it; `redraw` stands for an update."""
    state = State(**{"pp": 4, **(controls or {}), **asked})
    body = pipeline_html(Context.of(replace(state, lang=language)))
    css = style() + (ASSETS / "view.css").read_text(encoding="utf-8")
    return (
        f"<!doctype html><meta charset=utf-8><style>{BASE}{css}</style>"
        f'<div id="picture">{body}</div><script>{{'
        "const element = document.getElementById('picture'), props = {}, trigger = () => {};"
        f"const watch = (name, update) => {{ window.redraw = update; }};"
        f"{view_script('pipeline')}}}</script>"
    )


@pytest.fixture
def shown(show_html):
    """Opens a view; errors of its script fail the test."""

    def shown(width=1200, clock=False, **given):
        page = show_html(page_of(**given), width, clock)
        page.locator(".pipeline-card:not(:empty)").wait_for(state="attached")
        return page

    return shown


def point(page, rank: int, share: float, strip: int = 0, half: float = 0.5) -> str:
    """The card after pointing at a row, at a share of its width."""
    svg = page.locator(".pipeline-strip").nth(strip)
    svg.scroll_into_view_if_needed()
    box, height = svg.bounding_box(), svg.locator(".pipeline-plot").get_attribute("height")
    rows = page.evaluate("n => JSON.parse(document.querySelector('.pipeline-views')"
                         ".dataset.strips)[n].ranks.length", strip)  # fmt: skip
    row = float(height) / rows
    for step in (1, 0):  # a move is from somewhere
        page.mouse.move(box["x"] + share * box["width"] + step, box["y"] + (rank + half) * row)
    next_frame(page)
    return page.locator(".pipeline-card").inner_text()


def test_pointing_tells_the_op_its_layers_and_what_waits_for_what(shown):
    page = shown(schedule="1f1b", micro_batches="8", controls={"layers": "16"})
    # Rank 1 of the group is rank 4; its first B runs from 8 to 10 of 33.
    card = point(page, 1, 9 / 33)
    assert card.startswith("B, backward, of micro-batch 0 through stage 1 on rank 4 (pp 1), from 8")
    assert "Layers: 4–7." in card
    assert "It waits for B0 (stage 2) on rank 8, which ends at 8." in card
    assert "B0 (stage 0) on rank 0 waits for it." in card
    marks = page.locator(".pipeline-marks rect")
    assert [one.get_attribute("class") for one in marks.all()] == ["needs", "feeds", "chosen"]


def test_the_last_backward_waits_for_its_own_forward_and_a_w_for_its_own_i(shown):
    page = shown(schedule="1f1b", micro_batches="8")
    card = point(page, 3, 5 / 33)
    assert "It waits for F0 (stage 3) on rank 12, which ends at 4." in card
    page = shown(schedule="zb-h1", micro_batches="8")
    # Rank and middle of an op of micro-batch 0, of a step of 27: I, I of the last stage, W.
    for rank, middle, before in (
        (1, 6.5, "I0 (stage 2) on rank 8, which ends at 6"),
        (3, 4.5, "F0 (stage 3) on rank 12, which ends at 4"),
        (1, 9.5, "I0 (stage 1) on rank 4, which ends at 7"),
    ):
        assert f"It waits for {before}." in point(page, rank, middle / 27)


def test_the_upper_and_the_lower_op_of_a_pair_are_told_apart(shown):
    page = shown(schedule="dualpipe", micro_batches="8")
    upper, lower = (point(page, 0, 8 / 26, half=half) for half in (0.25, 0.75))
    assert upper.startswith("F, forward, of micro-batch 3 through stage 0")
    assert lower.startswith("B, backward, of micro-batch 5 through stage 3")
    assert "Overlapped with" in upper


def test_arrow_keys_walk_over_ops_and_ranks_and_escape_lets_go(shown):
    page = shown(schedule="1f1b", micro_batches="8")
    page.locator(".pipeline-strip").focus()
    card = page.locator(".pipeline-card")
    for key, expected in (
        ("Home", "F, forward, of micro-batch 0 through stage 0"),
        ("ArrowRight", "F, forward, of micro-batch 1 through stage 0"),
        ("ArrowDown", "F, forward, of micro-batch 0 through stage 1"),
        ("End", "B, backward, of micro-batch 7 through stage 1"),
        ("Escape", "Point at a box"),
    ):
        page.keyboard.press(key)
        assert card.inner_text().startswith(expected)


def move(page, slider: str, value: float) -> None:
    page.locator(f".pipeline-{slider}").evaluate(
        "(box, value) => { box.value = value;"
        " box.dispatchEvent(new Event('input', { bubbles: true })) }",
        value,
    )


def now(page) -> list[str]:
    return page.locator('.pipeline-labels[data-lane="0"] .pipeline-now').all_inner_texts()


def test_the_time_cursor_tells_what_every_rank_does_and_steps_from_end_to_end(shown):
    page = shown(schedule="1f1b", micro_batches="8")
    move(page, "cursor", 9)
    assert now(page) == ["–", "B0", "F2", "B1"]
    assert page.locator(".pipeline-at").inner_text() == "9"
    page.locator("[data-play=on]").click()
    assert now(page) == ["–", "B0", "B1", "F2"]
    page.locator("[data-play=back]").click()
    assert page.locator(".pipeline-at").inner_text() == "9"


def test_playing_moves_the_cursor_until_it_is_stopped(shown):
    page = shown(schedule="1f1b", clock=True)
    page.locator("[data-play=play]").click()
    page.clock.run_for(2000)
    page.locator("[data-play=play]").click()
    stopped = page.locator(".pipeline-cursor").input_value()
    assert int(stopped) >= 2
    page.clock.run_for(60_000)
    assert page.locator(".pipeline-cursor").input_value() == stopped


def test_an_update_keeps_the_cursor_and_the_zoom(shown):
    page = shown(schedule="1f1b")
    move(page, "cursor", 9)
    move(page, "zoom", 2)
    page.evaluate("document.querySelectorAll('.pipeline-marks').forEach(g => g.replaceChildren())")
    page.evaluate("redraw()")
    assert page.locator(".pipeline-marks line.cursor").count() == 1
    assert page.locator(".pipeline-zoom").input_value() == "2"


def test_zoom_widens_the_lanes_inside_their_own_box_and_shows_more_numbers(shown):
    page = shown(width=400, schedule="1f1b", micro_batches="48")
    visible = "[data-need]:not(.off) text"
    before = page.locator(visible).count()
    move(page, "zoom", 5)
    next_frame(page)
    assert page.locator(visible).count() == 4 * 2 * 48 > before
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_64_stages_and_512_micro_batches_are_hovered_and_zoomed(shown):
    page = shown(schedule="interleaved", micro_batches="512", controls={"pp": 64, "nodes": 64})
    wait_until(page, "() => document.querySelector('.pipeline-plot image')")
    next_frame(page)
    assert re.search(
        r"of micro-batch \d+ through virtual stage \d+ on rank 80 \(pp 10\)", point(page, 10, 0.4)
    )
    move(page, "zoom", 6)
    next_frame(page)
    assert page.locator(".pipeline-live text").count() > 100


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_wider_than_the_page(shown, width, language):
    page = shown(
        width, language=language, schedule="dualpipe", against="interleaved", micro_batches="16",
        controls={"layers": "30"},
    )  # fmt: skip
    assert page.evaluate("document.documentElement.scrollWidth") <= width
