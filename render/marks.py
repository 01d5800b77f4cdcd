"""Marks to paint, as data: boxes, lines, pixels and words, in the order of painting.

`render.draw` makes a scene a list of marks in its own pixels, x to the right and y downwards. On
the page they are SVG in the colours of its style sheet (`svg.marks`); a drawing places such lists
in a file, which is written by the same as SVG and by `files.paint` as PNG or PDF. Layers, numbers
and slots are for the page, and a file has what they consist of (`flat`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont


class Look(NamedTuple):
    """The colours of one theme that are not in the palette."""

    page: str
    ink: str
    quiet: str  # of labels that matter less
    edge: str  # of a node's frame, a box, an axis
    ground: str  # of an empty row


LOOKS: dict[str, Look] = {
    "light": Look("#ffffff", "#1f2937", "#4b5563", "#9ca3af", "#f3f4f6"),
    "dark": Look("#0b0f19", "#e5e7eb", "#b6bcc8", "#6b7280", "#1b2230"),
    "page": Look(
        page="var(--background-fill-primary)",
        ink="var(--body-text-color)",
        quiet="var(--body-text-color-subdued)",
        edge="var(--border-color-primary)",
        ground="var(--background-fill-secondary)",
    ),
}
"""The looks of files, and that of the page, whose style sheet has a value for each theme."""

LABEL = 11.0
"""Font size in pixels of the labels of rows and columns."""

BASELINE = 0.36
"""The distance from the middle of a line of digits down to its baseline, in font sizes."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rectangles: corners (x, y) and sizes (width, height), shape (boxes, 2); sizes: or (2,).

    fill: one colour, or one a box.
    """

    corners: np.ndarray
    sizes: np.ndarray
    fill: str | Sequence[str] = "none"
    edge: str = "none"
    width: float = 1.0  # of the edge
    radius: float = 0.0

    def each(self) -> Iterable[tuple[float, float, float, float]]:
        """x, y, width and height of each rectangle."""
        if self.sizes.ndim == 1:
            wide, tall = self.sizes.tolist()
            return ((x, y, wide, tall) for x, y in self.corners.tolist())
        corners, sizes = np.broadcast_arrays(self.corners, self.sizes)
        return map(tuple, np.concatenate([corners, sizes], axis=-1).tolist())


@dataclass(frozen=True, eq=False)
class Lines:
    """Polylines, each of shape (points, 2); with a fill, outlines of areas.

    is_curved: each is a cubic of Bézier's, its two points of control between its ends.
    """

    lines: Sequence[np.ndarray | Sequence[tuple[float, float]]]
    colour: str = "none"
    width: float = 1.0
    dashes: tuple[float, ...] = ()  # pixels on, pixels off
    fill: str = "none"
    opacity: float = 1.0
    is_curved: bool = False


@dataclass(frozen=True, eq=False)
class Pixels:
    """A picture in a box (left, top, right, bottom).

    cells: uint8, shape (rows, columns, 3), red, green and blue; or, with a palette, shape (rows,
    columns): 0 is transparent, i the colour i - 1, of three channels or with an opacity. name: its
    class on the page.
    """

    cells: np.ndarray
    box: tuple[float, float, float, float]
    palette: Sequence[tuple[int, ...]] | None = None
    name: str = ""

    @property
    def is_opaque(self) -> bool:
        """Whether it hides what is below each of its pixels that is not transparent."""
        return self.palette is not None and all(len(colour) == 3 for colour in self.palette)

    def colours(self) -> np.ndarray:
        """RGBA colours: uint8, shape (rows, columns, 4)."""
        if self.palette is None:
            return np.pad(self.cells, ((0, 0), (0, 0), (0, 1)), constant_values=255)
        solid = ((*colour, 255)[:4] for colour in self.palette)
        table = np.array([(0, 0, 0, 0), *solid])
        return table.astype(np.uint8)[self.cells]


@dataclass(frozen=True)
class Words:
    """One line of text; x is its left, middle or right by ``anchor``.

    y: its baseline, or the middle of its digits. name: its class on the page; lead: what stands
    before the text, and may be left out there.
    """

    x: float
    y: float
    text: str
    size: float
    ink: str
    anchor: str = "start"
    bold: bool = False
    mono: bool = False
    is_middle: bool = False
    name: str = ""
    lead: str = ""

    @property
    def right(self) -> float:
        return self.x + advance(self.text, self.bold, self.mono) * self.size

    def plain(self) -> Words:
        """The words by their baseline, in one piece."""
        y = self.y + BASELINE * self.size * self.is_middle
        return replace(self, y=y, text=self.lead + self.text, is_middle=False, lead="")


@dataclass(frozen=True, eq=False)
class Numbers:
    """A short text centred in each cell. x, y: as of `Words`. name: the CSS class of the texts."""

    name: str
    texts: Sequence[str]
    x: np.ndarray
    y: np.ndarray
    size: float
    ink: str
    bold: bool = False
    is_middle: bool = False

    def words(self) -> Iterator[Words]:
        for text, x, y in zip(self.texts, self.x.tolist(), self.y.tolist()):
            word = Words(x, y, text, self.size, self.ink, "middle", self.bold)
            yield replace(word, is_middle=self.is_middle).plain()


@dataclass(frozen=True, eq=False)
class Layer:
    """Marks of one class of the page, which its style sheet may restyle.

    is_hidden: from screen readers, which have the same from the picture's description.
    """

    name: str
    marks: Sequence[Mark]
    is_hidden: bool = False


@dataclass(frozen=True)
class Slot:
    """SVG that the page's script fills or moves; files leave it out."""

    svg: str


