"""The schedules by name: the order of each, its requirements on sizes, and published formulas.

Papers state the idle time and the peaks in closed form: for stages of equal length and messages
that take no time, and each under a condition of its own. F, B, I, W are times of a whole rank,
B = I + W, and FB is an overlapped pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from . import orders
from .folded import folded
from .plan import Shape


@dataclass(frozen=True)
class Times:
    """Durations of a whole rank for one micro-batch: F, I, W, FB (None: F + B) and B (None: I +
    W)."""

    forward: float = 1.0
    for_input: float = 1.0
    for_weights: float = 1.0
    overlapped: float | None = None
    whole: float | None = None

    @property
    def backward(self) -> float:
        return self.for_input + self.for_weights if self.whole is None else self.whole

    @property
    def pair(self) -> float:
        return self.forward + self.backward if self.overlapped is None else self.overlapped


@dataclass(frozen=True)
class Form:
    """The published formulas of a schedule, for any sizes.

    peak: micro-batches held until W, in units of a whole rank. when: condition of the formulas;
    empty: none. sense: what idle measures: "step", the idle time of every rank over the step;
    "span", the most between a rank's first and last op; or "most", the most of any rank over the
    step. keeps_outputs: whether the last stage keeps its outputs until all forwards are done.
    is_filled: whether the peak is one with 2p - 1 micro-batches or more only.
    """

    formula: str
    idle: Callable[[int, int, Times], float]  # arguments: p, v, times
    peak_formula: str
    peak: Callable[[Shape, int], float]  # of a rank
    when: str = ""
    sense: str = "step"
    keeps_outputs: bool = False
    is_filled: bool = False

    def has_peaks(self, shape: Shape) -> bool:
        """Whether its peaks are those of these sizes."""
        return not self.is_filled or shape.m >= 2 * shape.p - 1

    def peaks(self, shape: Shape) -> tuple[float, ...]:
        return tuple([self.peak(shape, rank) for rank in shape.ranks])


FILLED = "m ≥ 2p - 1, F = I = W"


def one_pass(p: int, v: int, t: Times) -> float:
    """The time of one micro-batch through a chunk on every rank but one, forward and backward."""
    return (p - 1) * (t.forward + t.backward) / v


def nothing(p: int, v: int, t: Times) -> float:
    """No idle time."""
    return 0.0


def delayed(delay: int) -> Callable[[int, int, Times], float]:
    """The wait for the first I to come back, less ``delay`` W at each hop that fill part of it."""
    return lambda p, v, t: (p - 1) * (t.forward + t.for_input - delay * t.for_weights)


def meeting(hops: float, t: Times) -> float:
    """The idle time of ranks that are ``hops`` hops from where the two directions meet."""
    return hops * (t.pair + t.backward - 3 * t.for_weights)


FORMS: dict[str, Form] = {
    "gpipe": Form("(p - 1)(F + B)", one_pass, "m", lambda s, r: s.m, keeps_outputs=True),
    "1f1b": Form("(p - 1)(F + B)", one_pass, "min(m, p - r)", lambda s, r: min(s.m, s.p - r)),
    "interleaved": Form(
        "(p - 1)(F + B)/v",
        one_pass,
        "min(2(p - r - 1) + (v - 1)N + 1, mv)/v",
        lambda s, r: min(orders.interleaved_warmup(s, r) + 1, s.m * s.v) / s.v,
    ),
    "1f1b in pairs": Form(
        "(p - 1)(F + B)", one_pass, "min(m, p - r + 1)", lambda s, r: min(s.m, s.p - r + 1)
    ),
    "interleaved in pairs": Form(
        "(p - 1)(F + B)/v",
        one_pass,
        "min(2(p - r - 1) + (v - 1)N + 2, mv)/v",
        lambda s, r: min(orders.interleaved_warmup(s, r) + 2, s.m * s.v) / s.v,
    ),
    "interleaved-torch": Form(
        "(p - 1)(F + B)/v",
        one_pass,
        "min(2(p - r - 1) + (v - 1)N + 1, mv)/v",
        lambda s, r: min(orders.torch_warmup(s, r) + 1, s.m * s.v) / s.v,
        "m ≥ p",
    ),
    "bfs": Form("(p - 1)(F + B)/v", one_pass, "m", lambda s, r: s.m, "m ≥ p", keeps_outputs=True),
    "zb-h1": Form(
        "(p - 1)(F + I - W)",
        delayed(1),
        "min(m, p)",
        lambda s, r: min(s.m, s.p),
        "m ≥ p, W ≤ F, W ≤ I",
    ),
    "zb-h2": Form(
        "(p - 1)(F + I - 2W)",
        delayed(2),
        "min(m, 2p - 1)",
        lambda s, r: min(s.m, 2 * s.p - 1),
        "m ≥ 2p - 1, W ≤ F, W ≤ I",
        "span",
    ),
    "zb-2p": Form("0", nothing, "min(m, 2p)", lambda s, r: min(s.m, 2 * s.p), FILLED, "span"),
    "zb-v": Form(
        "0", nothing, "min(m, p)", lambda s, r: min(s.m, s.p), FILLED, "span", is_filled=True
    ),
    "dualpipe": Form(
        "(p/2 - 1)(FB + B - 3W)",
        lambda p, v, t: meeting(p / 2 - 1, t),
        "p + 1",
        lambda s, r: s.p + 1,
        "F = I = W",
        "most",
    ),
    "dualpipev": Form(
        "(p - 1)(FB + B - 3W)/2",
        lambda p, v, t: meeting(p - 1, t) / 2,
        "(2p + 1)/2",
        lambda s, r: (2 * s.p + 1) / 2,
        "F = I = W",
        "most",
    ),
}
"""2104.04473 section 2.2, 2401.10241 Table 2 and section 6, 2412.19437 Table 2, DualPipe's README.
DualPipeV's own formula counts PP = 2p and times of a chunk, half a rank."""


