"""What lies in the memory of each GPU in each part of a step of a plan.

A role that works has all that it needs; one that does not, and shares a GPU with another, leaves
there what it keeps; alone on its GPUs it keeps all that it has from step to step. Bytes are those
of training.memory and training.serving.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from groups import LayoutError
from groups.plan import Plan, Role
from training.clusters import CLUSTERS
from training.serving.server import GIB

from ..base.context import Context
from ..base.role_text import PARTS
from ..base.roles import RolePage, layout_of
from ..base.state import State, is_empty
from ..base.trained import cluster_of
from ..memory.served import served_of
from .places import stage_of

WORKING = "working"
"""What a role needs only while it works: activations, buffers."""

OF_WORK = {
    "weights": ("weights", "copies"),
    "gradients": ("gradients",),
    "optimizer": ("optimizer",),
}
"""Parts of training.memory by the part of a role that they are; all others are working."""

SCORES = ("ref", "reward", "rm", "teacher", "judge")
"""How names of roles begin that only read: a forward pass, nothing to update."""

FORWARD = ("gathered", "embedding", "output", "working")
"""What a forward pass alone needs beside weights."""


def work_of(role: Role) -> str:
    """What a role does in a step: "generate", "score" or "update", by what it is and its name."""
    if role.name.lower().startswith(SCORES):
        return "score"
    return "generate" if role.layout.is_server else "update"


@dataclass(frozen=True)
class StepPhase:
    """A part of a step: its name among the words, and the roles that work in it."""

    name: str
    roles: tuple[str, ...]


def phases_of(plan: Plan) -> list[StepPhase]:
    """In the order in which a step has them.

    Servers called prefill and decode hand over a cache; otherwise rollouts generate, others score,
    training updates, and the weights go to the rollouts.
    """
    by_work: dict[str, list[Role]] = {"generate": [], "score": [], "update": []}
    for role in plan.turns:
        by_work[work_of(role)].append(role)
    phases = [StepPhase(_named(role), (role.name,)) for role in by_work["generate"]]
    phases += [StepPhase(_named(role), (role.name,)) for role in by_work["score"]]
    phases += [StepPhase("update", (role.name,)) for role in by_work["update"]]
    if by_work["generate"] and by_work["update"]:
        first, last = by_work["update"][0], by_work["generate"]
        phases.append(StepPhase("weights", (first.name, *(role.name for role in last))))
    return phases


def _named(role: Role) -> str:
    name = role.name.lower()
    for word, phase in (("prefill", "prefill"), ("decode", "decode"), ("ref", "reference")):
        if name.startswith(word):
            return phase
    if work_of(role) == "score":
        return "reward"
    return "rollout"


# -- of one role -----------------------------------------------------------------------------------

Bytes = Mapping[str, float]
"""By PARTS, and WORKING."""


@dataclass(frozen=True)
class RoleMemory:
    """Bytes of a rank of each stage of a role while it works; refused: why nobody knows."""

    stages: tuple[Bytes, ...] = ()
    refused: LayoutError | None = None


@lru_cache(maxsize=64)
def memory_of(page: State, work: str) -> RoleMemory:
    """The memory of a role, worked out once while that stays as it is."""
    return memory_known(Context(layout_of(page), page), work)


def memory_known(context: Context, work: str) -> RoleMemory:
    """The memory of the role that a context is of."""
    try:
        if context.layout.is_server:
            return RoleMemory(tuple(_served(context)))
        return RoleMemory(tuple(_trained(context, work)))
    except LayoutError as error:
        return RoleMemory(refused=error)


def _served(context: Context) -> Iterator[Bytes]:
    memory = served_of(context).memory
    for stage in memory.stages:
        yield {"weights": stage.weights, "cache": memory.used(stage), WORKING: stage.working}


def _trained(context: Context, work: str) -> Iterator[Bytes]:
    for stage in context.trained.stages():
        parts = {part: sum(stage.parts.get(n, 0.0) for n in of) for part, of in OF_WORK.items()}
        known = {name for names in OF_WORK.values() for name in names}
        others = FORWARD if work == "score" else [n for n in stage.parts if n not in known]
        working = sum(stage.parts.get(name, 0.0) for name in others)
        if work == "score":
            parts = {"weights": parts["weights"]}
        yield {**parts, WORKING: working}


# -- of all of them --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """A phase, and what lies in a GPU then: (role, part, bytes), those that work last."""

    phase: StepPhase
    held: tuple[tuple[str, str, float], ...]

    @property
    def total(self) -> float:
        return sum(size for *_, size in self.held)


@dataclass(frozen=True)
class Moments:
    """The phases at one GPU; capacity in bytes. fullest: of all GPUs and phases, the phase, the GPU
    and its bytes. refused: why the memory of a role is not known."""

    gpu: int
    moments: tuple[Moment, ...]
    capacity: float
    fullest: tuple[StepPhase, int, float]
    refused: Mapping[str, LayoutError]

    @property
    def fits(self) -> bool:
        return self.fullest[2] <= self.capacity


def moments_of(context: Context, gpu: int) -> Moments:
    """What lies in a GPU in each phase, and which GPU has least room, when."""
    plan, members = context.plan, {one.name: one for one in context.cast.members}
    memories = {
        role.name: memory_known(context, work_of(role))
        if role.name == context.cast.shown.name
        else memory_of(members[role.name].page, work_of(role))
        for role in plan.turns
    }
    count = np.zeros(plan.world_size, dtype=np.int64)
    for role in plan.turns:
        count[role.ranks] += 1
    phases, moments, most = phases_of(plan), [], (phases_of(plan)[0], gpu, 0.0)
    stages = {role.name: _stages(role) for role in plan.turns}
    shares = {role.name: (count[role.ranks] > 1).astype(np.int64) for role in plan.turns}
    for phase in phases:
        totals = np.zeros(plan.world_size)
        for role in plan.turns:
            name = role.name
            both = [_sizes(role, memories[name], phase, members[name], bool(one)) for one in (0, 1)]
            totals[role.ranks] += np.stack(both)[shares[name], stages[name]]
        at = int(totals.argmax())
        if totals[at] > most[2]:
            most = (phase, at, float(totals[at]))
        held = _held(plan, gpu, phase, memories, members, bool(count[gpu] > 1))
        moments.append(Moment(phase, tuple(held)))
    refused = {name: one.refused for name, one in memories.items() if one.refused}
    return Moments(gpu, tuple(moments), capacity_of(context.state), most, refused)


def capacity_of(state: State) -> float:
    if is_empty(state.capacity):
        return float(CLUSTERS[cluster_of(state)].memory)
    return float(state.capacity) * GIB


def _stages(role: Role) -> np.ndarray:
    mesh = role.layout.mesh
    stride = mesh.strides[mesh.names.index("pp")] if "pp" in mesh.names else 1
    return _along(role.layout.world_size, stride, mesh.size("pp"))


@lru_cache(maxsize=16)
def _along(world: int, stride: int, size: int) -> np.ndarray:
    return np.arange(world) // stride % size


def _parts(
    work: Bytes, role: Role, phase: StepPhase, member: RolePage, shares: bool
) -> dict[str, float]:
    """What of a rank's bytes is there in a phase."""
    kept = member.kept if shares else PARTS
    there = {part: size for part, size in work.items() if part in kept}
    if role.name not in phase.roles:
        return there
    if phase.name == "weights":  # what is handed over, beside what stays anyway
        return {"weights": work.get("weights", 0.0), **there}
    return dict(work)


def _sizes(
    role: Role, memory: RoleMemory, phase: StepPhase, member: RolePage, shares: bool
) -> np.ndarray:
    """Bytes of a rank of each stage in a phase; zeros where they are not known."""
    stages = memory.stages or ({},) * role.layout.mesh.size("pp")
    return np.array([sum(_parts(one, role, phase, member, shares).values()) for one in stages])


def _held(
    plan: Plan,
    gpu: int,
    phase: StepPhase,
    memories: Mapping[str, RoleMemory],
    members: Mapping[str, RolePage],
    shares: bool,
) -> Iterator[tuple[str, str, float]]:
    places = sorted(plan.roles_of(gpu), key=lambda place: place[0].name in phase.roles)
    for role, rank in places:
        stages = memories[role.name].stages
        if stages:
            work = stages[stage_of(role.layout, rank)]
            parts = _parts(work, role, phase, members[role.name], shares)
            for part in (*PARTS, WORKING):
                if parts.get(part):
                    yield role.name, part, parts[part]
