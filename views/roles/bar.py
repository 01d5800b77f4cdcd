"""The roles as tabs above the page, and a menu of edits of the one on screen.

Each is a button that puts a role on screen; what a reader does to a role goes as one instruction
(request/roles/edits.py), which the page's script sends from boxes with a ``data-edit``.
"""

from __future__ import annotations

from markupsafe import Markup

from descriptions import ROLES
from groups import LayoutError
from request.roles.pages import Cast, cast_of
from request.roles.text import ALL, kept_words
from request.state import State
from request.words import saying

from ..base import form
from ..base.html import button, tag, together

TONES = 5
"""The number of colours of roles, which repeat."""


def roles_bar(state: State, known: Cast | None = None) -> Markup:
    """The tabs; empty for a plan of one role, and for an unreadable text. known: the roles of the
    state, where they were read before."""
    if not state.roles:
        return Markup()
    try:
        cast = known or cast_of(state.changed({"role_edit": ""}))
        tabs = [_tab(cast, at, state.language) for at in range(len(cast.members))]
    except LayoutError:
        return Markup()
    say = saying(ROLES, state.language)
    tabs.append(button(say("add"), class_="add", tabindex=-1, data_set={"role_edit": "add"}))
    row = tag("div", *tabs, class_="tabs", role="group", aria_label=say("tabs"))
    return together(row, _menu(cast, state.language))


def _tab(cast: Cast, at: int, language: str) -> Markup:
    member, is_here = cast.members[at], at == cast.at
    return button(
        together(
            swatch(at), tag("b", member.name), " ", tag("span", gpus_text(member.count, language))
        ),
        data_set={"role_edit": f"to {member.name}"},
        aria_pressed=str(is_here).lower(),
        tabindex=0 if is_here else -1,
    )


def swatch(at: int) -> Markup:
    """The colour of a role, by its place among them."""
    return tag("i", class_=f"swatch role{at % TONES}", aria_hidden="true")


def gpus_text(count: int, language: str) -> str:
    return ROLES["gpu" if count == 1 else "gpus"][language].format(count=f"{count:,}")


def _menu(cast: Cast, language: str) -> Markup:
    """The edits of the role on screen."""
    member, say = cast.shown, saying(ROLES, language)
    first = ",".join(f"{a}-{b}" for a, b in member.spans) if member.gpus else member.first
    kept = "+".join(kept_words(member.kept))
    names = {"": say("keeps_nothing"), "weights": say("keeps_weights"), ALL: say("keeps_all")}
    names = {**names, kept: names.get(kept, kept)}
    choices = (tag("option", name, value=one, selected=one == kept) for one, name in names.items())
    turns = (
        button(say("earlier"), data_set={"role_edit": "earlier"}, disabled=cast.at == 0),
        button(
            say("later"),
            data_set={"role_edit": "later"},
            disabled=cast.at == len(cast.members) - 1,
        ),
    )
    rows = (
        _row(say("name"), _box("name", member.name)),
        _row(say("first"), _box("first", first, inputmode="numeric")),
        _row(say("keeps"), tag("select", *choices, data_edit="keep")),
        tag("p", tag("span", say("turn")), *turns),
        button(say("remove", role=member.name), data_set={"role_edit": "remove"}),
    )
    items = tag("div", *rows, class_="items")
    return tag("details", tag("summary", say("edit", role=member.name)), items, class_="menu")


def _row(label: str, box: Markup) -> Markup:
    return tag("label", tag("span", label), box)


def _box(edit: str, value: object, **marks: object) -> Markup:
    fixed = {"type": "text", "autocomplete": "off", "spellcheck": "false"}
    return tag("input", value=value, data_edit=edit, **fixed, **marks)


def roles_inputs(start: State) -> tuple[Markup, ...]:
    """The column's inputs: all roles as one text, and a button that adds one."""
    say = saying(ROLES, start.language)
    adds = button(say("add"), class_="fix", data_set={"role_edit": "add"})
    hint = "rollout@0-15:vllm,tp=2"
    return tag("p", say("fold"), class_="source"), form.text("roles", start, hint=hint), adds
