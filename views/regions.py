"""The regions of the page: each a row, a function of what is shown.

The browser holds the state and asks for what a change can touch: every answer brings the regions of
a layout and of a state; those of a view come with another view, those of words with another
language. No region is within another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from markupsafe import Markup

from descriptions import LANGUAGES, PAGE, SECTIONS, SERVER, SHELL
from descriptions import VIEWS as TITLES
from groups import LayoutError
from groups.layout import Layout
from request.context import Context
from request.fixes import fixes_of
from request.state import State

from .all import SECTIONS as PLACES
from .all import VIEWS, view_of
from .base import form
from .base.html import button, fold, tag, together
from .base.problems import problem_html, refusal_html
from .column import SIZES, SIZES_OF_SERVERS, column_html, derived_html, size_region
from .export import PICTURES, SLIDES
from .parts.framed import framed
from .parts.job import lenses_html
from .parts.sentence import sentence_html
from .parts.shown import PictureSpec
from .published import source_html
from .roles.bar import roles_bar
from .roles.line import role_line
from .stories import examples_html, tour_html


@dataclass(frozen=True)
class Shown:
    """What the regions show: a state, and its context or what refuses that."""

    state: State
    context: Context | None = None
    refused: LayoutError | None = None
    refusals: list[LayoutError] = field(default_factory=list, compare=False)  # of the view alone

    @property
    def language(self) -> str:
        return self.state.language

    @property
    def view(self) -> str:
        return view_of(self.state)

    @property
    def place(self) -> str:
        """The view that has the button of this one."""
        return VIEWS[self.view].within or self.view

    @property
    def layout(self) -> Layout | None:
        return None if self.context is None else self.context.layout

    @property
    def is_without_step(self) -> bool:
        """Whether the view is about a training step, and the layout is a server's."""
        return self.layout is not None and VIEWS[self.view].of_step and self.layout.is_server


APPLIES = ("groups", "nodes", "orders", "memory", "estimate", "search", "compare")
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


@cache
def head_html(language: str) -> dict[str, Markup]:
    """The regions of the header that are words only; every answer has them."""
    leads = {"data_set": {"view": "launch"}, "data_leads": "field-paste"}
    names = dict.fromkeys(SHELL["language"][code] for code in LANGUAGES)
    languages = (
        tag("option", name, value=code, lang=code, selected=code == language)
        for code, name in {**LANGUAGES, "en": "EN"}.items()
    )
    label = " / ".join(names)
    tools = (
        examples_html(language),
        button(SHELL["paste_script"][language], tabindex=-1, class_="paste", **leads),
    )
    marks = {"class_": "languages", "data_field": "lang", "aria_label": label}
    skip = tag("a", SHELL["skip"][language], class_="skip", href="#picture")
    bar = tag("div", *tools, class_="right", role="toolbar", aria_label=SHELL["tools"][language])
    return {
        "title": together(skip, tag("h1", PAGE["title"][language])),
        "toolbar": bar,
        "language": tag("select", *languages, **marks),
    }


def job_html(shown: Shown) -> Markup:
    """The job in a sentence whose numbers are controls."""
    if shown.context is None:
        return tag("p", SHELL["no_layout"][shown.language], class_="sentence none")
    return sentence_html(shown.context)


MAIN = ("tp", "pp", "dp")
"""Sizes shown even if they are 1."""


def foot_html(shown: Shown) -> Markup:
    """On narrow screens the sizes at the foot of the screen, which open and close their inputs."""
    layout, language = shown.layout, shown.language
    sizes = SHELL["no_layout"][language]
    if layout is not None:
        every = {name: layout.mesh.size(name) for name in ("tp", "pp", "cp", "dp")}
        experts = layout.kind("ep") if layout.has_experts else None
        every["ep"] = 1 if experts is None else experts.size
        large = (f"{name} {size:,}" for name, size in every.items() if size > 1 or name in MAIN)
        sizes = " · ".join(large)
    change, done = (tag("b", SHELL[name][language], class_=name) for name in ("change", "done"))
    label = tag("span", sizes, class_="now")
    return button(together(label, change, done), aria_controls="controls")


def nav_html(shown: Shown) -> Markup:
    """The sections in one row. On the first screen, whose views have no row, that of the section is
    a menu of them."""
    view, language = shown.place, shown.language
    label = SHELL["sections"][language]
    sections = (_section(section, view, language, view in PLACES[section]) for section in PLACES)
    return tag("div", *sections, class_="sections", role="group", aria_label=label)


def _section(section: str, view: str, language: str, is_here: bool) -> Markup:
    views, label = PLACES[section], SECTIONS[section][language]
    if view != views[0] or view != FIRST:
        return _place(views[0], label, is_here)
    items = (_place(name, TITLES[name][language], name == view) for name in views)
    head = tag("summary", label, aria_current="page")
    body = tag("div", *items, lenses_html(language), class_="items")
    return tag("details", head, body, class_="menu views")


FIRST = "groups"
"""The view of the first screen."""


def subs_html(shown: Shown) -> Markup:
    """The views of the current section, where they are several; none on the first screen."""
    view, language = shown.place, shown.language
    views = PLACES.get(VIEWS[view].section, ())
    if view == FIRST or len(views) < 2:
        return Markup()
    subs = (_place(name, TITLES[name][language], name == view) for name in views)
    label = SHELL["views"][language]
    return tag("div", *subs, class_="subs", role="group", aria_label=label)


