"""The field that Traffic and Better layouts have of their own, and what both say of a refusal."""

from __future__ import annotations

from typing import Any

from descriptions import CP_CHOICES, MEMORY
from groups import LayoutError
from training.clusters import CLUSTERS

from ..base import form
from ..base.context import Context
from ..base.fixes import Changes, fixes_of_training
from ..base.messages import control_label
from ..base.problems import problem_html
from ..base.state import State, is_empty
from ..base.trained import DEFAULTS


def inputs_html(state: State, language: str) -> str:
    """The field that these views alone have; the model and its training stand in the column."""
    algorithms = [(text[language], name) for name, text in CP_CHOICES.items()]
    chosen = DEFAULTS["cp_algorithm"] if is_empty(state.cp_algorithm) else state.cp_algorithm
    return form.fields(form.choice("cp_algorithm", chosen, algorithms, language))


def refused_html(error: LayoutError, context: Context) -> str:
    """The sentence of a refusal, and the changes that were tried and work."""
    language, fixes = context.language, fixes_of_training(error, context)
    return problem_html(error, language, [(fix, _label(fix, language)) for fix in fixes])


def _label(changes: Changes, language: str) -> str:
    return ", ".join(_change(name, value, language) for name, value in changes.items())


def _change(name: str, value: Any, language: str) -> str:
    """A change as its button says it."""
    words = {**MEMORY, **CP_CHOICES}
    text = words.get(f"{name}_{value}") or words.get(str(value))
    said = CLUSTERS[value].name if name == "cluster" else text[language] if text else value
    return f"{control_label(name, language)} {said}"
