"""The GPUs of a cluster, node by node, with the roles of each as bands in its cell.

    a cell     one GPU; a band in it is a role, those that have it first above
    a mark     a band whose rank shares a group of that role with the chosen GPU

Up to 256 GPUs say their numbers; of more a role is a picture of one pixel a band.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groups.gpus import Gpus

from ..palette import KIND_COLOURS, ROLE_CELLS
from . import geometry

NUMBERED = 256
"""The most GPUs whose numbers are shown."""

ROOM = (500.0, 500.0)
"""The largest width and height in pixels."""

SEEN = 1_000_000
"""Pixels of a raster of many GPUs that can be seen: one of the page is up to four of a screen."""

MOST_RUNS = 64
"""Runs of a role up to which they are painted one by one, and not each GPU."""

APART = 4
"""The roles of one GPU that are drawn apart, however small its cell: of more, some cover others."""

WIDER = 0.64
"""How tall a picture of many GPUs is at most, of its width: what follows it stays in sight."""

LEFT = 52.0
"""Pixels for the names of nodes, if cells are too small for frames."""


@dataclass(frozen=True, eq=False)
class RoleBand:
    """A role: its GPUs, and its groups that contain the selected GPU, largest first.

    tone: number of its colour. marks: a tone of kinds, and the GPUs of the group.
    """

    name: str
    tone: int
    gpus: Gpus
    marks: Sequence[tuple[str, np.ndarray]] = ()


@dataclass(frozen=True, eq=False)
class ClusterPicture:
    """All GPUs of a cluster; bands: the roles in the order of their turns. chosen: the selected
    GPU."""

    nodes: int
    gpus_per_node: int
    bands: tuple[RoleBand, ...]
    chosen: int
    room: tuple[float, float] = ROOM

    @property
    def world(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def is_numbered(self) -> bool:
        return self.world <= NUMBERED

    @cached_property
    def tiles(self) -> geometry.Tiles:
        """The nodes of numbered GPUs."""
        return geometry.node_tiles(self.world, self.gpus_per_node, self.room)

    @cached_property
    def grid(self) -> geometry.PhysicalGrid:
        """The grid of many GPUs."""
        wide = geometry.node_columns(self.gpus_per_node)
        tall = -(-self.gpus_per_node // wide)
        ratio = (self.room[0] - LEFT) / self.most_tall
        ideal = max(1.0, math.sqrt(ratio * self.nodes * tall / wide))
        across = geometry.nearest_divisor(self.nodes, ideal, 1.45)
        return geometry.physical_grid(self.world, self.gpus_per_node, across)

    @property
    def most_tall(self) -> float:
        """The largest height of many GPUs in pixels."""
        return min(self.room[1], WIDER * self.room[0])

    @cached_property
    def cell(self) -> float:
        """The side of a cell in pixels."""
        if self.is_numbered:
            return self.tiles.cell
        columns, rows, _ = self.grid.grid
        return min((self.room[0] - LEFT) / columns, self.most_tall / rows, 22.0)

    @property
    def width(self) -> float:
        if self.is_numbered:
            return self.tiles.width
        return LEFT + self.grid.grid.columns * self.cell

    @property
    def height(self) -> float:
        return self.tiles.height if self.is_numbered else self.grid.grid.rows * self.cell

    @cached_property
    def shared(self) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """The number of roles on each GPU, and the position of each role's band in each of its
        cells: uint8."""
        count, places = np.zeros(self.world, dtype=np.uint8), list[np.ndarray]()
        for band in self.bands:
            places.append(count.copy())
            for first, last in band.gpus.spans:
                count[first : last + 1] += 1
        return count, tuple(places)

    def corners(self, gpus: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        """The upper left corners of cells, in pixels."""
        if self.is_numbered:
            return self.tiles.x[gpus], self.tiles.y[gpus]
        rows, columns = (own[gpus] for own in self._spots)
        return LEFT + columns * self.cell, rows * self.cell

    def boxes(self, number: int, gpus: np.ndarray, inner: float) -> tuple[np.ndarray, np.ndarray]:
        """Corners and sizes of a role's bands on some of its GPUs, in cells of this side."""
        count, places = self.shared
        deep = inner / count[gpus]
        x, y = self.corners(gpus)
        pad = (self.cell - inner) / 2
        top = y + pad + places[number][gpus] * deep
        corners = np.stack([x + pad, top], axis=-1)
        return corners, np.stack([np.full(len(gpus), inner), deep], axis=-1)

    @cached_property
    def split(self) -> int:
        """Rows of pixels of a cell: the most roles of any GPU, or as many as can be seen."""
        columns, rows, _ = self.grid.grid
        seen = max(APART, SEEN // (rows * columns))
        return max(1, min(seen, int(self.shared[0].max(initial=1))))

    @property
    def raster(self) -> tuple[int, int]:
        """Rows and columns of pixels of many GPUs."""
        columns, rows, _ = self.grid.grid
        return rows * self.split, columns

    def pixels(self, number: int) -> np.ndarray:
        """Pixels of a role: uint8, shape (rows, columns): 0 without the role, 1 with it, 2 and more
        for its marks."""
        board = np.zeros(self.raster, dtype=np.uint8)
        band = self.bands[number]
        runs = band.gpus.spans
        whole = [slice(first, last + 1) for first, last in runs]
        for gpus in whole if len(runs) <= MOST_RUNS else [band.gpus.array()]:
            self._paint(board, number, gpus, 1)
        for place, (_, gpus) in enumerate(band.marks):
            self._paint(board, number, gpus, 2 + place)
        return board

    @cached_property
    def _spots(self) -> tuple[np.ndarray, np.ndarray]:
        """The row and the column of the cell of each of many GPUs: int32."""
        cells = self.grid.grid.cells().astype(np.int32)
        rows, columns = np.divmod(cells, np.int32(self.grid.grid.columns))
        return rows, columns

    def _paint(self, board: np.ndarray, number: int, gpus: np.ndarray | slice, value: int) -> None:
        count, places = self.shared
        rows, columns = (own[gpus] for own in self._spots)
        each, at = (own[gpus].astype(np.int32) for own in (count, places[number]))
        if (each == self.split).all():
            board[rows * self.split + at, columns] = value
            return
        if self.split == 1:
            board[rows, columns] = value
            return
        for line in range(self.split):
            of_line, line_of = line * each // self.split, at * self.split // each
            here = np.where(each > self.split, line_of == line, of_line == at)
            board[rows[here] * self.split + line, columns[here]] = value

    @property
    def labels(self) -> list[geometry.RowLabel]:
        if self.is_numbered:
            return self.tiles.labels
        return geometry.row_labels(self.grid.grid, self.grid.tile, self.cell, (LEFT, 0.0))

    def fitted(self, room: tuple[float, float]) -> ClusterPicture:
        """The picture fitted to a slide's room."""
        return ClusterPicture(self.nodes, self.gpus_per_node, self.bands, self.chosen, room)

    def legend_of(self, theme: str, words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The colour of each role, and of the selected GPU's groups in it."""
        for band in self.bands:
            yield ROLE_CELLS[theme][band.tone], f"{band.name}: {len(band.gpus):,} GPUs"
        yield "ring", words.get("key_gpu", "GPU {rank}").format(rank=self.chosen)
        tones = dict.fromkeys(tone for band in self.bands for tone, _ in band.marks)
        for tone in tones:
            yield KIND_COLOURS[theme][tone], tone
