"""Traffic of one step on real links: bytes inside and across NVLink domains, time, what is exposed.

    sent       bytes that one rank sends in a step, on the stage that sends most (`collectives`)
    total      the same, summed over all ranks of the job
    across     of the total, what leaves an NVLink domain (`links`)
    seconds    lower bound: bandwidth of the links only, no latency, nobody else on them
    exposed    seconds less the computation that usually hides it, not below 0

What hides what is how Megatron and DDP overlap by default where they can. One kind is set against
its computation alone: that two kinds may want the same links, or hide behind the same computation,
is left out.

    beside          the computation, C seconds a step in all, A of them attention's core
    attention       A          rings of keys and values (cp p2p)
    weights         C / 3      gathers of a saved input, while gradients of weights are computed
    compute         C          sends between stages, where chunks (vpp) interleave
    last_backward   2C / 3m    gradients, while the last of m micro-batches goes back
    first_forward   C / 3m     parameters, while the first goes forward
    forward         C / 3      parameters of zero3
    backward        2C / 3     parameters and gradients of zero3, gradients of zero2

A backward is taken to cost twice its forward. C is what floating point operations need at REACHED
of the GPU's peak, per token forward (arXiv:2104.04473 eq. 3, by layer)

    2 * active parameters + 2 * sequence * (query + attention width) * layers
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from groups.grouping import Grouping

from ..clusters import Cluster
from ..collectives.cost import bytes_per_rank
from ..memory.per_stage import Training
from ..model import Model
from ..parameters import StageParameters, active_parameters, stage_parameters
from ..pipeline.in_flight import way_of
from ..split import Split
from .demands import Demand, demands
from .links import BEFORE, NEXT, Reach, reach

REACHED = 0.45
"""Share of the peak that training reaches: 43 to 52 % in arXiv:2104.04473, Table 1."""


@dataclass(frozen=True)
class Computation:
    """Seconds of one rank's computation in a step, on the stage that has most layers.

    Attributes:
        step: forward, backward and what is recomputed: C.
        attention: of it, the attention core, forward and backward: A.
        micro_batches: m.
    """

    step: float
    attention: float
    micro_batches: int

    def beside(self, name: str) -> float:
        """Seconds that may hide a transfer; 0 where there is nothing to hide behind."""
        one = self.step / self.micro_batches
        return {
            "": 0.0,
            "attention": self.attention,
            "weights": self.step / 3,
            "compute": self.step,
            "last_backward": 2 * one / 3,
            "first_forward": one / 3,
            "forward": self.step / 3,
            "backward": 2 * self.step / 3,
        }[name]


def computation(
    model: Model, split: Split, training: Training, most_layers: float, peak: float
) -> Computation:
    """What a rank computes in a step, in seconds, if it has so many layers.

    >>> from training.models import MODELS
    >>> gpt, training = MODELS["gpt3-175b"].model, Training(micro_batches=64)
    >>> one = computation(gpt, Split(tp=8, pp=8), training, most_layers=12, peak=312e12)
    >>> round(one.step, 1), round(one.attention, 1)  # seconds
    (15.8, 0.4)
    """
    tokens = training.micro_batches * training.micro_batch * model.sequence / (split.cp * split.tp)
    matrices, core = _operations(model)
    each = tokens * most_layers / model.layers / (peak * REACHED)
    forward, attention = each * (matrices + core), 3 * each * core
    again = {"none": 0.0, "selective": attention / 3, "full": forward}[training.recompute]
    return Computation(3 * forward + again, attention, training.micro_batches)


@lru_cache(maxsize=64)
def _operations(model: Model) -> tuple[float, float]:
    """Forward operations of one token: with matrices, and in the attention core."""
    core = 2 * model.sequence * (model.query_width + model.attention_width) * model.layers
    return 2.0 * active_parameters(model), float(core)


def most_layers(stages: Iterable[StageParameters], split: Split) -> float:
    """Layers that each micro-batch meets on the fullest stage; of DualPipe's two parts, one."""
    most = max(one.layers for one in stages)
    return most / 2 if split.way == "both ways" else float(most)


