"""The matrix of one step: bytes from each sender (row) to each receiver (column).

Up to CELLS ranks a row and a column are one rank; above that they are so many whole nodes that
there are CELLS rows at most, and what stays inside them stands on the diagonal. A part of a job
(training.traffic.parts) has its own ranks alone. Real libraries may take other ways than these
(trees, several rings, switches that reduce); how much leaves a rank for its group is the same, to
whom is not.
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
"""The most rows of a matrix: more could not be distinguished in a picture."""

FEW = 16
"""The largest group for which iterating over all pairs of places is faster than over cells."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Bytes by kind, sender and receiver: float64, shape (kinds, n, n), for n cells of ranks.

    ranks: the ranks of all cells, in order, int64. leaving: bytes that they send to other ranks.
    """

    kinds: tuple[str, ...]
    sent: np.ndarray
    ranks_per_cell: int
    ranks: np.ndarray
    leaving: float = 0.0

    @property
    def total(self) -> np.ndarray:
        """Bytes of all kinds: shape (n, n)."""
        return self.sent.sum(axis=0)

    @property
    def firsts(self) -> np.ndarray:
        """The first rank of each cell: int64, shape (n,)."""
        return self.ranks[:: self.ranks_per_cell]


def matrix(
    rows: Iterable[Traffic],
    every: Mapping[str, Grouping],
    mesh: Mesh,
    gpus_per_node: int,
    ranks: np.ndarray | None = None,
) -> Matrix:
    """The bytes of all transfers of a step, summed by kind; between ``ranks``, by default all
    ranks.

    >>> from groups import parse_mesh
    >>> from groups.megatron import dense_groupings
    >>> mesh = parse_mesh("tp2-dp2")
    >>> row = Traffic("dp", "gradients", "all_reduce", 8.0, (1,), (8.0,), size=2, by_stage=(8.0,),
    ...               total=32.0, across=0.0, times=(0.0,))
    >>> matrix([row], dense_groupings(mesh), mesh, gpus_per_node=8).total.tolist()
    [[0.0, 0.0, 8.0, 0.0], [0.0, 0.0, 0.0, 8.0], [8.0, 0.0, 0.0, 0.0], [0.0, 8.0, 0.0, 0.0]]
    >>> part = matrix([row], dense_groupings(mesh), mesh, 8, np.array([0, 1, 2]))
    >>> part.total.tolist(), part.leaving  # of rank 1, to rank 3
    ([[0.0, 0.0, 8.0], [0.0, 0.0, 0.0], [8.0, 0.0, 0.0]], 8.0)
    """
    ranks = np.arange(mesh.world_size) if ranks is None else ranks
    per_cell = ranks_per_cell(len(ranks), _of_node(ranks, gpus_per_node))
    cells = -(-len(ranks) // per_cell)
    cell = np.full(mesh.world_size, cells)  # all other ranks form one more cell
    cell[ranks] = np.arange(len(ranks)) // per_cell
    kinds, sent = _by_kind(rows, every, mesh, cell, cells)
    leaving = float(sent[:, :cells, cells:].sum())
    return Matrix(kinds, sent[:, :cells, :cells], per_cell, ranks, leaving)


def _by_kind(
    rows: Iterable[Traffic], every: Mapping[str, Grouping], mesh: Mesh, cell: np.ndarray, most: int
) -> tuple[tuple[str, ...], np.ndarray]:
    """The kinds of groups, and the bytes of each from cell to cell: float64, shape (kinds, cells,
    cells). cell: the cell of each rank; bytes between two ranks of cell ``most`` are left out."""
    size = int(cell.max()) + 1
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
        assert grouping is not None  # the rows have a carrier
        groups, by_rank = np.asarray(grouping.groups()), _by_rank(by_stage, mesh)
        if size > most:
            groups = groups[(cell[groups] < most).any(axis=1)]
        if pattern == PAIRWISE:
            sent[kinds.index(kind)] += _pairs(groups, by_rank, cell, size)
        elif pattern == ONCE:
            sent[kinds.index(kind)] += _once(groups, by_rank, once[kind], cell, size)
        else:
            others = np.roll(groups, 1 if pattern == BEFORE else -1, axis=1)
            sent[kinds.index(kind)] += _added(groups, others, by_rank, cell, size)
    return kinds, sent


def _of_node(ranks: np.ndarray, gpus_per_node: int) -> int:
    """The number of the given ranks on each node; 1 if nodes differ."""
    _, counts = np.unique(ranks // gpus_per_node, return_counts=True)
    return int(counts[0]) if (counts[:-1] == counts[0]).all() and counts[-1] <= counts[0] else 1


def ranks_per_cell(world: int, gpus_per_node: int) -> int:
    """Ranks per row: 1, or the ranks of as many nodes as needed for CELLS rows.

    >>> ranks_per_cell(256, 8), ranks_per_cell(264, 8), ranks_per_cell(16_384, 8)
    (1, 8, 64)
    """
    if world <= CELLS:
        return 1
    nodes = -(-world // gpus_per_node)
    return gpus_per_node * -(-nodes // CELLS)


def _by_rank(by_stage: np.ndarray, mesh: Mesh) -> np.ndarray:
    """Bytes sent by each rank, from the bytes per stage: shape (world_size,)."""
    ranks = np.arange(mesh.world_size)
    if len(by_stage) == 1:
        return np.full(len(ranks), by_stage[0])
    at = mesh.names.index("pp")
    return by_stage[ranks // mesh.strides[at] % mesh.sizes[at]]


def _pairs(groups: np.ndarray, sent: np.ndarray, cell: np.ndarray, size: int) -> np.ndarray:
    """All pairs of members of every group; a group's members send equal amounts."""
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
    """Pairs of a rank with its counterparts in the other domains, and from there inside each
    domain."""
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
