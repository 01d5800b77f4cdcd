"""A slide of 16:9 with what is on screen.

The question and its answer at the top, the pictures as large as they fit, the key, and at the
bottom the sizes of the job and the address that shows it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..marks import (
    LOOKS,
    Drawing,
    Plain,
    Scene,
    Titled,
    Together,
    Words,
    advance,
    shortened,
    wrapped,
)
from ..scenes.charts import OverTime
from ..scenes.geometry import LETTERS
from .figure import MARGIN as FROM
from .figure import SMALL as OF_KEY
from .figure import Legend, scene_marks

WIDTH, HEIGHT, MARGIN = 1280.0, 720.0, 48.0
"""Width, height and margin of a slide in pixels."""

TITLE, TEXT, LABEL, SMALL = 30.0, 18.0, 15.0, 13.4
"""Font sizes in pixels: of the title, a sentence, a picture's title, and the foot (10 points)."""

WIDOW = 4.0
"""The least length of a sentence's last line, in font sizes."""

LEADING = 1.35
"""Distance of two lines of a title, in font sizes."""

LARGEST, READABLE = 4.0, 13.4
"""The largest scale of a picture, and its smallest readable letters in pixels."""

LOUD = 32.0
"""The largest size in pixels that a picture's smallest letters may reach."""

APART = 28.0
"""Pixels between pictures."""

COLUMNS, MOST = 3, 4
"""The most pictures beside each other, and in total."""

MOST_ADDRESS = 600
"""The longest address in one line, in characters."""

MOST_LINES = 4
"""The most lines of an address."""


class SlideText(NamedTuple):
    """Question, answer, sizes of the job, and the address that opens it again."""

    title: str
    sentence: str = ""
    sizes: str = ""
    address: str = ""


def slide(
    text: SlideText,
    pictures: Titled | Together,
    theme: str = "light",
    key: Mapping[str, str] = {},
) -> Drawing:
    """A drawing of WIDTH by HEIGHT with these pictures beside or below each other.

    pictures: titles, empty for none, and scenes of the types in `figure.DRAWINGS`, at least one; as
    many of the first are shown as are readable. key: its words, as of `figure`.

    Errors: KeyError for an unknown theme.
    """
    look, across = LOOKS[theme], WIDTH - 2 * MARGIN
    words = [Words(MARGIN, MARGIN + TITLE * 0.8, text.title, TITLE, look.ink, bold=True)]
    y = MARGIN + TITLE + 12
    lines = wrapped(text.sentence, across / TEXT, most=3)
    if lines and advance(lines[-1]) < WIDOW:
        lines = wrapped(text.sentence, 0.94 * across / TEXT, most=3)
    for line in lines:
        words.append(Words(MARGIN, y + TEXT, line, TEXT, look.ink))
        y += TEXT * 1.45
    bottom = HEIGHT - MARGIN * 0.75
    *above, address = _address(text.address, across / SMALL)
    for number, line in enumerate(reversed((*above, address))):
        at = bottom - number * SMALL * 1.4
        words.append(Words(WIDTH - MARGIN, at, line, SMALL, look.quiet, "end"))
    # Sizes have a line of their own where there is no room beside the address.
    is_beside = not above and advance(text.sizes + 4 * " " + address) * SMALL < across
    foot = bottom - (len(above) + (not is_beside)) * SMALL * 1.4
    words.append(Words(MARGIN, foot, text.sizes, SMALL, look.quiet))
    foot -= SMALL * 1.4 + 6
    larger = LABEL / OF_KEY
    for shown in _choices(pictures):  # the first that are readable together
        scenes = [scene for _, scene in shown]
        legend = Legend.of(scenes, theme, OF_KEY, key, across / larger)
        top = foot - larger * (legend.height - OF_KEY) if legend.entries else foot
        heights, columns = (y + 16, top - 14), range(1, min(COLUMNS, len(shown)) + 1)
        ways = (_arranged(shown, number, *heights, theme) for number in columns)
        arrangement = max(ways, key=lambda drawing: drawing.quality)
        if arrangement.letters >= READABLE:
            break
    placed = arrangement.placed(look.ink)
    placed.append((MARGIN - FROM * larger, top, larger, list(legend.marks())))
    placed.append((0.0, 0.0, 1.0, words))
    return Drawing(WIDTH, HEIGHT, look.page, placed)


def _choices(pictures: Titled | Together) -> Iterator[Titled]:
    """What is tried, in order: as many of the first pictures as there are; the last is taken.

    >>> [len(shown) for shown in _choices([("", OverTime)] * 2)]
    [2, 1]
    """
    if isinstance(pictures, Together):
        yield pictures.pictures[:MOST]
        pictures = pictures.instead
    for count in range(min(MOST, len(pictures)), 0, -1):
        yield pictures[:count]


