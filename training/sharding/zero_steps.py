"""A step of DeepSpeed's ZeRO: what each of its stages sends.

Gradients travel in buckets of at most reduce_bucket_size elements, as they come. In stages 1 and 2
a piece of a bucket has one owner; pieces are all-reduced together until they exceed the size.

Source: deepspeedai/DeepSpeed 0.19.8 deepspeed/runtime/zero/stage_1_and_2.py, average_tensor and
allreduce_and_scatter; stage3.py; bf16_optimizer.py; engine.py, buffered_allreduce_fallback.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .ddp import readiness
from .record import GroupCall, Record
from .units import ModuleParameter
from .zero import ZeroConfig, padded, partition, persistent
from .zero3 import Coordinator


def steps_of(
    parameters: Sequence[ModuleParameter],
    config: ZeroConfig,
    world: int,
    micro_batches: int,
    steps: int,
) -> list[list[GroupCall]]:
    """The collectives of each of so many steps from the first one on."""
    three = Coordinator(parameters, config, world) if config.stage == 3 else None
    found = []
    for _ in range(steps):
        record = Record()
        for number in range(micro_batches):
            is_last = number == micro_batches - 1
            if three:
                three.run(record, number)
                record.phase = f"backward:{number}"
                _scatter(record, parameters, config, world)
            elif is_last or config.stage == 2:
                record.phase = f"backward:{number}"
                _reduce(record, parameters, config, world)
        record.phase = f"step:{micro_batches - 1}"
        _update(record, parameters, config, world)
        if three:
            three.updated()
        found.append(record.collectives)
    return found


def buckets(parameters: Iterable[ModuleParameter], size: int) -> Iterator[list[ModuleParameter]]:
    """Parameters as their gradients come, in buckets; one that does not fit opens the next."""
    bucket: list[ModuleParameter] = []
    for each in readiness(parameters):
        if bucket and sum(other.elements for other in bucket) + each.elements > size:
            yield bucket
            bucket = []
        bucket.append(each)
    if bucket:
        yield bucket


def scatters(
    parameters: Sequence[ModuleParameter], config: ZeroConfig, world: int
) -> Iterator[int]:
    """Elements of each reduce-scatter of stage 3, in order, with the padding."""
    for bucket in buckets(parameters, config.reduce_bucket):
        yield world * sum(partition(each, world) for each in bucket)


def _scatter(
    record: Record, parameters: Sequence[ModuleParameter], config: ZeroConfig, world: int
) -> None:
    for size in scatters(parameters, config, world):
        record.send("reduce_scatter", "dp", None, (size, size // world), config.format)


def reductions(
    parameters: Sequence[ModuleParameter], config: ZeroConfig, world: int
) -> Iterator[int]:
    """Elements of each reduction of stages 0 to 2, in order.

    >>> two = [ModuleParameter(f"layers.{at}.wq.weight", (6,)) for at in (0, 1)]
    >>> [[*reductions(two, ZeroConfig(stage, reduce_bucket=8), 4)] for stage in (0, 1)]
    [[12], [6, 6]]
    """
    if config.stage == 0 or config.accumulates:
        yield from _joined((each.elements for each in parameters), config.reduce_bucket)
        return
    starts, share = _shares(parameters, world)
    for bucket in buckets(parameters, config.reduce_bucket):
        yield from _of_bucket(bucket, starts, share, config)


def _shares(parameters: Sequence[ModuleParameter], world: int) -> tuple[dict[str, int], int]:
    """Where each parameter starts in the flat state, and the length of a rank's share."""
    starts, start = {}, 0
    for each in parameters:
        starts[each.name] = start
        start += each.elements
    return starts, padded(start, world) // world


def _of_bucket(
    bucket: Sequence[ModuleParameter], starts: dict[str, int], share: int, config: ZeroConfig
) -> Iterator[int]:
    if not config.reduce_scatter:
        yield sum(each.elements for each in bucket)
        return
    pieces = _pieces(bucket, starts, share)
    if config.multi_rank:
        yield from _joined((length for _, length in pieces), config.reduce_bucket)
        return
    for owner in dict.fromkeys(owner for owner, _ in pieces):
        yield from _joined((n for each, n in pieces if each == owner), config.reduce_bucket)


def _reduce(
    record: Record, parameters: Sequence[ModuleParameter], config: ZeroConfig, world: int
) -> None:
    is_summed = config.stage == 0 or config.accumulates or not config.reduce_scatter
    op = "all_reduce" if is_summed or config.multi_rank else "reduce"
    for size in reductions(parameters, config, world):
        record.send(op, "dp", None, (size, size), config.format)


def _pieces(
    bucket: Sequence[ModuleParameter], starts: dict[str, int], share: int
) -> list[tuple[int, int]]:
    """The owner and the length of each run of a bucket's elements that one rank owns."""
    pieces: list[tuple[int, int]] = []
    for each in bucket:
        start = starts[each.name]
        end = start + each.elements
        while start < end:
            owner = start // share
            stop = min(end, (owner + 1) * share)
            if pieces and pieces[-1][0] == owner:
                pieces[-1] = (owner, pieces[-1][1] + stop - start)
            else:
                pieces.append((owner, stop - start))
            start = stop
    return pieces


def _joined(lengths: Iterable[int], size: int) -> Iterator[int]:
    """Lengths joined until they are more than the size."""
    total = 0
    for length in lengths:
        total += length
        if total > size:
            yield total
            total = 0
    if total:
        yield total


def _update(
    record: Record, parameters: Sequence[ModuleParameter], config: ZeroConfig, world: int
) -> None:
    """What goes around the optimizer: an overflow flag (16 bits), the gradients' norm, and the
    weights that are held whole."""
    stage = config.stage
    if stage in (1, 2):
        if not config.accumulates:
            if config.format != "fp32":
                record.send("all_reduce", "dp", None, (1, 1), "uint8")
            record.send("all_reduce", "dp", None, (1, 1), "fp32")
        whole = padded(sum(each.elements for each in parameters), world)
        record.send("all_gather", "dp", None, (whole // world, whole), config.format)
    if stage == 3:
        record.send("all_reduce", "dp", None, (1, 1), "fp64")
        for each in persistent(parameters, config):
            part = partition(each, world)
            record.send("all_gather", "dp", None, (part, part * world), config.format)
