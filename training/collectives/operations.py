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
    send_recv        the next gets         the tensor of member i, or whoever ``to`` says

Pieces land as NCCL and MPI have it: piece i on member i. :func:`apply` runs one of them, or one of
Megatron's mappings (`mappings`), in every group of a world. Megatron's own ``_reduce`` works
in place and changes its input; here nothing that is given is changed, and no two results of apply
share memory. Booleans and narrow integers are summed as numpy does, in int64, and do not overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from groups.errors import LayoutError, not_a_choice, quoted

from . import exchange
from .mappings import FIRST, MAPPINGS, Operation
from .pieces import joined, pieces_of, place_of
from .tensors import arrays_of, groups_of, stacked_of, unknown_operation

COLLECTIVES: dict[str, Operation] = {
    "all_reduce": Operation("all_reduce", "all_reduce", options=("reduction",)),
    "reduce_scatter": Operation("reduce_scatter", "all_gather", (FIRST,), options=("dim",)),
    "all_gather": Operation("all_gather", "reduce_scatter", (FIRST,), options=("dim",)),
    "broadcast": Operation("broadcast", "sum_at_root", options=("root",)),
    "reduce": Operation("reduce", "broadcast", options=("root",)),
    "gather": Operation("gather", "scatter", (FIRST,), options=("dim", "root")),
    "scatter": Operation("scatter", "join_at_root", (FIRST,), options=("dim", "root")),
    "split": Operation("split", "all_gather", (FIRST,), replicated="input", options=("dim",)),
    "all_to_all": Operation("all_to_all", "all_to_all", (FIRST, FIRST), options=("splits",)),
    "send_recv": Operation("send_recv", "send_recv_back", options=("to",)),
}
"""The collectives by name. In gradients only the root counts where the others get nothing (reduce,
gather) or give nothing (broadcast, scatter)."""

_UNEVEN = Operation("uneven_all_to_all", "uneven_all_to_all_back", options=("splits",))

OPERATIONS: dict[str, Operation] = {**COLLECTIVES, **MAPPINGS}
"""Everything that :func:`apply` does, by name."""

REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {"sum": np.sum, "mean": np.mean, "max": np.max}


