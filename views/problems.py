"""What is wrong with an input of a view, beside it: the sentence, and buttons that mend it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from descriptions import PAGE
from groups import LayoutError

from .form import setter
from .messages import fix_label, refusal_line


def problem_html(error: LayoutError, language: str) -> str:
    """A refusal of one input; its alternatives set the fields of the view."""
    labels = [(change, fix_label(change, language)) for change in error.alternatives]
    return (
        f'<div class="problem">{refusal_line(error, language)}{fixes_html(labels, language)}</div>'
    )


def said_html(text: str, fixes: Iterable[tuple[Mapping[str, Any], str]], language: str) -> str:
    """The same of a sentence that is no refusal: changes of fields, each with its label."""
    line = f'<p class="refusal line" role="alert">{escape(text)}</p>'
    return f'<div class="problem">{line}{fixes_html(fixes, language)}</div>'


def fixes_html(fixes: Iterable[tuple[Mapping[str, Any], str]], language: str) -> str:
    """One button a change; nothing if there is none."""
    buttons = "".join(setter(change, label) for change, label in fixes)
    return f'<p class="fixes"><span>{PAGE["try"][language]}</span>{buttons}</p>' if buttons else ""
