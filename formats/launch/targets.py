"""The targets that a job can be written for: tables/targets.toml, in the words of the reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from groups.frameworks import framework_of
from groups.layout import SERVED
from groups.tables import Rows, read_table
from training.models import MODELS

from .flags import KEYS, LEADS_TO, OPTIONS, TABLES, plain_name
from .schemas import SCHEMAS
from .training import is_model

OF_JOB = (
    *("cp", "pp", "ep", "etp", "instances", "hpz", "levels", "hybrid", "gtp", "egtp", "gathers"),
    *SERVED,
)
"""Fields of a Job that a target may be unable to express."""


@dataclass(frozen=True)
class CommandPart:
    """A part of a command: words, and the options after them."""

    say: str = ""
    placeholder: str = ""  # behind them, in capitals, for a model or a recipe
    always: Mapping[str, int] = field(default_factory=dict)  # options with their values
    several: bool = False  # on several nodes only
    across: Mapping[str, str] = field(default_factory=dict)  # on several nodes, with variables
    of_copies: Mapping[str, str] = field(default_factory=dict)  # where each holds whole copies
    behind_head: str = ""  # an option of all nodes but the first
    give: tuple[str, ...] = ()  # options that are left out where the job does not say their field


@dataclass(frozen=True)
class File:
    """A file that the command reads."""

    name: str
    keys: tuple[str, ...]  # left out where the job does not say their field
    always: Mapping[str, int | str] = field(default_factory=dict)
    option: str = ""  # that names it, of a file that is left out where it would say nothing


@dataclass(frozen=True)
class Target:
    """A program that a job can be written for."""

    name: str
    makes: tuple[str, ...]  # frameworks of a Job
    parts: tuple[CommandPart, ...]
    id: str = ""
    file: File | None = None
    needs: tuple[str, ...] = ()  # options and keys without which the program does not start
    environment: str = ""  # variables in front of the command, where tp or cp is above 1
    models: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # published models, and the options that name them there, in the place of placeholders
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # what it calls the values of a field; of one that stands here it knows no others
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # fields of a Job that only these of its frameworks express
    versions: Mapping[str, str] = field(default_factory=dict)
    # the program's version by a word that only it has

    @cached_property
    def fields(self) -> dict[str, str]:
        """The field that each option and key sets."""
        keys = self.file.keys if self.file else ()
        return {
            name: self.field_of(name) for name in (*keys, *(n for p in self.parts for n in p.give))
        }

    def field_of(self, name: str) -> str:
        """The field that an option or a key sets; its own name if no table has it."""
        plain = name.rsplit(".", 1)[-1]
        schema = SCHEMAS.get(self.makes[0] if self.serves else self.id)
        row = schema.options.get(name.lstrip("-").replace("_", "-")) if schema else None
        row = row or (schema.key_rows.get(name) if schema else None)
        if row is None and name.startswith("--") and "." not in name:
            row = OPTIONS[plain_name(name)]
        elif row is None and (key := KEYS.get(plain) or KEYS.get(name)):
            row = key.row
        return row.field if row else plain

    @cached_property
    def of_recipe(self) -> dict[str, object]:
        """Fields of a model that its options and keys do not set, and that recipes of today set."""
        silent = {"linear_biases": False, "positions": "rope"}
        return {name: silent[name] for name in silent if name not in self.fields.values()}

    @property
    def asserts(self) -> bool:
        """Whether it runs Megatron-LM's checks before it trains."""
        return "megatron" in self.makes

    @property
    def engine(self) -> str:
        """Whose data parallelism it has."""
        return framework_of(self.makes[0]).engine

    def version_of(self, text: str) -> str:
        """The version whose words a text is in; empty where all have them."""
        return next((self.versions[word] for word in self.versions if word in text), "")

    @property
    def serves(self) -> bool:
        """Whether it starts a server, which has no batch and no training."""
        return any(framework_of(name).serves for name in self.makes)

    @cached_property
    def unsaid(self) -> tuple[str, ...]:
        """Fields of a Job that it cannot express: torchtitan has no option for a plain etp, and
        TensorRT-LLM derives etp as tp / ep."""
        known = {LEADS_TO.get(name, name) for name in self.fields.values()}
        known |= {"instances"} if {"replicate", "mics"} & {*self.fields.values()} else set()
        known |= {"hpz"} & {*self.fields.values()}
        known |= {"etp"} if {"torchtitan", "tensorrt-llm"} & {*self.makes} else set()
        return tuple(name for name in OF_JOB if name not in known)

    def naming(self, model: Mapping[str, object]) -> Mapping[str, str]:
        """The options that name the published model with this shape, with their values."""
        known = self.models
        if self.serves:
            if model.get("served_weights"):
                return {}  # a checkpoint in that format has a name of its own
            says = next(part.say for part in self.parts if part.placeholder)
            known = {name: {says: checkpoint} for name, checkpoint in CHECKPOINTS.items()}
        named = (known[name] for name in known if is_model(MODELS[name].model, model))
        return next(named, {})


def _targets() -> dict[str, Target]:
    file = read_table(TABLES / "targets.toml", dict[str, Target])
    return {name: replace(target, id=name) for name, target in file.items()}


CHECKPOINTS = Rows(lambda: read_table(TABLES / "checkpoints.toml", dict[str, str]))
"""The names of published models, as servers load them."""

TARGETS = Rows(_targets)
"""Targets by a stable id."""
