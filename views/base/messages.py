"""LayoutError -> the sentence and the buttons that stand beside the controls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from descriptions import CONTROLS, PAGE, REFUSALS, SHORT_LABELS, SPANS, TYPES, WORK
from groups import LayoutError
from groups.conventions import CONVENTIONS

from . import form
from .state import OF_MATHS

SHORT = ("tp", "pp", "cp", "dp", "ep", "etp", "edp", "vpp")
"""Controls that keep their short name in a sentence."""


def sentence(error: LayoutError, language: str) -> str:
    """The refusal in the language of the page.

    >>> from groups import fit
    >>> try: fit(16, tp=3)
    ... except LayoutError as error: print(sentence(error, "en"))
    tp 3 × pp 1 × cp 1 = 3 does not divide 16 GPUs.
    """
    return _english(error) if language == "en" else _translated(error, language)


def _english(error: LayoutError) -> str:
    """As the error says it, its controls by their labels; why, where no button mends it."""
    said = error.what.replace(" x ", " × ")
    control = str(error.facts.get("control", ""))
    names = {control, *missing_fields(error), *re.findall(r"[a-z]+_[a-z_]+", said)} - {""}
    if names:  # what a person wrote is quoted, and stays
        known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        label = partial(control_label, language="en")
        said = re.sub(rf"(?<!['\"])\b({known})\b", lambda found: label(found[0]), said)
    parts = [said] if error.alternatives or not error.why else [said, error.why]
    return " ".join(f"{_capitalized(part, error)}." for part in parts)


def _capitalized(said: str, error: LayoutError) -> str:
    """A sentence with its first letter large, unless it begins with an axis or a name."""
    names = (value.strip("'") for value in error.facts.values() if isinstance(value, str))
    keeps = said.split(" ")[0] in SHORT or said.startswith(tuple(filter(None, names)))
    return said if keeps else said[0].upper() + said[1:]


def missing_fields(error: LayoutError) -> Sequence[str]:
    """Fields that are to be given."""
    found = error.facts.get("missing", ())
    return found if isinstance(found, tuple) else ()


def _translated(error: LayoutError, language: str) -> str:
    facts: dict[str, Any] = {name: _number(value) for name, value in error.facts.items()}
    if "control" in facts:
        facts["control"] = control_label(error.facts["control"], language)
    if "minimum" in facts:
        facts["span"] = SPANS["up" if error.facts["maximum"] is None else "range"].format(**facts)
    if missing := missing_fields(error):
        names = [control_label(name, language) for name in missing]
        facts["missing"] = PAGE["and_list"][language].join(names)
    facts["what"] = WORK.get(facts.get("what"), facts.get("what"))
    for name in ("sizes", "levels"):
        if isinstance(facts.get(name), str):
            facts[name] = facts[name].replace(" x ", " × ")
    return REFUSALS[error.code].format(**facts)


def control_label(control: str, language: str) -> str:
    """The name of a control as the page writes it; axes keep their short names."""
    control = OF_MATHS.get(control, control)
    if control in SHORT or control not in CONTROLS:
        return control
    return CONTROLS[control].label[language]


def refusal_html(error: LayoutError, language: str) -> str:
    """An alert: the sentence, one button a fix, Megatron's words, and what the picture is."""
    buttons = "".join(form.setter(fix, fix_label(fix, language)) for fix in error.alternatives)
    fixes = f'<p class="fixes"><span>{PAGE["try"][language]}</span>{buttons}</p>' if buttons else ""
    quote = (
        f'<p class="quote">{PAGE["megatron_says"][language]} <code>{escape(error.quote)}</code></p>'
        if error.quote
        else ""
    )
    control = OF_MATHS.get(error.control or "", error.control or "")
    return (
        f'<div class="refusal" role="alert" data-control="{escape(control)}">'
        f"<p>{escape(sentence(error, language))}</p>{fixes}{quote}"
        f'<p class="still">{PAGE["still_shown"][language]}</p></div>'
    )


def refusal_line(error: LayoutError, language: str) -> str:
    """A refusal inside a view, without fixes: the sentence, and Megatron's words if there are any.

    >>> refusal_line(LayoutError("no-axes", "a mesh", quote="KeyError: 'x'"), "en")[:38]
    '<p class="refusal line" role="alert">A'
    """
    said = escape(sentence(error, language)) + quote_of(error, language)
    return f'<p class="refusal line" role="alert">{said}</p>'


def quote_of(error: LayoutError, language: str) -> str:
    """What Megatron says itself, if it does, to stand behind the sentence."""
    if not error.quote:
        return ""
    return f" {PAGE['megatron_says'][language]} <code>{escape(error.quote)}</code>"


def fix_label(fix: Mapping[str, Any], language: str) -> str:
    """
    >>> fix_label({"tp": 2, "pp": 4}, "en"), fix_label({"nodes": 3}, "en")
    ('tp 2, pp 4', 'Nodes 3')
    """
    return ", ".join(
        f"{_short(name, language)} {_value(OF_MATHS.get(name, name), value, language)}"
        for name, value in fix.items()
    )


def _short(name: str, language: str) -> str:
    short = SHORT_LABELS.get(OF_MATHS.get(name, name))
    return short[language] if short else control_label(name, language)


def _value(control: str, value: Any, language: str) -> str:
    """A control's value as the page shows it."""
    if control == "framework":
        return CONVENTIONS[value].name
    if control == "group_type":
        return TYPES[value].title[language]
    if isinstance(value, bool):
        return PAGE["on" if value else "off"][language]
    if isinstance(value, (tuple, list)):
        value = ("x" if control == "levels" else ", ").join(map(str, value))
    if value in ("", None):
        return PAGE["empty"][language]
    return str(_number(value))


def _number(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
