"""The line above the other views of a plan: the role whose ranks they show, and how other roles
relate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from markupsafe import Markup

from descriptions import ROLES, note_text
from groups.errors import LayoutError
from groups.plan import Role
from groups.plan_faults import hangs_of
from request.answers.hang.case import case_on_page
from request.answers.roles.said import fullest_text
from request.context import Context
from request.words import saying

from ..base.html import button, tag
from .hero import has_roles, lost_text
from .places import chosen_gpu


def role_line(context: Context, view: str) -> Markup:
    """The line; empty for a job of one role."""
    if not has_roles(context) or view == "roles":
        return Markup()
    say = saying(ROLES, context.language)
    role = _shown(context)
    words = "line_chosen" if len(role.gpus) else "line_run"
    first, last = role.placed.first, role.last
    parts: list[object] = [
        say(words, role=role.name, ranks=len(role.placed) - 1, first=first, last=last)
    ]
    for more in _remarks(context, view):
        parts += [" ", more]
    back = button(say("line_back"), class_="opener", data_set={"view": "roles"})
    return tag("p", *parts, " ", back, class_="role-line")


def _remarks(context: Context, view: str) -> list[object]:
    """What the view has to say of all roles; nothing where it refuses its inputs, and says why."""
    try:
        return [*BESIDE[view](context)] if view in BESIDE else []
    except LayoutError:
        return []


def _shown(context: Context) -> Role:
    return context.plan.role(context.cast.shown.name)


def _of_memory(context: Context) -> Iterator[object]:
    yield fullest_text(context)


def _of_nodes(context: Context) -> Iterator[object]:
    yield lost_text(context.plan, chosen_gpu(context), context.language)


def _of_hang(context: Context) -> Iterator[object]:
    """The role that hangs, by the groups and ranks of the evidence, and a button to it if the role
    on screen is not it."""
    case, say = case_on_page(context), saying(ROLES, context.language)
    if case is None:
        return
    known = (group for group in case.log.process_groups if group.complete)
    groups = [group.members for group in known if group.members]
    hangs = hangs_of(context.plan, groups, case.log.missing, case.world)
    shown = [hang for hang in hangs if hang.role.name == context.cast.shown.name]
    for hang in shown or hangs:
        if hang.ranks:
            yield note_text(hang.note, context.language)
        if not shown:
            changes = {"role_edit": f"to {hang.role.name}"}
            label = say("hang_other", role=hang.role.name)
            yield button(label, class_="fix", data_set=changes)


BESIDE: Mapping[str, Callable[[Context], Iterator[object]]] = {
    "memory": _of_memory,
    "nodes": _of_nodes,
    "hosts": _of_nodes,
    "ranks": _of_nodes,
    "hang": _of_hang,
}
"""Remarks of single views beside the role whose ranks they show."""
