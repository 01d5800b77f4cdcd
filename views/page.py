"""The whole page as a function of its state: the regions that `draw` returns.

The browser holds the state (client/state.js) and asks `draw` whenever it changes; an answer is the
HTML of the regions that a change can touch; none is within another. What of header and column is
words only comes again only with another language; sections and the menu of files, with another view
too. A question says which of them the page has: ``words``, a language, and ``shown``, a view.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from markupsafe import Markup

from descriptions import LANGUAGES, PAGE, SECTIONS, SERVER, SHELL
from descriptions import VIEWS as TITLES
from groups import LayoutError
from groups.budget import spend, within
from groups.layout import Layout
from request.context import Context
from request.inputs import FIELDS, fields_of
from request.link import (
    as_far_as_known,
    from_query,
    from_values,
    link_of,
    parsed,
    script_fields,
    state_texts,
    to_query,
)
from request.resolve import sizes_text
from request.roles.edits import edited
from request.state import State
from request.words import sentence

from .all import SECTIONS as PLACES
from .all import VIEWS, view_of
from .base import form
from .base.html import as_json, button, fold, tag, together
from .base.problems import refusal_html
from .column import column_html, derived_html, notice_html, unknown_html
from .export import PICTURES, SLIDES, TABLES, download, model_text
from .parts.framed import framed
from .parts.shown import PictureSpec
from .published import source_html
from .roles.bar import roles_bar
from .roles.line import role_line
from .server.bodies import LARGEST_BODY
from .stories import entries_html, examples_html, tour_html

MANY = 131_072
"""Ranks above which any view counts at least an eighth of them as units of work."""


@dataclass(frozen=True)
class Answer:
    """The page for a state; a refusal has no picture and no details."""

    chips: Markup
    foot: Markup
    derived: Markup
    line: Markup  # whose ranks these are, of a plan
    status: str
    picture: Markup | None
    details: Markup | None


PASTED = tuple(name for name, field in FIELDS.items() if not field.link and field.of != "page")
LONGEST_KEPT = 16_000
"""The longest state, in characters, whose answer is cached: not one with a long pasted text."""


@within()
def answer(state: State) -> Answer:
    """The whole page as HTML: a pure function of the state, so that the last answers are cached for
    all visitors."""
    is_short = sum(map(len, vars(state).values())) <= LONGEST_KEPT
    is_kept = is_short and not any(getattr(state, name) for name in PASTED)
    return _kept(state) if is_kept else _answer(state)


@lru_cache(maxsize=64)
def _kept(state: State) -> Answer:
    return _answer(state)


def _answer(state: State) -> Answer:
    language = state.language
    try:
        context = Context.of(state)
        world = context.layout.world_size
        spend(world // 8 if world > MANY else 0, "ranks")
    except LayoutError as error:
        derived, status = derived_html(None, state, language), refusal_html(error, language)
        chips, foot = chips_html(None, language), foot_html(None, language)
        return Answer(chips, foot, derived, Markup(), status, None, None)
    view = VIEWS[view_of(state)]
    is_without = view.of_step and context.layout.is_server
    body = no_step_html(view.name, language) if is_without else view.html(context)
    spec = PictureSpec(context.layout, state)
    picture = body if view.is_framed else framed(spec, view.name, body)
    chips, foot = chips_html(context, language), foot_html(context.layout, language)
    derived = derived_html(context.layout, state, language)
    details = view.details(context) if view.details and not is_without else Markup()
    line = role_line(context, view.name) if state.roles else Markup()
    return Answer(chips, foot, derived, line, "", picture, details)


APPLIES = ("groups", "nodes", "orders", "memory", "compare")
"""Views to which a server leads from a view about a training step."""


def no_step_html(view: str, language: str) -> Markup:
    """A note that a view is about a training step, and buttons to the views that apply to a
    server."""
    explanation = SERVER["no_step"][language].format(view=TITLES[view][language])
    ways = (
        button(TITLES[name][language], class_="fix", data_set={"view": name})
        for name in APPLIES
        if not VIEWS[name].of_step
    )
    return tag("div", tag("p", explanation), tag("p", *ways, class_="fixes"), class_="no-step")


# -- what the browser asks -----------------------------------------------------------------------


@within()
def draw(sent: object) -> str:
    """The regions of the page for a state, as JSON: {"regions": {id: HTML}, ...}.

    A link's fields are returned as ``state``; a bad link shows the initial page. For a refused
    layout the picture of the last valid one, ``drawn``, stays, dimmed by the style sheet: it is
    sent only if another view, another language or another option of a view is requested.
    """
    seen = parsed(sent)
    state, link = from_values(seen), link_of(seen)
    with suppress(LayoutError):  # an instruction that cannot be followed stands, refused
        state = edited(state)
    language, view = state.language, view_of(state)
    parts, drawn = answer(state), state
    if parts.picture is None:
        last = _drawn(seen.get("drawn"))
        last_layout = {name: getattr(last, name) for name in OF_LAYOUT}
        drawn = state.changed({**last_layout, "role_edit": ""})
        if link is not None or drawn != last:  # a page that is opened may say that it works
            still = answer(drawn)
            parts = replace(parts, picture=still.picture, details=still.details)
    regions = _regions(state, parts, seen.get("words"), seen.get("shown"))
    answered: dict[str, object] = {"language": language, "view": view, "regions": regions}
    answered["drawn"] = to_query(drawn)
    if link is not None:
        regions["notice"] = link_notice(link, language)
    if link is not None or seen.get("role_edit"):
        answered["state"] = state_texts(state)
    return as_json(answered)


def link_notice(link: str, language: str) -> Markup:
    """The notice about a link: empty, or its parts that are unreadable or unknown."""
    try:
        unknown = as_far_as_known(link)[1]
    except LayoutError as error:
        return notice_html(sentence(error, language), language)
    return together(*(unknown_html(error, link, language) for error in unknown))


OF_LAYOUT = (*fields_of("job", "model", "training"), "roles")


def _drawn(link: object) -> State:
    """The state of the page's current picture; the initial state if the request has none."""
    with suppress(LayoutError):
        last = from_query(link or "")
        return replace(last, lang=last.language)
    return State(lang="en")


