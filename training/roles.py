"""What lies in the memory of each GPU in each phase of a step of several roles, in bytes.

Of all that its work needs (`RankBytes`), a rank of a role has in a phase in which it

    works                              everything
    works, by a forward pass alone     weights, cache, what it keeps, and what that pass needs
    sends or receives the weights      weights, and what it keeps
    has no part, on shared GPUs        what it keeps
    has no part, on GPUs of its own    everything but what it needs only while it works

The ranks of one pipeline stage have the same.

>>> from groups.layout import Job
>>> actor = Role("actor", Job(gpus_per_node=2, pp=2).layout())
>>> rollout = Role("rollout", Job(gpus_per_node=2, framework="vllm").layout(), shares=())
>>> plan = Plan(1, 2, (rollout, actor))
>>> engine = RankBytes({"weights": 20, "cache": 30}, working=5, forward=5)
>>> stages = [RankBytes({"weights": 10, "optimizer": 30}, working=at, forward=1) for at in (9, 6)]
>>> step = StepMemory(
...     plan, phases_of(plan), {"actor": stages, "rollout": [engine]}, {"actor": ("optimizer",)}
... )
>>> for phase in step.phases:
...     print(phase.name, *phase.roles, step.totals(phase).tolist())
rollout rollout [85.0, 85.0]
update actor [49.0, 46.0]
weights actor rollout [60.0, 60.0]
>>> [part[1:] for part in step.moment(step.phases[1], gpu=1).held]
[('weights', 10), ('optimizer', 30), ('working', 6)]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from groups.budget import spend
from groups.notes import Note
from groups.plan import Plan, Role

from .machine import GIB

if TYPE_CHECKING:
    from .memory.per_stage import StageMemory
    from .serving.server import ServerMemory

PARTS = ("weights", "gradients", "optimizer", "cache")
"""Parts of a role that may stay on its GPUs while other roles use them; servers have the cache."""

WORKING = "working"
"""What a role needs only while it works: activations, buffers."""

CROWDED = "roles-do-not-fit"
"""The code of a note: that a GPU has not the memory that roles need in a phase."""

# -- phases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Phase:
    """A part of one step of a plan, and the roles that work in it."""

    name: str
    roles: tuple[str, ...]


FORWARD = ("log-probs", "reference", "values", "reward", "teacher")
"""Phases in which nothing is updated."""

HANDOVER = "weights"
"""The phase in which the weights go from the actor to the rollout."""

SCORES = ("ref", "reward", "rm", "teacher", "judge")
"""Prefixes of words in the names of roles that only run forward passes."""


def reads_only(role: Role, phases: Iterable[Phase]) -> bool:
    """Whether a role only runs forward passes in a step."""
    return all(phase.name in FORWARD for phase in phases if role.name in phase.roles)


def phases_of(plan: Plan) -> tuple[Phase, ...]:
    """The phases of a step in order, from the names of the roles, for plans without a framework.

    Servers called prefill and decode hand over a cache; otherwise rollouts generate, others score,
    training updates, and the weights go to the rollouts.
    """
    readers = [role for role in plan.turns if _scores(role)]
    others = [role for role in plan.turns if not _scores(role)]
    servers = [role for role in others if role.layout.is_server]
    trained = [role for role in others if role not in servers]
    phases = [Phase(_generation(role), (role.name,)) for role in servers]
    phases += [Phase(_score(role), (role.name,)) for role in readers]
    phases += [Phase("update", (role.name,)) for role in trained]
    if servers and trained:
        phases.append(Phase(HANDOVER, (trained[0].name, *(role.name for role in servers))))
    return tuple(phases)


def _scores(role: Role) -> bool:
    words = re.split(r"[^a-z]+", role.name.lower())
    return any(word.startswith(SCORES) for word in words)


def _generation(role: Role) -> str:
    name = role.name.lower()
    return next((word for word in ("prefill", "decode") if name.startswith(word)), "rollout")


def _score(role: Role) -> str:
    return "reference" if role.name.lower().startswith("ref") else "reward"


# -- one role --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RankBytes:
    """Bytes that a rank of a role needs: by PARTS, and the working memory that it needs in addition
    while it works, for all of its work and for a forward pass alone."""

    parts: Mapping[str, float]
    working: float
    forward: float


_OF_PARTS = {
    "weights": ("weights", "copies"),
    "gradients": ("gradients",),
    "optimizer": ("optimizer",),
}
"""The parts of training.memory that make up each part of a role; others are working memory."""

_OF_FORWARD = ("gathered", "embedding", "output", "working")
"""The working memory of a forward pass, which keeps no activations."""


def trained_bytes(stages: Iterable[StageMemory], *, is_read: bool) -> tuple[RankBytes, ...]:
    """The bytes of a rank of each stage of a trained model; is_read: whether it `reads_only`."""
    held = {name for names in _OF_PARTS.values() for name in names}
    found = []
    for stage in stages:
        sizes = stage.parts
        parts = {part: sum(sizes.get(n, 0.0) for n in names) for part, names in _OF_PARTS.items()}
        forward = sum(sizes.get(name, 0.0) for name in _OF_FORWARD)
        working = sum(size for name, size in sizes.items() if name not in held)
        if is_read:
            parts, working = {"weights": parts["weights"]}, forward
        found.append(RankBytes(parts, working, forward))
    return tuple(found)


def served_bytes(memory: ServerMemory) -> tuple[RankBytes, ...]:
    """The bytes of a rank of each stage of a server; the cache is the size of its blocks."""
    return tuple(
        RankBytes(
            {"weights": stage.weights, "cache": memory.used(stage)}, stage.working, stage.working
        )
        for stage in memory.stages
    )


EVALUATED = 100
"""Sizes of memory that are looked up and added for a unit of work."""

# -- all of them -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """The contents of a GPU's memory in a phase: (role, part, bytes), working roles last."""

    phase: Phase
    gpu: int
    held: tuple[tuple[str, str, float], ...]

    @property
    def total(self) -> float:
        return sum(size for *_, size in self.held)