def apply(
    op: str,
    tensors: Sequence[ArrayLike],
    groups: Sequence[Sequence[int]] | np.ndarray,
    *,
    direction: str = "forward",
    **options: object,
) -> list[np.ndarray]:
    """Every group runs the operation on its own tensors; a rank in no group keeps its tensor.

    ``tensors`` has one array for each rank of the world; ``groups`` is what rank_groups gives, or
    lists of ranks, which may differ in size. With ``direction="backward"`` the tensors are
    gradients of the output and the results are gradients of the input. Options:

        dim        of reduce_scatter, all_gather, gather, scatter and split: 0 unless given
        root       of broadcast, reduce, gather and scatter: its place in the group, 0 unless given
        reduction  of all_reduce: "sum" unless given, "mean" or "max"
        to         of send_recv: the place that each member sends to, or None; the next unless given
        splits     of all_to_all: splits[i][j] rows go from member i to j; equal unless given
        tensor_parallel_output_grad  of gather_from_sequence_parallel_region: True unless given, and
                   the backward reduce-scatters; False, and it splits

    >>> def run(*args, **options):
    ...     return [tensor.tolist() for tensor in apply(*args, **options)]
    >>> run("all_gather", [[0.0], [1.0], [2.0], [3.0]], [[0, 1], [2, 3]])
    [[0.0, 1.0], [0.0, 1.0], [2.0, 3.0], [2.0, 3.0]]
    >>> run("copy_to_tensor_model_parallel_region", [[6], [7]], [[0, 1]], direction="backward")
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
    keywords = {name: value for name, value in options.items() if name in _KEYWORDS}

    results = arrays_of(tensors)
    for group in groups_of(groups, len(results)):
        members = [results[rank] for rank in group]
        stacked = members if function in _UNSTACKED else stacked_of(members, group)
        for rank, result in zip(group, function(stacked, *dims, **keywords)):
            results[rank] = result
    return [np.array(result) for result in results]


def operation_of(op: str, **options: object) -> Operation:
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
        raise unknown_operation(op, OPERATIONS)
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
    if "splits" in options:
        return _UNEVEN
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
    return pieces_of(np.sum(stacked, axis=0), len(stacked), dim)


def all_gather(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """Every member gets all tensors joined in order of members: the second half of an all-reduce.

    >>> all_gather(np.array([[4], [6]])).tolist()
    [[4, 6], [4, 6]]
    """
    whole = joined(stacked, dim)
    return np.broadcast_to(whole, (len(stacked), *whole.shape))


def broadcast(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """Every member gets the tensor of the root.

    >>> broadcast(np.array([[1, 2], [3, 4]]), root=1).tolist()
    [[3, 4], [3, 4]]
    """
    return np.broadcast_to(stacked[place_of(root, len(stacked))], stacked.shape)


def reduce(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """The root gets the sum; the others keep their tensors.

    >>> reduce(np.array([[1, 2], [3, 4]])).tolist()
    [[4, 6], [3, 4]]
    """
    at = place_of(root, len(stacked))
    return np.stack([np.sum(stacked, axis=0) if i == at else x for i, x in enumerate(stacked)])


def sum_at_root(stacked: np.ndarray, root: int = 0) -> np.ndarray:
    """The root gets the sum, the others zeros: the backward of broadcast, which ignored theirs.

    >>> sum_at_root(np.array([[1, 2], [3, 4]])).tolist()
    [[4, 6], [0, 0]]
    """
    total = np.sum(stacked, axis=0)
    summed = np.zeros_like(total, shape=stacked.shape)
    summed[place_of(root, len(stacked))] = total
    return summed


def gather(stacked: np.ndarray, dim: int = 0, root: int = 0) -> list[np.ndarray]:
    """The root gets all tensors joined in order of members; the others keep theirs.

    >>> [tensor.tolist() for tensor in gather(np.array([[1, 2], [3, 4]]))]
    [[1, 2, 3, 4], [3, 4]]
    """
    at = place_of(root, len(stacked))
    return [joined(stacked, dim) if i == at else x for i, x in enumerate(stacked)]


def scatter(tensors: Sequence[np.ndarray], dim: int = 0, root: int = 0) -> np.ndarray:
    """Member i gets piece i of the root's tensor; what the others hold is not read.

    >>> scatter([np.array([1, 2]), np.array([7])]).tolist()
    [[1], [2]]
    """
    return pieces_of(tensors[place_of(root, len(tensors))], len(tensors), dim)


def join_at_root(stacked: np.ndarray, dim: int = 0, root: int = 0) -> np.ndarray:
    """The root gets all tensors joined, the others zeros: the backward of scatter.

    The zeros have the shape of the root's, although what the others held may have had another.

    >>> join_at_root(np.array([[1, 2], [3, 4]])).tolist()
    [[1, 2, 3, 4], [0, 0, 0, 0]]
    """
    whole = joined(stacked, dim)
    at_root = np.zeros_like(whole, shape=(len(stacked), *whole.shape))
    at_root[place_of(root, len(stacked))] = whole
    return at_root


def split(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """Member i keeps piece i of its own tensor; nothing moves.

    >>> split(np.array([[1, 2], [3, 4]])).tolist()
    [[1], [4]]
    """
    return np.stack([pieces_of(x, len(stacked), dim)[i] for i, x in enumerate(stacked)])


_FUNCTIONS: dict[str, Callable[..., Iterable[np.ndarray]]] = {
    name: function
    for name, function in {**vars(exchange), **globals()}.items()
    if any(name in (one.forward, one.backward) for one in (*OPERATIONS.values(), _UNEVEN))
}
"""What the rows name, of this file and of `exchange`."""

_KEYWORDS = ("root", "reduction", "to", "splits")
"""Options that the functions take as they are."""

_UNSTACKED = (scatter, exchange.uneven_all_to_all, exchange.uneven_all_to_all_back)
"""Functions of tensors that need not have one shape: a scatter reads the root's alone."""


def _no_backward(op: str, options: Mapping[str, object]) -> LayoutError:
    op += "".join(f" by {value}" for name, value in options.items() if name == "reduction")
    return LayoutError(
        "no-backward",
        f"{op} has no backward here",
        why="a largest element has no linear backward, and Megatron's _reduce, _split and _gather "
        "are differentiated only inside its mappings",
        control="direction",
        alternatives=[{"direction": "forward"}],
        facts={"operation": op},
    )


def _require_choice(control: str, value: object, choices: Collection[object]) -> None:
    if not isinstance(value, (str, bool)) or value not in choices:
        raise not_a_choice(control, value, map(str, choices))
