"""Nodes as boxes and the groups that leave them as lines, thick by bytes, as plain data.

    box       a node, or an NVLink domain: so many consecutive ranks; a cell in it is a GPU
    thread    all groups of one kind that stand on the very same boxes: one line
    bus       a thread as a map of a city has its lines: a trunk in the free lane below a row of
              boxes, or left of a column, and from it a stub to each of its boxes
    inner     a group that stays inside its box: a small bus below the cells

Boxes with the same pipeline stage are a row; where all have one they are wrapped. Of many rows or
columns those are shown that the chosen threads need, and what is left out is counted.

Lengths are pixels. Where all of it stands is planned in nodes_plan.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

THINNEST, THICKEST = 1.5, 10.0
"""The width of lines in pixels."""

PAD, HEAD, CELL, INNER = 6.0, 20.0, 16.0, 7.0
"""Pixels of a box: its padding, its line of text, the height of a cell and of a lane of inner
groups."""


@dataclass(frozen=True, eq=False)
class Thread:
    """Groups of one kind on the same boxes; bytes: sent between these boxes in a step.

    groups: number of groups. Threads compare by identity: a large server's has many boxes.
    """

    kind: str
    boxes: tuple[int, ...]
    groups: int
    bytes: float


@dataclass(frozen=True)
class Box:
    """A visible node: its number, its first and last rank, and its place."""

    number: int
    first: int
    last: int
    x: float
    y: float
    wide: float
    tall: float

    @property
    def cell(self) -> float:
        """Pixels from one cell to the next."""
        return (self.wide - 2 * PAD) / (self.last - self.first + 1)

    def middle(self, rank: int) -> float:
        return self.x + PAD + (rank - self.first + 0.5) * self.cell


@dataclass(frozen=True)
class Bus:
    """A line: its thread, thickness, straight parts, and the boxes at which a part ends."""

    thread: Thread
    width: float
    parts: tuple[tuple[tuple[float, float], tuple[float, float]], ...]
    ends: tuple[int, ...]


@dataclass(frozen=True)
class Inner:
    """A group that stays inside a box: its kind, its ranks, and the y of its line."""

    kind: str
    ranks: tuple[int, ...]
    box: int
    y: float


@dataclass(frozen=True)
class Left:
    """Boxes that are left out: the place of their count, and whether they are rows."""

    x: float
    y: float
    count: int
    is_rows: bool


@dataclass(frozen=True)
class Places:
    """The boxes of each row, by number; labels: of each row, or empty."""

    rows: tuple[tuple[int, ...], ...]
    labels: tuple[str, ...]


def places_of(stages: Sequence[int], across: int, label: str = "{stage}") -> Places:
    """Boxes in rows by the pipeline stage of their first rank; with one stage, or stages of
    different numbers of boxes, in rows of ``across``.

    >>> places_of([0, 0, 1, 1], 8).rows, places_of([0] * 12, 8).rows[1], places_of([0, 1], 8).labels
    (((0, 1), (2, 3)), (8, 9, 10, 11), ('0', '1'))
    """
    of_stage: dict[int, list[int]] = {}
    for box, stage in enumerate(stages if len({*stages}) > 1 else ()):
        of_stage.setdefault(stage, []).append(box)
    if len(of_stage) > 1 and len({*map(len, of_stage.values())}) == 1:
        stages_here = sorted(of_stage)
        rows = tuple(tuple(of_stage[stage]) for stage in stages_here)
        return Places(rows, tuple(label.format(stage=stage) for stage in stages_here))
    number = len(stages)
    across = min(across, number)
    rows = tuple(tuple(range(at, min(at + across, number))) for at in range(0, number, across))
    return Places(rows, ("",) * len(rows))


def shown_of(count: int, most: int, here: int, wanted: Iterable[Collection[int]]) -> list[int]:
    """The visible places: the selected one, the places of each set that is small enough, the first
    and the last, then neighbours of the selected one.

    >>> shown_of(5, 8, 0, []), shown_of(128, 6, 9, [{8, 9}, {*range(128)}])
    ([0, 1, 2, 3, 4], [0, 8, 9, 10, 11, 127])
    """
    if count <= most:
        return list(range(count))
    found = {here}
    for some in sorted(wanted, key=len):
        if len(found | {*some}) <= most - 2:
            found |= {*some}
    for place in (0, count - 1, *sorted(range(count), key=lambda at: (abs(at - here), -at))):
        if len(found) == most:
            break
        found.add(place)
    return sorted(found)


def thickness(amount: float, most: float, thickest: float = THICKEST) -> float:
    """The width of a line in pixels: the square root of its share, so that its area is
    proportional.

    >>> thickness(25.0, 100.0), thickness(100.0, 100.0), thickness(0.0, 100.0)
    (5.0, 10.0, 1.5)
    """
    return max(THINNEST, thickest * math.sqrt(amount / most)) if most > 0 else THINNEST


@dataclass(frozen=True)
class NodesPicture:
    """What to draw. kinds: of the legend, in order, with texts; scale: amounts with texts."""

    boxes: tuple[Box, ...]
    buses: tuple[Bus, ...]
    inners: tuple[Inner, ...]
    left: tuple[Left, ...]
    labels: tuple[tuple[float, str], ...]  # y and text of a row
    filled: tuple[tuple[str, tuple[int, ...]], ...]  # kinds with the ranks in their colour
    rank: int | None
    names: tuple[str, ...]  # of the boxes
    undrawn: int  # threads for which there was no room
    thickest: float  # pixels of the line of most bytes
    cell_tall: float
    width: float
    bottom: float
    kinds: tuple[tuple[str, float, str], ...] = ()  # kind, thickness, words
    scale: tuple[tuple[float, str], ...] = ()  # thickness, words
    left_words: tuple[str, str] = ("+ {count}", "+ {count}")

    @property
    def height(self) -> float:
        foot = self.key[1] + KEY_LINE * (len(self.kinds) + bool(self.scale)) + 6
        return max(self.bottom, foot)

    @cached_property
    def key(self) -> tuple[float, float]:
        """Where the legend begins: right of the boxes if it has room there, else below them."""
        right = max((box.x + box.wide for box in self.boxes), default=0.0) + KEY_APART
        texts = [SAMPLE + 8 + wide_of(text) for *_, text in self.kinds]
        texts.append(sum(SAMPLE + 28 + wide_of(text) for _, text in self.scale))
        is_beside = right + max(texts) <= self.width
        return (right, self.boxes[0].y) if is_beside else (0.0, self.bottom)

    @cached_property
    def box_of(self) -> dict[int, Box]:
        return {box.number: box for box in self.boxes}


KEY_LINE, KEY_APART, SAMPLE = 20.0, 32.0, 34.0
"""Pixels from one line of the legend to the next, from the boxes to a legend beside them, and the
length of its lines."""

LETTER, CHINESE = 6.9, 12.0
"""Pixels of a letter of the legend, at most."""


def wide_of(text: str) -> float:
    """The pixels that a text of the legend takes at most.

    >>> wide_of("pp"), wide_of("组")
    (13.8, 12.0)
    """
    return sum(CHINESE if letter > "\u2fff" else LETTER for letter in text)


def threads_of(kind: str, groups: np.ndarray, size: int, each: float) -> Iterator[Thread]:
    """The groups of a kind that leave their box; groups on the same boxes form one thread.

    groups: ranks, shape (groups, members); size: ranks of a box; each: bytes of one group.

    >>> [(one.boxes, one.groups) for one in threads_of("dp", np.array([[0, 2], [1, 3]]), 2, 1.0)]
    [((0, 1), 2)]
    """
    boxes = np.sort(groups // size, axis=1)
    leaves = boxes[:, 0] != boxes[:, -1]
    if not leaves.any():
        return
    rows, times = np.unique(boxes[leaves], axis=0, return_counts=True)
    for row, count in zip(rows.tolist(), times.tolist()):
        yield Thread(kind, tuple(dict.fromkeys(row)), count, each * count)
