"""What the Traffic and the Search view are asked, read into a question; and their shared inputs.

The model, the batch and how it is trained are the Memory view's own fields and the column; these
views add the cluster and how keys and values go round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from ..base.state import Controls, Layout, is_empty
from ..memory.inputs import MemoryAsked, Problem, Way, cures, problem_of

Link = Callable[[Controls, Mapping[str, str]], str]
"""The query of another state of the page: of these controls, with these fields of views changed."""

STARTS = {"cp_algorithm": "p2p"}
"""What counts where a field is empty."""


@dataclass(frozen=True)
class TrafficAsked:
    """What the two views are asked, unchecked; empty: what STARTS says."""

    cp_algorithm: Any = ""


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


def question_of(
    layout: Layout, controls: Controls, memory: MemoryAsked, asked: TrafficAsked
) -> Question:
    """What is asked, checked field by field.

    Errors: LayoutError about the field or the control that cannot be.
    """
    algorithm = _chosen("cp_algorithm", asked, CP_ALGORITHMS)
    return Question(problem_of(layout, controls, memory), algorithm)


def _chosen(name: str, asked: TrafficAsked, choices: tuple[str, ...]) -> str:
    value = getattr(asked, name)
    value = STARTS[name] if is_empty(value) else value
    if not isinstance(value, str) or value not in choices:
        raise not_a_choice(name, value, choices, [{name: one} for one in choices[:3]])
    return value


def ways_out(
    error: LayoutError, layout: Layout, controls: Controls, memory: MemoryAsked
) -> list[Way]:
    """The changes with which a refused question was tried and is none any more."""
    if error.control in STARTS:
        return [Way(dict(one), False) for one in error.alternatives]
    if error.code == "experts-need-sequence-parallel":
        return [Way({"sequence_parallel": "on"}, False)]
    return cures(error, layout, controls, memory)


# -- HTML ----------------------------------------------------------------------------------------


def inputs_html(asked: TrafficAsked, language: str) -> str:
    """The field that these views alone have; the model and its training stand in the column."""
    algorithms = [(text[language], name) for name, text in CP_CHOICES.items()]
    return form.fields(
        form.choice("cp_algorithm", _shown(asked, "cp_algorithm", STARTS), algorithms, language)
    )


def _shown(asked: object, name: str, starts: Mapping[str, str]) -> Any:
    value = getattr(asked, name)
    return starts[name] if is_empty(value) else value


def refused_html(
    error: LayoutError,
    layout: Layout,
    controls: Controls,
    memory: MemoryAsked,
    language: str,
) -> str:
    """The sentence of a refusal, and the changes that were tried and work."""
    ways = ways_out(error, layout, controls, memory)
    return problem_html(error, language, [(way.changes, _label(way, language)) for way in ways])


def _label(way: Way, language: str) -> str:
    return ", ".join(_change(name, value, language) for name, value in way.changes.items())


def _change(name: str, value: Any, language: str) -> str:
    """A change as its button says it."""
    words = {**MEMORY, **CP_CHOICES}
    text = words.get(f"{name}_{value}") or words.get(str(value))
    said = CLUSTERS[value].name if name == "cluster" else text[language] if text else value
    return f"{control_label(name, language)} {said}"
