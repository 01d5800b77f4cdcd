"""Sliders, boxes and refusals in a real browser: what is asked is shown, or refused in words."""

from __future__ import annotations

import math
import random
import threading
from itertools import product

import pytest
from addresses import follow_link, next_step
from browser import (
    PATIENCE,
    TOASTS,
    box,
    choose,
    costs_told,
    expect,
    expect_layout,
    expect_refusal,
    fix,
    next_frame,
    refusal_of,
    settle,
    show,
    slider,
    type_in,
    type_sizes,
    values,
    wait_until,
    write,
)

from descriptions import CONTROLS, SHELL
from groups import LayoutError
from request.resolve import from_preset, resolve
from request.state import State
from request.words import sentence

pytestmark = pytest.mark.browser


# --- Sliders --------------------------------------------------------------------------------------

WATCH_FLASHES = """() => {
  window.flashes = new Set();
  const flashing = '[data-testid=status-tracker], .loader, .eta-bar, .progress-text, .pending';
  const look = () => {
    for (const e of document.querySelectorAll(flashing)) {
      const box = e.getBoundingClientRect();
      const shown = e.checkVisibility({opacityProperty: true, visibilityProperty: true});
      if (shown && box.width && box.height) window.flashes.add(e.className);
    }
    if (getComputedStyle(document.querySelector('#picture')).opacity < 1) {
      window.flashes.add('dimmed');
    }
    requestAnimationFrame(look);
  };
  look();
}"""


def flashes(page):
    return page.evaluate("[...window.flashes]")


def knob(page, name, stop):
    """Where the knob of a slider is in the window at one of its stops: on a scale of powers of two
    that is the same whatever the others are."""
    area = slider(page, name).bounding_box()
    stops = page.evaluate(STOPS)[name]
    doublings = page.locator(f'.size[data-size="{name}"] .ticks i').count() - 1
    width = 16  # of the knob, see page.css
    share = math.log2(stops[stop]) / doublings
    x = area["x"] + width / 2 + (area["width"] - width) * share
    return x, area["y"] + area["height"] / 2


def test_a_size_stands_at_one_place_of_its_slider_whatever_the_others_are(open_page):
    """8 GPUs per node at three of seven doublings; a stop that does not work is grey."""
    page = open_page()
    places = set()
    for nodes, tp in ((2, 2), (8, 1), (32, 8)):
        type_sizes(page, nodes=nodes, tp=tp)
        expect_layout(page, nodes=nodes, tp=tp)
        size = page.locator('.size[data-size="gpus_per_node"]')
        places.add(size.evaluate("one => one.style.getPropertyValue('--share')"))
    assert places == {f"{100 * 3 / 7:.2f}%"}
    ticks = page.locator('.size[data-size="cp"] .ticks i')
    assert ticks.evaluate_all("all => all.map(one => one.classList.contains('no'))") == [
        *[False] * 5, True, True, True,  # of 256 GPUs, tp 8 and pp 2 leave 16
    ]  # fmt: skip


def test_arrow_keys_move_a_slider_and_the_picture_without_a_spinner(open_page):
    page = open_page()
    type_in(page, "nodes", "8")
    expect_layout(page, nodes=8)
    page.evaluate(WATCH_FLASHES)
    slider(page, "tp").focus()
    for key, tp in (("ArrowLeft", 1), ("ArrowRight", 2)):
        page.keyboard.press(key)
        expect_layout(page, nodes=8, tp=tp)
        assert values(page)["tp"] == str(tp)
    slider(page, "nodes").focus()
    page.keyboard.press("ArrowLeft")
    expect_layout(page, nodes=7)
    assert flashes(page) == []
    # A size between two stops stands at the one below: of 1, 2, 4, ... at 2.
    type_in(page, "tp", "3")
    expect_refusal(page, State(nodes=7, tp=3))
    expect(slider(page, "tp")).to_have_value("1")


