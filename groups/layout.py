"""A job worked out: the grids that number its ranks, and every group by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .conventions import CONVENTIONS, MEGATRONS, OWN
from .grouping import Grouping
from .mesh import Mesh

if TYPE_CHECKING:
    from .job import Job


@dataclass(frozen=True)
class Layout:
    """What a job comes to; `Job.layout` makes it, and two of the same job are the same."""

    job: Job
    mesh: Mesh = field(compare=False)  # the grid of dense layers
    expert: Mesh | None = field(compare=False)  # that of experts; None if the framework has none
    every: Mapping[str, Grouping] = field(compare=False, repr=False)  # by Megatron's names

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
        """Whether experts are spread in a way of their own: else their grid is the dense one."""
        mesh, expert = self.mesh, self.expert
        return expert is not None and (
            expert.size("ep") > 1 or expert.size("etp") != mesh.size("tp")
        )

    @property
    def order(self) -> str:
        """The axes of both grids, fastest first, in Megatron's names; ep where experts have it.

        >>> from groups.job import Job
        >>> Job(nodes=2, tp=2).layout().order
        'tp-cp-ep-dp-pp'
        """
        names = list(self.mesh.names)
        if self.expert is not None:
            slower = self.expert.names[self.expert.names.index("ep") + 1 :]
            behind = [{"etp": "tp", "edp": "dp"}.get(name, name) for name in slower]
            names.insert(min((names.index(name) for name in behind), default=len(names)), "ep")
        return "-".join(names)

    @property
    def stated_job(self) -> Job:
        """The job with all said that it leaves open: etp, and the order that counts."""
        order = self.order if self.framework == OWN else CONVENTIONS[self.framework].order
        etp = None if self.expert is None else self.expert.size("etp")
        return replace(self.job, etp=etp, order=order)


# -- the framework's own names -------------------------------------------------------------------


def own_groupings(layout: Layout) -> list[Grouping]:
    """The axes of the framework under its own names, and the groups that it derives of them.

    Megatron's own axes are those of its two grids.

    >>> from groups.job import Job
    >>> layout = Job(nodes=2, tp=2, pp=2, framework="deepspeed").layout()
    >>> [grouping.name for grouping in own_groupings(layout)]
    ['model', 'data', 'pipe', 'expert', 'expert_data', 'slice', 'ds_model']
    """
    convention = CONVENTIONS["megatron" if layout.framework == OWN else layout.framework]
    if layout.framework in MEGATRONS:
        names = [axis.name for axis in (*convention.axes, *convention.expert_axes)]
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
    """One of the framework's meshes with the sizes of ours; its data axis takes what remains."""
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
    return "Megatron Core" if framework == OWN else CONVENTIONS[framework].name