def _place(view: str, label: str, is_here: bool) -> Markup:
    current, tab = ("page", 0) if is_here else (None, -1)
    return button(label, tabindex=tab, data_set={"view": view}, aria_current=current)


def rank_html(shown: Shown) -> Markup:
    """The box of the chosen GPU, in views that show something of it."""
    if not VIEWS[shown.view].of_gpu:
        return Markup()
    return form.number("rank", State(lang=shown.language), hint="0")


def tools_html(shown: Shown) -> Markup:
    """The menu of what leaves the page: its link, the command that starts the job, the slide, the
    picture, and files for programs."""
    view, language = VIEWS[shown.view], shown.language
    copies = {"data_copy_link": True, "data_done": PAGE["copied"][language]}
    command = {"data_set": {"view": "launch"}}
    first = (
        button(SHELL["copy_link"][language], **copies),
        button(SHELL["launch_command"][language], **command),
    )
    pictures = [("save_slide", [(form, form.removeprefix("slide-")) for form in SLIDES])]
    if view.pictures:
        pictures.append(("save_picture", [(form, form) for form in PICTURES]))
    rows = []
    for words, forms in pictures:
        title = SHELL[words][language]
        saves = (button(label.upper(), data_save=form) for form, label in forms)
        rows.append(tag("p", tag("span", title), *saves, role="group", aria_label=title))
    files = ((file, PAGE[f"download_{file}"][language]) for file in view.files)
    rows += [button(label, data_save=file) for file, label in files]
    rows.append(button(SHELL["copy_frame"][language], data_copy_frame=True))
    return fold(
        SHELL["share"][language], tag("div", *first, *rows, class_="items"), kind="menu sharing"
    )


# -- of a layout -----------------------------------------------------------------------------------


def status_html(shown: Shown) -> Markup:
    """What refuses the layout; empty if nothing does."""
    refused = shown.refused
    return Markup() if refused is None else refusal_html(refused, shown.language)


def sizes_html(shown: Shown) -> Markup:
    return derived_html(shown.layout, shown.state, shown.language)


def roles_html(shown: Shown) -> Markup:
    """The tabs of the roles."""
    return roles_bar(shown.state, None if shown.context is None else shown.context.cast)


def line_html(shown: Shown) -> Markup:
    """Whose ranks these are, of a plan."""
    if shown.context is None or not shown.state.roles:
        return Markup()
    return role_line(shown.context, shown.view)


def picture_html(shown: Shown) -> Markup | None:
    """The view; None for a refused layout, as the last picture stays."""
    if shown.context is None:
        return None
    view, language = VIEWS[shown.view], shown.language
    without = no_step_html(view.name, language) if shown.is_without_step else None
    try:
        body = view.html(shown.context) if without is None else without
    except LayoutError as error:  # such as more work than a request may cost: of this view alone
        shown.refusals.append(error)
        body = problem_html(error, language, fixes_of(error, shown.context))
    spec = PictureSpec(shown.context.layout, shown.state)
    return body if view.is_framed else framed(spec, view.name, body)


def details_html(shown: Shown) -> Markup | None:
    """What stands below the view; None for a refused layout."""
    if shown.context is None:
        return None
    details = VIEWS[shown.view].details
    if details is None or shown.is_without_step or shown.refusals:
        return Markup()
    return details(shown.context)


# -- all of them -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Region:
    """A region of the page: its HTML, or None where what the page has stays; of: what brings it
    anew."""

    html: Callable[[Shown], Markup | None]
    of: Literal["layout", "state", "view", "words"] = "words"


def _of_words(name: str, regions: Callable[[str], dict[str, Markup]]) -> Region:
    return Region(lambda shown: regions(shown.language)[name])


REGIONS: dict[str, Region] = {
    "job": Region(job_html, "layout"),
    "foot": Region(foot_html, "layout"),
    "derived": Region(sizes_html, "layout"),
    "roles": Region(roles_html, "layout"),
    "line": Region(line_html, "layout"),
    "status": Region(status_html, "layout"),
    "picture": Region(picture_html, "layout"),
    "details": Region(details_html, "layout"),
    "tour": Region(lambda shown: tour_html(shown.state), "state"),
    "source": Region(lambda shown: source_html(shown.state, shown.language), "state"),
    "nav": Region(nav_html, "view"),
    "subs": Region(subs_html, "view"),
    "tools": Region(tools_html, "view"),
    **{name: _of_words(name, head_html) for name in ("title", "toolbar", "language")},
    **{name: _of_words(name, column_html) for name in ("preset", "group_type", "folds")},
    **{
        size_region(name): _of_words(size_region(name), column_html)
        for name in (*SIZES, *SIZES_OF_SERVERS)
    },
    "rank": Region(rank_html, "view"),
}
"""The regions of the page, by their ids."""


def regions_of(shown: Shown, *kinds: str) -> dict[str, Markup | None]:
    """The regions of some kinds."""
    rows = ((name, region) for name, region in REGIONS.items() if region.of in kinds)
    return {name: region.html(shown) for name, region in rows}
