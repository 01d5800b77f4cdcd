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
from training.models import MODELS
from training.traffic.demands import CP_ALGORITHMS

from ..base import form
from ..base.messages import control_label
from ..base.model import ON_OFF, model_of
from ..base.problems import problem_html
from ..base.state import Controls, Layout, is_empty
from ..memory.inputs import DEFAULTS, MemoryAsked, Problem, Way, cures, problem_of

Link = Callable[[Controls, Mapping[str, str]], str]
"""The query of another state of the page: of these controls, with these fields of views changed."""

STARTS = {"cluster": "dgx-h100", "cp_algorithm": "p2p"}
"""What counts where a field is empty."""


@dataclass(frozen=True)
class TrafficAsked:
    """What the two views are asked, unchecked; empty: what STARTS says."""

    cluster: Any = ""
    cp_algorithm: Any = ""


@dataclass(frozen=True)
class Question:
    """A problem of the Memory view, on a cluster.

    capacity: bytes of one GPU, the cluster's unless the Memory view says another number.
    """

    problem: Problem
    cluster_id: str
    cp_algorithm: str
    capacity: float

    @property
    def cluster(self) -> Cluster:
        return CLUSTERS[self.cluster_id]

    @property
    def name(self) -> str:
        """What the model is called: its preset's name, marked where something was changed."""
        chosen = self.problem.chosen
        return MODELS[chosen.preset].name + ("*" if chosen.changed else "")


def question_of(
    layout: Layout, controls: Controls, memory: MemoryAsked, asked: TrafficAsked
) -> Question:
    """What is asked, checked field by field.

    Errors: LayoutError about the field or the control that cannot be.
    """
    cluster = _chosen("cluster", asked, tuple(CLUSTERS))
    algorithm = _chosen("cp_algorithm", asked, CP_ALGORITHMS)
    problem = problem_of(layout, controls, memory)
    capacity = CLUSTERS[cluster].memory if is_empty(memory.capacity) else problem.capacity
    return Question(problem, cluster, algorithm, float(capacity))


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


def inputs_html(controls: Controls, memory: MemoryAsked, asked: TrafficAsked, language: str) -> str:
    """The fields of these views, and those of the Memory view that change what is sent."""
    models = [(one.name, name) for name, one in MODELS.items()]
    column = MEMORY["by_column"][language].format(name=_matched(controls, memory))
    clusters = [(one.name, name) for name, one in CLUSTERS.items()]
    algorithms = [(text[language], name) for name, text in CP_CHOICES.items()]
    return form.fields(
        form.choice("model", memory.model, [(column, ""), *models], language),
        form.choice("cluster", _shown(asked, "cluster", STARTS), clusters, language),
        _of_memory("zero", memory, ("0", "1", "2", "3"), language, "zero_"),
        _of_memory("recompute", memory, ("none", "selective", "full"), language, "recompute_"),
        _of_memory("sequence_parallel", memory, tuple(ON_OFF), language, ""),
        form.choice("cp_algorithm", _shown(asked, "cp_algorithm", STARTS), algorithms, language),
    )


def _matched(controls: Controls, memory: MemoryAsked) -> str:
    """The model that the column says, where no other is chosen."""
    try:
        chosen = model_of(memory, controls)
    except LayoutError:
        return "…"
    return MODELS[chosen.preset].name if chosen.is_matched else "…"


def _of_memory(
    name: str, memory: MemoryAsked, values: tuple[str, ...], language: str, prefix: str
) -> str:
    options = [(MEMORY[prefix + value][language], value) for value in values]
    return form.choice(name, _shown(memory, name, DEFAULTS), options, language)


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
