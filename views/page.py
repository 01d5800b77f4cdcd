"""The right side of the page: one view at a time, and the one event that draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gradio as gr
from anyio import to_thread

from descriptions import CONTROLS, PAGE
from descriptions import VIEWS as VIEW_NAMES
from groups import LayoutError
from groups.budget import within
from render.scenes.groups import PANEL_LIMIT

from .base import form
from .base.inputs import Asked, filled, flat
from .base.link import Linked, from_query, from_sent, to_query, to_sent, wish_of
from .base.messages import sentence
from .base.problems import problem_html
from .base.state import (
    OF_MATHS,
    Controls,
    Layout,
    as_text,
    from_preset,
    language_of,
    rank_or_none,
    read,
)
from .collectives.view import collectives_html
from .compare.view import compare_html
from .export import PICTURES, TABLES, download
from .gradio.controls import (
    GRADIOS,
    ControlColumn,
    notice_html,
    refused_html,
    reworded,
    status_html,
    with_values,
)
from .gradio.widgets import OF_VIEWS, form_box, painted, script, state_box, tells
from .groups.details import details_html
from .groups.view import picture_html
from .launch.view import launch_html, with_pasted
from .memory.view import memory_html
from .nodes.view import nodes_html
from .orders.view import orders_html, other_layout, strip_html
from .pipeline.view import pipeline_html
from .ranks.view import ranks_html
from .search.view import search_html
from .traffic.view import traffic_html


@dataclass(frozen=True)
class Answer:
    """What the page shows for some controls; no picture and no details for a refusal."""

    status: str
    picture: str | None
    details: str | None


VIEWS: dict[str, Callable[[Layout, Linked], str]] = {
    "groups": lambda layout, now: picture_html(
        layout, now.language, _large_pin(layout, now.asked), _strip(layout, now)
    ),
    "nodes": lambda layout, now: nodes_html(layout, now.language),
    "orders": lambda layout, now: orders_html(
        layout, now.controls, now.asked.versus, now.language, _large_pin(layout, now.asked)
    ),
    "ranks": lambda layout, now: ranks_html(
        layout, now.controls, now.asked.rank, now.asked.ranks, now.language
    ),
    "collectives": lambda layout, now: collectives_html(
        layout, now.controls, now.asked.collectives, now.language, now.asked.rank
    ),
    "pipeline": lambda layout, now: pipeline_html(
        layout, now.controls, now.asked.pipeline, now.language, now.asked.rank
    ),
    "memory": lambda layout, now: memory_html(
        layout, now.controls, now.asked.memory, now.language, now.asked.rank
    ),
    "traffic": lambda layout, now: traffic_html(
        layout, now.controls, now.asked.memory, now.asked.traffic, now.language
    ),
    "search": lambda layout, now: search_html(
        layout, now.controls, now.asked.memory, now.asked.traffic, now.language, now.query
    ),
    "compare": lambda layout, now: compare_html(layout, now.controls, now.asked, now.language),
    "launch": lambda layout, now: launch_html(layout, now.controls, now.asked.paste, now.language),
}
"""What each view shows of a layout that works."""


@within()
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
    status = status_html(layout, controls, language, link, asked.preset)
    view = asked.view if isinstance(asked.view, str) and asked.view in VIEWS else "groups"
    try:
        picture = VIEWS[view](layout, Linked(controls, asked, language))
    except LayoutError as error:  # too much work: every other refusal has its place in the view
        picture = problem_html(error, language)
    return Answer(status, picture, details_html(layout, language) if view == "groups" else "")


def _strip(layout: Layout, now: Linked) -> str:
    """What the order moves against Megatron's default, where that is another one that works."""
    if now.controls.framework == "megatron":
        return ""
    try:
        other = other_layout(now.controls, layout, "megatron")
    except LayoutError:
        return ""
    return "" if other.order == layout.order else strip_html(layout, other, now.language)


