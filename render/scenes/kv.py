"""One request's KV cache as layers by heads, cut as both sides of its handover cut it, as data.

a row, a column   a layer, and a KV head
a bracket         a stage or a tp part: of the source at the left and above, of the target at the
                  right and below
a rectangle       what one rank sends to the chosen one
a frame           what the chosen one is to hold
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..marks import LABEL, advance

WIDE, TALL, EDGE = 260.0, 200.0, 34.0
"""Pixels of the cache, and of the margin for brackets and their names."""


class KVPart(NamedTuple):
    """Ranks that share a run [first, after) of layers or heads, with their name."""

    first: int
    after: int
    name: str


class KVSlice(NamedTuple):
    """The slice that one rank sends: layers, heads, name and shade by its bytes."""

    layers: tuple[int, int]
    heads: tuple[int, int]
    sender: str
    shade: str
    is_own: bool


@dataclass(frozen=True)
class KVPicture:
    """The picture of a cache's transfer. stages, parts: of the source and of the target. own:
    layers and heads that the selected rank needs. axes: the names of both axes."""

    layers: int
    heads: int
    stages: tuple[tuple[KVPart, ...], tuple[KVPart, ...]]
    parts: tuple[tuple[KVPart, ...], tuple[KVPart, ...]]
    slices: tuple[KVSlice, ...]
    own: tuple[tuple[int, int], tuple[int, int]]
    axes: tuple[str, str]

    @property
    def left(self) -> float:
        return EDGE + self._room(0)

    @property
    def top(self) -> float:
        return EDGE + LABEL + 4

    @property
    def width(self) -> float:
        return self.left + WIDE + self._room(1) + 18

    @property
    def height(self) -> float:
        return self.top + TALL + EDGE

    def _room(self, side: int) -> float:
        return max(advance(part.name) for part in self.stages[side]) * LABEL

    def x(self, head: float) -> float:
        return self.left + WIDE * head / self.heads

    def y(self, layer: float) -> float:
        return self.top + TALL * layer / self.layers
