"""A framework as one object: what it numbers, the groups that it makes, its defaults and refusals.

A framework is an order of named axes, fastest first. Each of its axes plays one of Megatron's (tp,
cp, ep, dp, pp), and every group it makes is one request to the mesh of those axes, or to a second
mesh of its experts over the same ranks. The sizes of all axes but one are given; one that plays dp
is what remains. A source that writes its shape row-major, such as [pipe, data, model], lists the
same axes in reverse.

Each is a table of frameworks.toml; ``rules`` names the class that makes its groups: that of axes,
Megatron's, an engine's. Other rooms ask the object, never its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ..alternatives import divisors, fitted
from ..errors import LayoutError, refusal
from ..grouping import Grouping
from ..mesh import Mesh
from .sizes import JobSizes

AXES = ("tp", "cp", "ep", "dp", "pp")
"""The axes of Megatron's that an axis of a framework may play."""

MAIN, EXPERTS_MAIN = ("tp", "gtp", "cp", "dcp", "dp", "pp"), ("etp", "ep", "egtp", "edp")
"""Kinds of the dense grid, and of the grid of experts."""

OF_MEGATRON = ("gtp", "egtp", "gathers")
"""Fields of a job that only Megatron's main branch has."""

SERVED = ("dp", "dcp", "moe_dp", "engram", "expert_parallel")
"""Fields of a job that only servers have."""

OPTIONS = ("cp", "ep", "etp", "instances", "hpz", "levels", "hybrid", *OF_MEGATRON, *SERVED)
"""Fields of a job that not every framework has."""


@dataclass(frozen=True)
class OwnAxis:
    """One axis of a framework: its name there, and the Megatron axis that it corresponds to."""

    name: str
    axis: str = ""  # one of AXES, else its name is; two may play dp, such as shard and replicate

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", self.axis or self.name)
        if self.axis not in AXES:
            raise ValueError(f"axis should be one of {', '.join(AXES)}, not {self.axis!r}")


@dataclass(frozen=True)
class OwnGroup:
    """A group of a framework that joins several axes, or that has a name other than its axis."""

    name: str
    kind: str  # axes of its mesh, joined by dashes
    carries: str = ""  # what it is for; empty where the source does not say
    grid: Literal["dense", "expert"] = "dense"


@dataclass(frozen=True)
class Version:
    """A program that starts a framework with other defaults than its own."""

    name: str
    source: str
    defaults: Mapping[str, str] = field(default_factory=dict)  # as `Framework.defaults`


@dataclass(frozen=True)
class Made:
    """What a framework makes of a job: its meshes, its groups by name, and by the Megatron axis or
    group that they correspond to (``roles``), whether it makes a process group of that or not."""

    mesh: Mesh
    expert: Mesh | None
    groups: Mapping[str, Grouping]
    roles: Mapping[str, Grouping]


