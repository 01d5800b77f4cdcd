"""The right side of the page: one view at a time, and the one event that draws it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from descriptions import CONTROLS, PAGE, VIEWS
from groups import MAX_RANKS, LayoutError
from groups.mesh import whole_number
from render.scene import PANEL_LIMIT

from .compare import compare_html
from .controls import (
    ControlColumn,
    framework_choices,
    notice_html,
    refused_html,
    reworded,
    source_html,
    status_html,
    with_values,
)
from .details import details_html
from .export import PICTURES, TABLES, download
from .launch import launch_html, with_pasted
from .link import Linked, from_query, to_query
from .messages import sentence
from .nodes import nodes_html
from .orders import AUTO, orders_html, other_layout, strip_html
from .picture import picture_html
from .ranks import ranks_html
from .state import Asked, Controls, Layout, from_preset, language_of, read, typed
from .widgets import script, text_box, text_update, words


@dataclass(frozen=True)
class Answer:
    """What the page shows for some controls; no picture and no details for a refusal."""

    status: str
    picture: str | None
    details: str | None


def answer(
    controls: Controls, language: str = "en", pin: int | None = None, asked: Asked | None = None
) -> Answer:
    """The whole page as HTML: a pure function of what the controls say.

    >>> answer(Controls(tp=3)).picture is None
    True
    """
    asked = asked or Asked(rank="" if pin is None else pin)
    link = to_query(controls, asked, language)
    try:
        layout = read(controls)
    except LayoutError as error:
        return Answer(refused_html(error, controls, language, link), None, None)
    pin = _large_pin(layout, _rank_or_none(asked.rank))
    status = status_html(layout, controls, language, link)
    if asked.view == "nodes":
        return Answer(status, nodes_html(layout, language), "")
    if asked.view == "orders":
        return Answer(status, orders_html(layout, controls, asked.versus, language, pin), "")
    if asked.view == "compare":
        return Answer(status, compare_html(layout, controls, asked.kept, language), "")
    if asked.view == "launch":
        return Answer(status, launch_html(layout, controls, asked.paste, language), "")
    if asked.view == "ranks":
        return Answer(status, ranks_html(layout, controls, asked.rank, asked.ranks, language), "")
    picture = picture_html(layout, language, pin, _strip(layout, controls, language))
    return Answer(status, picture, details_html(layout, language))


def _strip(layout: Layout, controls: Controls, language: str) -> str:
    """What the order moves against Megatron's default, where that is another one that works."""
    if controls.framework == "megatron":
        return ""
    try:
        other = other_layout(controls, layout, "megatron")
    except LayoutError:
        return ""
    return "" if other.order == layout.order else strip_html(layout, other, language)


@dataclass(frozen=True)
class ViewInputs:
    """The widgets above the picture; ``inputs`` are in the order of the fields of Asked."""

    view: gr.Radio
    rank: gr.HTML
    versus: gr.Dropdown
    ranks: gr.HTML
    kept: gr.HTML
    keep: gr.Button
    paste: gr.HTML
    read: gr.Button

    @property
    def inputs(self) -> list[Any]:
        return [self.view, self.rank, self.versus, self.ranks, self.kept, self.paste]

    @property
    def buttons(self) -> list[gr.Button]:
        return [self.keep, self.read]


