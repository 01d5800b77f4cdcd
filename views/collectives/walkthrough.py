"""A published walk-through of Megatron-DeepSpeed's mpu, worked out here: seven functions.

8 GPUs, tensor parallel 2, pipeline parallel 2; the groups watched are those of ranks 0, 1 and of
ranks 6, 7. Source: a series on the mpu of Megatron-DeepSpeed (BLOOM), part 2,
zhuanlan.zhihu.com/p/620574311; measured again with megatron-core 0.16.1 on 8 gloo processes, which
agrees (tests/data/seed_cases.json).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from descriptions import PAGE
from groups.megatron import process_groups
from request.link import to_query
from request.state import State
from request.words import saying
from training.collectives import apply

from ..base.form import opener, setter
from ..base.html import fold, table, tag, together

WORLD, TP, PP = 8, 2, 2

SHOWN = (6, 7)
"""Ranks of the last tensor parallel group, where most of the published numbers are."""

OF_RANK, OF_SUM = "sum(rank * y)", "2 * y, y = reduce(rank * x)"
"""The losses of backward passes, as code: y is the function's result for x."""

Tensors = Sequence[np.ndarray]


class Example(NamedTuple):
    """One function of the walk-through, with a tensor for each rank of the world."""

    op: str
    before: Tensors
    after: Tensors
    loss: str = ""  # OF_RANK or OF_SUM; empty: the backward pass is not shown
    gradients: Tensors = ()  # of the output, as the loss makes them
    back: Tensors = ()  # the gradients of the input x
    value: Tensors = ()  # the loss itself, where the walk-through prints it


def groups() -> np.ndarray:
    """The tensor parallel groups of the walk-through."""
    return process_groups(WORLD, tp=TP, pp=PP)["tp"]  # type: ignore[return-value]


def examples() -> list[Example]:
    """The seven functions, in the order of the walk-through.

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
    """With OF_RANK the gradient of the output is the rank, with OF_SUM 2; for OF_RANK the chain
    rule multiplies the result by the rank."""
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


@lru_cache(maxsize=2)
def walkthrough_html(language: str) -> str:
    """A table: function, forward and backward on ranks 6 and 7."""
    say = saying(PAGE, language)
    names = ("collectives_function", "collectives_forward_of", "collectives_backward_of")
    query = to_query(State(nodes=1, tp=TP, pp=PP, view="collectives", lang=language))
    return fold(
        say("collectives_walk"),
        tag("p", say("collectives_walk_body"), " ", opener(query, say("collectives_walk_open"))),
        table(map(say, names), (_row(example, language) for example in examples())),
        kind="collectives-walk",
    )


def _row(example: Example, language: str) -> tuple[object, ...]:
    say, line = saying(PAGE, language), Markup("<br>")
    fields = {
        "collective": example.op,
        "collective_direction": "forward",
        "collective_group": "tp",
        "collective_index": "",
        "collective_root": "",
        "collective_shape": len(example.before[0]),
        "collective_values": "rank",
    }
    function = together(tag("code", example.op), line, setter(fields, say("collectives_watch")))
    forward, loss = _change(example.before, example.after), say("collectives_loss")
    if example.value:
        losses = ", ".join(_tensor(example.value[rank]) for rank in SHOWN)
        forward = together(forward, line, f"{loss}: ", tag("code", losses))
    if not example.loss:
        return function, forward, tag("i", say("collectives_forward_only"))
    change = _change(example.gradients, example.back)
    return function, forward, together(f"{loss} = ", tag("code", example.loss), line, change)


def _change(before: Tensors, after: Tensors) -> Markup:
    return Markup("<br>").join(
        together(f"{rank}: ", tag("code", f"{_tensor(before[rank])} → {_tensor(after[rank])}"))
        for rank in SHOWN
    )


def _tensor(tensor: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:g}" for value in tensor.tolist()) + "]"
