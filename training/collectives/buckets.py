"""Gradient buckets: which gradients are sent together, and when, while the backward pass goes on.

Gradients come ready in the reverse order of the layers. A bucket takes them in as they come and is
closed as soon as it *reaches* its cap; its collective starts when its last gradient is ready and
the one before it is done, while the backward pass of earlier layers goes on.

    PyTorch DDP   caps of 1 MiB for the first bucket, 25 MiB for the others: the first one is small
                  so that communication starts early (torch 2.13, torch/nn/parallel/distributed.py
                  and torch.distributed._DEFAULT_FIRST_BUCKET_BYTES; from the second step on, when
                  buckets are rebuilt in the order in which gradients came ready)
    Megatron      max(40,000,000, 1,000,000 d) parameters with --overlap-grad-reduce, else one
                  bucket (NVIDIA/Megatron-LM, megatron/core/distributed/param_and_grad_buffer.py)

With a sharded (distributed) optimizer, ZeRO-1, a bucket is reduce-scattered instead, every rank
updates its shard, and the new parameters are all-gathered: the two halves of an all-reduce, with
the optimizer step between them. ZeRO-3 keeps the parameters sharded too: they are gathered before
each layer's forward and again before its backward (arXiv:1910.02054, sections 5 and 7).

    FSDP          a layer is one unit; of several copies (HSDP) what a reduce-scatter leaves is
                  all-reduced between them, on a lane of its own; weights that are kept whole are
                  not gathered again
    DeepSpeed     stages 0 to 2 all-reduce whole gradients in buckets of 500 million elements: 0
                  behind the backward, 1 and 2 during it; 1 and 2 gather all weights in the end

Sources of these two: training.sharding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..kinds import LayerKind
from ..model import Model
from ..parameters import layer_parameters, on_one_rank
from ..split import Split
from .cost import least_seconds

MIXING = ("attention", "indexer", "linear_attention", "mamba")
"""Kinds of parameters of a layer's mixers."""

OUT = ("o_proj", "out_proj", "down_proj")
"""Weights by which mixers and feed-forwards hand back."""

MIB = 2**20
"""Bytes of a mebibyte."""

DDP_CAPS = (1 * MIB, 25 * MIB)
"""Bytes of PyTorch DDP's first bucket, and of the others."""


GRADIENT_BYTES, PARAMETER_BYTES = 4, 2
"""Bytes of a gradient and of a parameter as they are sent."""


def buckets(sizes: Sequence[int], caps: Sequence[int]) -> list[list[int]]:
    """The gradients of each bucket, by index in ``sizes``; the last cap applies to all further
    buckets.

    Sizes and caps have the same unit, bytes or parameters; gradients are in the order in which they
    become ready.

    >>> buckets([6, 6, 6, 6, 6], caps=[5, 10])
    [[0], [1, 2], [3, 4]]
    """
    gradients: list[list[int]] = []
    filled = cap = 0
    for place, size in enumerate(sizes):
        if filled >= cap:
            cap, filled = caps[min(len(gradients), len(caps) - 1)], 0
            gradients.append([])
        gradients[-1].append(place)
        filled += size
    return gradients


def megatron_bucket_parameters(d: int) -> int:
    """The number of parameters at which Megatron closes a bucket, for a group of d ranks.

    Larger groups get larger buckets, so that latency does not dominate.
    """
    return max(40_000_000, 1_000_000 * d)


def layer_tensors(h: int) -> tuple[int, ...]:
    """Parameters of each tensor of a GPT layer of width h, in the order in which gradients become
    ready.

    Matrices and biases of the MLP, its norm, matrices and biases of attention, its norm: 12 h^2 +
    13 h in all.

    >>> layer_tensors(2), sum(layer_tensors(2)) == 12 * 2**2 + 13 * 2
    ((18, 24, 4, 6, 18, 4), True)
    """
    return (4 * h * h + h, 4 * h * h + 4 * h, 2 * h, h * h + h, 3 * h * h + 3 * h, 2 * h)


