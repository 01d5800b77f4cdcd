"""A job: its machines, its sizes, the framework that numbers its ranks, and its groups.

A `Job` holds the sizes and options; `Job.layout()` computes its `Layout`: the dense grid, the
expert grid if the framework has one, and every group by Megatron's name. Megatron and user-defined
orders follow Megatron's own rules; other frameworks have the groups of their axes; servers
(`engines`) have their own groups, by their own names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar, Protocol

from .alternatives import fit, with_changes, with_working
from .conventions import CONVENTIONS, MEGATRONS, OWN, Convention
from .engines import has_own_groups, is_server, serve
from .errors import LayoutError, not_a_choice, refusal
from .frameworks.sizes import JobSizes
from .grouping import Grouping
from .inputs import Input
from .megatron.grids import GTP, ORDER
from .megatron.parallel_state import dense_groupings, groupings
from .mesh import MAX_RANKS, Mesh, too_many_ranks, whole_number
from .notebook import RankPicture, picture_of
from .serving import roles_of

MAIN, EXPERTS_MAIN = ("tp", "gtp", "cp", "dcp", "dp", "pp"), ("etp", "ep", "egtp", "edp")
"""Kinds of the dense grid, and of the grid of experts."""


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
        Input("whose order of ranks", choices=(*CONVENTIONS, OWN), stands=True, closed=True),
    ] = "megatron"

    from_device_mesh: ClassVar[JobOfMesh]
    """The job of a torch DeviceMesh, or of the text that it prints: `device_mesh.job_of_mesh`."""

    def layout(self) -> Layout:
        """The layout of the job: both grids and every group.

        Errors: LayoutError about the size, order or framework that is wrong, with fixes.
        """
        world = world_of(self.nodes, self.gpus_per_node)
        if has_own_groups(self.framework):
            return self._served(world)
        every = self._groupings(world)
        expert = every["ep"].mesh if "ep" in every else None
        levels = tuple(self.levels) if self.levels else None
        order = self.order.lower() if self.framework == OWN else ORDER  # where it counts
        is_same = (levels, order) == (self.levels, self.order)
        job = self if is_same else replace(self, levels=levels, order=order)
        return Layout(job, every["tp"].mesh, expert, every)

    def _served(self, world: int) -> Layout:
        def attempt(changes: Mapping[str, object]) -> Layout:
            job = with_changes(self, changes)
            if not has_own_groups(job.framework):
                return job.layout()
            known = CONVENTIONS[job.framework].sizes
            job._refuse_options(name for name in _OPTIONS if name not in known)
            made = serve(job, world)
            return Layout(job, made.mesh, made.expert, made.groups)

        try:
            return attempt({})
        except LayoutError as error:
            raise with_working(error, attempt) from None

    def _groupings(self, world: int) -> dict[str, Grouping]:
        sizes = {"tp": self.tp, "cp": self.cp, "pp": self.pp, "ep": self.ep}
        if self.framework not in (*CONVENTIONS, OWN):
            raise not_a_choice("framework", self.framework, (*CONVENTIONS, OWN))
        self._refuse_options(SERVED)
        if self.framework == OWN:
            return self._with_experts(world, self.etp, self.order)
        convention = CONVENTIONS[self.framework]
        if self.framework in MEGATRONS:
            return self._with_experts(world, self.etp, convention.order)
        _refuse_missing_axes(convention, sizes, world)
        self._refuse_options(("instances", "levels", "hybrid", *OF_MEGATRON))
        if convention.expert_axes:
            # Other frameworks split experts over tp, or not at all.
            splits = any(axis.axis == "tp" for axis in convention.expert_axes)
            if self.etp is not None and self.etp != (self.tp if splits else 1):
                raise refusal("expert-tp-is-fixed", "etp", {"etp": None}, framework=convention.name)
            try:
                return self._with_experts(world, None if splits else 1, convention.order)
            except LayoutError as error:
                raise error.replace(quote="") from None  # it is Megatron's message, not theirs
        names = [name for name in convention.order.split("-") if name != "ep"]
        names += [name for name in ("tp", "cp", "dp", "pp") if name not in names]
        del sizes["ep"]
        return dense_groupings(fit(world, order="-".join(names), **sizes))

    def _refuse_options(self, names: Iterable[str]) -> None:
        """Refuses options that the framework does not have: ignoring them would show another
        job."""
        values = {name: (getattr(self, name) or None, getattr(Job, name) or None) for name in names}
        options = [name for name, (value, none) in values.items() if value != none]
        if options:
            name = framework_name(self.framework)
            sets = " to set" if options[0] in SERVED else ""
            sentence = f"{name} has no {' and no '.join(options)}{sets}"
            others = "vllm" if options[0] in SERVED else "megatron"
            fixes = ({name: getattr(Job, name) for name in options}, {"framework": others})
            facts = {"framework": name, "option": ", ".join(options)}
            raise refusal("framework-has-no-option", options[0], *fixes, sentence=sentence, **facts)

    def _with_experts(self, world: int, etp: int | None, order: str) -> dict[str, Grouping]:
        sizes = {argument: getattr(self, name) for argument, name in _ARGUMENTS.items()}
        try:
            return groupings(world, etp=etp, order=order, **sizes)
        except LayoutError as error:
            raise error.renamed(_ARGUMENTS) from None


_ARGUMENTS = {
    **{name: name for name in ("tp", "cp", "pp", "ep")},
    "num_distributed_optimizer_instances": "instances",
    "hierarchical_context_parallel_sizes": "levels",
    "hybrid_context_parallel": "hybrid",
    "gtp": "gtp",
    "egtp": "egtp",
    "create_all_gather_group": "gathers",
}
"""The arguments of Megatron's groups, and the fields of a Job that they come from."""


