"""What a fault does to a plan: which role hangs, and what fails with a node.

A role's processes number themselves from 0: rank 5 of a watchdog's message or a dump is rank 5 of
one of the roles. Its groups identify the role: one layout makes them, the others do not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .gpus import Gpus
from .layout import Layout
from .mesh import require_rank, whole_number
from .notes import Note
from .plan import Plan, Role

MOST = 16
"""The largest number of items that a sentence lists."""


def copies_of(role: Role) -> np.ndarray:
    """The copy of the model that each rank belongs to (of a server, its engine): int64, shape
    (world,).

    >>> from groups.layout import Job
    >>> copies_of(Role("rollout", Job(gpus_per_node=4, tp=2, framework="vllm").layout())).tolist()
    [0, 0, 1, 1]
    """
    return role.layout.copy_of(np.arange(role.layout.world_size))


@dataclass(frozen=True)
class RoleLoss:
    """The loss of a role when machines fail: its ranks there, and the model copies that they belong
    to."""

    role: Role
    ranks: tuple[int, ...]
    copies: tuple[int, ...]
    total: int  # copies that the role has

    @property
    def left(self) -> int:
        return self.total - len(self.copies)


def lost_with(plan: Plan, nodes: int | Iterable[int]) -> tuple[RoleLoss, ...]:
    """The loss of each role when one or more nodes fail, in the order of the roles' turns.

    >>> from groups.layout import Job
    >>> actor = Role("actor", Job(nodes=2, tp=4, pp=2).layout())
    >>> rollout = Role("rollout", Job(tp=2, framework="vllm").layout(), first_rank=8)
    >>> for loss in lost_with(Plan(2, 8, (actor, rollout)), 1):
    ...     print(loss.role.name, loss.ranks[0], loss.copies, loss.left)
    actor 8 (0, 1) 0
    rollout 0 (0, 1, 2, 3) 0

    Errors: LayoutError for a node that the cluster has not.
    """
    several = (nodes,) if isinstance(nodes, int) else tuple(nodes)
    failed = sorted(
        {whole_number(one, "node", minimum=0, maximum=plan.nodes - 1) for one in several}
    )
    each = plan.gpus_per_node
    gpus = Gpus.of_spans((node * each, node * each + each - 1) for node in failed).array()
    losses = []
    for role in plan.turns:
        places = role.placed.places(gpus)
        ranks = np.sort(places[places >= 0])
        if len(ranks):
            ended = tuple(np.unique(role.layout.copy_of(ranks)).tolist())
            losses.append(RoleLoss(role, tuple(ranks.tolist()), ended, role.layout.copies))
    return tuple(losses)


@dataclass(frozen=True)
class RoleHang:
    """A role that hangs: its hanging ranks, and the roles that wait for their GPUs."""

    role: Role
    ranks: tuple[int, ...]
    waiting: tuple[str, ...]

    @property
    def gpus(self) -> tuple[int, ...]:
        """The GPUs of the hanging ranks, by their numbers in the cluster."""
        return tuple(self.role.placed.take(self.ranks).tolist())

    @property
    def copies(self) -> tuple[int, ...]:
        """The engines, or copies of the model, that the hanging ranks belong to."""
        return tuple(
            np.unique(self.role.layout.copy_of(np.array(self.ranks, dtype=np.int64))).tolist()
        )

    @property
    def note(self) -> Note:
        """The hang as the facts of a sentence."""
        code = "engine-hangs" if self.role.layout.is_server else "role-hangs"
        facts = {"role": self.role.name, "ranks": _listed(self.ranks), "gpus": _listed(self.gpus)}
        facts |= {"copies": _listed(self.copies)}
        if not self.waiting:
            return Note(code, facts)
        return Note(f"{code}-and-others-wait", {**facts, "waiting": ", ".join(self.waiting)})


def hangs_of(
    plan: Plan, groups: Iterable[Collection[int]], ranks: Sequence[int], world: int | None = None
) -> tuple[RoleHang, ...]:
    """The roles that may hang: those that make these groups and have these ranks.

    groups: ranks of the process groups in the evidence, as the processes number themselves. ranks:
    those that hang or are missing. world: the number of processes, if known. The result has several
    roles if the evidence does not distinguish them.

    >>> from groups.layout import Job
    >>> actor = Role("actor", Job(nodes=2, tp=4, pp=2).layout())
    >>> rollout = Role("rollout", Job(nodes=2, tp=2, framework="vllm").layout())
    >>> plan = Plan(2, 8, (actor, rollout))
    >>> [hang] = hangs_of(plan, [(4, 5)], [5])
    >>> hang.role.name, hang.copies, hang.gpus, hang.waiting
    ('rollout', (2,), (5,), ())
    """
    named = [sorted({*group}) for group in groups]
    found = []
    for role in plan.turns:
        size = role.layout.world_size
        if world is not None and world != size:
            continue
        if any(not 0 <= rank < size for rank in ranks):
            continue
        if all(_makes(role.layout, group) for group in named):
            own = tuple(require_rank(role.layout.mesh, rank) for rank in sorted({*ranks}))
            found.append(RoleHang(role, own, _waiting(plan, role)))
    return tuple(found)


def _makes(layout: Layout, group: list[int]) -> bool:
    """Whether one of a layout's groups has exactly these ranks."""
    if not group or not 0 <= group[0] <= group[-1] < layout.world_size:
        return False
    if len(group) in (1, layout.world_size):
        return True
    return any(
        grouping.size == len(group) and np.array_equal(np.sort(grouping.members(group[0])), group)
        for grouping in layout.every.values()
    )


def _waiting(plan: Plan, role: Role) -> tuple[str, ...]:
    """The roles that use this one's GPUs after it."""
    turns = [*plan.turns]
    return tuple(other.name for other in turns[turns.index(role) + 1 :] if other.meets(role))


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:MOST]))
    return shown + (" ..." if len(numbers) > MOST else "")
