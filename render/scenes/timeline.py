"""A timeline as data: ranks down, time across, a box for each op; and the memory of each rank.

Times become whole ticks. The tick is the largest unit that all times are multiples of, so that a
picture of one pixel a tick is exact at any zoom; where there is no such unit, times are rounded to
MOST_TICKS parts of the axis. Timelines to compare share the tick and the axis.

    up to MOST_BOXES ops    one path for each colour, with micro-batch numbers
    above                   one embedded picture, one pixel a tick and two a rank
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from training.pipeline import Timeline
from training.pipeline.plan import B, F, I, W

from ..palette import INKS, luminance, rgb

MOST_TICKS = 8_192
"""The most ticks of one axis: every browser draws a picture of so many pixels."""

MOST_BOXES = 3_000
"""The most ops drawn as boxes; more are the pixels of one picture."""

MOST_SHADES = 8
"""The most chunks of one rank with shades of their own; further ones repeat them."""

FINEST = 10_000
"""The resolution of durations: this part of a unit, divided by the chunks of a rank."""

PHASES: dict[str, str] = {"F": "#111827", "B": "#8fa3bf", "I": "#4e5f5f", "W": "#eaf0f7"}
"""The colour of each kind of op, of chunk 0: ink, and half of it for backward. What is coloured is
the waiting (`palette.WAITING`); letters and legend have the same in words."""

DEEPEST = 0.4
"""How far the shade of the last chunk is towards black or white."""

DARKER = 0.86
"""How much darker every second micro-batch of one picture is."""

ROWS = ((8, 30), (16, 24), (32, 18), (64, 13), (128, 7))
"""Pixels of a row, by the largest number of ranks."""

LEAST_ROW = 4
"""Pixels of a row of more ranks."""

EXACT = 2**50
"""The largest number up to which whole floats and their sums are exact."""

LABEL_ROOM = 12
"""Pixels of a row with numbers in its boxes."""

DIGIT, MARGIN = 6.4, 3.0
"""Pixels of a digit in a box, and of the margin."""

AXIS = 18
"""Pixels of the line of times below a timeline."""

STEPS = (1, 2, 5)
"""The steps of an axis, times a power of ten."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """The ops of one timeline, one entry each: int32 arrays in the order of ranks and time.

    start and end in ticks; chunk: of the rank, from 0; half: 0 alone, 1 and 2 the upper and the
    lower op of a pair.
    """

    rank: np.ndarray
    start: np.ndarray
    end: np.ndarray
    kind: np.ndarray
    micro_batch: np.ndarray
    stage: np.ndarray
    chunk: np.ndarray
    half: np.ndarray


@dataclass(frozen=True, eq=False)
class Strip:
    """One timeline to draw: its ranks down, ``ticks`` across of ``tick`` units of time each.

    held, held_input: per rank, whole-rank micro-batches on each of the parts of the axis, until W
    and until I: float64, shape (ranks, parts).
    """

    ranks: tuple[int, ...]
    ticks: int
    tick: float
    row: int
    boxes: Boxes
    held: np.ndarray
    held_input: np.ndarray

    @property
    def height(self) -> int:
        return self.row * len(self.ranks)

    @property
    def memory_row(self) -> int:
        """Pixels of a row of the memory curves, which need less room than numbers."""
        return self.row if self.row >= 18 else max(LEAST_ROW, self.row // 2)

    @property
    def is_picture(self) -> bool:
        return len(self.boxes.rank) > MOST_BOXES

    @property
    def digits(self) -> int:
        """Digits of the longest number in a box."""
        return len(str(self.boxes.micro_batch.max(initial=0)))

    @cached_property
    def colour(self) -> np.ndarray:
        """The colour of each box: kind * MOST_SHADES + shade of its chunk."""
        return self.boxes.kind * MOST_SHADES + self.boxes.chunk % MOST_SHADES

    def pixels(self) -> np.ndarray:
        """0 idle, else 1 + 2 * colour + micro-batch % 2: uint8, shape (rows, ticks).

        One row a rank; two where ops run in pairs. Of ops shorter than a tick some have none.
        """
        boxes = self.boxes
        value = 1 + (2 * self.colour + (boxes.micro_batch & 1)).astype(np.uint8)
        is_there, half = boxes.end > boxes.start, boxes.half
        rows = [is_there & (half != 2), is_there & (half != 1)] if half.any() else [is_there]
        # What an op adds where it starts it takes away where it ends, so that sums along a row
        # are what is there; bytes that run over come back.
        board = np.zeros((len(self.ranks), len(rows), self.ticks + 1), dtype=np.uint8)
        for row, in_row in enumerate(rows):
            line, change = (boxes.rank * len(rows) + row) * (self.ticks + 1), value[in_row]
            board.reshape(-1)[(line + boxes.start)[in_row]] = change
            board.reshape(-1)[(line + boxes.end)[in_row]] -= change
        np.cumsum(board, axis=2, dtype=np.uint8, out=board)
        return board[..., :-1].reshape(-1, self.ticks)

    def packed(self) -> bytes:
        """The ops for the page's script: zlib of uint16 arrays, each as differences.

        Ops of each rank (low and high half), then start, end, micro-batch, stage, and
        kind + 4 * half.
        """
        boxes = self.boxes
        counts = np.bincount(boxes.rank, minlength=len(self.ranks))
        columns = [
            boxes.start,
            boxes.end,
            boxes.micro_batch,
            boxes.stage,
            boxes.kind + 4 * boxes.half,
        ]
        steps = np.array(columns).astype("<u2")
        steps[:, 1:] -= steps[:, :-1].copy()
        starts = np.array((counts % 65536, counts // 65536)).astype("<u2")
        return zlib.compress(starts.tobytes() + steps.tobytes(), level=1)


COLUMNS = 400
"""The most parts of the axis with a value of memory: the largest within each."""

PARTS = 64 * COLUMNS
"""The most parts of all ranks' axes together: curves of many ranks are coarser."""

