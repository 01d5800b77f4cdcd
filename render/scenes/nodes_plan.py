"""The places of nodes, and the lanes between them for lines, which never cross a box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .nodes import (
    CELL,
    HEAD,
    INNER,
    PAD,
    THICKEST,
    Box,
    Bus,
    Inner,
    Left,
    NodesPicture,
    Places,
    Thread,
    shown_of,
    thickness,
)

MOST_BOXES, MOST_ROWS = 64, 6
"""The most boxes, and rows of them, in a picture."""

MOST_INNER = 3
"""The most lanes below the cells of a box, for groups that stay inside."""

MOST_LANES = 8
"""The most lanes between two rows or columns of boxes; lines with more bytes come first."""

LEFT, RIGHT, TOP, APART = 64.0, 4.0, 4.0, 4.0
"""Margins, and pixels between two lines of a lane."""

MOST_THICK = 2.5
"""The most lanes side by side with the thickest lines; of more all lines are thinner."""

GUTTER, GAP, BEYOND = 12.0, 52.0, 8.0
"""Pixels: least distance of boxes, size of the mark for boxes that are left out, and how far from
its middle a line ends."""

LETTER = 7.4
"""The approximate width of a bold letter of a name, in pixels."""

WIDEST, TALLEST_CELL = 480.0, 30.0
"""The largest width of a box, and height of its cells, in pixels."""


@dataclass(frozen=True)
class NodesRequest:
    """What to draw: boxes of ``size`` ranks of ``world``, in their places; the threads; groups that
    stay inside, by kind; the selected rank, None if all groups of a kind are drawn."""

    world: int
    size: int
    places: Places
    threads: Sequence[Thread]
    inside: Sequence[tuple[str, Sequence[Sequence[int]]]]
    filled: Sequence[tuple[str, np.ndarray | Sequence[int]]]
    rank: int
    is_chosen: bool
    width: float
    most_across: int
    most_rows: int = MOST_ROWS
    names: tuple[str, ...] = ("Node {box}", "N{box}", "{box}")  # the longest first


def nodes_picture(request: NodesRequest) -> NodesPicture:
    """The picture of a request.

    >>> from render.scenes.nodes import places_of
    >>> thread = Thread("pp", (0, 1), 8, 2e9)
    >>> two = NodesRequest(16, 8, places_of([0, 1], 8), [thread], [], [], 0, True, 800.0, 8)
    >>> [(bus.ends, bus.width) for bus in nodes_picture(two).buses]
    [((0, 1), 10.0)]
    """
    return _Plan(request).picture()


class _Plan:
    """The lanes of every thread, then the places of everything between them."""

    def __init__(self, request: NodesRequest) -> None:
        self.request, rows = request, request.places.rows
        here = request.rank // request.size
        lengths = np.array([*map(len, rows)])
        order = np.concatenate([np.array(row) for row in rows])
        self.row_of, self.column_of = np.empty_like(order), np.empty_like(order)
        self.row_of[order] = np.repeat(np.arange(len(rows)), lengths)
        self.column_of[order] = np.arange(len(order)) - np.repeat(
            np.cumsum(lengths) - lengths, lengths
        )
        self.places = {one: self._places(np.array(one.boxes)) for one in request.threads}
        columns = int(lengths.max())
        sets = [tuple({*at.tolist()} for at in self.places[one]) for one in request.threads]
        row, column = int(self.row_of[here]), int(self.column_of[here])
        most_rows = min(request.most_rows, max(1, MOST_BOXES // min(columns, request.most_across)))
        self.rows = shown_of(len(rows), most_rows, row, [of for of, _ in sets])
        self.columns = shown_of(columns, request.most_across, column, [of for _, of in sets])
        self.shown = {
            rows[r][c]: (at, across)
            for at, r in enumerate(self.rows)
            for across, c in enumerate(self.columns)
            if c < len(rows[r])
        }
        self.most = max((one.bytes for one in request.threads), default=0.0)
        self.below = [Gutter() for _ in self.rows]
        self.beside = [Gutter() for _ in self.columns]
        self.drawn: list[tuple[Thread, dict[int, list[int]]]] = []
        self.undrawn = 0
        for one in sorted(request.threads, key=lambda one: -one.bytes):
            self._assign_lanes(one)
        lanes = [*self.below, *self.beside]
        most_lanes = max(len(lane.amounts) for lane in lanes)
        self.thickest = THICKEST * min(1.0, MOST_THICK / max(most_lanes, 1))
        for lane in lanes:
            lane.widths = [thickness(most, self.most, self.thickest) for most in lane.amounts]

    def _places(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the columns of boxes."""
        return self.row_of[boxes], self.column_of[boxes]

    def _assign_lanes(self, one: Thread) -> None:
        """Assigns lanes to a thread, if there is room and two of its boxes are visible."""
        by_row: dict[int, list[int]] = {}
        for box in one.boxes:
            if box in self.shown:
                by_row.setdefault(self.shown[box][0], []).append(box)
        boxes = [box for some in by_row.values() for box in some]
        if len(boxes) < 2:
            return
        columns = {self.shown[box][1] for box in boxes}
        all_rows, all_columns = ((int(at.min()), int(at.max())) for at in self.places[one])
        lanes = [] if len(by_row) == 1 else [(self.beside[min(columns)], all_rows)]
        if len(columns) > 1:
            lanes += [(self.below[row], all_columns) for row in by_row]
        places = [group.free(min(reach), max(reach)) for group, reach in lanes]
        if any(place >= MOST_LANES for place in places):
            self.undrawn += 1
            return
        for (group, reach), place in zip(lanes, places):
            group.take(one, place, min(reach), max(reach))
        self.drawn.append((one, by_row))

    def picture(self) -> NodesPicture:
        self._place_columns()
        inner_lanes, inners = self._inner()
        self._place_rows(inner_lanes)
        request, boxes = self.request, {}
        for box, (r, c) in self.shown.items():
            first = box * request.size
            last = min(first + request.size, request.world) - 1
            wide, tall = self.box_wide, self.box_tall
            boxes[box] = Box(box, first, last, self.x[c], self.y[r], wide, tall)
        base = HEAD + self.cell_tall + INNER * 0.75
        laid = (
            Inner(kind, ranks, box, boxes[box].y + base + lane * INNER)
            for kind, ranks, box, lane in inners
        )
        labels = [
            (self.y[r] + self.box_tall / 2, request.places.labels[row])
            for r, row in enumerate(self.rows)
        ]
        return NodesPicture(
            tuple(boxes.values()),
            tuple(self._bus(one, by_row, boxes) for one, by_row in self.drawn),
            tuple(laid),
            tuple(self.left_out),
            tuple(labels),
            tuple((kind, self._seen(np.asarray(ranks))) for kind, ranks in request.filled),
            request.rank if request.is_chosen else None,
            self._names(),
            self.undrawn,
            self.thickest,
            self.cell_tall,
            request.width,
            self.bottom,
        )

    def _seen(self, ranks: np.ndarray) -> tuple[int, ...]:
        """The given ranks that are in visible boxes."""
        is_seen = np.isin(ranks // self.request.size, [*self.shown])
        return tuple(ranks[is_seen].tolist())

    def _names(self) -> tuple[str, ...]:
        """The name of each box, in the longest form that fits in all of them."""
        last = f"{max(self.shown):,}"
        room = (self.box_wide - 2 * PAD) / LETTER
        *longer, shortest = self.request.names
        fitting = (name for name in longer if len(name.format(box=last)) <= room)
        name = next(fitting, shortest)
        return tuple(name.format(box=f"{box:,}") for box in self.shown)

    def _place_columns(self) -> None:
        """Computes the left edges of columns, and the width of a box."""
        places = self.request.places
        has_rows_left = len(self.rows) < len(places.rows)
        margin = LEFT if any(places.labels) or has_rows_left else RIGHT
        holes = self._holes(self.columns, max(map(len, places.rows)))
        gutters = [lanes.room for lanes in self.beside]
        room = self.request.width - margin - RIGHT - sum(gutters) - GAP * len(holes)
        self.box_wide = min(WIDEST, room / len(self.columns))
        cells = (self.box_wide - 2 * PAD) / self.request.size
        self.cell_tall = min(TALLEST_CELL, max(CELL, cells))
        x, self.x = margin, []
        self.hole_x: list[tuple[float, int, int]] = []  # middle, first column left out, how many
        for c in range(len(self.columns)):
            if c in holes:
                self.hole_x.append((x + GAP / 2, self.columns[c] - holes[c], holes[c]))
                x += GAP
            x += gutters[c]
            self.x.append(x)
            x += self.box_wide

    @staticmethod
    def _holes(shown: Sequence[int], count: int) -> dict[int, int]:
        """The visible places before which others are left out, with the number of those."""
        steps = zip((-1, *shown), (*shown, count))
        return {at: there - here - 1 for at, (here, there) in enumerate(steps) if there > here + 1}

    def _place_rows(self, inner_lanes: int) -> None:
        """Computes the upper edges of rows, with lanes below each, and marks of omitted rows."""
        self.box_tall = HEAD + self.cell_tall + PAD + inner_lanes * INNER
        holes = self._holes(self.rows, len(self.request.places.rows))
        y, self.y, self.left_out = TOP, [], []
        for r in range(len(self.rows)):
            if r in holes:
                self.left_out.append(Left(0.0, y + 9, holes[r], True))
                y += 24
            self.y.append(y)
            for x, _, count in self.hole_x:
                self.left_out.append(Left(x, y + self.box_tall / 2, count, False))
            y += self.box_tall + self.below[r].room
        self.bottom = y + 6

    def _inner(self) -> tuple[int, list[tuple[str, tuple[int, ...], int, int]]]:
        """Groups inside a visible box: kind, ranks, box, lane; and the number of lanes."""
        ends: dict[int, list[int]] = {}
        found, size = [], self.request.size
        for kind, groups in self.request.inside:
            begin: dict[int, int] = {}
            for ranks in groups:
                box = ranks[0] // size
                if box not in self.shown:
                    continue
                lanes = ends.setdefault(box, [])
                start = begin.setdefault(box, len(lanes))  # a kind has lanes of its own
                free = (at for at in range(start, len(lanes)) if lanes[at] < ranks[0])
                lane = next(free, len(lanes))
                if lane >= MOST_INNER:
                    continue
                lanes[lane : lane + 1] = [ranks[-1]]
                found.append((kind, tuple(ranks), box, lane))
        return max((lane + 1 for *_, lane in found), default=0), found

    def _bus(self, one: Thread, by_row: dict[int, list[int]], boxes: dict[int, Box]) -> Bus:
        """The trunk and stubs of a thread; from a trunk beside a column, stubs or a bus below each
        row."""
        parts, ends = [], [box for some in by_row.values() for box in some]
        columns = {self.shown[box][1] for box in ends}
        trunk: list[float] = []
        ys: list[float] = []
        if len(by_row) > 1:
            column = min(columns)
            lanes = self.beside[column]
            trunk = [self.x[column] - lanes.room + lanes.middle(one)]
        for row, some in sorted(by_row.items()):
            if len(columns) == 1:
                (box,) = some
                turn = self.beside[min(columns)].of[one] % 3
                y = self.y[row] + HEAD + self.cell_tall * 0.5 + 5 * (turn - 1)
                parts.append(((trunk[0], y), (boxes[box].x, y)))
            else:
                foot, lanes = self.y[row] + self.box_tall, self.below[row]
                y = foot + lanes.middle(one)
                shift = self.box_wide * (lanes.of[one] + 1) / (len(lanes.widths) + 1)
                xs = [boxes[box].x + shift for box in some]
                across = [*xs, *self._beyond(one, row, some), *trunk]
                parts.append(((min(across), y), (max(across), y)))
                parts += [((x, y), (x, foot)) for x in xs]
            ys.append(y)
        if trunk:
            parts.insert(0, ((trunk[0], min(ys)), (trunk[0], max(ys))))
        width = thickness(one.bytes, self.most, self.thickest)
        return Bus(one, width, tuple(parts), tuple(ends))

    def _beyond(self, one: Thread, row: int, shown: Sequence[int]) -> Iterator[float]:
        """The x at which a line in a row ends towards omitted boxes: short of their middle, where
        lines from the other side may end."""
        rows, columns = self.places[one]
        hidden = columns[rows == self.rows[row]]
        nearest = min(int(self.column_of[box]) for box in shown)
        for x, first, count in self.hole_x:
            if ((hidden >= first) & (hidden < first + count)).any():
                yield x - BEYOND if first > nearest else x + BEYOND


class Gutter:
    """The space between two rows or columns: lines that do not overlap share a lane.

    amounts: the most that a line carries, by lane; widths: pixels by lane, once all lines are
    placed.

    >>> lanes = Gutter()
    >>> one, other = Thread("ep", (0, 1), 1, 1.0), Thread("ep", (2, 3), 1, 1.0)
    >>> for thread, first, last in ((one, 0, 1), (other, 2, 3)):
    ...     lanes.take(thread, lanes.free(first, last), first, last)
    >>> [*lanes.of.values()], lanes.amounts
    ([0, 0], [1.0])
    """

    def __init__(self) -> None:
        self.of: dict[Thread, int] = {}
        self.amounts: list[float] = []
        self.widths: list[float] = []
        self._reaches: list[list[tuple[int, int]]] = []

    def free(self, first: int, last: int) -> int:
        """The first lane in which no line overlaps these places."""
        is_free = (
            all(last < start or end < first for start, end in lane) for lane in self._reaches
        )
        return next((at for at, free in enumerate(is_free) if free), len(self.amounts))

    def take(self, one: Thread, at: int, first: int, last: int) -> None:
        if at == len(self.amounts):
            self.amounts.append(0.0)
            self._reaches.append([])
        self.of[one] = at
        self.amounts[at] = max(self.amounts[at], one.bytes)
        self._reaches[at].append((first, last))

    @property
    def room(self) -> float:
        return max(GUTTER, sum(self.widths) + APART * (len(self.widths) + 2))

    def middle(self, one: Thread) -> float:
        """The distance from the start of the lanes to the middle of a line."""
        at = self.of[one]
        return APART * (at + 1.5) + sum(self.widths[:at]) + self.widths[at] / 2
