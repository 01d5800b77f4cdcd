"""A job: its machines, its sizes, the framework that numbers its ranks, and its groups.

A `Job` holds the sizes and options; `Job.layout()` computes its `Layout`: the dense grid, the
expert grid if the framework has one, and every group by Megatron's name. Megatron and user-defined
orders follow Megatron's own rules; other frameworks have the groups of their axes; servers have
their own groups, by their own names (`frameworks`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Annotated, ClassVar, Protocol, TypeVar

import numpy as np

from .alternatives import with_changes, with_working
from .errors import LayoutError
from .frameworks import (
    EXPERTS_MAIN,
    FRAMEWORKS,
    MAIN,
    OF_MEGATRON,
    OWN,
    SERVED,
    Framework,
    JobSizes,
    Made,
    framework_of,
)
from .grouping import Grouping
from .inputs import Input
from .megatron.grids import ORDER
from .mesh import MAX_RANKS, Mesh, too_many_ranks, whole_number
from .notebook import RankPicture, picture_of

OWN_PREFIX = "own."
"""Prefix of a framework's own names of groups."""

Ranks = TypeVar("Ranks", int, np.ndarray)


def world_of(nodes: object, gpus_per_node: object, limit: int = MAX_RANKS) -> int:
    """The number of GPUs of ``nodes`` nodes.

    Errors: LayoutError for a bad number of nodes or GPUs, and for more than ``limit`` GPUs.
    """
    counts = {"nodes": nodes, "gpus_per_node": gpus_per_node}
    machines = {name: whole_number(value, name) for name, value in counts.items()}
    world = math.prod(machines.values())
    if world > limit:
        larger = max(machines, key=lambda name: machines[name])
        most = {name: limit * number // world for name, number in machines.items()}
        fixes = ({name: number} for name, number in most.items() if number)
        raise too_many_ranks(world, larger, *fixes, limit=limit)
    return world


class JobOfMesh(Protocol):
    """The type of `Job.from_device_mesh`, which the module that reads meshes sets."""

    def __call__(
        self, mesh: object, gpus_per_node: int = 8, axes: Mapping[str, str] | None = None
    ) -> Job: ...


class LayoutOfGroups(Protocol):
    """The type of `Layout.from_process_groups`, which the module that reads groups sets."""

    def __call__(self, config: object, gpus_per_node: int = 8) -> Layout: ...


@dataclass(frozen=True)
class Job(JobSizes):
    """The sizes and options of a layout; `layout` checks them.

    >>> layout = Job(nodes=2, gpus_per_node=8, tp=2, pp=2).layout()
    >>> str(layout.mesh), str(layout.expert), layout.every["embd"].members(0).tolist()
    ('tp2-cp1-dp4-pp2', 'etp2-ep1-edp4-pp2', [0, 8])
    >>> str(Job(nodes=2, tp=2, cp=2, pp=2, framework="llama3").layout().mesh)
    'tp2-cp2-pp2-dp2'
    >>> server = Job(nodes=4, tp=16, dp=8, ep=16, framework="sglang").layout()
    >>> str(server.mesh), str(server.expert), server.every["attention_tp"].members(5).tolist()
    ('tp2-cp1-dp8-pp1-server2', 'etp1-ep16-edp1-pp1-server2', [4, 5])
    """

    framework: Annotated[
        str,
        Input("whose order of ranks", choices=(*FRAMEWORKS, OWN), stands=True, closed=True),
    ] = "megatron"

    from_device_mesh: ClassVar[JobOfMesh]
    """The job of a torch DeviceMesh, or of the text that it prints: `device_mesh.job_of_mesh`."""

    def layout(self) -> Layout:
        """The layout of the job: both grids and every group.

        Errors: LayoutError about the size, order or framework that is wrong, with fixes.
        """
        try:
            return _laid_out(self)
        except LayoutError as error:
            if error.control == "framework" or not framework_of(self.framework).tries_fixes:
                raise
            raise with_working(error, lambda fix: _laid_out(with_changes(self, fix))) from None


def _laid_out(job: Job) -> Layout:
    world = world_of(job.nodes, job.gpus_per_node)
    framework = framework_of(job.framework)
    made = framework.make(job, world)
    levels = tuple(job.levels) if job.levels else None
    order = job.order.lower() if job.framework == OWN else ORDER  # where it counts
    if (levels, order) != (job.levels, job.order):
        job = replace(job, levels=levels, order=order)
    return Layout(job, made.mesh, made.expert, made.groups, roles=made.roles)


LATER = ("hpz", *OF_MEGATRON, *SERVED)
"""Fields that older documents lack: written only where they differ from their default."""


def job_fields(job: Job) -> dict[str, object]:
    """The fields of a job as documents write them; fields in LATER are left out at their default.

    >>> job_fields(Job(tp=2, gtp=2)).keys() - job_fields(Job(tp=2)).keys()
    {'gtp'}
    """
    values = asdict(job)
    return {n: value for n, value in values.items() if n not in LATER or value != getattr(Job, n)}


@dataclass(frozen=True)
class Layout:
    """The meshes and groups of a job, made by `Job.layout`. Layouts of equal jobs are equal, unless
    only one of them leaves out the experts' groups."""

    job: Job
    mesh: Mesh = field(compare=False)  # the grid of dense layers
    expert: Mesh | None = field(compare=False)  # of experts; None if the framework has none
    every: Mapping[str, Grouping] = field(compare=False, repr=False)  # by their names
    roles: Mapping[str, Grouping] = field(
        default_factory=dict, compare=False, repr=False, kw_only=True
    )
    """By the axis or group of Megatron's that each corresponds to, whether it is made or not; left
    out: as they are named."""
    is_dense: bool = field(default=False, kw_only=True)  # without groups of experts

    from_process_groups: ClassVar[LayoutOfGroups]
    """The layout that makes the groups of a running rank, from its `pg_config`:
    `running.layout_of_groups`."""

    def __post_init__(self) -> None:
        if not self.roles:
            object.__setattr__(self, "roles", self.every)

    def __str__(self) -> str:
        """The machines, the meshes and the framework.

        >>> print(Job(nodes=2, tp=2, ep=4, etp=1).layout())
        2 x 8 GPUs: tp2-cp1-dp8-pp1, experts etp1-ep4-edp4-pp1 (Megatron Core)
        """
        experts = f", experts {self.expert}" if self.has_experts else ""
        machines = f"{self.nodes:,} x {self.gpus_per_node:,} GPUs"
        return f"{machines}: {self.mesh}{experts} ({self.made_by.name})"

    def show(self, *kinds: str, rank: int = 0) -> RankPicture:
        """The groups of a rank, drawn in a notebook; by default of all kinds larger than 1.

        >>> print(Job(nodes=2, ep=4).layout().show("ep", rank=5))
        rank 5 of etp1-ep4-edp4-pp1: ep 4, 5, 6, 7

        Errors: LayoutError for an unknown kind or rank.
        """
        every = dict(self.every)
        return picture_of(every, kinds or self._drawn, rank, self.gpus_per_node, "")

    def save(
        self, file: str | PathLike[str], *kinds: str, rank: int = 0, theme: str = "light"
    ) -> None:
        """Writes a picture to a file, whose name says the form: .svg, .png or .pdf.

        The job with the groups of ``rank``, and up to 256 GPUs a panel for each kind in which every
        GPU has the colour of its group. kinds: by default as in `show`. theme: light or dark.

            Job(nodes=2, tp=2, pp=2).layout().save("groups.svg", "tp", "dp", rank=5)

        Errors: LayoutError for an unknown kind, rank, form or theme; OSError for the file.
        """
        self.show(*kinds, rank=rank).save(file, theme)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The notebook representation: `show` of rank 0, and the text."""
        picture = picture_of(dict(self.every), self._drawn, 0, self.gpus_per_node, str(self))
        return picture._repr_mimebundle_()

    @property
    def made_by(self) -> Framework:
        """The framework that numbers the ranks and makes the groups."""
        return framework_of(self.job.framework)

    @cached_property
    def own(self) -> Mapping[str, Grouping]:
        """The framework's own groups, with the prefix ``own.`` where names of Megatron's stand
        beside them, which may mean others (fairscale's mp is tp, Megatron's is tp x pp)."""
        if not self.made_by.has_prefix:
            return {}
        named = (replace(one, name=OWN_PREFIX + one.name) for one in own_groupings(self))
        return {grouping.name: grouping for grouping in named}

    def kind(self, name: str) -> Grouping | None:
        """The grouping with this name, or the one that corresponds to this Megatron axis, or the
        framework's own; None if there is none.

        >>> server = Job(tp=4, cp=2, framework="vllm").layout()
        >>> server.kind("cp").name, server.kind("edp")
        ('pcp', None)
        >>> small = Job(tp=2, cp=2, framework="picotron").layout()
        >>> small.kind("pp_dp").name, small.kind("own.cp_dp").size, small.kind("embd")
        ('own.pp_dp', 4, None)
        """
        found = self.every.get(name)
        if found is None and name in (*MAIN, *EXPERTS_MAIN):
            found = self.roles.get(name)
        return found or self.own.get(name) or self.own.get(OWN_PREFIX + name)

    @property
    def main(self) -> list[Grouping]:
        """The groupings of both grids, and those that the framework has besides, whose groups have
        more than one rank; if there are none, the grouping of dp, or of tp."""
        names = [*MAIN, *(EXPERTS_MAIN if self.has_experts else ())]
        roles = self.roles
        found = [roles[name] for name in names if name in roles]
        found += [self.every[name] for name in self.made_by.besides if name in self.every]
        larger = [grouping for grouping in dict.fromkeys(found) if grouping.size > 1]
        return larger or [roles.get("dp") or found[0]]

    @property
    def is_server(self) -> bool:
        """Whether the job serves a model: no training step, no gradients."""
        return self.made_by.serves

    @property
    def copies(self) -> int:
        """The copies of the model, or of a server the engines."""
        return self._copies[1]

    def copy_of(self, ranks: Ranks) -> Ranks:
        """The copy of the model, of a server the engine, that ranks belong to.

        >>> Job(gpus_per_node=4, tp=2, framework="vllm").layout().copy_of(np.arange(4)).tolist()
        [0, 0, 1, 1]
        >>> Job(tp=2, pp=2).layout().copy_of(5)
        0
        """
        stride, number = self._copies
        return ranks // stride % number

    @property
    def _copies(self) -> tuple[int, int]:
        return self.made_by.copies(self.job, self.mesh)

    @property
    def joint_gpus(self) -> int:
        """The GPUs that share groups with each other: all, or those of one engine.

        >>> Job(tp=2).layout().joint_gpus, Job(tp=2, framework="vllm").layout().joint_gpus
        (8, 2)
        """
        return self.made_by.joint(self.job, self.mesh)

    @property
    def engine_gpus(self) -> int:
        """The GPUs of one engine; 0 of a training job, which has none.

        >>> Job(tp=2).layout().engine_gpus, Job(tp=2, framework="vllm").layout().engine_gpus
        (0, 2)
        """
        return self.made_by.engine_gpus(self.job, self.mesh)

    @property
    def _drawn(self) -> tuple[str, ...]:
        return tuple(grouping.name for grouping in self.main if grouping.name in self.every)

    @property
    def framework(self) -> str:
        return self.job.framework

    @property
    def nodes(self) -> int:
        return self.job.nodes

    @property
    def gpus_per_node(self) -> int:
        return self.job.gpus_per_node

    @property
    def world_size(self) -> int:
        return self.mesh.world_size

    @property
    def has_experts(self) -> bool:
        """Whether experts have a grid of their own; otherwise it equals the dense one."""
        if self.is_dense and self.made_by.of_experts:
            return False
        return self.made_by.has_experts(self.job, self.mesh, self.expert)

    def without_experts(self) -> Layout:
        """The layout for a model without experts, of which some frameworks make no groups.

        >>> server = Job(tp=8, framework="vllm").layout()
        >>> list(server.every), list(server.without_experts().every)
        (['tp', 'dcp', 'pcp', 'pp', 'dp', 'ep'], ['tp', 'dcp', 'pcp', 'pp', 'dp'])
        """
        away = self.made_by.of_experts
        if not away:
            return self
        every = {name: grouping for name, grouping in self.every.items() if name not in away}
        roles = {name: grouping for name, grouping in self.roles.items() if name not in away}
        return replace(self, every=every, roles=roles, is_dense=True)

    @property
    def order(self) -> str:
        """The axes of both grids by Megatron's names, fastest first; includes ep if experts have
        it.

        >>> Job(nodes=2, tp=2).layout().order
        'tp-cp-ep-dp-pp'
        """
        return self.made_by.order_of_axes(self.mesh, self.expert)

    @property
    def explicit_job(self) -> Job:
        """The job with every default written out: etp, and the order of the axes."""
        order = self.made_by.explicit_order(self.order)
        return replace(self.job, etp=self.made_by.explicit_etp(self.job, self.expert), order=order)


# -- the framework's own names -------------------------------------------------------------------


def own_groupings(layout: Layout) -> list[Grouping]:
    """The framework's axes under its names for them, and the groups that it derives from the axes.

    Megatron's own axes are those of its two grids.

    >>> layout = Job(nodes=2, tp=2, pp=2, framework="deepspeed").layout()
    >>> [grouping.name for grouping in own_groupings(layout)]
    ['model', 'data', 'pipe', 'expert', 'expert_data', 'slice', 'ds_model']
    """
    made = Made(layout.mesh, layout.expert, layout.every, layout.roles)
    return layout.made_by.natives(made, layout.job)


def framework_name(framework: str) -> str:
    """The display name of a framework; a user-defined order is Megatron's with its axes
    reordered."""
    return framework_of(framework).name
