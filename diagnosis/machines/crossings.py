"""Counts the groups that span several racks in an order of equal nodes, and a lower bound for any
order.

A group stands on some nodes; of equal nodes only the rack matters, so an order is a rack for each
place. Groups of one kind on the same nodes count together:

    tp8 on nodes of 8, ep16      ep groups stand on the node sets {0, 1} {2, 3} {4, 5} ...
    racks of the places          A A   A B   B B     one ep group is in two racks

A group of one node crosses nowhere, in any order; one on more nodes than the largest rack crosses
in every order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groups.grouping import Grouping


@dataclass(frozen=True)
class KindCrossings:
    """The groups of one name as sets of nodes; a shorter set repeats its first node."""

    name: str
    groups: int  # those of a single node are counted here alone
    sets: np.ndarray  # int64, shape (sets, most nodes of one), ascending
    weights: np.ndarray  # groups on each set

    @property
    def leave_node(self) -> int:
        """Groups on more than one node; no order of equal nodes changes that."""
        return int(self.weights.sum())

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of nodes of each set."""
        return 1 + np.count_nonzero(np.diff(self.sets, axis=1), axis=1)

    @property
    def widest(self) -> int:
        """The number of nodes of the largest group."""
        return int(self.sizes.max(initial=1))

    def crossing(self, racks: np.ndarray) -> int:
        """The number of groups that span several racks; racks: that of each place."""
        return int(self.weights[self.crosses(racks)].sum())

    def crosses(self, racks: np.ndarray) -> np.ndarray:
        """Whether each set spans several racks; for many orders, a row each."""
        member_racks = racks[..., self.sets]
        return np.asarray((member_racks != member_racks[..., :1]).any(axis=-1))

    def crossing_from(self, place: int, racks: np.ndarray) -> np.ndarray:
        """Groups that cross because of this place, not of earlier ones; racks: rows of orders, of
        which later places are ignored."""
        has = (self.sets == place).any(axis=1)
        sets, firsts = self.sets[has], self.sets[has, :1]
        before = racks[:, np.where(sets < place, sets, firsts)]
        is_whole = (before == before[..., :1]).all(axis=-1)
        leaves = racks[:, place, None] != racks[:, firsts[:, 0]]
        return np.asarray((is_whole & leaves) @ self.weights[has])


