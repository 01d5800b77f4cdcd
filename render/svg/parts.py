"""What several pictures of the page write alike: places, names of rows, frames and tags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np

from ..scenes.geometry import GAP, RowLabel, Tiles
from ..scenes.marked import TALL, Tag


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


def known_svg(**known: Any) -> str:
    """What the page's script must know of a picture, as an attribute."""
    return f'data-known="{escape(json.dumps(known, separators=(",", ":")))}"'


def rows_svg(labels: Iterable[RowLabel], down: float = 0.0) -> str:
    """The names of rows of nodes; ``down``: pixels from their middles to the baselines."""
    texts = "".join(
        f'<text x="{x:g}" y="{y + down:g}" text-anchor="end">{text}</text>' for x, y, text in labels
    )
    return f'<g class="rows">{texts}</g>'


def frames_svg(frames: Iterable[tuple[float, float, float, float]]) -> str:
    """The frames of nodes: x, y, width and height of each."""
    nodes = "".join(
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6"/>' for x, y, w, h in frames
    )
    return f'<g class="frames">{nodes}</g>'


def tags_svg(tags: Sequence[Tag]) -> str:
    """The names of groups at their ends; a screen reader has them from the description."""
    items = "".join(
        f'<g class="t-{tag.tone}"><rect x="{tag.x - tag.width / 2:.1f}" '
        f'y="{tag.y - TALL / 2:.1f}" width="{tag.width:.1f}" height="{TALL:g}" rx="4"/>'
        f'<text x="{tag.x:.1f}" y="{tag.y + 3.6:.1f}">{tag.name}</text></g>'
        for tag in tags
    )
    return f'<g class="tags" aria-hidden="true">{items}</g>'
