"""What data parallelism sends in a step, as rows: what, which operation, how often, among whom.

    engine        every micro-batch                       once a step
    megatron 0                                            all-reduce g
    megatron 1                                            reduce-scatter g, all-gather w
    megatron 2    reduce-scatter g                        all-gather w
    megatron 3    all-gather w twice, reduce-scatter g
    ddp           all-reduce g (sync every)               all-reduce g (sync last)
    fsdp2         all-gather w, and again what was cut    under pp, and what is kept: once
                  again; reduce-scatter r
    zero 0, 1                                             all-reduce g; 1: all-gather w
    zero 2        all-reduce g                            all-gather w
    zero 3        all-gather w, reduce-scatter g

w, g: weights and gradients of the rank in their formats; r: in the format of reduction. Of several
replicas (instances, HSDP) these run among the ranks that cut one copy, and what they leave on a
rank is all-reduced over the replicas: behind each reduce-scatter, or behind the last.

ZeRO-3 gathers once what fits stage3_max_live_parameters, else again in backward (`zero3`).
"""

from __future__ import annotations

from typing import NamedTuple

from ..recipe import PRECISIONS, Training
from ..split import Split
from .record import BYTES
from .zero import ZeroConfig, has_bf16_optimizer

SHARD, REPLICA = "shard", "replica"
"""Among whom: ranks that cut one copy of the states, or that hold the same part of several."""


class GroupExchange(NamedTuple):
    """One row. element: bytes of each of the rank's parameters; is_part: of the part of them that
    is left on a rank; times: in a step; beside: what hides it (training.traffic.per_step)."""

    what: str
    operation: str
    among: str
    element: float
    times: float
    beside: str
    is_part: bool = False


def exchanges(training: Training, split: Split, parameters: float = 0.0) -> list[GroupExchange]:
    """The rows of a step. parameters: of the rank, for what ZeRO-3 keeps.

    >>> for row in exchanges(Training(engine="fsdp2", zero=3, micro_batches=2), Split(dp=8)):
    ...     print(row.what, row.operation, row.element, row.times)
    parameters all_gather 2 2
    parameters_again all_gather 2 2
    gradients reduce_scatter 4 2
    """
    precision, m = PRECISIONS[training.precision], training.micro_batches
    weight, gradient = precision.weight, precision.gradient
    rows = _ROWS[training.engine](training, split, parameters, weight, gradient, m)
    if training.instances == 1:
        return rows
    return [*rows, *_between(training, rows, m)]


Rows = list[GroupExchange]


def _megatron(
    training: Training, split: Split, parameters: float, weight: int, gradient: int, m: int
) -> Rows:
    zero = training.zero
    if zero == 0:
        return [_row("gradients", "all_reduce", gradient, 1, "last_backward")]
    if zero == 3:
        return [
            _row("parameters", "all_gather", weight, m, "forward"),
            _row("parameters_again", "all_gather", weight, m, "backward"),
            _row("gradients", "reduce_scatter", gradient, m, "backward"),
        ]
    times, beside = (m, "backward") if zero == 2 else (1, "last_backward")
    return [
        _row("gradients", "reduce_scatter", gradient, times, beside),
        _row("parameters", "all_gather", weight, 1, "first_forward"),
    ]


def _ddp(
    training: Training, split: Split, parameters: float, weight: int, gradient: int, m: int
) -> Rows:
    each = 2 if training.precision == "bf16" else BYTES["fp32"]
    is_once = training.sync in ("last", "kept") or split.pp > 1
    times, beside = (1, "last_backward") if is_once else (m, "backward")
    return [_row("gradients", "all_reduce", each, times, beside)]


def _fsdp(
    training: Training, split: Split, parameters: float, weight: int, gradient: int, m: int
) -> Rows:
    if not training.zero:
        return _ddp(training, split, parameters, weight, gradient, m)
    keeps = training.zero < 3 or training.reshard == "never"
    if split.pp > 1 and training.reshard == "default":
        keeps = True
    is_last = training.sync in ("last", "kept")
    forth, back = m, m * (not keeps)
    if split.pp > 1:
        is_last, forth = True, 1 if keeps else m
    elif training.sync == "kept":
        forth = 1  # what backward gathers stays whole until the next forward is through
    rows = [
        _row(
            "parameters",
            "all_gather",
            weight,
            forth,
            "first_forward" if forth == 1 < m else "forward",
        )
    ]
    if back:
        rows.append(_row("parameters_again", "all_gather", weight, back, "backward"))
    times, beside = (1, "last_backward") if is_last else (m, "backward")
    return [*rows, _row("gradients", "reduce_scatter", gradient, times, beside)]


def _zero(
    training: Training, split: Split, parameters: float, weight: int, gradient: int, m: int
) -> Rows:
    zero = training.zero
    if zero == 3:
        rows = [_row("parameters", "all_gather", weight, m, "forward")]
        if parameters > (most := ZeroConfig().max_live):
            again = weight * (1 - most / parameters)
            rows.append(_row("parameters_again", "all_gather", again, m, "backward"))
        return [*rows, _row("gradients", "reduce_scatter", gradient, m, "backward")]
    times, beside = (m, "backward") if zero == 2 else (1, "last_backward")
    rows = [_row("gradients", "all_reduce", gradient, times, beside)]
    if zero or has_bf16_optimizer(training, split.pp):
        rows.append(_row("parameters", "all_gather", weight, 1, "first_forward"))
    return rows


_ROWS = {"megatron": _megatron, "ddp": _ddp, "fsdp2": _fsdp, "zero": _zero}


def _row(what: str, operation: str, element: float, times: float, beside: str) -> GroupExchange:
    return GroupExchange(what, operation, SHARD, element, times, beside)


def _between(training: Training, rows: Rows, m: int) -> Rows:
    """The all-reduces over replicas, of what the operations inside one copy leave on a rank."""
    found = []
    for row in rows:
        if row.what != "gradients":
            continue
        times, beside = row.times, row.beside
        if training.sync == "replicas":
            times, beside = 1, "last_backward"
        is_part = row.operation == "reduce_scatter"
        found.append(
            GroupExchange("replicas", "all_reduce", REPLICA, row.element, times, beside, is_part)
        )
    return found