def build(demo: gr.Blocks, column: ControlColumn) -> None:
    """Make the right side in the current Gradio context and wire all controls to it."""
    view, rank = _view_bar("en")
    first = answer(Controls())
    picture = painted(first.picture, "picture", scripts=OF_VIEWS)
    details = painted(first.details, "details")
    with gr.Row(elem_id="downloads"):
        saves = {
            kind: gr.Button(_save_label(kind, "en"), size="sm", elem_id=f"save-{kind}")
            for kind in (*PICTURES, *TABLES)
        }
    state = state_box(to_sent(Controls(), Asked(), "en"))
    # One event draws, whatever asked for it: its answers can never overtake each other.
    state.input(
        _draw,
        state,
        [column.status, picture, details],
        # What came while a drawing ran is drawn once, in its newest state.
        trigger_mode="always_last",
        show_progress="hidden",
        api_name="draw",
        api_visibility="private",
        # The queue would cost several times the drawing itself. What it is good for is done by
        # the page (one drawing of a visitor at a time) and by max_threads (of all visitors).
        queue=False,
    )
    own = {**column.own, "view": view, "preset": column.preset, "lang": column.language}
    for name, widget in own.items():
        heard = widget.change if name in ("lang", "more") else widget.input
        heard(None, widget, None, js=tells(name), api_visibility="private")
    _wire_changes(column, state, view)
    worded = [*column.worded, view, rank, *saves.values()]
    column.language.change(
        partial(_reword, column),
        column.language,
        worded,
        **LIKE,
    )
    # The first choice of language is the browser's. Asked there: an event of ours would mark all
    # its outputs, and Gradio goes through every marked component before each later event.
    demo.load(None, None, column.language, js=_BROWSERS_LANGUAGE, api_visibility="private")
    _wire_downloads(saves, state)


LIKE: dict[str, Any] = {
    "trigger_mode": "always_last",
    "show_progress": "hidden",
    "api_visibility": "private",
    # Every function checks what it is sent; Gradio would write a traceback for it.
    "preprocess": False,
}
"""How events run that change what the page holds."""


def _wire_changes(column: ControlColumn, state: gr.HTML, view: gr.Radio) -> None:
    """The events that change several controls at once: the page draws once they all stand."""
    controls = [*column.own.values(), state]
    state.apply(_change, state, controls, **LIKE)
    state.use(_use_pasted, state, controls, **LIKE)
    column.preset.input(_preset, [column.preset, state], controls, **LIKE)
    # A link, or the back button: the page's script tells which state the address is about.
    shown = [view, column.preset, column.language, column.notice]
    state.link(_open_link, state, [*controls, *shown], **LIKE)


def _view_bar(language: str) -> tuple[gr.Radio, gr.HTML]:
    """The choice of the view, and the pinned rank."""
    with gr.Row(elem_id="view-bar"):
        view = gr.Radio(
            _view_choices(language),
            value=Asked().view,
            label=CONTROLS["view"].label[language],
            elem_id="view-choice",
            container=False,
            show_label=False,
        )
        rank = form_box(_rank_html(language), "rank")
    return view, rank


def _rank_html(language: str) -> str:
    return form.number("rank", "", language)


def _wire_downloads(saves: dict[str, gr.Button], state: gr.HTML) -> None:
    theme = gr.Textbox("light", visible="hidden")
    file = gr.HTML(
        None, html_template="", js_on_load=script("download.js"), apply_default_css=False
    )
    for kind, button in saves.items():
        button.click(
            partial(_save, kind),
            [state, theme],
            file,
            js=_WITH_THEME,
            concurrency_id="save",
            concurrency_limit=1,
            show_progress="hidden",
            api_visibility="private",
            preprocess=False,
        )


_BROWSERS_LANGUAGE = """() => {
  const linked = new URLSearchParams(location.search).get('lang');
  if (linked === 'zh' || linked === 'en') return linked;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}"""

_WITH_THEME = """(...values) => {
  values[values.length - 1] = document.body.classList.contains('dark') ? 'dark' : 'light';
  return values;
}"""


