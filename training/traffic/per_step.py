"""Traffic of one step on real links: bytes inside and across NVLink domains, seconds at link speed.

    sent       bytes that one rank sends in a step, on the stage that sends most (`collectives`)
    total      the same, summed over all ranks of the job
    across     of the total, what leaves an NVLink domain
    seconds    the bytes over the bandwidth of the links: no latency, nobody else on them; links
               carry both directions at once, so that a rank's time is that of what it sends

A group of n members, each sending B bytes, in members' order:

    ring        member i sends all of B to member i + 1, the last to the first: of the n links, k
                cross a border of domains, and k B of the n B bytes leave them
    pairwise    every member sends B / (n-1) to each of the others
    next        member i sends to member i + 1, each as much as it is said to; the last to the first
    before      member i sends to member i - 1
    once        to each domain one copy of a token that has an expert there, to the member of the
                sender's own place, which passes it on to those that have one (training.routing)

A domain's members send through their own network cards, all at once: where j members stand in a
domain and o of the ring's links leave it, each card carries o B / j (as with the several rings that
NCCL makes). So the times at link speed are

    ring        max(B / nvlink, o B / j / nic)     the second over all domains
    pairwise    max(inside B / nvlink, outside B / nic)    inside + outside = 1, of one member
    next        B / nic for a link that leaves a domain, else B / pair; before alike
    once        as pairwise, of what is sent inside and between domains

Where one of these speeds is unknown there are bytes and no seconds: `Traffic.lacks` says which.

nvlink is what so many members of a domain reach on the machine's fabric, and pair what one of them
sends to one other (training.machine). Where pods of nodes stand behind an oversubscribed spine,
what leaves a pod passes at nic / spine, and counts the same way with pods in place of domains.

What usually hides a transfer is how Megatron and DDP overlap by default where they can. How long a
step waits for each kind is what training.estimate says.

    attention       rings of keys and values (cp p2p)
    weights         gathers of a saved input, while gradients of weights are computed
    compute         sends between stages, where chunks (vpp) interleave; experts' exchange where
                    two micro-batches are computed in turns
    last_backward   gradients, while the last micro-batch goes back
    first_forward   parameters, while the first goes forward
    forward         parameters of zero3
    backward        parameters and gradients of zero3, gradients of zero2
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from groups.grouping import SMALL, Grouping
from groups.kept import kept

from ..collectives.cost import bytes_per_rank
from ..machine import TORUS, Machine, over
from ..model import Model
from ..parameters import StageParameters, stage_parameters
from ..recipe import Training
from ..routing import copies
from ..split import Split
from .demands import BEFORE, NEXT, ONCE, RING, Demand, demands


@dataclass(frozen=True, kw_only=True)
class Traffic(Demand):
    """One demand on the links of its groups; bytes and seconds.

    Attributes:
        size: ranks of a group.
        by_stage: bytes that one rank sends, for each pipeline stage.
        total, across: bytes that all ranks send, and how many of these leave an NVLink domain.
        times: seconds that the links need for the bytes of each stage; empty if not known.
        near: ranks of a group in one domain, at most.
        lacks: the numbers of the machine (training.machine.NUMBERS) for want of which they are not.
    """

    size: int
    by_stage: tuple[float, ...]
    total: float
    across: float
    times: tuple[float, ...]
    near: int = 1
    lacks: tuple[str, ...] = ()

    @property
    def seconds(self) -> float | None:
        """Seconds on the links, for the slowest stage; None where their speed is not known."""
        return max(self.times) if self.times else None

    @property
    def leaving(self) -> float:
        """The share of the bytes that leaves NVLink domains."""
        return self.across / self.total if self.total else 0.0

    @property
    def sent(self) -> float:
        """Bytes sent by one rank of the stage that sends most."""
        return max(self.by_stage)


def traffic(
    model: Model,
    split: Split,
    training: Training,
    every: Mapping[str, Grouping],
    cluster: Machine,
    gpus_per_node: int,
    cp_algorithm: str = "p2p",
    stages: Sequence[StageParameters] = (),
) -> list[Traffic]:
    """Every transfer of a step, the longest first; before them those of unknown length, most bytes
    first.

    every: groups by Megatron's names; kinds that no group carries are left out. stages: what a rank
    of each stage holds, where that is known already.

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
    domain, pod = cluster.domain_of(gpus_per_node), cluster.pod_of(gpus_per_node)
    stages = tuple(stages) or stage_parameters(model, split)
    ranks = split.tp * split.cp * split.dp
    sent = demands(model, split, training, cp_algorithm, stages)
    carriers = {kind: carrier(every, kind) for kind in {demand.kind for demand in sent}}
    places = {
        kind: Place(reach(at, domain), reach(at, pod) if pod else None, _near(at, domain, cluster))
        for kind, at in carriers.items()
        if at is not None
    }
    rows = [
        _placed(demand, places[demand.kind], ranks, cluster, model)
        for demand in sent
        if demand.kind in places and places[demand.kind].where.size > 1
    ]
    return sorted(rows, key=_longest_first)


