"""The memory of one rank over a step: what it holds at each time, by cause, from the plan it runs.

>>> from training.models import MODELS
>>> how, split, llama = Training(micro_batches=4), Split(pp=2), MODELS["llama3-8b"].model
>>> held = over_step(llama, split, how, 0)
>>> [op.text for op in held.ops]
['0F0', '0F1', '0B0', '0F2', '0B1', '0F3', '0B2', '0B3', 'optimizer']
>>> held.fullest.text, held.total == memory_per_stage(llama, split, how)[0].total
('0B0', True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from groups.kept import kept

from ..errors import refusal
from ..model import Model
from ..parameters import stage_parameters
from ..pipeline.figures import settled
from ..pipeline.plan import KINDS
from ..pipeline.simulate import Durations, simulate
from ..pipeline.spec import ScheduleSpec
from ..recipe import Training
from ..split import Split
from .moments import MOST_ALONE, STATES, OpMemory, Player, Point, RankOp, ops_of_rank, plan_of_rank
from .per_stage import beside_kept, layer_bytes, memory_per_stage, trained_of
from .pieces import pieces_of

MOST_DRAWN = 16_384
"""The most ops of a rank that are played where each micro-batch adds to what it holds."""

OPTIMIZER = 0.02
"""The width of the optimizer's step behind all ops, as a share of theirs: its time is not that of
an op, and its memory is that of the states."""


@dataclass(frozen=True)
class MemoryOverStep:
    """What a rank of one pipeline stage holds over a step. micro_batches: how many are played, of
    ``of`` that the step has: those between are like them."""

    stage: int
    ops: tuple[OpMemory, ...]
    micro_batches: int
    of: int

    @property
    def fullest(self) -> OpMemory:
        """The op with the fullest time, the first of equals."""
        return max(self.ops, key=lambda op: op.most.total)

    @property
    def total(self) -> float:
        """Bytes at the fullest time."""
        return self.fullest.most.total

    @property
    def end(self) -> float:
        return self.ops[-1].end


@kept
def over_step(
    model: Model,
    split: Split,
    training: Training,
    stage: int,
    room: float = math.inf,
    durations: Durations | None = None,
) -> MemoryOverStep:
    """The memory of a rank of one stage, op by op.

    room: as for `memory_per_stage`. durations: of ops, of a rank's whole part; None: a forward
    takes 1, a backward 2.

    Errors: as of `memory_per_stage`; LayoutError for a step that is too long where each
    micro-batch adds to what the rank holds.
    """
    split = split.placed(training.rule.placement)
    stages = memory_per_stage(model, split, training, room)
    layer = [layer_bytes(model, split, training, kind) for kind in model.kinds]
    held = stage_parameters(model, split)[stage]
    trained = trained_of(model, split, training, held)
    _, parts = beside_kept(model, split, training, held, layer, trained)
    pieces = pieces_of(model, split, training, held, layer, parts)
    states = {name: stages[stage].parts[name] for name in STATES if name in stages[stage].parts}
    pieces = replace(pieces, states=states)  # without what is in host memory
    spec = _played(training.pipeline(split))
    run = _timed(spec, stage, durations or Durations())
    ops = tuple(Player(pieces, run, spec.shape.stages).play())
    end = max(op.end for op in ops)
    after = end * (1 + OPTIMIZER)
    behind = (Point(end, dict(states)), Point(after, dict(states)))
    last = OpMemory("optimizer", end, after, behind)
    return MemoryOverStep(stage, (*ops, last), spec.m, training.micro_batches)


def _played(spec: ScheduleSpec) -> ScheduleSpec:
    """The step itself, or one of fewer micro-batches in which a rank holds as much."""
    ops = spec.num_run / spec.p
    if ops <= MOST_ALONE:
        return spec
    form = spec.rule.closed
    if form is not None and form.keeps_outputs:
        if ops > MOST_DRAWN:
            most = int(spec.m * MOST_DRAWN / ops)
            facts = {"count": int(ops), "limit": MOST_DRAWN}
            raise refusal("too-many-ops", "micro_batches", {"micro_batches": most}, **facts)
        return spec
    return replace(spec, m=min(spec.m, settled(spec)))


def _timed(spec: ScheduleSpec, rank: int, durations: Durations) -> list[RankOp]:
    """The ops of a rank with their times: of all ranks' plan where it is short enough."""
    if spec.num_run <= MOST_DRAWN:
        plan = spec.plan()
        timeline = simulate(plan, _of_chunks(durations, plan.share))
        start, end = plan.starts[rank : rank + 2]
        times = np.stack([timeline.start[start:end], timeline.end[start:end]], axis=1)
        return ops_of_rank(plan, rank, times)
    plan, row = plan_of_rank(spec, rank)
    run = ops_of_rank(plan, row)
    table = dict(zip(KINDS, durations.table(plan.stages)))
    lengths = [sum(table[op.kind][op.stage] for op in each.ops) for each in run]
    ends = (np.cumsum(lengths) * plan.share).tolist()
    return [each._replace(start=a, end=b) for each, a, b in zip(run, [0.0, *ends], ends)]


def _of_chunks(durations: Durations, share: float) -> Durations:
    """Durations of one chunk of those of a rank."""
    table = [[*row] for row in durations.table(1) * share]
    (forward,), (backward,), (for_input,), (for_weights,), (overlapped,) = table
    return Durations(
        forward,
        backward,
        for_input,
        for_weights,
        None if durations.overlapped is None else overlapped,
        durations.send,
    )
