"""What servers have in common: their copies side by side, their sizes, and groups of their own.

One server takes tp x pp GPUs in SGLang, x cp in TensorRT-LLM, and x cp x dp in vLLM if dp is set;
the remaining GPUs hold more servers of the same model. Attention and experts are two meshes over
the same ranks, each of whose axes plays one of Megatron's (tp, cp, dp, pp; etp, ep, edp, pp). Where
the sizes are one server's, several of them stand side by side: ``server`` is then the slowest axis,
and no group has ranks of two. `Framework.sizes` has the engine's names of a job's sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..alternatives import divisors, fitted_sizes
from ..errors import LayoutError, refusal
from ..grouping import Grouping
from ..mesh import MAX_RANKS, Axis, Mesh, too_many_ranks, whole_number
from .framework import OPTIONS, Framework, Made
from .sizes import JobSizes


@dataclass(frozen=True)
class Served:
    """The two meshes of servers of one model, and their groups by the engine's own names."""

    mesh: Mesh
    expert: Mesh
    groups: dict[str, Grouping]


@dataclass(frozen=True)
class Engine(Framework):
    """A server that numbers its ranks, and makes its groups, by rules of its own."""

    plays: ClassVar[Mapping[str, str]]
    """Its groups, by the axis of Megatron's that each corresponds to."""

    of_server: ClassVar[tuple[str, ...]]
    """The sizes whose product is one server's GPUs."""

    def serve(self, job: JobSizes, world: int) -> Served:
        """The two meshes and the groups of a job's servers on ``world`` GPUs.

        Errors: LayoutError about a size, with the engine's own message where it has one.
        """
        raise NotImplementedError

    def starts(self, sizes: Mapping[str, int]) -> bool:
        """Whether a server starts with these sizes, of which none is left out."""
        raise NotImplementedError

    def make(self, job: JobSizes, world: int) -> Made:
        self.require_options(job)
        served = self.serve(job, world)
        return Made(served.mesh, served.expert, served.groups, self.roles_of(served))

    def roles_of(self, served: Served) -> dict[str, Grouping]:
        """The groups by the Megatron axis that each corresponds to; includes attention's data
        parallel ranks even if they have no process group."""
        groups = served.groups
        return {name: groups[own] for name, own in self.plays.items() if own in groups}

    def natives(self, made: Made, job: JobSizes) -> list[Grouping]:
        return list(made.groups.values())

    @property
    def has_grids(self) -> bool:
        return False

    @property
    def has_prefix(self) -> bool:
        return False

    @property
    def tries_fixes(self) -> bool:
        return True

    def has(self, name: str) -> bool:
        return name not in OPTIONS or name in self.sizes

    def order_of_axes(self, mesh: Mesh, expert: Mesh | None) -> str:
        return self.order

    def explicit_etp(self, job: JobSizes, expert: Mesh | None) -> int | None:
        return job.etp  # most servers have no separate one

    def gpus_of_copy(self, sizes: Mapping[str, int]) -> int:
        """The GPUs of one server: of one copy of the model or, with dp in vLLM, of all its dp.

        >>> from groups.frameworks import FRAMEWORKS
        >>> FRAMEWORKS["sglang"].gpus_of_copy({"tp": 16, "pp": 1, "cp": 2, "dp": 8})
        16
        """
        return math.prod(sizes.get(name, 1) for name in self.of_server)

    def unit(self, sizes: Mapping[str, int]) -> int:
        return self.gpus_of_copy(sizes)

    def joint(self, job: JobSizes, mesh: Mesh) -> int:
        return self.copies(job, mesh)[0]

    def copies(self, job: JobSizes, mesh: Mesh) -> tuple[int, int]:
        sizes = {"tp": job.tp, "pp": job.pp, "cp": job.cp}
        size = self.gpus_of_copy(sizes | ({} if job.dp is None else {"dp": job.dp}))
        return size, mesh.world_size // size

    def stops(self, sizes: Mapping[str, int], world: int) -> dict[str, list[int]]:
        """For each size of a server, the values that work with the other sizes unchanged.

        >>> from groups.frameworks import FRAMEWORKS
        >>> FRAMEWORKS["sglang"].stops({"tp": 8, "pp": 1, "dp": 4}, 16)["tp"]
        [4, 8, 16]
        """
        one = dict.fromkeys(("tp", "pp", "cp", "dp", "ep", "dcp", "moe_dp"), 1) | dict(sizes)
        return {
            name: [size for size in divisors(world) if self._works(one | {name: size}, world)]
            for name in self.sizes
            if name not in ("expert_parallel", "engram")
        }

    def _works(self, sizes: Mapping[str, int], world: int) -> bool:
        return world % self.gpus_of_copy(sizes) == 0 and self.starts(sizes)


def servers_of(world: int, sizes: Mapping[str, int], remains: str = "server") -> dict[str, int]:
    """The sizes of a server, and how many servers the GPUs hold."""
    try:
        return fitted_sizes(world, "-".join((*sizes, remains)), sizes, remains)
    except LayoutError as error:
        if error.code == "does-not-divide" and remains == "server":
            one = math.prod(sizes.values())
            why = f"a server has {one} GPUs, and {world} are not a whole number of servers"
            raise error.replace(why=why, facts={**error.facts, "left": "server"}) from None
        raise


def mesh_of(servers: int, **sizes: int) -> Mesh:
    """A mesh of these axes, with an additional axis if there are several servers."""
    several = {"server": servers} if servers > 1 else {}
    return Mesh(tuple(Axis(name, size) for name, size in {**sizes, **several}.items()))


_OF_WORLD = ("tp", "pp", "pcp", "cp", "dp", "servers")
"""The sizes whose product is the world size."""


def check_sizes(**sizes: int) -> None:
    """Errors: LayoutError for a size that is no whole number, and for too many GPUs."""
    checked = {name: whole_number(size, name) for name, size in sizes.items()}
    world = math.prod(checked.get(name, 1) for name in _OF_WORLD)
    if world > MAX_RANKS:
        raise too_many_ranks(world, "tp")


def part_of(tp: int, **sizes: int) -> int:
    """The quotient of tp by these sizes. Errors: LayoutError where it is none."""
    product = math.prod(sizes.values())
    if tp % product:
        names = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        raise refusal("does-not-divide-tp", "tp", names=names, product=product, tp=tp)
    return tp // product
