"""The picture of the job as plain data: the logical mesh, nested.

    a cell      one GPU
    a box       a shard of the model: one tp group (of experts: one etp x ep block)
    a column    a replica of the model: its boxes of every cp coordinate, at every stage
    a row       a pipeline stage

Where each GPU stands is worked out in `job_plan`, from the coordinates of the mesh alone: any order
of the axes gives the same picture with other numbers in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from groups import Mesh
from groups.grouping import Grouping
from groups.mesh import require_rank

from ..palette import GROUP_INK, KIND_COLOURS
from .cell_lines import CellLines, cell_lines, node_end_runs
from .geometry import places_of, require_whole
from .job_plan import WHOLE, JobPlan, Label, Rectangle, largest_plan
from .marked import Mark, MarkedCells, Places, marks_of

SHADES = 2
"""The number of alternating shades of rows; a label stands for as many rows."""

NEAR, SEEN = 3.0, 12.0
"""Pixels from the selected rank's cell to the frame round it, and its least side."""

LEAST = 10.3
"""Pixels of a number's letters that a slide enlarges to ten points."""

FEW = 8
"""The most members of a group that lines join and the legend lists: of more, cells are coloured."""

ACROSS = 1024
"""The most columns of pixels in a picture: of more cells than that, several share one."""

Segment = tuple[float, float, float, float]
"""x and y of both ends."""


class JobLine(NamedTuple):
    """A line that joins the members of one group."""

    tone: str
    segments: tuple[Segment, ...]
    is_dotted: bool  # from stage to stage, where the next stage waits for messages


