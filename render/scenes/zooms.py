"""One time axis at several scales, one below the other: each level is the chosen part of the one
above it, as wide as that whole level, with a wedge between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

LEVEL, WEDGE, GUTTER = 26.0, 18.0, 190.0
"""Pixels of a file: of a level, of a wedge between two, and of the names at the left."""


@dataclass(frozen=True)
class ZoomPart:
    """A part of a level, from ``start`` to ``end`` of it (0 to 1).

    Attributes:
        kind: what it is painted as: an op, a part of the step, a kind of group, or "rest".
        text: in it, where it is wide enough.
        says: what it is, with its seconds.
        sets: what the page changes to zoom into it; nothing if there is no view that does.
    """

    kind: str
    start: float
    end: float
    text: str = ""
    says: str = ""
    sets: Mapping[str, object] = field(default_factory=dict)

    @property
    def wide(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class ZoomLevel:
    """A level: the view that is about it, its name with its seconds, its parts, and which of them
    is chosen; None: the level below is no part of it."""

    view: str
    name: str
    parts: tuple[ZoomPart, ...]
    chosen: int | None = None

    @property
    def at(self) -> ZoomPart | None:
        return None if self.chosen is None else self.parts[self.chosen]


@dataclass(frozen=True)
class ZoomsPicture:
    """All levels, the whole first. here: the view that shows them."""

    levels: tuple[ZoomLevel, ...]
    here: str = ""
    length: float = 900.0

    @property
    def width(self) -> float:
        return self.length

    @property
    def height(self) -> float:
        return len(self.levels) * (LEVEL + WEDGE) - WEDGE + 2.0

    def fitted(self, room: tuple[float, float]) -> ZoomsPicture:
        return replace(self, length=min(room[0], 8.0 * self.height))
