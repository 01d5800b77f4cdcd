"""A plan as a document: its roles in numbers, and a table of every rank of each.

>>> from formats.roles import read_plan
>>> read = read_plan("python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 4 "
...     "--rollout-num-gpus 4 --rollout-num-gpus-per-engine 2 --tensor-model-parallel-size 2")
>>> for role in plan_facts(read.plan, read.phases)["roles"]:
...     print(role["name"], role["first"], role["gpus"], role["sizes"], role["engines"])
actor 0 4 {'tp': 2, 'pp': 1, 'cp': 1, 'ep': 1} None
rollout 4 4 {'tp': 2, 'pp': 1, 'cp': 1, 'ep': 1} 2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypedDict

from groups.budget import spend
from groups.plan import Plan, Role
from training.roles import Phase

SIZES = ("tp", "pp", "cp", "ep")


class RoleFacts(TypedDict):
    """A role in numbers; engines: None for one that trains."""

    name: str
    first: int
    gpus: int
    sizes: dict[str, int]
    engines: int | None
    framework: str
    spans: list[list[int]]  # first and last GPU of each run of its ranks
    after: list[str]  # the roles that have its GPUs before it does


class PhaseFacts(TypedDict):
    name: str
    roles: list[str]


class PlanFacts(TypedDict):
    nodes: int
    gpus_per_node: int
    roles: list[RoleFacts]
    turns: list[str]
    phases: list[PhaseFacts]
    beside: list[str]
    unused: int


def plan_facts(plan: Plan, phases: Iterable[Phase], beside: Iterable[str] = ()) -> PlanFacts:
    """A plan in numbers, and the phases of a step."""
    return {
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "roles": [role_facts(role) for role in plan.roles],
        "turns": [role.name for role in plan.turns],
        "phases": [{"name": phase.name, "roles": [*phase.roles]} for phase in phases],
        "beside": [*beside],
        "unused": len(plan.free),
    }


def role_facts(role: Role) -> RoleFacts:
    """One role in numbers."""
    job = role.layout.job
    world = role.layout.world_size
    sizes = {name: int(getattr(job, name)) for name in SIZES}
    others = {"etp": job.etp, "dp": job.dp, "dcp": job.dcp, "moe_dp": job.moe_dp}
    sizes |= {name: size for name, size in others.items() if size is not None and size > 1}
    return {
        "name": role.name,
        "first": role.first_rank,
        "gpus": world,
        "sizes": sizes,
        "engines": role.layout.copies if role.layout.engine_gpus else None,
        "framework": role.layout.framework,
        "spans": spans_of(role),
        "after": [*(role.shares or ())],
    }


def spans_of(role: Role) -> list[list[int]]:
    """The runs of GPUs of its ranks, in order.

    >>> from groups.layout import Job
    >>> spans_of(Role("reward", Job(gpus_per_node=4).layout(), gpus=(8, 9, 2, 3)))
    [[8, 9], [2, 3]]
    """
    return [[first, last] for first, last in role.placed.spans]


COLUMNS = ("rank", "node", "role", "role_rank", "groups")
"""Columns for every rank of every role: rank is its GPU's number in the cluster."""


ROW = 6
"""Units of work of a row, with its groups."""


def rank_rows(plan: Plan, gpu: int | None = None) -> Iterator[tuple[int, int, str, int, str]]:
    """Every rank of every role, role by role, with the indices of its groups; gpu: of one GPU.

    >>> from groups.layout import Job
    >>> rollout = Role("rollout", Job(gpus_per_node=2, tp=2, framework="vllm").layout(), 6)
    >>> next(rank_rows(Plan(1, 8, (rollout,))))
    (6, 0, 'rollout', 0, 'tp=0')
    >>> [*rank_rows(Plan(1, 8, (rollout,)), gpu=7)]
    [(7, 0, 'rollout', 1, 'tp=0')]
    """
    if gpu is None:
        spend(sum(role.layout.world_size for role in plan.roles) * ROW, "ranks", control="plan")
    for role in plan.roles:
        kinds = [grouping for grouping in role.layout.main if grouping.size > 1]
        rank = None if gpu is None else role.rank_on(gpu)
        if gpu is None:
            every = [(kind.name, kind.index().tolist()) for kind in kinds]
            for own, at in enumerate(role.ranks.tolist()):
                found = ((name, index[own]) for name, index in every)
                yield _row(plan, role, own, at, found)
        elif rank is not None:
            indices = ((kind.name, kind.index_of(rank)) for kind in kinds)
            yield _row(plan, role, rank, gpu, ((n, -1 if i is None else i) for n, i in indices))


def _row(
    plan: Plan, role: Role, rank: int, gpu: int, indices: Iterable[tuple[str, int]]
) -> tuple[int, int, str, int, str]:
    groups = " ".join(f"{name}={index}" for name, index in indices if index >= 0)
    return gpu, gpu // plan.gpus_per_node, role.name, rank, groups
