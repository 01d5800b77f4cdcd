"""Every view on a phone: what is written can be read."""

from __future__ import annotations

import re

import pytest
from addresses import follow_link
from browser import box, expect, expect_layout, overflow, slider
from test_browser_access import open_state

from views.base.html import UNITS
from views.client.widgets import ROOM

pytestmark = pytest.mark.browser

PHONE = {"width": 400, "height": 860}


@pytest.fixture
def phone(shared_page):
    before = shared_page.viewport_size
    shared_page.set_viewport_size(PHONE)
    yield shared_page
    shared_page.set_viewport_size(before)


def test_what_the_browser_says_has_the_units_of_the_server():
    assert f"/{UNITS}/g" in (ROOM / "shared.js").read_text(encoding="utf-8")


TAGS = """() => [...document.querySelectorAll('#main .tags')].flatMap((tags) => {
  const boxes = [...tags.children].map((one) => one.getBoundingClientRect());
  return boxes.flatMap((a, at) => boxes.slice(at + 1).filter((b) => Math.min(a.right, b.right)
    - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
    .map(() => tags.textContent));
})"""
"""Names of groups in pictures, of which one lies over another."""


def test_no_name_of_a_group_lies_over_another_on_a_phone(phone):
    experts = {"nodes": "256", "tp": "1", "pp": "16", "ep": "64", "etp": "1"}
    for view in ("groups", "orders"):
        open_state(phone, view=view, **experts)
        phone.wait_for_selector(".tags > g:visible")
        assert phone.evaluate(TAGS) == [], view


SCREENS = {"a phone": (400, 800), "a tablet upright": (820, 1180)}
LANES = {"en": ("Change", "Done"), "zh": ("修改", "完成")}


@pytest.mark.parametrize("language", LANES)
@pytest.mark.parametrize("screen", SCREENS)
def test_sliders_open_over_the_lower_half_and_the_picture_stays_in_sight(
    open_page, screen, language
):
    width, height = SCREENS[screen]
    page = open_page(width=width, height=height, touch=True)
    follow_link(page, f"v=2&lang={language}")
    change, done = LANES[language]
    bar, column = page.locator("#foot button"), page.locator("#controls")
    expect(bar).to_have_text(re.compile(rf"^tp 2 · pp 2 · dp 4\s*{change}$"), use_inner_text=True)
    expect(bar).to_have_attribute("aria-expanded", "false")
    assert box_of(page, "#foot")["bottom"] == height
    expect(column).not_to_be_visible()
    page.locator("#details").scroll_into_view_if_needed()  # far below the picture
    bar.click()
    expect(bar).to_have_text(re.compile(rf"^tp 2 · pp 2 · dp 4\s*{done}$"), use_inner_text=True)
    sheet, picture = box_of(page, "#controls"), box_of(page, "#picture svg")
    assert sheet["top"] >= height / 2
    assert 0 <= picture["top"] < picture["bottom"] <= sheet["top"]
    for size in ("nodes", "gpus_per_node", "tp", "pp"):  # without scrolling
        page.locator(f'.size[data-size="{size}"] .track').click(trial=True)
    slider(page, "tp").focus()
    page.keyboard.press("ArrowRight")
    expect_layout(page, tp=4)
    expect(bar).to_contain_text("tp 4 · pp 2 · dp 2")
    assert box_of(page, "#picture svg")["bottom"] <= sheet["top"]
    page.keyboard.press("Escape")
    expect(column).not_to_be_visible()
    expect(bar).to_be_focused()
    page.evaluate(LEAD)
    expect(column).to_be_visible()
    expect(box(page, "tp")).to_be_focused()
    assert overflow(page) == (0, [])


LEAD = """() => {
const button = Object.assign(document.createElement('button'), {type: 'button'});
button.dataset.leads = 'field-tp';
document.querySelector('#notice').append(button);
button.click();
button.remove();
}"""
"""As what leads to an input of the column does, wherever it stands."""


def box_of(page, selector: str) -> dict:
    return page.locator(selector).first.evaluate("one => one.getBoundingClientRect().toJSON()")


def test_beside_the_picture_there_is_no_bar_at_the_foot(open_page):
    page = open_page(width=1024, height=768)
    expect(page.locator("#controls")).to_be_visible()
    expect(page.locator("#foot")).not_to_be_visible()


def test_numbers_of_64_gpus_are_seen_on_a_phone(phone):
    open_state(phone, nodes="8", tp="2", pp="2", cp="2")
    number = phone.locator(".job .digits text").first
    size = "(one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a"
    assert number.is_visible()
    assert number.evaluate(size) >= 10


@pytest.mark.parametrize(("language", "tap"), [("en", "Tap "), ("zh", "轻触")])
def test_a_finger_is_told_to_tap_and_a_mouse_to_point(open_page, language, tap):
    for touch in (True, False):
        page = open_page(width=400, height=800, touch=touch)
        follow_link(page, f"v=2&lang={language}")
        assert page.inner_text(".hero .hint").startswith(tap) == touch
        follow_link(page, f"v=2&lang={language}&show=memory")
        hint = page.locator("#picture :is(.by-mouse, .by-touch):visible").all_inner_texts()
        assert [text.startswith(tap) for text in hint] == [touch]
        for view, place in (("pipeline", ".pipeline-card"), ("traffic", ".traffic-told")):
            follow_link(page, f"v=2&lang={language}&show={view}")
            assert page.inner_text(place).startswith(tap) == touch


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_script_is_pasted_on_a_phone(open_page, language):
    page = open_page(width=400, height=800, touch=True)
    open_state(page, lang=language)
    paste = page.locator("#head .paste")
    expect(paste).to_be_in_viewport(ratio=1)
    title = page.locator("#head h1").bounding_box()
    assert paste.bounding_box()["y"] < title["y"] + title["height"]  # in the title's line
    assert overflow(page) == (0, [])
    paste.tap()
    text = page.locator("#field-paste")
    expect(text).to_be_focused()
    text.fill("torchrun --nnodes 4 --nproc-per-node 8 x.py --tensor-model-parallel-size 4")
    text.blur()
    use = page.locator("#picture .verdict button").first
    expect(use).to_be_visible()
    read = page.locator("#picture .intro h3").last.bounding_box()
    pressed = use.bounding_box()
    assert pressed["y"] + pressed["height"] <= read["y"]  # which covers no button
    use.tap()
    for name, size in {"nodes": "4", "tp": "4", "pp": "1"}.items():
        expect(box(page, name)).to_have_value(size)
