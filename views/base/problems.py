"""What is wrong with an input of a view: the sentence, and buttons that mend it, in one box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from markupsafe import Markup

from descriptions import PAGE
from groups import LayoutError

from .form import setter
from .html import button
from .messages import control_label, fix_label, missing_fields, quote_of, sentence

Fixes = Iterable[tuple[Mapping[str, Any], str]]
"""Changes of the view's inputs or of the column, each with the label of its button."""


def problem_html(error: LayoutError, language: str, fixes: Fixes | None = None) -> str:
    """A refusal; without ``fixes`` its alternatives set the fields that they name.

    The page's script marks the box that it is about.
    """
    if fixes is None:
        fixes = [(change, fix_label(change, language)) for change in error.alternatives]
    said = escape(sentence(error, language)) + quote_of(error, language)
    said += "".join(
        " " + leads_html(name, control_label(name, language)) for name in missing_fields(error)
    )
    return _box(said, fixes, language, f' data-control="{escape(error.control or "")}"')


def leads_html(field: str, text: str) -> Markup:
    """A button that opens the fold of an input and goes there."""
    return button(text, class_="fix", data_leads=f"field-{field}")


def said_html(text: str, fixes: Fixes, language: str) -> str:
    """The same of a sentence that is no refusal."""
    return _box(escape(text), fixes, language)


def _box(said: str, fixes: Fixes, language: str, marks: str = "") -> str:
    buttons = "".join(setter(change, label) for change, label in fixes)
    tries = f'<p class="fixes"><span>{PAGE["try"][language]}</span>{buttons}</p>' if buttons else ""
    return f'<div class="refusal" role="alert"{marks}><p>{said}</p>{tries}</div>'