def model_tensors(model: Model, split: Split, kind: LayerKind) -> tuple[int, ...]:
    """Parameters of each tensor of a model's layer on one rank, in the order in which gradients
    become ready, as Megatron fuses its matrices.

    The order is: matrix out of the MLP, matrix into it, the same for a shared expert, the router, a
    norm, matrix out of attention, matrices into it (several for MLA), a norm. Experts are left out:
    edp reduces their gradients.

    >>> from training.models import MODELS
    >>> model_tensors(MODELS["llama3-8b"].model, Split(tp=2), MODELS["llama3-8b"].model.kinds[0])
    (29360128, 58720256, 4096, 8388608, 12582912, 4096)
    """
    held = on_one_rank(layer_parameters(model, kind), split)

    def both(name: str) -> tuple[int, ...]:
        if name not in held:
            return ()
        own = (weight for weight in kind.weights(model.hidden) if weight.kind == name)
        outs = (weight for weight in own if weight.name.removesuffix(".bias") in OUT)
        out = sum(weight.elements // (split.tp if weight.is_cut else 1) for weight in outs)
        return (out, held[name] - out)

    norms = held.get("norms", 0)
    around = (held.get("router", 0), held.get("others", 0), norms // 2)
    mixed = tuple(size for name in MIXING for size in both(name))
    sizes = (*both("mlp"), *both("shared_expert"), *around, *mixed, norms - norms // 2)
    return tuple(size for size in sizes if size)


# -- the timeline --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Work of a lane, after the tasks with the indices ``after`` in the same list."""

    lane: (
        str  # "compute", "network", "copies" between them; a lane does one task at a time, in order
    )
    what: str  # "forward", "backward", "optimizer", or a collective of training.collectives.cost
    number: int  # index of the layer or bucket, from 0
    seconds: float
    after: tuple[int, ...] = ()
    size: float = 0.0  # bytes of the whole buffer, of a collective


@dataclass(frozen=True)
class Event:
    """A task with its start and end, in seconds."""

    task: Task
    start: float
    end: float


def timed(tasks: Sequence[Task]) -> list[Event]:
    """The times of tasks: each starts once its lane is free and the tasks that it waits for are
    done.

    >>> both = [Task("compute", "backward", 0, 2.0), Task("network", "all_reduce", 0, 1.0, (0,))]
    >>> [(event.start, event.end) for event in timed(both)]
    [(0.0, 2.0), (2.0, 3.0)]
    """
    free: dict[str, float] = {}
    events: list[Event] = []
    for task in tasks:
        start = max([free.get(task.lane, 0.0), *(events[at].end for at in task.after)])
        events.append(Event(task, start, start + task.seconds))
        free[task.lane] = events[-1].end
    return events


def exposed_seconds(events: Sequence[Event]) -> float:
    """Seconds that the step takes beyond its computation: communication that no computation hides.

    Exactly 0 if no task waits for communication.
    """
    end = waits = 0.0
    for event in events:
        if event.task.lane == "compute":
            waits += event.start - end
            end = event.end
    return waits + (max((event.end for event in events), default=0.0) - end)


@dataclass(frozen=True)
class BucketModel:
    """The layers of a rank, all equal, and its data parallel group."""

    layers: int
    tensors: tuple[int, ...]  # parameters per tensor of a layer, in gradient order
    d: int  # ranks of the data parallel group
    backward_seconds: float  # of one layer; forward takes half of it
    bytes_per_second: float  # of one rank, one way
    weight: int = PARAMETER_BYTES  # of a parameter as it is gathered
    gradient: int = GRADIENT_BYTES  # of a gradient as it is reduced
    keeps_whole: bool = False  # whether FSDP's weights stay whole from forward to backward
    stage: int = 2  # of DeepSpeed's ZeRO
    copies: int = 1  # of what FSDP cuts
    between: float = 0.0  # bytes per second between copies

    @property
    def layer_parameters(self) -> int:
        return sum(self.tensors)

    @property
    def gradients(self) -> tuple[int, ...]:
        """Parameters of all tensors of all layers, the last layer first."""
        return self.tensors * self.layers

    def task(self, op: str, number: int, after: tuple[int, ...], size: float) -> Task:
        """A collective on a buffer of ``size`` bytes, at link speed."""
        seconds = least_seconds(op, self.d, size, self.bytes_per_second)
        return Task("network", op, number, seconds, after, size)


def gradient_buckets(model: BucketModel, scheme: str) -> list[list[int]]:
    """The buckets of all layers' gradients, last layer first: places among all tensors.

    ``scheme``: "ddp"; "megatron" and "sharded" with Megatron's buckets; "one" for one bucket.

    >>> small = BucketModel(2, layer_tensors(256), d=4, backward_seconds=1e-3, bytes_per_second=1e9)
    >>> gradient_buckets(small, "ddp")
    [[0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]]
    """
    sizes = model.gradients
    if scheme == "ddp":
        return buckets([size * model.gradient for size in sizes], DDP_CAPS)
    cap = sum(sizes) + 1 if scheme == "one" else megatron_bucket_parameters(model.d)
    return buckets(sizes, [cap])


def all_reduce_tasks(model: BucketModel, scheme: str, op: str = "all_reduce") -> list[Task]:
    """DDP: the backward pass of every tensor, with a reduction after the last tensor of each
    bucket."""
    sizes = model.gradients
    tasks: list[Task] = []
    for number, bucket in enumerate(gradient_buckets(model, scheme)):
        for place in bucket:
            layer = model.layers - 1 - place // len(model.tensors)
            share = sizes[place] / model.layer_parameters
            tasks.append(Task("compute", "backward", layer, share * model.backward_seconds))
        size = sum(sizes[place] for place in bucket) * model.gradient
        tasks.append(model.task(op, number, (len(tasks) - 1,), size))
    return tasks


def sharded_tasks(model: BucketModel) -> list[Task]:
    """ZeRO-1: reduce-scatters during backward, the optimizer step on a shard, then all-gathers.

    The all-gathers overlap the next forward pass: a layer waits only for its own parameters.

    >>> model = BucketModel(2, layer_tensors(1024), 8, 1e-3, bytes_per_second=1e11)
    >>> [task.what for task in sharded_tasks(model) if task.lane == "network"]
    ['reduce_scatter', 'all_gather']
    """
    tasks = all_reduce_tasks(model, "sharded", "reduce_scatter")
    optimizer = len(tasks)
    # The optimizer step is bound by memory bandwidth, which is not modelled: it takes no time.
    waits = tuple(at for at, task in enumerate(tasks) if task.lane == "network")
    tasks.append(Task("compute", "optimizer", 0, 0.0, waits))
    gathers = list(enumerate(gradient_buckets(model, "sharded")))[::-1]  # first layers come first
    for number, bucket in gathers:
        size = sum(model.gradients[place] for place in bucket) * model.weight
        tasks.append(model.task("all_gather", number, (optimizer,), size))
    for layer in range(model.layers):
        first = (model.layers - 1 - layer) * len(model.tensors)
        last = first + len(model.tensors) - 1
        after = tuple(
            at
            for at, (_, bucket) in enumerate(gathers, start=optimizer + 1)
            if bucket[0] <= last and bucket[-1] >= first
        )
        tasks.append(Task("compute", "forward", layer, model.backward_seconds / 2, after))
    return tasks


def zero3_tasks(model: BucketModel) -> list[Task]:
    """ZeRO-3 and FSDP: all-gathers of each layer's parameters for forward and, unless they are kept
    whole, for backward; reduce-scatters of gradients, and between copies all-reduces of what these
    leave.

    A layer is gathered while the layer before it computes.

    >>> model = BucketModel(3, layer_tensors(64), 4, 1e-3, bytes_per_second=1e9)
    >>> whats = [task.what for task in zero3_tasks(model)]
    >>> whats.count("all_gather"), whats.count("reduce_scatter")
    (6, 3)
    >>> kept = zero3_tasks(replace(model, keeps_whole=True, copies=2, between=1e9))
    >>> [sum(task.what == what for task in kept) for what in ("all_gather", "all_reduce")]
    [3, 3]
    """
    tasks: list[Task] = []
    computed: list[int] = []
    size = model.layer_parameters * model.weight

    def reduce(layer: int) -> None:
        tasks.extend(_reduced(model, layer, computed[-1], len(tasks)))

    passes = [("forward", layer, 0.5) for layer in range(model.layers)]
    passes += [("backward", layer, 1.0) for layer in reversed(range(model.layers))]
    for what, layer, share in passes:
        ahead = tuple(computed[-2:-1])  # memory for two layers at a time
        after: tuple[int, ...] = (len(tasks),)
        if what == "forward" or not model.keeps_whole:
            tasks.append(model.task("all_gather", layer, ahead, size))
        else:
            after = ()
        # The last reduce-scatter comes after this all-gather, which the next layer needs.
        if what == "backward" and layer < model.layers - 1:
            reduce(layer + 1)
        computed.append(len(tasks))
        tasks.append(Task("compute", what, layer, share * model.backward_seconds, after))
    reduce(0)
    return tasks


def _reduced(model: BucketModel, layer: int, computed: int, at: int) -> Iterator[Task]:
    """The reduction of a layer's gradients, behind its backward; at: the place of the first."""
    gradients = model.layer_parameters * model.gradient
    yield model.task("reduce_scatter", layer, (computed,), gradients)
    if model.copies > 1:
        part = gradients / model.d
        seconds = least_seconds("all_reduce", model.copies, part, model.between)
        yield Task("copies", "all_reduce", layer, seconds, (at,), part)


BUCKET_OF_ZERO = 500_000_000
"""Elements of a bucket of DeepSpeed (reduce_bucket_size)."""


def deepspeed_tasks(model: BucketModel) -> list[Task]:
    """DeepSpeed's stages 0 to 2: whole gradients are all-reduced; weights gathered in the end.

    >>> model = BucketModel(4, layer_tensors(4096), 8, 1e-3, bytes_per_second=1e11)
    >>> [task.size / 1e9 for task in deepspeed_tasks(model) if task.lane == "network"]
    [1.87949056, 1.34258688, 1.61103872]
    """
    tasks: list[Task] = []
    reduced: list[int] = []
    filled = 0

    def reduce() -> None:
        nonlocal filled
        task = model.task("all_reduce", len(reduced), (), filled * model.gradient)
        behind = (len(tasks) - 1,) if model.stage else ()
        tasks.append(replace(task, after=behind))
        reduced.append(len(tasks) - 1)
        filled = 0

    sizes = model.gradients
    for place, size in enumerate(sizes):
        if model.stage and filled and filled + size > BUCKET_OF_ZERO:
            reduce()
        layer = model.layers - 1 - place // len(model.tensors)
        seconds = size / model.layer_parameters * model.backward_seconds
        tasks.append(Task("compute", "backward", layer, seconds))
        filled += size
    last = len(tasks) - 1
    if model.stage:
        reduce()
    else:
        tasks += _joined(model, sizes[::-1], last)
        return tasks
    # The optimizer step is bound by memory bandwidth, which is not modelled: it takes no time.
    tasks.append(Task("compute", "optimizer", 0, 0.0, tuple(reduced)))
    size = sum(sizes) * model.weight
    return [*tasks, model.task("all_gather", 0, (len(tasks) - 1,), size)]


def _joined(model: BucketModel, sizes: Sequence[int], last: int) -> Iterator[Task]:
    """Stage 0's all-reduces behind the backward, the first layer first, each of more than a bucket
    but the last."""
    filled = number = 0
    for place, size in enumerate(sizes):
        filled += size
        if filled > BUCKET_OF_ZERO or place == len(sizes) - 1:
            yield model.task("all_reduce", number, (last,), filled * model.gradient)
            filled, number = 0, number + 1


SCHEMES: dict[str, Callable[[BucketModel], list[Task]]] = {
    **{name: partial(all_reduce_tasks, scheme=name) for name in ("ddp", "megatron", "one")},
    "sharded": sharded_tasks,
    "zero3": zero3_tasks,
    "fsdp": zero3_tasks,
    "deepspeed": deepspeed_tasks,
}
"""The tasks of a step by how it communicates gradients and, if sharded, weights."""