def _regions(state: State, parts: Answer, words: object, shown: object) -> dict[str, str]:
    """The HTML of all regions that a page lacks; words: the language that it has, shown: its
    view."""
    language, view = state.language, view_of(state)
    regions = {name: html for name, html in vars(parts).items() if html is not None}
    if parts.picture is None and shown and words == language:
        del regions["chips"], regions["foot"]  # of the last layout that works, as its picture
    regions |= {"tour": tour_html(state), "source": source_html(state, language)}
    regions["roles"] = roles_bar(state)
    if words != language or shown != view:
        regions |= {"nav": nav_html(view, language), "tools": tools_html(view, language)}
    if words != language:
        regions |= {**head_html(language), **column_html(language)}
        regions["rank"] = form.number("rank", State(lang=language), hint="0")
        regions["entries"] = entries_html(language)
    return regions


@within()
def save(sent: object) -> str:
    """A file of the page, as JSON; {"refused": sentence} if it cannot be made."""
    request = parsed(sent)
    kind, address = request.get("form"), request.get("address")
    fields = request.get("state")
    state = from_values(fields if isinstance(fields, dict) else {})
    try:
        context = Context.of(state)
        chosen = kind if kind in (*PICTURES, *SLIDES, *TABLES) else "png"
        theme = "dark" if request.get("theme") == "dark" else "light"
        # On a slide; a text of the browser's may hold what is no letter.
        written = "".join(filter(str.isprintable, address)) if isinstance(address, str) else ""
        return json.dumps(download(context, chosen, theme, written))
    except LayoutError as error:
        message = sentence(error, state.language)
        return json.dumps({"refused": notice_html(message, state.language)})


# -- its regions ---------------------------------------------------------------------------------


@cache
def head_html(language: str) -> dict[str, Markup]:
    """The regions of the header besides its chips; every answer has them."""
    leads = {"data_set": {"view": "launch"}, "data_leads": "field-paste"}
    copies = {"data_copy_link": True, "data_done": PAGE["copied"][language]}
    names = dict.fromkeys(SHELL["language"][code] for code in LANGUAGES)
    languages = []
    for code, name in {**LANGUAGES, "en": "EN"}.items():
        marks = {"lang": code, "aria_pressed": str(code == language).lower()}
        languages.append(button(name, tabindex=-1, data_set={"lang": code}, **marks))
    words = {"role": "group", "aria_label": " / ".join(names)}
    tools = (
        examples_html(language),
        button(SHELL["paste_script"][language], tabindex=-1, class_="paste", **leads),
        tag("span", *languages, class_="languages", **words),
        button(SHELL["copy_link"][language], tabindex=-1, class_="primary", **copies),
    )
    skip = tag("a", SHELL["skip"][language], class_="skip", href="#main")
    bar = tag("div", *tools, class_="right", role="toolbar", aria_label=SHELL["tools"][language])
    return {"title": together(skip, tag("h1", PAGE["title"][language])), "toolbar": bar}


