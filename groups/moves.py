"""What another order changes: the ranks whose groups have other members, the groups that now cross.

Two orders number the same GPUs differently, so a kind keeps its number and size of groups, but not
their members. Where every group of a kind is the same set of ranks, nothing has moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .audit import span
from .grouping import Grouping


@dataclass(frozen=True, eq=False)
class Move:
    """One name under two orders."""

    name: str
    moved: np.ndarray  # bool, shape (world_size,): ranks whose group has other members
    crossing_before: int  # groups on more than one node
    crossing_after: int
    groups: int

    @property
    def ranks(self) -> int:
        return int(np.count_nonzero(self.moved))


def moved_ranks(before: Grouping, after: Grouping) -> np.ndarray:
    """Whether each rank's group has other members than before: bool, shape (world_size,).

    >>> from groups import parse_mesh
    >>> before, after = parse_mesh("tp2-dp2-pp2"), parse_mesh("tp2-pp2-dp2")
    >>> moved_ranks(Grouping("dp", before, "dp"), Grouping("dp", after, "dp")).tolist()
    [True, True, True, True, True, True, True, True]
    >>> bool(moved_ranks(Grouping("tp", before, "tp"), Grouping("tp", after, "tp")).any())
    False
    """
    index = after.index()
    sizes = np.bincount(index[index >= 0], minlength=1)
    moved = index >= 0  # a rank that joins a group has moved, unless its group was the same
    groups = before.groups()
    rows = [groups] if isinstance(groups, np.ndarray) else [np.array([group]) for group in groups]
    for ranks in rows:
        there = index[ranks]
        same = (there == there[:, :1]).all(axis=1) & (there[:, 0] >= 0)
        same &= sizes[there[:, 0]] == ranks.shape[1]
        moved[ranks] = ~same[:, None]
    return moved


def moves(
    before: Mapping[str, Grouping], after: Mapping[str, Grouping], gpus_per_node: int
) -> list[Move]:
    """One move a name that both have, in the order of ``after``."""
    return [
        Move(
            name,
            moved_ranks(before[name], grouping),
            span(before[name], gpus_per_node).crossing,
            span(grouping, gpus_per_node).crossing,
            grouping.num_groups,
        )
        for name, grouping in after.items()
        if name in before and grouping.size > 1
    ]