def _address(text: str, room: float) -> list[str]:
    """An address in lines of a width in font sizes, or without its scheme in one: complete, for one
    that is cut opens another page. Only past MOST_LINES lines it ends in dots.

    >>> [_address("https://a.b/?v=2&tp=4&zero=1", room) for room in (20, 13, 11)]
    [['https://a.b/?v=2&tp=4&zero=1'], ['a.b/?v=2&tp=4&zero=1'], ['a.b/?v=2&tp=4', '&zero=1']]
    """
    bare = text.partition("://")[2] or text
    for whole in (text, bare):
        if len(whole) <= MOST_ADDRESS and advance(whole) <= room:
            return [whole]
    lines, kept = [""], bare[: MOST_LINES * MOST_ADDRESS]  # more would not fit
    for part in re.findall(rf".[^&;]{{0,{MOST_ADDRESS}}}", kept):
        if advance(lines[-1] + part) > room and lines[-1]:
            lines.append("")
        lines[-1] += part
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], lines[MOST_LINES - 1] + " …"]
    elif kept != bare:
        lines[-1] += " …"
    return [shortened(line, room) for line in lines]


def _height(heads: Sequence[Sequence[str]]) -> float:
    """The height of titles in pixels, for all the lines of the longest."""
    most = max(map(len, heads), default=0)
    return LABEL * (1.9 + LEADING * (most - 1)) if most else 0.0


def _smallest(marks: Sequence[Plain]) -> float:
    return min(
        (mark.size for mark in marks if isinstance(mark, Words) and mark.text), default=LABEL
    )


@dataclass(frozen=True, eq=False)
class _Arranged:
    """The pictures of a slide between two heights, each below its title."""

    top: float
    bottom: float
    columns: int
    heads: Sequence[Sequence[str]]
    scenes: Sequence[Scene]
    marks: Sequence[Sequence[Plain]]
    scales: Sequence[float]

    @property
    def letters(self) -> float:
        """The size of the smallest letters on the slide; 0 if a picture has none of its own."""
        if not all(getattr(scene, "is_readable", True) for scene in self.scenes):
            return 0.0
        return min(_smallest(drawn) * scale for drawn, scale in zip(self.marks, self.scales))

    @property
    def quality(self) -> tuple[float, float]:
        """A sort key: readable first, then large."""
        sizes = zip(self.scenes, self.scales)
        area = sum(scene.width * scene.height * scale**2 for scene, scale in sizes)
        return min(self.letters, READABLE), area

    def placed(self, ink: str) -> list[tuple[float, float, float, Sequence[Plain]]]:
        """The pictures, each under its title, centred in the available space."""
        head = _height(self.heads)
        placed: list[tuple[float, float, float, Sequence[Plain]]] = []
        sizes = [(s.width * f, s.height * f) for s, f in zip(self.scenes, self.scales)]
        lines = [sizes[at : at + self.columns] for at in range(0, len(sizes), self.columns)]
        heights = [max(tall for _, tall in line) + head for line in lines]
        head_widths = (advance(line, bold=True) * LABEL for lines in self.heads for line in lines)
        widest = max([*(wide for wide, _ in sizes), *head_widths])
        left = max(MARGIN, (WIDTH - self.columns * (widest + APART) + APART) / 2)
        spare = self.bottom - self.top - sum(heights) - APART * (len(lines) - 1)
        tops = [self.top + max(0.0, spare) * 0.4]
        for height in heights:
            tops.append(tops[-1] + height + APART)
        for number, (marks, scale, title) in enumerate(zip(self.marks, self.scales, self.heads)):
            line, place = divmod(number, self.columns)
            x, y = left + place * (widest + APART), tops[line]
            for at, text in enumerate(title, 1 - len(title)):
                foot = y + head - LABEL * (0.9 - LEADING * at)
                placed.append((0.0, 0.0, 1.0, [Words(x, foot, text, LABEL, ink, bold=True)]))
            placed.append((x, y + head, scale, marks))
        return placed


def on_one_axis(scenes: Sequence[Scene]) -> list[Scene]:
    """The scenes with those over time as wide as the narrowest, so that equal moments are below
    each other."""
    plots = [scene.most_plot for scene in scenes if isinstance(scene, OverTime)]
    return [
        replace(scene, most_plot=min(plots)) if isinstance(scene, OverTime) else scene
        for scene in scenes
    ]


def _like(scene: Scene) -> type:
    return OverTime if isinstance(scene, OverTime) else type(scene)


def _arranged(pictures: Titled, columns: int, top: float, bottom: float, theme: str) -> _Arranged:
    """Pictures in so many columns, each fitted to its place; those of one type in one scale, and
    all over time on one axis."""
    lines = -(-len(pictures) // columns)
    wide = (WIDTH - 2 * MARGIN - (columns - 1) * APART) / columns
    heads = [wrapped(title, wide / LABEL, bold=True, most=2) for title, _ in pictures]
    tall = (bottom - top - (lines - 1) * APART) / lines - _height(heads)
    room = wide / LETTERS, tall / LETTERS
    fitted = [scene.fitted(room) if hasattr(scene, "fitted") else scene for _, scene in pictures]
    scenes = on_one_axis(fitted)
    marks = [scene_marks(scene, theme) for scene in scenes]
    scales: dict[type, float] = {}
    for scene, drawn in zip(scenes, marks):
        most = min(LARGEST, LOUD / _smallest(drawn), wide / scene.width, tall / scene.height)
        scales[_like(scene)] = max(0.02, min(most, scales.get(_like(scene), LARGEST)))
    each = [scales[_like(scene)] for scene in scenes]
    return _Arranged(top, bottom, columns, heads, scenes, marks, each)
