"""Where each GPU is drawn: node by node for panels, as a folded grid for large worlds.

A `Grid` is a picture of one cell a GPU. The cell of a rank is a sum over the axes that number the
ranks, each folded once, so a handful of integers describes it for any world size, here and in the
page's own script:

    cell = sum((c % period) * step + (c // period) * jump),  c = coordinate along the axis

where cell = row * columns + column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from groups import Mesh
from groups.alternatives import divisors

COMFORTABLE = 2.0
"""Width over height that folding aims at: that of the space beside the texts."""


@dataclass(frozen=True)
class Fold:
    """One axis that numbers the ranks, laid out in lines of ``period`` coordinates."""

    size: int
    period: int
    step: int
    jump: int


@dataclass(frozen=True)
class Grid:
    """One cell a rank on ``columns`` x ``rows``; axes fastest first, as in the mesh."""

    columns: int
    rows: int
    folds: tuple[Fold, ...]

    def cells(self) -> np.ndarray:
        """The cell of every rank, row * columns + column: int64, shape (world_size,)."""
        total = np.zeros(1, dtype=np.int64)
        for fold in self.folds:
            at = np.arange(fold.size, dtype=np.int64)
            line = (at % fold.period) * fold.step + (at // fold.period) * fold.jump
            total = (line[:, None] + total[None, :]).reshape(-1)
        return total


def data_axis(mesh: Mesh) -> str:
    """The axis of replicas: dp, or edp in a mesh of experts."""
    return "edp" if "edp" in mesh.names else "dp"


def node_columns(gpus_per_node: int) -> int:
    """How many GPUs of a node stand side by side: all of up to 8, else about twice as wide as tall.

    >>> [node_columns(g) for g in (1, 4, 8, 16, 32, 72, 17)]
    [1, 4, 8, 4, 8, 12, 6]
    """
    return gpus_per_node if gpus_per_node <= 8 else _tile_columns(gpus_per_node)


def _tile_columns(gpus_per_node: int) -> int:
    """Columns of a tile about twice as wide as tall, full rows if there are any such."""
    ideal = math.sqrt(COMFORTABLE * gpus_per_node)
    even = [d for d in divisors(gpus_per_node) if ideal / 1.6 <= d <= ideal * 1.6]
    return min(
        even, key=lambda d: (round(abs(math.log(d / ideal)), 6), d), default=math.ceil(ideal)
    )


@dataclass(frozen=True)
class PhysicalGrid:
    """One tile a node, tiles in rows."""

    grid: Grid
    tile: tuple[int, int]  # columns, rows of one node
    across: int  # tiles in a row


def physical_grid(world: int, gpus_per_node: int, across: int | None = None) -> PhysicalGrid:
    """Lay out nodes as tiles: ``across`` in a row, as in a panel, or as an overview.

    An overview is about twice as wide as tall, and so is each of its tiles; its rows are of equal
    length where that can be, so that what is a node's multiple apart stands in a column.
    """
    nodes = -(-world // gpus_per_node)
    wide = node_columns(gpus_per_node) if across else _tile_columns(gpus_per_node)
    tall = -(-gpus_per_node // wide)
    ideal = max(1, round(math.sqrt(COMFORTABLE * nodes * tall / wide)))
    across = across or _nearest_divisor(nodes, 1.06 * ideal, near=1.45)
    columns, rows = across * wide, -(-nodes // across) * tall
    local = Fold(gpus_per_node, wide, 1, columns)
    node = Fold(nodes, across, wide, tall * columns)
    return PhysicalGrid(Grid(columns, rows, (local, node)), (wide, tall), across)


@dataclass(frozen=True)
class Tiles:
    """Nodes as framed tiles with room between them, in pixels."""

    cell: float
    x: np.ndarray  # left edge of each rank's cell, shape (world,)
    y: np.ndarray  # top edge
    frames: tuple[tuple[float, float, float, float], ...]  # x, y, width, height of each node
    across: int  # nodes in a row
    width: float
    height: float


PANEL = (720.0, 800.0)
"""Room of a panel on the page: pixels across and down."""

LETTERS = 1.3
"""How much larger than on the page the letters of a picture are on a slide."""

LARGEST_CELL = 64.0
GUTTER = 34.0
ROOMY = 16
"""Nodes up to which frames have wide margins; with more, the cells need the room."""


@lru_cache(maxsize=32)
def node_tiles(world: int, gpus_per_node: int, room: tuple[float, float] = PANEL) -> Tiles:
    """Place up to 256 GPUs as large as the room allows.

    Kept, as `touching` is, for the next panel: all kinds of a layout stand in the same places.
    """
    nodes = -(-world // gpus_per_node)
    wide = node_columns(gpus_per_node)
    tall = -(-gpus_per_node // wide)
    gap, margin = (8.0, 4.0) if nodes <= ROOMY else (4.0, 2.0)

    def cell_size(across: int) -> float:
        down = -(-nodes // across)
        room_x = room[0] - GUTTER - across * (gap + 2 * margin)
        room_y = room[1] - down * (gap + 2 * margin)
        return min(LARGEST_CELL, room_x / (across * wide), room_y / (down * tall))

    across = max(range(1, nodes + 1), key=lambda n: (math.floor(cell_size(n)), -n))
    cell = float(math.floor(cell_size(across)))
    ranks = np.arange(world)
    node, local = np.divmod(ranks, gpus_per_node)
    tile_width = wide * cell + 2 * margin
    tile_height = tall * cell + 2 * margin
    left = GUTTER + (node % across) * (tile_width + gap)
    top = gap / 2 + (node // across) * (tile_height + gap)
    first = ranks[local == 0]
    sizes = np.minimum(gpus_per_node, world - first)
    frames = tuple(
        (float(left[r]), float(top[r]), tile_width, 2 * margin + cell * -(-int(n) // wide))
        for r, n in zip(first, sizes)
    )
    return Tiles(
        cell=cell,
        x=left + margin + (local % wide) * cell,
        y=top + margin + (local // wide) * cell,
        frames=frames,
        across=across,
        width=GUTTER + across * (tile_width + gap),
        height=float(-(-nodes // across)) * (tile_height + gap),
    )


@lru_cache(maxsize=32)
def touching(grid: Grid, world: int) -> np.ndarray:
    """Pairs of ranks side by side or above each other in a grid: int64, shape (pairs, 2).

    Across the gap between two nodes counts as touching too: it is thin.

    >>> touching(physical_grid(4, 2, across=1).grid, 4).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    board = np.full(grid.rows * grid.columns, -1, dtype=np.int64)
    board[grid.cells()[:world]] = np.arange(world)
    board = board.reshape(grid.rows, grid.columns)
    beside = np.stack([board[:, :-1], board[:, 1:]], axis=-1).reshape(-1, 2)
    below = np.stack([board[:-1], board[1:]], axis=-1).reshape(-1, 2)
    pairs = np.concatenate([beside, below])
    return pairs[(pairs >= 0).all(axis=1)]


def _nearest_divisor(count: int, ideal: float, near: float = 2.5) -> int:
    """The divisor of ``count`` nearest to ``ideal`` by ratio, or ``ideal`` if none is near."""
    best = min(divisors(count), key=lambda d: abs(math.log(d / ideal)))
    if 1 / near <= best / ideal <= near:
        return best
    return min(count, max(1, round(ideal)))
