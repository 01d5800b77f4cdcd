"""The Groups view: which GPUs form which groups, as pictures with texts, a table and files."""

from __future__ import annotations

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
    live = {
        # Only the newest state is worth drawing: what came while a drawing ran is drawn once.
        "trigger_mode": "always_last",
        "show_progress": "hidden",
        "api_visibility": "private",
        # One line for every event that draws, so that answers arrive in the order of the questions
        # and an old picture never covers a new one. A second worker would only wait for the GIL.
        "concurrency_id": "draw",
        "concurrency_limit": 1,
    }
    gr.on([widget.input for widget in column.inputs], _draw, asked, drawn, **live)
    column.status.fix(_fix, asked, [*column.inputs, *drawn], **live)
    for name, button in column.presets.items():
        button.click(
            partial(_preset, name), [column.language, pin], [*column.inputs, *drawn], **live
        )
    words = [*column.worded, *saves.values(), *drawn]
    column.language.input(_reword, asked, words, **live)
    picture.pin(_take_pin, None, pin, show_progress="hidden", api_visibility="private")
    for form, button in saves.items():
        button.click(
            partial(_save, form),
            [*asked, theme],
            file,
            js=_WITH_THEME,
            show_progress="hidden",
            api_visibility="private",
            concurrency_id="save",
            concurrency_limit=1,
        )
    first_language = [column.language, *words]
    demo.load(_start, asked, first_language, **live)


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
    controls, language, pin = _split(values)
    number = getattr(event, "number", None)
    fixes = _alternatives(controls)
    if number not in range(len(fixes)):  # the refusal is gone by now: what is shown stays
        return [gr.skip()] * (len(vars(controls)) + 3)
    controls = controls.changed(fixes[number])
    return [*with_values(controls, language), *_shown(answer(controls, language, pin))]


def _alternatives(controls: Controls) -> tuple[dict[str, int], ...]:
    try:
        read(controls)
    except LayoutError as error:
        return error.alternatives
    return ()


def _preset(name: str, language: Any, pin: Any) -> list[Any]:
    controls, language = from_preset(name), language_of(language)
    shown = _shown(answer(controls, language, _rank_or_none(pin)))
    return [*with_values(controls, language), *shown]


def _reword(*values: Any) -> list[Any]:
    controls, language, pin = _split(values)
    return [
        *reworded(language),
        *(gr.update(value=_save_label(form, language)) for form in (*PICTURES, *TABLES)),
        *_shown(answer(controls, language, pin)),
    ]


def _start(request: gr.Request, *values: Any) -> list[Any]:
    """The first choice of language is the browser's."""
    preferred = (request.headers.get("accept-language") or "").lower()
    language = "zh" if preferred.startswith("zh") else "en"
    *given, shown, pin = values
    if language == shown:
        return [gr.skip()] * (1 + len(_reword(*values)))
    return [language, *_reword(*given, language, pin)]


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
