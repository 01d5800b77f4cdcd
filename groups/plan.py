"""A plan: several named layouts on the same machines.

A `Role` is a training or a serving layout on a run of consecutive GPUs, or on an explicit list,
which is kept as runs too (groups.gpus); a
`Plan` is the roles of one cluster. Its laws: every rank of a role is a GPU of the cluster, and
roles that share GPUs have an order. A plan of one role is a single job.

GPUs are numbered as the ranks of a job on the whole cluster: GPU g is GPU g % gpus_per_node of node
g // gpus_per_node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .errors import LayoutError, not_a_choice, quoted, refusal
from .gpus import Gpus, gaps, union
from .layout import Layout, world_of
from .mesh import MAX_RANKS, Axis, Mesh, require_rank, whole_number

MAX_ROLES = 32
"""The largest number of roles of a plan: published ones have about ten."""


@dataclass(frozen=True)
class Role:
    """A named layout, and the GPUs of its ranks.

    first_rank: the GPU of its rank 0; the others follow it. gpus: the GPU of each rank, in place of
    first_rank. shares: names of the roles that use its GPUs before it does, in a step; None: the
    roles before it in the plan; empty: it uses its GPUs first, or alone.

    >>> from groups.layout import Job
    >>> rollout = Role("rollout", Job(tp=2, framework="vllm").layout(), first_rank=8)
    >>> rollout.ranks.tolist(), rollout.rank_on(11), rollout.rank_on(3)
    ([8, 9, 10, 11, 12, 13, 14, 15], 3, None)
    >>> Role("reward", Job(gpus_per_node=2).layout(), gpus=(7, 5)).ranks.tolist()
    [7, 5]

    Errors: LayoutError for an empty name, and for GPUs that are negative, repeated, or not one for
    each rank.
    """

    name: str
    layout: Layout
    first_rank: int = 0
    shares: Sequence[str] | None = None
    gpus: Sequence[int] | np.ndarray = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise refusal("role-without-name", "name", value=quoted(self.name))
        first = whole_number(self.first_rank, "first_rank", minimum=0, maximum=MAX_RANKS - 1)
        shares = (self.shares,) if isinstance(self.shares, str) else self.shares
        shares = None if shares is None else tuple(shares)
        gpus = self._chosen()
        if gpus and first not in (0, gpus.first):
            facts = {"role": self.name, "first": first, "gpu": gpus.first}
            raise refusal("two-first-ranks", "first_rank", {"first_rank": gpus.first}, **facts)
        if gpus:
            first = gpus.first
            gpus = Gpus() if len(gpus.spans) == 1 else gpus
        for field, value in {"first_rank": first, "shares": shares, "gpus": gpus}.items():
            object.__setattr__(self, field, value)

    def _chosen(self) -> Gpus:
        world = self.layout.world_size
        if not len(self.gpus):
            return Gpus()
        if len(self.gpus) != world:
            facts = {"role": self.name, "world": world, "count": len(self.gpus)}
            raise refusal("gpus-are-not-ranks", "gpus", {"gpus": ()}, **facts)
        listed = self.gpus.tolist() if isinstance(self.gpus, np.ndarray) else self.gpus
        # of runs their ends: a list has one number for each rank
        ends = (
            [end for span in listed.spans for end in span] if isinstance(listed, Gpus) else listed
        )
        for gpu in ends:
            whole_number(gpu, "gpus", minimum=0, maximum=MAX_RANKS - 1)
        gpus = Gpus.of(listed)
        if gpus.repeated is not None:
            facts = {"role": self.name, "gpu": gpus.repeated}
            raise refusal("gpu-twice", "gpus", {"gpus": ()}, **facts)
        return gpus

    @cached_property
    def placed(self) -> Gpus:
        """The GPU of each rank, as runs."""
        chosen = Gpus.of(self.gpus)
        return chosen or Gpus.run(self.first_rank, self.layout.world_size)

    @property
    def ranks(self) -> np.ndarray:
        """The GPU of each rank, by its number in the cluster: int64, shape (world,), read-only.

        Those of a few ranks are cheaper: ``role.placed.take(grouping.members(rank))``.
        """
        return self.placed.array()

    def rank_on(self, gpu: int) -> int | None:
        """The role's rank on a GPU of the cluster; None if it has none there."""
        return self.placed.place(gpu)

    @property
    def last(self) -> int:
        """Its highest GPU."""
        return self.placed.last

    def meets(self, other: Role) -> bool:
        """Whether both roles use a common GPU."""
        return self.placed.meets(other.placed)


