"""Seconds of every way to train on a layout at once, and a bound from below on its memory.

What a layout costs is collected here in arrays with the axes of `TimedLayout` (dealings,
micro-batches, recomputations), each number worked out once for all layouts that share it;
`training.estimate.seconds.step_of` puts steps together from them as from one layout's. Seconds are
those of `training.estimate`, but where chunks of states fill the GPU; bytes leave out what a rank
holds for a moment only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import mul
from typing import NamedTuple, TypeVar, cast

import numpy as np

from ..estimate import Request
from ..estimate.constants import constants_of
from ..estimate.memory import room_of
from ..estimate.seconds import (
    Constants,
    Costs,
    head_seconds,
    idle_share,
    launch_seconds,
    layer_seconds,
    replica_seconds,
    send_seconds,
    step_of,
)
from ..estimate.work import (
    Number,
    ends_of,
    layer_work,
    layers_of,
    most_parameters,
    rank_parameters,
    replicas_of,
)
from ..kinds import LayerKind
from ..memory.host import leaves
from ..memory.per_stage import layer_bytes, model_states
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
    """The software whose constants apply to all candidates: nothing else identifies it.

    >>> software_for(Training(zero=1)), software_for(Training(zero=3))
    ('megatron', 'fsdp')
    """
    return "fsdp" if training.is_eager else "megatron"


@dataclass(frozen=True)
class Stages:
    """The pipelines of one size, by dealing; axes as those of TimedLayout, of ``layers`` and
    ``held`` with pipeline ranks in front.

    Attributes:
        layers: of each rank, of each of the model's kinds, which are the first axis.
        chunks: of each rank.
        held: micro-batches of which a rank keeps activations at most.
        idle: share of 1F1B's bubble.
        least: micro-batches that the schedule needs.
    """

    dealings: tuple[Dealt, ...]
    layers: np.ndarray
    chunks: np.ndarray
    held: np.ndarray
    idle: np.ndarray
    least: np.ndarray


@dataclass(frozen=True)
class TimedLayout:
    """A layout with all ways to train it that are tried, and the seconds and bytes of each way."""

    split: Split
    stages: Stages
    micro_batches: list[int]
    seconds: np.ndarray  # inf if the schedule is invalid
    bytes: np.ndarray
    training: Training  # without the tried options


class _Sized(NamedTuple):
    """The costs of a layout, by micro-batch size where they depend on it."""

    sizes: list[int]
    layers: np.ndarray  # result of Timer._layers
    ends: np.ndarray  # result of Timer._ends
    launch: tuple[float, ...]
    m: np.ndarray  # micro-batches of a step
    replicas: tuple[Number, ...]  # exposed, gathered, states and held of Costs
    states: np.ndarray  # ranks, dealings: bytes


class Timer:
    """Times the layouts of one job; caches results that several layouts share."""

    def __init__(self, job: SearchJob) -> None:
        self.job = job
        self.constants: Constants = constants_of(job.machine.family, software_for(job.training))
        self._passes = np.array(
            [replace(job.training, recompute=name).weight_passes for name in recomputations(job)]
        )
        self._kept: dict[tuple[object, ...], object] = {}

    def _once(self, *key: object, make: Callable[[], Kept]) -> Kept:
        if key not in self._kept:
            self._kept[key] = make()
        return cast("Kept", self._kept[key])

    def timed(self, splits: Sequence[Split]) -> list[TimedLayout]:
        """Every layout with all ways that are tried; layouts of equal pp are computed together."""
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
        """Times layouts of the same stages together, all micro-batch sizes along one axis."""
        every = [self._sized(split, stages) for split in splits]
        counts = [len(sized.sizes) for sized in every]
        m = np.concatenate([sized.m for sized in every])[:, None]
        size = _bytes(every, stages, m)
        costs = self._costs(every, stages, size)
        times = (_number(m), _number(self._passes), _number(stages.idle))
        step = step_of(self.job, costs, stages.layers, *times, self.constants)
        seconds = np.where(m < stages.least, np.inf, step.seconds)
        end = 0
        for split, sized, count in zip(splits, every, counts):
            own = slice(end, end := end + count)
            taken = seconds[:, own]
            if self.job.training.ep_overlap:
                taken = np.where(_can_overlap(self.job, split, stages), taken, np.inf)
            yield TimedLayout(split, stages, sized.sizes, taken, size[:, own], self.job.training)

    def _sized(self, split: Split, stages: Stages) -> _Sized:
        sizes = micro_batches(self.job, split)
        request = self.job.request(split, self._training(split, stages, sizes[0]))
        request_of = cache(lambda size: request.trained(self._training(split, stages, size)))
        held, most = self._once(
            *("held", split.pp, split.tp, split.ep, split.etp),
            make=lambda: _held(request, stages),
        )
        replicas = replicas_of(request, *map(_number, most))
        return _Sized(
            sizes,
            layers=self._layers(request, sizes, request_of),
            ends=self._ends(request, sizes, request_of),
            launch=launch_seconds(request, self.constants),
            m=self.job.global_batch / split.dp / np.array(sizes),
            replicas=(
                *replica_seconds(request, replicas, self.constants),
                *(replicas.states, replicas.held),
            ),
            states=_states(request, held),
        )

    def _costs(self, every: Sequence[_Sized], stages: Stages, size: np.ndarray) -> Costs:
        """The costs of each layout; axes as in TimedLayout."""
        counts = [len(sized.sizes) for sized in every]
        layers = np.concatenate([sized.layers[:, :, 0] for sized in every])
        ends = np.concatenate([sized.ends for sized in every])[..., None]
        launch = np.repeat(np.array([sized.launch for sized in every]), counts, axis=0)[..., None]
        replicas = np.zeros((4, len(stages.dealings), len(every)))
        for at, sized in enumerate(every):
            for values, value in zip(replicas, sized.replicas):
                values[:, at] = value
        exposed, gathered, states, held = np.repeat(replicas, counts, axis=2)[..., None]
        return Costs(
            kinds=[_number(kind) for kind in layers.swapaxes(0, 1)],
            head=_number(ends[:, 0]),
            send=_number(stages.chunks * ends[:, 1]),
            launch=[_number(kind) for kind in launch.swapaxes(0, 1)],
            exposed=_number(exposed),
            gathered=_number(gathered),
            states=_number(states),
            held=_number(held),
            on_host=_on_host(self.job, states, size),
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
        """Costs of a layer of each of the model's kinds, for each micro-batch size."""
        split, stride = request.split, request.stride
        dense = (split.tp, split.cp, stride("tp"), stride("cp"), request.training.hides_exchange)
        experts = (split.ep, split.etp, stride("ep"), stride("etp"))

        def layer(size: int, place: int, kind: LayerKind) -> np.ndarray:
            key = (size, place, *dense, *(experts if kind.has_experts else ()))
            return self._once(*key, make=lambda: self._layer(request_of(size), kind))

        kinds = [*enumerate(request.model.kinds)]
        return np.array([[layer(size, *kind) for kind in kinds] for size in sizes])

    def _layer(self, request: Request, kind: LayerKind) -> np.ndarray:
        """Seconds and kept bytes of one layer for one micro-batch, by recomputation."""
        names = recomputations(self.job)
        seconds = layer_seconds(request, layer_work(request, kind), self.constants)
        how = (request.model, request.split, request.training, kind)
        return np.array(
            [
                [seconds(name).total for name in names],
                [layer_bytes(*how, name) for name in names],
            ]
        )

    def _leaves(self, stride: int) -> tuple[bool, bool]:
        """Whether ranks that stand so far apart are in several domains, and in several pods."""
        links = self.job.links
        return stride >= links.domain, bool(links.pod) and stride >= links.pod

    def _ends(self, request: Request, sizes: list[int], request_of: RequestOf) -> np.ndarray:
        """Seconds of the output layer, and of a chunk's sends, for each micro-batch size."""
        split = request.split
        sends = (split.tp, split.cp, split.pp > 1, self._leaves(request.stride("pp")))

        def seconds(size: int) -> tuple[float, float]:
            how = request_of(size)
            ends = ends_of(how)
            return head_seconds(how, ends, self.constants), send_seconds(how, ends, self.constants)

        kept = (self._once("ends", size, *sends, make=partial(seconds, size)) for size in sizes)
        return np.array(list(kept))


