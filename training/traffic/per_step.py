"""Traffic of one step on real links: bytes inside and across NVLink domains, time at link speed.

    sent       bytes that one rank sends in a step, on the stage that sends most (`collectives`)
    total      the same, summed over all ranks of the job
    across     of the total, what leaves an NVLink domain (`links`)
    seconds    the bytes over the bandwidth of the links: no latency, nobody else on them

What usually hides a transfer is how Megatron and DDP overlap by default where they can. How long a
step waits for each kind is what training.estimate says.

    attention       rings of keys and values (cp p2p)
    weights         gathers of a saved input, while gradients of weights are computed
    compute         sends between stages, where chunks (vpp) interleave
    last_backward   gradients, while the last micro-batch goes back
    first_forward   parameters, while the first goes forward
    forward         parameters of zero3
    backward        parameters and gradients of zero3, gradients of zero2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groups.grouping import Grouping

from ..clusters import Cluster
from ..collectives.cost import bytes_per_rank
from ..memory.per_stage import Training
from ..model import Model
from ..parameters import StageParameters, stage_parameters
from ..split import Split
from .demands import Demand, demands
from .links import BEFORE, NEXT, Reach, reach


@dataclass(frozen=True, kw_only=True)
class Traffic(Demand):
    """One demand on the links of its groups; bytes and seconds.

    Attributes:
        size: ranks of a group.
        by_stage: bytes that one rank sends, for each pipeline stage.
        total, across: of all ranks, and the part that leaves NVLink domains.
        seconds: the time that the links need for the bytes.
    """

    size: int
    by_stage: tuple[float, ...]
    total: float
    across: float
    seconds: float

    @property
    def sent(self) -> float:
        """Bytes that one rank sends, on the stage that sends most."""
        return max(self.by_stage)

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
    """Every transfer of a step, the longest first.

    every: groups by Megatron's names; of kinds that nothing carries nothing is told.
    stages: what a rank of each stage holds, where that is known already.

    >>> from groups.megatron import groupings
    >>> from training.clusters import CLUSTERS
    >>> from training.models import MODELS
    >>> llama, split = MODELS["llama3-8b"].model, Split(tp=8, dp=2)
    >>> rows = traffic(llama, split, Training(micro_batches=4), groupings(16, tp=8),
    ...                CLUSTERS["dgx-h100"], gpus_per_node=8)
    >>> rows[0].kind, rows[0].what, rows[0].operation, rows[0].across
    ('dp-cp', 'gradients', 'reduce_scatter', 32153665536.0)

    Errors: LayoutError as training.traffic.demands.require.
    """
    split = split.placed(training.rule.placement)
    domain = cluster.domain_of(gpus_per_node)
    stages = tuple(stages) or stage_parameters(model, split)
    ranks = split.tp * split.cp * split.dp
    sent = demands(model, split, training, cp_algorithm, stages)
    carriers = {kind: carrier(every, kind) for kind in {demand.kind for demand in sent}}
    places = {kind: reach(at, domain) for kind, at in carriers.items() if at is not None}
    rows = [
        _placed(demand, places[demand.kind], ranks, cluster)
        for demand in sent
        if demand.kind in places and places[demand.kind].size > 1
    ]
    return sorted(rows, key=lambda row: -row.seconds)


CARRIERS = {"dp-cp": ("dp-cp", "dp", "cp"), "edp": ("edp", "dp-cp", "dp")}
"""Groups that carry a kind, the first that there is: a framework may have no cp, or no experts."""


def carrier(every: Mapping[str, Grouping], kind: str) -> Grouping | None:
    """The group that carries a kind of traffic; None if this framework makes none."""
    names = CARRIERS.get(kind, (kind,))
    return next((every[name] for name in names if name in every), None)


def _placed(demand: Demand, where: Reach, ranks: int, cluster: Cluster) -> Traffic:
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
        **vars(demand),
        size=where.size,
        by_stage=by_stage,
        total=ranks * sum(by_stage),
        across=across,
        seconds=seconds,
    )
