"""LayoutError -> the sentence, and what its fixes are called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from descriptions import (
    CALLED,
    CONTROLS,
    CP_CHOICES,
    MEMORY,
    PAGE,
    REFUSALS,
    SHORT_LABELS,
    SPANS,
    TYPES,
    WORK,
    Text,
    has_text,
)
from groups import LayoutError
from groups.conventions import CONVENTIONS
from training.clusters import CLUSTERS
from training.models import MODELS
from training.pipeline import SCHEDULES

from .state import OF_MATHS, parse_number

SHORT = ("tp", "pp", "cp", "dp", "ep", "etp", "edp", "vpp")
"""Controls that keep their short name in a sentence."""

NAMED: Mapping[str, Mapping[str, Any]] = {
    "framework": CONVENTIONS,
    "cluster": CLUSTERS,
    "model": MODELS,
}
"""Choices whose values have names of their own."""


def sentence(error: LayoutError, language: str) -> str:
    """The refusal in the language of the page.

    >>> from groups import fit
    >>> try: fit(16, tp=3)
    ... except LayoutError as error: print(sentence(error, "en"))
    tp 3 × pp 1 × cp 1 = 3 does not divide 16 GPUs.
    """
    is_said = has_text(REFUSALS[error.code], language)
    return _translated(error, language) if language != "en" and is_said else _english(error)


def _english(error: LayoutError) -> str:
    """As the error says it, its controls by their labels; why, where no button mends it."""
    said = error.what.replace(" x ", " × ")
    control = str(error.facts.get("control", ""))
    names = {control, *missing_fields(error), *re.findall(r"[a-z]+_[a-z_]+", said)} - {""}
    if names:  # what a person wrote is quoted, and stays
        known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        label = partial(control_label, language="en")
        said = re.sub(rf"(?<!['\"])\b({known})\b", lambda match: label(match[0]), said)
    parts = [said] if error.alternatives or not error.why else [said, error.why]
    return " ".join(f"{_capitalized(part, error)}." for part in parts)


def _capitalized(said: str, error: LayoutError) -> str:
    """A sentence with its first letter large, unless it begins with an axis or a name."""
    names = (value.strip("'") for value in error.facts.values() if isinstance(value, str))
    keeps = said.split(" ")[0] in SHORT or said.startswith(tuple(filter(None, names)))
    return said if keeps else said[0].upper() + said[1:]


def missing_fields(error: LayoutError) -> Sequence[str]:
    """Fields that are to be given."""
    fields = error.facts.get("missing", ())
    return fields if isinstance(fields, tuple) else ()


def _translated(error: LayoutError, language: str) -> str:
    facts: dict[str, Any] = {name: _number(value) for name, value in error.facts.items()}
    if "control" in facts:
        facts["control"] = control_label(error.facts["control"], language)
    if "minimum" in facts:
        facts["span"] = SPANS["up" if error.facts["maximum"] is None else "range"]
        facts["span"] = facts["span"][language].format(**facts)
    if missing := missing_fields(error):
        names = [control_label(name, language) for name in missing]
        facts["missing"] = PAGE["and_list"][language].join(names)
    what = str(facts.get("what", ""))
    facts["what"] = re.sub("^the (order|layout)", lambda match: WORK[match[1]][language], what)
    if what in WORK:
        facts["what"] = WORK[what][language]
    if known := CALLED.get(str(facts.get("framework"))):
        facts["framework"] = known[language]
    for name in ("sizes", "levels"):
        if isinstance(facts.get(name), str):
            facts[name] = facts[name].replace(" x ", " × ")
    said = REFUSALS[error.code][language].format(**facts)
    return re.sub("(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])", "", said)


def control_label(control: str, language: str) -> str:
    """The name of a control as the page writes it; axes keep their short names."""
    control = OF_MATHS.get(control, control)
    if control in SHORT or control not in CONTROLS:
        return control
    return CONTROLS[control].label[language]


def within_sentence(label: str) -> str:
    """A label as a sentence goes on with it.

    >>> within_sentence("Global batch size"), within_sentence("GPUs per node")
    ('global batch size', 'GPUs per node')
    """
    return label[0].lower() + label[1:] if label[1:2].islower() else label


def fix_label(fix: Mapping[str, Any], language: str) -> str:
    """A change as its button says it; what it empties goes without saying beside what it sets.

    >>> fix_label({"tp": 2, "pp": 4}, "en"), fix_label({"nodes": 3}, "en")
    ('tp 2, pp 4', 'Nodes 3')
    >>> fix_label({"zero": 1, "schedule": ""}, "en")
    'ZeRO stage: 1: optimizer'
    """
    named = {OF_MATHS.get(name, name): value for name, value in fix.items()}
    sets = {name: value for name, value in named.items() if value not in ("", None, ())}
    changes = (change_label(name, value, language) for name, value in (sets or named).items())
    return PAGE["and_list"][language].join(changes)


def change_label(name: str, value: Any, language: str) -> str:
    """A field with its new value, as the page writes both."""
    short = SHORT_LABELS.get(name)
    label = short[language] if short else control_label(name, language)
    said = value_text(name, value, language)
    if _choice_words(name, value):
        return MEMORY["change"][language].format(name=label, value=said)
    return f"{label} {said}"


def _choice_words(name: str, value: Any) -> Text | None:
    """What a choice of the model's training is called."""
    if name == "cp_algorithm":
        return CP_CHOICES.get(value)
    return MEMORY.get(f"{name}_{value}") or (MEMORY[value] if value in ("on", "off") else None)


def value_text(control: str, value: Any, language: str) -> str:
    """A control's value as the page shows it.

    >>> value_text("framework", "megatron", "en"), value_text("global_batch", "2048", "en")
    ('Megatron Core', '2,048')
    """
    words = _choice_words(control, value)
    if words:
        return words[language]
    names: Mapping[str, Any] = NAMED.get(control, {})
    if value in names:
        return str(names[value].name)
    if control in ("schedule", "against") and value in SCHEDULES:
        return SCHEDULES[value].title
    if control == "group_type":
        return TYPES[value].title[language]
    if isinstance(value, bool):
        return PAGE["on" if value else "off"][language]
    if isinstance(value, (tuple, list)):
        value = ("x" if control == "levels" else ", ").join(map(str, value))
    if value in ("", None):
        return PAGE["empty"][language]
    number = parse_number(value)
    return str(_number(number if isinstance(number, int) else value))


def _number(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
