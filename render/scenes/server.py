"""The GPUs of servers on their nodes: memory, KV heads and experts of each; and the number of
requests at full length that fit into the cache."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..marks import LABEL

TILE, BAR, SQUARE, PAD = 112.0, 16.0, 15.0, 6.0
"""Pixels: width of a tile, height of its bar, side of a KV head's square, and padding."""

HEADS = 6
"""The most KV heads with a square each; of more, the numbers are text."""

APART, TITLE = 10.0, 20.0
"""Pixels between tiles, and above them for the name of their node."""

ACROSS = 8
"""Tiles in a row."""

MOST_REQUESTS = 64
"""The most requests drawn one by one; of more the strip is one band."""

STRIP = 26.0
"""Height of the strip of requests in pixels."""


@dataclass(frozen=True)
class Segment:
    """A part of a bar: the name of its colour in `palette.FILLS`, its share of the GPU, and whether
    another rank holds the same."""

    colour: str
    share: float
    is_copied: bool = False


@dataclass(frozen=True)
class Tile:
    """One GPU. heads: numbers of its KV heads; note: about heads without squares; lines: further
    texts."""

    name: str
    bar: tuple[Segment, ...]
    heads: tuple[int, ...] = ()
    is_copied: bool = False
    note: str = ""
    lines: tuple[str, ...] = ()
    is_chosen: bool = False

    @property
    def width(self) -> float:
        return TILE + 2 * PAD

    @property
    def height(self) -> float:
        has_row = bool(self.heads or self.note)
        return 4 * PAD + LABEL + BAR + has_row * (SQUARE + PAD) + len(self.lines) * (LABEL + 3)


BAR_TOP = 2 * PAD + LABEL
"""Pixels above the bar of a tile."""


@dataclass(frozen=True)
class RequestStrip:
    """Requests at full length in the cache. requests: how many fit, may be a fraction; label: the
    text after them."""

    requests: float
    label: str
    length: float = 720.0

    @property
    def width(self) -> float:
        return self.length

    @property
    def height(self) -> float:
        return STRIP + (LABEL + 8 if self.label else 1)

    @property
    def is_band(self) -> bool:
        return self.requests > MOST_REQUESTS


@dataclass(frozen=True)
class ServerPicture:
    """Nodes of tiles, the strip of requests below; legend for files."""

    nodes: tuple[tuple[str, tuple[Tile, ...]], ...]
    strip: RequestStrip
    legend: tuple[tuple[str, str], ...] = ()
    line: str = ""
    """What the engine prints."""

    @cached_property
    def step(self) -> tuple[float, float]:
        tiles = [tile for _, tiles in self.nodes for tile in tiles]
        wide = max((tile.width for tile in tiles), default=0.0)
        return wide + APART, max((tile.height for tile in tiles), default=0.0) + APART

    @property
    def across(self) -> int:
        return min(ACROSS, max((len(tiles) for _, tiles in self.nodes), default=1))

    @property
    def width(self) -> float:
        return max(self.across * self.step[0] - APART, self.strip.width)

    @property
    def height(self) -> float:
        rows = sum(-(-len(tiles) // self.across) for _, tiles in self.nodes)
        below = self.strip.height + (LABEL + 10 if self.line else 0)
        return len(self.nodes) * TITLE + rows * self.step[1] + APART + below
