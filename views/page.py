"""The whole page as a function of its state: the regions that `draw` returns.

The browser holds the state in the components that app.py wires (client/state.js keeps them alike)
and asks `draw` whenever it changes; an answer is the HTML of the regions that a change can touch;
none is within another. What of header and column is words only comes again only with another
language; sections and the menu of files, with another view too. A question says which of them the
page has: ``words``, a language, and ``shown``, a view.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from descriptions import LANGUAGES, SHELL
from formats.values import Document
from groups import LayoutError
from groups.budget import spend, within
from groups.kept import kept
from request.context import Context
from request.inputs import FIELDS
from request.link import (
    as_far_as_known,
    from_values,
    parsed,
    script_fields,
    state_texts,
    to_query,
    whole_json,
)
from request.page import PageRequest
from request.state import State
from request.words import sentence

from .all import VIEWS, view_of
from .base.html import tag, together
from .column import notice_html, stops_in_sight, unknown_html
from .export import PICTURES, SLIDES, TABLES, download
from .parts.numbers import numbers_html
from .regions import Shown, regions_of
from .server.bodies import LARGEST_BODY

MANY = 131_072
"""Ranks above which any view counts at least an eighth of them as units of work."""


@dataclass(frozen=True)
class Answer:
    """The regions of a layout, and the sizes at which its sliders stop; a refused one has neither
    picture nor details. ``more``: further rows of REGIONS."""

    job: Markup
    foot: Markup
    derived: Markup
    roles: Markup
    line: Markup
    status: Markup
    picture: Markup | None
    details: Markup | None
    stops: dict[str, list[int]]
    more: dict[str, Markup | None]

    @property
    def regions(self) -> dict[str, Markup | None]:
        """All of them, by their ids."""
        return {**{name: getattr(self, name) for name in OF_LAYOUT}, **self.more}


OF_LAYOUT = ("job", "foot", "derived", "roles", "line", "status", "picture", "details")


PASTED = tuple(name for name, field in FIELDS.items() if not field.link and field.of != "page")
LONGEST_KEPT = 16_000
"""The longest state, in characters, whose answer is cached: not one with a long pasted text."""


@within()
def answer(state: State) -> Answer:
    """The whole page as HTML: a pure function of the state, so that the last answers are cached for
    all visitors."""
    is_short = sum(map(len, vars(state).values())) <= LONGEST_KEPT
    is_kept = is_short and not any(getattr(state, name) for name in PASTED)
    if not is_kept:
        return _answer(state)[0]
    try:
        return _kept(state)
    except PartlyError as error:
        return error.answer


class PartlyError(Exception):
    """An answer whose view is refused, which is not kept: the next one may have more to spend."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


@kept
def _kept(state: State) -> Answer:
    found, is_whole = _answer(state)
    if not is_whole:
        raise PartlyError(found)
    return found


def _answer(state: State) -> tuple[Answer, bool]:
    """The regions of a state, and whether none of them tells of a refused view."""
    shown = _shown(state)
    more = regions_of(shown, "layout")
    own: dict[str, Any] = {name: more.pop(name) for name in OF_LAYOUT}
    stops = stops_in_sight(shown.layout, state)
    return Answer(**own, stops=stops, more=more), not shown.refusals


def _shown(state: State) -> Shown:
    try:
        context = Context.of(state)
        world = context.layout.world_size
        spend(world // 8 if world > MANY else 0, "ranks")
    except LayoutError as error:
        return Shown(state, None, error)
    return Shown(state, context)


# -- what the browser asks -----------------------------------------------------------------------


@within()
def draw(sent: object) -> Document:
    """The regions of the page for a state: {"regions": {id: HTML}, ...}.

    A link's fields are returned as ``state``; a bad link shows the initial page. For a refused
    layout the picture of the last valid one, ``drawn``, stays, dimmed by the style sheet: it is
    sent only if another view, another language or another option of a view is requested.
    """
    asked = PageRequest.of(sent)
    state, parts, drawn = asked.state, answer(asked.state), asked.state
    if parts.picture is None:
        drawn = asked.last_drawn
        if asked.link is not None or drawn != asked.drawn:  # an opened page may say that it works
            still = answer(drawn)
            parts = replace(parts, picture=still.picture, details=still.details)
    answered: Document = {"language": state.language, "view": view_of(state)}
    answered |= {"regions": _regions(asked, parts), "stops": parts.stops}
    answered["drawn"] = to_query(drawn)
    if asked.changes_state:
        answered["state"] = state_texts(state)
    return answered


def link_notice(link: str, language: str) -> Markup:
    """The notice about a link: empty, or its parts that are unreadable or unknown."""
    try:
        unknown = as_far_as_known(link)[1]
    except LayoutError as error:
        return notice_html(sentence(error, language), language)
    return together(*(unknown_html(error, link, language) for error in unknown))


def _regions(asked: PageRequest, parts: Answer) -> dict[str, Markup]:
    """The HTML of all regions that a page lacks."""
    shown = Shown(asked.state)
    has_words = asked.words == shown.language
    regions = {name: html for name, html in parts.regions.items() if html is not None}
    if parts.picture is None and asked.shown and has_words:
        del regions["job"], regions["foot"]  # of the last layout that works, as its picture
    kinds = ["state", *([] if has_words and asked.shown == shown.view else ["view"])]
    more = regions_of(shown, *kinds, *([] if has_words else ["words"]))
    regions |= {name: html for name, html in more.items() if html is not None}
    if asked.link is not None:
        regions["notice"] = link_notice(asked.link, shown.language)
    return regions


@within()
def save(sent: object) -> str:
    """A file of the page, as JSON; {"refused": sentence} if it cannot be made."""
    request = parsed(sent, whole_json)
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


def first_answer() -> Document:
    """What the page shows as it is first sent: all regions, with the initial state drawn."""
    start, first = State(), draw({})
    # Asked for with what the picture may be coloured by (views/groups/lens.py).
    first["regions"]["numbers"] = numbers_html(Context.of(start), view_of(start))
    first["regions"]["whole"] = tag("a", target="_blank", rel="noopener")
    return first


SCRIPT_WORDS = (
    *("waiting", "working", "working_why", "busy", "whole", "frame_copied"),
    *("long", "unread", "slow", "refused", "busy_for", "ahead"),
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