def chips_html(context: Context | None, language: str) -> Markup:
    """The job in three chips, each a button to its inputs. None: an invalid layout."""
    if context is None:
        return tag("span", SHELL["no_layout"][language], class_="chip-job none")
    layout = context.layout
    machines = SHELL["gpus_chip"][language].format(
        world=f"{layout.world_size:,}", nodes=f"{layout.nodes:,}", gpus=f"{layout.gpus_per_node:,}"
    )
    chips = (
        _chip("nodes", machines),
        _chip("tp", sizes_text(layout), "mono"),
        _chip("model", model_text(context) or SHELL["model_chip"][language]),
    )
    return tag("div", *chips, role="group", aria_label=SHELL["job"][language])


def _chip(field: str, text: str, kind: str = "") -> Markup:
    tab = None if field == "nodes" else -1
    return button(text, class_=f"chip-job {kind}", tabindex=tab, data_leads=f"field-{field}")


MAIN = ("tp", "pp", "dp")
"""Sizes shown even if they are 1."""


def foot_html(layout: Layout | None, language: str) -> Markup:
    """On narrow screens the sizes at the foot of the screen, which open and close their inputs."""
    sizes = SHELL["no_layout"][language]
    if layout is not None:
        every = {name: layout.mesh.size(name) for name in ("tp", "pp", "cp", "dp")}
        experts = layout.kind("ep") if layout.has_experts else None
        every["ep"] = 1 if experts is None else experts.size
        shown = (f"{name} {size:,}" for name, size in every.items() if size > 1 or name in MAIN)
        sizes = " · ".join(shown)
    change, done = (tag("b", SHELL[name][language], class_=name) for name in ("change", "done"))
    label = tag("span", sizes, class_="now")
    return button(together(label, change, done), aria_controls="controls")


def nav_html(view: str, language: str) -> Markup:
    """The sections in one row, and the views of the current one."""
    here = next(name for name, views in PLACES.items() if view in views)
    sections = (
        _place(views[0], SECTIONS[name][language], name == here) for name, views in PLACES.items()
    )
    subs = (_place(name, TITLES[name][language], name == view) for name in PLACES[here])
    of_sections, of_views = SHELL["sections"][language], SHELL["views"][language]
    return together(
        tag("div", *sections, class_="sections", role="group", aria_label=of_sections),
        tag("div", *subs, class_="subs", role="group", aria_label=of_views),
    )


def _place(view: str, label: str, is_here: bool) -> Markup:
    current, tab = ("page", 0) if is_here else (None, -1)
    return button(label, tabindex=tab, data_set={"view": view}, aria_current=current)


def tools_html(view: str, language: str) -> Markup:
    """The menu of files: the slide, the picture, and files for programs."""
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
    rows.append(button(SHELL["copy_frame"][language], data_copy_frame=True))
    return fold(SHELL["save"][language], tag("div", *rows, class_="items"), kind="menu")


def first_html() -> Markup:
    """The page as it is first sent: all regions, with the initial state drawn."""
    start = State()
    regions = _regions(start, answer(start), None, None)

    def region(name: str, element: str = "div") -> Markup:
        return tag(element, regions.get(name, ""), id=name)

    bar = tag("div", *map(region, ("entries", "rank", "tools")), class_="bar")
    main = (region("notice"), region("tour"), bar, region("picture"), region("details"))
    # Below the folds what comes and goes: no input moves under the hand.
    place = tag("div", *map(region, ("status", "derived")), class_="place")
    column = (region("sizes"), place, region("folds"), region("source"))
    page = (
        region("foot"),
        tag("aside", *column, id="controls", class_="column"),
        tag("main", *main, id="main", tabindex=-1),
        tag("p", tag("a", target="_blank", rel="noopener"), id="whole"),
    )
    return tag(
        "div",
        tag("header", *map(region, ("title", "chips", "toolbar")), id="head"),
        region("nav", "nav"),
        tag("div", region("roles"), region("line"), id="role-bar"),
        tag("div", *page, id="page"),
        tag("p", id="hint", role="status"),
        tag("div", id="tip", role="tooltip", hidden=True),
        class_="app waiting",
        lang=start.language,
        data_view=view_of(start),
    )


SCRIPT_WORDS = (
    *("waiting", "working", "working_why", "busy", "whole", "frame_copied"),
    *("long", "unread", "slow", "refused"),
)
"""The texts of the page's script."""

ADDRESSES = 20_000
"""Bytes of a request that the page leaves for the links in it."""


def script_data() -> dict[str, object]:
    """The data of the page's script: the fields of the state, and its texts."""
    return {
        "fields": script_fields(),
        "lit": [name for name, view in VIEWS.items() if view.pins_locally],
        "said": {
            name: {language: SHELL[name][language] for language in LANGUAGES}
            for name in SCRIPT_WORDS
        },
        "largest": LARGEST_BODY - ADDRESSES,
    }
