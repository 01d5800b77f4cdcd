"""Operations as data: what each does forward and backward, and along which dims of the tensor.

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

from dataclasses import dataclass

FIRST, LAST = 0, -1
"""Dims of a tensor: sequence parallelism cuts the first, tensor parallelism the last."""


@dataclass(frozen=True)
class Operation:
    """One row: the functions of `operations` that run on the tensors of one group.

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
    # What the mappings are made of; Megatron never differentiates these three themselves.
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
    "all_to_all_sp2hp": Operation("tokens_all_to_all", "tokens_all_to_all", (LAST, FIRST)),
    "all_to_all_hp2sp": Operation("tokens_all_to_all", "tokens_all_to_all", (FIRST, LAST)),
}
"""Megatron's mappings by their names there; all_to_all is a collective (`operations`)."""
