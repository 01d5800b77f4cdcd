"""What the views themselves are asked, beside the layout: unchecked, as `Controls` is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from ..collectives.inputs import CollectivesAsked
from ..memory.inputs import MemoryAsked
from ..pipeline.inputs import PipelineAsked
from ..traffic.inputs import TrafficAsked


@dataclass(frozen=True)
class Asked:
    """The view that is shown, and what each is asked."""

    view: Any = "groups"
    preset: Any = ""  # the published layout that was chosen last
    versus: Any = "auto"
    ranks: Any = ""
    kept: Any = ""  # the link of the layout to compare with
    paste: Any = ""  # a launch command
    run: Any = ""  # one of its runs or roles, where it has several
    evidence: Any = ""  # of a hang
    digest: Any = ""  # what files of a hang said (views/hang/digest.py)
    hosts: Any = ""  # machines by name
    racks: Any = ""  # where they stand, where another text says it
    objective: Any = "dp-first"
    measures: Any = ""  # a number for each rank
    worse: Any = "high"
    collectives: CollectivesAsked = field(default_factory=CollectivesAsked)
    pipeline: PipelineAsked = field(default_factory=PipelineAsked)
    # With the model and its training, which other views ask about too.
    memory: MemoryAsked = field(default_factory=MemoryAsked)
    traffic: TrafficAsked = field(default_factory=TrafficAsked)
    rank: Any = ""  # the pinned one, as it was typed; empty: none. Last: status.js writes it there


State = TypeVar("State")


def flat(state: Any) -> Iterator[tuple[str, Any]]:
    """Every field's name and value; a field that is a state itself gives its own fields."""
    for one in fields(state):
        value = getattr(state, one.name)
        if is_dataclass(value):
            yield from flat(value)
        else:
            yield one.name, value


def filled(start: State, values: Mapping[str, Any]) -> State:
    """A state with the values that are given for its fields, and for those of states within."""
    changes: dict[str, Any] = {}
    for one in fields(start):  # type: ignore[arg-type]
        value = getattr(start, one.name)
        if is_dataclass(value):
            changes[one.name] = filled(value, values)
        elif one.name in values:
            changes[one.name] = values[one.name]
    return replace(start, **changes)  # type: ignore[type-var]
