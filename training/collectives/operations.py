"""Collectives: operations of a group of ranks on one tensor per rank.

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
Megatron's mappings, in every group of a world. Megatron's own ``_reduce`` works
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

Megatron's mappings are pairs of collectives (NVIDIA/Megatron-LM, commit d98e8a6,
megatron/core/tensor_parallel/mappings.py). With the letters of Megatron 2019 and 2021 f is the copy
and g the reduce; Korthikanti et al. (arXiv:2205.05198) write f̄ for the reduce, and g and ḡ for the
all-gather and the reduce-scatter of sequence parallelism.

A backward is the adjoint of its forward,

    <f(x), y> = <x, f*(y)>

where <a, b> sums over the ranks of a group, except that a tensor which all of them hold alike, a
*replicated* one, is counted once. The rows say which side is replicated. Megatron takes it on
trust, and so do we: nothing checks that the tensors are alike.

The trap is a replicated *output*. Its gradient is taken to be the same on every rank, because every
rank repeats the computation that follows. Where the gradients differ, the adjoint would sum them,
and Megatron does not: the backward of gather_from_tensor_model_parallel_region gives each rank its
piece of its own gradient. (all_gather_last_dim_from_tensor_parallel_region has the same forward
and the backward that sums.) It is the same with reduce_from_tensor_model_parallel_region, and with
gather_from_sequence_parallel_region where tensor_parallel_output_grad=False.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import ArrayLike

from groups.errors import LayoutError, quoted

from ..errors import refusal, require_choice
from . import functions
from .functions import items

FIRST, LAST = 0, -1
"""Dims of a tensor: sequence parallelism cuts the first, tensor parallelism the last."""


@dataclass(frozen=True)
class Operation:
    """One operation: the `functions` that run on the tensors of a group, forward and backward.

    >>> scatter = MAPPINGS["scatter_to_tensor_model_parallel_region"]
    >>> scatter.forward, scatter.backward, scatter.dims, scatter.replicated
    ('split', 'all_gather', (-1,), 'input')

    Attributes:
        forward, backward: names of functions; an empty backward: there is none.
        dims: of the tensor, the dim that is cut or joined, or the dim that is cut and the one that
            is joined; the backward takes them in reverse.
        replicated: "input" or "output" if all ranks of a group hold that one alike, else "".
        options: keywords that may be given with the operation.
        repeated: the row that holds instead with tensor_parallel_output_grad=False, when what
            follows is not split over the ranks but repeated on each.
    """

    forward: str
    backward: str
    dims: tuple[int, ...] = ()
    replicated: str = ""
    options: tuple[str, ...] = ()
    repeated: Operation | None = None


MAPPINGS: dict[str, Operation] = {
    # The parts of the mappings; Megatron never differentiates these three by themselves.
    "_reduce": Operation("all_reduce", ""),
    "_split": Operation("split", "", (LAST,)),
    "_gather": Operation("all_gather", "", (LAST,)),
    # Tensor parallelism: the hidden dim is the last.
    "copy_to_tensor_model_parallel_region": Operation("keep", "all_reduce", (), "input"),
    "reduce_from_tensor_model_parallel_region": Operation("all_reduce", "keep", (), "output"),
    # Its docstring in Megatron says reduce-scatter; the code splits.
    "scatter_to_tensor_model_parallel_region": Operation("split", "all_gather", (LAST,), "input"),
    "gather_from_tensor_model_parallel_region": Operation("all_gather", "split", (LAST,), "output"),
    "all_gather_last_dim_from_tensor_parallel_region": Operation(
        "all_gather", "reduce_scatter", (LAST,)
    ),
    "reduce_scatter_last_dim_to_tensor_parallel_region": Operation(
        "reduce_scatter", "all_gather", (LAST,)
    ),
    # Sequence parallelism: the sequence dim is the first.
    "scatter_to_sequence_parallel_region": Operation("split", "all_gather", (FIRST,), "input"),
    "gather_from_sequence_parallel_region": Operation(
        "all_gather",
        "reduce_scatter",
        (FIRST,),
        options=("tensor_parallel_output_grad",),
        repeated=Operation("all_gather", "split", (FIRST,), "output"),
    ),
    "reduce_scatter_to_sequence_parallel_region": Operation(
        "reduce_scatter", "all_gather", (FIRST,)
    ),
    # Between tokens and hidden: the same all-to-all with its dims swapped.
    # They serve the cp of Mamba layers (NVIDIA/Megatron-LM d98e8a6
    # megatron/core/ssm/mamba_context_parallel.py).
    "all_to_all_sp2hp": Operation("tokens_all_to_all", "tokens_all_to_all", (LAST, FIRST)),
    "all_to_all_hp2sp": Operation("tokens_all_to_all", "tokens_all_to_all", (FIRST, LAST)),
}
"""Megatron's mappings by their names there; all_to_all is a collective."""

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
"""The collectives by name. In gradients only the root counts if the others get nothing (reduce,
gather) or contribute nothing (broadcast, scatter)."""

