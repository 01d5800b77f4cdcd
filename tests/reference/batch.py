"""The tensor-parallel batch broadcast: one rank reads the data, its group works on the same batch.

Only the first rank of a tensor parallel group reads a batch. Its group gets it in two broadcasts:
the shapes of the named tensors, in one fixed number of dims each, and then all their elements, laid
end to end (NVIDIA/Megatron-LM, megatron/core/tensor_parallel/data.py, broadcast_data).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from groups.errors import LayoutError, quoted
from training.collectives.operations import apply, arrays_of, groups_of

MOST_DIMS = 5
"""Numbers that a shape takes in the broadcast: a tensor has fewer dims, and a 0 ends them."""

Batch = Mapping[str, np.ndarray]


def broadcast_batch(
    batches: Sequence[Batch | None],
    groups: Sequence[Sequence[int]] | np.ndarray,
    keys: Sequence[str],
) -> list[dict[str, np.ndarray]]:
    """Every rank gets the named tensors that the first rank of its group read.

    ``batches`` has one batch for each rank of the world; only those of first ranks are read, the
    others may be None. A rank in no group gets an empty batch.

    >>> read = [{"tokens": np.array([[5, 6]])}, None]
    >>> [got["tokens"].tolist() for got in broadcast_batch(read, [[0, 1]], ["tokens"])]
    [[[5, 6]], [[5, 6]]]

    Errors: LayoutError if a first rank lacks a tensor, if one has MOST_DIMS dims or more, or if
    their kinds of number differ.
    """
    found: list[dict[str, np.ndarray]] = [{} for _ in batches]
    for group in groups_of(groups, len(batches)):
        tensors = _read(batches[group[0]], keys, group[0])
        sizes = [list(tensor.shape) + [0] * (MOST_DIMS - tensor.ndim) for tensor in tensors]
        flat = np.concatenate([tensor.ravel() for tensor in tensors])
        shapes, elements = (_broadcast(whole, len(group)) for whole in (np.array(sizes), flat))
        for place, rank in enumerate(group):
            found[rank] = _unpacked(keys, shapes[place], elements[place])
    return found


def _broadcast(whole: np.ndarray, members: int) -> list[np.ndarray]:
    """The first member's array on every member; the others bring room for it."""
    room = [np.zeros_like(whole)] * (members - 1)
    return apply("broadcast", [whole, *room], [list(range(members))])


def _unpacked(keys: Sequence[str], shapes: np.ndarray, flat: np.ndarray) -> dict[str, np.ndarray]:
    found, start = {}, 0
    for key, sizes in zip(keys, shapes.tolist()):
        shape = sizes[: sizes.index(0)]
        stop = start + math.prod(shape)
        found[key] = flat[start:stop].reshape(shape)
        start = stop
    return found


def _read(batch: Batch | None, keys: Sequence[str], rank: int) -> list[np.ndarray]:
    missing = [key for key in keys if batch is None or key not in batch]
    if missing or not keys:
        raise LayoutError(
            "not-in-batch",
            f"rank {rank} has read no tensor {quoted(missing[0] if missing else '')}",
            why="the first rank of a tensor parallel group reads the batch for all of it",
            control="keys",
            facts={"rank": rank, "value": quoted(missing[0] if missing else "")},
        )
    assert batch is not None
    tensors = arrays_of([batch[key] for key in keys])
    for key, tensor in zip(keys, tensors):
        if tensor.ndim >= MOST_DIMS or not tensor.size:
            raise LayoutError(
                "does-not-pack",
                f"{quoted(key)} has the shape {tensor.shape}",
                why=f"the broadcast of shapes holds fewer than {MOST_DIMS} dims, none of them 0",
                control="batch",
                facts={"value": quoted(key), "shape": str(tensor.shape), "limit": MOST_DIMS},
            )
        if tensor.dtype != tensors[0].dtype:
            raise LayoutError(
                "types-differ",
                f"{quoted(key)} is {tensor.dtype}, and {quoted(keys[0])} is {tensors[0].dtype}",
                why="all elements travel in one flat tensor",
                control="batch",
                facts={
                    "value": quoted(key),
                    "type": str(tensor.dtype),
                    "other": quoted(keys[0]),
                    "other_type": str(tensors[0].dtype),
                },
            )
    return tensors