TICKS_AT_ONCE = 2**17
"""Ticks of all ranks that are counted in one step."""


def strips_of(
    timelines: Sequence[Timeline], ranks: Sequence[int], most_ticks: int = MOST_TICKS
) -> list[Strip]:
    """Timelines over the same ranks, to draw on one axis; ``ranks`` are their numbers.

    >>> from training.pipeline import plan_of, simulate
    >>> strip, = strips_of([simulate(plan_of("1f1b", p=2, m=2))], ranks=[0, 4])
    >>> strip.ticks, strip.tick, strip.boxes.start.tolist()
    (9, 1.0, [0, 1, 4, 7, 1, 2, 4, 5])
    """
    tick, ticks = _axis(timelines, most_ticks)
    row = next((pixels for most, pixels in ROWS if len(ranks) <= most), LEAST_ROW)
    strips = []
    for timeline in timelines:
        boxes = _boxes(timeline, tick)
        strips.append(
            Strip(tuple(ranks), ticks, tick, row, boxes, *_curves(timeline, boxes, ticks))
        )
    return strips


def _axis(timelines: Sequence[Timeline], most_ticks: int) -> tuple[float, int]:
    """(units of time of one tick, ticks of the axis)."""
    makespan = max(timeline.makespan for timeline in timelines)
    if not makespan:
        return 1.0, 1
    fine = FINEST * math.lcm(*(t.plan.stages // t.plan.p for t in timelines))
    times = np.concatenate([at for t in timelines for at in (t.start, t.end)]) * fine
    whole = np.rint(times)
    if makespan * fine < EXACT and np.abs(times - whole).max() < 0.01:
        unit = int(np.gcd.reduce(whole.astype(np.int64)))
        if unit and round(makespan * fine) <= most_ticks * unit:
            return unit / fine, round(makespan * fine) // unit
    return makespan / most_ticks, most_ticks


def _boxes(timeline: Timeline, tick: float) -> Boxes:
    plan = timeline.plan
    ops, place = plan.ops
    kind, micro_batch, stage = plan.split(ops)
    rank, half = plan.rank_of_place, np.zeros(len(ops), dtype=np.int32)
    start, end = (np.rint(at / tick).astype(np.int32) for at in (timeline.start, timeline.end))
    if len(plan.paired):
        half[1:] = 2 * (place[1:] == place[:-1])
        half[:-1] += half[1:] // 2
        rank, start, end = rank[place], start[place], end[place]
    # One stage a rank: the other one that a rank of DualPipe holds is of the other direction.
    chunk = (stage != rank).astype(np.int32) if plan.stages == plan.p else stage // plan.p
    return Boxes(rank, start, end, kind, micro_batch, stage, chunk, half)


def _curves(timeline: Timeline, boxes: Boxes, ticks: int) -> np.ndarray:
    """The most memory on each part of the axis, until W and until I: float64, (2, ranks, parts)."""
    p = timeline.plan.p
    parts = min(COLUMNS, ticks, -(-PARTS // p))
    width, firsts = ticks + 1, np.arange(parts) * ticks // parts
    curves = []
    # Some ranks at a time, so that what changes tick by tick stays small.
    step = max(1, TICKS_AT_ONCE // width)
    for low in range(0, p, step):
        part = slice(*np.searchsorted(boxes.rank, (low, low + step)))
        row, kind = (boxes.rank[part] - low) * width, boxes.kind[part]
        taken, whole, *split = (
            np.bincount((row + at[part])[kind == which], minlength=min(step, p - low) * width)
            for which, at in ((F, boxes.start), (B, boxes.end), (W, boxes.end), (I, boxes.end))
        )
        held = (np.cumsum((taken - whole - gone).reshape(-1, width), axis=1) for gone in split)
        curves.append(
            [np.maximum.reduceat(activations[:, :ticks], firsts, axis=1) for activations in held]
        )
    return timeline.plan.share * np.concatenate(curves, axis=1)


def shade(kind: str, chunk: int) -> str:
    """The colour of a kind of op on a chunk of its rank: the later the chunk, the deeper or
    paler."""
    base = PHASES[kind]
    towards = rgb(INKS[luminance(base) < 0.2])
    share = DEEPEST * (chunk % MOST_SHADES) / (MOST_SHADES - 1) ** 0.5
    share = min(share, 0.6)
    mixed = (round((1 - share) * a + share * b) for a, b in zip(rgb(base), towards))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def op_colours() -> list[str]:
    """The colour of an op by its number in `Strip.colour`."""
    return [shade(kind, chunk) for kind in PHASES for chunk in range(MOST_SHADES)]


def pixel_colours() -> np.ndarray:
    """RGB colours of `Strip.pixels` from 1 on: consecutive micro-batches differ a little."""
    fills = np.array([rgb(fill) for fill in op_colours()])
    return np.rint(np.stack([fills, DARKER * fills], axis=1)).reshape(-1, 3).astype(np.uint8)


# -- where things stand, in pixels ----------------------------------------------------------------


def gap(row: int) -> int:
    """Pixels between two rows of so many pixels."""
    return 2 if row >= LABEL_ROOM else 1


def box_places(strip: Strip) -> tuple[np.ndarray, np.ndarray]:
    """Upper edge and height of each box in pixels; in a pair one is above the other."""
    boxes, tall = strip.boxes, strip.row - gap(strip.row)
    upper = (tall + 1) // 2
    top = boxes.rank * strip.row + np.where(boxes.half == 2, upper, 0)
    return top, np.choose(boxes.half, [tall, upper, tall - upper])


def axis_of(strip: Strip) -> list[tuple[float, float, str]]:
    """About ten round times: the place on the axis, 0 to 1, the time, the anchor."""
    length = strip.ticks * strip.tick
    step = round_step(length / 10)
    labels = []
    for number in range(int(length / step + 1e-9) + 1):
        at = number * step / length
        anchor = "start" if number == 0 else "end" if at > 0.97 else "middle"
        labels.append((at, number * step, anchor))
    return labels


def round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below ``least``.

    >>> round_step(3.3), round_step(0.02), round_step(163)
    (5.0, 0.02, 200.0)
    """
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(s * power for s in (*STEPS, 10) if s * power >= least * (1 - 1e-9)))


def level_steps(curves: np.ndarray, tall: int, most: float) -> list[tuple[list[int], list[float]]]:
    """The parts of the axis where each curve changes, and its height in pixels from there on, in
    tenths; smaller changes are left out."""
    levels = np.rint(10 * tall * curves / most) / 10 if most else np.zeros(curves.shape)
    is_step = np.ones(levels.shape, dtype=bool)
    is_step[:, 1:] = levels[:, 1:] != levels[:, :-1]
    at, heights = np.nonzero(is_step)[1].tolist(), levels[is_step].tolist()
    ends = np.cumsum(is_step.sum(axis=1)).tolist()
    return [(at[start:end], heights[start:end]) for start, end in pairwise([0, *ends])]