@dataclass(frozen=True, eq=False)
class JobPicture(MarkedCells):
    """One mesh with the groups of one rank marked; lengths are pixels, arrays have an entry per
    rank.

    ``x`` and ``y`` are the upper left corner of each cell.
    """

    mesh: Mesh
    rank: int
    plan: JobPlan
    marks: tuple[Mark, ...]
    levels: Mapping[str, int]  # of each kind's line, from the nearest to the cells on
    box_kind: str  # the kind whose groups are boxes; empty: none that is marked
    gpus_per_node: int
    layers: tuple[str, ...] = ()  # of each stage, where a model is set
    words: Mapping[str, str] = field(default_factory=dict)  # of each name of a label

    left, top, seen = JobPlan.left, JobPlan.top, 0.0  # as wide as they are

    def fitted(self, room: tuple[float, float]) -> JobPicture:
        """The picture fitted to a slide's room with the same folds; folded anew if its numbers
        would be unreadable, or if its replicas then need fewer bands and are not smaller."""
        same, anew = self.plan.fitted(room), largest_plan(self.mesh, room)
        plan = replace(self, plan=same)
        if self.is_numbered:
            is_better = plan.number_size < LEAST
        else:
            is_better = anew.bands < same.bands and anew.scale >= same.scale
        return replace(self, plan=anew) if is_better else plan

    def legend_of(self, theme: str, words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """A colour and its meaning, for each group of the selected rank."""
        yield GROUP_INK[theme], words["key_gpu"].format(rank=self.rank)
        places = [*self.levels]
        for mark in sorted(self.marks, key=lambda mark: places.index(mark.kind)):
            ranks = ", ".join(map(str, sorted(mark.ranks.tolist())[: FEW + 1]))
            name = "key_ranks" if len(mark.ranks) <= FEW else "key_group"
            count = f"{len(mark.ranks):,}"
            text = words[name].format(kind=mark.kind, ranks=ranks, count=count)
            yield KIND_COLOURS[theme][mark.tone], text

    @property
    def is_numbered(self) -> bool:
        return not self.plan.metrics.is_plain

    @property
    def width(self) -> float:
        return self.plan.width

    @property
    def height(self) -> float:
        return self.plan.height

    @property
    def sides(self) -> tuple[float, float]:
        return self.plan.cell

    @property
    def number_size(self) -> float:
        """The font size of a numbered cell, in pixels."""
        wide, tall = self.sides
        digits = max(2, len(str(self.num_cells - 1)))
        return min(15.0, wide * 1.37 / digits, tall * 0.72)

    @property
    def num_cells(self) -> int:
        return self.mesh.world_size

    @property
    def jump(self) -> float:
        return self.plan.jump[0] if self.plan.bands[0] > 1 else 0.0

    def corners(self, ranks: np.ndarray | int) -> Places:
        x, y = places_of(self.plan.folds, ranks)
        return self.left + self.plan.origin[0] + x, self.top + self.plan.origin[1] + y

    @cached_property
    def _every_corner(self) -> Places:
        return self.corners(np.arange(self.mesh.world_size))

    @property
    def x(self) -> np.ndarray:
        return self._every_corner[0]

    @property
    def y(self) -> np.ndarray:
        return self._every_corner[1]

    @cached_property
    def board_shape(self) -> tuple[int, int]:
        """Rows and columns of plain cells, including those between bands."""
        if self.is_flat:
            stages = self.mesh.size("pp")
            return stages, self.mesh.world_size // stages
        columns, rows = (
            int(np.rint((lines.places[-1] - start) / side)) + 1
            for lines, start, side in zip(self.lines_of_cells, (self.left, self.top), self.sides)
        )
        return rows, columns

    @property
    def stage(self) -> np.ndarray:
        size, stride = self.mesh.size("pp"), _stride(self.mesh, "pp")
        return np.arange(self.mesh.world_size) // stride % size

    def base_pixels(self) -> np.ndarray:
        """uint8, shape (rows, columns): 0 without a GPU, else 1 + the shade of its row."""
        board = np.zeros(self.board_shape, dtype=np.uint8)
        every = self.board_places(np.arange(self.mesh.world_size))
        board[every] = 1 + self.stage // self.plan.label_step % SHADES
        return board

    @property
    def is_flat(self) -> bool:
        """Whether a column of pixels is several GPUs."""
        return self.plan.is_flat

    def mark_pixels(self) -> np.ndarray:
        """The pixels of the marks, and after them the selected rank's own cell.

        Of a flat picture, at most ACROSS columns; a mark that is not the whole row is three wide.
        """
        if not self.is_flat:
            board = super().mark_pixels()
            board[self.board_places(self.rank)] = 1 + len(self.marks)
            return board
        rows, across = self.board_shape
        board = np.zeros((rows, min(across, ACROSS)), dtype=np.uint8)
        ways = np.arange(-1, 2)
        for number, ranks in enumerate([*(mark.ranks for mark in self.marks), [self.rank]], 1):
            row, column = self.board_places(np.asarray(ranks))
            place = column * board.shape[1] // across
            around = np.clip(np.add.outer(ways, place), 0, board.shape[1] - 1)
            board[np.broadcast_to(row, around.shape), around] = number
        return board

    def board_of(self, values: np.ndarray) -> np.ndarray:
        """Pixels of a value of each rank: uint8, shape (rows, columns), of a flat picture at most
        ACROSS columns, where the largest of those that share a pixel is seen."""
        rows, across = self.board_shape
        board = np.zeros((rows, min(across, ACROSS) if self.is_flat else across), dtype=np.uint8)
        row, column = self.board_places(np.arange(self.mesh.world_size))
        np.maximum.at(board, (row, column * board.shape[1] // across), values)
        return board

    @property
    def ring(self) -> Rectangle:
        """The frame round the selected rank: near its cell, and large enough to be seen."""
        (x, y), sides = self.middle, self.sides
        wide, tall = (max(side + 2 * NEAR, SEEN) for side in sides)
        return x - wide / 2, y - tall / 2, wide, tall

    @property
    def around_rank(self) -> tuple[float, float]:
        return self.ring[2:]

    @cached_property
    def boxes(self) -> tuple[Rectangle, ...]:
        """A box for each shard, round numbered cells."""
        plan = self.plan
        first = np.ones(self.mesh.world_size, dtype=bool)
        for name in plan.box:
            size, stride = self.mesh.size(name), _stride(self.mesh, name)
            first &= np.arange(self.mesh.world_size) // stride % size == 0
        pad, (wide, tall) = plan.metrics.pad * plan.scale, plan.box_size
        return tuple(
            (x - pad, y - pad, wide, tall)
            for x, y in zip(self.x[first].tolist(), self.y[first].tolist())
        )

    def _around(self, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Left, top and bottom of the cells of each rank's replica in its stage."""
        plan = self.plan
        x, y = places_of(plan.outside, ranks)
        top = self.top + plan.origin[1] + y
        return x, top, top + plan.sizes.replica_height - 2 * plan.metrics.pad * plan.scale

    @cached_property
    def replicas(self) -> tuple[Rectangle, ...]:
        return tuple(self.plan.replica_frames())

    @property
    def box_tone(self) -> str:
        """The tone of the groups that are boxes; empty if these are not marked."""
        return next((mark.tone for mark in self.marks if mark.kind == self.box_kind), "")

    @cached_property
    def _chosen(self) -> tuple[float, float]:
        return float(self.x[self.rank]), float(self.y[self.rank])

    def holds_rank(self, frame: Rectangle) -> bool:
        (left, top, width, height), (x, y) = frame, self._chosen
        return left <= x < left + width and top <= y < top + height

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        return tuple(self.plan.labels(self.has_layers))

    @cached_property
    def has_layers(self) -> bool:
        """Whether the layers of stages are labels: not where a stage has them in many pieces."""
        return bool(self.layers) and all(layers.count(",") < 2 for layers in self.layers)

    @cached_property
    def lines(self) -> tuple[JobLine, ...]:
        """The lines that join the groups of numbered cells, of up to FEW ranks; groups that are
        boxes have the boxes' frames."""
        return tuple(
            line
            for mark in self.marks
            if mark.kind != self.box_kind and 1 < len(mark.ranks) <= FEW
            for line in self._joined(mark)
        )

    def _joined(self, mark: Mark) -> Iterator[JobLine]:
        """An outline round members that fill a rectangle above the last row of a stage or of
        several rows, a bar below each stage with other members, dots down each column with a single
        one.

        All lines run between cells: a bar's ends, beside a cell with others below it, in the gap on
        its right; dots, beside other cells, in the gap on the left.
        """
        wide, tall = self.sides
        plan, ranks = self.plan, mark.ranks
        gap, level = plan.metrics.gap * plan.scale / 2, self.levels[mark.kind]
        down = (plan.metrics.pad + 5 + 6 * level) * plan.scale
        rows: dict[float, list[tuple[float, float, float, float]]] = {}
        each = (self.y[ranks], self.x[ranks], *self._around(ranks))
        for y, x, left, top, foot in sorted(zip(*(np.round(at, 2).tolist() for at in each))):
            rows.setdefault(foot, []).append((x, y, top, left))
        bars: list[Segment] = []
        columns: dict[float, list[tuple[float, float, float]]] = {}
        for foot, row in rows.items():
            if len(row) == 1:
                ((x, y, top, _),) = row
                columns.setdefault(x, []).append((y, top, foot))
                continue
            if outline := self._outline(row, foot, gap):
                bars += outline
                continue
            bar, ends = foot + down, []
            for x, y, _, _ in row:
                is_last = y + tall > foot - 0.5
                ends.append(x + (wide / 2 if is_last else wide + gap))
                start = y + (tall + 2 * plan.scale if is_last else tall / 2)
                bars.append((ends[-1], bar, ends[-1], start))
            bars.append((min(ends), bar, max(ends), bar))
        if bars:
            yield JobLine(mark.tone, tuple(bars), is_dotted=False)
        dots = [
            (x + wide / 2, above + tall, x + wide / 2, below)
            if above + tall > foot - 0.5 and below < top + 0.5
            else (x - gap, above + tall / 2, x - gap, below + tall / 2)
            for x, column in columns.items()
            for (above, _, foot), (below, top, _) in pairwise(column)
        ]
        if dots:
            yield JobLine(mark.tone, tuple(dots), is_dotted=True)

    def _outline(
        self, cells: list[tuple[float, float, float, float]], foot: float, gap: float
    ) -> Iterable[Segment]:
        """The sides of the rectangle that cells of one replica fill alone, except in the last row
        of its stage. cells: x, y, their replica's top and left; gap: from them to the sides."""
        xs, ys, _, replicas = zip(*cells)
        (wide, tall), left, right, top, last = self.sides, min(xs), max(xs), min(ys), max(ys)
        is_across = (self.x > left - 0.5) & (self.x < right + 0.5)
        inside = is_across & (self.y > top - 0.5) & (self.y < last + 0.5)
        is_filled = len({*replicas}) == 1 and np.count_nonzero(inside) == len(cells)
        if not is_filled or top + tall > foot - 0.5:
            return ()
        x0, y0, x1, y1 = left - gap, top - gap, right + wide + gap, last + tall + gap
        return (x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)

    @cached_property
    def lines_of_cells(self) -> tuple[CellLines, CellLines]:
        plan = self.plan
        return (
            cell_lines(plan.folds, plan.left + plan.origin[0], lambda fold: (fold.dx, fold.jump_x)),
            cell_lines(plan.folds, plan.top + plan.origin[1], lambda fold: (fold.dy, fold.jump_y)),
        )

    @cached_property
    def node_ends(self) -> tuple[Segment, ...]:
        """Lines between cells of different nodes; for plain cells only those that cross a whole
        band."""
        if self.gpus_per_node == 1 or self.is_flat:
            return ()
        columns, rows = self.lines_of_cells
        xs, ys = columns.places, rows.places
        wide, tall = self.sides
        reach_x, reach_y = (1.5, 3.0) if self.is_numbered else (0.0, 0.0)
        next_x, next_y = (
            near + side if self.is_numbered else None
            for near, side in zip(self.plan.near, self.sides)
        )
        segments: list[Segment] = []
        for at, first, last in node_end_runs(columns, rows, self.gpus_per_node, next_y):
            left, right = xs[at] + wide, xs[at + 1]
            if right - left <= self.plan.near[0]:
                middle = (left + right) / 2
                # Not through the labels between two bands.
                bands = np.flatnonzero(np.diff(ys[first : last + 1]) > self.plan.near[1] + tall)
                starts = [first, *(first + 1 + bands).tolist()]
                ends = [*(first + bands).tolist(), last]
                for start, end in zip(starts, ends):
                    bottom = ys[end] + tall + reach_y
                    segments.append((middle, ys[start] - reach_y, middle, bottom))
        for at, first, last in node_end_runs(rows, columns, self.gpus_per_node, next_x):
            above, below = ys[at] + tall, ys[at + 1]
            if below - above <= self.plan.near[1]:
                middle = above + (0.74 if self.is_numbered else 0.5) * (below - above)
                segments.append((xs[first] - reach_x, middle, xs[last] + wide + reach_x, middle))
        return tuple(tuple(float(value) for value in segment) for segment in segments)  # type: ignore[misc]


def _stride(mesh: Mesh, name: str) -> int:
    return mesh.strides[mesh.names.index(name)] if name in mesh.names else mesh.world_size


def job_picture(
    mesh: Mesh,
    groupings: Sequence[Grouping],
    gpus_per_node: int,
    rank: int,
    room: tuple[float, float] = WHOLE,
    layers: Sequence[str] = (),
    words: Mapping[str, str] | None = None,
) -> JobPicture:
    """The picture of one mesh, with the groups of ``rank`` marked.

    layers: of each stage, as text; empty if no model is set. words: templates of the labels, by
    their names.

    >>> from groups import parse_mesh
    >>> from groups.grouping import plain
    >>> mesh = parse_mesh("tp2-dp2-pp2")
    >>> picture = job_picture(mesh, [plain(mesh, "tp"), plain(mesh, "dp")], 8, rank=1)
    >>> [label.first for label in picture.labels if label.name == "stage"], len(picture.boxes)
    ([0, 1], 4)

    Errors: LayoutError if there is no such rank.
    """
    require_whole(mesh)
    rank = require_rank(mesh, rank)
    plan = largest_plan(mesh, room)
    boxed = {name for name in plan.box if mesh.size(name) > 1}
    boxing = (
        grouping.name
        for grouping in groupings
        if grouping.is_plain
        and grouping.mesh == mesh
        and {a for a in grouping.axes if mesh.size(a) > 1} == boxed
    )
    box_kind = next(boxing, "") if boxed else ""
    marks, levels = marks_of(groupings, rank), levels_of(groupings, box_kind)
    how = box_kind, gpus_per_node, tuple(layers), words or {}
    return JobPicture(mesh, rank, plan, marks, levels, *how)


def levels_of(groupings: Sequence[Grouping], box_kind: str) -> dict[str, int]:
    """The distance of each kind's bar below its row; the box has a frame instead, pipelines have
    dots."""
    names = [grouping.name for grouping in groupings if grouping.name not in (box_kind, "pp")]
    return {
        **{grouping.name: 0 for grouping in groupings},
        **{name: min(level, 2) for level, name in enumerate(names)},
    }
