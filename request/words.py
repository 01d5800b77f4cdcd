"""Refusals, controls and their values in words of the page's language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from descriptions import (
    ALGORITHM_TEXTS,
    CALLED,
    CONTROLS,
    CP_CHOICES,
    MACHINE,
    MEMORY,
    PAGE,
    REFUSALS,
    SHORT_LABELS,
    SPANS,
    TYPES,
    VIEWS,
    WORK,
    Text,
    close_up,
    has_text,
    with_reason,
)
from formats.values import Document, Facts
from groups import LayoutError
from groups.frameworks import FRAMEWORKS, Framework
from groups.inputs import SWITCH, number_in
from training.clusters import CLUSTERS
from training.described import OWN_NAME
from training.machine import Machine
from training.models import MODELS, PublishedModel
from training.pipeline import SCHEDULES
from training.recompute import WORDS

from .inputs import FIELDS, OF_MATHS

Result = TypeVar("Result")


Changes = Facts
"""Changes of a view's inputs or of the column."""


SHORT = ("tp", "pp", "cp", "dp", "ep", "etp", "edp", "vpp", "dcp", "moe_dp")
"""Controls that sentences call by their short names."""


NAMED: dict[str, Mapping[str, Framework | Machine | PublishedModel]] = {
    "framework": FRAMEWORKS,
    "cluster": CLUSTERS,
    "model": MODELS,
}
"""Controls whose choices have display names."""


def sentence(error: LayoutError, language: str) -> str:
    """The sentence of a refusal in the page's language.

    >>> from groups import fit
    >>> try: fit(16, tp=3)
    ... except LayoutError as error: print(sentence(error, "en"))
    tp 3 × pp 1 × cp 1 = 3 does not divide 16 GPUs.
    """
    is_translated = has_text(REFUSALS[error.code], language)
    words = _translated(error, language) if language != "en" and is_translated else _english(error)
    return _as_written(words, error)


_PARTS = r"(?<!\w)'[^']*(?:'|…)|[\[(][\d, -]+[\])…]| x |(?<![\w.,:/-])\d{4,}(?![\w:/]|[.,-]\w)"
"""A quotation, a list or a shape; a multiplication sign; or a whole number."""


def _as_written(text: str, error: LayoutError) -> str:
    """The sentence with × and with commas in its numbers, as everywhere on the page; ranks, which
    are names, and quoted input stay unchanged.

    >>> from groups import fit
    >>> try: fit(1048576, tp=3072)
    ... except LayoutError as error: print(sentence(error, "en"))
    tp 3,072 × pp 1 × cp 1 = 3,072 does not divide 1,048,576 GPUs.
    """
    texts = {name: text for name, text in error.facts.items() if isinstance(text, str)}
    ranks = {str(error.facts.get(name)) for name in ("rank", "first", "last", "other")}
    kept = {*texts.values(), *ranks}

    def written(match: re.Match[str]) -> str:
        part = match[0]
        if part == " x ":
            return " × "
        return f"{int(part):,}" if part.isdecimal() and part not in kept else part

    typed = texts.get("value", "")
    parts = _PARTS if typed.isdecimal() or not typed else f"{re.escape(typed)}|{_PARTS}"
    return re.sub(parts, written, text, flags=re.ASCII)


_NAMED = re.compile(r"\b[a-z_]+(?= [0-9])")
"""Names of sizes, each before its size."""


def _english(error: LayoutError) -> str:
    """The error's own sentence with the labels of its controls, and the rule if no button mends
    it."""
    text = error.what
    control = str(error.facts.get("control", ""))
    names = {control, *missing_fields(error), *re.findall(r"[a-z]+_[a-z_]+", text)} - {""}
    names |= {*_NAMED.findall(str(error.facts.get("of", "")))}
    if names:  # what a person wrote is quoted, and stays
        known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        label = partial(control_label, language="en")
        text = re.sub(rf"(?<!['\"])\b({known})\b", lambda match: label(match[0]), text)
    if error.code == "not-a-multiple" and control not in SHORT:  # of a number, be its name a plural
        text = re.sub(r"(?= [0-9]+ is not )", ":", text, count=1)
    parts = [text] if error.alternatives or not error.why else [text, error.why]
    return " ".join(f"{_capitalized(part, error)}." for part in parts)


def _capitalized(text: str, error: LayoutError) -> str:
    """A sentence with its first letter large, unless it begins with an axis or a name."""
    names = (value.strip("'") for value in error.facts.values() if isinstance(value, str))
    keeps = text.split(" ")[0] in SHORT or text.startswith(tuple(filter(None, names)))
    return text if keeps else text[0].upper() + text[1:]


def missing_fields(error: LayoutError) -> Sequence[str]:
    """Fields that the user must fill in."""
    fields = error.facts.get("missing", ())
    return fields if isinstance(fields, tuple) else ()


