"""Cells as an embedded picture of one pixel each, which the browser scales without blurring.

Written here, not by Pillow, which takes four times as long for pictures of a thousand pixels: an
answer has three.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from ..scenes.geometry import GAP, Fold, RowLabel, Tiles
from ..scenes.marked import TALL, Tag

PALETTE_TYPE = 3
"""Of a PNG whose pixels are numbers of colours (PNG specification, 11.2.2)."""


def palette_png(pixels: np.ndarray, colours: Sequence[tuple[int, int, int]]) -> str:
    """A palette PNG as a data URI: pixel 0 is transparent, pixel i the colour i - 1.

    pixels: uint8, shape (rows, columns).

    >>> palette_png(np.zeros((1, 1), dtype=np.uint8), [])[:22]
    'data:image/png;base64,'
    """
    rows, columns = pixels.shape
    lines = np.zeros((rows, columns + 1), dtype=np.uint8)
    lines[:, 1:] = pixels  # each line behind its filter: none
    png = (
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, PALETTE_TYPE, 0, 0, 0)),
        _chunk(b"PLTE", bytes([0, 0, 0, *(channel for colour in colours for channel in colour)])),
        _chunk(b"tRNS", b"\0"),
        _chunk(b"IDAT", zlib.compress(lines.tobytes(), 3)),
        _chunk(b"IEND", b""),
    )
    return "data:image/png;base64," + base64.b64encode(b"".join(png)).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def written(places: np.ndarray, form: str = "g") -> list[str]:
    """Places as text; cells stand in rows and columns, so that few places differ.

    >>> written(np.array([0.5, 12.0, 0.5]))
    ['0.5', '12', '0.5']
    """
    numbers = places.tolist()
    texts = {number: format(number, form) for number in set(numbers)}
    return [texts[number] for number in numbers]


@lru_cache(maxsize=32)
def corners(tiles: Tiles) -> list[str]:
    """Where each cell is drawn, as "x,y"; once for all that is drawn on the same nodes."""
    return list(map(",".join, zip(written(tiles.x + GAP / 2), written(tiles.y + GAP / 2))))


def folds_text(folds: Iterable[Fold], unit: float = 1.0) -> str:
    """Folds as the page's script reads them; ``unit``: pixels of 1 of their lengths."""
    return ";".join(
        ",".join(f"{value:.9g}" for value in (fold.size, fold.period, *lengths))
        for fold in folds
        for lengths in ([unit * each for each in (fold.dx, fold.dy, fold.jump_x, fold.jump_y)],)
    )


def rows_svg(labels: Iterable[RowLabel], down: float = 0.0) -> str:
    """The names of rows of nodes; ``down``: pixels from their middles to the baselines."""
    texts = "".join(
        f'<text x="{x:g}" y="{y + down:g}" text-anchor="end">{text}</text>' for x, y, text in labels
    )
    return f'<g class="rows">{texts}</g>'


def frames_svg(frames: Iterable[tuple[float, float, float, float]]) -> str:
    nodes = "".join(
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6"/>' for x, y, w, h in frames
    )
    return f'<g class="frames">{nodes}</g>'


def tags_svg(tags: Sequence[Tag]) -> str:
    items = "".join(
        f'<g class="t-{tag.tone}"><rect x="{tag.x - tag.width / 2:.1f}" '
        f'y="{tag.y - TALL / 2:.1f}" width="{tag.width:.1f}" height="{TALL:g}" rx="4"/>'
        f'<text x="{tag.x:.1f}" y="{tag.y + 3.6:.1f}">{tag.name}</text></g>'
        for tag in tags
    )
    return f'<g class="tags" aria-hidden="true">{items}</g>'
