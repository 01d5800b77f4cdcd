"""The seconds of a move by each rule, and measured seconds, on one axis.

a row    a rule: a dot at the speed of the links, a bar over what real updates take
a dot    in the last row, an update that was measured: full where ranks send to ranks, hollow where
         tensors are gathered and broadcast
a line   down all rows: what no rule undercuts
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log10
from typing import NamedTuple

from ..marks import LABEL, advance

ROW, TOP, AXIS, PLOT = 24.0, 20.0, 20.0, 296.0
"""Pixels: height of a row, above and below all of them, and width of the axis."""


class RuleTime(NamedTuple):
    """A rule, its seconds at link speed, and the range of real updates."""

    label: str
    seconds: float
    low: float
    high: float
    is_chosen: bool


class MeasuredTime(NamedTuple):
    """A measured update: its seconds, whether ranks send to ranks directly, and its text."""

    seconds: float
    is_direct: bool
    text: str


@dataclass(frozen=True)
class TimesChart:
    """What to draw. least: seconds that no rule undercuts, with a text; measured_label: of the last
    row."""

    rules: tuple[RuleTime, ...]
    measured: tuple[MeasuredTime, ...]
    least: tuple[float, str]
    measured_label: str

    @cached_property
    def left(self) -> float:
        """The width of the rows' names in pixels."""
        names = (self.measured_label, *(rule.label for rule in self.rules))
        return 10 + LABEL * max(advance(name, bold=True) for name in names)

    @property
    def width(self) -> float:
        return self.left + PLOT + 12

    @property
    def height(self) -> float:
        return TOP + ROW * (len(self.rules) + 1) + AXIS

    @cached_property
    def powers(self) -> tuple[int, int]:
        """The powers of ten at the ends of the axis."""
        times = [self.least[0], *(one.seconds for one in self.measured)]
        times += [end for rule in self.rules for end in (rule.seconds, rule.high)]
        some = [seconds for seconds in times if seconds > 0]
        return floor(log10(min(some))), ceil(log10(max(some)))

    def x(self, seconds: float) -> float:
        low, high = self.powers
        return self.left + PLOT * (log10(seconds) - low) / (high - low)

    def y(self, row: int) -> float:
        """The middle of a row in pixels."""
        return TOP + ROW * (row + 0.5)
