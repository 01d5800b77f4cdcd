"""The endpoint for collectives: every rank's tensor after one operation, and its cost."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from formats.values import Document
from groups import LayoutError
from groups.errors import not_a_choice, require_length
from groups.layout import Layout
from training.collectives.algorithms import MOST_MEMBERS, algorithm_of
from training.collectives.functions import place_of
from training.collectives.operations import apply, arrays_of, operation_of

from ...endpoint import (
    LAYOUT,
    Parameter,
    Parameters,
    layout_of,
    parameter,
    read_json,
    require_text,
    serving,
    too_large,
)
from ...errors import refusal
from ...state import State
from .inputs import CollectiveSpec, default_shape, exchanged, resolve_inputs, shape_of

OPERATION = Parameters(
    "(the operation)",
    {
        "operation": parameter(
            "collective", start="all_reduce", means='what every group does, such as "all_reduce"'
        ),
        "direction": parameter(
            "collective_direction",
            start="forward",
            means='"forward" or "backward"; the tensors are gradients of the output then',
        ),
        "group": parameter(
            "collective_group",
            means='a kind of group, such as "tp" or "dp-cp"; empty: the first of several ranks',
        ),
        "tensors": Parameter(
            str, "", "a JSON list with the tensor of each rank; empty: tensors of a shape"
        ),
        "shape": Parameter(
            str,
            "",
            'of what each rank holds, such as "4" or "2x4"; empty: a small one that works',
        ),
        "values": parameter(
            "collective_values",
            start="count",
            means='what is in it: "count" (10 times the place in the group, and on), "rank" or'
            ' "ones"',
        ),
        "root": Parameter(
            int,
            0,
            "the place in the group of the rank that gives or gets all, of operations with a root",
        ),
        "algorithm": parameter(
            "collective_algorithm",
            means='whose messages to list, step by step, such as "ring_all_reduce"; empty: none',
        ),
        "megabytes": parameter(
            "collective_mb",
            start=100.0,
            means="the whole buffer that the cost is for; 1 MB is 1e6 bytes",
        ),
        "gigabytes_per_second": parameter(
            "collective_gbs", means="of a GPU's link, one way; 0: those of a DGX H100"
        ),
    },
)
OF_MATHS = {"op": "operation", "tensor": "tensors", "collective_shape": "shape"}
"""The endpoint's parameters for controls that the maths, or the view, name differently."""

MOST_NUMBERS = 500_000
"""The most numbers in all tensors before and after: some 5 MB as text."""

LARGEST = 10**12
"""The largest number in a tensor: sums over all ranks stay exact."""

MOST_TEXT = 10_000_000
"""The longest text of tensors, in characters."""

MESSAGE = {"from": "sender", "to": "receiver", "chunk": "chunk", "into": "into", "adds": "adds"}
"""The fields of a transfer, by their names in the answer."""

JOINED = ("all_gather", "join_at_root")
"""Operations after which a rank has as many numbers as its whole group had."""


@serving(dict, OPERATION, LAYOUT)
def collective(arguments: Document) -> str:
    """What every rank holds after all groups of a kind ran one operation, as JSON; and its cost.

    Tensors stand by global rank; null: the rank is in no such group. The cost is that of one rank
    for a buffer of so many megabytes: bytes sent, steps, bus factor, and the least seconds.

    Operations are the collectives ("all_reduce", "reduce_scatter", "all_gather", "broadcast",
    "reduce", "gather", "scatter", "split", "all_to_all", "send_recv") and Megatron's mappings, such
    as "gather_from_sequence_parallel_region".

    Args:
        (the operation)
        (the layout)
    """
    layout = layout_of(arguments)
    for name in (name for name, row in OPERATION.rows.items() if row.kind is str):
        require_text(name, arguments[name])
    try:
        with OPERATION.named():
            watched = _watched(layout, State(**OPERATION.fields(arguments)), arguments["root"])
            held = _exchanged(watched, arguments["tensors"], arguments["shape"])
    except LayoutError as error:
        raise error.renamed(OF_MATHS) from None
    return json.dumps(
        {
            "operation": watched.op,
            "direction": watched.direction,
            "runs": watched.function,
            "group": watched.grouping.name,
            "groups": watched.grouping.num_groups,
            "group_size": watched.size,
            "before": [tensors and tensors[0].tolist() for tensors in held],
            "after": [tensors and tensors[1].tolist() for tensors in held],
            "cost": watched.cost_facts(),
            "algorithm": _steps(watched) if arguments["algorithm"] else None,
        }
    )


