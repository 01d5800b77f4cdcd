"""Many cells as few elements: an outline of all of one colour, the numbers of a row as one text.

A browser takes about as long for a text of two digits as for one of two hundred. Numbers of as many
letters whose cells are equally far apart are one text, in letters of one width: its words are that
far from each other at any size of the letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from ..scenes.job_plan import Rectangle

LETTER = 0.61
"""The width of a letter in font sizes, of what letters of one width there are."""

STEPS = 4
"""Cells after the first one, the distance to one of which may be that of a text's words."""


def outline(x: np.ndarray, y: np.ndarray, size: tuple[float, float], radius: float) -> str:
    """Rectangles as one path, to be drawn with a line of ``2 * radius`` that rounds their corners.

    >>> outline(np.array([0.0, 10.0]), np.array([0.0, 0.0]), (8.0, 6.0), 1.0)
    'M1 1h6v4h-6zM11 1h6v4h-6z'
    """
    wide, tall = (f"{side - 2 * radius:.6g}" for side in size)
    rest = f"h{wide}v{tall}h-{wide}z"
    places = zip((x + radius).round(2).tolist(), (y + radius).round(2).tolist())
    return "".join(f"M{left:g} {top:g}{rest}" for left, top in places)


def frames(name: str, boxes: Sequence[Rectangle], radius: float) -> str:
    """Boxes with an edge of a pixel and round corners: their edges, and what is inside of them."""
    sizes: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for x, y, wide, tall in boxes:
        sizes.setdefault((round(wide, 2), round(tall, 2)), []).append((x, y))
    edge, face = "", ""
    for (wide, tall), corners in sizes.items():
        x, y = np.array(corners).T
        edge += outline(x - 0.5, y - 0.5, (wide + 1, tall + 1), radius + 0.5)
        face += outline(x + 0.5, y + 0.5, (wide - 1, tall - 1), max(radius - 0.5, 0.0))
    return (
        f'<path class="{name} edge" stroke-width="{2 * radius + 1:g}" d="{edge}"/>'
        f'<path class="{name} face" stroke-width="{max(2 * radius - 1, 0):g}" d="{face}"/>'
    )


def numbers(texts: Sequence[str], x: np.ndarray, y: np.ndarray, name: str, size: float) -> str:
    """A text in the middle of each cell; x and y: its middle, and the baseline or the middle.

    >>> numbers(["0", "1", "10"], np.array([5.0, 15, 25]), np.array([7.0, 7, 7]), "r", 8)[38:]
    '<text x="10" y="7" style="word-spacing:calc(10px - 2ch)">0 1</text><text x="25" y="7">10</text></g>'
    """  # noqa: E501
    rows: dict[tuple[float, int], list[tuple[float, str]]] = {}
    for text, left, top in zip(texts, x.round(2).tolist(), y.round(2).tolist()):
        rows.setdefault((top, len(text)), []).append((left, text))
    written = []
    for (top, letters), row in rows.items():
        row.sort()
        for places in progressions(tuple(left for left, _ in row)):
            first, last = row[places[0]][0], row[places[-1]][0]
            style = ""
            if len(places) > 1:
                apart = (last - first) / (len(places) - 1)
                style = f' style="word-spacing:calc({apart:.6g}px - {letters + 1}ch)"'
            words = " ".join(row[place][1] for place in places)
            middle = round((first + last) / 2, 2)
            written.append(f'<text x="{middle:g}" y="{top:g}"{style}>{words}</text>')
    return f'<g class="digits {name}" font-size="{size:.1f}px">{"".join(written)}</g>'


@lru_cache(maxsize=512)
def progressions(places: tuple[float, ...]) -> tuple[tuple[int, ...], ...]:
    """Ascending places as few rows of equally distant ones: the numbers of those in each.

    >>> progressions((0.0, 1.0, 5.0, 6.0, 10.0, 11.0))
    ((0, 2, 4), (1, 3, 5))
    """
    left = {round(place, 1): number for number, place in enumerate(places)}
    rows = []
    while left:
        starts = list(left)
        best: list[float] = starts[:1]
        for other in starts[1 : STEPS + 1]:
            row = [starts[0]]
            while (following := _near(row[-1] + other - starts[0], left)) is not None:
                row.append(following)
            best = max(best, row, key=len)
        rows.append(tuple(left.pop(place) for place in best))
    return tuple(rows)


def _near(place: float, places: Iterable[float]) -> float | None:
    """What is at a place, within what rounding may have moved it."""
    tries = (round(place + by, 1) for by in (0.0, -0.1, 0.1))
    return next((one for one in tries if one in places), None)  # type: ignore[operator]