def test_a_mouse_drag_ends_on_the_picture_of_its_last_step(open_page):
    page = open_page()
    page.mouse.move(*knob(page, "tp", 1))
    page.mouse.down()
    page.mouse.move(*knob(page, "tp", 3), steps=25)
    page.mouse.move(*knob(page, "tp", 2), steps=15)
    page.mouse.up()
    assert values(page)["tp"] == "4"
    layout = expect_layout(page, tp=4)
    settle(page)
    expect_layout(page, tp=4)
    assert str(layout.mesh) == "tp4-cp1-dp2-pp2"


def test_a_fast_series_of_steps_ends_on_the_last_one(open_page):
    page = open_page()
    type_in(page, "pp", "1")
    expect_layout(page, pp=1)
    for last in (4, 16, 2):
        page.evaluate(
            """async (last) => {
              const slider = document.querySelector('.size[data-size=tp] input[type=range]');
              for (let round = 0; round < 3; round++) {
                for (const value of [1, 4, 2, 16, 8, 1, 16, 4, last]) {
                  slider.value = Math.log2(value);
                  slider.dispatchEvent(new Event('input', {bubbles: true}));
                  await new Promise((go) => setTimeout(go));
                }
              }
            }""",
            last,
        )
        expect_layout(page, pp=1, tp=last)
        settle(page)
        expect_layout(page, pp=1, tp=last)


