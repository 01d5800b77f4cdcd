"""What was found in a launch command, word by word, and the English sentence for each code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groups.errors import LayoutError, quoted

from .flags import Row

SENTENCES: dict[str, str] = {
    # understood
    "understood": "{name} sets {sets}.",
    # ignored
    "no-group": "{name} is known and shapes no group and no layer.",
    "unknown": "{name} is not known here.",
    "not-drawn": "{name} changes groups in a way that is not drawn here.",
    "not-given": "{name} is null, so it says nothing.",
    "not-read": "{name} is written in a way that is not read here.",
    "unused": "{name} holds options that no command of the text uses.",
    "only-one-accounted": "{name} counts one of embedding and loss as a layer: both are drawn, "
    "or none.",
    # unresolved
    "size-unresolved": "{name} is {value}, which the text does not work out.",
    "may-hold-options": "{name} may hold more options; the text does not say.",
    "decided-by-condition": "{name} depends on a condition of the script.",
    "decided-by-loop": "{name} changes in a loop of the script.",
    "left-to-trainer": "{name} is left to the trainer.",
    "left-to-machine": "{name} is left to the machine: {value}.",
    "range-of-nodes": "{name} is a range: {value}.",
    # problems
    "bad-value": "{name} must be a whole number, not {value}.",
    "value-out-of-range": "{name} must be from {minimum} to {maximum}, not {value}.",
    "bad-switch": "{name} must be true or false, not {value}.",
    "no-value": "{name} has no value.",
    "removed": "{name} was removed from Megatron-LM: use {use}.",
    "given-twice": "{name} is given more than once: {value} here, and {kept}, which counts.",
    "contradiction": "{name} says {value}, and {by} says {kept}, which counts.",
    "two-frameworks": "{name} belongs to {other}, and the rest to {kept}, which counts.",
    "world-differs": "{name} is {value}, and nodes x GPUs per node is {count}.",
    "world-does-not-divide": "{name} is {value}, which {count} does not divide.",
    "degrees-differ": "With {name} {value} the degrees make {count} GPUs, unlike the launcher.",
    "layout-has": "{name} is {value}, and the layout has {count} decoder layers.",
    "layout-cut": "{name} {value} does not end with the loss L: unquoted, it is cut at |.",
    "needs-layers": "{name} means chunks only together with the number of layers.",
    "chunks-do-not-fit": "{name} {value} does not cut {count} layers into equal chunks.",
    "chunks-differ": "{name} {value} makes {count} chunks a stage; the text says another number.",
    "bad-json": "JSON cannot go on with {name}.",
    "yaml-tab": "YAML does not indent with tabs.",
    "unclosed": "{sign} is not closed.",
    "space-after-backslash": "After the backslash stand spaces: the shell ends the command there.",
    "expands-too-much": "The variables put in more than {limit} characters.",
    # missing
    "default": "{field} is not given: {assumed} is assumed.",
    "framework-assumed": "Nothing says which framework it is: {assumed} is assumed.",
    "fewest-nodes": "The number of nodes is not given: {assumed} is assumed, the fewest that fit.",
    "nodes-of-world": "Only the world size {world} is given: {nodes} nodes of {gpus_per_node} GPUs "
    "are assumed.",
    "variable-default": "${name} is taken to be its default, {value}.",
}
"""By code; {name}, {value}, {sets} of the item, and its facts."""


@dataclass(frozen=True)
class Item:
    """A word of the text, and what became of it.

    code: what kind of thing was found; ``sentence`` says it in English. line and column count
    from 1. sets: the field that it set, or was to set. error: the refusal of a layout's text.
    """

    code: str
    name: str
    value: str
    start: int
    end: int
    line: int
    column: int
    sets: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: LayoutError | None = None

    @property
    def sentence(self) -> str:
        if self.error is not None:
            return f"{self.name}: {self.error.what}."
        shown = {"name": self.name, "value": quoted(self.value).strip("'"), "sets": self.sets}
        return SENTENCES[self.code].format(**{**shown, **self.facts})


@dataclass(frozen=True)
class Missing:
    """What the text leaves open, and what is assumed for it."""

    code: str
    facts: Mapping[str, Any]

    @property
    def sentence(self) -> str:
        return SENTENCES[self.code].format(**self.facts)


@dataclass(frozen=True)
class Guess:
    """Which framework the text is for, and the word that says so."""

    name: str  # megatron, megatron-pp-dp, megatron-deepspeed, deepspeed, torchtitan, nemo
    job: str  # the framework of a Job that numbers the ranks so
    because: str
    start: int
    end: int


@dataclass(frozen=True)
class Said:
    """One thing that the text says: this field is this value."""

    field: str
    value: Any
    item: Item
    row: Row
    default: str