OF_MEGATRON = ("gtp", "egtp", "gathers")
"""Fields that only Megatron's main branch has."""

SERVED = ("dp", "dcp", "moe_dp", "expert_parallel")
"""Fields that only servers have."""

LATER = (*OF_MEGATRON, *SERVED)
"""Fields that older documents lack: written only where they differ from their default."""


_OPTIONS = ("cp", "ep", "etp", "instances", "levels", "hybrid", *LATER)


def job_fields(job: Job) -> dict[str, object]:
    """The fields of a job as documents write them; fields in LATER are left out at their default.

    >>> job_fields(Job(tp=2, gtp=2)).keys() - job_fields(Job(tp=2)).keys()
    {'gtp'}
    """
    values = asdict(job)
    return {n: value for n, value in values.items() if n not in LATER or value != getattr(Job, n)}


def _refuse_missing_axes(convention: Convention, sizes: Mapping[str, object], world: int) -> None:
    """Raises LayoutError for a size of an axis that the framework does not have and, if it has no
    data parallelism, for GPUs that the pipeline leaves unused."""
    axes = {own.axis for own in (*convention.axes, *convention.expert_axes)}
    missing = {name: 1 for name, size in sizes.items() if name not in axes and size != 1}
    if missing:
        alone = missing if "dp" in axes else {**missing, "pp": world}
        sentence = f"{convention.name} has no {' and no '.join(missing)}"
        facts = {"framework": convention.name, "axis": ", ".join(missing)}
        first, fixes = next(iter(missing)), (alone, {"framework": "megatron"})
        raise refusal("framework-has-no-axis", first, *fixes, sentence=sentence, **facts)
    if "dp" not in axes and sizes["pp"] != world:
        pipeline = {"framework": convention.name, "pp": sizes["pp"], "world": world}
        fixes = ({"pp": world}, {"framework": "megatron"})
        raise refusal("framework-is-all-pipeline", "pp", *fixes, **pipeline)


