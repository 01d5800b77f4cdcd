"""What to draw, as plain data that a test can read: panels for small worlds, overviews for large.

A `Panel` colours every GPU by its group of one kind. Above PANEL_LIMIT GPUs that would be a quilt
of repeating colours, so an `Overview` colours the groups of one chosen rank, on the nodes as they
stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from groups import Mesh, group_index
from groups.grouping import Grouping
from groups.mesh import require_rank

from ..palette import KIND_COLOURS, PALETTE, ROWS, colour_indices
from . import geometry
from .geometry import GAP
from .marked import Mark, MarkedCells, Places, marks_of

PANEL_LIMIT = 256
"""The most GPUs with a panel for each kind."""

RANK_AND_INDEX, RANK, COLOUR = 40.0, 22.0, 4.0
"""Pixels a cell needs to show rank and group index, the rank alone, or its own gap."""

BLOCK_ROOM = 8.0
"""The least pixels of a node that is separated from the next."""

LONGEST_KIND = 8
"""The longest name of a kind that each cell repeats, in letters."""

OVERVIEW_WIDTH, OVERVIEW_HEIGHT = 720.0, 560.0
OVERVIEW_LEFT, OVERVIEW_TOP = 78.0, 18.0
"""Pixels left of an overview's cells and above them."""


@dataclass(frozen=True, eq=False)
class Panel(geometry.Tiles):
    """The groups of one kind on the nodes; arrays have one entry per rank, lengths are pixels."""

    tiles: geometry.Tiles  # shared by all kinds of a layout
    grouping: Grouping
    gpus_per_node: int
    group: np.ndarray  # -1 for a rank that is in none
    colour: np.ndarray  # index into palette.PALETTE; -1 with no group

    @cached_property
    def kind(self) -> str:
        return self.grouping.name

    @property
    def is_readable(self) -> bool:
        return self.shows_rank

    def fitted(self, room: tuple[float, float]) -> Panel:
        """The panel with its nodes arranged to suit a slide's room."""
        return panel(self.grouping, self.gpus_per_node, room)

    @property
    def shows_rank(self) -> bool:
        return self.cell >= RANK

    @property
    def shows_index(self) -> bool:
        return self.cell >= RANK_AND_INDEX

    @property
    def side(self) -> float:
        return self.cell - GAP

    def index_text(self, group: int) -> str:
        """The text of a cell's group: the kind and its index, or a dash if it is in none.

        A colon separates a name that ends in a digit from the index, as in hcp-l0:3; a long name is
        left out, as in #3.
        """
        if group < 0:
            return "–"
        kind = self.kind
        if len(kind) > LONGEST_KIND:
            return f"#{group}"
        return f"{kind}{':' if kind[-1].isdigit() else ''}{group}"

    @cached_property
    def text_sizes(self) -> tuple[float, float]:
        """Font sizes, in pixels, of the rank and of the group in a cell; 0 where not shown."""
        longest = len(self.index_text(self.grouping.num_groups - 1))
        return (
            min(20.0, self.side * 0.42) if self.shows_rank else 0.0,
            min(15.0, self.side * 0.27, self.side * 1.45 / longest) if self.shows_index else 0.0,
        )


class Gap(NamedTuple):
    """Lines of ``width`` pixels before every ``columns`` columns and ``rows`` rows; 0: none."""

    name: str  # what it separates: "cells" or "blocks"
    columns: int
    rows: int
    width: float


