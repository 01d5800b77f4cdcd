"""A pasted text of several roles: its plan, its open settings, and a button that opens it."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import ROLES, counted, note_text
from formats.roles import PlanRead, has_roles, read_plan
from formats.roles.warned import warnings_of
from groups import LayoutError
from request.link import state_texts
from request.named.text import answers_of
from request.roles.opened import state_of_plan
from request.state import State
from request.words import saying, sentence

from ..base import form
from ..base.html import tag, together
from ..base.problems import message_html

MOST_NOTES = 12
"""The most notes of a plan that are listed."""


def plan_pasted(state: State) -> Markup:
    """The plan of a text with several roles; empty for a text of one."""
    if not has_roles(state.paste):
        return Markup()
    box = form.fields(form.text("plan_given", state, hint="trainer.nnodes=4"))
    try:
        read = read_plan(state.paste, answers_of(state.plan_given))
    except LayoutError as error:
        return together(_question(error, state), box)
    return together(_verdict(read, state), box if state.plan_given else "")


def _question(error: LayoutError, state: State) -> Markup:
    """A setting that must be answered first, with values that work as buttons."""
    known = answers_of(state.plan_given)
    fixes = []
    for fix in error.alternatives:
        every = known | {name: str(value) for name, value in fix.items()}
        settings = ";".join(f"{name}={value}" for name, value in every.items())
        label = ", ".join(f"{name} {value}" for name, value in fix.items())
        fixes.append(({"plan_given": settings}, label))
    return message_html(sentence(error, state.language), fixes, state.language, about="plan_given")


def _verdict(read: PlanRead, state: State) -> Markup:
    say, language = saying(ROLES, state.language), state.language
    opened = state_texts(state_of_plan(read, state.changed({"view": "roles", "preset": ""})))
    now = state_texts(state)
    changes = {name: text for name, text in opened.items() if text != now[name]}
    plan = read.plan
    roles = say("semicolon").join(
        say("of_role", role=role.name, gpus=counted(role.layout.world_size, "gpu", language))
        for role in plan.turns
    )
    gpus = f"{plan.nodes:,} × {plan.gpus_per_node:,}"
    sentence = say("plan_reads", gpus=gpus, roles=roles)
    button = form.setter(changes, say("plan_opens"))
    notes = [note_text(note, language) for note in (*warnings_of(read), *read.assumed)]
    listed = tag("ul", *(tag("li", note) for note in notes[:MOST_NOTES]), class_="plan-notes")
    use = tag("p", button, class_="fixes")
    lines = (tag("p", sentence), use, listed if notes else "")
    return tag("div", *lines, class_="verdict", role="status")
