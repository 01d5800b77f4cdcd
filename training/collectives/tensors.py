"""What an operation is given: one tensor for each rank, and groups of those ranks; checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np

from groups.errors import LayoutError, quoted

from ..errors import refusal


def arrays_of(tensors: object) -> list[np.ndarray]:
    """One array of numbers for each rank.

    >>> arrays_of([[0, 1], 2.5])
    [array([0, 1]), array(2.5)]

    Errors: LayoutError for no tensors, or one that is not made of numbers.
    """
    given = items(tensors)
    if not given:
        raise refusal("no-tensors", "tensor")
    arrays = [_numbers(tensor, "biufc") for tensor in given]
    for rank, array in enumerate(arrays):
        if array is None:
            raise refusal("not-a-tensor", "tensor", rank=rank)
    return arrays  # type: ignore[return-value]


def stacked_of(members: Sequence[np.ndarray], group: Sequence[int]) -> np.ndarray:
    """The tensors of one group as one array, whose entry i is that of the member at place i.

    >>> stacked_of([np.array([0]), np.array([1])], group=[4, 5]).tolist()
    [[0], [1]]

    Errors: LayoutError, naming two ranks, if their tensors differ in shape.
    """
    first = members[0].shape
    for rank, tensor in zip(group, members):
        if tensor.shape != first:
            shapes = {"shape": str(tensor.shape), "other_shape": str(first)}
            raise refusal("shapes-differ", "tensor", rank=rank, other=group[0], **shapes)
    return np.stack(members)


def groups_of(groups: object, world: int) -> list[list[int]]:
    """The groups as lists of ranks, each a rank of the world and in one group at most.

    >>> groups_of(np.array([[0, 2], [1, 3]]), world=4)
    [[0, 2], [1, 3]]

    Errors: LayoutError for what is not groups of ranks, a rank outside the world, and a rank that
    stands twice.
    """
    rows = items(groups)
    arrays = [_numbers(row, "iu") for row in rows or ()]
    if rows is None or any(a is None or a.ndim != 1 or not a.size for a in arrays):
        raise refusal("not-groups", "groups", value=quoted(groups))
    ranks_by_group: list[list[int]] = [array.tolist() for array in arrays if array is not None]
    seen: set[int] = set()
    for rank in (rank for group in ranks_by_group for rank in group):
        if not 0 <= rank < world:
            why = "every rank of the groups needs a tensor"
            there = {"rank": quoted(rank), "first": 0, "last": world - 1}
            raise refusal("no-such-rank", "groups", why=why, **there)
        if rank in seen:
            raise refusal("rank-twice", "groups", rank=rank)
        seen.add(rank)
    return ranks_by_group


def items(value: object) -> list[object] | None:
    """What a list, a tuple or an array holds; None for anything else."""
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)
    return list(value) if listed else None  # type: ignore[call-overload]


def _numbers(value: object, kinds: str) -> np.ndarray | None:
    """The value as an array of one of these kinds of numbers (numpy's letters), else None."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    return array if array.dtype.kind in kinds else None


def unknown_operation(op: object, known: Iterable[str]) -> LayoutError:
    """The refusal of a name that no operation has, with the names that look like it.

    >>> unknown_operation("allreduce", ["all_reduce", "gather"]).alternatives
    ({'op': 'all_reduce'},)
    """
    near = get_close_matches(op, list(known), cutoff=0.5) if isinstance(op, str) else []
    return refusal("unknown-operation", "op", *[{"op": name} for name in near], value=quoted(op))