def kind_of(grouping: Grouping, gpus_per_node: int) -> KindCrossings:
    """A grouping as sets of nodes.

    >>> from groups import parse_mesh
    >>> kind = kind_of(Grouping("dp", parse_mesh("tp4-dp2-pp2"), "dp"), gpus_per_node=4)
    >>> kind.sets.tolist(), kind.weights.tolist(), kind.crossing(np.array([0, 0, 0, 1]))
    ([[0, 1], [2, 3]], [4, 4], 4)
    """
    groups = np.asarray(grouping.groups())
    nodes, is_first = ascending(groups // gpus_per_node)
    several = nodes[:, 0] != nodes[:, -1]
    nodes, is_first = nodes[several], is_first[several]
    width = int(is_first.sum(axis=1).max(initial=1))
    nodes = np.sort(np.where(is_first, nodes, nodes[:, :1]), axis=1)
    sets, weights = np.unique(nodes[:, nodes.shape[1] - width :], axis=0, return_counts=True)
    return KindCrossings(grouping.name, len(groups), sets, weights)


def hops_of(grouping: Grouping, gpus_per_node: int, *, is_ring: bool) -> KindCrossings:
    """The hops of a grouping between nodes, as sets of two: from each member to the next, of a ring
    from the last to the first too.

    >>> from groups import parse_mesh
    >>> pp = Grouping("pp", parse_mesh("tp4-pp4"), "pp")
    >>> hops = hops_of(pp, gpus_per_node=4, is_ring=False)
    >>> hops.sets.tolist(), [hops.crossing(np.array(at)) for at in ([0, 1, 0, 1], [0, 0, 1, 1])]
    ([[0, 1], [1, 2], [2, 3]], [12, 4])
    """
    nodes = np.asarray(grouping.groups()) // gpus_per_node
    following = np.roll(nodes, -1, axis=1)
    if not is_ring or nodes.shape[1] == 2:
        nodes, following = nodes[:, :-1], following[:, :-1]
    pairs = np.sort(np.stack([nodes.reshape(-1), following.reshape(-1)], axis=1), axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    sets, weights = np.unique(pairs, axis=0, return_counts=True)
    return KindCrossings(grouping.name, len(nodes), sets.reshape(-1, 2), weights)


def ascending(sets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The members of each set in ascending order, and which of them is the first occurrence."""
    ordered = np.sort(sets, axis=1)
    is_first = np.ones(ordered.shape, dtype=bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return ordered, is_first


Levels = Sequence[Sequence[KindCrossings]]
"""Kinds by priority; those of one level are added up."""


def key_of(levels: Levels, racks: np.ndarray) -> tuple[int, ...]:
    """The number of groups that span several racks, for each level."""
    return tuple(sum(kind.crossing(racks) for kind in level) for level in levels)


# -- how few can -----------------------------------------------------------------------------------


def least(kind: KindCrossings, capacities: Sequence[int], block: np.ndarray | None = None) -> int:
    """A lower bound of the groups that cross racks in any order: racks hold only so many whole
    sets.

    block: places that stand in one rack in any case, by the number of their block; a set that
    stays whole takes all of the blocks it touches.

    Of sets without a common place, racks of c nodes hold at most floor(c / size) each, the smallest
    size counting for all. Where sets overlap, only those larger than every rack are counted.
    """
    if not len(kind.sets):
        return 0
    block = np.arange(sum(capacities)) if block is None else block
    blocks, is_first = ascending(block[kind.sets])
    same = np.sort(np.where(is_first, blocks, blocks[:, :1]), axis=1)
    rows, which = np.unique(same, axis=0, return_inverse=True)
    weights = np.bincount(which.reshape(-1), kind.weights).astype(np.int64)
    rows, is_first = ascending(rows)
    sizes = (np.bincount(block)[rows] * is_first).sum(axis=1)
    fits = sizes <= max(capacities)
    touched = rows[is_first]
    if len(np.unique(touched)) < len(touched) or not fits.any():
        return int(weights[~fits].sum())
    smallest = int(sizes[fits].min())
    whole = sum(capacity // smallest for capacity in capacities)
    return int(weights.sum() - np.sort(weights[fits])[::-1][:whole].sum())


def is_least(levels: Levels, key: Sequence[int], capacities: Sequence[int]) -> bool:
    """Whether no order has a smaller key: each level is as small as possible, given the ones
    before.

    Where a level has no crossing, its sets are whole in every order as good, and the next level's
    sets take all the blocks that they touch.
    """
    places = sum(capacities)
    block = np.arange(places)
    for level, count in zip(levels, key):
        if count != sum(least(kind, capacities, block) for kind in level):
            return False
        if count == 0:
            for kind in level:
                block = joined(block, kind.sets)
    return True


def joined(block: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """The blocks after those that share a set have been merged, numbered from 0."""
    rows = block[sets]
    label, before = np.arange(int(block.max()) + 1), None
    while before is None or (label != before).any():  # the least number spreads
        before = label.copy()
        np.minimum.at(label, rows, label[rows].min(axis=1, keepdims=True))
        label = label[label]
    return np.unique(label[block], return_inverse=True)[1].reshape(-1)


def cost_of(levels: Levels, costs: Mapping[str, float], racks: np.ndarray) -> float:
    """The cost of the groups that span several racks; costs: of one group, by kind."""
    costly = ((kind, costs.get(kind.name)) for level in levels for kind in level)
    return sum((float(cost) * kind.crossing(racks) for kind, cost in costly if cost), 0.0)
