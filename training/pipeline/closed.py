"""Closed forms: the idle time and the peaks that papers state, beside what is simulated.

They hold for stages of equal length and messages that take no time, and each under a condition of
its own, which `ClosedForm.holds` tells. F, B, I, W are times of a whole rank, B = I + W, and FB is
an overlapped pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Times of a whole rank for one micro-batch: F, B = I + W, I, W, and FB of a pair."""

    forward: float = 1.0
    for_input: float = 1.0
    for_weights: float = 1.0
    overlapped: float | None = None

    @property
    def backward(self) -> float:
        return self.for_input + self.for_weights

    @property
    def pair(self) -> float:
        return self.forward + self.backward if self.overlapped is None else self.overlapped

    @property
    def weights_are_short(self) -> bool:
        return self.for_weights <= min(self.forward, self.for_input)

    @property
    def are_equal(self) -> bool:
        return self.forward == self.for_input == self.for_weights


@dataclass(frozen=True)
class ClosedForm:
    """The idle time of a rank, and its peak.

    formula, condition, peak_formula: as text. sense: "step", for all ranks over the step; "span",
    the most between a rank's own first and last op; "most", the most of a rank over the step.
    peaks: whole-rank micro-batches held until W.
    """

    formula: str
    idle: float
    sense: str
    condition: str
    holds: bool
    peak_formula: str
    peaks: tuple[float, ...]


@dataclass(frozen=True)
class When:
    """Under which sizes and times a form holds."""

    text: str
    holds: Callable[[int, int, Times], bool]  # of p, m, times


ALWAYS = When("", lambda p, m, t: True)
EQUAL = When("F = I = W", lambda p, m, t: t.are_equal)
FILLED = When("m ≥ 2p - 1, F = I = W", lambda p, m, t: m >= 2 * p - 1 and t.are_equal)


@dataclass(frozen=True)
class Form:
    """What a paper states of a schedule, for any sizes; words as `ClosedForm` has them.

    keeps_outputs: whether the last stage keeps what it puts out until all forwards are done.
    """

    formula: str
    idle: Callable[[int, int, Times], float]  # of p, v, times
    peak_formula: str
    peak: Callable[[int, int, int, int], float]  # of p, r, m, v
    when: When = ALWAYS
    sense: str = "step"
    keeps_outputs: bool = False

    def peaks(self, p: int, m: int, v: int) -> tuple[float, ...]:
        return tuple([self.peak(p, rank, m, v) for rank in range(p)])

    def at(self, p: int, m: int, v: int, times: Times) -> ClosedForm:
        return ClosedForm(
            formula=self.formula,
            idle=self.idle(p, v, times),
            sense=self.sense,
            condition=self.when.text,
            holds=self.when.holds(p, m, times),
            peak_formula=self.peak_formula,
            peaks=self.peaks(p, m, v),
        )


def one_pass(p: int, v: int, t: Times) -> float:
    return (p - 1) * (t.forward + t.backward) / v


def nothing(p: int, v: int, t: Times) -> float:
    return 0.0


def all_micro_batches(p: int, r: int, m: int, v: int) -> float:
    return m
