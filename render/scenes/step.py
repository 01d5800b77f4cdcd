"""One step of several roles as a strip: its phases side by side, each with a bar of a GPU's memory
below the line of its capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..palette import ROLE_CELLS, STEP_MARKS

TALL, LEAST = 190.0, 15.0
"""The largest height of bars in pixels, and the least of a part with its name in it."""

TOP, FOOT, APART = 22.0, 40.0, 6.0
"""Pixels above the bars, below them for the names of phases, and between them."""


@dataclass(frozen=True)
class HeldPart:
    """A part of a bar: its text, a short form, its bytes, its role's colour by number, and whether
    its role works then."""

    text: str
    short: str
    size: float
    tone: int
    is_awake: bool


@dataclass(frozen=True)
class PhaseBar:
    """A phase: its name, the text below it, its parts from bottom to top."""

    name: str
    note: str
    parts: tuple[HeldPart, ...]

    @property
    def total(self) -> float:
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, eq=False)
class StepPicture:
    """All phases on one scale; limit: the bytes of a GPU, with their name."""

    bars: tuple[PhaseBar, ...]
    limit: float
    limit_name: str
    length: float = 0.0  # as many pixels as the phases need
    legend: tuple[tuple[int, str], ...] = ()

    @property
    def width(self) -> float:
        return self.length or min(500.0, max(360.0, 120.0 * len(self.bars)))

    @property
    def height(self) -> float:
        return self.foot + FOOT

    @property
    def tall(self) -> float:
        """The height of the bars in pixels; 0 if all are unknown."""
        return TALL if any(bar.total for bar in self.bars) else 2 * LEAST

    @cached_property
    def scale(self) -> float:
        """Pixels per byte."""
        return self.tall / max(1.05 * self.limit, *(bar.total for bar in self.bars))

    @property
    def step(self) -> float:
        return (self.width + APART) / len(self.bars)

    def left(self, number: int) -> float:
        return number * self.step

    @property
    def foot(self) -> float:
        """The y of the lower ends of bars."""
        return TOP + self.tall

    def fitted(self, room: tuple[float, float]) -> StepPicture:
        return replace(self, length=min(room[0], 3.2 * self.height))

    def legend_of(self, theme: str, _: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for tone, text in self.legend:
            yield f"{STEP_MARKS[theme][tone]}-{ROLE_CELLS[theme][tone]}", text
