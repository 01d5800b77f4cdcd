"""Tables, text to copy and scatter charts -> marks of a file, for views whose page has no picture
of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from formats.documents.tables import Table, cell

from ..draw.axes import draw_axes
from ..marks import (
    LABEL,
    LOOKS,
    Blocks,
    Lines,
    Mark,
    Words,
    advance,
    fits,
    ring,
    shortened,
    wrapped,
)
from ..palette import fill_of
from ..scenes.charts import DOTS, HERE, Entry, PointsChart
from ..scenes.geometry import LETTERS

SIZE, LINE, PAD, GUTTER = 13.0, 15.8, 6.4, 16.0
"""Pixels: letters of a table, line height, padding of a row, space between columns."""

ZOOMS = (1.7, 1.5, 1.4, 1.3, 1.2, 1.1, 1.04)
"""Scales of a table on a slide; the first that fits applies."""

BAR, BAR_SIDE = 100.0, 11.0
"""Length of the longest bar, and height of a bar, in pixels."""


class BarCell(NamedTuple):
    """A bar: the colour of each part, and its share of the longest bar; text: below it."""

    parts: tuple[tuple[str, float], ...]
    text: str = ""

    def __str__(self) -> str:
        return self.text


Cell = str | BarCell


@dataclass(frozen=True)
class TableChart:
    """A table on a slide: cells are texts, whose line breaks are kept, and bars.

    marked: the row that is on screen. flexible: columns of long texts, which share what room there
    is; their lines are broken. Where is_cut says so only the last gives way: its lines end in dots.
    """

    table: Table
    marked: int = -1
    flexible: tuple[int, ...] = ()
    legend: tuple[Entry, ...] = ()
    room: float = field(default=1100.0, kw_only=True)
    is_cut: bool = field(default=False, kw_only=True)

    @cached_property
    def heads(self) -> tuple[str, ...]:
        return tuple(map(str, self.table.columns))

    @cached_property
    def rows(self) -> list[list[Cell]]:
        return [
            [one if isinstance(one, BarCell) else cell(one) for one in row]
            for row in self.table.rows
        ]

    def fitted(self, room: tuple[float, float]) -> TableChart:
        wide, tall = (LETTERS * side for side in room)
        tables = [
            (replace(self, room=wide / zoom, is_cut=is_cut), zoom)
            for is_cut, zooms in ((False, ZOOMS), (bool(self.flexible), ZOOMS[-1:]))
            for zoom in zooms
        ]
        fits = (
            table
            for table, zoom in tables
            if table.height * zoom <= tall and table.width * zoom <= wide + 1
        )
        return next(fits, tables[-1][0])

    @cached_property
    def columns(self) -> list[float]:
        """The width of each column in pixels."""
        widths = [
            max(
                advance(head) * SIZE,
                *(
                    self._widest(row[at], place == self.marked)
                    for place, row in enumerate(self.rows)
                ),
            )
            for at, head in enumerate(self.heads)
        ]
        flexible = self.flexible[-1:] if self.is_cut else self.flexible
        long = sum(widths[at] for at in flexible)
        rest = self.room - (sum(widths) - long) - GUTTER * (len(widths) - 1)
        for place, at in enumerate(sorted(flexible, key=lambda at: widths[at])):
            even = max(6 * SIZE, rest / (len(flexible) - place))  # equal parts of what is left
            widths[at] = min(widths[at], even)
            rest -= widths[at]
        return widths

    @staticmethod
    def _widest(shown: Cell, is_marked: bool) -> float:
        if isinstance(shown, BarCell) and not shown.text:
            return BAR
        lines = str(shown).split("\n")
        return SIZE * max(advance(line, is_marked and line is lines[0]) for line in lines)

    @cached_property
    def lines(self) -> list[list[list[str]]]:
        """The lines of each cell of each row; a bar with a text below takes the first of them."""
        return [
            [
                (["", *shown.text.split("\n")] if shown.text else [])
                if isinstance(shown, BarCell)
                else self._broken(shown, at, number == self.marked)
                for at, shown in enumerate(row)
            ]
            for number, row in enumerate(self.rows)
        ]

    def _broken(self, text: str, column: int, bold: bool) -> list[str]:
        if column not in self.flexible:
            return text.split("\n")
        room, lines = self.columns[column] / SIZE, text.split("\n")
        if self.is_cut:
            return [_cut(line, room, bold and line is lines[0]) for line in lines]
        return [part for line in lines for part in wrapped(line, room, bold and line is lines[0])]

    @cached_property
    def heights(self) -> list[float]:
        return [PAD + LINE * max(1, *map(len, row)) for row in self.lines]

    @property
    def width(self) -> float:
        return sum(self.columns) + GUTTER * (len(self.columns) - 1)

    @property
    def height(self) -> float:
        return LINE + PAD + sum(self.heights) + 2


EXPLAINS = r"\s*([(\uff08][^()\uff08\uff09]*[)\uff09]|[:\uff1a][^:\uff1a]*)$"
"""The explanatory end of a line, in either language."""


def _cut(text: str, room: float, bold: bool) -> str:
    """A line of a width in font sizes: a longer one loses its end in brackets or after a colon.

    >>> _cut("1 s less (recomputed: core)", 6.0, False), _cut("1 s less: pp 2", 5.0, False)
    ('1 s less', '1 s less')
    """
    if not fits(text, room, bold):
        text = re.sub(EXPLAINS, "", text)
    return shortened(text, room, bold)


def draw_table(chart: TableChart, theme: str) -> Iterator[Mark]:
    """Heads above a line, rows below; the row of the layout on screen on a background of its
    own."""
    look = LOOKS[theme]
    lefts = np.cumsum([0.0, *(wide + GUTTER for wide in chart.columns)])[:-1].tolist()
    for x, head in zip(lefts, chart.heads):
        yield Words(x, SIZE, head, SIZE, look.quiet)
    y = LINE + PAD / 2
    for number, (row, lines, tall) in enumerate(zip(chart.rows, chart.lines, chart.heights)):
        if number == chart.marked:
            box = np.array([[-8.0, y]]), np.array([chart.width + 16, tall])
            yield Blocks(*box, look.ground, radius=5.0)
        yield Lines([[(0.0, y), (chart.width, y)]], look.edge if number == 0 else look.ground)
        for at, (x, shown) in enumerate(zip(lefts, row)):
            # A cell of one line stands in the middle of its row, as on the page.
            top = y + (tall - LINE * len(lines[at])) / 2
            if isinstance(shown, BarCell):
                middle = top + LINE / 2 if shown.text else y + tall / 2
                yield from _bar(x, middle, shown, chart.columns[at] if shown.text else BAR, theme)
            for place, line in enumerate(lines[at]):
                is_first = number == chart.marked and place == 0
                is_plain = place == 0 or at == len(row) - 1 or isinstance(shown, BarCell)
                ink = look.ink if is_plain else look.quiet
                baseline = top + LINE * (place + 0.5) + 0.36 * SIZE
                yield Words(x, baseline, line, SIZE, ink, bold=is_first)
        y += tall


def _bar(x: float, middle: float, bar: BarCell, wide: float, theme: str) -> Iterator[Mark]:
    ends = np.cumsum([0.0, *(share for _, share in bar.parts)]) * wide
    side = BAR_SIDE if wide == BAR else BAR_SIDE - 3
    corners = np.stack([x + ends[:-1], np.full(len(bar.parts), middle - side / 2)], axis=-1)
    sizes = np.stack([np.diff(ends), np.full(len(bar.parts), side)], axis=-1)
    yield Blocks(corners, sizes, [fill_of(colour, theme) for colour, _ in bar.parts])


MOST_LINES, LONGEST = 26, 96
"""The most lines of a text on a slide, and the longest line in characters."""


@dataclass(frozen=True)
class CodeChart:
    """Text to copy in a monospaced font; longer lines end in dots.

    more: the words below a text that was cut, with {count} for the lines left out.
    """

    text: str
    more: str

    @cached_property
    def lines(self) -> list[str]:
        lines = [line.rstrip() for line in self.text.rstrip().split("\n")]
        lines = [line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in lines]
        if len(lines) > MOST_LINES:
            left = len(lines) - MOST_LINES + 1
            lines = [*lines[: MOST_LINES - 1], self.more.format(count=left)]
        return lines

    @property
    def width(self) -> float:
        return 2 * PAD + max(advance(line, mono=True) for line in self.lines) * SIZE

    @property
    def height(self) -> float:
        return 2 * PAD + LINE * len(self.lines)


def draw_code(chart: CodeChart, theme: str) -> Iterator[Mark]:
    """The text on a background of its own."""
    look = LOOKS[theme]
    box = np.array([[0.0, 0.0]]), np.array([chart.width, chart.height])
    yield Blocks(*box, look.ground, edge=look.edge, radius=6.0)
    for number, line in enumerate(chart.lines):
        y = PAD + LINE * (number + 0.5) + 0.36 * SIZE
        yield Words(PAD, y, line, SIZE, look.ink, mono=True)


def draw_points(chart: PointsChart, theme: str) -> Iterator[Mark]:
    """Axes, dots, rings round the nearest, and the layout on screen with its interval."""
    look = LOOKS[theme]
    box = (chart.left, chart.top, chart.right, chart.foot)
    across = [(chart.x(share), text) for share, text in chart.across]
    up = [(chart.y(share), text) for share, text in chart.up]
    name = shortened(chart.words["up"], (chart.right - chart.left) / LABEL)
    yield from draw_axes(box, (across, up), (chart.words["across"], name), look, gaps=(34, 6))
    for name, (colour, radius) in DOTS.items():
        spots = getattr(chart, name)
        yield Blocks(chart.pixels(spots) - radius, np.full(2, 2 * radius), colour, radius=radius)
    for x, y in chart.pixels(chart.near).tolist():
        yield ring(x, y, 6.0, look.ink, 1.5)
    x, (y, high, low) = chart.x(chart.here[0]), map(chart.y, chart.here[1:])
    yield Lines([[(x, high), (x, low)]], HERE[theme], 3.0)
    yield ring(x, y, 5.0, look.page, 1.5, HERE[theme])
