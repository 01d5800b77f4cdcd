"""Seconds of every way to train on a layout at once, and a bound from below on its memory.

Arrays have the axes of `TimedLayout`: dealings, micro-batches, recomputations. Seconds are those of
`training.estimate`, but where chunks of states fill the GPU; bytes leave out what a rank holds for
a moment only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple, TypeVar, cast

import numpy as np

from ..estimate import Request
from ..estimate.constants import FAMILIES, constants_of
from ..estimate.memory import room_of
from ..estimate.seconds import (
    Constants,
    head_seconds,
    idle_share,
    launch_seconds,
    layer_seconds,
    offload_seconds,
    optimizer_seconds,
    replica_seconds,
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
    rank_parameters,
    replicas_of,
)
from ..memory.host import leaves
from ..memory.per_stage import layer_bytes, model_states, waiting_chunk
from ..pipeline.figures import peaks
from ..pipeline.schedules import SCHEDULES
from ..pipeline.spec import ScheduleSpec
from ..recipe import PRECISIONS, Training
from ..recompute import is_beside_exchange
from ..split import Dealing, Split
from .space import Dealt, SearchJob, dealings, micro_batches, recomputations

Kept = TypeVar("Kept")

RequestOf = Callable[[int], Request]
"""A layout's request with a micro-batch of so many samples; only what is not kept needs one."""

MANY = 1 << 20
"""Micro-batches with which every schedule holds as many as it ever does."""


def software_for(training: Training) -> str:
    """Whose constants: candidates differ in nothing that would tell whose software it is.

    >>> software_for(Training(zero=1)), software_for(Training(zero=3))
    ('megatron', 'fsdp')
    """
    return "fsdp" if training.is_eager else "megatron"


@dataclass(frozen=True)
class Stages:
    """The pipelines of one size: layers and micro-batches in flight of each rank, by dealing."""

    dealings: tuple[Dealt, ...]
    layers: np.ndarray  # dealings, ranks, (without experts, with)
    both: tuple[np.ndarray, np.ndarray]  # the same apart, with two axes more
    chunks: np.ndarray  # dealings
    is_last: np.ndarray  # ranks, as those of ``both``
    held: np.ndarray  # dealings, ranks: micro-batches at most
    idle: np.ndarray  # dealings
    least: np.ndarray  # dealings: micro-batches that the schedule needs


@dataclass(frozen=True)
class TimedLayout:
    """A layout: what is tried on it, with seconds and bytes of each."""

    split: Split
    stages: Stages
    micro_batches: list[int]
    seconds: np.ndarray  # inf where the schedule refuses
    bytes: np.ndarray
    training: Training  # but what is tried


class _Sized(NamedTuple):
    """A layout, and by micro-batch size what is worked out for one micro-batch of it."""

    request: Request
    request_of: RequestOf
    sizes: list[int]
    layers: np.ndarray  # as Timer._layers has them
    ends: np.ndarray  # as Timer._ends
    m: np.ndarray  # micro-batches of a step
    replicas: Replicas
    states: np.ndarray  # dealings, ranks: bytes


