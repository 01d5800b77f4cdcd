"""The Roles view: the cluster with each GPU's roles, the meshes of all, one step over time."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import ROLES, joined
from formats.documents.tables import Table
from formats.roles.facts import COLUMNS, rank_rows
from render.marks import Scene
from request.answers.roles.api import roles as roles_endpoint
from request.answers.roles.said import fullest_text
from request.context import Context
from request.roles.edits import edited
from request.roles.pages import cast_of

from ..base import form
from ..base.html import heading, tag, together
from ..base.problems import or_refused
from ..base.view import TABLES, Pictures, View
from ..parts.job import spec_of
from .hero import answer_text, has_roles, lost_text, plan_html, role_pictures
from .places import chosen_gpu


def roles_html(context: Context) -> Markup:
    """The plan; for a job of one role, an example with another."""
    if has_roles(context):
        return plan_html(context, spec_of(context))
    return or_refused(context, _example)


def _example(context: Context) -> Markup:
    other, language = with_another(context), context.language
    shown = tag("div", plan_html(other, spec_of(other), is_still=True), class_="still")
    question = ROLES["question"][language].format(gpu=chosen_gpu(other))
    head = heading(question, tag("p", ROLES["one_role"][language]))
    return together(head, form.example(language, {"role_edit": "add"}, shown))


def with_another(context: Context) -> Context:
    """The context with a second role added."""
    state = edited(context.state.changed({"role_edit": "add"}))
    return Context.of(cast_of(state).to(context.cast.shown.name).state())


def pictures(context: Context) -> Pictures:
    return role_pictures(context if has_roles(context) else with_another(context))


def summary(context: Context) -> str:
    """The text below the title of a slide."""
    shown, language = context if has_roles(context) else with_another(context), context.language
    gpu = chosen_gpu(shown)
    sentences = (
        answer_text(shown.plan, gpu, language),
        lost_text(shown.plan, gpu, language),
        fullest_text(shown),
    )
    return joined(filter(None, sentences), language)


def roles_csv(context: Context) -> str:
    """Every rank of every role, as the command roles prints it."""
    plan = (context if has_roles(context) else with_another(context)).plan
    return "".join(Table("roles", COLUMNS, [*rank_rows(plan)]).printed("csv"))


def on_slide(context: Context) -> Pictures:
    """The cluster and the step; there is no room for the meshes."""
    drawn: list[tuple[str, Scene]] = [*pictures(context)]
    return [drawn[0], drawn[-1]]


VIEW = View(
    "roles",
    "between",
    roles_html,
    pictures,
    ROLES["title"],
    summary,
    slide=on_slide,
    files=("roles", *TABLES),
    place=1,
    endpoints=(roles_endpoint,),
    commands=("roles",),
)
