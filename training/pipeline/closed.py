"""Closed forms: the idle time and the peaks that papers state, beside what is simulated.

They hold for stages of equal length and messages that take no time, and each under a condition of
its own, which `ClosedForm.holds` tells. F, B, I, W are times of a whole rank, B = I + W, and FB is
an overlapped pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .orders import interleaved_warmup


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
class _When:
    """Under which sizes and times a form holds."""

    text: str
    holds: Callable[[int, int, Times], bool]  # of p, m, times


_ALWAYS = _When("", lambda p, m, t: True)
_EQUAL = _When("F = I = W", lambda p, m, t: t.are_equal)
_FILLED = _When("m ≥ 2p - 1, F = I = W", lambda p, m, t: m >= 2 * p - 1 and t.are_equal)


@dataclass(frozen=True)
class _Form:
    formula: str
    idle: Callable[[int, int, Times], float]  # of p, v, times
    peak_formula: str
    peak: Callable[[int, int, int, int], float]  # of p, r, m, v
    when: _When = _ALWAYS
    sense: str = "step"


def _one_pass(p: int, v: int, t: Times) -> float:
    return (p - 1) * (t.forward + t.backward)


def _one_chunk(p: int, v: int, t: Times) -> float:
    return _one_pass(p, v, t) / v


def _nothing(p: int, v: int, t: Times) -> float:
    return 0.0


def _all(p: int, r: int, m: int, v: int) -> float:
    return m


_FORMS: dict[str, _Form] = {
    "gpipe": _Form("(p - 1)(F + B)", _one_pass, "m", _all),
    "1f1b": _Form("(p - 1)(F + B)", _one_pass, "min(m, p - r)", lambda p, r, m, v: min(m, p - r)),
    "interleaved": _Form(
        "(p - 1)(F + B)/v",
        _one_chunk,
        "min(2(p - r - 1) + (v - 1)N + 1, mv)/v",
        lambda p, r, m, v: min(interleaved_warmup(p, r, m, v, p) + 1, m * v) / v,
        _When("p divides m, N = p", lambda p, m, t: m % p == 0),
    ),
    "bfs": _Form("(p - 1)(F + B)/v", _one_chunk, "m", _all, _When("m ≥ p", lambda p, m, t: m >= p)),
    "zb-h1": _Form(
        "(p - 1)(F + I - W)",
        lambda p, v, t: (p - 1) * (t.forward + t.for_input - t.for_weights),
        "min(m, p)",
        lambda p, r, m, v: min(m, p),
        _When("m ≥ p, W ≤ F, W ≤ I", lambda p, m, t: m >= p and t.weights_are_short),
    ),
    "zb-h2": _Form(
        "(p - 1)(F + I - 2W)",
        lambda p, v, t: (p - 1) * (t.forward + t.for_input - 2 * t.for_weights),
        "min(m, 2p - 1)",
        lambda p, r, m, v: min(m, 2 * p - 1),
        _When("m ≥ 2p - 1, W ≤ F, W ≤ I", lambda p, m, t: m >= 2 * p - 1 and t.weights_are_short),
        "span",
    ),
    "zb-2p": _Form("0", _nothing, "min(m, 2p)", lambda p, r, m, v: min(m, 2 * p), _FILLED, "span"),
    "zb-v": _Form("0", _nothing, "min(m, p)", lambda p, r, m, v: min(m, p), _FILLED, "span"),
    "dualpipe": _Form(
        "(p/2 - 1)(FB + B - 3W)",
        lambda p, v, t: (p / 2 - 1) * (t.pair + t.backward - 3 * t.for_weights),
        "p + 1",
        lambda p, r, m, v: p + 1,
        _EQUAL,
        "most",
    ),
    "dualpipev": _Form(
        "(p - 1)(FB + B - 3W)/2",
        lambda p, v, t: (p - 1) * (t.pair + t.backward - 3 * t.for_weights) / 2,
        "(2p + 1)/2",
        lambda p, r, m, v: (2 * p + 1) / 2,
        _EQUAL,
        "most",
    ),
}
"""2104.04473 section 2.2, 2401.10241 Table 2 and section 6, 2412.19437 Table 2, DualPipe's README.

DualPipeV's own formula counts PP = 2p and times of a chunk, which is half a rank.
"""


def closed_form(name: str, p: int, m: int, v: int, times: Times | None = None) -> ClosedForm | None:
    """What is stated of a schedule; None if nothing is (interleaved zero bubble).

    >>> closed = closed_form("1f1b", p=4, m=8, v=1)
    >>> closed.idle, closed.peaks
    (9.0, (4, 3, 2, 1))
    """
    form = _FORMS.get(name)
    if form is None:
        return None
    times = times or Times()
    return ClosedForm(
        formula=form.formula,
        idle=form.idle(p, v, times),
        sense=form.sense,
        condition=form.when.text,
        holds=form.when.holds(p, m, times),
        peak_formula=form.peak_formula,
        peaks=tuple(form.peak(p, rank, m, v) for rank in range(p)),
    )
