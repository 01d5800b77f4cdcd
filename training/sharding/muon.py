"""Muon's owners: each matrix has one rank that keeps its state, so that ranks keep unequal parts.

Matrices other than the embedding and the output are Muon's; what is left is Adam's. The largest
matrix comes first, each to the rank that has least so far: of 3 equal ones on 2 ranks, one rank
keeps 2.

Source: NVIDIA/Megatron-LM 0063933 megatron/core/optimizer/layer_wise_optimizer.py,
is_managed_by_layer_wise_optimizer and _compute_per_buffer_param_layout, as one bucket.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from groups.kept import kept

from ..model import Model
from ..moves.tensors import tensors_of
from ..parameters import StageParameters
from ..split import Split
from .held import layers_like
from .units import chunk_length, places_of


def loads(sizes: Iterable[int], ranks: int) -> list[int]:
    """Elements that each rank owns.

    >>> loads([4, 4, 4, 1], ranks=2)
    [8, 5]
    """
    heap = [(0, rank) for rank in range(ranks)]
    for size in sorted(sizes, reverse=True):
        load, rank = heapq.heappop(heap)
        heapq.heappush(heap, (load + size, rank))
    return [load for load, _ in sorted(heap, key=lambda each: each[1])]


def most_owned(
    model: Model, split: Split, stage: StageParameters, ranks: tuple[int, int]
) -> tuple[float, float, float]:
    """Elements of matrices that the fullest rank owns, of dense ones and of experts' together; and
    those of a stage's other parameters, dense and of experts.

    ranks: that share dense parameters, and experts'.
    """
    dense, experts = _matrices(model, split, stage.kinds, stage.is_first, stage.is_last)
    owned = max(loads(dense, ranks[0])) + max(loads(experts, ranks[1]))
    return float(owned), float(stage.dense - sum(dense)), float(stage.experts - sum(experts))


@kept
def _matrices(
    model: Model, split: Split, kinds: tuple[int, ...], is_first: bool, is_last: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements of each matrix of a stage on a rank, dense and of experts."""
    dense: list[int] = []
    experts: list[int] = []
    for place in places_of(model, layers_like(model, kinds), is_first, is_last):
        for tensor in tensors_of(model, place):
            if len(tensor.shape) != 2 or not isinstance(place, int):
                continue
            parts = split.etp if tensor.expert else split.tp
            size = tensor.elements
            if tensor.axis is not None:
                size = (
                    size
                    // tensor.shape[tensor.axis]
                    * chunk_length(tensor.shape[tensor.axis], parts, 0)
                )
            if not tensor.expert:
                dense.append(size)
                continue
            moe = model.stack[place].moe
            experts += [size] * ((moe.experts if moe else 0) // split.ep)
    return tuple(dense), tuple(experts)
