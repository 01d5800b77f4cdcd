"""Plans of pipelines from their text, whether they run everything once, and what they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from training.pipeline import figures_of, plan_of, simulate
from training.pipeline.plan import KINDS, B, F, I, PipelinePlan, W


def read_plan(order: Sequence[Sequence[str]]) -> PipelinePlan:
    """A plan from its text: ``read_plan(plan.order())`` runs the same ops."""
    rows = [[re.findall(r"(\d+)([FBIW])(\d+)", place) for place in row] for row in order]
    ops = [op for row in rows for place in row for op in place]
    stages, m = (1 + max(int(op[at]) for op in ops) for at in (0, 2))

    def number(op: tuple[str, str, str]) -> int:
        return KINDS.index(op[1]) + 4 * (int(op[2]) + m * int(op[0]))

    places = (
        [
            number(one) + sum((number(two) + 1) * 4 * m * stages for two in pair)
            for one, *pair in row
        ]
        for row in rows
    )
    plan = PipelinePlan(stages, m, tuple(np.array(row, dtype=np.int64) for row in places))
    check_plan(plan)
    return plan


def check_plan(plan: PipelinePlan) -> None:
    """Everything runs once, on one rank each backward after its own forward, W after I."""
    ops, _ = plan.ops
    counts = np.bincount(ops, minlength=plan.num_ops).reshape(plan.stages, plan.m, 4)
    split = (counts[..., I] == 1) & (counts[..., W] == 1) & (counts[..., B] == 0)
    whole = (counts[..., B] == 1) & (counts[..., I] == 0) & (counts[..., W] == 0)
    assert ((counts[..., F] == 1) & (split | whole)).all()
    where, rank = plan.where.reshape(plan.stages, plan.m, 4), plan.rank_of_place
    back = np.maximum(where[..., B], where[..., I])
    weights = np.where(split, where[..., W], back)
    assert (back > where[..., F]).all()
    assert (weights >= back).all()
    assert (rank[back] == rank[where[..., F]]).all()
    assert (rank[weights] == rank[back]).all()


def peaks(name: str, p: int, m: int, v: int | None = None) -> list[float]:
    """The most that each rank holds until W, in whole-rank micro-batches."""
    plan = plan_of(name, p, m, v)
    return (figures_of(simulate(plan)).peak * plan.share).tolist()
