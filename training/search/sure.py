"""How sure it is that one of two layouts is quicker, from pairs that others measured.

What both estimates of a pair miss alike (the machine, the software, the model) cancels in their
ratio; what is left grows with how differently the layouts are cut. So of pairs of one source,
machine, model, software and number of GPUs

    log(real ratio / estimated ratio)   is logistic, of scale  sqrt(a^2 + b^2 d)
    d   doublings between both: of tp, pp, cp, ep, vpp, micro-batch and GPUs; another recomputation
        and another ZeRO stage count as one each

with a and b fitted to these pairs, and widened to what the worst source needs that the fit has not
seen; those of nanotron, half of whose stalls are chance, have their own (benchmarks.fit_pairs).
Few of the pairs are of mixtures of experts. For each thing in which no public run is near one of
both, the ends of nine of ten ratios move as far as those of an interval.
"""

from __future__ import annotations

from math import exp, hypot, log, log2
from typing import NamedTuple

from ..estimate import Estimate, Request
from ..estimate.answer import FAR
from ..estimate.constants import fitted_constants

AXES = ("tp", "pp", "cp", "ep", "vpp")

NINE_OF_TEN = 2.944
"""Scales of a logistic law on each side that hold 90 % of it: log(0.95 / 0.05)."""


class Order(NamedTuple):
    """share: how sure it is that the first is quicker, from 0 to 1. low, high: where nine of ten
    real ratios of the first's step to the second's are."""

    share: float
    low: float
    high: float


def order_of(first: Estimate, second: Estimate) -> Order:
    """How sure it is that the first of two layouts for the same work is quicker.

    >>> from training.estimate import estimate
    >>> from training.models import MODELS
    >>> sizes = {"gpus": 64, "tp": 8, "global_batch": 32}
    >>> shallow, deep = (estimate(MODELS["llama3-70b"].model, **sizes, pp=pp) for pp in (2, 8))
    >>> round(shallow.seconds / deep.seconds, 2), round(order_of(shallow, deep).share, 2)
    (0.96, 0.61)
    >>> order_of(deep, deep)
    Order(share=0.5, low=1.0, high=1.0)

    Swapping the layouts swaps the answer: the shares sum to one.
    """
    ratio = first.seconds / second.seconds
    if first.request == second.request:
        return Order(0.5, ratio, ratio)
    scale = scale_of(first, second)
    wide = exp(NINE_OF_TEN * scale)
    return Order(1.0 / (1.0 + ratio ** (1.0 / scale)), ratio / wide, ratio * wide)


class Kept(NamedTuple):
    """How orders hold that are said to be sure to a share from ``low`` to ``high``: the pairs of
    measured runs that are, and the share of them in that order."""

    low: float
    high: float
    pairs: int
    right: float


def law_of(*estimates: Estimate) -> str:
    """Whose pairs the error of a ratio comes from: "tuned" software or "nanotron"."""
    return "nanotron" if any(each.software == "nanotron" for each in estimates) else "tuned"


def kept_orders(law: str) -> list[Kept]:
    """How orders hold, the least sure first.

    >>> [(kept.low, kept.high, kept.right > 0.75) for kept in kept_orders("tuned")][-2:]
    [(0.8, 0.9, True), (0.9, 1.0, True)]
    """
    rows = fitted_constants()["orders"][law]
    return [Kept(low, high, int(pairs), right) for low, high, pairs, right in rows]


def scale_of(first: Estimate, second: Estimate) -> float:
    """The scale of the error of two estimates' ratio, in logarithms."""
    alike, each = fitted_constants()["pairs"][law_of(first, second)]
    scale = hypot(alike, each * doublings(first.request, second.request) ** 0.5)
    lacks = {*first.lacks, *second.lacks}
    return scale + len(lacks) * log(FAR) / NINE_OF_TEN


def doublings(one: Request, other: Request) -> float:
    """How differently two layouts are cut.

    >>> from training.estimate import estimate
    >>> from training.models import MODELS
    >>> sizes = {"gpus": 64, "global_batch": 32, "tp": 8}
    >>> requests = [estimate(MODELS["llama3-70b"].model, **sizes, pp=pp).request for pp in (2, 8)]
    >>> doublings(*requests)
    2.0
    """
    sizes = ((getattr(one.split, axis), getattr(other.split, axis)) for axis in AXES)
    trained, others = one.training, other.training
    counts = (trained.micro_batch, others.micro_batch), (one.gpus, other.gpus)
    ways = (trained.recompute != others.recompute) + (trained.zero != others.zero)
    return ways + sum(abs(log2(a / b)) for a, b in (*sizes, *counts))
