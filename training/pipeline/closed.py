"""Closed forms: the idle time and the peaks that papers state, beside what is simulated.

They hold for stages of equal length and messages that take no time, and each under a condition of
its own, which `ClosedForm.holds` tells. F, B, I, W are times of a whole rank, B = I + W, and FB is
an overlapped pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .orders import interleaved_warmup
from .schedules import SCHEDULES, checked


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

STATED = tuple(_FORMS)
"""Schedules whose peak is known in closed form."""


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


def micro_batches_in_flight(schedule: str, p: int, m: int, v: int = 1) -> list[float]:
    """Micro-batches of which each of p ranks keeps activations of all its layers at most.

    By the closed forms. Where the backward is split they are upper bounds: part of an activation is
    free after its first half.

    >>> micro_batches_in_flight("1f1b", p=4, m=8)
    [4.0, 3.0, 2.0, 1.0]
    >>> micro_batches_in_flight("interleaved", p=2, m=8, v=2)
    [2.5, 1.5]

    Errors: LayoutError for sizes that the schedule does not take.
    """
    placement = SCHEDULES[schedule].placement
    checked(schedule, p, m, v if placement == "loop" or v > 1 else None)
    form = closed_form(schedule, p, m, v)
    # In DualPipe a micro-batch meets one of a rank's two stages only.
    stages = 2 if placement == "both ways" else 1
    return [peak / stages for peak in form.peaks] if form else []


def outputs_in_flight(schedule: str, m: int) -> int:
    """Micro-batches whose logits the last stage keeps: all of them if no backward comes between."""
    return m if schedule in ("gpipe", "bfs") else 1


def placement_of(schedule: str) -> str:
    """How the stages of a schedule lie on the ranks, as `Split` says it."""
    placement = SCHEDULES[schedule].placement
    return "loop" if placement == "line" else placement
