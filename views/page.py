"""The whole page as a function of its state: what `draw` answers, region by region.

The browser holds the state (gradio/state.js) and asks `draw` whenever it changes; an answer is the
HTML of the regions that a change can touch. Header and column have words only, so they come again
only with another language; sections and the menu of files, with another view too. A question says
which of them the page has: ``words``, a language, and ``shown``, a view.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson
from markupsafe import Markup

from descriptions import LANGUAGES, PAGE, SHELL
from groups import LayoutError
from groups.budget import spend, within

from .all import VIEWS, view_of
from .base import form
from .base.context import Context
from .base.html import button, fold, tag
from .base.link import from_query, from_sent, link_of, parsed, script_fields, texts_of
from .base.problems import problem_html, refusal_html, sentence
from .base.state import State
from .column import column_html, derived_html, notice_html, preset_states
from .export import PICTURES, SLIDES, TABLES, download
from .groups.view import framed
from .head import chips_html, head_html, nav_html
from .stories import entries_html, tour_data

MANY = 131_072
"""Ranks past which any view takes as many units of work as an eighth of them."""


@dataclass(frozen=True)
class Answer:
    """What the page shows for a state; no picture and no details for a refusal."""

    chips: Markup
    derived: Markup
    status: str
    picture: Markup | None
    details: Markup | None


@within()
def answer(state: State) -> Answer:
    """The whole page as HTML: a pure function of what the state says.

    >>> answer(State(tp=3)).picture is None
    True
    """
    language = state.language
    try:
        context = Context.of(state)
        world = context.layout.world_size
        spend(world // 8 if world > MANY else 0, "ranks")
    except LayoutError as error:
        derived = derived_html(None, state, language)
        refused = refusal_html(error, language)
        return Answer(chips_html(None, language), derived, refused, None, None)
    view = VIEWS[view_of(state)]
    try:
        body = view.html(context)
        picture = body if view.is_framed else framed(context, body, view.name)
    except LayoutError as error:  # too much work: every other refusal has its place in the view
        picture = problem_html(error, language)
    return Answer(
        chips_html(context, language),
        derived_html(context.layout, state, language),
        "",
        picture,
        view.details(context) if view.details else "",
    )


# -- what the browser asks -----------------------------------------------------------------------


@within()
def draw(sent: Any) -> str:
    """The regions of the page for a state, as JSON: {"regions": {id: HTML}, ...}.

    What a link says is told to the browser as ``state``; a bad one shows the page as it starts. A
    refused layout leaves the last picture where it is, dimmed by the style sheet; for a link there
    is none, and the first layout's stands for it, in the link's view and language.
    """
    state, link, seen = from_sent(sent), link_of(sent), parsed(sent)
    language, view = state.language, view_of(state)
    is_new = seen.get("words") != language
    parts = answer(state)
    if parts.picture is None and link is not None:
        first = answer(State(lang=language, view=view))
        parts = replace(parts, picture=first.picture, details=first.details)
    regions = dict(vars(parts))
    if is_new or seen.get("shown") != view:
        regions |= {"nav": nav_html(view, language), "tools": tools_html(view, language)}
    if is_new:
        regions |= chrome(language)
    answered: dict[str, Any] = {"language": language, "view": view}
    if link is not None:
        regions["notice"] = _told(link, language)
        answered["state"] = texts_of(state)
    answered["regions"] = {name: html for name, html in regions.items() if html is not None}
    return _packed(answered)


def _packed(answered: dict[str, Any]) -> str:
    """As JSON: pictures are long, and `json` takes four times as long for them."""
    try:
        return orjson.dumps(answered).decode()
    except TypeError:  # half of a surrogate pair, which a program may send, is no UTF-8
        return json.dumps(answered)


def _told(link: str, language: str) -> str:
    try:
        from_query(link)
    except LayoutError as error:
        return notice_html(sentence(error, language), language)
    return ""


def chrome(language: str) -> dict[str, str]:
    """What a language alone decides."""
    return {
        "head": head_html(language),
        "controls": column_html(language),
        "rank": rank_html(language),
        "entries": entries_html(language),
    }


def rank_html(language: str) -> Markup:
    return form.number("rank", "", language, hint="0")


@within()
def save(sent: Any) -> str:
    """A file of what is on screen, as JSON; {"refused": sentence} where there is none.

    sent: {"state", "form", "theme", "address"} as JSON.
    """
    request = parsed(sent)
    kind, theme = request.get("form"), request.get("theme")
    state = from_sent(json.dumps(request.get("state")))
    language = state.language
    try:
        context = Context.of(state)
        chosen = kind if kind in (*PICTURES, *SLIDES, *TABLES) else "png"
        theme = "dark" if theme == "dark" else "light"
        return json.dumps(download(context, chosen, theme, printable(request.get("address"))))
    except LayoutError as error:
        return json.dumps({"refused": notice_html(sentence(error, language), language)})


def printable(text: object) -> str:
    """A text of the browser's that is written on a slide, without what is no letter."""
    return (
        "".join(letter for letter in text if letter.isprintable()) if isinstance(text, str) else ""
    )