@dataclass(frozen=True)
class Framework:
    """A framework's axes, fastest first, and its groups; frameworks.toml says what each field is.

    >>> from groups.frameworks import FRAMEWORKS
    >>> FRAMEWORKS["torchtitan"].order, FRAMEWORKS["llama3"].order
    ('tp-cp-ep-dp-pp', 'tp-cp-pp-dp')
    >>> FRAMEWORKS["vllm"].serves, FRAMEWORKS["megatron"].default("etp", JobSizes(tp=4))
    (True, 4)
    """

    name: str
    axes: tuple[OwnAxis, ...]
    source: str
    url: str
    basis: Literal["executed", "read"]
    groups: tuple[OwnGroup, ...] = ()
    expert_axes: tuple[OwnAxis, ...] = ()  # empty if it has no second mesh for experts
    unsettled: str = ""
    remains: str = ""
    of_node: str = ""
    replicates: str = ""
    engine: str = "megatron"
    wraps: str = "blocks"
    sizes: Mapping[str, str] = field(default_factory=dict)  # of a server: by field of a job
    rules: Literal["axes", "megatron", "own", "vllm", "sglang", "tensorrt-llm"] = "axes"
    serves: bool = False
    ties: tuple[str, ...] = ()
    one_chunk: bool = False
    recomputes: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, Version] = field(default_factory=dict)
    id: str = ""

    def __post_init__(self) -> None:
        named = {"dense": {a.name for a in self.axes}, "expert": {a.name for a in self.expert_axes}}
        for group in self.groups:
            if not named[group.grid].issuperset(group.kind.split("-")):
                raise ValueError(f"kind should join {group.grid} axes, not {group.kind!r}")
        own = (("remains", self.remains), ("of_node", self.of_node))
        for key, name in (*own, ("replicates", self.replicates)):
            if name and name not in named["dense"]:
                raise ValueError(f"{key} should be one of its axes, not {name!r}")

    # -- what it makes -----------------------------------------------------------------------------

    def make(self, job: JobSizes, world: int) -> Made:
        """The meshes and groups of a job on ``world`` GPUs.

        Errors: LayoutError about the size or option that is wrong, with fixes.
        """
        raise NotImplementedError(self.rules)

    def natives(self, made: Made, job: JobSizes) -> list[Grouping]:
        """Its groups under its own names."""
        raise NotImplementedError(self.rules)

    @property
    def besides(self) -> tuple[str, ...]:
        """Its groups along no axis of its meshes that are drawn where they are larger than 1."""
        return ()

    @property
    def speaks_megatron(self) -> bool:
        """Whether its own names of groups, its rules and its messages are Megatron's."""
        return False

    @property
    def has_grids(self) -> bool:
        """Whether its groups are those of Megatron's two grids, under Megatron's names."""
        return True

    @property
    def has_prefix(self) -> bool:
        """Whether its own names stand beside Megatron's and need a prefix."""
        return True

    @property
    def tries_fixes(self) -> bool:
        """Whether a fix that it offers may break another of its rules, so that each is tried."""
        return False

    def has_experts(self, job: JobSizes, mesh: Mesh, expert: Mesh | None) -> bool:
        """Whether a job's experts have a grid of their own, another than the dense one."""
        return expert is not None and (
            expert.size("ep") > 1 or expert.size("etp") != mesh.size("tp")
        )

    @property
    def of_experts(self) -> tuple[str, ...]:
        """Its groups that a model without experts does not have."""
        return ()

    def default(self, name: str, job: JobSizes, version: str = "") -> object:
        """The value of a field of a job that is not set: a number, or that of another field.

        version: one of `versions`, whose defaults come first.

        >>> from groups.frameworks import FRAMEWORKS
        >>> FRAMEWORKS["megatron"].default("etp", JobSizes(tp=4), "megatron-bridge")
        1
        """
        found = {**self.defaults, **(self.versions[version].defaults if version else {})}
        text = found.get(name)
        if text is None:
            return getattr(JobSizes, name)
        return int(text) if text.isdigit() else getattr(job, text)

    def order_of_axes(self, mesh: Mesh, expert: Mesh | None) -> str:
        """The axes of both grids by Megatron's names, fastest first; includes ep if experts have
        it."""
        names = list(mesh.names)
        if expert is not None:
            slower = expert.names[expert.names.index("ep") + 1 :]
            behind = [{"etp": "tp", "edp": "dp"}.get(name, name) for name in slower]
            names.insert(min((names.index(name) for name in behind), default=len(names)), "ep")
        return "-".join(names)

    def explicit_order(self, order: str) -> str:
        """The order that a job has, written out; order: that of its axes."""
        return self.order

    def explicit_etp(self, job: JobSizes, expert: Mesh | None) -> int | None:
        """The size of etp that a job has, written out; None if it has none."""
        return None if expert is None else expert.size("etp")

    # -- its copies of a model ---------------------------------------------------------------------

    def gpus_of_copy(self, sizes: Mapping[str, int]) -> int:
        """The GPUs of one copy of the model, with these sizes of a job."""
        size = sizes.get  # asked for each stop of each slider
        return size("tp", 1) * size("pp", 1) * size("cp", 1) * size("gtp", 1)

    def unit(self, sizes: Mapping[str, int]) -> int:
        """The number that divides the world with these sizes of a job.

        >>> from groups.frameworks import FRAMEWORKS
        >>> FRAMEWORKS["megatron"].unit({"tp": 2, "pp": 2, "cp": 1, "ep": 4})
        16
        """
        experts = sizes.get("etp", sizes["tp"]) * sizes["ep"] * sizes["pp"] * sizes.get("egtp", 1)
        return math.lcm(self.gpus_of_copy(sizes), experts)

    def stops(self, sizes: Mapping[str, int], world: int) -> dict[str, list[int]]:
        """For each size, the values that work with the other sizes unchanged.

        >>> from groups.frameworks import FRAMEWORKS
        >>> FRAMEWORKS["megatron"].stops({"tp": 2, "pp": 2, "cp": 1, "ep": 1}, 16)["pp"]
        [1, 2, 4, 8]
        """
        return {
            name: [
                size for size in divisors(world) if world % self.unit({**sizes, name: size}) == 0
            ]
            for name in ("tp", "pp", "cp", "ep")
        }

    @property
    def does(self) -> Literal["serve", "train"]:
        """What its jobs do with a model."""
        return "serve" if self.serves else "train"

    @property
    def dense_grid(self) -> Literal["attention", "dense"]:
        """What the grid beside that of experts is called: servers cut attention alone by it."""
        return "attention" if self.serves else "dense"

    @property
    def copy(self) -> Literal["engine", "replica"]:
        """What a copy of the model is called."""
        return "engine" if self.serves else "replica"

    def joint(self, job: JobSizes, mesh: Mesh) -> int:
        """The GPUs that share groups with each other: all of a job, of servers those of one."""
        return mesh.world_size

    def engine_gpus(self, job: JobSizes, mesh: Mesh) -> int:
        """The GPUs of one engine; 0 of a training job, which has none."""
        return self.joint(job, mesh) if self.serves else 0

    def copies(self, job: JobSizes, mesh: Mesh) -> tuple[int, int]:
        """(stride, number): rank r belongs to copy ``r // stride % number`` of the model."""
        if "dp" not in mesh.names:
            return 1, 1
        return mesh.strides[mesh.names.index("dp")], mesh.size("dp")

    # -- its options -------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether a job has this field (one of OPTIONS) in this framework."""
        if name in ("instances", "hpz"):
            return bool(self.replicates if name == "instances" else self.of_node)
        return name not in (*SERVED, "levels", "hybrid", *OF_MEGATRON)

    def require_options(self, job: JobSizes) -> None:
        """Refuses options that the framework does not have: ignoring them would show another job.

        Errors: LayoutError ``framework-has-no-option``.
        """
        names = [name for name in OPTIONS if not self.has(name)]
        values = {
            name: (getattr(job, name) or None, getattr(JobSizes, name) or None) for name in names
        }
        options = [name for name, (value, none) in values.items() if value != none]
        if options:
            sets = " to set" if options[0] in SERVED else ""
            sentence = f"{self.name} has no {' and no '.join(options)}{sets}"
            others = "vllm" if options[0] in SERVED else "megatron"
            fixes = ({name: getattr(JobSizes, name) for name in options}, {"framework": others})
            facts = {"framework": self.name, "option": ", ".join(options)}
            raise refusal("framework-has-no-option", options[0], *fixes, sentence=sentence, **facts)

    # -- its axes ----------------------------------------------------------------------------------

    @cached_property
    def order(self) -> str:
        """The framework's axes by Megatron's names, each once; includes ep if the expert mesh has
        it.

        If two axes play dp, dp stands where the one with the remaining factor does.
        """
        names, experts = self._roles(self.axes), self._roles(self.expert_axes)
        if "ep" in experts:
            slower = experts[experts.index("ep") + 1 :]
            at = min((names.index(name) for name in slower), default=len(names))
            names.insert(at, "ep")
        return "-".join(names)

    def mesh(self, world: int, grid: str = "dense", /, **sizes: int) -> Mesh:
        """The framework's mesh of ``world`` ranks, dense or "expert". Sizes are given by the
        framework's axis names and default to 1; the first axis that plays dp and has no size takes
        the remaining factor.

        >>> from groups.frameworks import FRAMEWORKS
        >>> str(FRAMEWORKS["deepspeed"].mesh(16, model=2, pipe=2))
        'model2-data4-pipe2'
        >>> str(FRAMEWORKS["torchtitan"].mesh(16, "expert", ep=4, pp=2))
        'ep4-efsdp2-dp_replicate1-pp2'

        Errors: LayoutError for an axis that the framework does not have; otherwise those of `fit`.
        """
        axes = self.axes if grid == "dense" else self.expert_axes
        if not axes:
            raise LayoutError("no-axes", "this framework has no mesh of experts", control="ep")
        order = "-".join(own.name for own in axes)
        return fitted(world, order, sizes, self._remaining(axes, sizes))

    def carries(self, name: str) -> str:
        """What its group of this name is for; empty where the source does not say."""
        return next((group.carries for group in self.groups if group.name == name), "")

    def _roles(self, axes: Sequence[OwnAxis]) -> list[str]:
        """Megatron's names of the axes, dp only once."""
        dp = self._remaining(axes, {})
        return [own.axis for own in axes if own.axis != "dp" or own.name == dp]

    def _remaining(self, axes: Sequence[OwnAxis], sizes: Iterable[str]) -> str | None:
        """The axis that takes the remaining factor: the first that plays dp and has no size."""
        playing = [own.name for own in axes if own.axis == "dp" and own.name not in sizes]
        return self.remains if self.remains in playing else next(iter(playing), None)
