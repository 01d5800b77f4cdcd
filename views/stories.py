"""Ways into the page: the menu of examples, and the tour.

A story is a link; what no link holds (a hang's evidence, machines by name) it brings along.
"""

from __future__ import annotations

from markupsafe import Markup

from descriptions import ENTRIES, SHELL, STORIES, TOUR_WORDS, tour
from request.state import State
from request.words import saying

from .base.html import button, fold, tag
from .parts.examples import BRINGS, LINKS


def examples_html(language: str) -> str:
    """The menu of examples: the tour, then stories."""
    start = button(ENTRIES["tour"][language], id="tour-start", **_to_step(0, "next"))
    links = [start]
    for name, label in STORIES.items():
        marks = {"data_query": LINKS[name], "data_with": BRINGS.get(name)}
        links.append(tag("a", label[language], href=f"?{LINKS[name]}", **marks))
    return fold(SHELL["examples"][language], tag("div", *links, class_="items"), kind="menu")


def tour_html(state: State) -> Markup:
    """The tour beside the picture: its paragraphs, the one that is read marked, and buttons; empty
    outside of the tour.

    It opens when somebody asks for it, and client/tour.js leads back to where it was opened.
    """
    step, say = state.values["tour"], saying(TOUR_WORDS, state.language)
    steps = tour()
    if not isinstance(step, int) or step not in range(len(steps)):
        return Markup()
    ways = {"back": _to_step(step - 1, "back"), "next": _to_step(step + 1, "next")}
    ways["leave"] = {"data_set": {"tour": ""}, "data_leads": "main"}
    buttons = (
        button(say(name), id=f"tour-{name}", aria_describedby="tour-text", **marks)
        for name, marks in ways.items()
    )
    paragraphs = (
        tag(
            "li",
            tag("p", one.text[state.language], id="tour-text" if number == step else None),
            aria_current="step" if number == step else None,
            **_link_of(number),
        )
        for number, one in enumerate(steps)
    )
    place = tag("small", say("place", step=step + 1, steps=len(steps)))
    return tag(
        "section", tag("ol", *paragraphs), tag("div", place, *buttons), aria_label=say("label")
    )


def _link_of(step: int) -> dict[str, object]:
    return {"data_query": tour()[step].query, "data_with": {"tour": str(step)}}


def _to_step(step: int, way: str) -> dict[str, object]:
    """Attributes of a button that goes to a step; the focus moves to the button that continues."""
    steps = tour()
    if step not in range(len(steps)):
        return {"disabled": True}
    is_end = step == (len(steps) - 1 if way == "next" else 0)
    on = {"next": "back", "back": "next"}[way] if is_end else way
    return {**_link_of(step), "data_leads": f"tour-{on}"}
