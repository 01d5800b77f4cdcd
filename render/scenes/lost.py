"""Time that each GPU lost to others, and that others lost to it, on the mesh of the job, as data.

A cell has both, on two scales of their own: at the left, in blue, what the GPU lost waiting for
others; at the right, in orange, what others lost waiting for it. Cells without room for a number
have one of them: a picture for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..palette import STEPS, scale_of
from .job import JobPicture

AMOUNTS, LEAST = 26.0, 7.5
"""The least pixels of a cell's height, and of letters, with which amounts are below its number."""

DIGIT = 0.68
"""Width of a digit in font sizes."""


@dataclass(frozen=True, eq=False)
class Scale:
    """The meaning of a colour scale; seconds: of each rank, nan if unknown.

    name: "lost" or "caused", as in the palette; most: seconds of its last step; amounts: texts of
    the cells; words: texts of the legend, for both ends.
    """

    name: str
    seconds: np.ndarray
    most: float
    amounts: Sequence[str] = field(repr=False)
    words: str = ""

    @cached_property
    def steps(self) -> np.ndarray:
        """The step of each rank: int64, -1 if unknown.

        >>> Scale("lost", np.array([0, 1.0, 6, 9, np.nan]), 6.0, ()).steps.tolist()
        [0, 1, 6, 6, -1]
        """
        known = np.nan_to_num(self.seconds, nan=0.0)
        steps = np.rint(np.clip(known / (self.most or 1.0), 0.0, 1.0) * STEPS).astype(np.int64)
        return np.where(np.isnan(self.seconds), -1, steps)


@dataclass(frozen=True, eq=False)
class LostPicture:
    """A mesh with a frame round the selected rank; scales: both, or one if cells are small."""

    job: JobPicture
    scales: tuple[Scale, ...]

    def fitted(self, room: tuple[float, float]) -> LostPicture:
        return replace(self, job=self.job.fitted(room))

    def legend_of(self, theme: str, _: object) -> Iterator[tuple[str, str]]:
        """A middle step and the last one of each scale, with their meanings."""
        for scale in self.scales:
            yield "-".join(scale_of(scale.name, theme)[2 :: STEPS - 2]), scale.words

    @property
    def width(self) -> float:
        return self.job.width + 2

    @property
    def height(self) -> float:
        return self.job.height + 2

    @property
    def number_size(self) -> float:
        """The font size of a rank in pixels, above its amounts if these have room."""
        size = self.job.number_size
        return min(size, self.job.sides[1] * 0.32) if self.letters else size

    @cached_property
    def letters(self) -> float:
        """The font size of amounts in pixels; 0 if they have no room."""
        wide, tall = self.job.sides
        longest = max((len(one) for scale in self.scales for one in scale.amounts), default=0)
        size = min(11.0, tall * 0.25, (wide / 2 - 3) / (DIGIT * max(longest, 2)))
        has_room = self.job.is_numbered and tall >= AMOUNTS and size >= LEAST
        return size if has_room else 0.0


def amounts_of(seconds: np.ndarray, unit: float) -> list[str]:
    """Short numbers in units of ``unit`` seconds; empty if unknown.

    >>> amounts_of(np.array([0.0, 0.00123, 0.0449, 1.5, np.nan]), unit=1e-3)
    ['0', '1.2', '45', '1500', '']
    """
    return ["" if np.isnan(one) else _amount(one / unit) for one in seconds.tolist()]


def _amount(number: float) -> str:
    if number < 0.05:
        return "0"
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}"