def _longest_first(row: Traffic) -> tuple[float, float]:
    return (-math.inf, -row.total) if row.seconds is None else (-row.seconds, 0.0)


def seconds_together(rows: Iterable[Traffic]) -> float | None:
    """Seconds on the links for several transfers, for the slowest stage; None if those of one are
    not known.

    A stage's forward sends and the next stage's backward sends do not take turns on a link.

    >>> from groups.megatron import groupings
    >>> from training.clusters import CLUSTERS
    >>> from training.models import MODELS
    >>> sent = traffic(MODELS["llama3-8b"].model, Split(pp=2), Training(), groupings(2, pp=2),
    ...                CLUSTERS["dgx-h100"], gpus_per_node=1)
    >>> [(row.what, row.times[0] > 0, row.times[1] > 0) for row in sent]
    [('activations', True, False), ('gradients', False, True)]
    >>> seconds_together(sent) == sent[0].seconds == sent[0].sent / CLUSTERS["dgx-h100"].nic
    True
    """
    several = [row.times for row in rows]
    return max(map(sum, zip(*several)), default=0.0) if all(several) else None


CARRIERS = {"dp-cp": ("dp-cp", "dp", "cp"), "edp": ("edp", "dp-cp", "dp")}
"""Groups that carry a kind, in order of preference: a framework may have no cp, or no experts."""


def carrier(every: Mapping[str, Grouping], kind: str) -> Grouping | None:
    """The group that carries a kind of traffic; None if the framework has none."""
    names = CARRIERS.get(kind, (kind,))
    return next((every[name] for name in names if name in every), None)


class Place(NamedTuple):
    """How a kind's groups stand on domains and on pods, and for a torus where members of one stand
    in their domain."""

    where: Reach
    beyond: Reach | None
    places: tuple[int, ...]

    def lacks(self, ways: Iterable[float], machine: Machine) -> tuple[str, ...]:
        """Which of the speeds of these ways are not known; ways: 0 stays in a domain, 1 leaves."""
        several = tuple(ways)
        needed = {"nvlink": not all(several), "nic": any(several)}
        return tuple(name for name in needed if needed[name] and not getattr(machine, name))

    def seconds(self, pattern: str, sent: float, machine: Machine) -> float:
        """Seconds at link speed for ``sent`` bytes from each member, in a ring or pairwise."""
        where = self.where
        inside = machine.inside(where.near, self.places, pairwise=pattern != RING)
        seconds = where.seconds(pattern, sent, inside, machine.nic)
        if self.beyond and self.beyond.leaves:
            slow = machine.nic / machine.spine
            seconds = max(seconds, self.beyond.seconds(pattern, sent, math.inf, slow))
        return seconds

    def next(self, at: int, sent: float, machine: Machine) -> float:
        """Seconds at link speed from place ``at`` of a group to the next one."""
        if not sent:
            return 0.0
        if not self.where.links[at]:
            return sent / machine.one_pair
        return sent / machine.nic * (machine.spine if self.beyond and self.beyond.links[at] else 1)


