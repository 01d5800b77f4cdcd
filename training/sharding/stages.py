"""What torch's pipelines do with stages of a rank: which ops, transfers and gathers, in order.

Schedules of one stage a rank (1F1B, GPipe) send and receive around their ops, and FSDP gathers by
itself. The others run a list of actions, made from the ops of all ranks:

    gathers      the next 3 stages that a rank will run are whole; others are cut again
    reductions   behind the last op that gives gradients of a stage's weights
    transfers    a receive stands where its sender, as ranks are gone through in turns, has run

Source: torch 2.13.0 torch/distributed/pipelining/schedules.py, Schedule1F1B, ScheduleGPipe,
_add_unshard_reshard, _add_reduce_grad and _add_send_recv.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from groups.alternatives import not_a_multiple
from groups.errors import not_a_choice
from groups.kept import kept

from ..errors import refusal
from ..model import MAX_SIZE
from ..pipeline import orders
from ..pipeline.plan import PipelinePlan, Shape

AHEAD = 3
"""The most stages of a rank that are whole at once."""


class Action(NamedTuple):
    """An op of a stage (kind F, B, I or W), or what goes with ops: "send", "recv", "unshard",
    "reshard" and "reduce"."""

    kind: str
    stage: int
    micro_batch: int = -1


@kept
def actions_of(name: str, p: int, m: int, stages: int) -> tuple[tuple[Action, ...], ...]:
    """The actions of each pipeline rank, by the name of torch's schedule.

    >>> for action in actions_of("1F1B", p=2, m=1, stages=2)[0]:
    ...     print(*action)
    F 0 0
    send 0 0
    recv 0 0
    B 0 0
    reduce 0 -1

    Errors: LayoutError for a schedule that torch does not have, or does not run with these sizes.
    """
    if name in ("1F1B", "GPipe"):
        run = _one_f_one_b if name == "1F1B" else _gpipe
        return tuple(tuple(run(p, m, rank)) for rank in range(p))
    return _with_transfers(_ops_of(name, p, m, stages), stages)


# -- one stage a rank ----------------------------------------------------------------------------


def _one_f_one_b(p: int, m: int, rank: int) -> Iterator[Action]:
    """Transfers are joined: a forward's output leaves as the next gradient comes in, and a
    gradient as the next input comes in; in the warm-up each output leaves by itself."""
    is_first, is_last, warmup = rank == 0, rank == p - 1, min(m, p - rank)
    send_forward = [] if is_last else ["send"]
    recv_gradient = [] if is_last else ["recv"]
    send_gradient, recv_input = ([] if is_first else [op] for op in ("send", "recv"))

    def transfers(*ops: list[str]) -> Iterator[Action]:
        yield from (Action(op, rank, 0) for run in ops for op in run)

    for number in range(warmup):
        yield from transfers(recv_input)
        yield Action("F", rank, number)
        if number < warmup - 1:
            yield from transfers(send_forward)
    for number in range(m):
        waits = warmup + number <= m  # whether a forward's output has not left yet
        yield from transfers(send_forward if waits else [], recv_gradient)
        yield Action("B", rank, number)
        if warmup + number < m:
            yield from transfers(send_gradient, recv_input)
            yield Action("F", rank, warmup + number)
        else:
            yield from transfers(send_gradient)
    yield Action("reduce", rank)


def _gpipe(p: int, m: int, rank: int) -> Iterator[Action]:
    is_first, is_last = rank == 0, rank == p - 1
    for kind, before, behind in (("F", is_first, is_last), ("B", is_last, is_first)):
        for number in range(m):
            yield from [] if before else [Action("recv", rank, number)]
            yield Action(kind, rank, number)
            yield from [] if behind else [Action("send", rank, number)]
    yield Action("reduce", rank)


# -- several stages a rank -----------------------------------------------------------------------


def _ops_of(name: str, p: int, m: int, stages: int) -> list[list[Action]]:
    """The ops of each rank, with gathers and reductions of its stages between them."""
    if name not in OPS:
        choices = ("1F1B", "GPipe", *OPS)
        raise not_a_choice("schedule", name, choices)
    v, left = divmod(stages, p)
    if left:
        raise not_a_multiple("stages", stages, {"pp": p}, maximum=MAX_SIZE)
    rounds = max(1, m // p)
    if m % rounds:
        raise not_a_multiple("m", m, {"rounds": rounds}, maximum=MAX_SIZE)
    shape = Shape(p=p, m=m, v=v, n=m // rounds)
    plan = PipelinePlan(stages, m, tuple(OPS[name](shape, rank) for rank in range(p)))
    found = []
    for row in plan.places:
        ops = [_action(text) for place in row.tolist() for text in plan.text(place).split("&")]
        found.append([*with_gathers(ops)])
    return found


def _action(text: str) -> Action:
    stage, kind, micro_batch = re.fullmatch(r"(\d+)([FBIW])(\d+)", text).groups()  # type: ignore[union-attr]
    return Action(kind, int(stage), int(micro_batch))


def with_gathers(ops: Sequence[Action]) -> Iterator[Action]:
    """Gathers before the ops that need them, as many stages ahead as may be whole; a reduction
    behind the last op of a stage."""
    whole: Sequence[int] = ()
    left = Counter(op.stage for op in ops if op.kind in "BW")
    for ahead, op in zip(_next_stages(ops), ops):
        if ahead is not whole:
            yield from (Action("reshard", stage) for stage in sorted(set(whole) - set(ahead)))
            yield from (Action("unshard", stage) for stage in ahead if stage not in whole)
            whole = ahead
        yield op
        if op.kind in "BW":
            left[op.stage] -= 1
            if not left[op.stage]:
                yield Action("reduce", op.stage)
    yield from (Action("reshard", stage) for stage in sorted(whole))


def _next_stages(ops: Sequence[Action]) -> list[tuple[int, ...]]:
    """For each op the stages that run from it on, the first AHEAD of them: one value where two
    neighbours have the same.

    >>> ops = [Action("F", stage, 0) for stage in (0, 2, 2, 4, 0)]
    >>> _next_stages(ops)
    [(0, 2, 4), (2, 4, 0), (2, 4, 0), (4, 0), (0,)]
    """
    found, order = list[tuple[int, ...]](), tuple[int, ...]()
    for op in reversed(ops):
        if order[:1] != (op.stage,):
            order = (op.stage, *(stage for stage in order if stage != op.stage))
            nearest = order[:AHEAD]
        found.append(nearest)
    return found[::-1]


def _with_transfers(
    actions: Sequence[Sequence[Action]], stages: int
) -> tuple[tuple[Action, ...], ...]:
    """Sends behind ops and receives on their receivers, rank after rank in turns, each running its
    next action once what it needs is there. Stages of one rank hand over without a transfer."""
    home = {action.stage: rank for rank, row in enumerate(actions) for action in row}
    waiting = [list(row) for row in actions]
    done: list[set[tuple[str, int, int]]] = [set() for _ in actions]
    found: list[list[Action]] = [[] for _ in actions]
    while any(waiting):
        is_stuck = True
        for rank, row in enumerate(waiting):
            if not row or not _may_run(row[0], done[rank], stages):
                continue
            is_stuck = False
            op = row.pop(0)
            found[rank].append(op)
            if op.kind not in "FBIW":
                continue
            forward = op.kind == "F"
            done[rank].add(("F" if forward else op.kind, op.stage, op.micro_batch))
            to = op.stage + (1 if forward else -1)
            if op.kind == "W" or to not in home or home[to] == rank:
                continue
            found[rank].append(Action("send", op.stage, op.micro_batch))
            found[home[to]].append(Action("recv", to, op.micro_batch))
            done[home[to]].add(("F" if forward else "B", op.stage, op.micro_batch))
        if is_stuck:
            raise refusal("schedule-does-not-run", "schedule")
    return tuple(map(tuple, found))


def _may_run(op: Action, done: set[tuple[str, int, int]], stages: int) -> bool:
    """Whether the input of an op is on its rank; what another rank sent counts as done there."""
    if op.kind == "F" and op.stage:
        return ("F", op.stage - 1, op.micro_batch) in done
    if op.kind in "BI" and op.stage < stages - 1:
        return any((kind, op.stage + 1, op.micro_batch) in done for kind in "BI")
    return True


OPS: dict[str, Callable[[Shape, int], np.ndarray]] = {
    "Interleaved1F1B": orders.interleaved_of_torch,
    "LoopedBFS": orders.breadth_first,
    "InterleavedZeroBubble": orders.interleaved_zb,
    "ZBVZeroBubble": orders.zb_v,
    "DualPipeV": orders.dual_pipe_v,
}
"""The order of a rank's ops, by torch's name of a schedule of several stages a rank."""