@dataclass(frozen=True)
class StepMemory:
    """The contents of the memory of a plan's GPUs in one step.

    work: bytes of a rank of each pipeline stage, by role; roles of unknown memory are missing.
    kept: the parts that a role leaves on its GPUs while other roles use them.
    """

    plan: Plan
    phases: Sequence[Phase]
    work: Mapping[str, Sequence[RankBytes]]
    kept: Mapping[str, Collection[str]] = field(default_factory=dict)

    def moment(self, phase: Phase, gpu: int) -> Moment:
        """The contents of one GPU's memory in a phase."""
        places = self.plan.roles_of(gpu)
        held = []
        for role, rank in sorted(places, key=lambda place: place[0].name in phase.roles):
            if work := self.work.get(role.name):
                stage = _stages(role, np.array([rank]))[0]
                parts = self._there(role, work[stage], phase, len(places) > 1)
                held += [(role.name, part, size) for part, size in parts.items() if size]
        return Moment(phase, gpu, tuple(held))

    def totals(self, phase: Phase) -> np.ndarray:
        """Bytes in each GPU of the cluster in a phase: float64, shape (world,)."""
        lengths = np.diff(self._pieces, append=self.plan.world_size)
        return np.repeat(self._totals(phase), lengths)

    @cached_property
    def _pieces(self) -> np.ndarray:
        """The first GPU of each piece of the cluster in which no role and no stage begins or ends:
        all GPUs of a piece have the same in memory. int64, ascending."""
        world = self.plan.world_size
        begins = np.zeros(world + 1, dtype=bool)
        begins[0] = True
        for role in self.plan.roles:
            place, stride = 0, _stride(role)
            for first, last in role.placed.spans:
                begins[[first, last + 1]] = True
                begins[first + -place % stride : last + 1 : stride] = True
                place += last - first + 1
        return np.flatnonzero(begins[:world])

    @cached_property
    def _stages_there(self) -> Mapping[str, np.ndarray]:
        """The stage of each role in each piece; -1 where it is not. int32, shape (pieces,)."""
        pieces = self._pieces
        units = len(pieces) * len(self.plan.roles) * (len(self.phases) + 2) // EVALUATED
        spend(units, "ranks", control="roles")
        found = {}
        for role in self.plan.roles:
            ranks = role.placed.places(pieces)
            found[role.name] = np.where(ranks < 0, -1, _stages(role, ranks)).astype(np.int32)
        return found

    def _totals(self, phase: Phase) -> np.ndarray:
        """Bytes in a GPU of each piece in a phase: float64, shape (pieces,)."""
        totals = np.zeros(len(self._pieces))
        for role in self.plan.turns:
            if work := self.work.get(role.name):
                sizes = [
                    [sum(self._there(role, one, phase, shares).values()) for one in work]
                    for shares in (False, True)
                ]
                table = np.pad(np.array(sizes), ((0, 0), (0, 1)))  # stage -1: nothing
                totals += table[self._shared, self._stages_there[role.name]]
        return totals

    @cached_property
    def fullest(self) -> Moment:
        """The moment with the largest total over all GPUs and phases."""
        return self._fullest_of(np.arange(len(self._pieces)))

    def crowded(self, capacity: float) -> Iterator[Note]:
        """A note for each set of roles on common GPUs whose fullest moment exceeds a GPU's memory.

        capacity: bytes of a GPU's memory.

        >>> from groups.layout import Job
        >>> plan = Plan.of(Job(gpus_per_node=2).layout(), "actor")
        >>> work = {"actor": [RankBytes({"weights": 60 * GIB}, working=30 * GIB, forward=GIB)]}
        >>> (note,) = StepMemory(plan, phases_of(plan), work).crowded(80 * GIB)
        >>> dict(note.facts)
        {'phase': 'update', 'roles': 'actor', 'gpu': 0, 'needed': 90.0, 'capacity': 80.0}
        """
        sets = np.zeros(len(self._pieces), dtype=np.int64)
        for number, role in enumerate(self.plan.roles):
            sets |= (self._stages_there[role.name] >= 0).astype(np.int64) << number
        for one in np.unique(sets):
            moment = self._fullest_of(np.flatnonzero(sets == one))
            if moment.total > capacity:
                roles = ", ".join(dict.fromkeys(role for role, *_ in moment.held))
                sizes = {
                    "needed": round(moment.total / GIB, 1),
                    "capacity": round(capacity / GIB, 1),
                }
                facts = {"phase": moment.phase.name, "roles": roles, "gpu": moment.gpu, **sizes}
                yield Note(CROWDED, facts)

    def _fullest_of(self, pieces: np.ndarray) -> Moment:
        most, at = self._peaks
        piece = int(pieces[most[pieces].argmax()])
        return self.moment(self.phases[at[piece]], int(self._pieces[piece]))

    @cached_property
    def _peaks(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest total in each piece, and the index of the first phase that reaches it."""
        most = self._totals(self.phases[0])
        at = np.zeros(len(most), dtype=np.int64)
        for place, phase in enumerate(self.phases[1:], 1):
            totals = self._totals(phase)
            at[totals > most] = place
            most = np.maximum(most, totals)
        return most, at

    @cached_property
    def _shared(self) -> np.ndarray:
        """Whether several roles have the GPUs of a piece, as 0 and 1."""
        count = sum((stages >= 0).astype(np.int64) for stages in self._stages_there.values())
        return (np.asarray(count) > 1).astype(np.int64)

    def _there(self, role: Role, work: RankBytes, phase: Phase, shares: bool) -> dict[str, float]:
        """The bytes of a rank that are on its GPU in a phase, by part."""
        kept = self.kept.get(role.name, ()) if shares else PARTS
        used, working = tuple[str, ...](), 0.0
        if role.name not in phase.roles:
            pass  # only the parts that it keeps
        elif phase.name == HANDOVER:
            used = ("weights",)
        elif phase.name in FORWARD:
            used, working = ("weights", "cache"), work.forward
        else:
            used, working = PARTS, work.working
        there = {part: work.parts.get(part, 0.0) for part in PARTS if part in {*used, *kept}}
        return {**there, WORKING: working}


def _stages(role: Role, ranks: np.ndarray) -> np.ndarray:
    """The pipeline stage of some ranks."""
    mesh = role.layout.mesh
    stride = mesh.strides[mesh.names.index("pp")] if "pp" in mesh.names else 1
    return np.asarray(ranks // stride % mesh.size("pp"))


def _stride(role: Role) -> int:
    """How many ranks on from a rank where a stage begins the next one does; the number of ranks
    where there is one stage."""
    mesh, world = role.layout.mesh, role.layout.world_size
    return mesh.strides[mesh.names.index("pp")] if mesh.size("pp") > 1 else world
