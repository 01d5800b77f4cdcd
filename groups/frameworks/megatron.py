"""Megatron's own rules: every group of families.toml, and the messages of its code."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import LayoutError
from ..grouping import Grouping
from ..megatron.grids import GTP
from ..megatron.parallel_state import groupings
from ..mesh import Mesh
from .framework import SERVED, Framework, Made
from .sizes import JobSizes

ARGUMENTS = {
    **{name: name for name in ("tp", "cp", "pp", "ep")},
    "num_distributed_optimizer_instances": "instances",
    "hierarchical_context_parallel_sizes": "levels",
    "hybrid_context_parallel": "hybrid",
    "gtp": "gtp",
    "egtp": "egtp",
    "create_all_gather_group": "gathers",
}
"""The arguments of Megatron's groups, and the fields of a job that they come from."""


def with_experts(job: JobSizes, world: int, etp: int | None, order: str) -> dict[str, Grouping]:
    """Every group that Megatron makes of a job's sizes, in any order of axes.

    Errors: LayoutError as of `groupings`, by the names of the job's fields.
    """
    sizes = {argument: getattr(job, name) for argument, name in ARGUMENTS.items()}
    try:
        return groupings(world, etp=etp, order=order, **sizes)
    except LayoutError as error:
        raise error.renamed(ARGUMENTS) from None


@dataclass(frozen=True)
class MegatronRules(Framework):
    """Megatron Core, in an order of its own: both grids and every group, by Megatron's names."""

    def has(self, name: str) -> bool:
        return name not in (*SERVED, "hpz")

    @property
    def speaks_megatron(self) -> bool:
        return True

    @property
    def has_prefix(self) -> bool:
        return False

    def has_experts(self, job: JobSizes, mesh: Mesh, expert: Mesh | None) -> bool:
        return super().has_experts(job, mesh, expert) or (
            expert is not None and expert.size(GTP) > 1
        )

    def order_of(self, job: JobSizes) -> str:
        """The order of a job's axes, fastest first."""
        return self.order

    def make(self, job: JobSizes, world: int) -> Made:
        self.require_options(job)
        every = with_experts(job, world, job.etp, self.order_of(job))
        return Made(every["tp"].mesh, every["ep"].mesh, every, every)

    def natives(self, made: Made, job: JobSizes) -> list[Grouping]:
        """The groups of the axes of its two grids."""
        names = [axis.name for axis in (*self.axes, *self.expert_axes)]
        names += [name for name in ("gtp", "egtp") if name in made.groups]
        return [made.groups[name] for name in dict.fromkeys(names)]


@dataclass(frozen=True)
class OwnOrder(MegatronRules):
    """Megatron Core with the axes in the order of the job (`JobSizes.order`)."""

    def order_of(self, job: JobSizes) -> str:
        return job.order.lower()

    def explicit_order(self, order: str) -> str:
        return order
