"""A slide of 16:9: what is on screen, for a talk as it is.

The question and its answer at the top, the pictures as large as they fit, the key, and at the
bottom the sizes of the job and the address that shows it again.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure

from . import canvas
from .canvas import LOOKS, Words, draw_words
from .groups import DRAWINGS, Legend, blank
from .groups import MARGIN as FROM

WIDTH, HEIGHT, MARGIN = 1280.0, 720.0, 48.0
"""Pixels of a slide, and round it."""

TITLE, TEXT, LABEL, SMALL = 30.0, 18.0, 14.0, 12.0
"""Font sizes in pixels: title, sentence, of a picture, at the bottom."""

LARGEST, READABLE = 2.6, 0.7
"""How far a picture may be enlarged, and made smaller so that more of them stand together."""

APART = 28.0
"""Pixels between pictures."""

LONGEST_ADDRESS = 130
"""Characters of an address in a line; it has two."""


@dataclass(frozen=True)
class Told:
    """What a slide says in words."""

    title: str
    sentence: str = ""
    sizes: str = ""
    address: str = ""


def slide(told: Told, scenes: Sequence[Any], titles: Sequence[str], theme: str = "light") -> Figure:
    """A figure of WIDTH by HEIGHT with these scenes beside or below each other.

    scenes: of the types in `groups.DRAWINGS`, at least one; as many of the first are shown as are
    readable. titles: one a scene; empty for none.

    Errors: KeyError for an unknown theme.
    """
    look = LOOKS[theme]
    made, page = blank(int(WIDTH), int(HEIGHT), look)
    words = [Words(MARGIN, MARGIN + TITLE * 0.8, told.title, TITLE, look.ink, bold=True)]
    y = MARGIN + TITLE + 12
    for line in textwrap.wrap(told.sentence, 122)[:3]:
        words.append(Words(MARGIN, y + TEXT, line, TEXT, look.ink))
        y += TEXT * 1.45
    bottom = HEIGHT - MARGIN * 0.75
    address = _address(told.address)
    for number, line in enumerate(reversed(address)):
        at = bottom - number * SMALL * 1.4
        words.append(Words(WIDTH - MARGIN, at, line, SMALL, look.quiet, "end"))
    words.append(Words(MARGIN, bottom, told.sizes, SMALL, look.quiet))
    foot = bottom - len(address) * SMALL * 1.4 - 6
    head = LABEL * 1.9 if any(titles) else 0.0
    for count in range(len(scenes), 0, -1):  # the first that are readable together
        legend = _moved(Legend.of(scenes[:count], theme, 0.0), foot)
        room = _Room(y + 20, foot - legend.height - 16, head)
        if room.scale(scenes[:count], room.columns(scenes[:count])) >= READABLE:
            break
    words += _place(made, scenes[:count], titles, room, theme)
    legend.draw(page)
    draw_words(page, words)
    return made


def _address(text: str) -> list[str]:
    """An address in two lines; what is longer ends in dots."""
    lines = [text[at : at + LONGEST_ADDRESS] for at in range(0, len(text), LONGEST_ADDRESS)]
    if len(lines) > 2:
        lines = [lines[0], lines[1][:-2] + " …"]
    return lines or [""]


def _moved(legend: Legend, bottom: float) -> Legend:
    """A key in larger letters that begins at the margin and ends at this height."""
    if not legend.entries:
        return legend
    larger, last = LABEL / legend.entries[0][1].size, legend.entries[-1][1].y
    entries = tuple(
        (
            swatch,
            replace(
                one,
                x=MARGIN + (one.x - FROM) * larger,
                y=bottom + (one.y - last) * larger,
                size=LABEL,
            ),
        )
        for swatch, one in legend.entries
    )
    return Legend(entries, legend.look)


@dataclass(frozen=True)
class _Room:
    """Where the pictures of a slide stand: between two heights, each below a line for its title."""

    top: float
    bottom: float
    head: float

    def scale(self, scenes: Sequence[Any], columns: int) -> float:
        """How large so many scenes of one scale can be in so many columns."""
        lines = -(-len(scenes) // columns)
        across = (WIDTH - 2 * MARGIN - (columns - 1) * APART) / columns
        down = (self.bottom - self.top - (lines - 1) * APART) / lines - self.head
        wide, tall = _largest(scenes)
        return min(LARGEST, across / wide, down / tall)

    def columns(self, scenes: Sequence[Any]) -> int:
        counts = range(1, len(scenes) + 1)
        return max(counts, key=lambda count: (self.scale(scenes, count), -count))


def _largest(scenes: Sequence[Any]) -> tuple[float, float]:
    return max(scene.width for scene in scenes), max(scene.height for scene in scenes)


def _place(
    made: Figure, scenes: Sequence[Any], titles: Sequence[str], room: _Room, theme: str
) -> list[Words]:
    """The pictures, each under its title; these as words."""
    columns = room.columns(scenes)
    factor = max(room.scale(scenes, columns), 0.02)
    wide, tall = _largest(scenes)
    words = []
    taken = columns * (wide * factor + APART) - APART
    left = max(MARGIN, (WIDTH - taken) / 2)  # what is narrower stands in the middle
    for number, (scene, title) in enumerate(zip(scenes, titles)):
        line, place = divmod(number, columns)
        x = left + place * (wide * factor + APART)
        y = room.top + line * (tall * factor + room.head + APART)
        if title:
            letters = max(12, int(wide * factor / LABEL / 0.58))
            text = textwrap.shorten(title, letters, placeholder=" …")
            words.append(Words(x, y + LABEL, text, LABEL, LOOKS[theme].ink, bold=True))
        ax = canvas.axes(made, x, y + room.head, scene.width * factor, scene.height * factor)
        DRAWINGS[type(scene)](ax, scene, theme)
    return words