@dataclass(frozen=True)
class Plan:
    """The roles of one cluster.

    >>> from groups.layout import Job
    >>> actor = Role("actor", Job(nodes=2, tp=4, pp=2).layout())
    >>> rollout = Role("rollout", Job(tp=2, framework="vllm").layout(), first_rank=8)
    >>> plan = Plan(nodes=3, gpus_per_node=8, roles=(actor, rollout))
    >>> [(role.name, rank) for role, rank in plan.roles_of(12)]
    [('actor', 12), ('rollout', 4)]
    >>> plan.unused.tolist()
    [16, 17, 18, 19, 20, 21, 22, 23]

    Errors: LayoutError for machines that are none or too many, no role or too many, two roles of
    one name, a role that ends beyond the cluster, and roles that share GPUs in no order.
    """

    nodes: int
    gpus_per_node: int
    roles: Sequence[Role]

    def __post_init__(self) -> None:
        world_of(self.nodes, self.gpus_per_node)
        roles = tuple(self.roles)
        object.__setattr__(self, "roles", roles)
        if not 1 <= len(roles) <= MAX_ROLES:
            raise refusal("number-of-roles", "roles", count=len(roles), limit=MAX_ROLES)
        names = [role.name for role in roles]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise refusal("role-named-twice", "name", role=twice)
        for role in roles:
            self._require_inside(role)
        _ = self.turns  # refuses roles in no order

    @classmethod
    def of(cls, layout: Layout, name: str = "job") -> Plan:
        """A plan with a single role: the job on a cluster of its size.

        >>> from groups.layout import Job
        >>> plan = Plan.of(Job(nodes=2, tp=4).layout())
        >>> str(plan), plan.roles_of(9)[0][1]
        ('2 x 8 GPUs: job 0-15', 9)
        """
        return cls(layout.nodes, layout.gpus_per_node, (Role(name, layout),))

    def __str__(self) -> str:
        """The machines, and the GPUs of each role as ranges."""
        machines = f"{self.nodes:,} x {self.gpus_per_node:,} GPUs"
        roles = (
            f"{role.name} {len(role.gpus)} chosen"
            if len(role.gpus)
            else f"{role.name} {role.first_rank}-{role.last}"
            for role in self.roles
        )
        return f"{machines}: {', '.join(roles)}"

    @property
    def world_size(self) -> int:
        """GPUs of the cluster."""
        return self.nodes * self.gpus_per_node

    def role(self, name: str) -> Role:
        """The role with a name. Errors: LayoutError for an unknown name, with the known names."""
        for role in self.roles:
            if role.name == name:
                return role
        raise not_a_choice("role", name, [role.name for role in self.roles])

    def roles_of(self, rank: int) -> tuple[tuple[Role, int], ...]:
        """The roles on a GPU in the order in which they use it, each with its rank there.

        Errors: LayoutError for a GPU outside of the cluster.
        """
        gpu = require_rank(Mesh((Axis("gpu", self.world_size),)), rank)
        found = ((role, role.rank_on(gpu)) for role in self.turns)
        return tuple((role, own) for role, own in found if own is not None)

    @cached_property
    def turns(self) -> tuple[Role, ...]:
        """The roles, sorted so that roles which share GPUs follow the order of their use."""
        before = {role.name: self._before(role) for role in self.roles}
        left, turns = list(self.roles), list[Role]()
        reached: dict[str, set[str]] = {}  # roles that precede a role, directly or indirectly
        while left:
            done = {role.name for role in turns}
            ready = next((role for role in left if before[role.name] <= done), None)
            if ready is None:
                names = ", ".join(role.name for role in left)
                raise refusal("roles-in-circle", "shares", {"shares": None}, roles=names)
            direct = before[ready.name]
            reached[ready.name] = direct.union(*(reached[name] for name in direct))
            for other in turns:
                if other.name not in reached[ready.name] and other.meets(ready):
                    raise self._unordered(ready, other)
            turns.append(ready)
            left.remove(ready)
        return tuple(turns)

    @cached_property
    def free(self) -> Gpus:
        """GPUs without a role, as runs, ascending."""
        return self._beside(self.roles)

    @property
    def unused(self) -> np.ndarray:
        """GPUs without a role: int64, ascending."""
        return self.free.array()

    def _beside(self, roles: Iterable[Role]) -> Gpus:
        """The GPUs that none of some roles has."""
        return gaps(union(role.placed for role in roles), self.world_size)

    def _before(self, role: Role) -> set[str]:
        """Names of the roles that use this role's GPUs directly before it."""
        if role.shares is None:
            earlier = self.roles[: self.roles.index(role)]
            return {o.name for o in earlier if role.name not in (o.shares or ()) and o.meets(role)}
        others = {other.name: other for other in self.roles if other is not role}
        for name in role.shares:
            if name not in others:
                raise not_a_choice("shares", name, others)
            if not others[name].meets(role):
                facts = {"role": role.name, "other": name}
                raise refusal("roles-apart", "shares", {"shares": None}, **facts)
        return set(role.shares)

    def _require_inside(self, role: Role) -> None:
        world = self.world_size
        if role.last < world:
            return
        fixes: list[dict[str, int]] = []
        if not len(role.gpus) and role.layout.world_size <= world:
            fixes.append({"first_rank": world - role.layout.world_size})
        nodes = role.last // self.gpus_per_node + 1
        if nodes * self.gpus_per_node <= MAX_RANKS:
            fixes.append({"nodes": nodes})
        facts = {"role": role.name, "last": role.last, "world": world}
        control = next(iter(fixes[0])) if fixes else "first_rank"
        raise refusal("role-beyond-cluster", control, *fixes, **facts)

    def _unordered(self, role: Role, other: Role) -> LayoutError:
        fixes: list[dict[str, object]] = [{"shares": other.name}]
        free = self._free_start(role)
        if free is not None and not len(role.gpus):
            fixes.append({"first_rank": free})
        facts = {"role": role.name, "other": other.name}
        return refusal("roles-without-order", "shares", *fixes, **facts)

    def _free_start(self, role: Role) -> int | None:
        """The nearest GPU from which on there are as many as a role has ranks, without another
        role; None if there is none."""
        size, first = role.layout.world_size, role.first_rank
        free = self._beside(other for other in self.roles if other is not role)
        near = [max(a, min(first, b - size + 1)) for a, b in free.spans if b - a + 1 >= size]
        return min(near, key=lambda at: abs(at - first), default=None)
