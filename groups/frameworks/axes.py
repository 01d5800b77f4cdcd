"""Frameworks whose groups are those of their axes, and what they join of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..alternatives import divisors_near, fit
from ..errors import LayoutError, refusal
from ..grouping import Grouping
from ..megatron.parallel_state import FAMILIES, dense_groupings
from ..mesh import Mesh, whole_number
from .framework import EXPERTS_MAIN, MAIN, Framework, Made
from .megatron import with_experts
from .sizes import JobSizes

REPLICAS = ("intra-dp-cp", "inter-edp")
"""Megatron's names of the groups inside one copy of the states, and between copies."""


@dataclass(frozen=True)
class AxesRules(Framework):
    """A framework that makes the groups of its axes, and those that join several of them.

    >>> from groups.frameworks import FRAMEWORKS
    >>> made = FRAMEWORKS["picotron"].make(JobSizes(tp=2, cp=2, pp=2), 16)
    >>> str(made.mesh), [*made.groups], "embd" in made.roles
    ('tp2-cp2-pp2-dp2', ['tp', 'cp', 'dp', 'dp-cp', 'pp'], True)
    """

    def make(self, job: JobSizes, world: int) -> Made:
        """The groups that it makes by Megatron's names where Megatron has such a group; ``roles``
        has all of Megatron's, which no process group may be of."""
        self._require_axes({name: getattr(job, name) for name in ("tp", "cp", "pp", "ep")}, world)
        self.require_options(job)
        roles = self._roles_of(job, world)
        if self.of_node and job.hpz:
            self._require_part("hpz", job.hpz, roles["dp"].size)
        if self.replicates:
            for data in {roles[name].size for name in ("dp", "edp") if name in roles}:
                self._require_part("instances", job.instances, data)
        made = self.made | {*REPLICAS}
        groups = {name: grouping for name, grouping in roles.items() if name in made}
        expert = roles["ep"].mesh if "ep" in roles else None
        return Made(roles["tp"].mesh, expert, groups, roles)

    def _require_part(self, name: str, ranks: int, data: int) -> None:
        """Refuses a number of ranks, of copies or of ZeRO++'s second one, that does not divide the
        data parallel ones."""
        if data % whole_number(ranks, name):
            left = self.axes[-1].name if name == "hpz" else self.replicates
            facts = {"sizes": name, "product": ranks, "world": data, "left": left}
            raise refusal("does-not-divide", name, *divisors_near(name, ranks, data), **facts)

    def _roles_of(self, job: JobSizes, world: int) -> dict[str, Grouping]:
        if not self.expert_axes:
            names = [name for name in self.order.split("-") if name != "ep"]
            names += [name for name in ("tp", "cp", "dp", "pp") if name not in names]
            sizes = {"tp": job.tp, "cp": job.cp, "pp": job.pp}
            found = dense_groupings(fit(world, order="-".join(names), **sizes))
            return {**found, **self._replicas_of(job, found["tp"].mesh)}
        splits = self._splits_experts
        if job.etp is not None and job.etp != (job.tp if splits else 1):
            raise refusal("expert-tp-is-fixed", "etp", {"etp": None}, framework=self.name)
        try:
            return with_experts(job, world, None if splits else 1, self.order)
        except LayoutError as error:
            raise error.replace(quote="") from None  # it is Megatron's message, not theirs

    def _replicas_of(self, job: JobSizes, dense: Mesh) -> dict[str, Grouping]:
        """The groups inside one copy of the states and between copies, by Megatron's names of them,
        where experts make none."""
        if job.instances == 1:
            return {}
        mesh = self._own_mesh("dense", dense, job)
        cut = [own.name for own in self.axes if own.axis in ("cp", "dp")]
        inside = "-".join(name for name in cut if name != self.replicates)
        kinds = dict(zip(REPLICAS, (inside, self.replicates)))
        return {name: Grouping(name, mesh, kind) for name, kind in kinds.items()}

    @property
    def _splits_experts(self) -> bool:
        """Whether experts are split over tp; otherwise they are not split at all."""
        return any(axis.axis == "tp" for axis in self.expert_axes)

    def default(self, name: str, job: JobSizes, version: str = "") -> object:
        if name == "etp":
            return job.tp if self._splits_experts else 1
        return super().default(name, job, version)

    @cached_property
    def made(self) -> frozenset[str]:
        """The groups of Megatron's that it makes too: of single axes, of axes that it joins, and
        those that tie layers of several stages.

        An axis of size 1 is one that every framework has.

        >>> from groups.frameworks import FRAMEWORKS
        >>> sorted(FRAMEWORKS["torchtitan"].made - {*MAIN, *EXPERTS_MAIN})
        ['dp-cp']
        """
        joined = {frozenset(roles) for grid in ("dense", "expert") for roles in self._joins(grid)}
        families = (
            name
            for name, family in FAMILIES.items()
            if frozenset((family.kind or "-").split("-")) in joined
        )
        return frozenset((*MAIN, *EXPERTS_MAIN, *families, *self.ties))

    def _joins(self, grid: str) -> list[set[str]]:
        """The axes of Megatron's that each joined group of a grid is of; a group of only a part of
        the axes that play one is none of Megatron's."""
        axes = self.axes if grid == "dense" else self.expert_axes
        plays = {own.name: own.axis for own in axes}
        renamed = {} if grid == "dense" else {"tp": "etp", "dp": "edp"}
        found = []
        for group in self.groups:
            names = {*group.kind.split("-")}
            roles = {plays[name] for name in names if group.grid == grid}
            whole = {own.name for own in axes if own.axis in roles}
            if roles and whole == names:
                found.append({renamed.get(role, role) for role in roles})
        return found

    def _require_axes(self, sizes: Mapping[str, object], world: int) -> None:
        """Raises LayoutError for a size of an axis that the framework does not have and, if it has
        no data parallelism, for GPUs that the pipeline leaves unused."""
        axes = {own.axis for own in (*self.axes, *self.expert_axes)}
        missing = {name: 1 for name, size in sizes.items() if name not in axes and size != 1}
        if missing:
            alone = missing if "dp" in axes else {**missing, "pp": world}
            sentence = f"{self.name} has no {' and no '.join(missing)}"
            facts = {"framework": self.name, "axis": ", ".join(missing)}
            first, fixes = next(iter(missing)), (alone, {"framework": "megatron"})
            raise refusal("framework-has-no-axis", first, *fixes, sentence=sentence, **facts)
        if "dp" not in axes and sizes["pp"] != world:
            pipeline = {"framework": self.name, "pp": sizes["pp"], "world": world}
            fixes = ({"pp": world}, {"framework": "megatron"})
            raise refusal("framework-is-all-pipeline", "pp", *fixes, **pipeline)

    # -- under its own names -----------------------------------------------------------------------

    def natives(self, made: Made, job: JobSizes) -> list[Grouping]:
        """Its axes under its names for them, and the groups that it derives from the axes."""
        meshes = {"dense": self._own_mesh("dense", made.mesh, job)}
        if self.expert_axes and made.expert is not None:
            meshes["expert"] = self._own_mesh("expert", made.expert, job)
        requests = [(name, grid, name) for grid, mesh in meshes.items() for name in mesh.names]
        requests += [(one.name, one.grid, one.kind) for one in self.groups if one.grid in meshes]
        groupings: dict[str, Grouping] = {}
        for name, grid, kind in requests:
            groupings.setdefault(name, Grouping(name, meshes[grid], kind))
        return list(groupings.values())

    def _own_mesh(self, name: str, grid: Mesh, job: JobSizes) -> Mesh:
        """One of its meshes with the sizes of a grid; its data axis takes the remaining factor.

        Errors: LayoutError for replicas that do not divide the ranks that replicate parameters.
        """
        axes = self.axes if name == "dense" else self.expert_axes
        of_grid = {"tp": "etp"} if "etp" in grid.names else {}
        sizes = {
            own.name: grid.size(of_grid.get(own.axis, own.axis)) for own in axes if own.axis != "dp"
        }
        if self.of_node and job.hpz:
            sizes[self.of_node] = job.hpz
        elif self.of_node:
            fitting, over = divmod(job.gpus_per_node, math.prod(sizes.values()))
            sizes[self.of_node] = 1 if over else fitting
        if self.replicates:
            sizes[self.replicates] = job.instances
        return self.mesh(grid.world_size, name, **sizes)