def _near(grouping: Grouping, domain: int, machine: Machine) -> tuple[int, ...]:
    """Numbers in their domain of a group's members that share one with the first; of a torus only,
    for elsewhere all places are alike."""
    if machine.fabric != TORUS:
        return ()
    members = grouping.members(grouping.mesh.offset)
    return tuple(int(rank) % domain for rank in members if rank // domain == members[0] // domain)


def _placed(demand: Demand, place: Place, ranks: int, cluster: Machine, model: Model) -> Traffic:
    """One demand on the links of its groups; each stage has the same number of ranks."""
    where = place.where
    factor, pattern = bytes_per_rank(demand.operation, where.size, 1), demand.pattern
    if pattern == ONCE:
        inside, outside = (sent / model.top_k for sent in copies(model, where.size, where.near))
        factor = inside + outside
    by_stage = tuple(factor * volume for volume in demand.volumes)
    total, lacks = ranks * sum(by_stage), place.lacks((where.near == 1, where.leaves), cluster)
    timed: Iterator[float]
    if pattern in (NEXT, BEFORE):
        ways = [(at if pattern == NEXT else at - 1) % where.size for at in range(len(by_stage))]
        across = ranks * sum(sent * float(where.links[way]) for sent, way in zip(by_stage, ways))
        lacks = place.lacks(
            (where.links[way] for sent, way in zip(by_stage, ways) if sent), cluster
        )
        timed = (place.next(way, sent, cluster) for sent, way in zip(by_stage, ways))
    elif pattern == ONCE:
        across = total * outside / factor
        of_all = inside + outside or 1.0
        share = replace(where, inside=inside / of_all, outside=outside / of_all)
        once = place._replace(where=share)
        timed = (once.seconds(pattern, of_all * volume, cluster) for volume in demand.volumes)
    else:
        across = total * (where.ring if pattern == RING else where.pairs)
        timed = (place.seconds(pattern, sent, cluster) for sent in by_stage)
    return Traffic(
        **vars(demand),
        size=where.size,
        by_stage=by_stage,
        total=total,
        across=across,
        times=() if lacks else tuple(timed),
        near=where.near,
        lacks=lacks,
    )


# -- how groups stand on domains -----------------------------------------------------------------


@dataclass(frozen=True)
class Reach:
    """How all groups of one name span NVLink domains; shares are from 0 to 1.

    Attributes:
        groups, size: groups, and ranks of each.
        ring: share of the ring's links that leave a domain, over all groups.
        card: messages of B bytes of a ring that the busiest network card carries.
        stays: whether any link of any ring stays inside a domain.
        pairs: share of ordered pairs of members in different domains, over all groups.
        outside, inside: the largest share of the other members in other domains than a
            member, and in its own.
        near: members of a group in one domain, at most.
        links: for each place of a group, the share of groups whose link to the next place leaves;
            float64.
    """

    groups: int
    size: int
    ring: float
    card: float
    stays: bool
    pairs: float
    outside: float
    inside: float
    near: int
    links: np.ndarray = field(compare=False)

    def seconds(self, pattern: str, sent: float, nvlink: float, nic: float) -> float:
        """Seconds at link speed for ``sent`` bytes from each member, in a ring or pairwise.

        >>> from groups import parse_mesh
        >>> path = reach(Grouping("dp", parse_mesh("dp16"), "dp"), domain=8)
        >>> path.card, path.seconds(RING, 8e9, nvlink=450e9, nic=50e9)  # 1 GB a card
        (0.125, 0.02)
        """
        if pattern == RING:
            return max(over(sent * self.stays, nvlink), over(self.card * sent, nic))
        return max(over(self.inside * sent, nvlink), over(self.outside * sent, nic))

    @property
    def leaves(self) -> bool:
        """Whether anything leaves a domain."""
        return self.near < self.size


def reach(grouping: Grouping, domain: int) -> Reach:
    """How the groups of a kind, or some of their members, span domains of ``domain`` consecutive
    ranks; cached for small groups.

    >>> from groups import parse_mesh
    >>> path = reach(Grouping("dp", parse_mesh("tp2-dp4-pp2"), "dp"), domain=4)
    >>> path.groups, path.size, path.ring, path.card  # ranks 0 2 | 4 6: two links leave
    (4, 4, 0.5, 0.5)
    >>> path.links.tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    return (_kept_reach if grouping.size <= SMALL else _reach)(grouping, domain)


def _reach(grouping: Grouping, domain: int) -> Reach:
    # All groups are translations of group 0: only their start within a domain matters.
    first = grouping.mesh.offset
    starts, times = np.unique(grouping.firsts() % domain, return_counts=True)
    return _summed((starts[:, None] + grouping.members(first) - first) // domain, times)


_kept_reach = kept(_reach)


def _summed(domains: np.ndarray, times: np.ndarray) -> Reach:
    """domains: the domain of each member, shape (rows, size); times: number of groups equal to each
    row."""
    groups, size = int(times.sum()), domains.shape[1]
    leaves = domains != np.roll(domains, -1, axis=1)
    links = times @ leaves / groups
    cards, own_least, own_most, same = [], [], [], 0
    for row, crossing, count in zip(domains, leaves, times):
        members = np.bincount(row)
        inside = members > 0
        members = members[inside]
        cards.append(float(np.max(np.bincount(row, crossing)[inside] / members)))
        own_least.append(int(members.min()))
        own_most.append(int(members.max()))
        same += int(count) * int((members * (members - 1)).sum())
    others = max(size - 1, 1)
    return Reach(
        groups=groups,
        size=size,
        ring=float(links.mean()),
        card=max(cards),
        stays=bool((~leaves).any()),
        pairs=1 - same / (groups * size * others) if size > 1 else 0.0,
        outside=(size - min(own_least)) / others,
        inside=(max(own_most) - 1) / others,
        links=links,
        near=max(own_most),
    )
