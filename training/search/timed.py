"""Seconds of every way to train on a layout at once, and a bound from below on its memory.

Arrays have the axes of `Layout`: dealings, micro-batches, recomputations. Seconds are those of
`training.estimate` to the last digit, but where chunks of states fill the GPU; bytes leave out what
a rank holds for a moment only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..estimate import Request
from ..estimate.constants import FAMILIES, constants_of
from ..estimate.memory import room_of
from ..estimate.seconds import (
    Constants,
    exposed_seconds,
    head_seconds,
    idle_share,
    launch_seconds,
    layer_seconds,
    offload_seconds,
    optimizer_seconds,
    send_seconds,
    stage_seconds,
)
from ..estimate.work import (
    Number,
    Replicas,
    ends_of,
    layer_work,
    layers_of,
    most_parameters,
    replicas_of,
    stage_parameters,
)
from ..memory.activations import WIDE
from ..memory.host import leaves
from ..memory.per_stage import PRECISIONS, Training, layer_bytes
from ..pipeline.closed import closed_form
from ..pipeline.in_flight import placement_of
from ..pipeline.schedules import SCHEDULES
from ..split import Split
from ..traffic.demands import OVERLAPPING
from .space import Dealt, SearchJob, dealings, micro_batches, recomputations

MANY = 1 << 20
"""Micro-batches with which every schedule holds as many as it ever does."""


def software_of(training: Training) -> str:
    """Whose constants: candidates differ in nothing that would tell whose software it is.

    >>> software_of(Training(zero=1)), software_of(Training(zero=3))
    ('megatron', 'fsdp')
    """
    return "fsdp" if training.zero >= 2 else "megatron"


@dataclass(frozen=True)
class Stages:
    """The pipelines of one size: layers and micro-batches in flight of each rank, by dealing."""

    dealings: tuple[Dealt, ...]
    layers: np.ndarray  # dealings, ranks, (without experts, with)
    held: np.ndarray  # dealings, ranks: micro-batches at most
    idle: np.ndarray  # dealings
    least: np.ndarray  # dealings: micro-batches that the schedule needs


@dataclass(frozen=True)
class Layer:
    """One layer and what goes with a micro-batch: seconds and bytes by recomputation."""

    seconds: np.ndarray  # (without experts, with), recomputations
    kept: np.ndarray  # the same, bytes
    head: float


@dataclass(frozen=True)
class TimedLayout:
    """A layout: what is tried on it, with seconds and bytes of each."""

    split: Split
    stages: Stages
    micro_batches: list[int]
    seconds: np.ndarray  # inf where the schedule refuses
    bytes: np.ndarray


class Timer:
    """Times the layouts of one job; keeps what several of them share."""

    def __init__(self, job: SearchJob) -> None:
        self.job = job
        self.constants: Constants = constants_of(FAMILIES[job.cluster], software_of(job.training))
        self._stages: dict[int, Stages] = {}
        self._layers: dict[tuple[int, ...], Layer] = {}

    def stages(self, pp: int) -> Stages:
        """Every way to deal the layers to pp ranks."""
        if pp not in self._stages:
            self._stages[pp] = _stages(self.job, pp)
        return self._stages[pp]

    def _layer(self, request: Request) -> Layer:
        split, training = request.split, request.training
        where = (
            request.stride("tp"),
            request.stride("cp"),
            request.stride("etp"),
            request.stride("ep"),
        )
        sizes = (split.tp, split.cp, split.etp, split.ep, training.micro_batch)
        key = (*sizes, *where, training.schedule in OVERLAPPING)
        if key not in self._layers:
            self._layers[key] = self._worked_out(request)
        return self._layers[key]

    def _worked_out(self, request: Request) -> Layer:
        model, names = request.model, recomputations(self.job)
        seconds, kept = np.zeros((2, len(names))), np.zeros((2, len(names)))
        for moe in (False, True):
            if moe and not model.moe_layers:
                continue
            work = layer_work(request, moe=moe)
            for at, name in enumerate(names):
                seconds[int(moe), at] = layer_seconds(request, work, self.constants, name).total
                kept[int(moe), at] = layer_bytes(model, request.split, request.training, moe, name)
        return Layer(seconds, kept, head_seconds(request, ends_of(request), self.constants))

    def timed(self, split: Split) -> TimedLayout:
        """One layout, in every way that is tried."""
        job, stages = self.job, self.stages(split.pp)
        sizes = micro_batches(job, split)
        training = replace(job.training, schedule=stages.dealings[0].schedule)
        requests = [
            job.request(split, replace(training, micro_batch=b, micro_batches=m))
            for b, m in ((b, job.global_batch // (b * split.dp)) for b in sizes)
        ]
        layers = [self._layer(one) for one in requests]
        m = np.array([float(one.micro_batches) for one in requests])
        size = self._bytes(requests[0], layers, stages, m)
        seconds = self._seconds(requests, layers, stages, m, size)
        seconds[m < stages.least[:, None]] = np.inf
        return TimedLayout(split, stages, sizes, seconds, size)

    def _seconds(
        self,
        requests: Sequence[Request],
        layers: Sequence[Layer],
        stages: Stages,
        m: np.ndarray,
        size: np.ndarray,
    ) -> np.ndarray:
        request, c = requests[0], self.constants
        # Axes: dealings, ranks, micro-batches, recomputations.
        each = np.array([one.seconds for one in layers])
        send = np.array([send_seconds(one, ends_of(one), c) for one in requests])
        chunks = np.array([float(one.vpp) for one in stages.dealings])
        ranks = np.arange(request.split.pp)[None, :, None, None]
        slots = stage_seconds(
            stages.layers[..., 0, None, None],
            stages.layers[..., 1, None, None],
            ranks == request.split.pp - 1,
            dense=_number(each[:, 0]),
            moe=_number(each[:, 1]),
            head=_number(np.array([one.head for one in layers])[:, None]),
            send=(chunks[:, None] * send)[:, None, :, None],
            launch=launch_seconds(request, c),
        )
        slowest = slots.max(axis=1)
        busy = m[:, None] * slowest
        most = most_parameters(*stage_parameters(request, stages.layers))
        replicas = replicas_of(request, *(_number(one[:, None]) for one in most))
        after = self._after(requests, replicas, busy, size)
        shown = [exposed_seconds(one, replicas, c, busy[:, at]) for at, one in enumerate(requests)]
        exposed = np.stack([np.broadcast_to(one, busy[:, 0].shape) for one in shown], axis=1)
        bubble = (slots.sum(axis=1) - slowest) * stages.idle[:, None, None]
        seconds: np.ndarray = busy + bubble + exposed + after
        return seconds

    def _after(
        self, requests: Sequence[Request], replicas: Replicas, busy: np.ndarray, size: np.ndarray
    ) -> np.ndarray:
        """The optimizer's seconds, and what states in host memory add to the step."""
        if self.job.training.offload == "none":
            return np.asarray(optimizer_seconds(requests[0], replicas, self.constants))[..., None]
        after = np.empty(busy.shape)
        for at, one in enumerate(requests):
            for again, name in enumerate(recomputations(self.job)):
                request = replace(one, training=replace(one.training, recompute=name))
                shares = _on_host(request, np.asarray(replicas.states), size[:, at, again, None])
                seconds = optimizer_seconds(request, replicas, self.constants, shares[0])
                slot = _number(busy[:, at, again, None])
                seconds += offload_seconds(request, replicas, slot, *shares)
                after[:, at, again] = np.asarray(seconds)[:, 0]
        return after

    def _bytes(
        self, request: Request, layers: Sequence[Layer], stages: Stages, m: np.ndarray
    ) -> np.ndarray:
        """Model states and kept activations of the fullest rank."""
        split, training = request.split, request.training
        precision, zero = PRECISIONS[training.precision], training.zero
        shared = training.ranks_sharing(split)
        away = leaves(training.offload, zero)
        total = np.zeros(stages.layers.shape[:2])
        for parameters, ranks in zip(stage_parameters(request, stages.layers), shared):
            states = {"weights": (precision.weight, 3), "gradients": (precision.gradient, 2)}
            states["optimizer"] = (precision.optimizer, 1)
            here = [states[name] for name in states if name not in away]
            each = sum(size / (ranks if zero >= at else 1) for size, at in here)
            if training.products not in WIDE and precision.weight > 1 and zero < 3:
                each += 2
            total += parameters * each
        kept = np.array([layer.kept for layer in layers])
        held = np.minimum(stages.held[..., None], m)
        plain, routed = (stages.layers[..., at, None, None] for at in (0, 1))
        activations = held[..., None] * (plain * kept[:, 0] + routed * kept[:, 1])
        fullest: np.ndarray = (total[..., None, None] + activations).max(axis=1)
        return fullest


