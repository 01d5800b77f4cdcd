"""Counts that programs define differently: batches in tokens or per device, chunks of a layout."""

from __future__ import annotations

import ast
from contextlib import suppress

from groups.errors import LayoutError
from groups.layout import Job
from groups.stages.layers import MAX_LAYERS
from groups.stages.layout_strings import parse_layout

from ..values import Document, Facts


def replicas(job: Job) -> int:
    """The data parallel size of a job.

    >>> replicas(Job(nodes=2, tp=4, pp=2))
    2
    """
    return job.nodes * job.gpus_per_node // (job.tp * job.cp * job.pp)


def chunks_of(job: Job, values: Facts) -> int | None:
    """The number of model chunks on each rank; None for one."""
    count = values.get("vpp") or 1
    if layout := values.get("layout"):
        with suppress(LayoutError):
            count = len(parse_layout(layout)) // job.pp
    return count if count > 1 else None


def local_batch(job: Job, values: Facts) -> Document:
    """Torchtitan's local batch size: with a pipeline all micro-batches of a step, else one of
    them."""
    micro, batch = values.get("micro_batch"), values.get("global_batch")
    if job.pp == 1:
        return {"local_batch": micro, "micro_batch": None}
    share, left = divmod(batch or 0, replicas(job))
    return {"local_batch": share if share and not left else None}


def in_tokens(job: Job, model: Facts) -> Document:
    """Batch sizes in tokens, as in torchtitan after 0.3, which needs the sequence length."""
    sequence, micro, batch = model.get("seq"), model.get("micro_batch"), model.get("global_batch")
    values = {}
    if sequence and micro:
        values["micro_tokens"] = micro * sequence
    if sequence and batch is not None:
        values["step_tokens"] = batch * sequence
    count, left = divmod(batch or 0, replicas(job) * (micro or 1))
    if job.pp > 1 and micro and count and not left:
        values["num_pp_microbatches"] = count
    return values


def dense_first(text: str, layers: int) -> int | None:
    """The first layers without experts, of Megatron's ``--moe-layer-freq``: a number N gives every
    N-th layer experts from the first on, a list of 0 and 1 says it of each layer. layers: of the
    model, 0 where that is not known. None where layers with experts do not all follow the others.

    >>> dense_first("([0]*3+[1]*58)", 61), dense_first("1", 32), dense_first("[1]*4", 0)
    (3, 0, 0)
    >>> dense_first("2", 32), dense_first("([0,1]*16)", 32), dense_first("[0]*3+[1]*20", 61)
    (None, None, None)

    Source: NVIDIA/Megatron-LM d98e8a6 megatron/training/arguments.py (moe_freq_type),
    megatron/core/models/gpt/gpt_layer_specs.py.
    """
    found = experts_in(text, layers)
    if isinstance(found, int):
        return 0 if found == 1 else None
    dense = found.count(0) if found else 0
    return dense if found and found == sorted(found) else None


def experts_in(text: str, layers: int) -> list[int] | int | None:
    """How often a layer has experts by ``--moe-layer-freq``, or whether each has; None for no such
    text, and for a list of other layers.

    >>> experts_in("2", 8), experts_in("([0]*1+[1]*3)*2", 8), experts_in("[0]*3", 8)
    (2, [0, 1, 1, 1, 0, 1, 1, 1], None)
    """
    try:
        tree = ast.parse(text.strip()[:4000], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if isinstance(tree, ast.Constant):
        return tree.value if type(tree.value) is int and tree.value > 0 else None
    pattern = _pattern(tree, depth=20)
    return pattern if pattern and layers in (0, len(pattern)) else None


def _pattern(node: ast.expr, depth: int) -> list[int] | None:
    """The list that an expression of lists, sums and products is; None for others."""
    match node:
        case _ if not depth:
            return None
        case ast.List(elements):
            shown = [ast.unparse(one) for one in elements]
            return None if {*shown} - {"0", "1"} else [int(one) for one in shown]
        case ast.BinOp(left, ast.Add(), right):
            before, after = _pattern(left, depth - 1), _pattern(right, depth - 1)
            return None if before is None or after is None else [*before, *after]
        case ast.BinOp(left, ast.Mult(), ast.Constant(int(count))):
            several = _pattern(left, depth - 1) or []
            return several * count if len(several) * count <= MAX_LAYERS else None
    return None
