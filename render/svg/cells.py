"""Many cells as few elements: an outline of all of one colour, the numbers of a row as one text.

A browser takes about as long for a text of two digits as for one of two hundred. Numbers of as many
letters whose cells are equally far apart are one text, in letters of one width: its words are that
far from each other at any size of the letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from groups.kept import kept

from ..marks import Numbers

LETTER = 0.61
"""The width of a letter of a monospaced font, in font sizes."""

MOST_KEPT = 512
"""The most cells of a path or a text that is remembered."""

STEPS = 4
"""The most cells after the first whose distance may be that of a text's words."""


def outline(corners: np.ndarray, sizes: np.ndarray) -> str:
    """Rectangles as one path; corners: shape (boxes, 2), sizes: the same, or (2,).

    >>> outline(np.array([[1.0, 1], [11.0, 1]]), np.array([6.0, 4.0]))
    'M1 1h6v4h-6zM11 1h6v4h-6z'
    """
    if len(corners) > MOST_KEPT:
        return _outline(corners, sizes)
    # The frames of nodes, and the cells of a colour, are those of other panels too.
    return _kept_outline(_bytes(corners), _bytes(sizes), sizes.ndim)


@kept
def _kept_outline(corners: bytes, sizes: bytes, ndim: int) -> str:
    shape = (2,) if ndim == 1 else (-1, 2)
    return _outline(np.frombuffer(corners).reshape(-1, 2), np.frombuffer(sizes).reshape(shape))


def _bytes(numbers: np.ndarray) -> bytes:
    return numbers.astype(np.float64, copy=False).tobytes()


def _outline(corners: np.ndarray, sizes: np.ndarray) -> str:
    places = corners.round(2).tolist()
    if sizes.ndim == 1:
        wide, tall = sizes.round(4).tolist()
        rest = f"h{wide:.9g}v{tall:.9g}h-{wide:.9g}z"
        return "".join(f"M{left:.9g} {top:.9g}{rest}" for left, top in places)
    each = list(map(tuple, sizes.round(2).tolist()))
    # Few sizes differ.
    rests = {(wide, tall): f"h{wide:.9g}v{tall:.9g}h-{wide:.9g}z" for wide, tall in set(each)}
    return "".join(f"M{left:.9g} {top:.9g}{rests[size]}" for (left, top), size in zip(places, each))


def runs(numbers: Numbers) -> str:
    """Texts centred in cells.

    >>> x, y = np.array([5.0, 15, 25]), np.array([7.0, 7, 7])
    >>> runs(Numbers("r", ["0", "1", "10"], x, y, 8, "red"))[49:]
    '<text x="10" y="7" style="word-spacing:calc(10px - 2ch)">0 1</text><text x="25" y="7">10</text></g>'
    """  # noqa: E501
    if len(numbers.texts) > MOST_KEPT:
        written = _runs(numbers.texts, numbers.x, numbers.y)
    else:  # the ranks are those of other panels too
        written = _kept_runs(tuple(numbers.texts), _bytes(numbers.x), _bytes(numbers.y))
    base = ' dominant-baseline="central"' if numbers.is_middle else ""
    look = f'font-size="{numbers.size:.1f}px" fill="{numbers.ink}"{base}'
    return f'<g class="digits {numbers.name}" {look}>{written}</g>'


@kept
def _kept_runs(texts: tuple[str, ...], x: bytes, y: bytes) -> str:
    return _runs(texts, np.frombuffer(x), np.frombuffer(y))


def _runs(texts: Sequence[str], x: np.ndarray, y: np.ndarray) -> str:
    rows: dict[tuple[float, int], list[tuple[float, str]]] = {}
    places = zip(texts, x.round(2).tolist(), y.round(2).tolist())
    for text, left, top in places:
        rows.setdefault((top, len(text)), []).append((left, text))
    written = []
    for (top, letters), row in rows.items():
        row.sort()
        for run in progressions(tuple(left for left, _ in row)):
            first, last = row[run[0]][0], row[run[-1]][0]
            style = ""
            if len(run) > 1:
                apart = (last - first) / (len(run) - 1)
                style = f' style="word-spacing:calc({apart:.6g}px - {letters + 1}ch)"'
            words = " ".join(row[place][1] for place in run)
            middle = round((first + last) / 2, 2)
            written.append(f'<text x="{middle:g}" y="{top:g}"{style}>{words}</text>')
    return "".join(written)


@kept
def progressions(places: tuple[float, ...]) -> tuple[tuple[int, ...], ...]:
    """Ascending places as few arithmetic progressions: the indices of each.

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
    """The index at a place, within rounding."""
    tries = (round(place + by, 1) for by in (0.0, -0.1, 0.1))
    return next((one for one in tries if one in places), None)
