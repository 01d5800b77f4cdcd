"""Refusals on the page: a box with a sentence in the page's language and buttons that mend the
input."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from markupsafe import Markup

from descriptions import (
    PAGE,
)
from groups import LayoutError
from request.context import Context
from request.fixes import fixes_of
from request.inputs import OF_MATHS
from request.words import Changes, control_label, fix_label, missing_fields, sentence

from .form import setter
from .html import button, tag, together


def refusal_html(error: LayoutError, language: str) -> Markup:
    """The box of a refused layout: Megatron's message has a line, and the last picture stays."""
    quote = tag("p", _quote(error, language), class_="quote") if error.quote else ""
    still = tag("p", PAGE["still_shown"][language], class_="still")
    fixes = _labelled(error.alternatives, language)
    return message_html(
        sentence(error, language), fixes, language, quote, still, about=error.control
    )


def problem_html(
    error: LayoutError, language: str, fixes: Iterable[Changes] | None = None
) -> Markup:
    """The box of a refusal inside a view; its alternatives, unless ``fixes`` are passed, set
    fields."""
    words: list[str] = [_worded(error, language)]
    for name in missing_fields(error):
        words += [" ", leads_html(name, control_label(name, language))]
    ways = _labelled(error.alternatives if fixes is None else fixes, language)
    return message_html(together(*words), ways, language, about=error.control)


def refusal_line(error: LayoutError, language: str) -> Markup:
    """A refusal inside a view, without fixes."""
    return tag("p", _worded(error, language), class_="refusal line", role="alert")


def message_html(
    message: object,
    fixes: Iterable[tuple[Changes, str]],
    language: str,
    *more: object,
    about: str | None = None,
) -> Markup:
    """A box with a sentence, and a button for each change with its label; about: the control to
    mark."""
    buttons = [setter(change, label) for change, label in fixes]
    tries = tag("p", tag("span", PAGE["try"][language]), *buttons, class_="fixes")
    marks = {
        "class_": "refusal",
        "role": "alert",
        "data_control": about and OF_MATHS.get(about, about),
    }
    return tag("div", tag("p", message), tries if buttons else "", *more, **marks)


def leads_html(field: str, text: str) -> Markup:
    """A button that opens an input's fold and focuses the input."""
    return button(text, class_="fix", data_leads=f"field-{field}")


def _labelled(fixes: Iterable[Changes], language: str) -> list[tuple[Changes, str]]:
    return [(fix, fix_label(fix, language)) for fix in fixes]


def _worded(error: LayoutError, language: str) -> Markup:
    """The sentence, and the message of Megatron or the server, if it has one."""
    quote = (" ", _quote(error, language)) if error.quote else ()
    return together(sentence(error, language), *quote)


def _quote(error: LayoutError, language: str) -> Markup:
    key = "megatron_says" if error.speaker == "Megatron" else "server_says"
    says = PAGE[key][language].format(who=error.speaker)
    return together(says, " ", tag("code", error.quote))


def or_refused(context: Context, answer: Callable[[Context], Markup]) -> Markup:
    """The view's HTML, or its refusal with the changes of the training that work."""
    try:
        return answer(context)
    except LayoutError as error:
        return problem_html(error, context.language, fixes_of(error, context))