def _can_overlap(job: SearchJob, split: Split, stages: Stages) -> np.ndarray:
    """Whether computation can hide the experts' all-to-all, as in `require`; axes as in
    TimedLayout."""
    chunks = (stages.chunks > 1) | (split.pp == 1)
    again = np.array([is_beside_exchange(name) for name in recomputations(job)])
    return chunks & again & (split.ep > 1)


def _states(request: Request, held: tuple[np.ndarray, ...]) -> np.ndarray:
    """Bytes of the model states in each rank's GPU memory."""
    training = request.training
    away = leaves(training.offload, training.zero)
    states = model_states(tuple(map(_number, held)), request.split, training)
    return np.asarray(sum(size for name, size in states.items() if name not in away))


def _bytes(every: Sequence[_Sized], stages: Stages, m: np.ndarray) -> np.ndarray:
    """Bytes of model states and kept activations of the fullest rank; axes as in TimedLayout."""
    counts = [len(sized.sizes) for sized in every]
    states = np.repeat(np.stack([sized.states for sized in every], axis=-1), counts, axis=-1)
    kept = np.concatenate([sized.layers[:, :, 1] for sized in every])
    in_flight = np.minimum(stages.held, m)
    activations = in_flight * sum(map(mul, stages.layers, kept.swapaxes(0, 1)))
    fullest: np.ndarray = (states[..., None] + activations).max(axis=0)
    return fullest


