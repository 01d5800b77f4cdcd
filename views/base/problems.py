"""What is wrong with an input: the sentence, and buttons that mend it, in one box."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from markupsafe import Markup

from descriptions import PAGE
from groups import LayoutError

from .form import setter
from .html import button, tag, together
from .messages import control_label, fix_label, missing_fields, sentence
from .state import OF_MATHS

Result = TypeVar("Result")
Changes = Mapping[str, Any]
"""Changes of a view's inputs or of the column."""


def tried(refusals: list[LayoutError], work: Callable[[], Result]) -> Result | None:
    """What ``work`` comes to; a refusal is noted, under the name that the page has for it."""
    try:
        return work()
    except LayoutError as error:
        refusals.append(error.renamed(OF_MATHS))
        return None


def once(errors: Iterable[LayoutError]) -> list[LayoutError]:
    """What is refused twice alike is said once."""
    return list({error.what: error for error in errors}.values())


def refusal_html(error: LayoutError, language: str) -> Markup:
    """A layout that cannot be: Megatron's words have a line, and the last picture still stands."""
    quote = tag("p", _megatron(error, language), class_="quote") if error.quote else ""
    still = tag("p", PAGE["still_shown"][language], class_="still")
    said, fixes = sentence(error, language), _labelled(error.alternatives, language)
    return _box(said, fixes, language, quote, still, control=error.control)


def problem_html(
    error: LayoutError, language: str, fixes: Iterable[Changes] | None = None
) -> Markup:
    """A refusal inside a view; without ``fixes`` its alternatives set the fields that they name.

    The page's script marks the box that it is about.
    """
    leads = (
        together(" ", leads_html(name, control_label(name, language)))
        for name in missing_fields(error)
    )
    labelled = _labelled(error.alternatives if fixes is None else fixes, language)
    said = together(_worded(error, language), *leads)
    return _box(said, labelled, language, control=error.control)


def refusal_line(error: LayoutError, language: str) -> Markup:
    """A refusal inside a view, without fixes.

    >>> str(refusal_line(LayoutError("no-axes", "a mesh", quote="KeyError: 'x'"), "en"))[:38]
    '<p class="refusal line" role="alert">A'
    """
    return tag("p", _worded(error, language), class_="refusal line", role="alert")


def said_html(text: str, fixes: Iterable[tuple[Changes, str]], language: str) -> Markup:
    """A sentence that is no refusal, with changes and the labels of their buttons."""
    return _box(text, fixes, language)


def leads_html(field: str, text: str) -> Markup:
    """A button that opens the fold of an input and goes there."""
    return button(text, class_="fix", data_leads=f"field-{field}")


def _worded(error: LayoutError, language: str) -> Markup:
    """The sentence, and what Megatron says itself, if it does."""
    quote = together(" ", _megatron(error, language)) if error.quote else ""
    return together(sentence(error, language), quote)


def _megatron(error: LayoutError, language: str) -> Markup:
    return together(PAGE["megatron_says"][language], " ", tag("code", error.quote))


def _labelled(fixes: Iterable[Changes], language: str) -> list[tuple[Changes, str]]:
    return [(fix, fix_label(fix, language)) for fix in fixes]


def _box(
    said: object,
    fixes: Iterable[tuple[Changes, str]],
    language: str,
    *more: object,
    control: str | None = None,
) -> Markup:
    buttons = [setter(change, label) for change, label in fixes]
    tries = tag("p", tag("span", PAGE["try"][language]), *buttons, class_="fixes")
    about = None if control is None else OF_MATHS.get(control, control)
    content = (tag("p", said), tries if buttons else "", *more)
    return tag("div", *content, class_="refusal", role="alert", data_control=about)
