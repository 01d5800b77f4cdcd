"""The place of each GPU: node by node in panels, as a folded grid in large worlds.

Where a rank stands is a sum over the axes that number the ranks, each folded once, so a handful of
numbers says it for any world, here and in the page's script (views/client/picture/places.js):

    x = left + sum((c % period) * dx + (c // period) * jump_x),  c = coordinate along an axis

and the same for y with dy and jump_y. A `Grid` is a picture of one cell a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from groups import Mesh
from groups.alternatives import divisors
from groups.kept import kept

COMFORTABLE = 2.0
"""The width over height that folding aims at: that of the space beside the texts."""


class Fold(NamedTuple):
    """One axis that numbers the ranks, folded into lines of ``period`` coordinates; with the
    distance between neighbouring coordinates, and between lines."""

    size: int
    period: int
    dx: float = 0
    dy: float = 0
    jump_x: float = 0
    jump_y: float = 0


def places_of(folds: Sequence[Fold], ranks: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """The positions (x and y) of some ranks.

    >>> x, y = places_of([Fold(4, 2, dx=1, jump_y=1)], np.array([1, 2]))
    >>> x.tolist(), y.tolist()
    ([1.0, 0.0], [0.0, 1.0])
    """
    x = y = np.zeros(np.shape(ranks) or 1)
    stride = 1
    for fold in folds:
        at = ranks // stride % fold.size
        line, place = np.divmod(at, fold.period) if fold.period < fold.size else (0, at)
        for steps, right, down in ((place, fold.dx, fold.dy), (line, fold.jump_x, fold.jump_y)):
            x = x + steps * right if right else x
            y = y + steps * down if down else y
        stride *= fold.size
    return x, y


class Grid(NamedTuple):
    """A grid of ``columns`` x ``rows``, one cell per rank; distances of folds are in cells."""

    columns: int
    rows: int
    folds: tuple[Fold, ...]

    def cells(self) -> np.ndarray:
        """The cell of every rank, row * columns + column: int64, shape (world_size,).

        >>> Grid(2, 2, (Fold(4, 2, dx=1, jump_y=1),)).cells().tolist()
        [0, 1, 2, 3]
        """
        cells = np.zeros(1, dtype=np.int64)
        for fold in self.folds:
            line, place = np.divmod(np.arange(fold.size), fold.period)
            step, jump = (
                x + self.columns * y for x, y in ((fold.dx, fold.dy), (fold.jump_x, fold.jump_y))
            )
            cells = np.add.outer(place * step + line * jump, cells).reshape(-1)
        return cells


def require_whole(mesh: Mesh) -> None:
    """Raises ValueError for a mesh with an offset."""
    if mesh.offset:
        raise ValueError(f"a picture shows a whole job, not a window of it: {mesh}")


def replica_axes(mesh: Mesh) -> tuple[str, ...]:
    """The axes of replicas: dp, or edp in a mesh of experts; for servers also ep_dp and server."""
    named = tuple(name for name in mesh.names if name in ("dp", "edp", "ep_dp", "server"))
    return named or ("dp",)


def node_columns(gpus_per_node: int) -> int:
    """The number of columns of GPUs in a node: up to 8 GPUs in one row, else about twice as wide as
    tall.

    >>> [node_columns(g) for g in (1, 4, 8, 16, 32, 72, 17)]
    [1, 4, 8, 4, 8, 12, 6]
    """
    return gpus_per_node if gpus_per_node <= 8 else _tile_columns(gpus_per_node)


def _tile_columns(gpus_per_node: int) -> int:
    """Columns of a tile about twice as wide as tall, with full rows if possible."""
    ideal = math.sqrt(COMFORTABLE * gpus_per_node)
    even = [d for d in divisors(gpus_per_node) if ideal / 1.6 <= d <= ideal * 1.6]
    return min(
        even, key=lambda d: (round(abs(math.log(d / ideal)), 6), d), default=math.ceil(ideal)
    )


class PhysicalGrid(NamedTuple):
    """A tile for each node, in rows of tiles."""

    grid: Grid
    tile: tuple[int, int]  # columns, rows of one node


def physical_grid(world: int, gpus_per_node: int, across: int | None = None) -> PhysicalGrid:
    """Nodes as tiles: ``across`` in a row, as in a panel; None: as in an overview.

    An overview and each of its tiles are about twice as wide as tall. Its rows have equal length if
    possible, so that ranks a multiple of nodes apart are in one column.
    """
    nodes = -(-world // gpus_per_node)
    wide = node_columns(gpus_per_node) if across else _tile_columns(gpus_per_node)
    tall = -(-gpus_per_node // wide)
    ideal = max(1, round(math.sqrt(COMFORTABLE * nodes * tall / wide)))
    across = across or nearest_divisor(nodes, 1.06 * ideal, 1.45)
    columns, rows = across * wide, -(-nodes // across) * tall
    local = Fold(gpus_per_node, wide, dx=1, jump_y=1)
    node = Fold(nodes, across, dx=wide, jump_y=tall)
    return PhysicalGrid(Grid(columns, rows, (local, node)), (wide, tall))


RowLabel = tuple[float, float, str]
"""The name of the first node of a row: right edge, middle, text."""

LABEL_ROOM = 14.0
"""Pixels that a label needs."""


def row_labels(
    grid: Grid,
    tile: tuple[int, int],
    cell: float,
    corner: tuple[float, float],
    room: float = LABEL_ROOM,
) -> list[RowLabel]:
    """A label for each row of tiles that has room for one; corner: left and top of the cells."""
    tall = tile[1] * cell
    every = max(1, -int(-room // tall))
    return [
        (corner[0] - 6, corner[1] + (row + 0.5) * tall, f"N{row * (grid.columns // tile[0])}")
        for row in range(0, grid.rows // tile[1], every)
    ]


@dataclass(frozen=True, eq=False)
class Tiles:
    """Nodes as framed tiles with space between them, in pixels."""

    cell: float
    x: np.ndarray  # left edge of each rank's cell, shape (world,)
    y: np.ndarray  # top edge
    frames: tuple[tuple[float, float, float, float], ...]  # x, y, width, height of each node
    across: int  # nodes in a row
    width: float
    height: float

    @property
    def labels(self) -> list[RowLabel]:
        return [
            (GUTTER - 6, y + height / 2, f"N{node}")
            for node, (_, y, _, height) in enumerate(self.frames)
            if node % self.across == 0
        ]


PANEL = (720.0, 800.0)
"""The size of a panel on the page, in pixels."""

LETTERS = 1.3
"""The scale of a picture's letters on a slide relative to the page, which leaves `fitted` less
room."""

GAP = 2.0
"""Pixels between two cells of a tile."""

LARGEST_CELL = 64.0
GUTTER = 34.0
ROOMY = 16
"""The most nodes whose frames have wide margins."""


@kept
def node_tiles(world: int, gpus_per_node: int, room: tuple[float, float] = PANEL) -> Tiles:
    """The tiles of up to 256 GPUs, as large as the room allows.

    Cached, as `touching` is, for the next panel: all kinds of a layout have the same positions.
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


@kept
def touching(grid: Grid, world: int) -> np.ndarray:
    """Pairs of ranks that are neighbours in a grid: int64, shape (pairs, 2).

    Ranks on both sides of the thin gap between two nodes count as neighbours too.

    >>> touching(physical_grid(4, 2, across=1).grid, 4).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    cells = np.full(grid.rows * grid.columns, -1, dtype=np.int64)
    cells[grid.cells()[:world]] = np.arange(world)
    board = cells.reshape(grid.rows, grid.columns)
    beside = np.stack([board[:, :-1], board[:, 1:]], axis=-1).reshape(-1, 2)
    below = np.stack([board[:-1], board[1:]], axis=-1).reshape(-1, 2)
    pairs = np.concatenate([beside, below])
    return pairs[(pairs >= 0).all(axis=1)]


def nearest_divisor(count: int, ideal: float, near: float) -> int:
    """The divisor of ``count`` nearest to ``ideal`` by ratio, or ``ideal`` if none is near."""
    best = min(divisors(count), key=lambda d: abs(math.log(d / ideal)))
    if 1 / near <= best / ideal <= near:
        return best
    return min(count, max(1, round(ideal)))