def _watched(layout: Layout, state: State, root: int) -> CollectiveSpec:
    """The operation of the request, as the view reads it; refuses inputs that the view would
    replace."""
    watched, _, problems = resolve_inputs(layout, state)
    if problems:
        # To leave an input empty mends it on the page; a program is not told to.
        fixes = [fix for fix in problems[0].alternatives if "" not in fix.values()]
        raise problems[0].replace(alternatives=fixes)
    algorithm = state.collective_algorithm
    if algorithm and watched.algorithm != algorithm:
        raise not_a_choice("algorithm", algorithm, watched.algorithms or ['""'])
    if "root" in watched.operation.options:
        return replace(watched, root=place_of(root, watched.size))
    if root != 0:
        operation_of(watched.op, root=root)  # refuses it
    return watched


def _exchanged(
    watched: CollectiveSpec, tensors: str, shape: str
) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """Each rank's tensor before and after; None for ranks that take no part."""
    world = watched.grouping.world_size
    if tensors and shape:
        raise refusal("tensors-and-shape", "shape")
    inputs = _read(tensors, world) if tensors else []
    sizes = shape_of(shape) if shape else default_shape(watched.operation, watched.size)
    count = sum(tensor.size for tensor in inputs) if inputs else world * int(np.prod(sizes))
    _require_small(watched, count)
    groups = watched.grouping.groups()
    inside = [int(rank) for ranks in groups for rank in ranks]
    if inputs:
        result = apply(watched.op, inputs, groups, direction=watched.direction, **watched.options)
        before, after = ([of[rank] for rank in inside] for of in (inputs, result))
    else:
        before, after = exchanged(replace(watched, shape=sizes), groups)
    held = dict(zip(inside, zip(before, after)))
    return [held.get(rank) for rank in range(world)]


def _read(text: str, world: int) -> list[np.ndarray]:
    require_length(text, MOST_TEXT, "tensors")
    tensors = arrays_of(read_json(text, list, "not-tensors", "tensors"))
    if len(tensors) != world:
        raise refusal("not-one-per-rank", "tensors", count=len(tensors), world=world)
    for rank, tensor in enumerate(tensors):
        if not np.all((tensor <= LARGEST) & (tensor >= -LARGEST)):  # NaN is no number either
            raise refusal("too-large-a-number", "tensors", rank=rank, limit=LARGEST)
    return tensors


def _require_small(watched: CollectiveSpec, count: int) -> None:
    """Refuses an answer that is too large, before it is computed."""
    functions = {watched.function, watched.operation.forward}
    times = watched.size if functions & set(JOINED) else 1
    if count * (1 + times) > MOST_NUMBERS:
        raise too_large(count * (1 + times), "numbers", MOST_NUMBERS, "shape")


def _steps(watched: CollectiveSpec) -> dict[str, object]:
    """Every message of an algorithm between places of one group, each with the chunk that it
    carries."""
    if watched.size > MOST_MEMBERS:
        raise refusal("too-many-members", "algorithm", limit=MOST_MEMBERS, size=watched.size)
    algorithm = algorithm_of(watched.algorithm, watched.size, watched.root)
    return {
        "name": algorithm.name,
        "chunks": algorithm.chunks,
        "message_bytes": watched.buffer_bytes / algorithm.chunks,
        "steps": [
            [{name: getattr(move, field) for name, field in MESSAGE.items()} for move in step]
            for step in algorithm.steps
        ],
    }
