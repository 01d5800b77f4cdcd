"""Marks -> SVG: for files, and for the page in the colours of its style sheet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from itertools import islice

import numpy as np

from ..marks import CHINESE, Blocks, Drawing, Layer, Lines, Mark, Numbers, Scene, Slot, Words
from ..png import png_uri
from .cells import outline, runs

FONTS = ", ".join(("system-ui", "DejaVu Sans", *(f"'{name}'" for name in CHINESE), "sans-serif"))
MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"


def scene_svg(kind: str, scene: Scene, marks: Iterable[Mark], description: str) -> str:
    """A scene on the page with a class of its style sheet; ``description`` is the text for screen
    readers. The marks are of the look "page"."""
    size = f"{scene.width:g}", f"{scene.height:g}"
    return (
        f'<svg class="{kind}" role="img" aria-label="{escape(description)}" width="{size[0]}" '
        f'height="{size[1]}" viewBox="0 0 {" ".join(size)}" style="--width:{size[0]}px">'
        f"{marks_svg(marks)}</svg>"
    )


def to_svg(drawing: Drawing) -> str:
    """The drawing as one SVG; text stays text."""
    wide, tall = _number(drawing.width), _number(drawing.height)
    placed = "".join(
        f'<g transform="translate({_number(x)} {_number(y)}) scale({scale:.6g})">'
        f"{marks_svg(marks)}</g>"
        for x, y, scale, marks in drawing.placed
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}" '
        f'viewBox="0 0 {wide} {tall}" font-family="{FONTS}">'
        f'<rect width="{wide}" height="{tall}" fill="{drawing.ground}"/>{placed}</svg>\n'
    )


def marks_svg(marks: Iterable[Mark]) -> str:
    """The marks alone, in the order of painting."""
    return "".join(part for mark in marks for part in _written(mark))


def _written(mark: Mark) -> Iterator[str]:
    if isinstance(mark, Words):
        yield _words(mark)
    elif isinstance(mark, Blocks):
        yield from _blocks(mark)
    elif isinstance(mark, Lines):
        yield _lines(mark)
    elif isinstance(mark, Layer):
        hidden = ' aria-hidden="true"' if mark.is_hidden else ""
        yield f'<g class="{mark.name}"{hidden}>{marks_svg(mark.marks)}</g>'
    elif isinstance(mark, Numbers):
        yield runs(mark)
    elif isinstance(mark, Slot):
        yield mark.svg
    else:
        left, top, right, bottom = mark.box
        name = f' class="{mark.name}"' if mark.name else ""
        yield (
            f'<image{name} x="{_number(left)}" y="{_number(top)}" width="{_number(right - left)}" '
            f'height="{_number(bottom - top)}" preserveAspectRatio="none" '
            f'style="image-rendering:pixelated" href="{png_uri(mark.cells, mark.palette)}"/>'
        )


def _words(words: Words) -> str:
    style = f' class="{words.name}"' if words.name else ""
    style += f' text-anchor="{words.anchor}"' if words.anchor != "start" else ""
    style += ' font-weight="600"' if words.bold else ""
    style += ' dominant-baseline="central"' if words.is_middle else ""
    style += f' font-family="{MONO}" xml:space="preserve"' if words.mono else ""
    lead = f'<tspan class="word">{escape(words.lead)}</tspan>' if words.lead else ""
    return (
        f'<text x="{_number(words.x)}" y="{_number(words.y)}" font-size="{_number(words.size)}" '
        f'fill="{words.ink}"{style}>{lead}{escape(words.text)}</text>'
    )


def _lines(mark: Lines) -> str:
    if mark.is_curved:
        path = "".join(
            "M{} {}C{} {} {} {} {} {}".format(*map(_number, np.ravel(line).tolist()))
            for line in mark.lines
        )
    else:
        # All at once: to round each of a thousand lines takes as long as all else.
        points = iter(np.concatenate(mark.lines).round(2).tolist() if len(mark.lines) else [])
        end = "z" if mark.fill != "none" else ""
        path = "".join(_polyline(islice(points, len(line))) + end for line in mark.lines)
    style = f' opacity="{mark.opacity:g}"' if mark.opacity != 1 else ""
    style += f' stroke-dasharray="{" ".join(map(_number, mark.dashes))}"' if mark.dashes else ""
    return (
        f'<path d="{path}" fill="{mark.fill}" stroke="{mark.colour}" '
        f'stroke-width="{_number(mark.width)}"{style}/>'
    )


def _polyline(points: Iterator[tuple[float, float]]) -> str:
    """Points as a path, shorter for horizontal and vertical parts."""
    x, y = next(points)
    path = [f"M{x:.9g} {y:.9g}"]
    for to_x, to_y in points:
        if to_y == y:
            path.append(f"H{to_x:.9g}")
        elif to_x == x:
            path.append(f"V{to_y:.9g}")
        else:
            path.append(f"L{to_x:.9g} {to_y:.9g}")
        x, y = to_x, to_y
    return "".join(path)


def _blocks(mark: Blocks) -> Iterator[str]:
    """A path for each colour, which is smaller and faster, also of dots; a single box that is
    round, or that only has an edge, as its own element."""
    corners, sizes, radius = mark.corners, mark.sizes, mark.radius
    if (
        isinstance(mark.fill, str)
        and mark.edge == "none"
        and (sizes == 2 * radius).all()
        and radius
    ):
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in (corners + radius).tolist())
        yield (
            f'<path d="{dots}" stroke="{mark.fill}" stroke-width="{_number(2 * radius)}" '
            'stroke-linecap="round"/>'
        )
    elif not radius:
        edge = f' stroke="{mark.edge}" stroke-width="{_number(mark.width)}"'
        for fill, which in _by_colour(mark):
            d = outline(corners[which], _chosen(sizes, which))
            yield f'<path fill="{fill}"{edge if mark.edge != "none" else ""} d="{d}"/>'
    elif mark.fill == "none" or len(corners) == 1:
        edge = f' stroke="{mark.edge}" stroke-width="{_number(mark.width)}"'
        for x, y, wide, tall in mark.each():
            size = f'width="{_number(wide)}" height="{_number(tall)}" rx="{_number(radius)}"'
            fill = mark.fill if isinstance(mark.fill, str) else mark.fill[0]
            yield (
                f'<rect x="{_number(x)}" y="{_number(y)}" {size} fill="{fill}"'
                f"{edge if mark.edge != 'none' else ''}/>"
            )
    else:
        half = mark.width / 2 if mark.edge != "none" else 0.0
        if half:
            yield _rounded(mark.edge, corners - half, sizes + 2 * half, radius + half)
        for fill, which in _by_colour(mark):
            inner = corners[which] + half, _chosen(sizes, which) - 2 * half
            yield _rounded(fill, *inner, max(radius - half, 0.0))


def _rounded(fill: str, corners: np.ndarray, sizes: np.ndarray, radius: float) -> str:
    """Boxes smaller by the radius, with an outline of twice its width that rounds their corners."""
    return (
        f'<path fill="{fill}" stroke="{fill}" stroke-width="{_number(2 * radius)}" '
        f'stroke-linejoin="round" d="{outline(corners + radius, sizes - 2 * radius)}"/>'
    )


def _chosen(sizes: np.ndarray, which: slice | list[int]) -> np.ndarray:
    return sizes if sizes.ndim == 1 else sizes[which]


def _by_colour(mark: Blocks) -> Iterator[tuple[str, slice | list[int]]]:
    """The boxes of each colour."""
    if isinstance(mark.fill, str):
        yield mark.fill, slice(None)
        return
    boxes: dict[str, list[int]] = {}
    for number, fill in enumerate(mark.fill):
        boxes.setdefault(fill, []).append(number)
    yield from boxes.items()


def known_svg(**known: object) -> str:
    """What the page's script must know of a picture, as an attribute."""
    return f'data-known="{escape(json.dumps(known, separators=(",", ":")))}"'


@lru_cache(maxsize=4096)
def _number(value: float) -> str:
    """A number to a hundredth of a pixel.

    >>> _number(2.0), _number(1 / 3), _number(-0.0)  # a cache cannot tell both zeros apart
    ('2', '0.33', '0')
    """
    return f"{round(value, 2) + 0.0:.9g}"
