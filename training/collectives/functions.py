"""Operations on the *stacked* tensors of one group.

Entry i of them is the tensor of the member at place i. Which of these functions are the two halves
of an operation, `operations` says.

>>> two = np.array([[1, 2], [3, 4]])
>>> reduce(two).tolist(), sum_at_root(two).tolist(), join_at_root(two).tolist()
([[4, 6], [3, 4]], [[4, 6], [0, 0]], [[1, 2, 3, 4], [0, 0, 0, 0]])
>>> all_reduce(two, reduction="max").tolist(), split(two).tolist(), all_to_all(two).tolist()
([[3, 4], [3, 4]], [[1], [4]], [[1, 3], [2, 4]])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from groups.errors import quoted
from groups.mesh import whole_number

from ..errors import refusal, require_choice

To = Sequence[int | None]
"""The place that each member sends to, by its own place; None for a member that sends nothing."""

REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {"sum": np.sum, "mean": np.mean, "max": np.max}


def keep(stacked: np.ndarray) -> np.ndarray:
    """The identity: the forward or backward of a mapping that leaves tensors unchanged."""
    return stacked


def all_reduce(stacked: np.ndarray, reduction: str = "sum") -> np.ndarray:
    """Every member gets the element-wise sum of all tensors, or their mean or maximum."""
    require_choice("reduction", reduction, tuple(REDUCTIONS))
    return np.broadcast_to(REDUCTIONS[reduction](stacked, axis=0), stacked.shape)


def reduce_scatter(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """Member i gets piece i of the sum: the first half of an all-reduce."""
    return pieces_of(np.sum(stacked, axis=0), len(stacked), dim)


def all_gather(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """Every member gets all tensors joined in their order: the second half of an all-reduce."""
    whole = joined(stacked, dim)
    return np.broadcast_to(whole, (len(stacked), *whole.shape))


def broadcast(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """Every member gets the tensor of the root."""
    return np.broadcast_to(stacked[place_of(root, len(stacked))], stacked.shape)


def reduce(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """The root gets the sum; the others keep their tensors."""
    at = place_of(root, len(stacked))
    return np.stack([np.sum(stacked, axis=0) if i == at else x for i, x in enumerate(stacked)])


def gather(stacked: np.ndarray, dim: int = 0, root: int = 0) -> list[np.ndarray]:
    """The root gets all tensors joined in order of members; other members keep their tensors."""
    at = place_of(root, len(stacked))
    return [joined(stacked, dim) if i == at else x for i, x in enumerate(stacked)]


def scatter(tensors: Sequence[np.ndarray], dim: int = 0, root: int = 0) -> np.ndarray:
    """Member i gets piece i of the root's tensor; the other members' tensors are ignored."""
    return pieces_of(tensors[place_of(root, len(tensors))], len(tensors), dim)


def split(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """Member i keeps piece i of its own tensor; nothing moves."""
    return np.stack([pieces_of(x, len(stacked), dim)[i] for i, x in enumerate(stacked)])


def sum_at_root(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """The root gets the sum, the other members zeros: the backward of `broadcast`, which ignores
    their tensors."""
    return _with_zeros(np.sum(stacked, axis=0), len(stacked), root)


def join_at_root(stacked: np.ndarray, dim: int = 0, root: int = 0) -> np.ndarray:
    """The root gets all tensors joined, the other members zeros of that shape: the backward of
    scatter."""
    return _with_zeros(joined(stacked, dim), len(stacked), root)


def _with_zeros(result: np.ndarray, members: int, root: int) -> np.ndarray:
    at_root = np.zeros_like(result, shape=(members, *result.shape))
    at_root[place_of(root, members)] = result
    return at_root


# -- exchanges: every member sends different data to the others, and nothing is summed ---------


def all_to_all(stacked: np.ndarray, cut: int = 0, join: int = 0) -> np.ndarray:
    """Member i gets piece i of every member, joined in order of members.

    Tensors are cut along one dim and joined along another, or the same; the inverse swaps the two.
    """
    pieces = np.stack([pieces_of(x, len(stacked), cut) for x in stacked])  # [from, to, ...]
    return np.stack([joined(pieces[:, i], join) for i in range(len(stacked))])


def tokens_all_to_all(stacked: np.ndarray, cut: int, join: int) -> np.ndarray:
    """An all-to-all of tensors reshaped to (tokens, hidden), as in all_to_all_sp2hp and _hp2sp.

    All dims but the last are flattened to tokens, and stay flattened in the result, as in Megatron.

    >>> two_tokens_each = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    >>> tokens_all_to_all(two_tokens_each, cut=-1, join=0).tolist()
    [[[1], [3], [5], [7]], [[2], [4], [6], [8]]]
    """
    dim_of(stacked[0], -1)
    ranks, *tokens, hidden = stacked.shape
    return all_to_all(stacked.reshape(ranks, math.prod(tokens), hidden), cut, join)


def uneven_all_to_all(
    tensors: Sequence[np.ndarray], splits: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """Member j gets splits[i][j] rows of every member i, joined in order of members.

    The rows of member i, along dim 0, go to members 0, 1, .. in order; its tensor has
    sum(splits[i]) rows. It is MPI's alltoallv, and sends the tokens of a MoE layer to their
    experts.

    >>> sent = [np.array([1, 2, 3]), np.array([4])]
    >>> [got.tolist() for got in uneven_all_to_all(sent, [[1, 2], [1, 0]])]
    [[1, 4], [2, 3]]

    Errors: LayoutError for splits that are not a square of whole numbers from 0 up, or do not add
    up to the rows of a tensor.
    """
    rows = _splits_of(splits, tensors)
    cut = [np.split(x, np.cumsum(row)[:-1]) for x, row in zip(tensors, rows)]
    return [np.concatenate([pieces[j] for pieces in cut]) for j in range(len(tensors))]


def uneven_all_to_all_back(
    gradients: Sequence[np.ndarray], splits: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """The backward of `uneven_all_to_all`: the same with sent and received rows swapped."""
    square = _square(splits, len(gradients))
    return uneven_all_to_all(gradients, [list(column) for column in zip(*square)])


def send_recv(stacked: np.ndarray, to: To | None = None) -> np.ndarray:
    """The member at place to[i] gets the tensor of member i; a member that receives nothing keeps
    its own.

    Without ``to``, every member sends to the next one on the ring.

    >>> send_recv(np.array([[1], [2], [3]]), to=(1, 2, None)).tolist()  # a pipeline's forward
    [[1], [1], [2]]

    Errors: LayoutError for a member that sends to itself or outside the group, and for one that
    would receive twice.
    """
    received = stacked.copy()
    for place, target in pairs_of(to, len(stacked)):
        received[target] = stacked[place]
    return received


def send_recv_back(gradients: np.ndarray, to: To | None = None) -> np.ndarray:
    """The backward of `send_recv`: member i gets the gradient of the tensor that it sent.

    A member that received nothing, and so kept its tensor, adds the gradient of that tensor.

    >>> send_recv_back(np.array([[1], [2], [3]]), to=(1, 2, None)).tolist()
    [[3], [3], [0]]
    """
    pairs = pairs_of(to, len(gradients))
    back = gradients.copy()
    back[[target for _, target in pairs]] = 0
    for place, target in pairs:
        back[place] += gradients[target]
    return back


def pairs_of(to: To | None, members: int) -> list[tuple[int, int]]:
    """(sender, receiver) for each member that sends, as places in the group; checked.

    >>> pairs_of(None, 3), pairs_of((None, 0), 2), pairs_of(None, 1)
    ([(0, 1), (1, 2), (2, 0)], [(1, 0)], [])
    """
    if to is None:
        return [(place, (place + 1) % members) for place in range(members)] if members > 1 else []
    targets = items(to)
    if targets is None or len(targets) != members:
        raise refusal("not-receivers", "to", value=quoted(to), members=members)
    pairs: list[tuple[int, int]] = []
    for place, target in enumerate(targets):
        if target is None:
            continue
        target = whole_number(target, "to", minimum=0, maximum=members - 1)
        if target == place:
            raise refusal("sends-to-itself", "to", place=place)
        if target in (other for _, other in pairs):
            raise refusal("receives-twice", "to", place=target)
        pairs.append((place, target))
    return pairs


# -- pieces of a tensor, and places in a group; checked -------------------------------------------


def pieces_of(tensor: np.ndarray, count: int, dim: int = 0) -> np.ndarray:
    """The tensor cut into ``count`` equal pieces along a dim, stacked.

    >>> pieces_of(np.array([1, 2, 3, 4]), 2).tolist()
    [[1, 2], [3, 4]]

    Errors: LayoutError if the dim is not there, or its size does not split.
    """
    at = dim_of(tensor, dim)
    size = tensor.shape[at]
    if size % count:
        below = size // count * count
        fixes = [{"size": near} for near in (below, below + count) if near]
        raise refusal("does-not-split", "tensor", *fixes, dim=at, size=size, ranks=count)
    pieces = tensor.reshape(*tensor.shape[:at], count, size // count, *tensor.shape[at + 1 :])
    return np.moveaxis(pieces, at, 0)


def joined(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """The stacked tensors joined along a dim: the inverse of pieces_of."""
    return np.concatenate(stacked, axis=dim_of(stacked[0], dim))


def dim_of(tensor: np.ndarray, dim: int) -> int:
    """The dim counted from 0.

    >>> dim_of(np.ones((2, 3)), -1)
    1

    Errors: LayoutError if the tensor has no such dim.
    """
    dims = tensor.ndim
    if not dims:
        raise refusal("no-dims", "tensor")
    return whole_number(dim, "dim", minimum=-dims, maximum=dims - 1) % dims


def place_of(root: int, members: int) -> int:
    """The place of the root in a group.

    >>> place_of(1, members=2)
    1
    """
    return whole_number(root, "root", minimum=0, maximum=members - 1)


def items(value: object) -> list[object] | None:
    """The items of a list, tuple or array; None for anything else."""
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)
    return list(value) if listed else None  # type: ignore[call-overload]


def _square(splits: object, members: int) -> list[list[int]]:
    rows = [items(row) or [] for row in items(splits) or ()]
    if len(rows) != members or any(len(row) != members for row in rows):
        raise refusal("not-splits", "splits", value=quoted(splits), members=members)
    return [[whole_number(number, "splits", minimum=0) for number in row] for row in rows]


def _splits_of(splits: object, tensors: Sequence[np.ndarray]) -> list[list[int]]:
    rows = _square(splits, len(tensors))
    first = tensors[0].shape[1:]
    for place, (row, tensor) in enumerate(zip(rows, tensors)):
        dim_of(tensor, 0)
        if sum(row) != len(tensor):
            raise refusal(
                "splits-do-not-add-up", "splits", place=place, rows=len(tensor), sum=sum(row)
            )
        if tensor.shape[1:] != first:
            shapes = {"shape": str(tensor.shape[1:]), "other_shape": str(first)}
            raise refusal("rows-differ", "tensor", place=place, **shapes)
    return rows
