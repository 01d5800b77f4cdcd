"""Collectives: what a group of ranks does together, on one tensor a rank.

With n members that hold x_0 .. x_(n-1), and tensors cut into n equal pieces along a dim:

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

>>> for op in COLLECTIVES:
...     print(op, [tensor.tolist() for tensor in apply(op, [[1, 2], [3, 4]], [[0, 1]])])
all_reduce [[4, 6], [4, 6]]
reduce_scatter [[4], [6]]
all_gather [[1, 2, 3, 4], [1, 2, 3, 4]]
broadcast [[1, 2], [1, 2]]
reduce [[4, 6], [3, 4]]
gather [[1, 2, 3, 4], [3, 4]]
scatter [[1], [2]]
split [[1], [4]]
all_to_all [[1, 3], [2, 4]]
send_recv [[3, 4], [1, 2]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from groups.errors import LayoutError, quoted

from ..errors import refusal, require_choice
from . import functions
from .mappings import FIRST, MAPPINGS, Operation
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

    >>> apply("copy_to_tensor_model_parallel_region", [[6], [7]], [[0, 1]], direction="backward")
    [array([13]), array([13])]

    Errors: LayoutError for an unknown operation, direction or option; an operation without a
    backward; no tensors; a tensor that does not split, or has another shape than the others of its
    group; a rank that has no tensor; a rank that stands twice in the groups.
    """
    operation = operation_of(op, **options)
    require_choice("direction", direction, ("forward", "backward"))
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
    >>> operation_of("all_to_all", splits=[[1, 2], [1, 0]]).backward
    'uneven_all_to_all_back'

    Errors: LayoutError for an unknown operation, and for an option that it does not have.
    """
    operation = OPERATIONS.get(op) if isinstance(op, str) else None
    if operation is None:
        raise unknown_operation(op, OPERATIONS)
    for name, value in options.items():
        if name not in operation.options:
            raise refusal("unknown-option", name, operation=op, value=quoted(name))
        if name == "tensor_parallel_output_grad":
            require_choice(name, value, (True, False))
    if operation.repeated and not options.get("tensor_parallel_output_grad", True):
        return operation.repeated
    if "splits" in options:
        return _UNEVEN
    return operation


_FUNCTIONS: dict[str, Callable[..., Iterable[np.ndarray]]] = {
    name: getattr(functions, name)
    for operation in (*OPERATIONS.values(), _UNEVEN)
    for name in (operation.forward, operation.backward)
    if name
}
"""What the rows name."""

_KEYWORDS = ("root", "reduction", "to", "splits")
"""Options that the functions take as they are."""

_UNSTACKED = (functions.scatter, functions.uneven_all_to_all, functions.uneven_all_to_all_back)
"""Functions of tensors that need not have one shape: a scatter reads the root's alone."""


def _no_backward(op: str, options: Mapping[str, object]) -> LayoutError:
    op += "".join(f" by {value}" for name, value in options.items() if name == "reduction")
    return refusal("no-backward", "direction", {"direction": "forward"}, operation=op)