_UNEVEN = Operation("uneven_all_to_all", "uneven_all_to_all_back", options=("splits",))

OPERATIONS: dict[str, Operation] = {**COLLECTIVES, **MAPPINGS}
"""All operations of :func:`apply`, by name."""

_KEYWORDS = ("root", "reduction", "to", "splits")
"""Options passed to the functions unchanged."""

_UNSTACKED = ("scatter", "uneven_all_to_all", "uneven_all_to_all_back")
"""Functions of tensors with different shapes: a scatter reads only the root's."""


def apply(
    op: str,
    tensors: Sequence[ArrayLike],
    groups: Sequence[Sequence[int]] | np.ndarray,
    *,
    direction: str = "forward",
    **options: object,
) -> list[np.ndarray]:
    """Every group runs the operation on its own tensors; a rank in no group keeps its tensor.

    ``tensors`` has one array for each rank of the world; ``groups`` is a result of rank_groups, or
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
    is_back = direction == "backward"
    name = operation.backward if is_back else operation.forward
    if not name or (is_back and options.get("reduction") == "max"):
        called = f"{op} by max" if name else op
        raise refusal("no-backward", "direction", {"direction": "forward"}, operation=called)
    function = getattr(functions, name)
    dims = (options["dim"],) if "dim" in options else operation.dims
    dims = dims[::-1] if is_back else dims
    keywords = {name: value for name, value in options.items() if name in _KEYWORDS}

    results = arrays_of(tensors)
    for group in groups_of(groups, len(results)):
        members = [results[rank] for rank in group]
        stacked = members if name in _UNSTACKED else stacked_of(members, group)
        for rank, result in zip(group, function(stacked, *dims, **keywords)):
            results[rank] = result
    return [np.array(result) for result in results]


def operation_of(op: str, **options: object) -> Operation:
    """The operation with a name, for these options.

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


def unknown_operation(op: object, known: Iterable[str]) -> LayoutError:
    """The refusal of an unknown operation, with similar names.

    >>> unknown_operation("allreduce", ["all_reduce", "gather"]).alternatives
    ({'op': 'all_reduce'},)
    """
    near = get_close_matches(op, list(known), cutoff=0.5) if isinstance(op, str) else []
    return refusal("unknown-operation", "op", *[{"op": name} for name in near], value=quoted(op))


# -- a tensor for each rank, and groups of those ranks; checked ------------------------------------


def arrays_of(tensors: object) -> list[np.ndarray]:
    """One array of numbers for each rank.

    Errors: LayoutError for no tensors, or one that is not made of numbers.
    """
    values = items(tensors)
    if not values:
        raise refusal("no-tensors", "tensor")
    arrays = [_numbers(tensor, "biufc") for tensor in values]
    for rank, array in enumerate(arrays):
        if array is None:
            raise refusal("not-a-tensor", "tensor", rank=rank)
    return arrays  # type: ignore[return-value]


def stacked_of(members: Sequence[np.ndarray], group: Sequence[int]) -> np.ndarray:
    """The tensors of one group stacked: entry i is the tensor of the member at place i.

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
    """The groups as lists of ranks, checked: each rank is in the world and in one group at most.

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


def _numbers(value: object, kinds: str) -> np.ndarray | None:
    """The value as an array of one of these kinds of numbers (numpy's letters), else None."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return None
    return array if array.dtype.kind in kinds else None