def _shown(answer: Answer) -> list[Any]:
    """The outputs of a drawing; a refusal leaves the last picture, dimmed by the style sheet."""
    kept = gr.skip()
    return [
        answer.status,
        kept if answer.picture is None else answer.picture,
        kept if answer.details is None else answer.details,
    ]


async def _draw(sent: Any) -> list[Any]:
    now = from_sent(sent)
    return _shown(
        await to_thread.run_sync(lambda: answer(now.controls, now.language, asked=now.asked))
    )


@within()
def _change(sent: Any) -> list[Any]:
    """Apply changes of controls and of views' inputs, such as a fix of the refusal."""
    now = from_sent(sent)
    changes = wish_of(sent)
    if not isinstance(changes, dict):
        return [gr.skip()] * (len(GRADIOS) + 1)
    of_views = dict(flat(Asked()))
    known = {*vars(Controls()), *OF_MATHS} - {*of_views}
    controls = {name: value for name, value in changes.items() if name in known}
    asked = {name: as_text(changes[name]) for name in changes if name in of_views}
    return _set(
        replace(now, controls=now.controls.changed(controls), asked=filled(now.asked, asked))
    )


@within()
def _use_pasted(sent: Any) -> list[Any]:
    """Set every control that the pasted text states."""
    now = from_sent(sent)
    try:
        controls = with_pasted(now.controls, now.asked.paste)
    except LayoutError:  # the view says why
        return [gr.skip()] * (len(GRADIOS) + 1)
    return _set(replace(now, controls=controls))


def _set(now: Linked) -> list[Any]:
    """Updates that set every control; the page's script then asks for the picture."""
    return [*with_values(now.controls), to_sent(now.controls, now.asked, now.language)]


def _preset(name: Any, sent: Any) -> list[Any]:
    now = from_sent(sent)
    try:
        controls = from_preset(name)
    except LayoutError:  # the box was emptied: what is shown stays
        return [gr.skip()] * (len(GRADIOS) + 1)
    return _set(replace(now, controls=controls, asked=replace(now.asked, preset=name)))


def _reword(column: ControlColumn, language: Any) -> list[Any]:
    language = language_of(language)
    return [
        *reworded(column, language),
        gr.update(label=CONTROLS["view"].label[language], choices=_view_choices(language)),
        _rank_html(language),
        *(gr.update(value=_save_label(kind, language)) for kind in (*PICTURES, *TABLES)),
    ]


@within()
def _open_link(sent: Any) -> list[Any]:
    """Show what a link is about; of a bad one say so, and start anew."""
    now = from_sent(sent)
    try:
        linked = from_query(wish_of(sent))
        notice = ""
    except LayoutError as error:
        linked = Linked(Controls(), Asked(), None)
        notice = notice_html(sentence(error, now.language), now.language)
    language = linked.language or now.language
    # No link holds what was pasted: on the way back it stays.
    asked = replace(linked.asked, paste=now.asked.paste)
    updates = _set(Linked(linked.controls, asked, language))
    return [*updates, asked.view, asked.preset or None, language, notice]


@within()
def _save(kind: str, sent: Any, theme: Any) -> dict:
    now = from_sent(sent)
    try:
        layout = read(now.controls)
        return download(layout, now, kind, "dark" if theme == "dark" else "light")
    except LayoutError as error:
        raise gr.Error(sentence(error, now.language), print_exception=False) from None


def _save_label(kind: str, language: str) -> str:
    words = "download_picture" if kind in PICTURES else f"download_{kind}"
    return PAGE[words][language].format(format=kind.upper())


def _view_choices(language: str) -> list[tuple[str, str]]:
    return [(text[language], name) for name, text in VIEW_NAMES.items()]


def _large_pin(layout: Layout, asked: Asked) -> int | None:
    """The pin where it changes the picture: a panel lights up in the browser alone."""
    return rank_or_none(asked.rank) if layout.world_size > PANEL_LIMIT else None
