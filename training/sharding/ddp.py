"""torch's DistributedDataParallel: its buckets, and what it sends in each step.

    construction   the number of parameters, their shapes, then all parameters from rank 0
    first step     one all-reduce of all gradients
    from then on   buckets in the order in which gradients came: a bucket closes when it reaches its
                   size, 1 MiB for the first one and 25 MiB for the others unless one size is given

With find_unused_parameters buckets are never rebuilt: parameters fill them in the order of
definition and they are sent last first, and a flag for each parameter follows.

Source: torch 2.13.0 torch/nn/parallel/distributed.py, _ddp_init_helper; csrc/distributed/c10d/
reducer.cpp, compute_bucket_assignment_by_size, rebuild_buckets, sync_bucket_indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .record import BYTES, GroupCall
from .units import ModuleParameter

MIB = 2**20
FIRST, OTHERS, BROADCAST = 1 * MIB, 25 * MIB, 250 * MIB
"""Sizes at which the first bucket, another one, and a broadcast of parameters close."""


def buckets_of(
    parameters: Iterable[ModuleParameter], limits: Sequence[int], element: int
) -> list[tuple[ModuleParameter, ...]]:
    """Parameters in buckets, each closed by the one that brings it to its limit; the last limit
    counts for all others too.

    >>> three = [ModuleParameter(name, (4,)) for name in "abc"]
    >>> [[each.name for each in bucket] for bucket in buckets_of(three, (16, 32), 4)]
    [['a'], ['b', 'c']]
    """
    buckets, open_ones, size = [], [], 0
    left = list(limits)
    for parameter in parameters:
        open_ones.append(parameter)
        size += parameter.elements * element
        if size >= left[0]:
            buckets.append(tuple(open_ones))
            open_ones, size = [], 0
            left = left[1:] or left
    return [*buckets, tuple(open_ones)] if open_ones else buckets


USES = (
    *("attention_norm", "wq", "wq_a", "q_norm", "wq_b", "wk", "wkv_a", "kv_norm", "wkv_b", "wv"),
    *("wo", "ffn_norm", "gate", "w1", "w3", "w2"),
)
"""The modules of a layer in the order in which it runs them."""


def readiness(parameters: Iterable[ModuleParameter]) -> list[ModuleParameter]:
    """Parameters in the order in which backward makes their gradients: what ran last first, a bias
    before its weight. A table of words that the output uses too is ready with the first layer.

    >>> names = [f"layers.0.attention.wq.{kind}" for kind in ("weight", "bias")]
    >>> layer = [ModuleParameter(name, (1,)) for name in names]
    >>> [each.name for each in readiness([ModuleParameter("norm.weight", (1,)), *layer])]
    ['norm.weight', 'layers.0.attention.wq.bias', 'layers.0.attention.wq.weight']
    """
    return sorted(parameters, key=lambda each: _used(each.name.split(".")), reverse=True)


def _used(name: Sequence[str]) -> tuple[int, int, bool]:
    is_bias = name[-1].endswith("bias")
    if name[0] != "layers":
        ends = ("tok_embeddings", "pos_embeddings", "norm", "lm_head")
        place = ends.index(name[0]) if name[0] in ends else 1
        return (-2 if place < 2 else MOST), place, is_bias
    found = [
        USES.index(part.removesuffix("_bias"))
        for part in name
        if part.removesuffix("_bias") in USES
    ]
    return int(name[1]), max(found, default=len(USES)), is_bias


MOST = 10**9
"""Behind all layers."""


@dataclass(frozen=True)
class BucketSizes:
    """cap: the size of all buckets in bytes, None for the defaults; find_unused: as its argument;
    sync_last: whether only the last micro-batch reduces (no_sync)."""

    world: int
    micro_batches: int = 1
    cap: int | None = None
    find_unused: bool = False
    sync_last: bool = False
    format: str = "fp32"


@dataclass(frozen=True)
class Steps:
    """What DDP sends: at construction, and in each of three steps; buckets: those that a step
    reduces, each time that it does."""

    construction: tuple[GroupCall, ...]
    steps: tuple[tuple[GroupCall, ...], ...]
    buckets: tuple[tuple[tuple[ModuleParameter, ...], ...], ...]


def steps_of(parameters: Sequence[ModuleParameter], how: BucketSizes) -> Steps:
    """Construction and three steps of a model in 32 bits, its parameters in the order of
    definition."""
    first = FIRST if how.cap is None else how.cap
    limits = (first, OTHERS if how.cap is None else how.cap)
    element = BYTES[how.format]
    if how.find_unused:
        before = rebuilt = buckets_of(parameters, limits, element)[::-1]
    else:
        before = [tuple(parameters)]
        rebuilt = buckets_of(readiness(parameters), limits, element)
    steps: list[tuple[GroupCall, ...]] = []
    buckets: list[tuple[tuple[ModuleParameter, ...], ...]] = []
    reduced = 0
    for _ in range(3):
        sent: list[GroupCall] = []
        used: list[tuple[ModuleParameter, ...]] = []
        for number in range(how.micro_batches):
            if reduced == 1 and not how.find_unused and not _has_rebuilt(steps, sent):
                counts = (len(parameters) + 1, len(rebuilt))
                sent += [_sent(f"forward:{number}", "broadcast", n, "int32") for n in counts]
            if how.sync_last and number < how.micro_batches - 1:
                continue
            now = rebuilt if reduced else before
            reduced += 1
            phase = f"backward:{number}"
            for bucket in now:
                size = sum(each.elements for each in bucket)
                sent.append(_sent(phase, "all_reduce", size, how.format))
            used += now
            if how.find_unused:
                sent.append(_sent(phase, "all_reduce", len(parameters), "int32"))
        steps.append(tuple(sent))
        buckets.append(tuple(used))
    return Steps(tuple(_construction(parameters, how)), tuple(steps), tuple(buckets))


def _has_rebuilt(steps: Sequence[Sequence[GroupCall]], sent: Sequence[GroupCall]) -> bool:
    return any(each.op == "broadcast" for step in (*steps, sent) for each in step)


def _construction(parameters: Sequence[ModuleParameter], how: BucketSizes) -> Iterable[GroupCall]:
    yield GroupCall("construct", "all_gather_list", "dp", None, 8, 8 * how.world, "int64")
    yield _sent("construct", "broadcast", sum(2 * len(each.shape) for each in parameters), "int64")
    for bucket in buckets_of(parameters, (BROADCAST,), BYTES[how.format]):
        size = sum(each.elements for each in bucket)
        yield _sent("construct", "broadcast", size, how.format)


def _sent(phase: str, op: str, elements: int, of: str) -> GroupCall:
    size = elements * BYTES[of]
    return GroupCall(phase, op, "dp", None, size, size, of)
