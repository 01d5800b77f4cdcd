"""Combines roles: the layout of each from its part of a text, and their turns."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from groups.errors import LayoutError
from groups.inputs import number_in
from groups.layout import Job
from groups.mesh import whole_number
from groups.notes import Note
from groups.plan import Plan, Role
from training.roles import HANDOVER, Phase, phases_of

from ..errors import refusal
from ..launch.flags import MODEL, named_format, published_model
from ..launch.items import Item, Parsed
from ..launch.meaning import meaning_of
from ..launch.sayings import Reading
from ..launch.training import training_of
from .model import PlanRead, RoleRead
from .settings import SIZES, RoleSettings


@dataclass(frozen=True)
class Known:
    """Settings of a role beside its sizes."""

    values: Mapping[str, object] = field(default_factory=dict)  # of MODEL
    training: Mapping[str, object] = field(default_factory=dict)  # of its model and how it works

    def also(self, **training: object) -> Known:
        """These settings with more; None means unset."""
        more = {name: value for name, value in training.items() if value is not None}
        return Known(self.values, {**self.training, **more})

    @property
    def model(self) -> object:
        """Its published model, empty for another; None if unknown."""
        return self.training.get("model")

    @classmethod
    def of(cls, parsed: Parsed) -> Known:
        """The settings of a role that trains, from a reading of launch."""
        known = {**parsed.assumed, **parsed.values}
        return cls({name: known[name] for name in MODEL if name in known}, training_of(parsed))

    @classmethod
    def of_server(cls, model: str | None, length: int | None = None) -> Known:
        """The settings of a role that serves a model of this name."""
        if not model:
            return cls()
        training = {"model": published_model(model), "served_weights": named_format(model)}
        return cls({}, training).also(served_length=length)


@dataclass(frozen=True)
class Sketch:
    """A role before its layout is computed."""

    name: str
    job: Job
    first: int = 0
    gpus: Sequence[int] = ()
    known: Known = field(default_factory=Known)
    away: tuple[str, ...] = ()
    updates: int = 1

    def role(self) -> Role:
        """The role with its layout on its GPUs. Errors: LayoutError about a size, by the name of
        the role."""
        try:
            return Role(self.name, self.job.layout(), self.first, shares=(), gpus=self.gpus)
        except LayoutError as error:
            raise _of_role(error, self.name) from None


def machines(gpus: int, each: int) -> dict[str, int]:
    """Nodes, and GPUs of each, of a role of its own.

    >>> machines(16, 8), machines(2, 8), machines(12, 8)
    ({'nodes': 2, 'gpus_per_node': 8}, {'nodes': 1, 'gpus_per_node': 2}, \
{'nodes': 3, 'gpus_per_node': 4})
    """
    own = math.gcd(gpus, each)
    return {"nodes": gpus // own, "gpus_per_node": own}


def trained(
    settings: RoleSettings, name: str, gpus: int, each: int, section: str = "", **more: object
) -> tuple[Job, Parsed]:
    """The job of a role that trains, or scores as in training, on so many GPUs; and the settings of
    its part of the text. section: the role's name in the tables of launch.

    Errors: LayoutError for sizes that the text leaves open.
    """
    schema = settings.reading.schema
    leads = schema.follows.get(section, "") if schema else ""
    reading = _of_section(settings.reading, {section, leads})
    parsed = meaning_of(reading, section)
    sizes = answered_sizes(settings, leads) | answered_sizes(settings, name)
    asks = [size for size in parsed.asks if size not in sizes and size in SIZES]
    if asks:
        fixes = ({f"{name}.{size}": 1} for size in asks)
        raise refusal("role-asks", f"{name}.{asks[0]}", *fixes, role=name, sizes=", ".join(asks))
    job = replace(parsed, asks=()).job()
    for note in parsed.missing:
        if note.code == "variable-default":
            settings.note(note)
    return replace(job, **{**machines(gpus, each), **sizes, **more}), parsed  # type: ignore[arg-type]


def _of_section(reading: Reading, sections: Collection[str]) -> Reading:
    """What a text leaves open about these roles alone."""
    schema = reading.schema
    if schema is None or not schema.roles:
        return reading

    def is_own(item: Item) -> bool:
        meaning = schema.meaning(tuple(item.name.lstrip("-").split(".")))
        return meaning is None or meaning[1] in ("", *sections)

    unresolved = tuple(filter(is_own, reading.unresolved))
    return replace(reading, unresolved=unresolved, problems=tuple(filter(is_own, reading.problems)))


def job_on(framework: str, gpus: int, each: int, **sizes: object) -> Job:
    """The job on so many GPUs, `each` on a node."""
    return Job(framework=framework, **{**machines(gpus, each), **sizes})  # type: ignore[arg-type]


def served(
    settings: RoleSettings, name: str, gpus: int, each: int, framework: str, **sizes: object
) -> Job:
    """The job of a role that serves, on so many GPUs."""
    return job_on(framework, gpus, each, **{**sizes, **answered_sizes(settings, name)})


def answered_sizes(settings: RoleSettings, name: str) -> dict[str, int]:
    """Sizes of a role from the answers beside the text."""
    texts = {size: settings.answers.get(f"{name}.{size}") for size in SIZES}
    return {
        size: whole_number(number_in(text), f"{name}.{size}")
        for size, text in texts.items()
        if text is not None
    }


def plan_read(
    framework: str,
    nodes: int,
    gpus_per_node: int,
    sketches: Sequence[Sketch],
    turns: Sequence[str],
    phases: Sequence[Phase],
    notes: Sequence[Note],
    beside: Sequence[str] = (),
) -> PlanRead:
    """The plan of the roles on their cluster. turns: their names in the order in which they use
    shared GPUs in a step. phases: of the framework; roles outside of them work in a phase of their
    own name.

    Errors: LayoutError about a size of a role, or GPUs that the cluster has not.
    """
    roles = {sketch.name: sketch.role() for sketch in sketches}
    order = [name for name in turns if name in roles]
    for at, name in enumerate(order):
        before = [other for other in order[:at] if roles[other].meets(roles[name])]
        roles[name] = replace(roles[name], shares=tuple(before))
    plan = Plan(nodes, gpus_per_node, tuple(roles[sketch.name] for sketch in sketches))
    read = tuple(
        RoleRead(roles[own.name], own.known.values, own.known.training, own.away, own.updates)
        for own in sketches
    )
    there = [Phase(step.name, tuple(n for n in step.roles if n in roles)) for step in phases]
    kept = [step for step in there if step.roles]
    working = {name for step in kept for name in step.roles}
    kept += [step for step in phases_of(plan) if not working & {*step.roles}]
    kept.sort(key=lambda step: step.name == HANDOVER)  # which is last
    return PlanRead(framework, read, plan, tuple(kept), tuple(beside), tuple(notes))


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """A context in which refusals use the names of a text's settings."""
    try:
        yield
    except LayoutError as error:
        raise error.renamed(names) from None


def _of_role(error: LayoutError, name: str) -> LayoutError:
    """A refusal of a role's layout, whose inputs are set by the role's name."""
    names = {size: f"{name}.{size}" for size in SIZES}
    refused = error.replace(what=f"{name}: {error.what}", facts={**error.facts, "role": name})
    fixes = [
        {names[key]: value for key, value in fix.items()}
        for fix in error.alternatives
        if fix.keys() <= names.keys()
    ]
    return refused.replace(
        alternatives=fixes, control=names.get(error.control or "", error.control)
    )
