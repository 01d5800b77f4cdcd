"""A published walk-through of Megatron-DeepSpeed's mpu, run here: seven functions, their numbers.

8 GPUs, tensor parallel 2, pipeline parallel 2; the groups watched are those of ranks 0, 1 and of
ranks 6, 7. Source: a series on the mpu of Megatron-DeepSpeed (BLOOM), part 2,
zhuanlan.zhihu.com/p/620574311; measured again with megatron-core 0.16.1 on 8 gloo processes, which
agrees (tests/data/seed_cases.json).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groups.megatron.parallel_state import process_groups

from .operations import apply

WORLD, TP, PP = 8, 2, 2

OF_RANK, OF_SUM = "sum(rank * y)", "2 * y, y = reduce(rank * x)"
"""What a backward pass starts from, in words of code: y is what the function gives for x."""

Tensors = list[np.ndarray]


@dataclass(frozen=True)
class Example:
    """One function of the walk-through, with a tensor for each rank of the world."""

    op: str  # as in training.collectives.operations
    before: Tensors
    after: Tensors
    loss: str = ""  # OF_RANK or OF_SUM; empty: the backward pass is not shown
    gradients: Tensors | None = None  # of the output, as the loss makes them
    back: Tensors | None = None  # the gradients of the input x
    value: Tensors | None = None  # the loss itself, where the walk-through prints it


def groups() -> np.ndarray:
    """The tensor parallel groups of the walk-through.

    >>> groups().tolist()
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    """
    return process_groups(WORLD, tp=TP, pp=PP)["tp"]  # type: ignore[return-value]


def examples() -> list[Example]:
    """The seven functions, in the order of the walk-through.

    >>> [example.op.split("_to_")[0].split("_from_")[0] for example in examples()]
    ['_reduce', '_split', '_gather', 'copy', 'reduce', 'scatter', 'gather']
    >>> examples()[4].back[6:]  # of loss = 2 * reduce(rank * x)
    [array([12.]), array([14.])]
    """
    ranks = [np.array([float(rank)]) for rank in range(WORLD)]
    zero_one, one_two = ([np.array(pair)] * WORLD for pair in ([0.0, 1.0], [1.0, 2.0]))
    scaled = [rank * x for rank, x in enumerate(ranks)]
    return [
        _example("_reduce", ranks),
        _example("_split", zero_one),
        _example("_gather", ranks),
        _example("copy_to_tensor_model_parallel_region", ranks, OF_RANK),
        _example("reduce_from_tensor_model_parallel_region", scaled, OF_SUM),
        _example("scatter_to_tensor_model_parallel_region", one_two, OF_RANK),
        _example("gather_from_tensor_model_parallel_region", ranks, OF_RANK),
    ]


def _example(op: str, before: Tensors, loss: str = "") -> Example:
    """Of OF_RANK the gradient of the output is the rank, of OF_SUM 2; there the chain rule takes
    what comes back times the rank."""
    after = apply(op, before, groups())
    if not loss:
        return Example(op, before, after)
    slopes = [2.0 if loss == OF_SUM else float(rank) for rank in range(WORLD)]
    gradients = [np.full(tensor.shape, slope) for tensor, slope in zip(after, slopes)]
    back = apply(op, gradients, groups(), direction="backward")
    if loss == OF_RANK:
        return Example(op, before, after, loss, gradients, back)
    back = [rank * gradient for rank, gradient in enumerate(back)]
    return Example(op, before, after, loss, gradients, back, [2 * y for y in after])