@dataclass(frozen=True, eq=False)
class Overview(MarkedCells):
    """A large world with a cell for each GPU: two greys by stage, the selected rank's groups on
    top.

    ``place`` is the cell of each rank, row * columns + column; ``tile`` the columns and rows of a
    node. Lines are column or row numbers before which a gap is drawn.
    """

    grid: geometry.Grid
    tile: tuple[int, int]
    cell: float
    left: float
    top: float
    place: np.ndarray
    stage: np.ndarray
    num_stages: int
    rank: int
    marks: tuple[Mark, ...]
    sizes: tuple[tuple[str, int], ...]  # ranks of a group of each kind that may be marked

    seen = 3.0

    @property
    def labels(self) -> list[geometry.RowLabel]:
        left = self.left - self.ring / 2  # beside the ring of a rank at the edge
        return geometry.row_labels(self.grid, self.tile, self.cell, (left, self.top))

    def corners(self, ranks: np.ndarray | int) -> Places:
        rows, columns = np.divmod(self.place[ranks], self.grid.columns)
        return self.left + columns * self.cell, self.top + rows * self.cell

    @property
    def sides(self) -> tuple[float, float]:
        return self.cell, self.cell

    @property
    def board_shape(self) -> tuple[int, int]:
        return self.grid.rows, self.grid.columns

    def fitted(self, room: tuple[float, float]) -> Overview:
        """The overview with smaller cells, so that a slide has larger letters and fewer labels."""
        wide, tall = room[0] - self.left, room[1] - self.top
        cells = wide / self.grid.columns, tall / self.grid.rows
        return replace(self, cell=min(self.cell, *cells))

    def legend_of(self, theme: str, words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Swatches with meanings: of the groups, the selected rank, the stages."""
        for mark in self.marks:
            text = words["key_group"].format(kind=mark.kind, count=f"{len(mark.ranks):,}")
            yield KIND_COLOURS[theme][mark.tone], text
        yield "ring", words["key_gpu"].format(rank=self.rank)
        if self.num_stages > 1:
            yield "-".join(ROWS[theme]), words["key_stages"]

    @property
    def width(self) -> float:
        return self.left + self.grid.columns * self.cell

    @property
    def height(self) -> float:
        return self.top + self.grid.rows * self.cell

    def base_pixels(self) -> np.ndarray:
        """uint8, shape (rows, columns): 0 without a GPU, else 1 + the shade of its stage, of which
        two alternate as in the picture of the job."""
        board = np.zeros(self.grid.rows * self.grid.columns, dtype=np.uint8)
        board[self.place] = 1 + self.stage % len(ROWS["light"])
        return board.reshape(self.grid.rows, self.grid.columns)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Gaps between cells, wider ones between nodes, if there is room for them.

        A width is limited in pixels and as a share of a cell.
        """
        kinds = (
            ("cells", (1, 1), COLOUR, 1.0, 0.2),
            ("blocks", self.tile, BLOCK_ROOM, 2.0, 0.3),
        )
        gaps = []
        for name, size, room, pixels, share in kinds:
            across, down = (side if side * self.cell >= room else 0 for side in size)
            if (name == "cells" or size != (1, 1)) and (across or down):
                gaps.append(Gap(name, across, down, min(pixels, share * self.cell)))
        return tuple(gaps)

    def lines(self, gap: Gap) -> tuple[np.ndarray, np.ndarray]:
        """X of a gap's vertical lines and y of its horizontal lines, including the edges."""
        xs, ys = (
            np.append(np.arange(0, count, step), count) if step else np.empty(0)
            for step, count in ((gap.columns, self.grid.columns), (gap.rows, self.grid.rows))
        )
        return self.left + xs * self.cell, self.top + ys * self.cell

    @property
    def ring(self) -> float:
        """The radius of the ring round the selected rank: larger than the cell, and visible."""
        return max(9.0, self.cell * 0.62)


def panel(
    grouping: Grouping, gpus_per_node: int, room: tuple[float, float] = geometry.PANEL
) -> Panel:
    """The panel of one kind.

    >>> from groups import parse_mesh
    >>> from groups.grouping import plain
    >>> panel(plain(parse_mesh("tp2-dp2"), "tp"), gpus_per_node=4).group.tolist()
    [0, 0, 1, 1]
    """
    geometry.require_whole(grouping.mesh)
    world = grouping.world_size
    tiles = geometry.node_tiles(world, gpus_per_node, room)
    group = colour = grouping.index()
    if grouping.num_groups > len(PALETTE):  # colours repeat
        grid = geometry.physical_grid(world, gpus_per_node, tiles.across).grid
        colour = np.where(group < 0, -1, colour_indices(group, geometry.touching(grid, world)))
    return Panel(
        **vars(tiles),
        tiles=tiles,
        grouping=grouping,
        gpus_per_node=gpus_per_node,
        group=group,
        colour=colour,
    )


def overview(
    mesh: Mesh,
    groupings: Sequence[Grouping],
    gpus_per_node: int,
    rank: int,
    tone: Mapping[str, str] | None = None,
) -> Overview:
    """The nodes with the groups of ``rank`` marked.

    The groups may be of another mesh over the same ranks. tone: by name, as in `marks_of`.

    Errors: LayoutError if there is no such rank.
    """
    geometry.require_whole(mesh)
    rank = require_rank(mesh, rank)
    others = [name for name in mesh.names if name != "pp"]
    nodes = geometry.physical_grid(mesh.world_size, gpus_per_node)
    room = OVERVIEW_WIDTH - OVERVIEW_LEFT
    return Overview(
        grid=nodes.grid,
        tile=nodes.tile,
        cell=min(room / nodes.grid.columns, OVERVIEW_HEIGHT / nodes.grid.rows, 22.0),
        left=OVERVIEW_LEFT,
        top=OVERVIEW_TOP,
        place=nodes.grid.cells()[: mesh.world_size],
        stage=group_index(mesh, "-".join(others)) if others else np.arange(mesh.world_size),
        num_stages=mesh.size("pp"),
        rank=rank,
        marks=marks_of(groupings, rank, tone),
        sizes=tuple((grouping.name, grouping.size) for grouping in groupings),
    )
