"""Marks -> SVG: the same of a file, and of the page in the colours of its style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np

from ..marks import CHINESE, Blocks, Drawing, Lines, Mark, Words
from ..png import png_uri

FONTS = ", ".join(("system-ui", "DejaVu Sans", *(f"'{name}'" for name in CHINESE), "sans-serif"))
MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"


def scene_svg(kind: str, scene: Any, marks: Iterable[Mark], description: str) -> str:
    """A scene on the page, of a class of its style sheet; ``description`` is its text equivalent
    for screen readers. The marks are of the look "page"."""
    size = f"{scene.width:g}", f"{scene.height:g}"
    return (
        f'<svg class="{kind}" role="img" aria-label="{escape(description)}" width="{size[0]}" '
        f'height="{size[1]}" viewBox="0 0 {" ".join(size)}">{marks_svg(marks)}</svg>'
    )


def to_svg(drawing: Drawing) -> str:
    """The drawing as one SVG, its text as text."""
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
        style = f' text-anchor="{mark.anchor}"' if mark.anchor != "start" else ""
        style += ' font-weight="600"' if mark.bold else ""
        style += f' font-family="{MONO}" xml:space="preserve"' if mark.mono else ""
        yield (
            f'<text x="{_number(mark.x)}" y="{_number(mark.y)}" font-size="{_number(mark.size)}" '
            f'fill="{mark.ink}"{style}>{escape(mark.text)}</text>'
        )
    elif isinstance(mark, Blocks):
        yield from _blocks(mark)
    elif isinstance(mark, Lines):
        close = "z" if mark.fill != "none" else ""
        first, others = ("C", " ") if mark.is_curved else ("L", "L")
        lines = (
            [f"{_number(x)} {_number(y)}" for x, y in np.asarray(line).tolist()]
            for line in mark.lines
        )
        path = "".join(f"M{start}{first}{others.join(rest)}{close}" for start, *rest in lines)
        dashes = " ".join(map(_number, mark.dashes))
        yield (
            f'<path d="{path}" fill="{mark.fill}" stroke="{mark.colour}" '
            f'stroke-width="{_number(mark.width)}" opacity="{mark.opacity:g}"'
            f"{f' stroke-dasharray={chr(34)}{dashes}{chr(34)}' if dashes else ''}/>"
        )
    else:
        left, top, right, bottom = mark.box
        yield (
            f'<image x="{_number(left)}" y="{_number(top)}" width="{_number(right - left)}" '
            f'height="{_number(bottom - top)}" preserveAspectRatio="none" '
            f'style="image-rendering:pixelated" href="{png_uri(mark.cells)}"/>'
        )


def _blocks(mark: Blocks) -> Iterator[str]:
    """A path for each colour, which is less to write and to draw, of dots too; what has a look,
    one by one."""
    side = 2 * mark.radius
    if isinstance(mark.fill, str) and mark.edge == "none" and (mark.sizes == side).all() and side:
        middles = (mark.corners + mark.radius).tolist()
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in middles)
        yield (
            f'<path d="{dots}" stroke="{mark.fill}" stroke-width="{_number(side)}" '
            'stroke-linecap="round"/>'
        )
        return
    fills = [mark.fill] if isinstance(mark.fill, str) else mark.fill
    boxes = [(_number(x), _number(y), _number(w), _number(h)) for x, y, w, h in mark.each()]
    if mark.edge == "none" and not mark.radius:
        paths: dict[str, list[str]] = {}
        for number, (x, y, wide, tall) in enumerate(boxes):
            line = f"M{x} {y}h{wide}v{tall}h-{wide}z"
            paths.setdefault(fills[number % len(fills)], []).append(line)
        for fill, lines in paths.items():
            yield f'<path fill="{fill}" d="{"".join(lines)}"/>'
        return
    edge = "" if mark.edge == "none" else f' stroke="{mark.edge}"'
    yield f'<g fill="none"{edge} stroke-width="{_number(mark.width)}">'
    for number, (x, y, wide, tall) in enumerate(boxes):
        yield (
            f'<rect x="{x}" y="{y}" width="{wide}" height="{tall}" '
            f'rx="{_number(mark.radius)}" fill="{fills[number % len(fills)]}"/>'
        )
    yield "</g>"


@lru_cache(maxsize=4096)
def _number(value: float) -> str:
    """To a hundredth of a pixel.

    >>> _number(2.0), _number(1 / 3), _number(-0.0)  # a cache cannot tell both zeros apart
    ('2', '0.33', '0')
    """
    return f"{round(value, 2) + 0.0:.9g}"
