"""A heat map of the GPUs on their nodes, as plain data.

The fill goes from pale to dark in LEVELS steps of an equal share of the whole; what is above the
whole has a colour of its own. Small worlds print rank and amount in each cell, large ones are one
pixel a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..palette import HEAT as LEVELS
from ..palette import HEAT_SHADES, SHADES
from . import geometry
from .geometry import GAP
from .groups import PANEL_LIMIT

WIDTH, HEIGHT = 720.0, 420.0
"""The largest picture of a large world, in pixels."""

READABLE = 18.0
"""The least pixels of a cell with its rank."""

RING = 6.0
"""The least radius of a ring round a pixel."""

LEFT, LABEL_ROOM = 60.0, 18.0
"""Pixels left of such a picture, and that the label of a row of nodes needs."""


def levels(share: np.ndarray) -> np.ndarray:
    """The level of each share of the whole: 0 to LEVELS - 1, and LEVELS above the whole.

    >>> levels(np.array([0.0, 0.49, 1.0, 1.01])).tolist()
    [0, 3, 7, 8]
    """
    within = np.minimum((share * LEVELS).astype(np.int64), LEVELS - 1)
    return np.where(share > 1, LEVELS, within)


@dataclass(frozen=True, eq=False)
class Heat:
    """Every GPU on its node, coloured by its level.

    level: of each rank, int64, shape (world,). amounts: text under the number of each rank; not
    shown for a large world. legend: shades and their meanings. shades: names of the colours of the
    levels (`palette.SHADES`). marked: ranks that get a ring in a large world.
    """

    level: np.ndarray
    amounts: Sequence[str]
    gpus_per_node: int
    legend: tuple[tuple[str, str], ...] = ()
    shades: tuple[str, ...] = HEAT_SHADES
    marked: tuple[int, ...] = ()
    room: tuple[float, float] = geometry.PANEL

    @property
    def is_readable(self) -> bool:
        """Whether ranks are readable, or the world is too large to show them anyway."""
        return self.is_large or self.tiles.cell - GAP >= READABLE

    def fitted(self, room: tuple[float, float]) -> Heat:
        """The heat map with its nodes arranged to suit a slide's room."""
        return replace(self, room=room)

    def legend_of(self, theme: str, _: object) -> list[tuple[str, str]]:
        return [(SHADES[theme][shade], text) for shade, text in self.legend]

    @property
    def is_large(self) -> bool:
        return len(self.level) > PANEL_LIMIT

    @cached_property
    def tiles(self) -> geometry.Tiles:
        return geometry.node_tiles(len(self.level), self.gpus_per_node, self.room)

    @cached_property
    def nodes(self) -> geometry.PhysicalGrid:
        return geometry.physical_grid(len(self.level), self.gpus_per_node)

    @property
    def cell(self) -> float:
        """The side of a large world's pixels."""
        grid = self.nodes.grid
        return min(WIDTH / grid.columns, HEIGHT / grid.rows)

    @property
    def left(self) -> float:
        """The left edge of the cells, right of their rows' labels."""
        return LEFT if self.is_large else geometry.GUTTER

    @property
    def width(self) -> float:
        return LEFT + self.nodes.grid.columns * self.cell if self.is_large else self.tiles.width

    @property
    def height(self) -> float:
        return self.nodes.grid.rows * self.cell + 8 if self.is_large else self.tiles.height

    @property
    def labels(self) -> list[geometry.RowLabel]:
        """The first node of each row that has room for it."""
        if not self.is_large:
            return self.tiles.labels
        nodes = self.nodes
        return geometry.row_labels(nodes.grid, nodes.tile, self.cell, (LEFT, 0.0), LABEL_ROOM)

    @property
    def rings(self) -> list[tuple[float, float, float]]:
        """Centre and radius of a ring round each marked pixel, which is invisible alone."""
        grid, radius = self.nodes.grid, max(RING, self.cell)
        spots = (divmod(int(cell), grid.columns) for cell in grid.cells()[list(self.marked)])
        return [
            (self.left + (column + 0.5) * self.cell, (row + 0.5) * self.cell, radius)
            for row, column in spots
        ]

    def board(self) -> np.ndarray:
        """One pixel per GPU: 0 without a GPU, else 1 + its level: uint8, shape (rows, columns)."""
        grid = self.nodes.grid
        board = np.zeros(grid.rows * grid.columns, dtype=np.uint8)
        board[grid.cells()[: len(self.level)]] = 1 + self.level
        return board.reshape(grid.rows, grid.columns)


def cell_texts(rank: int | str, amount: str, side: float) -> list[tuple[float, float, str]]:
    """The texts in a cell: baseline, font size and text of each line; none in a small one.

    >>> [text for _, _, text in cell_texts(7, "62", side=40)]
    ['7', '62']
    >>> cell_texts(7, "62", side=16)
    []
    """
    if side < READABLE:
        return []
    if side < 34:
        size = min(14.0, side * 0.43)
        return [(side / 2 + size * 0.36, size, str(rank))]
    small = min(side * 0.26, side * 1.5 / len(amount))
    return [(side * 0.46, side * 0.36, str(rank)), (side * 0.82, small, amount)]
