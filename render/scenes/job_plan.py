"""The place and size of every GPU in the picture of the job: a mesh folded to fit a room.

What does not fit beside each other goes on in the next band, whose rows and columns are labelled
again; a band holds a divisor of the replicas where one is near.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple

from groups import Mesh
from groups.alternatives import divisors
from groups.kept import kept

from . import geometry
from .geometry import Fold

FULL, NUMBERED = 64, 256
"""The most GPUs whose cells are about square, and whose numbers are shown."""

WHOLE, TALL, HALF, WIDE = (736.0, 420.0), (736.0, 560.0), (516.0, 420.0), (1160.0, 270.0)
"""Sizes in pixels of a picture alone beside the card, of one with many cells, and of two side by
side or below each other."""

LEFT, TOP = 88.0, 26.0
"""Pixels for the labels of the rows and of the columns of each band."""

DIGIT = 6.6
"""Pixels of a cell per digit of its number."""

LOOSE = 8
"""The most bands below each other with their labels above them."""

BESIDE, ABOVE = 12.0, 12.0
"""Pixels from a band to the end of its labels at the left, and to the middle of those above."""

LEAST_CELL = 2.0
"""Pixels of a square cell below which a picture is flat: one band as wide as the room, in which a
column of pixels is many GPUs."""

MOST_ASPECT = 2.5
"""How much wider than tall a plain cell may be, where the room is."""

FLAT_ROW, FLAT = 26.0, 84.0
"""Pixels of a row of a flat picture at most, but of one with few stages."""

NAMED = {"dp": 70.0, "edp": 104.0}
"""The least pixels from one replica to the next with which each is labelled."""

LINE = 14.0
"""Pixels from one label to the next below it."""


class Metrics(NamedTuple):
    """Lengths at full size: pixels for numbered cells, cells for plain ones."""

    width: float
    height: float
    gap: float  # between cells
    pad: float  # from a box to its cells
    apart: float  # between boxes
    frame: float  # from a replica's side to its boxes
    between: float  # between replicas
    row: float  # between stages: room for what joins them
    ends: float  # from a replica's top to its first box
    largest: float  # factor

    @property
    def is_plain(self) -> bool:
        """Whether cells are too small for numbers and frames."""
        return not self.row


NUMBERS = Metrics(52, 46, 4, 7, 6, 8, 6, 26, 14, 1)
MANY = NUMBERS._replace(height=34, gap=6, pad=3, apart=5, frame=4, between=10, row=20, ends=6)
ALONE = {"pad": 2, "frame": 5}
"""Smaller frames of replicas that have one GPU per stage."""

PLAIN = Metrics(1, 1, 0, 0, 0, 0, 0, 0, 0, 14)


class Label(NamedTuple):
    """A text beside the picture: ``name`` of the labelled things, ``first`` to ``last`` of them."""

    x: float
    y: float
    anchor: str  # "start", "middle", "end"
    name: str
    first: int
    last: int


Rectangle = tuple[float, float, float, float]
"""x, y, width, height."""


class Sizes(NamedTuple):
    """Width and height of a box, of a replica in one stage, and of a band."""

    box_width: float
    box_height: float
    replica_width: float
    replica_height: float
    band_width: float
    band_height: float


@dataclass(frozen=True)
class JobPlan:
    """The arrangement and scale of a mesh."""

    mesh: Mesh
    metrics: Metrics
    box: tuple[str, ...]  # axes inside a box
    others: tuple[str, ...]  # axes that number the boxes of a replica in a stage
    cells_across: int  # of a box
    boxes_across: int  # of a replica
    replicas: int  # of a band
    stages: int  # of a band
    scale: float

    left, top = LEFT, TOP

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The axes that number the replicas, fastest first."""
        return geometry.replica_axes(self.mesh)

    @property
    def is_flat(self) -> bool:
        """Whether it is one band of stages, in which a column of pixels is several GPUs."""
        return self.metrics.is_plain and self.metrics.largest == FLAT

    @property
    def inner_size(self) -> int:
        """The GPUs of a replica in a stage."""
        return _product(self.mesh, self.box) * _product(self.mesh, self.others)

    @property
    def cell(self) -> tuple[float, float]:
        return self.metrics.width * self.scale, self.metrics.height * self.scale

    @cached_property
    def full(self) -> Sizes:
        """Sizes in the unit of the metrics."""
        m = self.metrics
        lines = _product(self.mesh, self.box) // self.cells_across
        boxes = _product(self.mesh, self.others)
        box_w = self.cells_across * (m.width + m.gap) - m.gap + 2 * m.pad
        box_h = lines * (m.height + m.gap) - m.gap + 2 * m.pad
        wide = self.boxes_across * (box_w + m.apart) - m.apart + 2 * m.frame
        tall = boxes // self.boxes_across * (box_h + m.apart) - m.apart
        band = _band_size(m, wide, tall, self.replicas, self.stages)
        return Sizes(box_w, box_h, wide, tall, *band)

    @cached_property
    def sizes(self) -> Sizes:
        """Sizes in pixels."""
        return Sizes(*(size * self.scale for size in self.full))

    @property
    def box_size(self) -> tuple[float, float]:
        return self.sizes.box_width, self.sizes.box_height

    @cached_property
    def bands(self) -> tuple[int, int]:
        """The number of bands side by side, which divide the stages, and of bands one below the
        other, which divide the replicas."""
        dp, pp = _product(self.mesh, self.columns), self.mesh.size("pp")
        return -(-pp // self.stages), -(-dp // self.replicas)

    def fitted(self, room: tuple[float, float]) -> JobPlan:
        """The plan scaled to another room, with the same folds."""
        full = self.full
        band = full.band_width, full.band_height
        return replace(self, scale=_scale(self.metrics, self.bands, band, self.stages, room))

    @property
    def is_folded(self) -> bool:
        """Whether a row continues below itself."""
        box, others = _product(self.mesh, self.box), _product(self.mesh, self.others)
        is_whole = self.cells_across == box and self.boxes_across == others
        return self.bands != (1, 1) or not is_whole

    @cached_property
    def jump(self) -> tuple[float, float]:
        """Pixels from a band to the next; for plain cells, a whole number of cells."""
        wide, tall = self.sizes.band_width, self.sizes.band_height
        if self.metrics.is_plain:
            (cell, row), below = self.cell, tall + (self.scale if self.stages > 1 else 0.0)
            if not self.is_tight:
                below = tall + math.ceil(TOP / row) * row
            return wide + math.ceil(LEFT / cell) * cell, below
        return wide + LEFT, tall + TOP

    @property
    def is_tight(self) -> bool:
        """Whether there are too many bands for labels above them: labels are then beside, with the
        band's content."""
        return _is_tight(self.metrics, self.bands)

    @property
    def near(self) -> tuple[float, float]:
        """The largest distance of two adjacent cells of a band in pixels, across and down."""
        m = self.metrics
        apart = max(m.between + 2 * m.frame, m.apart) + 2 * m.pad
        return apart * self.scale + 0.5, (max(m.row, m.apart) + 2 * m.pad) * self.scale + 0.5

    @property
    def width(self) -> float:
        beside, _ = self.bands
        return LEFT + (beside - 1) * self.jump[0] + self.sizes.band_width

    @property
    def height(self) -> float:
        _, below = self.bands
        return TOP + (below - 1) * self.jump[1] + self.sizes.band_height

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """A fold for each axis, in the order of the mesh, so that they number the ranks."""
        m, scale, full = self.metrics, self.scale, self.full
        cells = (m.width + m.gap) * scale, (m.height + m.gap) * scale
        boxes = (full.box_width + m.apart) * scale, (full.box_height + m.apart) * scale
        inside = dict(self._within(self.box, self.cells_across, *cells))
        inside |= dict(self._within(self.others, self.boxes_across, *boxes))
        size = self.mesh.size
        dx, dy = (full.replica_width + m.between) * scale, (full.replica_height + m.row) * scale
        inside |= dict(self._across_replicas(dx))
        inside["pp"] = Fold(size("pp"), self.stages, dy=dy, jump_x=self.jump[0])
        return tuple(inside[name] for name in self.mesh.names)

    @property
    def outside(self) -> tuple[Fold, ...]:
        """The folds of replicas and stages alone; axes inside of a stage move nothing."""
        outer = (*self.columns, "pp")
        return tuple(
            fold if name in outer else Fold(fold.size, fold.size)
            for name, fold in zip(self.mesh.names, self.folds)
        )

    def _across_replicas(self, dx: float) -> Iterator[tuple[str, Fold]]:
        """The axes of the columns, nested, in lines of so many replicas."""
        step = 1
        for name in self.columns:
            size, below = self.mesh.size(name), self.jump[1]
            if step < self.replicas:
                period = min(size, self.replicas // step)
                yield name, Fold(size, period, dx=dx * step, jump_y=below)
            else:
                yield name, Fold(size, size, dy=below * (step // self.replicas))
            step *= size

    def _within(
        self, names: Sequence[str], across: int, dx: float, dy: float
    ) -> Iterator[tuple[str, Fold]]:
        """Nested axes in a line; the last one continues in lines below."""
        step = 1
        for name in names:
            size = self.mesh.size(name)
            period = max(1, across // step) if name == names[-1] else size
            yield name, Fold(size, period, dx=dx * step, jump_y=dy)
            step *= size

    @property
    def origin(self) -> tuple[float, float]:
        """The first cell of a band, relative to the band's corner."""
        m = self.metrics
        return (m.frame + m.pad) * self.scale, (m.ends + m.pad) * self.scale

    @cached_property
    def label_step(self) -> int:
        """Stages per label."""
        pitch = (self.full.replica_height + self.metrics.row) * self.scale
        step = max(1, math.ceil(LINE / pitch))
        return 1 << (step - 1).bit_length()

    def corners(self) -> Iterator[tuple[float, float, range, range]]:
        """Each band's corner, with its stages and replicas."""
        dp, pp = _product(self.mesh, self.columns), self.mesh.size("pp")
        (beside, below), (right, lower) = self.bands, self.jump
        for across in range(beside):
            stages = range(pp)[across * self.stages : (across + 1) * self.stages]
            for down in range(below):
                replicas = range(dp)[down * self.replicas : (down + 1) * self.replicas]
                yield LEFT + across * right, TOP + down * lower, stages, replicas

    def replica_frames(self) -> Iterator[Rectangle]:
        """The frame of each replica in each band."""
        wide, tall, m = self.sizes.replica_width, self.sizes.replica_height, self.metrics
        for x, y, stages, replicas in self.corners():
            height = len(stages) * (tall + m.row * self.scale) + (2 * m.ends - m.row) * self.scale
            for place in range(len(replicas)):
                yield x + place * (wide + m.between * self.scale), y, wide, height

    def labels(self, has_layers: bool) -> Iterator[Label]:
        """Labels: stages beside each band, replicas above it."""
        m = self.metrics
        pitch = (self.full.replica_height + m.row) * self.scale
        step = (self.full.replica_width + m.between) * self.scale
        room = self.sizes.replica_height
        if self.is_tight:
            yield from self._band_labels()
            return
        is_split = self.bands[0] > 1
        for x, y, stages, replicas in self.corners():
            if is_split:  # or each column of stages would have the same heading
                yield Label(x, y - ABOVE, "start", "stages", stages[0], stages[-1])
                right = x + self.sizes.band_width
                if len(replicas) > 1 and self.sizes.band_width >= 2 * LEFT:
                    yield Label(right, y - ABOVE, "end", "replicas", replicas[0], replicas[-1])
            for place in range(0, len(stages), self.label_step):
                middle = y + m.ends * self.scale + place * pitch + room / 2
                number = stages[place]
                lifted = LINE / 2 if has_layers and pitch >= 2.2 * LINE else 0.0
                yield Label(x - BESIDE, middle - lifted, "end", "stage", number, number)
                if lifted:
                    yield Label(x - BESIDE, middle + lifted, "end", "layers", number, number)
            if not is_split:
                yield from self._replica_labels(x, y - ABOVE, step, replicas)

    def _band_labels(self) -> Iterator[Label]:
        """Labels above the bands about their content, and beside some of them their numbers."""
        half = self.sizes.band_height / 2
        corners = [*self.corners()]
        (left, top, _, first), last = corners[0], -math.inf
        yield Label(left, top - ABOVE, "start", "replicas", first[0], corners[-1][-1][-1])
        for x, y, _, replicas in corners:
            if y >= last + LINE:
                yield Label(x - BESIDE, y + half, "end", "band", replicas[0], replicas[-1])
                last = y

    def _replica_labels(self, x: float, y: float, step: float, replicas: range) -> Iterator[Label]:
        """A label for each replica if there is room, else one for their range."""
        middle = (step - self.metrics.between * self.scale) / 2
        if step >= NAMED.get(self.columns[0], NAMED["edp"]):
            for place, number in enumerate(replicas):
                yield Label(x + place * step + middle, y, "middle", "replica", number, number)
        else:
            yield Label(x, y, "start", "replicas", replicas[0], replicas[-1])


def _product(mesh: Mesh, names: Sequence[str]) -> int:
    return math.prod(mesh.size(name) for name in names)


@kept
def largest_plan(mesh: Mesh, room: tuple[float, float]) -> JobPlan:
    """The plan with the largest cells; another band must gain much.

    Numbered cells are joined: their stages stand below each other wherever numbers are read so.
    """
    metrics = metrics_of(mesh.world_size)
    columns, pp = geometry.replica_axes(mesh), mesh.size("pp")
    counts = [mesh.size(name) for name in columns]
    dp = math.prod(counts)
    inner = [name for name in mesh.names if name not in (*columns, "pp")]
    box, others = _box_axes(mesh, inner)
    box_size, others_size = _product(mesh, box), _product(mesh, others)
    if not metrics.is_plain and box_size * others_size == 1:
        metrics = metrics._replace(**ALONE)
    best, most = None, 0.0
    readable = DIGIT * len(str(mesh.world_size - 1))
    # A tp group of plain cells is folded for one band: its dp group is one line then.
    of_tp = metrics.is_plain and {"ep", "etp"}.isdisjoint(box)
    for cells in reversed(_across(mesh, box, 2 if of_tp or not metrics.is_plain else 16)):
        for boxes in _across(mesh, others, 16 if metrics.is_plain else 2):
            plan = JobPlan(mesh, metrics, box, others, cells, boxes, dp, pp, 1.0)
            wide, tall = plan.full.replica_width, plan.full.replica_height
            folded = (cells < box_size) + (boxes < others_size)
            to_one_band = (0.8 / 0.55) ** (of_tp and cells < box_size)
            for replicas, stages in _bands(counts, pp):
                bands = -(-pp // stages), -(-dp // replicas)
                band = _band_size(metrics, wide, tall, replicas, stages)
                scale = _scale(metrics, bands, band, stages, room)
                number = bands[0] * bands[1]
                gain = scale * 0.55**folded * 0.97 ** min(number, 32)
                if metrics.is_plain:
                    gain *= 0.7 if number > 1 else to_one_band
                else:
                    gain *= (0.5 if number > 1 else 1) * (0.25 if bands[0] > 1 else 1)
                    gain *= 1 if scale * metrics.width >= readable else 0.3
                if gain > most * 1.0001:
                    best, most = (cells, boxes, replicas, stages, scale), gain
    assert best is not None
    plan = JobPlan(mesh, metrics, box, others, *best)
    if not metrics.is_plain:
        return plan
    return _flat(plan, room) if plan.scale < LEAST_CELL else _stretched(plan, room)


def _stretched(plan: JobPlan, room: tuple[float, float]) -> JobPlan:
    """The plan with cells wider than tall, as far as the room is wider than its bands."""
    columns, beside = round(plan.sizes.band_width / plan.scale), plan.bands[0]
    # Between bands there are as many cells as their labels need.
    widths = (
        (apart, (room[0] - LEFT) / (beside * columns + (beside - 1) * apart)) for apart in count(1)
    )
    cell = next(cell for apart, cell in widths if apart * cell >= LEFT or beside == 1)
    aspect = min(MOST_ASPECT, cell / plan.scale)
    if plan.is_tight or aspect < 1.1:
        return plan
    return replace(plan, metrics=plan.metrics._replace(width=aspect))


def _flat(plan: JobPlan, room: tuple[float, float]) -> JobPlan:
    """One band with every replica in a line, and a row for each stage: of so many GPUs a group is
    seen by its rows and columns, not by its cells."""
    dp, pp = _product(plan.mesh, plan.columns), plan.mesh.size("pp")
    across = _product(plan.mesh, plan.box), _product(plan.mesh, plan.others)
    row = min(max(FLAT_ROW, FLAT / pp), (room[1] - TOP) / pp)
    cell = (room[0] - LEFT) / (dp * across[0] * across[1])
    metrics = plan.metrics._replace(width=cell / row, largest=FLAT)
    return JobPlan(plan.mesh, metrics, plan.box, plan.others, *across, dp, pp, row)


def _box_axes(mesh: Mesh, inner: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The axes of a box: a tp group; of experts, all that share them; without tp, whatever else
    there is."""
    if "etp" in inner or "ep" in inner:
        return tuple(inner), ()
    if mesh.size("tp") > 1 and len(inner) > 1:
        return ("tp",), tuple(name for name in inner if name != "tp")
    return tuple(inner), ()


def _across(mesh: Mesh, names: Sequence[str], fewest: int) -> list[int]:
    """Possible numbers of cells, or of boxes, in a line: all, one, or some lines of the last axis,
    at least ``fewest``."""
    if not names:
        return [1]
    step = _product(mesh, names[:-1])
    last = mesh.size(names[-1])
    return [
        step * divisor
        for divisor in divisors(last)
        if divisor == last or step * divisor >= fewest or divisor == 1
    ]


def metrics_of(gpus: int) -> Metrics:
    return NUMBERS if gpus <= FULL else MANY if gpus <= NUMBERED else PLAIN


def _bands(counts: Sequence[int], pp: int) -> Iterator[tuple[int, int]]:
    """(replicas, stages) of a band: all, or a divisor of either; primes have no divisor.

    counts: of each axis of replicas, fastest first; a band is a part of one, or whole ones.
    """
    dp = math.prod(counts)
    yield dp, pp
    for replicas in divisors(dp)[:-1]:
        if len(counts) == 1 or replicas % counts[0] == 0 or counts[0] % replicas == 0:
            yield replicas, pp
    if len(counts) == 1 and len(divisors(dp)) <= 2 and dp > 16:
        for parts in (2, 3, 4, 8, 16, 64, 256, 1024):
            yield -(-dp // parts), pp
    for stages in divisors(pp)[:-1]:
        yield dp, stages


def _band_size(
    m: Metrics, wide: float, tall: float, replicas: int, stages: int
) -> tuple[float, float]:
    """The size of a band of replicas of this width and height per stage, at full size."""
    return (
        replicas * (wide + m.between) - m.between,
        stages * (tall + m.row) - m.row + 2 * m.ends,
    )


def _is_tight(metrics: Metrics, bands: tuple[int, int]) -> bool:
    """`JobPlan.is_tight` before a plan is made."""
    return metrics.is_plain and bands[1] > LOOSE


def _scale(
    metrics: Metrics,
    bands: tuple[int, int],
    band: tuple[float, float],
    stages: int,
    room: tuple[float, float],
) -> float:
    """The largest scale of bands; 0 if their labels alone exceed the room."""
    (beside, below), (wide, tall) = bands, band
    if _is_tight(metrics, bands):
        rows = below * (tall + (stages > 1))
        return min((room[0] - LEFT) / wide, (room[1] - TOP) / rows)
    x, y = room[0] / beside - LEFT, room[1] / below - TOP
    return max(0.0, min(metrics.largest, x / wide, y / tall))
