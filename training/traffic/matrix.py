"""Who sends how much to whom in one step: bytes from each sender (row) to each receiver (column).

Up to CELLS ranks a row and a column are one rank; above that they are so many whole nodes that
there are CELLS rows at most, and what stays inside them stands on the diagonal. Real libraries may
take other ways than these (trees, several rings, switches that reduce); how much leaves a rank for
its group is the same, to whom is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from groups.grouping import Grouping
from groups.mesh import Mesh

from .demands import BEFORE, ONCE, PAIRWISE
from .per_step import Traffic, carrier

CELLS = 256
"""Rows of a matrix at most: more could not be told apart in a picture."""

FEW = 16
"""Members up to which going through all pairs of places is quicker than through cells."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Bytes by kind, sender and receiver: float64, shape (kinds, n, n); n cells of some ranks."""

    kinds: tuple[str, ...]
    sent: np.ndarray
    ranks_per_cell: int

    @property
    def total(self) -> np.ndarray:
        """Bytes of all kinds: shape (n, n)."""
        return self.sent.sum(axis=0)


def matrix(
    rows: Iterable[Traffic], every: Mapping[str, Grouping], mesh: Mesh, gpus_per_node: int
) -> Matrix:
    """The bytes of all transfers of a step, added up by kind.

    >>> from groups import parse_mesh
    >>> from groups.megatron import dense_groupings
    >>> mesh = parse_mesh("tp2-dp2")
    >>> row = Traffic("dp", "gradients", "all_reduce", 8.0, (1,), (8.0,), size=2, by_stage=(8.0,),
    ...               total=32.0, across=0.0, seconds=0.0)
    >>> matrix([row], dense_groupings(mesh), mesh, gpus_per_node=8).total.tolist()
    [[0.0, 0.0, 8.0, 0.0], [0.0, 0.0, 0.0, 8.0], [8.0, 0.0, 0.0, 0.0], [0.0, 8.0, 0.0, 0.0]]
    """
    per_cell = ranks_per_cell(mesh.world_size, gpus_per_node)
    cell = np.arange(mesh.world_size) // per_cell
    size = int(cell[-1]) + 1
    alike: dict[tuple[str, str], np.ndarray] = {}  # bytes by stage of one kind in one pattern
    once: dict[str, Traffic] = {}
    for row in rows:
        key = (row.kind, row.pattern)
        alike[key] = alike.get(key, 0.0) + np.array(row.by_stage)
        if row.pattern == ONCE:
            once[row.kind] = row  # whose bytes leave domains as those of every other of its kind
    kinds = tuple(dict.fromkeys(kind for kind, _ in alike))
    sent = np.zeros((len(kinds), size, size))
    for (kind, pattern), by_stage in alike.items():
        grouping = carrier(every, kind)
        assert grouping is not None  # it carries the rows
        groups, by_rank = np.asarray(grouping.groups()), _by_rank(by_stage, mesh)
        if pattern == PAIRWISE:
            sent[kinds.index(kind)] += _pairs(groups, by_rank, cell, size)
        elif pattern == ONCE:
            sent[kinds.index(kind)] += _once(groups, by_rank, once[kind], cell, size)
        else:
            others = np.roll(groups, 1 if pattern == BEFORE else -1, axis=1)
            sent[kinds.index(kind)] += _added(groups, others, by_rank, cell, size)
    return Matrix(kinds, sent, per_cell)


def ranks_per_cell(world: int, gpus_per_node: int) -> int:
    """Ranks of one row: 1, or the ranks of so many nodes that CELLS rows hold all.

    >>> ranks_per_cell(256, 8), ranks_per_cell(264, 8), ranks_per_cell(16_384, 8)
    (1, 8, 64)
    """
    if world <= CELLS:
        return 1
    nodes = -(-world // gpus_per_node)
    return gpus_per_node * -(-nodes // CELLS)


def _by_rank(by_stage: np.ndarray, mesh: Mesh) -> np.ndarray:
    """What each rank sends, by its pipeline stage: shape (world_size,)."""
    ranks = np.arange(mesh.world_size)
    if len(by_stage) == 1:
        return np.full(len(ranks), by_stage[0])
    at = mesh.names.index("pp")
    return by_stage[ranks // mesh.strides[at] % mesh.sizes[at]]


def _pairs(groups: np.ndarray, sent: np.ndarray, cell: np.ndarray, size: int) -> np.ndarray:
    """All pairs of members of every group; a group's members send alike."""
    count, members = groups.shape
    if members <= FEW:
        each = sent / (members - 1)
        turns = (np.roll(groups, -turn, axis=1) for turn in range(1, members))
        return sum(_added(groups, to, each, cell, size) for to in turns)  # type: ignore[return-value]
    inside = np.zeros((count, size))  # members of each group in each cell
    np.add.at(inside, (np.arange(count)[:, None], cell[groups]), 1.0)
    each = sent[groups[:, 0]] / (members - 1)
    between = (inside * each[:, None]).T @ inside
    between[np.diag_indices(size)] -= each @ inside  # nobody sends to itself
    return between


def _once(
    groups: np.ndarray, sent: np.ndarray, row: Traffic, cell: np.ndarray, size: int
) -> np.ndarray:
    """To the members of one's own place in the other domains, and on inside of these."""
    if groups.shape[1] % row.near:  # cut unevenly by domains
        return _pairs(groups, sent, cell, size)
    domains = groups.reshape(-1, row.near)
    places = groups.reshape(len(groups), -1, row.near).swapaxes(1, 2)
    between = np.zeros((size, size))
    if row.leaving < 1.0 and row.near > 1:
        between += _pairs(domains, sent * (1.0 - row.leaving), cell, size)
    if row.leaving > 0.0:
        between += _pairs(places.reshape(-1, places.shape[2]), sent * row.leaving, cell, size)
    return between


def _added(
    senders: np.ndarray, receivers: np.ndarray, sent: np.ndarray, cell: np.ndarray, size: int
) -> np.ndarray:
    at = cell[senders] * size + cell[receivers]
    between = np.bincount(at.reshape(-1), sent[senders].reshape(-1), minlength=size * size)
    return between.reshape(size, size)
