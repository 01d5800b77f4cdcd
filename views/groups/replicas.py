"""What data parallelism sends while a step is played: in which op, among whom, how much.

    forward   with every forward of a micro-batch        first   with the first of a rank alone
    backward  with every backward                        dp      behind the last, as gradients are
    update    once weights are updated                           averaged

The collectives are those of the Traffic view (training.sharding.counted). Weights that ranks cut
are gathered for the first forward; those that they hold whole, behind the update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose

import numpy as np

from groups.grouping import Grouping
from request.context import Context
from request.units import bytes_text
from training.pipeline import PipelinePlan
from training.pipeline.plan import KINDS
from training.sharding.held import element_bytes
from training.traffic.ops import kinds_of
from training.traffic.per_step import Traffic, carrier

WHATS = ("parameters", "parameters_again", "gradients", "replicas")
"""What of a step's rows is data parallelism's."""

WHENS = ("forward", "first", "backward", "dp", "update")


@dataclass(frozen=True)
class DataSent:
    """One exchange of a step. what: one of WHATS; when: one of WHENS; kind: that of Traffic; counts
    and sent: collectives, and bytes that a GPU sends, each time and on each pipeline rank."""

    what: str
    when: str
    kind: str
    operation: str
    counts: tuple[float, ...]
    sent: tuple[float, ...]

    @property
    def of_experts(self) -> bool:
        """Whether it is of experts alone, whose groups are others."""
        return self.kind in ("edp", "intra-edp")


def data_sent(context: Context, rows: Sequence[Traffic], plan: PipelinePlan) -> list[DataSent]:
    """The exchanges of a job's data parallelism, in the order in which a step runs them.

    >>> from request.answers.pipeline.step import timeline_of
    >>> from request.answers.traffic import rows_of
    >>> from request.state import State
    >>> context = Context.of(State(framework="torchtitan", nodes=1, tp=1, pp=1))
    >>> rows, plan = rows_of(context.layout, context.trained), timeline_of(context).plan
    >>> for one in data_sent(context, rows, plan):
    ...     print(one.when, one.operation, one.counts)
    forward all_gather (34.0,)
    backward all_gather (33.0,)
    backward reduce_scatter (34.0,)
    """
    weights_are_cut = element_bytes(context.trained.training)["weights"][1]
    forwards, backwards = ops_of(plan, "F"), ops_of(plan, "BI")
    found = []
    for row in rows:
        if row.what not in WHATS or not row.kind.endswith(("dp", "dp-cp", "edp")):
            continue
        kinds = {KINDS[kind] for kind in kinds_of(row)}
        if "F" in kinds:
            when, times = "forward", forwards
        elif kinds:
            when, times = "backward", backwards
        elif row.what == "parameters":
            when, times = "first" if weights_are_cut else "update", [1] * plan.p
        else:
            when, times = "dp", [1] * plan.p
        counts = tuple(each / max(1, n) for each, n in zip(row.counts, times))
        sent = tuple(each / max(1, n) for each, n in zip(row.by_stage, times))
        found.append(DataSent(row.what, when, row.kind, row.operation, counts, sent))
    found = [one for one in found if any(one.sent)]
    found.sort(key=lambda one: (WHENS.index(one.when), one.of_experts, WHATS.index(one.what)))
    return found


def ops_of(plan: PipelinePlan, letters: str) -> list[int]:
    """The number of ops of these kinds on each rank.

    >>> from training.pipeline import plan_of
    >>> ops_of(plan_of("interleaved", p=2, m=4, v=2), "F")
    [8, 8]
    """
    found = []
    for begin, end in zip(plan.starts[:-1], plan.starts[1:]):
        second = plan.second[begin:end]
        ops = np.concatenate([plan.first[begin:end], second[second >= 0]])
        counts = np.bincount(ops & 3, minlength=len(KINDS))
        found.append(int(sum(counts[KINDS.index(letter)] for letter in letters)))
    return found


def data_of(context: Context, rows: Sequence[Traffic], plan: PipelinePlan) -> dict[str, object]:
    """The same for the page's script, which names the GPUs of a group.

    groups    [axes of its mesh, those that it sweeps, how it is cut, thinned and joined]
    ops       by WHENS: [what, of experts by "experts_" and what; operation; number of the group;
              collectives and bytes of each stage]
    whole     whether every replica updates all weights that it holds
    """
    groups: list[Grouping] = []
    ops: dict[str, list[list[object]]] = {when: [] for when in WHENS}
    for one in data_sent(context, rows, plan):
        group = carrier(context.layout.roles, one.kind)
        if group is None:
            continue
        if group not in groups:
            groups.append(group)
        told = [[_count(n), bytes_text(sent)] for n, sent in zip(one.counts, one.sent)]
        what = f"{'experts_' * one.of_experts}{one.what}"
        ops[one.when].append([what, one.operation, groups.index(group), told])
    trained = context.trained
    is_cut = element_bytes(trained.training, trained.split.pp)["optimizer"][1]
    return {"groups": [_spelled(group) for group in groups], "ops": ops, "whole": not is_cut}


def _count(number: float) -> str:
    near = round(number)
    return f"{near:,}" if isclose(number, near, abs_tol=1e-6) else f"{number:,.1f}"


def _spelled(group: Grouping) -> list[object]:
    axes = [[axis.name, axis.size] for axis in group.mesh.axes]
    cut = [group.length, group.stride, list(group.places), group.joined]
    return [axes, list(group.axes), *cut]
