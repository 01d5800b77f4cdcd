"""What the Traffic and the Search view are asked, read into a question; and their shared inputs.

The model, the batch and how it is trained are the Memory view's own fields and the column; these
views add the cluster and how keys and values go round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from descriptions import CP_CHOICES, MEMORY
from groups import LayoutError
from groups.errors import not_a_choice
from training.clusters import CLUSTERS, Cluster
from training.traffic.demands import CP_ALGORITHMS

from ..base import form
from ..base.messages import control_label
from ..base.model import model_name
from ..base.problems import problem_html
from ..base.resolve import Layout
from ..base.state import State, is_empty
from ..memory.inputs import Changes, Problem, fixes_of, problem_of

START = "p2p"
"""How keys and values go round where nothing is chosen."""


@dataclass(frozen=True)
class Question:
    """A problem of the Memory view, and how keys and values go round."""

    problem: Problem
    cp_algorithm: str

    @property
    def cluster(self) -> Cluster:
        return self.problem.cluster

    @property
    def name(self) -> str:
        """What the model is called."""
        return model_name(self.problem.chosen)


def question_of(layout: Layout, state: State) -> Question:
    """What is asked, checked field by field.

    Errors: LayoutError about the field or the control that cannot be.
    """
    algorithm = START if is_empty(state.cp_algorithm) else state.cp_algorithm
    if not isinstance(algorithm, str) or algorithm not in CP_ALGORITHMS:
        instead = [{"cp_algorithm": name} for name in CP_ALGORITHMS[:3]]
        raise not_a_choice("cp_algorithm", algorithm, CP_ALGORITHMS, instead)
    return Question(problem_of(layout, state), algorithm)


def fixes_of_question(error: LayoutError, layout: Layout, state: State) -> list[Changes]:
    """The changes with which a refused question was tried and is none any more."""
    if error.control == "cp_algorithm":
        return [dict(changes) for changes in error.alternatives]
    if error.code == "experts-need-sequence-parallel":
        return [{"sequence_parallel": "on"}]
    return fixes_of(error, layout, state)


# -- HTML ----------------------------------------------------------------------------------------


def inputs_html(state: State, language: str) -> str:
    """The field that these views alone have; the model and its training stand in the column."""
    algorithms = [(text[language], name) for name, text in CP_CHOICES.items()]
    chosen = START if is_empty(state.cp_algorithm) else state.cp_algorithm
    return form.fields(form.choice("cp_algorithm", chosen, algorithms, language))


def refused_html(error: LayoutError, layout: Layout, state: State, language: str) -> str:
    """The sentence of a refusal, and the changes that were tried and work."""
    fixes = fixes_of_question(error, layout, state)
    return problem_html(error, language, [(fix, _label(fix, language)) for fix in fixes])


def _label(changes: Changes, language: str) -> str:
    return ", ".join(_change(name, value, language) for name, value in changes.items())


def _change(name: str, value: Any, language: str) -> str:
    """A change as its button says it."""
    words = {**MEMORY, **CP_CHOICES}
    text = words.get(f"{name}_{value}") or words.get(str(value))
    said = CLUSTERS[value].name if name == "cluster" else text[language] if text else value
    return f"{control_label(name, language)} {said}"