class Scene(Protocol):
    """What is drawn: its size in pixels; `files.figure.DRAWINGS` has the function that draws it."""

    @property
    def width(self) -> float: ...
    @property
    def height(self) -> float: ...


Titled = Sequence[tuple[str, Scene]]
"""Scenes with their titles."""


class Together(NamedTuple):
    """Pictures that a slide shows all of, and what it shows where they are not readable so."""

    pictures: Titled
    instead: Titled


Plain = Blocks | Lines | Pixels | Words
Mark = Plain | Numbers | Layer | Slot


def flat(marks: Iterable[Mark]) -> Iterator[Plain]:
    """The marks of a file, in the order of painting.

    >>> name = Words(0, 50, "N0", 100, "#000", is_middle=True)
    >>> [round(word.y) for word in flat([Layer("rows", [name]), Slot("<g/>")])]
    [86]
    """
    for mark in marks:
        if isinstance(mark, Layer):
            yield from flat(mark.marks)
        elif isinstance(mark, Numbers):
            yield from mark.words()
        elif isinstance(mark, Words):
            yield mark.plain()
        elif not isinstance(mark, Slot):
            yield mark


MOST_COLOURS = 255
"""Colours of a palette whose cells are a byte each; 0 is transparent."""


def stacked(marks: Iterable[Plain]) -> Iterator[Plain]:
    """The marks, with opaque pictures that lie on each other as one: a painter takes a tenth of a
    second for each of a million pixels, and a plan of many roles has two for each of them.

    >>> box, red, blue = (0, 0, 3, 1), (200, 0, 0), (0, 0, 200)
    >>> below = Pixels(np.array([[1, 1, 0]], dtype=np.uint8), box, [red])
    >>> above = Pixels(np.array([[0, 2, 0]], dtype=np.uint8), box, [red, blue])
    >>> (one,) = stacked([below, above])
    >>> one.cells.tolist(), one.palette
    ([[1, 3, 0]], [(200, 0, 0), (200, 0, 0), (0, 0, 200)])
    """
    below: Pixels | None = None
    for mark in marks:
        above = mark if isinstance(mark, Pixels) and mark.is_opaque else None
        if below is not None:
            both = above and _on(below, above)
            if both:
                below = both
                continue
            yield below
        below = above
        if above is None:
            yield mark
    if below is not None:
        yield below