def tools_html(view: str, language: str) -> Markup:
    """The one menu of files: the slide, the picture as it is, what programs read."""
    pictures = [("save_slide", [(form, form.removeprefix("slide-")) for form in SLIDES])]
    if VIEWS[view].pictures:
        pictures.append(("save_picture", [(form, form) for form in PICTURES]))
    rows = []
    for words, forms in pictures:
        title = SHELL[words][language]
        saves = (button(label.upper(), data_save=form) for form, label in forms)
        rows.append(tag("p", tag("span", title), *saves, role="group", aria_label=title))
    files = ((file, PAGE[f"download_{file}"][language]) for file in VIEWS[view].files)
    rows += [button(label, data_save=file) for file, label in files]
    return fold(SHELL["save"][language], tag("div", *rows, class_="items"), kind="menu")


def first_html(language: str = "en") -> Markup:
    """The page as it is sent first: everything in place, with the first state drawn."""
    first = answer(State(lang=language))
    page = (
        tag("a", SHELL["skip"][language], class_="skip", href="#main"),
        tag("header", head_html(language), id="head"),
        tag("nav", nav_html("groups", language), id="nav"),
        tag(
            "div",
            tag("aside", column_html(language), id="controls", class_="column"),
            tag("div", id="status"),
            tag("main", *_main(first, language), id="main", tabindex=-1),
            tag("p", tag("a", target="_blank", rel="noopener"), id="whole"),
            id="page",
        ),
        tag("p", id="hint", role="status"),
        tag("div", id="tip", role="tooltip", hidden=True),
    )
    whole = tag("div", *page, class_="app waiting", lang=language, data_view="groups")
    for name, html in (("derived", first.derived), ("chips", first.chips)):
        whole = whole.replace(tag("div", id=name), tag("div", html, id=name))
    return whole


def _main(first: Answer, language: str) -> Iterator[Markup]:
    """What stands beside the column."""
    yield tag("div", id="notice")
    steps = (button("", data_tour=name) for name in ("back", "next", "leave"))
    words = (tag("p", aria_live="polite"), tag("div", tag("small"), *steps))
    yield tag("section", *words, id="tour", hidden=True)
    bar = {
        "entries": entries_html(language),
        "rank": rank_html(language),
        "tools": tools_html("groups", language),
    }
    yield tag("div", *(tag("div", html, id=name) for name, html in bar.items()), class_="bar")
    yield tag("div", first.picture, id="picture")
    yield tag("div", first.details, id="details")


def script_data() -> dict[str, Any]:
    """What the page's script has to know: the fields of the state, the presets, its few words."""
    return {
        "fields": script_fields(),
        "presets": preset_states(),
        "tour": tour_data(),
        "lit": [name for name, view in VIEWS.items() if view.pins_locally],
        "said": {
            name: {language: SHELL[name][language] for language in LANGUAGES}
            for name in ("waiting", "busy", "long", "whole")
        },
    }