def _on_host(job: SearchJob, parameters: np.ndarray, size: np.ndarray) -> tuple[Number, Number]:
    """The shares of the optimizer's state and of the weights in host memory; with chunks, the part
    that exceeds the room left on the GPU."""
    offload, precision = job.training.offload, PRECISIONS[job.training.precision]
    if offload != "chunks":
        return float(offload != "none"), float(offload == "parameters")
    above = (
        parameters * (precision.weight + job.training.optimizer_bytes)
        + size
        - room_of(job.bytes_of_gpu)
    )
    optimizer = np.clip(above / (parameters * job.training.optimizer_bytes), 0.0, 1.0)
    weights = np.clip(
        above - parameters * job.training.optimizer_bytes, 0.0, parameters * precision.weight
    )
    return _number(optimizer), _number(weights / (parameters * precision.weight))


def _number(values: np.ndarray) -> Number:
    """An array, typed as a number so that formulas of one number accept it."""
    return cast("Number", values)


def _held(request: Request, stages: Stages) -> tuple[tuple[np.ndarray, ...], ...]:
    """Dense and expert parameters of each rank, shape (ranks, dealings), and of the rank with most,
    shape (dealings)."""
    layers = stages.layers[..., 0, 0].T
    held = rank_parameters(request, layers)
    return tuple(each.T for each in held), most_parameters(*held)


def _stages(job: SearchJob, pp: int) -> Stages:
    ways = dealings(job, pp)
    layers, held, least = [], [], list[float]()
    for dealt in ways:
        placement = SCHEDULES[dealt.schedule].placement
        dealing = Dealing(pp, dealt.vpp, placement, dealt.account, dealt.spread)
        layers.append(layers_of(job.model, dealing))
        group = job.training.group_size if SCHEDULES[dealt.schedule].grouped else None
        sizes = (pp, MANY * pp, dealt.vpp, group)
        spec = ScheduleSpec(dealt.schedule, *sizes, variant=job.training.variant)
        held.append(peaks(spec))
        least.append(spec.rule.least_m * pp if group is None else group)
        if group is not None and group < pp:  # Megatron's groups are no smaller
            least[-1] = math.inf
    chunks = _of_dealings([float(dealt.vpp) for dealt in ways])
    return Stages(
        dealings=ways,
        layers=np.array(layers).transpose(2, 1, 0)[..., None, None],
        chunks=chunks,
        held=np.array(held).T[..., None, None],
        idle=_of_dealings([idle_share(dealt.schedule, pp, dealt.vpp) for dealt in ways]),
        least=_of_dealings(least),
    )


def _of_dealings(values: list[float]) -> np.ndarray:
    """One number per dealing, reshaped to the first axis of TimedLayout."""
    return np.array(values)[:, None, None]