@dataclass(frozen=True)
class Traffic:
    """What one kind of group sends in one step for one purpose; bytes and seconds.

    Attributes:
        kind, what, operation, count, buffer, beside: as in training.traffic.demands.
        size: ranks of a group.
        pattern: how the bytes go between members (`links`).
        sent: by one rank, on the stage that sends most.
        by_stage: the same, for each pipeline stage.
        total, across: of all ranks, and the part that leaves NVLink domains.
        seconds, exposed: lower bound on time, and what of it no computation hides.
    """

    kind: str
    what: str
    operation: str
    count: float
    buffer: float
    beside: str
    size: int
    pattern: str
    sent: float
    by_stage: tuple[float, ...]
    total: float
    across: float
    seconds: float
    exposed: float

    @property
    def inside(self) -> float:
        """Bytes of all ranks that stay in NVLink domains."""
        return self.total - self.across


def traffic(
    model: Model,
    split: Split,
    training: Training,
    every: Mapping[str, Grouping],
    cluster: Cluster,
    gpus_per_node: int,
    cp_algorithm: str = "p2p",
    stages: Sequence[StageParameters] = (),
) -> list[Traffic]:
    """Every transfer of a step, the most exposed first; then the longest.

    every: groups by Megatron's names; of kinds that nothing carries nothing is told.
    stages: what a rank of each stage holds, where that is known already.

    >>> from groups.megatron import groupings
    >>> from training.clusters import CLUSTERS
    >>> from training.models import MODELS
    >>> llama, split = MODELS["llama3-8b"].model, Split(tp=8, dp=2)
    >>> rows = traffic(llama, split, Training(micro_batches=4), groupings(16, tp=8),
    ...                CLUSTERS["dgx-h100"], gpus_per_node=8)
    >>> rows[0].kind, rows[0].what, rows[0].operation, rows[0].across
    ('tp', 'forward', 'all_gather', 0.0)

    Errors: LayoutError as training.traffic.demands.require.
    """
    split = replace(split, way=way_of(training.schedule))
    domain = cluster.domain_of(gpus_per_node)
    stages = tuple(stages) or stage_parameters(model, split)
    time = computation(model, split, training, most_layers(stages, split), cluster.peak)
    ranks = split.tp * split.cp * split.dp
    found = demands(model, split, training, cp_algorithm, stages)
    carriers = {kind: carrier(every, kind) for kind in {one.kind for one in found}}
    places = {kind: reach(one, domain) for kind, one in carriers.items() if one is not None}
    rows = [
        _placed(one, places[one.kind], ranks, cluster, time)
        for one in found
        if one.kind in places and places[one.kind].size > 1
    ]
    return sorted(rows, key=lambda row: (-row.exposed, -row.seconds))


def exposed_by_kind(rows: Sequence[Traffic]) -> dict[str, float]:
    """Exposed seconds of each kind of group, the longest first.

    >>> exposed_by_kind([])
    {}
    """
    found: dict[str, float] = {}
    for row in rows:
        found[row.kind] = found.get(row.kind, 0.0) + row.exposed
    return dict(sorted(found.items(), key=lambda item: -item[1]))


CARRIERS = {"dp-cp": ("dp-cp", "dp", "cp"), "edp": ("edp", "dp-cp", "dp")}
"""Groups that carry a kind, the first that there is: a framework may have no cp, or no experts."""


def carrier(every: Mapping[str, Grouping], kind: str) -> Grouping | None:
    """The group that carries a kind of traffic; None if this framework makes none."""
    names = CARRIERS.get(kind, (kind,))
    return next((every[name] for name in names if name in every), None)


def _placed(
    demand: Demand, where: Reach, ranks: int, cluster: Cluster, time: Computation
) -> Traffic:
    """One demand on the links of its groups; each stage has so many ranks."""
    factor = bytes_per_rank(demand.operation, where.size, 1)
    by_stage = tuple(factor * volume for volume in demand.volumes)
    if demand.pattern in (NEXT, BEFORE):
        leaves = where.links if demand.pattern == NEXT else (where.links[-1], *where.links[:-1])
        across = ranks * sum(sent * share for sent, share in zip(by_stage, leaves))
        seconds = max(
            sent / (cluster.nic if share else cluster.nvlink)
            for sent, share in zip(by_stage, leaves)
        )
    else:
        across = ranks * sum(by_stage) * where.share(demand.pattern)
        seconds = where.seconds(demand.pattern, max(by_stage), cluster.nvlink, cluster.nic)
    return Traffic(
        kind=demand.kind,
        what=demand.what,
        operation=demand.operation,
        count=demand.count,
        buffer=demand.buffer,
        beside=demand.beside,
        size=where.size,
        pattern=demand.pattern,
        sent=max(by_stage),
        by_stage=by_stage,
        total=ranks * sum(by_stage),
        across=across,
        seconds=seconds,
        exposed=max(0.0, seconds - time.beside(demand.beside)),
    )
