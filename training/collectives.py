"""Collectives: what a group of ranks does together, on one tensor a rank.

Each operation is one function on the *stacked* tensors of one group: an array of shape
(group size, *shape of a tensor), whose entry i is the tensor of the member at place i. With n
members that hold x_0 .. x_(n-1), and tensors cut into n equal pieces along a dim:

    all_reduce       every member gets     x_0 + .. + x_(n-1)
    reduce_scatter   member i gets         piece i of that sum
    all_gather       every member gets     x_0 .. x_(n-1), joined along the dim
    broadcast        every member gets     the tensor of the root
    reduce           the root gets         the sum, and the others keep their tensors
    gather           the root gets         all tensors joined, and the others keep theirs
    scatter          member i gets         piece i of the root's tensor
    split            member i keeps        piece i of its own tensor: nothing moves
    all_to_all       member i gets         piece i of every member, joined in order of members

Pieces land as NCCL and MPI have it: piece i on member i. :func:`apply` runs one of them, or one of
Megatron's mappings (training.mappings), in every group of a world. Megatron's own ``_reduce`` works
in place and changes its input; here nothing that is given is changed, and no two results of apply
share memory. Booleans and narrow integers are summed as numpy does, in int64, and do not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from groups.errors import LayoutError, quoted
from groups.mesh import whole_number

from .inputs import arrays_of, groups_of, stacked_of
from .mappings import FIRST, LAST, MAPPINGS, Operation

COLLECTIVES: dict[str, Operation] = {
    "all_reduce": Operation("all_reduce", "all_reduce", options=("reduction",)),
    "reduce_scatter": Operation("reduce_scatter", "all_gather", (FIRST,), options=("dim",)),
    "all_gather": Operation("all_gather", "reduce_scatter", (FIRST,), options=("dim",)),
    "broadcast": Operation("broadcast", "sum_at_root", options=("root",)),
    "reduce": Operation("reduce", "broadcast", options=("root",)),
    "gather": Operation("gather", "scatter", (FIRST,), options=("dim", "root")),
    "scatter": Operation("scatter", "join_at_root", (FIRST,), options=("dim", "root")),
    "split": Operation("split", "all_gather", (FIRST,), replicated="input", options=("dim",)),
    "all_to_all": Operation("all_to_all", "all_to_all", (FIRST, FIRST)),
}
"""The collectives by name. In gradients only the root counts where the others get nothing (reduce,
gather) or give nothing (broadcast, scatter)."""

OPERATIONS: dict[str, Operation] = {**COLLECTIVES, **MAPPINGS}
"""Everything that :func:`apply` does, by name."""

REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {"sum": np.sum, "mean": np.mean, "max": np.max}


def apply(
    op: str,
    tensors: Sequence[ArrayLike],
    groups: Sequence[Sequence[int]] | np.ndarray,
    *,
    direction: str = "forward",
    **options: Any,
) -> list[np.ndarray]:
    """Every group runs the operation on its own tensors; a rank in no group keeps its tensor.

    ``tensors`` has one array for each rank of the world; ``groups`` is an array of shape
    (num_groups, group_size), as rank_groups gives it, or a list of lists of ranks, which may differ
    in size. With ``direction="backward"`` the tensors are gradients of the output and the results
    are gradients of the input. Options:

        dim        of reduce_scatter, all_gather, gather, scatter and split: 0 unless given
        root       of broadcast, reduce, gather and scatter: its place in the group, 0 unless given
        reduction  of all_reduce: "sum" unless given, "mean" or "max"
        tensor_parallel_output_grad  of gather_from_sequence_parallel_region: True unless given, and
                   the backward reduce-scatters; False, and it splits

    >>> def run(*args, **options):
    ...     return [tensor.tolist() for tensor in apply(*args, **options)]
    >>> run("all_gather", [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [2, 3]])
    [[0.0, 1.0], [0.0, 1.0], [2.0, 3.0], [2.0, 3.0]]
    >>> run("copy_to_tensor_model_parallel_region", [[6], [7]], [[0, 1]], direction="backward")
    [[13], [13]]

    The backward of gather_from_tensor_model_parallel_region splits and does not sum, although the
    adjoint of an all-gather sums (training.mappings says why):

    >>> gradients = [[6, 6], [7, 7]]
    >>> run("gather_from_tensor_model_parallel_region", gradients, [[0, 1]], direction="backward")
    [[6], [7]]
    >>> run("all_gather", gradients, [[0, 1]], direction="backward")
    [[13], [13]]

    Errors: LayoutError for an unknown operation, direction or option; an operation without a
    backward; no tensors; a tensor that does not split, or has another shape than the others of its
    group; a rank that has no tensor; a rank that stands twice in the groups.
    """
    operation = operation_of(op, **options)
    _require_choice("direction", direction, ("forward", "backward"))
    forward = direction == "forward"
    function = _FUNCTIONS.get(operation.forward if forward else operation.backward)
    if function is None or (not forward and options.get("reduction") == "max"):
        raise _no_backward(op, options)
    dims = (options["dim"],) if "dim" in options else operation.dims
    dims = dims if forward else dims[::-1]
    keywords = {name: options[name] for name in ("root", "reduction") if name in options}

    results = arrays_of(tensors)
    for group in groups_of(groups, len(results)):
        members = [results[rank] for rank in group]
        # A scatter reads the root alone: the others may hold anything.
        stacked = members if function is scatter else stacked_of(members, group)
        for rank, result in zip(group, function(stacked, *dims, **keywords)):
            results[rank] = result
    return [np.array(result) for result in results]


def operation_of(op: str, **options: Any) -> Operation:
    """The row of an operation, as its options have it.

    >>> operation_of("gather_from_sequence_parallel_region").backward
    'reduce_scatter'
    >>> operation_of(
    ...     "gather_from_sequence_parallel_region", tensor_parallel_output_grad=False
    ... ).backward
    'split'

    Errors: LayoutError for an unknown operation, and for an option that it does not have.
    """
    operation = OPERATIONS.get(op) if isinstance(op, str) else None
    if operation is None:
        near = get_close_matches(op, OPERATIONS, cutoff=0.5) if isinstance(op, str) else []
        raise LayoutError(
            "unknown-operation",
            f"there is no operation {quoted(op)}",
            control="op",
            alternatives=[{"op": name} for name in near],
            facts={"value": quoted(op)},
        )
    for name, value in options.items():
        if name not in operation.options:
            raise LayoutError(
                "unknown-option",
                f"{op} has no option {quoted(name)}",
                control=name,
                facts={"operation": op, "value": quoted(name)},
            )
        if name == "tensor_parallel_output_grad":
            _require_choice(name, value, (True, False))
    if operation.repeated and not options.get("tensor_parallel_output_grad", True):
        return operation.repeated
    return operation


def keep(stacked: np.ndarray) -> np.ndarray:
    """Every member keeps its tensor: the half of a mapping in which nothing happens.

    >>> keep(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2], [3, 4]]
    """
    return stacked


def all_reduce(stacked: np.ndarray, reduction: str = "sum") -> np.ndarray:
    """Every member gets the sum of all tensors; or their mean or largest, element by element.

    >>> all_reduce(np.array([[1, 2], [3, 4]])).tolist()
    [[4, 6], [4, 6]]
    >>> all_reduce(np.array([[1, 2], [3, 4]]), reduction="max").tolist()
    [[3, 4], [3, 4]]
    """
    _require_choice("reduction", reduction, REDUCTIONS)
    return np.broadcast_to(REDUCTIONS[reduction](stacked, axis=0), stacked.shape)


def reduce_scatter(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """Member i gets piece i of the sum: the first half of an all-reduce.

    >>> reduce_scatter(np.array([[1, 2], [3, 4]])).tolist()
    [[4], [6]]
    """
    return _pieces(np.sum(stacked, axis=0), len(stacked), dim)


def all_gather(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """Every member gets all tensors joined in order of members: the second half of an all-reduce.

    >>> all_gather(np.array([[4], [6]])).tolist()
    [[4, 6], [4, 6]]
    """
    whole = _joined(stacked, dim)
    return np.broadcast_to(whole, (len(stacked), *whole.shape))


def broadcast(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """Every member gets the tensor of the root.

    >>> broadcast(np.array([[1, 2], [3, 4]]), root=1).tolist()
    [[3, 4], [3, 4]]
    """
    return np.broadcast_to(stacked[_place(root, len(stacked))], stacked.shape)


def reduce(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """The root gets the sum; the others keep their tensors.

    >>> reduce(np.array([[1, 2], [3, 4]])).tolist()
    [[4, 6], [3, 4]]
    """
    at = _place(root, len(stacked))
    return np.stack([np.sum(stacked, axis=0) if i == at else x for i, x in enumerate(stacked)])


def sum_at_root(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """The root gets the sum, the others zeros: the backward of broadcast, which ignored theirs.

    >>> sum_at_root(np.array([[1, 2], [3, 4]])).tolist()
    [[4, 6], [0, 0]]
    """
    total = np.sum(stacked, axis=0)
    summed = np.zeros_like(total, shape=stacked.shape)
    summed[_place(root, len(stacked))] = total
    return summed


def gather(stacked: np.ndarray, dim: int = 0, root: int = 0) -> list[np.ndarray]:
    """The root gets all tensors joined in order of members; the others keep theirs.

    >>> [tensor.tolist() for tensor in gather(np.array([[1, 2], [3, 4]]))]
    [[1, 2, 3, 4], [3, 4]]
    """
    at = _place(root, len(stacked))
    return [_joined(stacked, dim) if i == at else x for i, x in enumerate(stacked)]


def scatter(tensors: Sequence[np.ndarray], dim: int = 0, root: int = 0) -> np.ndarray:
    """Member i gets piece i of the root's tensor; what the others hold is not read.

    >>> scatter([np.array([1, 2]), np.array([7])]).tolist()
    [[1], [2]]
    """
    return _pieces(tensors[_place(root, len(tensors))], len(tensors), dim)


def join_at_root(stacked: np.ndarray, dim: int = 0, root: int = 0) -> np.ndarray:
    """The root gets all tensors joined, the others zeros: the backward of scatter.

    The zeros have the shape of the root's, although what the others held may have had another.

    >>> join_at_root(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2, 3, 4], [0, 0, 0, 0]]
    """
    whole = _joined(stacked, dim)
    joined = np.zeros_like(whole, shape=(len(stacked), *whole.shape))
    joined[_place(root, len(stacked))] = whole
    return joined


def split(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """Member i keeps piece i of its own tensor; nothing moves.

    >>> split(np.array([[1, 2], [3, 4]])).tolist()
    [[1], [4]]
    """
    return np.stack([_pieces(x, len(stacked), dim)[i] for i, x in enumerate(stacked)])


def all_to_all(stacked: np.ndarray, cut: int = 0, join: int = 0) -> np.ndarray:
    """Member i gets piece i of every member, joined in order of members.

    Tensors are cut along one dim and joined along another, or the same; the inverse swaps the two.

    >>> all_to_all(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    pieces = np.stack([_pieces(x, len(stacked), cut) for x in stacked])  # [from, to, ...]
    return np.stack([_joined(pieces[:, i], join) for i in range(len(stacked))])


def tokens_all_to_all(stacked: np.ndarray, cut: int, join: int) -> np.ndarray:
    """An all-to-all of tensors seen as (tokens, hidden), as all_to_all_sp2hp and _hp2sp see them.

    All dims but the last are tokens, and stay one dim in the result, as in Megatron.

    >>> two_tokens_each = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    >>> tokens_all_to_all(two_tokens_each, cut=-1, join=0).tolist()
    [[[1], [3], [5], [7]], [[2], [4], [6], [8]]]
    """
    _require_dims(stacked[0])
    ranks, *tokens, hidden = stacked.shape
    return all_to_all(stacked.reshape(ranks, math.prod(tokens), hidden), cut, join)


_FUNCTIONS: dict[str, Callable[..., Iterable[np.ndarray]]] = {
    function.__name__: function
    for function in (
        keep,
        all_reduce,
        reduce_scatter,
        all_gather,
        broadcast,
        reduce,
        sum_at_root,
        gather,
        scatter,
        join_at_root,
        split,
        all_to_all,
        tokens_all_to_all,
    )
}


def _pieces(tensor: np.ndarray, count: int, dim: int) -> np.ndarray:
    """The tensor cut into ``count`` equal pieces along a dim, stacked."""
    at = _require_dims(tensor, dim)
    size = tensor.shape[at]
    if size % count:
        below = size // count * count
        raise LayoutError(
            "does-not-split",
            f"dim {at} of the tensor has size {size}, which does not split over {count} ranks",
            why="every rank of the group gets an equal piece",
            control="tensor",
            alternatives=[{"size": near} for near in (below, below + count) if near],
            facts={"dim": at, "size": size, "ranks": count},
        )
    pieces = tensor.reshape(*tensor.shape[:at], count, size // count, *tensor.shape[at + 1 :])
    return np.moveaxis(pieces, at, 0)


def _joined(stacked: np.ndarray, dim: int) -> np.ndarray:
    """The stacked tensors joined along a dim."""
    return np.concatenate(stacked, axis=_require_dims(stacked[0], dim))


def _require_dims(tensor: np.ndarray, dim: int = LAST) -> int:
    """The dim counted from 0, or a LayoutError if the tensor has no such dim."""
    dims = tensor.ndim
    if not dims:
        raise LayoutError(
            "no-dims",
            "a tensor that is a single number has no dim to cut or join along",
            control="tensor",
        )
    return whole_number(dim, "dim", minimum=-dims, maximum=dims - 1) % dims


def _place(root: int, members: int) -> int:
    return whole_number(root, "root", minimum=0, maximum=members - 1)


def _no_backward(op: str, options: Mapping[str, Any]) -> LayoutError:
    told = "".join(f" by {value}" for name, value in options.items() if name == "reduction")
    return LayoutError(
        "no-backward",
        f"{op}{told} has no backward here",
        why="a largest element has no linear backward, and Megatron's _reduce, _split and _gather "
        "are differentiated only inside its mappings",
        control="direction",
        alternatives=[{"direction": "forward"}],
        facts={"operation": op + told},
    )


def _require_choice(control: str, value: object, choices: Collection[object]) -> None:
    if not isinstance(value, (str, bool)) or value not in choices:
        told = ", ".join(str(choice) for choice in choices)
        raise LayoutError(
            "not-a-choice",
            f"{quoted(value)} is not a choice of {control}: choose {told}",
            control=control,
            facts={"control": control, "value": quoted(value), "choices": told},
        )