class Timer:
    """Times the layouts of one job; keeps what several of them share, by what it depends on."""

    def __init__(self, job: SearchJob) -> None:
        self.job = job
        self.constants: Constants = constants_of(FAMILIES[job.cluster], software_for(job.training))
        self._kept: dict[tuple[object, ...], object] = {}

    def _once(self, *key: object, make: Callable[[], Kept]) -> Kept:
        if key not in self._kept:
            self._kept[key] = make()
        return cast("Kept", self._kept[key])

    def timed(self, splits: Sequence[Split]) -> list[TimedLayout]:
        """Each layout in every way that is tried; those of one pp at once."""
        alike: dict[int, list[Split]] = {}
        for split in splits:
            alike.setdefault(split.pp, []).append(split)
        timed = {
            layout.split: layout
            for pp, those in alike.items()
            for layout in self._together(those, _stages(self.job, pp))
        }
        return [timed[split] for split in splits]

    def _together(self, splits: Sequence[Split], stages: Stages) -> Iterator[TimedLayout]:
        """Layouts of the same stages, all their micro-batches along one axis."""
        every = [self._sized(split, stages) for split in splits]
        m = np.concatenate([sized.m for sized in every])
        size = _bytes(every, stages, m)
        busy, seconds = self._seconds(every, stages, m)
        end = 0
        for split, sized in zip(splits, every):
            own = slice(end, end := end + len(sized.sizes))
            after = self._after(sized, m[own], busy[:, own], size[:, own])
            taken = np.where(
                (m[own] < stages.least[:, None])[..., None], np.inf, seconds[:, own] + after
            )
            if self.job.training.ep_overlap:
                taken = np.where(_can_overlap(self.job, split, stages)[:, None], taken, np.inf)
            yield TimedLayout(split, stages, sized.sizes, taken, size[:, own], self.job.training)

    def _sized(self, split: Split, stages: Stages) -> _Sized:
        sizes = micro_batches(self.job, split)
        request = self.job.request(split, self._training(split, stages, sizes[0]))
        request_of = cache(lambda size: request.trained(self._training(split, stages, size)))
        held, most = self._once(
            *("held", split.pp, split.tp, split.ep, split.etp),
            make=lambda: _held(request, stages),
        )
        return _Sized(
            *(request, request_of, sizes),
            layers=self._layers(request, sizes, request_of),
            ends=self._ends(request, sizes, request_of),
            m=self.job.global_batch / split.dp / np.array(sizes),
            replicas=replicas_of(request, *(_number(most_of[:, None, None]) for most_of in most)),
            states=_states(request, held),
        )

    def _training(self, split: Split, stages: Stages, micro_batch: int) -> Training:
        schedule = stages.dealings[0].schedule
        return self._once(
            *("training", schedule, micro_batch, split.dp),
            make=lambda: replace(
                self.job.training,
                schedule=schedule,
                micro_batch=micro_batch,
                micro_batches=self.job.global_batch // (micro_batch * split.dp),
            ),
        )

    def _layers(self, request: Request, sizes: list[int], request_of: RequestOf) -> np.ndarray:
        """Layers without experts and with them, for a micro-batch of each size."""
        split, stride = request.split, request.stride
        dense = (split.tp, split.cp, stride("tp"), stride("cp"), request.training.hides_exchange)
        experts = (split.ep, split.etp, stride("ep"), stride("etp"))

        def layer(size: int, moe: bool) -> np.ndarray:
            key = (size, *dense, *experts) if moe else (size, *dense)
            return self._once(*key, make=lambda: self._layer(request_of(size), moe=moe))

        layers = np.zeros((len(sizes), 2, 2, len(recomputations(self.job))))
        for at, size in enumerate(sizes):
            layers[at, 0] = layer(size, False)
            if request.model.moe_layers:
                layers[at, 1] = layer(size, True)
        return layers

    def _layer(self, request: Request, *, moe: bool) -> np.ndarray:
        """Seconds and bytes kept of one layer and one micro-batch, by recomputation."""
        names = recomputations(self.job)
        seconds = layer_seconds(request, layer_work(request, moe=moe), self.constants)
        how = (request.model, request.split, request.training, moe)
        return np.array(
            [
                [seconds(name).total for name in names],
                [layer_bytes(*how, name) for name in names],
            ]
        )

    def _ends(self, request: Request, sizes: list[int], request_of: RequestOf) -> np.ndarray:
        """Seconds of the output layer, and of a chunk's sends, of a micro-batch of each size."""
        split = request.split
        sends = (split.tp, split.cp, split.pp > 1, request.stride("pp") >= self.job.domain)

        def seconds(size: int) -> tuple[float, float]:
            how = request_of(size)
            ends = ends_of(how)
            return head_seconds(how, ends, self.constants), send_seconds(how, ends, self.constants)

        kept = (self._once("ends", size, *sends, make=partial(seconds, size)) for size in sizes)
        return np.array(list(kept))

    def _seconds(
        self, every: Sequence[_Sized], stages: Stages, m: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of the slowest rank's micro-batches, and with the bubble."""
        # Axes: dealings, ranks, micro-batches, recomputations.
        layers = np.concatenate([sized.layers[:, :, 0] for sized in every])
        ends = np.concatenate([sized.ends for sized in every])
        launch = np.array([launch_seconds(sized.request, self.constants) for sized in every])
        launch = np.repeat(launch, [len(sized.sizes) for sized in every], axis=0)
        each = stage_seconds(
            *stages.both,
            stages.is_last,
            dense=_number(layers[:, 0]),
            moe=_number(layers[:, 1]),
            head=_number(ends[:, 0, None]),
            send=_number((stages.chunks[:, None] * ends[:, 1])[:, None, :, None]),
            launch=(_number(launch[:, 0, None]), _number(launch[:, 1, None])),
        )
        slowest = each.max(axis=1)
        busy = m[:, None] * slowest
        return busy, busy + (each.sum(axis=1) - slowest) * stages.idle[:, None, None]

    def _after(
        self, sized: _Sized, m: np.ndarray, busy: np.ndarray, size: np.ndarray
    ) -> np.ndarray:
        """Of the replicas' messages what nothing hides, and of the optimizer."""
        request, replicas, c = sized.request, sized.replicas, self.constants
        exposed = replica_seconds(request, replicas, c, _number(m[:, None]), _number(busy))
        if self.job.training.offload == "none":
            return np.asarray(exposed + optimizer_seconds(request, replicas, c))
        return exposed + self._offloaded(map(sized.request_of, sized.sizes), replicas, busy, size)

    def _offloaded(
        self, requests: Iterable[Request], replicas: Replicas, busy: np.ndarray, size: np.ndarray
    ) -> np.ndarray:
        """The optimizer's seconds with states in host memory, and what these add to the step."""
        after = np.empty(busy.shape)
        for at, plain in enumerate(requests):
            for again, name in enumerate(recomputations(self.job)):
                request = replace(plain, training=replace(plain.training, recompute=name))
                shares = _on_host(
                    request, np.asarray(replicas.states), size[:, at, again, None, None]
                )
                seconds = optimizer_seconds(request, replicas, self.constants, shares[0])
                slot = _number(busy[:, at, again, None, None])
                seconds += offload_seconds(request, replicas, slot, *shares)
                after[:, at, again] = np.asarray(seconds)[:, 0, 0]
        return after


def _can_overlap(job: SearchJob, split: Split, stages: Stages) -> np.ndarray:
    """Whether experts' exchange can hide, by dealing and recomputation, as `require` has it."""
    chunks = (stages.chunks > 1) | (split.pp == 1)
    again = np.array([is_beside_exchange(name) for name in recomputations(job)])
    return (chunks[:, None] & again) & (split.ep > 1)


def _states(request: Request, held: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Model states of each rank on its GPU."""
    training = request.training
    away = leaves(training.offload, training.zero)
    states = model_states((_number(held[0]), _number(held[1])), request.split, training)
    return np.asarray(sum(size for name, size in states.items() if name not in away))


def _bytes(every: Sequence[_Sized], stages: Stages, m: np.ndarray) -> np.ndarray:
    """Model states and kept activations of the fullest rank."""
    states = np.stack([sized.states for sized in every], axis=-1)
    states = np.repeat(states, [len(sized.sizes) for sized in every], axis=-1)
    kept = np.concatenate([sized.layers[:, :, 1] for sized in every])
    more = np.asarray(waiting_chunk(every[0].request.training, _number(stages.chunks)))
    in_flight = np.minimum((stages.held + more.reshape(-1, 1))[..., None], m)
    plain, routed = stages.both
    activations = in_flight[..., None] * (plain * kept[:, 0] + routed * kept[:, 1])
    fullest: np.ndarray = (states[..., None] + activations).max(axis=1)
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


def _held(request: Request, stages: Stages) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Parameters, dense and of experts: of each rank, by dealing, and of the one with most."""
    every = rank_parameters(request, stages.layers)
    return every, most_parameters(*every)


def _stages(job: SearchJob, pp: int) -> Stages:
    ways = dealings(job, pp)
    layers, held, least = [], [], list[float]()
    for dealt in ways:
        placement = SCHEDULES[dealt.schedule].placement
        dealing = Dealing(pp, dealt.vpp, placement, dealt.account, dealt.spread)
        layers.append(layers_of(job.model, dealing))
        group = job.training.group_size if SCHEDULES[dealt.schedule].grouped else None
        held.append(peaks(ScheduleSpec(dealt.schedule, pp, MANY * pp, dealt.vpp, group)))
        least.append(SCHEDULES[dealt.schedule].least_m * pp if group is None else group)
        if group is not None and group < pp:  # Megatron's groups are no smaller
            least[-1] = math.inf
    every = np.array(layers)
    return Stages(
        dealings=ways,
        layers=every,
        both=(every[..., 0, None, None], every[..., 1, None, None]),
        chunks=np.array([float(dealt.vpp) for dealt in ways]),
        is_last=(np.arange(pp) == pp - 1)[:, None, None],
        held=np.array(held),
        idle=np.array([idle_share(dealt.schedule, pp, dealt.vpp) for dealt in ways]),
        least=np.array(least),
    )