@dataclass(frozen=True)
class Schedule:
    """One schedule: its order, its requirements, and its published formulas.

    order: a function of the places of one rank; None if a scheduler finds them, see `automatic`.
    placement: assignment of stages to ranks, as in `training.split.Split`. v: number of chunks on
    each rank; None if it can be chosen.
    """

    name: str
    title: str
    order: Callable[[Shape, int], np.ndarray] | None
    placement: str = "loop"
    v: int | None = 1
    splits: bool = False  # a backward into I and W
    pairs: bool = False  # a forward with a backward, whose kernels overlap
    grouped: bool = False  # micro-batches go in groups of a chosen size
    rounds: bool = False  # micro-batches go in as many equal rounds of p or more as there can be
    least_m: int = 0  # micro-batches that each rank needs, in units of p
    limit: int = 0  # micro-batches that a rank may hold, in units of p, if the order is found
    form: str = ""  # of FORMS, by default of its name

    @property
    def even(self) -> bool:
        """Whether p and m must be even: the two directions mirror each other."""
        return self.placement == "both ways"

    @property
    def closed(self) -> Form | None:
        """Idle time and peak in closed form; None if they must be counted."""
        return FORMS.get(self.form or self.name)


_ZB_H1, _ZB_H2 = (partial(orders.zb_h, delay=delay) for delay in (1, 2))
_ROWS = (
    Schedule("gpipe", "GPipe", orders.gpipe),
    Schedule("1f1b", "1F1B", orders.one_f_one_b),
    Schedule(
        "interleaved", "Interleaved 1F1B", orders.interleaved, v=None, grouped=True, least_m=1
    ),
    Schedule(
        "interleaved-torch",
        "Interleaved 1F1B (torch)",
        orders.interleaved_of_torch,
        v=None,
        rounds=True,
    ),
    Schedule("bfs", "Breadth-first", orders.breadth_first, v=None),
    Schedule("zb-h1", "ZB-H1", _ZB_H1, splits=True),
    Schedule("zb-h2", "ZB-H2", _ZB_H2, splits=True),
    Schedule("zb-2p", "ZB-2p", None, splits=True, limit=2),
    Schedule("zb-v", "ZB-V", orders.zb_v, "V", 2, splits=True),
    Schedule("v-half", "V-Half", partial(folded, name="v-half"), "V", 2, splits=True),
    Schedule("v-min", "V-Min", partial(folded, name="v-min"), "V", 2, splits=True),
    Schedule(
        "interleaved-zb",
        "Interleaved zero bubble",
        orders.interleaved_zb,
        v=None,
        splits=True,
        rounds=True,
    ),
    Schedule(
        "dualpipe", "DualPipe", orders.dual_pipe, "both ways", splits=True, pairs=True, least_m=2
    ),
    Schedule(
        "dualpipev", "DualPipeV", orders.dual_pipe_v, "V", 2, splits=True, pairs=True, least_m=2
    ),
)
SCHEDULES: dict[str, Schedule] = {rule.name: rule for rule in _ROWS}
"""Every schedule; a new one is a function in `orders` and a row here, and one of FORMS if its
figures are published."""

PAIRS, TORCH = "pairs", "torch"
"""Variants of schedules: forwards and backwards in pairs, where experts' exchange hides behind
another micro-batch; and as torch's pipelines have them."""

VARIANTS: dict[tuple[str, str], Schedule] = {
    **{
        (name, PAIRS): replace(
            SCHEDULES[name],
            title=f"{SCHEDULES[name].title}, in pairs",
            order=orders.paired,
            pairs=True,
            form=f"{name} in pairs",
        )
        for name in ("1f1b", "interleaved")
    },
    ("interleaved", TORCH): SCHEDULES["interleaved-torch"],
}
"""By schedule and variant; a schedule without one is the same in it."""

DEFAULT_VIRTUAL = 2
"""The default number of chunks per rank, for schedules that need several."""