@dataclass(frozen=True)
class Layout:
    """The meshes and groups of a job, made by `Job.layout`. Layouts of equal jobs are equal, unless
    only one of them leaves out the experts' groups."""

    job: Job
    mesh: Mesh = field(compare=False)  # the grid of dense layers
    expert: Mesh | None = field(compare=False)  # of experts; None if the framework has none
    every: Mapping[str, Grouping] = field(compare=False, repr=False)  # by their names
    is_dense: bool = field(default=False, kw_only=True)  # without groups of experts

    from_process_groups: ClassVar[LayoutOfGroups]
    """The layout that makes the groups of a running rank, from its `pg_config`:
    `running.layout_of_groups`."""

    def __str__(self) -> str:
        """The machines, the meshes and the framework.

        >>> print(Job(nodes=2, tp=2, ep=4, etp=1).layout())
        2 x 8 GPUs: tp2-cp1-dp8-pp1, experts etp1-ep4-edp4-pp1 (Megatron Core)
        """
        experts = f", experts {self.expert}" if self.has_experts else ""
        machines = f"{self.nodes:,} x {self.gpus_per_node:,} GPUs"
        return f"{machines}: {self.mesh}{experts} ({framework_name(self.framework)})"

    def show(self, *kinds: str, rank: int = 0) -> RankPicture:
        """The groups of a rank, drawn in a notebook; by default of all kinds larger than 1.

        >>> print(Job(nodes=2, ep=4).layout().show("ep", rank=5))
        rank 5 of etp1-ep4-edp4-pp1: ep 4, 5, 6, 7

        Errors: LayoutError for an unknown kind or rank.
        """
        every = dict(self.every)
        return picture_of(every, kinds or self._drawn, rank, self.gpus_per_node, "")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The notebook representation: `show` of rank 0, and the text."""
        picture = picture_of(dict(self.every), self._drawn, 0, self.gpus_per_node, str(self))
        return picture._repr_mimebundle_()

    @cached_property
    def roles(self) -> Mapping[str, Grouping]:
        """A server's groups, by the Megatron axis that each corresponds to; empty for other
        layouts."""
        if self.expert is None or not has_own_groups(self.framework):
            return {}
        return roles_of(self.framework, self.mesh, self.expert, self.every)

    def kind(self, name: str) -> Grouping | None:
        """The grouping with this name, or the one that corresponds to this Megatron axis; None if
        there is none.

        >>> server = Job(tp=4, cp=2, framework="vllm").layout()
        >>> server.kind("cp").name, server.kind("edp")
        ('pcp', None)
        """
        return self.every.get(name) or self.roles.get(name)

    @property
    def main(self) -> list[Grouping]:
        """The groupings of both grids whose groups have more than one rank; if there are none, the
        grouping of dp, or of tp."""
        names = [*MAIN, *(EXPERTS_MAIN if self.has_experts else ())]
        roles = self.roles or self.every
        found = [roles[name] for name in names if name in roles]
        larger = [grouping for grouping in dict.fromkeys(found) if grouping.size > 1]
        return larger or [roles.get("dp") or found[0]]

    @property
    def is_server(self) -> bool:
        """Whether the job serves a model: no training step, no gradients."""
        return is_server(self.framework)

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
        mesh, expert = self.mesh, self.expert
        if self.framework == "vllm":
            return self.job.expert_parallel and not self.is_dense
        return expert is not None and (
            expert.size("ep") > 1 or expert.size("etp") != mesh.size("tp") or expert.size(GTP) > 1
        )

    def without_experts(self) -> Layout:
        """The layout for a model without experts. vLLM then makes no group of experts (0.32.0
        vllm/distributed/parallel_state.py); other engines make groups from the sizes alone.

        >>> server = Job(tp=8, framework="vllm").layout()
        >>> list(server.every), list(server.without_experts().every)
        (['tp', 'dcp', 'pcp', 'pp', 'dp', 'ep'], ['tp', 'dcp', 'pcp', 'pp', 'dp'])
        """
        if self.framework != "vllm":
            return self
        every = {name: grouping for name, grouping in self.every.items() if name != "ep"}
        return replace(self, every=every, is_dense=True)

    @property
    def order(self) -> str:
        """The axes of both grids by Megatron's names, fastest first; includes ep if experts have
        it.

        >>> Job(nodes=2, tp=2).layout().order
        'tp-cp-ep-dp-pp'
        """
        if self.roles:
            return CONVENTIONS[self.framework].order
        names = list(self.mesh.names)
        if self.expert is not None:
            slower = self.expert.names[self.expert.names.index("ep") + 1 :]
            behind = [{"etp": "tp", "edp": "dp"}.get(name, name) for name in slower]
            names.insert(min((names.index(name) for name in behind), default=len(names)), "ep")
        return "-".join(names)

    @property
    def explicit_job(self) -> Job:
        """The job with every default written out: etp, and the order of the axes."""
        order = self.order if self.framework == OWN else CONVENTIONS[self.framework].order
        etp = None if self.expert is None else self.expert.size("etp")
        if self.roles:
            etp = self.job.etp  # most servers have no separate etp
        return replace(self.job, etp=etp, order=order)


# -- the framework's own names -------------------------------------------------------------------


def own_groupings(layout: Layout) -> list[Grouping]:
    """The framework's axes under its names for them, and the groups that it derives from the axes.

    Megatron's own axes are those of its two grids.

    >>> layout = Job(nodes=2, tp=2, pp=2, framework="deepspeed").layout()
    >>> [grouping.name for grouping in own_groupings(layout)]
    ['model', 'data', 'pipe', 'expert', 'expert_data', 'slice', 'ds_model']
    """
    convention = CONVENTIONS["megatron" if layout.framework == OWN else layout.framework]
    if layout.roles:
        return list(layout.every.values())
    if layout.framework in MEGATRONS:
        names = [axis.name for axis in (*convention.axes, *convention.expert_axes)]
        names += [name for name in ("gtp", "egtp") if name in layout.every]
        return [layout.every[name] for name in dict.fromkeys(names)]
    meshes = {"dense": _own_mesh(layout, "dense", layout.mesh)}
    if convention.expert_axes and layout.expert is not None:
        meshes["expert"] = _own_mesh(layout, "expert", layout.expert)
    requests = [(name, grid, name) for grid, mesh in meshes.items() for name in mesh.names]
    requests += [
        (group.name, group.grid, group.kind) for group in convention.groups if group.grid in meshes
    ]
    groupings: dict[str, Grouping] = {}
    for name, grid, kind in requests:
        groupings.setdefault(name, Grouping(name, meshes[grid], kind))
    return list(groupings.values())


def _own_mesh(layout: Layout, name: str, grid: Mesh) -> Mesh:
    """One of the framework's meshes with this layout's sizes; its data axis takes the remaining
    factor."""
    convention = CONVENTIONS[layout.framework]
    axes = convention.axes if name == "dense" else convention.expert_axes
    of_grid = {"tp": "etp"} if "etp" in grid.names else {}
    sizes = {
        own.name: grid.size(of_grid.get(own.axis, own.axis)) for own in axes if own.axis != "dp"
    }
    if convention.of_node:
        fitting, over = divmod(layout.gpus_per_node, math.prod(sizes.values()))
        sizes[convention.of_node] = 1 if over else fitting
    return convention.mesh(layout.world_size, name, **sizes)


def framework_name(framework: str) -> str:
    """The display name of a framework; a user-defined order is Megatron's with its axes
    reordered."""
    return "Megatron Core" if framework == OWN else CONVENTIONS[framework].name