def _translated(error: LayoutError, language: str) -> str:
    """The catalogue's sentence, filled in with translated facts."""
    facts: Document = dict(error.facts)
    if "control" in facts:
        facts["control"] = control_label(str(facts["control"]), language)
    if facts.get("machine") == OWN_NAME:
        facts["machine"] = MACHINE["own_within"][language]
    if "of" in facts:
        facts["of"] = _NAMED.sub(lambda name: control_label(name[0], language), str(facts["of"]))
    if "minimum" in facts:
        span = SPANS["up" if error.facts["maximum"] is None else "range"]
        facts["span"] = span[language].format(**facts)
    if missing := missing_fields(error):
        names = [control_label(name, language) for name in missing]
        facts["missing"] = PAGE["and_list"][language].join(names)
    what = str(facts.get("what", ""))
    whose = re.sub("^the (order|layout)", lambda match: WORK[match[1]][language], what)
    facts["what"] = WORK[what][language] if what in WORK else whose
    if known := CALLED.get(str(facts.get("framework"))):
        facts["framework"] = known[language]
    return close_up(REFUSALS[error.code][language].format(**with_reason(facts, language)))


def control_label(control: str, language: str) -> str:
    """The label of a control on the page; axes keep their short names."""
    control = OF_MATHS.get(control, control)
    has_label = control in CONTROLS and control not in SHORT
    return CONTROLS[control].label[language] if has_label else control


def within_sentence(label: str) -> str:
    """A label in the form that it has inside a sentence."""
    return label[0].lower() + label[1:] if label[1:2].islower() else label


def fix_label(fix: Facts, language: str) -> str:
    """The label of a fix's button; it omits fields that the fix empties beside the one that it
    sets.

    >>> fix_label({"tp": 2, "pp": 4}, "en"), fix_label({"zero": 1, "schedule": ""}, "en")
    ('tp 2, pp 4', 'ZeRO stage: 1: optimizer')
    """
    named = {OF_MATHS.get(name, name): value for name, value in fix.items()}
    sets = {name: value for name, value in named.items() if value not in ("", None, ())}
    changes = (change_label(name, value, language) for name, value in (sets or named).items())
    return PAGE["and_list"][language].join(changes)


def change_label(name: str, value: Any, language: str) -> str:
    """A field with its new value, as the page writes both."""
    label = SHORT_LABELS[name][language] if name in SHORT_LABELS else control_label(name, language)
    shown = value_text(name, value, language)
    if _choice_words(name, value):
        return MEMORY["change"][language].format(name=label, value=shown)
    return f"{label} {shown}"


def _choice_words(name: str, value: Any) -> Text | None:
    """The display name of a choice of the model's training, or of an algorithm."""
    if name == "cp_algorithm":
        return CP_CHOICES.get(value)
    if name == "collective_algorithm" and value in ALGORITHM_TEXTS:
        return ALGORITHM_TEXTS[value].does
    if isinstance(value, bool) and name in FIELDS and not FIELDS[name].row.input.ticked:
        value = "on" if value else "off"
    if name == "recompute" and isinstance(value, str) and value not in ("", *WORDS):
        return Text(*[value.replace(",", ", ")] * 2)
    return MEMORY.get(f"{name}_{value}") or (MEMORY[value] if value in ("on", "off") else None)


def value_text(control: str, value: Any, language: str) -> str:
    """A control's value as the page shows it."""
    words = _choice_words(control, value)
    if words:
        return words[language]
    if value in NAMED.get(control, ()):
        return str(NAMED[control][value].name)
    if control in ("schedule", "against") and isinstance(value, str) and value in SCHEDULES:
        return SCHEDULES[value].title
    if control == "view" and value in VIEWS:
        return VIEWS[value][language]
    if control == "group_type" and value in TYPES:
        return TYPES[value].title[language]
    is_ticked = control in FIELDS and FIELDS[control].row.input.ticked
    if isinstance(value, bool) or (is_ticked and value in SWITCH):
        return PAGE["on" if SWITCH.get(value, value) else "off"][language]
    if isinstance(value, (tuple, list)):
        value = FIELDS[control].row.text(value) if control in FIELDS else ", ".join(map(str, value))
    if control in FIELDS and FIELDS[control].row.kind == "names":
        value = value.replace(",", ", ")
    if value in ("", None):
        return PAGE["empty"][language]
    number = number_in(value) if isinstance(value, str) else value
    return f"{number:,}" if isinstance(number, int) else str(value)


def tried(refusals: list[LayoutError], work: Callable[[], Result]) -> Result | None:
    """The result of ``work``; a refusal is appended, with the page's name of its control."""
    try:
        return work()
    except LayoutError as error:
        refusals.append(error.renamed(OF_MATHS))
        return None


def each_once(errors: Iterable[LayoutError]) -> list[LayoutError]:
    """Refusals without duplicates."""
    return list({error.what: error for error in errors}.values())


def saying(words: Mapping[str, Text], language: str) -> Callable[..., str]:
    """A function from a name to its text in a catalogue, in one language, filled in with facts."""

    def say(name: str, /, **facts: object) -> str:
        text = words[name][language]
        return text.format(**facts) if facts else text

    return say