def _on(below: Pixels, above: Pixels) -> Pixels | None:
    """Two opaque pictures as one, where they lie on each other."""
    palette = [*(below.palette or ()), *(above.palette or ())]
    same = below.box == above.box and below.cells.shape == above.cells.shape
    if not same or len(palette) > MOST_COLOURS:
        return None
    cells = np.where(above.cells, above.cells + np.uint8(len(below.palette or ())), below.cells)
    return replace(below, cells=cells.astype(np.uint8, copy=False), palette=palette)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A page of marks; each list of them is at a place (x, y) in a scale."""

    width: float
    height: float
    ground: str
    placed: Sequence[tuple[float, float, float, Sequence[Plain]]]

    @property
    def has_pixels(self) -> bool:
        return any(isinstance(mark, Pixels) for *_, marks in self.placed for mark in marks)


def ring(
    x: float, y: float, radius: float, colour: str, width: float, fill: str = "none"
) -> Blocks:
    """A circle round (x, y), as a rounded box."""
    corner, side = np.array([[x - radius, y - radius]]), np.full(2, 2 * radius)
    return Blocks(corner, side, fill, edge=colour, width=width, radius=radius)


@lru_cache(maxsize=256)
def rounded(width: float, height: float, radius: float) -> np.ndarray:
    """The outline of a rectangle with rounded corners at the origin: shape (corners * 4, 2)."""
    turn = np.linspace(0, np.pi / 2, 7 if radius else 1)
    arc = radius * np.stack([1 - np.cos(turn), 1 - np.sin(turn)], axis=-1)
    size, back = (width, height), arc[::-1]
    return np.concatenate(
        [arc, np.abs((width, 0) - back), size - arc, np.abs((0, height) - back)], axis=0
    )


# -- text ----------------------------------------------------------------------------------------

CHINESE = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Noto Sans CJK JP"),
    *("PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "SimHei"),
    *("WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
)
"""Fonts with Chinese letters; the first installed one applies."""


def is_wide(text: str) -> bool:
    """Whether a text has Chinese letters.

    >>> is_wide("2 × 8"), is_wide("步")
    (False, True)
    """
    return any(unicodedata.east_asian_width(letter) in "WF" for letter in text)


def advance(text: str, bold: bool = False, mono: bool = False) -> float:
    """The width of a text in font sizes; 1 for a Chinese letter in any font.

    >>> advance("步骤")
    2.0
    """
    return sum(_advance(letter, bold, mono) for letter in text)


@lru_cache(maxsize=4096)
def _advance(letter: str, bold: bool, mono: bool) -> float:
    return 1.0 if is_wide(letter) else _dejavu(bold, mono).getlength(letter) / EM


EM = 2048
"""Units per font size of DejaVu's widths."""


@lru_cache(maxsize=4)
def _dejavu(bold: bool, mono: bool) -> FreeTypeFont:
    """The font of files, part of matplotlib, whose import takes a second: widths need only the font
    file."""
    from PIL import ImageFont

    (home,) = find_spec("matplotlib").submodule_search_locations  # type: ignore[union-attr, misc]
    name = f"DejaVuSans{'Mono' * mono}{'-Bold' * bold}.ttf"
    path = Path(home, "mpl-data", "fonts", "ttf", name)
    return ImageFont.truetype(str(path), EM, layout_engine=ImageFont.Layout.BASIC)


def fits(text: str, room: float, bold: bool = False) -> bool:
    """Whether a text fits into a width in font sizes, with tolerance for rounding.

    >>> fits("tp2 pp4", (advance("tp2 pp4") * 13 + 89.1 - 89.1) / 13)
    True
    """
    return advance(text, bold) <= room + 1e-6


_FAR = "\u2e80-\uffff"
_STOPS = "\u3001-\u3003\uff0c\uff1b\uff1a\uff09\uff01\uff1f"
WORD = rf"\s*(?:[{_FAR}]|[^\s{_FAR}]+)[{_STOPS}]*"
"""An unbreakable part of a line: a word or a Chinese letter, with Chinese punctuation after it."""


def wrapped(text: str, room: float, bold: bool = False, most: int = 99) -> list[str]:
    """A text in lines of a width in font sizes; past ``most`` lines the last ends in dots.

    >>> wrapped("two words", 4.0), wrapped("一二三。四", 3.0), wrapped("一 GB。二", 3.0)
    (['two', 'words'], ['一二', '三。四'], ['一', 'GB。', '二'])
    """
    lines: list[str] = []
    for part in re.findall(WORD, text):
        if lines and fits(lines[-1] + part, room, bold):
            lines[-1] += part
        else:
            lines.append(part.strip())
    if len(lines) > most:
        lines[most - 1 :] = [shortened(" ".join(lines[most - 1 :]), room, bold)]
    return lines


def shortened(text: str, room: float, bold: bool = False) -> str:
    """A text cut to a width in font sizes, with dots at its end.

    >>> shortened("a long text", 4.0)
    'a lon…'
    """
    if fits(text, room, bold):
        return text
    while text and not fits(text + "…", room, bold):
        text = text[:-1]
    return text.rstrip() + "…"