def build(demo: gr.Blocks, column: ControlColumn) -> None:
    """Make the right side in the current Gradio context and wire all controls to it."""
    asks = _view_inputs("en")
    first = answer(Controls())
    picture = gr.HTML(
        first.picture, js_on_load=script("picture.js"), apply_default_css=False, elem_id="picture"
    )
    details = gr.HTML(
        first.details, js_on_load=script("details.js"), apply_default_css=False, elem_id="details"
    )
    with gr.Row(elem_id="downloads"):
        saves = {
            form: gr.Button(_save_label(form, "en"), size="sm", elem_id=f"save-{form}")
            for form in (*PICTURES, *TABLES)
        }
    asked = [*column.inputs, column.language, *asks.inputs]
    drawn = [column.status, picture, details]
    # One event draws, whatever asked for it: its answers can never overtake each other.
    redraw = gr.HTML(0, html_template="", js_on_load=script("redraw.js"), apply_default_css=False)
    gr.on(
        [*(widget.input for widget in (*column.inputs, *asks.inputs)), redraw.input],
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
    column.preset.input(
        _preset,
        [column.preset, column.language],
        [*set_up, column.source],
        trigger_mode="always_last",
        **hidden,
    )
    asks.keep.click(_keep, asked, [asks.kept, redraw], trigger_mode="always_last", **hidden)
    asks.read.click(_use_pasted, asked, set_up, trigger_mode="always_last", **hidden)
    # A link, or the back button: the page's script tells which state the address is about.
    column.status.link(
        _open_link,
        column.language,
        [*set_up, *asks.inputs, column.language, column.notice],
        trigger_mode="always_last",
        **hidden,
    )
    words = [*column.worded, *asks.inputs, *asks.buttons, *saves.values(), redraw]
    column.language.change(
        _reword, [column.language, column.preset], words, trigger_mode="always_last", **hidden
    )
    # The first choice of language is the browser's. Asked there: an event of ours would mark all
    # its outputs, and Gradio goes through every marked component before each later event.
    demo.load(None, None, column.language, js=_BROWSERS_LANGUAGE, api_visibility="private")
    picture.pin(_take_pin, asks.view, [asks.rank, redraw], trigger_mode="always_last", **hidden)
    _wire_downloads(saves, asked)


def _view_inputs(language: str) -> ViewInputs:
    """The choice of the view, the pinned rank, and what single views ask for."""
    start = Asked()
    with gr.Row(elem_id="view-bar"):
        view = gr.Radio(
            _view_choices(language),
            value=start.view,
            label=CONTROLS["view"].label[language],
            elem_id="view-choice",
            container=False,
            show_label=False,
        )
        rank = text_box("rank", start.rank, language)
    versus = gr.Dropdown(
        _versus_choices(language),
        value=start.versus,
        allow_custom_value=True,
        **words("versus", language),
        elem_id="versus",
    )
    ranks = text_box("ranks", start.ranks, language, rows=2)
    with gr.Row(elem_id="kept-bar"):
        kept = text_box("kept", start.kept, language)
        keep = gr.Button(PAGE["keep"][language], size="sm", elem_id="keep")
    with gr.Column(elem_id="paste-bar"):
        paste = text_box("paste", start.paste, language, rows=6)
        reader = gr.Button(PAGE["use_pasted"][language], size="sm", elem_id="use-pasted")
    return ViewInputs(view, rank, versus, ranks, kept, keep, paste, reader)


def _wire_downloads(saves: dict[str, gr.Button], asked: list[Any]) -> None:
    theme = gr.Textbox("light", visible="hidden")
    file = gr.HTML(
        None, html_template="", js_on_load=script("download.js"), apply_default_css=False
    )
    for form, button in saves.items():
        button.click(
            partial(_save, form),
            [*asked, theme],
            file,
            js=_WITH_THEME,
            concurrency_id="save",
            concurrency_limit=1,
            show_progress="hidden",
            api_visibility="private",
        )


_BROWSERS_LANGUAGE = """() => {
  const linked = new URLSearchParams(location.search).get('lang');
  return linked === 'zh' || navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}"""

_WITH_THEME = """(...values) => {
  values[values.length - 1] = document.body.classList.contains('dark') ? 'dark' : 'light';
  return values;
}"""

NUM_ASKED = len(vars(Asked()))


def _split(values: tuple[Any, ...]) -> tuple[Controls, str, Asked]:
    *given, language = values[:-NUM_ASKED]
    return Controls(*given), language_of(language), Asked(*values[-NUM_ASKED:])


def _shown(answer: Answer) -> list[Any]:
    """The outputs of a drawing; a refusal leaves the last picture, dimmed by the style sheet."""
    kept = gr.skip()
    return [
        answer.status,
        kept if answer.picture is None else answer.picture,
        kept if answer.details is None else answer.details,
    ]


def _draw(*values: Any) -> list[Any]:
    controls, language, asked = _split(values)
    return _shown(answer(controls, language, asked=asked))


def _fix(event: gr.EventData, *values: Any) -> list[Any]:
    """Apply one alternative of the refusal that these controls meet."""
    controls, language, _ = _split(values)
    number = getattr(event, "number", None)
    fixes = _alternatives(controls)
    if number not in range(len(fixes)):  # the refusal is gone by now: what is shown stays
        return [gr.skip()] * (len(vars(controls)) + 1)
    return [*with_values(controls.changed(fixes[number]), language), _again()]


def _alternatives(controls: Controls) -> tuple[dict[str, Any], ...]:
    try:
        read(controls)
    except LayoutError as error:
        return error.alternatives
    return ()


def _preset(name: Any, language: Any) -> list[Any]:
    language = language_of(language)
    try:
        controls = from_preset(name)
    except LayoutError:  # the box was emptied: what is shown stays
        return [gr.skip()] * (len(vars(Controls())) + 2)
    return [*with_values(controls, language), _again(), source_html(name, language)]


def _reword(language: Any, preset: Any) -> list[Any]:
    language = language_of(language)
    labels = [gr.update(value=_save_label(form, language)) for form in (*PICTURES, *TABLES)]
    views = [
        gr.update(label=CONTROLS["view"].label[language], choices=_view_choices(language)),
        text_update("rank", language),
        gr.update(**words("versus", language), choices=_versus_choices(language)),
        text_update("ranks", language),
        text_update("kept", language),
        text_update("paste", language),
        gr.update(value=PAGE["keep"][language]),
        gr.update(value=PAGE["use_pasted"][language]),
    ]
    return [*reworded(language, preset), *views, *labels, _again()]


def _keep(*values: Any) -> list[Any]:
    """Keep the state that is shown, as the link that it has, to compare with."""
    controls, language, _ = _split(values)
    query = to_query(controls, Asked(), "en")
    return [text_update("kept", language, value=f"?{query or 'v=1'}"), _again()]


def _use_pasted(*values: Any) -> list[Any]:
    """Set every control that the pasted text states."""
    controls, language, asked = _split(values)
    try:
        read_controls = with_pasted(controls, asked.paste)
    except LayoutError:  # the view says why
        return [gr.skip()] * (len(vars(controls)) + 1)
    return [*with_values(read_controls, language), _again()]


def _open_link(event: gr.EventData, language: Any) -> list[Any]:
    """Show what a link is about; of a bad one say so, and start anew."""
    language = language_of(language)
    try:
        linked = from_query(getattr(event, "query", ""))
        notice = ""
    except LayoutError as error:
        linked = Linked(Controls(), Asked(), None)
        notice = notice_html(sentence(error, language), language)
    language = linked.language or language
    asked = [
        linked.asked.view,
        text_update("rank", language, value=str(linked.asked.rank)),
        linked.asked.versus,
        *(
            text_update(name, language, value=str(getattr(linked.asked, name)))
            for name in ("ranks", "kept")
        ),
        gr.skip(),  # no link holds what was pasted: on the way back it stays
    ]
    return [*with_values(linked.controls, language), _again(), *asked, language, notice]


def _again() -> int:
    """A value that is new: the page's script takes it as the request to draw."""
    return time.time_ns() // 1000


def _take_pin(event: gr.EventData, view: Any) -> list[Any]:
    """The pin that a click set; the view of one rank is drawn anew."""
    rank = _rank_or_none(getattr(event, "rank", None))
    return ["" if rank is None else str(rank), _again() if view == "ranks" else gr.skip()]


def _save(form: str, *values: Any) -> dict:
    *values, theme = values
    controls, language, asked = _split(tuple(values))
    try:
        layout = read(controls)
    except LayoutError as error:
        raise gr.Error(sentence(error, language), print_exception=False) from None
    pin = _rank_or_none(asked.rank)
    return download(layout, form, pin, "dark" if theme == "dark" else "light")


def _save_label(form: str, language: str) -> str:
    words = "download_picture" if form in PICTURES else f"download_{form}"
    return PAGE[words][language].format(format=form.upper())


def _view_choices(language: str) -> list[tuple[str, str]]:
    return [(text[language], name) for name, text in VIEWS.items()]


def _versus_choices(language: str) -> list[tuple[str, str]]:
    return [(PAGE["versus_auto"][language], AUTO), *framework_choices(language)[:-1]]


def _rank_or_none(value: Any) -> int | None:
    """A pinned rank as the browser sends it; anything that cannot be one counts as none."""
    try:
        return whole_number(typed(value), "rank", minimum=0, maximum=MAX_RANKS - 1)
    except LayoutError:
        return None


def _large_pin(layout: Layout, pin: int | None) -> int | None:
    """The pin where it changes the picture: a panel lights up in the browser alone."""
    return pin if layout.world_size > PANEL_LIMIT else None