class Gate:
    """Holds drawings of one kind of controls on the server until they are let through."""

    def __init__(self, monkeypatch, holds):
        from views import page

        self.entered, self.opened, self.asked = threading.Event(), threading.Event(), []
        answer = page.answer

        def slow(controls, *rest, **more):
            self.asked.append(controls)
            if holds(controls):
                self.entered.set()
                self.opened.wait(120)  # what a busy machine may need until then
            return answer(controls, *rest, **more)

        monkeypatch.setattr(page, "answer", slow)

    def reached(self, page):
        """Wait until a drawing is held."""
        for _ in range(PATIENCE // 20):
            if self.entered.is_set():
                return
            page.wait_for_timeout(20)  # which lets the browser's questions through
        raise AssertionError("no such drawing was asked for")

    def alone(self, page):
        """Wait until the drawing that is held is the only one: others wait for it, or are drawn."""
        next_frame(page)
        wait_until(page, "() => questions === 1")


def test_steps_taken_while_a_drawing_is_slow_become_one_drawing(open_page, monkeypatch):
    page = open_page()
    gate = Gate(monkeypatch, lambda controls: controls.tp == "4")
    slider(page, "tp").focus()
    slider(page, "tp").press("ArrowRight")
    slider(page, "tp").press("ArrowRight")
    gate.reached(page)
    for _ in range(8):
        slider(page, "tp").press("ArrowRight")
    for _ in range(4):
        slider(page, "tp").press("ArrowLeft")
    for _ in range(3):
        slider(page, "tp").press("ArrowRight")
    gate.opened.set()
    expect_layout(page, tp=8)
    settle(page)
    expect_layout(page, tp=8)
    assert len(gate.asked) <= 3


def test_an_answer_that_arrives_while_somebody_types_leaves_the_text(open_page, monkeypatch):
    page = open_page()
    gate = Gate(monkeypatch, lambda controls: (controls.tp, controls.pp) == ("4", "2"))
    type_in(page, "tp", "4")
    gate.reached(page)
    # Half typed: the pause after which it would count is kept from ending.
    box(page, "pp").evaluate(
        """(box) => {
          box.focus();
          box.value = '1';
          const type = () => box.dispatchEvent(new Event('input', {bubbles: true}));
          type();
          window.typing = setInterval(type, 50);
        }"""
    )
    gate.opened.set()
    expect_layout(page, tp=4)
    assert box(page, "pp").input_value() == "1"
    page.evaluate("clearInterval(typing); delete window.typing")
    box(page, "pp").press("Enter")
    expect_layout(page, tp=4, pp=1)


def test_inputs_that_are_drawn_show_what_was_changed_meanwhile(open_page, monkeypatch):
    """The boxes of a view arrive after another part of the page has changed one of its fields."""
    page = open_page()
    of_pipeline = Gate(monkeypatch, lambda state: state.view == "pipeline" and not state.pipe_group)
    changed = Gate(monkeypatch, lambda state: state.pipe_group == "5")
    tell = "changes => document.dispatchEvent(new CustomEvent('set', { detail: changes }))"
    page.evaluate(tell, {"view": "pipeline"})
    of_pipeline.reached(page)
    page.evaluate(tell, {"pipe_group": "5"})
    of_pipeline.opened.set()
    changed.reached(page)  # so the first answer is shown, and the second is not there yet
    try:
        page.locator(".picture[data-view=pipeline]").wait_for()
        assert page.locator("#field-pipe_group").input_value() == "5"
    finally:
        changed.opened.set()
    settle(page)
    assert page.locator("#field-pipe_group").input_value() == "5"


def test_a_drawing_that_ends_late_never_replaces_a_newer_one(open_page, monkeypatch):
    page = open_page()

    def overtaken(controls, act, wanted, language="en"):
        """Hold the drawing of some controls, do something newer, then let the old one through."""
        with monkeypatch.context() as patched:
            sizes = ("nodes", "tp", "pp", "cp")
            old = [getattr(controls, name) for name in sizes]

            def is_old(asked):
                found = [getattr(asked, name) for name in sizes]
                return found == old and not gate.entered.is_set()

            gate = Gate(patched, is_old)
            type_in(page, "nodes", str(controls.nodes))
            gate.reached(page)
            act()
            gate.alone(page)
            gate.opened.set()
            settle(page)
            expect_layout(page, wanted)
            expect(page.locator(".picture")).to_have_attribute("lang", language)

    def preset():
        box(page, "preset").select_option(value="")
        box(page, "preset").select_option(value="playground-16")

    overtaken(State(nodes=5), preset, from_preset("playground-16"))
    type_in(page, "tp", "3")
    expect_refusal(page, State(tp=3))
    both = State(nodes=5, tp=3)
    overtaken(both, lambda: fix(page), both.changed(refusal_of(both).alternatives[0]))
    preset()
    expect_layout(page)
    languages = page.locator(".languages")
    overtaken(State(nodes=7), lambda: languages.select_option("zh"), State(nodes=7), "zh")


def test_a_step_taken_before_the_page_has_started_is_not_undone(open_page, monkeypatch):
    gate = Gate(monkeypatch, lambda controls: not gate.entered.is_set())
    page = open_page(started=False, locale="zh-CN")
    gate.reached(page)
    slider(page, "tp").focus()
    slider(page, "tp").press("ArrowLeft")
    gate.alone(page)
    gate.opened.set()
    settle(page)
    expect_layout(page, tp=1)
    assert values(page)["tp"] == "1"


# --- Boxes and refusals ---------------------------------------------------------------------------


def expect_refused(page, name, text, still):
    """A text in one box is refused beside the controls, and stays as it was typed."""
    error = expect_refusal(page, State(**{name: text}), still=still)
    assert error.control is not None
    assert page.evaluate(REFUSED, [name, TOASTS]) == [text, "0.38", [True], 0, "–"]
    assert len(error.alternatives) <= 3
    return error


REFUSED = """([name, toasts]) => {
  const picture = document.querySelector('#picture');
  picture.getAnimations().forEach((fading) => fading.finish());
  return [
    document.getElementById(`field-${name}`).value,
    getComputedStyle(picture).opacity,
    [...document.querySelectorAll('.refusal')].map((one) => one.checkVisibility()),
    document.querySelectorAll(toasts).length,
    document.querySelector('.derived strong').textContent,
  ];
}"""
"""How the page refuses a text: in its box, over a faded picture, in words that are there."""


@pytest.mark.parametrize("name", ["tp", "pp", "cp", "nodes"])
def test_what_cannot_be_is_refused_in_words_and_every_fix_works(open_page, name):
    page = open_page()
    layout = expect_layout(page)
    texts = ["0", "999999999"]
    if name == "tp":  # what is no number is none in any box
        texts += ["abc", "-3", "2.5", "3", "<b>7</b>", "9" * 40]
    stuck = []
    for text in texts:
        type_in(page, name, text)
        error = expect_refused(page, name, text, layout)
        fixes = error.alternatives
        if not fixes:
            stuck.append(text)
        for number, change in enumerate(fixes):
            if number:
                type_sizes(page, **{name: text})
                expect_refusal(page, State(**{name: text}))
            fix(page, number, mouse=text == "0")
            expect_layout(page, State(**{name: text}).changed(change))
            shown = values(page)
            assert {key: shown[key] for key in change} == {k: str(v) for k, v in change.items()}
        type_sizes(page, **{key: getattr(State(), key) for fixed in fixes for key in fixed})
        if not fixes:
            type_sizes(page, **{name: getattr(State(), name)})
        expect_layout(page)
    expect(page.locator("#picture")).to_have_css("opacity", "1")
    assert stuck == [], "refused without a way out"


def test_typing_counts_after_a_pause_without_enter(open_page):
    page = open_page()
    box(page, "tp").fill("")
    box(page, "tp").press_sequentially("8", delay=20)
    expect_layout(page, tp=8)
    expect(slider(page, "tp")).to_have_value("3")
    expect(box(page, "tp")).to_be_focused()


WHERE = """() => [
  '#field-tp', '#field-cp', '#folds', '#rank input', '#tools summary', '#picture', '#details',
]
  .map((one) => document.querySelector(one).getBoundingClientRect().toJSON())"""


def test_a_refusal_moves_nothing_and_covers_no_control(open_page):
    page = open_page()
    for width in (1400, 800):
        page.set_viewport_size({"width": width, "height": 700})  # the column stands beside
        for view in ("groups", "memory"):
            show(page, view)
            costs_told(page)
            before = page.evaluate(WHERE)
            type_in(page, "tp", "3")
            refusal = page.locator("#status .refusal")
            expect(refusal).to_be_in_viewport()
            settle(page)
            assert page.evaluate(WHERE) == before
            controls = ("#field-tp", "#field-cp", ".every > summary", "#rank input")
            for control in (*controls, "#tools summary", "#status .fix >> nth=0"):
                page.locator(control).click(trial=True)  # nothing is above it
            bar = refusal.bounding_box()
            assert bar["x"] + bar["width"] < page.locator("#main").bounding_box()["x"]
            assert bar["height"] <= 84
            fix(page)
            expect(refusal).to_have_count(0)


LINED = """() => [...document.querySelectorAll('#sizes .size')]
  .filter((one) => one.checkVisibility() && getComputedStyle(one, '::before').content !== 'none')
  .map((one) => [one.dataset.size, one.getBoundingClientRect().left
    + parseFloat(getComputedStyle(one, '::before').left)])"""
"""The sliders beside which a line runs, and where."""


def test_a_line_leads_from_the_slider_that_is_refused_to_the_refusal(open_page):
    page = open_page()
    assert page.evaluate(LINED) == []
    type_sizes(page, pp=3)
    bar = page.locator("#status .refusal")
    expect(bar).to_be_visible()
    settle(page)
    left = bar.bounding_box()["x"]
    assert page.evaluate(LINED) == [["pp", left], ["cp", left]]


def test_a_refused_box_keeps_what_was_typed_while_others_move(open_page):
    page = open_page()
    layout = expect_layout(page)
    type_in(page, "tp", "abc")
    expect_refused(page, "tp", "abc", layout)
    type_in(page, "nodes", "4")
    settle(page)
    expect_refusal(page, State(tp="abc", nodes=4), still=layout)
    assert values(page)["tp"] == "abc"
    type_in(page, "tp", "4")
    expect_layout(page, tp=4, nodes=4)


def test_behind_a_refusal_the_last_layout_stands_in_every_view_and_language(open_page):
    page = open_page()
    type_in(page, "nodes", "4")
    layout = expect_layout(page, nodes=4)
    type_in(page, "tp", "3")
    expect_refusal(page, State(nodes=4, tp=3), still=layout)
    show(page, "memory")
    expect(page.locator(".picture[data-view=memory] h2").first).to_contain_text("memory")
    page.locator(".languages").select_option("zh")
    expect(page.locator(".picture[lang=zh]")).to_be_visible()
    show(page, "groups", "zh")
    expect_refusal(page, State(nodes=4, tp=3), still=layout, language="zh")
    next_step(page)
    page.get_by_role("button", name=SHELL["paste_script"]["zh"]).click()
    expect(box(page, "paste")).to_be_focused()
    write(page, "paste", "torchrun --nnodes 8 train.py --tensor-model-parallel-size 8")
    expect(page.locator("#picture")).to_contain_text("64 个")
    page.go_back()
    expect_refusal(page, State(nodes=4, tp=3), still=layout, language="zh")


def test_gpus_per_node_takes_a_choice_or_a_typed_number(open_page):
    page = open_page()
    type_in(page, "gpus_per_node", "72")
    expect_layout(page, gpus_per_node=72)
    box(page, "gpus_per_node").click()
    type_in(page, "gpus_per_node", "12")
    layout = expect_layout(page, gpus_per_node=12)
    assert layout.mesh.size("dp") == 6
    box(page, "gpus_per_node").click()
    box(page, "gpus_per_node").fill("4")
    box(page, "tp").click()  # leaving the box counts too
    layout = expect_layout(page, gpus_per_node=4)
    for text in ("abc", "0"):
        box(page, "gpus_per_node").click()
        type_in(page, "gpus_per_node", text)
        error = expect_refused(page, "gpus_per_node", text, layout)
        assert CONTROLS["gpus_per_node"].label["en"] in sentence(error, "en")
    fix(page, 0)
    expect(page.locator(".refusal")).to_have_count(0)
    expect_layout(page, State(gpus_per_node="0").changed(error.alternatives[0]))


def test_sliders_reach_what_the_world_allows(open_page):
    page = open_page()
    # tp 1, 2, 4 and 8 divide 16 GPUs beside pp 2; of 8 GPUs one fewer does.
    expect(slider(page, "tp")).to_have_attribute("max", "3")
    type_in(page, "nodes", "1")
    expect_layout(page, nodes=1)
    expect(slider(page, "tp")).to_have_attribute("max", "2")
    type_in(page, "nodes", "48")
    expect_layout(page, nodes=48)
    settle(page)
    slider(page, "tp").focus()
    page.keyboard.press("End")
    layout = expect_layout(page, nodes=48, tp=192)
    assert layout.mesh.size("tp") == 192


STOPS = """() => ({
  ...JSON.parse(document.querySelector('#derived .derived').dataset.stops),
  ...Object.fromEntries([...document.querySelectorAll('#sizes .size')]
    .map((one) => [one.dataset.size, one.parentElement.parentElement.handle.props.stops])
    .filter(([, stops]) => stops).map(([name, stops]) => [name, stops.split(' ').map(Number)])),
})"""
"""The sizes at which each slider stops, as its component or the settings have them."""


WALK = """(slider) => {
  const shown = [];
  for (slider.value = 0; shown.length <= slider.max; slider.stepUp()) {
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    shown.push(slider.closest('.size').querySelector('input[type=text]').value);
  }
  return shown;
}"""
"""What the box shows at each stop, gone through more quickly than the server draws."""


def test_a_slider_stops_only_at_sizes_that_work_with_the_others(open_page):
    page = open_page()
    type_sizes(page, nodes=9, tp=3, pp=2)
    expect_layout(page, nodes=9, tp=3, pp=2)
    for name in ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep"):
        start, stops = box(page, name).input_value(), page.evaluate(STOPS)[name]
        for stop in stops:
            resolve(State(**{"nodes": 9, "tp": 3, "pp": 2, name: stop}))  # refuses none
        assert slider(page, name).evaluate(WALK) == [str(stop) for stop in stops]
        expect_layout(page, **{"nodes": 9, "tp": 3, "pp": 2, name: stops[-1]})
        type_in(page, name, start)
        expect_layout(page, nodes=9, tp=3, pp=2)


# --- The original's settings ----------------------------------------------------------------------


def invalid_settings():
    """The settings of the original's three sliders that cannot be: 480 of 512."""
    for tp, pp, cp in product(range(1, 9), repeat=3):
        try:
            resolve(State(tp=tp, pp=pp, cp=cp))
        except LayoutError:
            yield tp, pp, cp


def test_every_fix_of_the_original_s_invalid_settings_makes_a_picture(open_page):
    page = open_page()
    invalid = list(invalid_settings())
    assert len(invalid) == 480
    sizes, clicked = {}, 0
    for tp, pp, cp in random.Random(16).sample(invalid, 4):  # all of them: test_views
        controls = State(tp=tp, pp=pp, cp=cp)
        wanted = {"tp": tp, "pp": pp, "cp": cp, "nodes": 2}
        fixes = refusal_of(controls).alternatives
        assert 1 <= len(fixes) <= 3
        for number, change in enumerate(fixes):
            changes = {key: size for key, size in wanted.items() if sizes.get(key) != size}
            type_sizes(page, **changes)
            expect_refusal(page, controls)
            fix(page, number, mouse=False)
            expect_layout(page, controls.changed(change))
            sizes = {**wanted, **change}
            clicked += 1
    assert clicked >= 8
    assert page.locator(TOASTS).count() == 0


def test_a_server_has_its_own_sizes_under_its_own_names(open_page):
    """Inputs of a training step go, and come back with a framework that trains."""
    page = open_page()
    page.locator(".every > summary").click()
    page.locator("#fold-order summary").click()
    choose(page, "framework", "SGLang")
    expect(page.locator("label[for=field-tp]")).to_have_text("All of a stage (TP)")
    type_in(page, "dp", "2")
    expect(page.locator(".derived .remains strong")).to_have_text(["1", "2", "4"])
    is_hidden = "one => Boolean(one.closest('[hidden]'))"
    assert page.locator("#folds [data-field=micro_batch]").evaluate(is_hidden)
    choose(page, "framework", "vLLM")
    expect(page.locator("label[for=field-tp]")).to_have_text("Tensor (TP)")
    type_in(page, "dp", "")
    choose(page, "framework", "Megatron Core")
    expect(page.locator("#field-dp")).to_be_hidden()
    assert not page.locator("#folds [data-field=micro_batch]").evaluate(is_hidden)


def test_sizes_of_a_server_have_the_names_that_are_seen_and_each_once(open_page):
    """SGLang's dp is "Attention data (DP)" to a screen reader too; vLLM's is not named twice."""
    page = open_page()
    follow_link(page, "v=2&framework=sglang&tp=4&dp=2")
    expect(page.get_by_role("slider", name="Attention data (DP), slider")).to_be_visible()
    follow_link(page, "v=2&framework=vllm&tp=2")
    expect(page.get_by_role("slider", name="Data (DP), slider")).to_be_visible()
    names = page.locator("#controls .size:visible label, #derived b:visible").all_text_contents()
    assert len(names) == len(set(names)), names
    follow_link(page, "v=2&tp=2")
    expect(page.get_by_role("slider", name="Tensor (TP), slider")).to_be_visible()


def test_a_published_layout_with_other_sizes_is_called_changed_and_has_a_way_back(open_page):
    page = open_page()
    follow_link(page, "v=2&preset=bloom-176b")
    menu = page.locator("#field-preset")
    shown = "menu => menu.selectedOptions[0].label"
    assert menu.evaluate(shown).startswith("BLOOM")
    write(page, "tp", "8")
    assert menu.evaluate(shown).startswith("changed: BLOOM")
    expect(page.locator(".source[data-changed]")).to_contain_text("tp 4 → 8")
    page.locator(".source [data-preset]").click()
    settle(page)
    assert menu.evaluate(shown).startswith("BLOOM")
    expect(page.locator(".source[data-changed]")).to_have_count(0)
