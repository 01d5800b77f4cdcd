"""Which links a group uses: how much of what its members send leaves their NVLink domain.

A group of n members, each sending B bytes, in members' order:

    ring        member i sends all of B to member i + 1, the last to the first: of the n links, k
                cross a border of domains, and k B of the n B bytes leave them
    pairwise    every member sends B / (n-1) to each of the others
    next        member i sends to member i + 1, each as much as it is said to; the last to the first
    before      member i sends to member i - 1

A domain's members send through their own network cards, all at once: where j members stand in a
domain and o of the ring's links leave it, each card carries o B / j (as with the several rings that
NCCL makes). So the times at link speed are

    ring        max(B / nvlink, o B / j / nic)     the second over all domains
    pairwise    max(inside B / nvlink, outside B / nic)    inside + outside = 1, of one member
    next        B / nic for a link that leaves a domain, else B / nvlink; before alike
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from groups.grouping import Grouping

RING, PAIRWISE, NEXT, BEFORE = "ring", "pairwise", "next", "before"


@dataclass(frozen=True)
class Reach:
    """How all groups of one name stand on NVLink domains; shares are from 0 to 1.

    Attributes:
        groups, size: groups, and ranks of each.
        ring: share of the ring's links that leave a domain, over all groups.
        card: messages of B bytes that the busiest network card carries, of a ring.
        stays: whether any link of any ring stays inside a domain.
        pairs: share of ordered pairs of members in different domains, over all groups.
        outside, inside: the largest share of the other members that stand in other domains than a
            member, and in its own.
        links: for each place of a group, the share of groups whose link to the next place leaves.
    """

    groups: int
    size: int
    ring: float
    card: float
    stays: bool
    pairs: float
    outside: float
    inside: float
    links: tuple[float, ...]

    def share(self, pattern: str) -> float:
        """Share of a ring's or a pairwise exchange's bytes that leaves a domain."""
        return self.ring if pattern == RING else self.pairs

    def seconds(self, pattern: str, sent: float, nvlink: float, nic: float) -> float:
        """Seconds at link speed for ``sent`` bytes of each member, ring or pairwise.

        >>> from groups import parse_mesh
        >>> path = reach(Grouping("dp", parse_mesh("dp16"), "dp"), domain=8)
        >>> path.card, path.seconds(RING, 8e9, nvlink=450e9, nic=50e9)  # 1 GB a card
        (0.125, 0.02)
        """
        if self.size == 1:
            return 0.0
        if pattern == RING:
            return max(sent / nvlink if self.stays else 0.0, self.card * sent / nic)
        return max(self.inside * sent / nvlink, self.outside * sent / nic)


def reach(grouping: Grouping, domain: int) -> Reach:
    """How the groups stand on domains of so many consecutive ranks.

    >>> from groups import parse_mesh
    >>> path = reach(Grouping("dp", parse_mesh("tp2-dp4-pp2"), "dp"), domain=4)
    >>> path.groups, path.size, path.ring, path.card, path.links  # ranks 0 2 | 4 6: two links leave
    (4, 4, 0.5, 0.5, (0.0, 1.0, 0.0, 1.0))
    """
    first = grouping.mesh.offset
    spread = grouping.spread
    if spread is not None:
        return _of_spread(spread, grouping.world_size, first, domain)
    if grouping.places:
        return _moved(grouping.members(first) - first, grouping.firsts(), domain)
    groups = np.array(grouping.groups())
    return _summed(groups // domain, np.ones(len(groups), dtype=np.int64))


@lru_cache(maxsize=4096)
def _of_spread(spread: tuple[tuple[int, int], ...], world: int, first: int, domain: int) -> Reach:
    """The same of all plain groups that have these runs of steps: they are the same groups."""
    ranks, offsets = np.arange(world), np.zeros(1, dtype=np.int64)
    starts = np.ones(world, dtype=bool)
    for stride, size in spread:
        starts &= ranks // stride % size == 0
        offsets = np.add.outer(np.arange(size) * stride, offsets).reshape(-1)
    return _moved(offsets, ranks[starts] + first, domain)


def _moved(offsets: np.ndarray, firsts: np.ndarray, domain: int) -> Reach:
    """All groups of a mesh are group 0, moved to another first rank.

    So only where in a domain they start matters.
    """
    starts, times = np.unique(firsts % domain, return_counts=True)
    return _summed((starts[:, None] + offsets) // domain, times)


def _summed(domains: np.ndarray, times: np.ndarray) -> Reach:
    """domains: of each member, shape (rows, size); times: groups that are like each row."""
    groups, size = int(times.sum()), domains.shape[1]
    leaves = domains != np.roll(domains, -1, axis=1)
    links = times @ leaves / groups
    cards, own_least, own_most, same = [], [], [], 0
    for row, crossing, count in zip(domains, leaves, times):
        _, which, members = np.unique(row, return_inverse=True, return_counts=True)
        cards.append(float(np.max(np.bincount(which, crossing) / members)))
        own_least.append(int(members.min()))
        own_most.append(int(members.max()))
        same += int(count) * int((members * (members - 1)).sum())
    others = max(size - 1, 1)
    return Reach(
        groups=groups,
        size=size,
        ring=float(links.mean()),
        card=max(cards),
        stays=bool((~leaves).any()) and size > 1,
        pairs=1 - same / (groups * size * others) if size > 1 else 0.0,
        outside=(size - min(own_least)) / others,
        inside=(max(own_most) - 1) / others,
        links=tuple(links.tolist()),
    )
