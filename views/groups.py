"""The Groups view: which GPUs form which groups, as pictures with texts, a table and files."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from descriptions import PAGE
from groups import MAX_RANKS, LayoutError
from groups.mesh import whole_number
from render.scene import PANEL_LIMIT

from .controls import (
    ControlColumn,
    refused_html,
    reworded,
    status_html,
    with_values,
)
from .details import details_html
from .export import PICTURES, TABLES, download
from .messages import sentence
from .picture import picture_html
from .state import Controls, Layout, from_preset, language_of, read
from .widgets import script


@dataclass(frozen=True)
class Answer:
    """What the view shows for some controls; no picture and no details for a refusal."""

    status: str
    picture: str | None
    details: str | None


def answer(controls: Controls, language: str = "en", pin: int | None = None) -> Answer:
    """The whole view as HTML: a pure function of what the controls say.

    >>> answer(Controls(tp=3)).picture is None
    True
    """
    try:
        layout = read(controls)
    except LayoutError as error:
        return Answer(refused_html(error, controls, language), None, None)
    return Answer(
        status_html(layout, controls, language),
        picture_html(layout, language, _large_pin(layout, pin)),
        details_html(layout, language),
    )


def build(demo: gr.Blocks, column: ControlColumn) -> None:
    """Make the view in the current Gradio context and wire the controls to it."""
    first = answer(Controls())
    picture = gr.HTML(
        first.picture, js_on_load=script("picture.js"), apply_default_css=False, elem_id="picture"
    )
    details = gr.HTML(
        first.details, js_on_load=script("details.js"), apply_default_css=False, elem_id="details"
    )
    pin = gr.Number(visible="hidden", precision=0)
    theme = gr.Textbox("light", visible="hidden")
    file = gr.HTML(
        None, html_template="", js_on_load=script("download.js"), apply_default_css=False
    )
    with gr.Row(elem_id="downloads"):
        saves = {
            form: gr.Button(_save_label(form, "en"), size="sm", elem_id=f"save-{form}")
            for form in (*PICTURES, *TABLES)
        }
    asked = [*column.inputs, column.language, pin]
    drawn = [column.status, picture, details]
    # One event draws, whatever asked for it: its answers can never overtake each other.
    redraw = gr.HTML(0, html_template="", js_on_load=script("redraw.js"), apply_default_css=False)
    gr.on(
        [*(widget.input for widget in column.inputs), redraw.input],
        _draw,
        asked,
        drawn,
        # What came while a drawing ran is drawn once, in its newest state.
        trigger_mode="always_last",
        show_progress="hidden",
        api_visibility="private",
        # The queue would cost several times the drawing itself. What it is good for is done by
        # the page (one drawing of a visitor at a time) and by max_threads (of all visitors).
        queue=False,
    )
    hidden = {"show_progress": "hidden", "api_visibility": "private"}
    set_up = [*column.inputs, redraw]
    column.status.fix(_fix, asked, set_up, trigger_mode="always_last", **hidden)
    for name, button in column.presets.items():
        button.click(partial(_preset, name), column.language, set_up, **hidden)
    words = [*column.worded, *saves.values(), redraw]
    column.language.change(_reword, column.language, words, trigger_mode="always_last", **hidden)
    # The first choice of language is the browser's. Asked there: an event of ours would mark all
    # its outputs, and Gradio goes through every marked component before each later event.
    demo.load(None, None, column.language, js=_BROWSERS_LANGUAGE, api_visibility="private")
    picture.pin(_take_pin, None, pin, trigger_mode="always_last", **hidden)
    for form, button in saves.items():
        button.click(
            partial(_save, form),
            [*asked, theme],
            file,
            js=_WITH_THEME,
            concurrency_id="save",
            concurrency_limit=1,
            **hidden,
        )


_BROWSERS_LANGUAGE = "() => navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'"

_WITH_THEME = """(...values) => {
  values[values.length - 1] = document.body.classList.contains('dark') ? 'dark' : 'light';
  return values;
}"""


def _split(values: tuple[Any, ...]) -> tuple[Controls, str, int | None]:
    *given, language, pin = values
    return Controls(*given), language_of(language), _rank_or_none(pin)


def _shown(answer: Answer) -> list[Any]:
    """The outputs of a drawing; a refusal leaves the last picture, dimmed by the style sheet."""
    kept = gr.skip()
    return [
        answer.status,
        kept if answer.picture is None else answer.picture,
        kept if answer.details is None else answer.details,
    ]


def _draw(*values: Any) -> list[Any]:
    return _shown(answer(*_split(values)))


def _fix(event: gr.EventData, *values: Any) -> list[Any]:
    """Apply one alternative of the refusal that these controls meet."""
    controls, language, _ = _split(values)
    number = getattr(event, "number", None)
    fixes = _alternatives(controls)
    if number not in range(len(fixes)):  # the refusal is gone by now: what is shown stays
        return [gr.skip()] * (len(vars(controls)) + 1)
    return [*with_values(controls.changed(fixes[number]), language), _again()]


def _alternatives(controls: Controls) -> tuple[dict[str, int], ...]:
    try:
        read(controls)
    except LayoutError as error:
        return error.alternatives
    return ()


def _preset(name: str, language: Any) -> list[Any]:
    return [*with_values(from_preset(name), language_of(language)), _again()]


def _reword(language: Any) -> list[Any]:
    language = language_of(language)
    labels = [gr.update(value=_save_label(form, language)) for form in (*PICTURES, *TABLES)]
    return [*reworded(language), *labels, _again()]


def _again() -> int:
    """A value that is new: the page's script takes it as the request to draw."""
    return time.time_ns() // 1000


def _take_pin(event: gr.EventData) -> int | None:
    return _rank_or_none(getattr(event, "rank", None))


def _save(form: str, *values: Any) -> dict:
    *values, theme = values
    controls, language, pin = _split(tuple(values))
    try:
        layout = read(controls)
    except LayoutError as error:
        raise gr.Error(sentence(error, language), print_exception=False) from None
    return download(layout, form, pin, "dark" if theme == "dark" else "light")


def _save_label(form: str, language: str) -> str:
    words = "download_picture" if form in PICTURES else "download_groups"
    return PAGE[words][language].format(format=form.upper())


def _rank_or_none(value: Any) -> int | None:
    """A pinned rank as the browser sends it; anything that cannot be one counts as none."""
    try:
        return whole_number(value, "rank", minimum=0, maximum=MAX_RANKS - 1)
    except LayoutError:
        return None


def _large_pin(layout: Layout, pin: int | None) -> int | None:
    """The pin where it changes the picture: a panel lights up in the browser alone."""
    return pin if layout.world_size > PANEL_LIMIT else None
