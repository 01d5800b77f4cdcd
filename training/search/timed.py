"""Seconds of every way to train on a layout at once, and a bound from below on its memory.

Arrays have the axes of `Layout`: dealings, micro-batches, recomputations. Seconds are those of
`training.estimate` to the last digit, but where chunks of states fill the GPU; bytes leave out what
a rank holds for a moment only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    layer_parts,
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
from ..pipeline.closed import closed_form, placement_of
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
    """One layer and one micro-batch: seconds and bytes kept, by recomputation."""

    seconds: Sequence[float]
    kept: Sequence[float]


@dataclass(frozen=True)
class MicroBatch:
    """What goes with a micro-batch of one size: its layers without experts and with them, the
    output layer's seconds, and those of a chunk's sends."""

    layers: tuple[Layer, Layer]
    head: float
    send: float


@dataclass(frozen=True)
class HeldParameters:
    """Parameters of each rank, dense and of experts, and of the one that holds most."""

    every: tuple[np.ndarray, np.ndarray]  # dealings, ranks
    most: tuple[np.ndarray, np.ndarray]  # dealings


@dataclass(frozen=True)
class TimedLayout:
    """A layout: what is tried on it, with seconds and bytes of each."""

    split: Split
    stages: Stages
    micro_batches: list[int]
    seconds: np.ndarray  # inf where the schedule refuses
    bytes: np.ndarray


class Timer:
    """Times the layouts of one job; keeps what several of them share, by what it depends on."""

    def __init__(self, job: SearchJob) -> None:
        self.job = job
        self.constants: Constants = constants_of(FAMILIES[job.cluster], software_of(job.training))
        self._none = Layer(*2 * ([0.0] * len(recomputations(job)),))
        self._stages: dict[int, Stages] = {}
        self._layers: dict[tuple[int, ...], Layer] = {}
        self._ends: dict[tuple[int, ...], tuple[float, float]] = {}
        self._held: dict[tuple[int, ...], HeldParameters] = {}
        self._trainings: dict[tuple[str, int, int], Training] = {}

    def stages(self, pp: int) -> Stages:
        """Every way to deal the layers to pp ranks."""
        if pp not in self._stages:
            self._stages[pp] = _stages(self.job, pp)
        return self._stages[pp]

    def timed(self, split: Split) -> TimedLayout:
        """One layout, in every way that is tried."""
        stages = self.stages(split.pp)
        sizes = micro_batches(self.job, split)
        requests = [self._request(split, stages, size) for size in sizes]
        strides = {axis: requests[0].stride(axis) for axis in ("tp", "cp", "etp", "ep", "pp")}
        batches = [self._micro_batch(one, strides) for one in requests]
        m = np.array([float(one.micro_batches) for one in requests])
        held = self._held_by(requests[0], stages)
        kept = np.array([[layer.kept for layer in one.layers] for one in batches])
        size = self._bytes(requests[0], kept, stages, held, m)
        seconds = self._seconds(requests, batches, stages, held, m, size)
        seconds[m < stages.least[:, None]] = np.inf
        return TimedLayout(split, stages, sizes, seconds, size)

    def _request(self, split: Split, stages: Stages, micro_batch: int) -> Request:
        key = (stages.dealings[0].schedule, micro_batch, split.dp)
        if key not in self._trainings:
            self._trainings[key] = replace(
                self.job.training,
                schedule=key[0],
                micro_batch=micro_batch,
                micro_batches=self.job.global_batch // (micro_batch * split.dp),
            )
        return self.job.request(split, self._trainings[key])

    def _micro_batch(self, request: Request, strides: Mapping[str, int]) -> MicroBatch:
        split, training = request.split, request.training
        dense = (training.micro_batch, split.tp, split.cp, strides["tp"], strides["cp"])
        overlaps = training.schedule in OVERLAPPING
        experts = (split.ep, split.etp, strides["ep"], strides["etp"])
        plain = self._layer(request, (*dense, overlaps), moe=False)
        routed = self._none
        if request.model.moe_layers:
            routed = self._layer(request, (*dense, overlaps, *experts), moe=True)
        key = (*dense[:3], split.pp > 1, strides["pp"] >= self.job.domain)
        if key not in self._ends:
            ends = ends_of(request)
            both = (head_seconds, send_seconds)
            head, send = (seconds(request, ends, self.constants) for seconds in both)
            self._ends[key] = head, send
        return MicroBatch((plain, routed), *self._ends[key])

    def _layer(self, request: Request, key: tuple[int, ...], *, moe: bool) -> Layer:
        if key not in self._layers:
            model, names = request.model, recomputations(self.job)
            parts = layer_parts(request, layer_work(request, moe=moe), self.constants)
            self._layers[key] = Layer(
                [layer_seconds(parts, self.constants, name).total for name in names],
                [layer_bytes(model, request.split, request.training, moe, name) for name in names],
            )
        return self._layers[key]

    def _held_by(self, request: Request, stages: Stages) -> HeldParameters:
        split = request.split
        key = (split.pp, split.tp, split.ep, split.etp)
        if key not in self._held:
            every = stage_parameters(request, stages.layers)
            self._held[key] = HeldParameters(every, most_parameters(*every))
        return self._held[key]

    def _seconds(
        self,
        requests: Sequence[Request],
        batches: Sequence[MicroBatch],
        stages: Stages,
        held: HeldParameters,
        m: np.ndarray,
        size: np.ndarray,
    ) -> np.ndarray:
        request, c = requests[0], self.constants
        # Axes: dealings, ranks, micro-batches, recomputations.
        each = np.array([[layer.seconds for layer in one.layers] for one in batches])
        send = np.array([one.send for one in batches])
        chunks = np.array([float(one.vpp) for one in stages.dealings])
        ranks = np.arange(request.split.pp)[None, :, None, None]
        slots = stage_seconds(
            stages.layers[..., 0, None, None],
            stages.layers[..., 1, None, None],
            ranks == request.split.pp - 1,
            dense=_number(each[:, 0]),
            moe=_number(each[:, 1]),
            head=_number(np.array([one.head for one in batches])[:, None]),
            send=(chunks[:, None] * send)[:, None, :, None],
            launch=launch_seconds(request, c),
        )
        slowest = slots.max(axis=1)
        busy = m[:, None] * slowest
        replicas = replicas_of(request, *(_number(one[:, None, None]) for one in held.most))
        after = self._after(requests, replicas, busy, size)
        exposed = exposed_seconds(request, replicas, c, _number(m[:, None]), _number(busy))
        bubble = (slots.sum(axis=1) - slowest) * stages.idle[:, None, None]
        seconds: np.ndarray = busy + bubble + exposed + after
        return seconds

    def _after(
        self, requests: Sequence[Request], replicas: Replicas, busy: np.ndarray, size: np.ndarray
    ) -> np.ndarray:
        """The optimizer's seconds, and what states in host memory add to the step."""
        if self.job.training.offload == "none":
            return np.asarray(optimizer_seconds(requests[0], replicas, self.constants))
        after = np.empty(busy.shape)
        for at, one in enumerate(requests):
            for again, name in enumerate(recomputations(self.job)):
                request = replace(one, training=replace(one.training, recompute=name))
                shares = _on_host(
                    request, np.asarray(replicas.states), size[:, at, again, None, None]
                )
                seconds = optimizer_seconds(request, replicas, self.constants, shares[0])
                slot = _number(busy[:, at, again, None, None])
                seconds += offload_seconds(request, replicas, slot, *shares)
                after[:, at, again] = np.asarray(seconds)[:, 0, 0]
        return after

    def _bytes(
        self,
        request: Request,
        kept: np.ndarray,
        stages: Stages,
        held: HeldParameters,
        m: np.ndarray,
    ) -> np.ndarray:
        """Model states and kept activations of the fullest rank."""
        split, training = request.split, request.training
        precision, zero = PRECISIONS[training.precision], training.zero
        shared = training.ranks_sharing(split)
        away = leaves(training.offload, zero)
        total = np.zeros(stages.layers.shape[:2])
        for parameters, ranks in zip(held.every, shared):
            states = {"weights": (precision.weight, 3), "gradients": (precision.gradient, 2)}
            states["optimizer"] = (precision.optimizer, 1)
            here = [states[name] for name in states if name not in away]
            each = sum(size / (ranks if zero >= at else 1) for size, at in here)
            if training.products not in WIDE and precision.weight > 1 and zero < 3:
                each += 2
            total += parameters * each
        in_flight = np.minimum(stages.held[..., None], m)
        plain, routed = (stages.layers[..., at, None, None] for at in (0, 1))
        activations = in_flight[..., None] * (plain * kept[:, 0] + routed * kept[:, 1])
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
