"""Inputs that a view draws among its own HTML.

Gradio walks every component of its own around every event, so what only one view asks is no
component: it is plain HTML with a ``data-field``, which the page's script (gradio/form.js) gathers
into the one value `fields` that all views share. The server draws the view anew; the nodes stay,
and with them the focus.

>>> "data-field=" in choice("versus", "auto", [("Own", "auto")], "en")
True
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from descriptions import CONTROLS

from .state import as_text, merged


def choice(name: str, value: object, options: Iterable[tuple[str, str]], language: str) -> str:
    """A list of options, each a label and its value; a value that is none of them is shown too."""
    offered = list(options)
    chosen = as_text(value)
    if chosen not in {own for _, own in offered}:
        offered.append((chosen, chosen))
    items = "".join(
        f'<option value="{escape(own)}"{" selected" if own == chosen else ""}>'
        f"{escape(label)}</option>"
        for label, own in offered
    )
    return _field(name, f"<select {_marks(name)}>{items}</select>", language)


def text(
    name: str, value: object, language: str, *, hint: str = "", sets: str = "", besides: str = ""
) -> str:
    """A box for a short text; ``hint`` says what counts while it is empty, ``sets`` which field
    of the state it is a way to set, if that is not called as its own words are; ``besides`` which
    values of that have a list of their own."""
    hinted = f' placeholder="{escape(hint)}"' if hint else ""
    hinted += f' data-besides="{escape(besides)}"' if besides else ""
    box = (
        f'<input type="text" autocomplete="off" spellcheck="false" value="{escape(as_text(value))}"'
        f"{hinted} {_marks(name, sets or name)}>"
    )
    return _field(name, box, language)


def number(name: str, value: object, language: str, *, hint: str = "") -> str:
    """A box for a number; what is no number is refused in words, not by the box."""
    return text(name, value, language, hint=hint).replace(
        "<input ", '<input inputmode="decimal" ', 1
    )


def area(name: str, value: object, language: str, *, rows: int = 2) -> str:
    """A box for several lines of text."""
    box = (
        f'<textarea rows="{rows}" spellcheck="false" {_marks(name)}>\n{escape(as_text(value))}'
        "</textarea>"
    )
    return _field(name, box, language, "field wide")


def check(name: str, value: object, language: str) -> str:
    """A box to tick; its value is "1" or ""."""
    ticked = " checked" if value in (True, "1") else ""
    box = f'<input type="checkbox"{ticked} {_marks(name)}>'
    return _field(name, box, language, "field tick")


def fields(*inputs: str) -> str:
    """Inputs, and buttons for them, side by side, as many in a line as fit."""
    return f'<div class="fields">{"".join(inputs)}</div>'


def setter(changes: Mapping[str, Any], label: str) -> str:
    """A button that sets fields of views, or controls of the layout, such as a fix of a refusal.

    The page's script sets them.
    """
    said = {name: as_text(value) for name, value in merged(changes).items()}
    marks = f'data-set="{escape(json.dumps(said))}"'
    return f'<button type="button" class="fix" {marks}>{escape(label)}</button>'


def opener(query: str, label: str) -> str:
    """A link to another state of the page, opened in place; `query` is from link.to_query."""
    query = escape(query)
    return f'<a class="opener" href="?{query}" data-query="{query}">{escape(label)}</a>'


def _marks(name: str, sets: str = "") -> str:
    return f'id="field-{name}" data-field="{sets or name}" aria-describedby="field-{name}-help"'


def _field(name: str, box: str, language: str, kind: str = "field") -> str:
    words: Any = CONTROLS[name]
    return (
        f'<div class="{kind}"><label for="field-{name}">{escape(words.label[language])}</label>'
        f'{box}<p class="help" id="field-{name}-help">{escape(words.help[language])}</p></div>'
    )