def _on_host(request: Request, parameters: np.ndarray, size: np.ndarray) -> tuple[Number, Number]:
    """The shares of the optimizer's state and of the weights in host memory: of chunks, what goes
    beyond the room that all else leaves on the GPU."""
    offload, precision = request.training.offload, PRECISIONS[request.training.precision]
    if offload != "chunks":
        return 1.0, float(offload == "parameters")
    above = (
        parameters * (precision.weight + precision.optimizer) + size - room_of(request.bytes_of_gpu)
    )
    optimizer = np.clip(above / (parameters * precision.optimizer), 0.0, 1.0)
    weights = np.clip(above - parameters * precision.optimizer, 0.0, parameters * precision.weight)
    return _number(optimizer), _number(weights / (parameters * precision.weight))


def _number(values: np.ndarray) -> Number:
    """An array for the formulas of one number."""
    return cast("Number", values)


def _stages(job: SearchJob, pp: int) -> Stages:
    ways = dealings(job, pp)
    layers, held = [], []
    for one in ways:
        sizes = {"vpp": one.vpp, "account": one.account, "spread": one.spread}
        split = Split(pp=pp, **sizes, placement=placement_of(one.schedule))  # type: ignore[arg-type]
        layers.append(layers_of(job.model, split))
        form = closed_form(one.schedule, pp, MANY * pp, one.vpp)
        held.append(form.peaks if form else [1.0] * pp)
    rules = [SCHEDULES[one.schedule] for one in ways]
    return Stages(
        dealings=ways,
        layers=np.array(layers),
        held=np.array(held),
        idle=np.array([idle_share(one.schedule, pp, one.vpp) for one in ways]),
        least=np.array([rule.least_m * pp for rule in rules]),
    )
