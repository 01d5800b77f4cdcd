"""The schedules by name: the order of each, what it demands of the sizes, what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from . import orders
from .closed import EQUAL, FILLED, Form, When, all_micro_batches, nothing, one_pass
from .plan import Shape


@dataclass(frozen=True)
class Schedule:
    """One schedule: its order, what it demands, and what is published of it.

    order: the places of one rank; None where a scheduler finds them, see `automatic`.
    placement: how stages lie on the ranks, as `training.split.Split` says it.
    v: chunks on each rank; None where they can be chosen.
    closed: idle time and peak in closed form; None: they are counted.
    """

    name: str
    title: str
    order: Callable[[Shape, int], np.ndarray] | None
    closed: Form | None = None
    placement: str = "loop"
    v: int | None = 1
    splits: bool = False  # a backward into I and W
    pairs: bool = False  # a forward with a backward, whose kernels overlap
    grouped: bool = False  # micro-batches go in groups of a chosen size
    rounds: bool = False  # micro-batches go in as many equal rounds of p or more as there can be
    least_m: int = 0  # micro-batches that each rank needs, in units of p
    even: bool = False  # p and m
    limit: int = 0  # micro-batches that a rank may hold, in units of p, if the order is found


SCHEDULES: dict[str, Schedule] = {
    rule.name: rule
    for rule in (
        Schedule(
            "gpipe",
            "GPipe",
            orders.gpipe,
            Form("(p - 1)(F + B)", one_pass, "m", all_micro_batches, keeps_outputs=True),
        ),
        Schedule(
            "1f1b",
            "1F1B",
            orders.one_f_one_b,
            Form("(p - 1)(F + B)", one_pass, "min(m, p - r)", lambda p, r, m, v: min(m, p - r)),
        ),
        Schedule(
            "interleaved",
            "Interleaved 1F1B",
            orders.interleaved,
            Form(
                "(p - 1)(F + B)/v",
                one_pass,
                "min(2(p - r - 1) + (v - 1)N + 1, mv)/v",
                lambda p, r, m, v: min(orders.interleaved_warmup(p, r, m, v, p) + 1, m * v) / v,
                When("p divides m, N = p", lambda p, m, t: m % p == 0),
            ),
            v=None,
            grouped=True,
            least_m=1,
        ),
        Schedule(
            "bfs",
            "Breadth-first",
            orders.breadth_first,
            Form(
                "(p - 1)(F + B)/v",
                one_pass,
                "m",
                all_micro_batches,
                When("m ≥ p", lambda p, m, t: m >= p),
                keeps_outputs=True,
            ),
            v=None,
        ),
        Schedule(
            "zb-h1",
            "ZB-H1",
            partial(orders.zb_h, delay=1),
            Form(
                "(p - 1)(F + I - W)",
                lambda p, v, t: (p - 1) * (t.forward + t.for_input - t.for_weights),
                "min(m, p)",
                lambda p, r, m, v: min(m, p),
                When("m ≥ p, W ≤ F, W ≤ I", lambda p, m, t: m >= p and t.weights_are_short),
            ),
            splits=True,
        ),
        Schedule(
            "zb-h2",
            "ZB-H2",
            partial(orders.zb_h, delay=2),
            Form(
                "(p - 1)(F + I - 2W)",
                lambda p, v, t: (p - 1) * (t.forward + t.for_input - 2 * t.for_weights),
                "min(m, 2p - 1)",
                lambda p, r, m, v: min(m, 2 * p - 1),
                When(
                    "m ≥ 2p - 1, W ≤ F, W ≤ I",
                    lambda p, m, t: m >= 2 * p - 1 and t.weights_are_short,
                ),
                "span",
            ),
            splits=True,
        ),
        Schedule(
            "zb-2p",
            "ZB-2p",
            None,
            Form("0", nothing, "min(m, 2p)", lambda p, r, m, v: min(m, 2 * p), FILLED, "span"),
            splits=True,
            limit=2,
        ),
        Schedule(
            "zb-v",
            "ZB-V",
            orders.zb_v,
            Form("0", nothing, "min(m, p)", lambda p, r, m, v: min(m, p), FILLED, "span"),
            placement="V",
            v=2,
            splits=True,
        ),
        Schedule(
            "interleaved-zb",
            "Interleaved zero bubble",
            orders.interleaved_zb,
            v=None,
            splits=True,
            rounds=True,
        ),
        Schedule(
            "dualpipe",
            "DualPipe",
            orders.dual_pipe,
            Form(
                "(p/2 - 1)(FB + B - 3W)",
                lambda p, v, t: (p / 2 - 1) * (t.pair + t.backward - 3 * t.for_weights),
                "p + 1",
                lambda p, r, m, v: p + 1,
                EQUAL,
                "most",
            ),
            placement="both ways",
            splits=True,
            pairs=True,
            least_m=2,
            even=True,
        ),
        Schedule(
            "dualpipev",
            "DualPipeV",
            orders.dual_pipe_v,
            Form(
                "(p - 1)(FB + B - 3W)/2",
                lambda p, v, t: (p - 1) * (t.pair + t.backward - 3 * t.for_weights) / 2,
                "(2p + 1)/2",
                lambda p, r, m, v: (2 * p + 1) / 2,
                EQUAL,
                "most",
            ),
            placement="V",
            v=2,
            splits=True,
            pairs=True,
            least_m=2,
        ),
    )
}
"""Every schedule; a new one is a function in `orders` and a row here.

Closed forms: 2104.04473 section 2.2, 2401.10241 Table 2 and section 6, 2412.19437 Table 2,
DualPipe's README. DualPipeV's own formula counts PP = 2p and times of a chunk, half a rank.
"""

DEFAULT_VIRTUAL = 2
"""Chunks of a rank where a schedule needs some and nobody says how many."""
