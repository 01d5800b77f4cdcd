"""Orders found by a scheduler for given durations and memory: ZB-2p, and ZB-1p with half the
memory.

Round by round every rank runs one F and one I (2401.10241, section 3.1, which calls I "B"):

    warm-up     as many F as end before the first I can start, as far as memory reaches; each rank
                has one more under way than the next, until it has all
    a round     F from the first rank to the last, then I from the last to the first
    in between  W while an input is not there yet, and where memory is full
    at last     the W that are left

Three choices are open: whether one more F may delay the first I, whether a rank that is two F ahead
of the next may leave one out, and whether W may delay an op by less than another rank is idle
anyway. All eight orders are made, and the one whose longest span is shortest is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import accumulate, product

import numpy as np

from .plan import F, I, Shape, W

TRIES = 8
"""The most orders that are tried."""

DIGITS = 9
"""Significant digits of the longest duration."""

ROUNDING = 1e-9
"""The tolerance of sums of shares, in micro-batches."""


def automatic(
    shape: Shape, times: np.ndarray, send: float, limit: float, w_share: float
) -> tuple[np.ndarray, ...]:
    """The order of every rank's ops as places, for stages in a line.

    times: durations by kind and stage, as in `Durations.table`. send: duration of a message. limit:
    micro-batches that a rank may hold; w_share: the part of a micro-batch that it holds from I to
    W.
    """
    longest = max(float(times[[F, I, W]].max()), send)
    # Whole numbers, so that equal sums of decimal times are equal.
    unit = 10.0 ** (math.ceil(math.log10(longest)) - DIGITS) if longest else 1.0
    costs, send = np.rint(times / unit), round(send / unit)
    busy = shape.m * costs[[F, I, W]].sum(axis=0)
    best, shortest = None, math.inf
    for choices in product((False, True), (True, False), (True, False)):
        attempt = _Try(shape, costs.tolist(), send, limit, w_share, busy.tolist(), *choices)
        attempt.run(shortest)
        if attempt.span < shortest:
            best, shortest = attempt, attempt.span
        if shortest <= busy.max():  # no order can be shorter
            break
    return best.places() if best else ()


class _Try:
    """An order under construction: each rank's ops so far, its clock, and its idle time.

    late, skip, greedy: the three choices. words: the kinds of each rank's ops, in order. inputs:
    times at which the inputs of a rank's F are ready. ran, weights: numbers of F and of W that each
    rank has run; done: number of I that every rank has run, one in each round. idle: idle time of
    each rank after its first op; worst: the largest of these. span: the longest time between a
    rank's first and last op, if no rank is idle any more.
    """

    def __init__(
        self,
        shape: Shape,
        costs: list[list[float]],
        send: float,
        limit: float,
        w_share: float,
        busy: list[float],
        late: bool,
        skip: bool,
        greedy: bool,
    ) -> None:
        self.shape, self.costs, self.send = shape, costs, send
        self.limit, self.w_share, self.busy = limit, w_share, busy
        self.late, self.skip, self.greedy = late, skip, greedy
        self.words = [bytearray() for _ in shape.ranks]
        self.inputs: list[list[float]] = [[-math.inf] * shape.m, *([] for _ in shape.ranks)]
        self.ran, self.weights, self.done = [0] * shape.p, [0] * shape.p, 0
        self.clock, self.idle = ([0.0] * shape.p for _ in range(2))
        self.worst, self.span = 0.0, max(busy)

    def places(self) -> tuple[np.ndarray, ...]:
        """The order of every rank as places: each kind of op takes its micro-batches in order."""
        places = []
        for rank, word in enumerate(self.words):
            kinds = np.frombuffer(word, dtype=np.uint8)
            number = np.empty(len(kinds), dtype=np.int64)
            for kind in (F, I, W):
                number[kinds == kind] = self.shape.all
            places.append(kinds + 4 * (number + self.shape.m * rank))
        return tuple(places)

    def run(self, shortest: float) -> None:
        """Builds the order, or only its beginning if its span cannot be below ``shortest``."""
        self._warm_up()
        while self.done < self.shape.m and self.span < shortest:
            if self.done:
                self._run_forwards(range(self._first_forward(), self.shape.p))
            self._run_backwards()
        for rank in self.shape.ranks:
            self._put_weights(rank, self._waiting(rank))

    def _warm_up(self) -> None:
        """Adds the first F of every rank, and all F that end before the rank's first I."""
        shape, forward = self.shape, self.costs[F]
        self.clock = list(accumulate((time + self.send for time in forward[:-1]), initial=0.0))
        self._run_forwards(shape.ranks)
        more, back = [0] * shape.p, -math.inf
        for rank in reversed(shape.ranks):
            clock, ready = self.clock[rank], back + self.send
            most = min(math.floor(self.limit), shape.m) - 1
            while more[rank] < most and (
                clock < ready if self.late else clock + forward[rank] <= ready
            ):
                clock += forward[rank]
                more[rank] += 1
            back = max(clock, ready) + self.costs[I][rank]
        for rank in shape.ranks:
            if rank:
                ahead = more[rank - 1]
                more[rank] = min(more[rank], ahead if ahead == shape.m - 1 else max(ahead - 1, 0))
        self._run_forwards(rank for rank in shape.ranks for _ in range(more[rank]))

    def _run_forwards(self, ranks: Iterable[int]) -> None:
        """Adds one F to each of these ranks, after the W that are due or needed to make room."""
        ran, weights, clocks, costs = self.ran, self.weights, self.clock, self.costs[F]
        inputs, words, send, full = self.inputs, self.words, self.send, math.floor(self.limit)
        for rank in ranks:
            if ran[rank] - weights[rank] >= full:
                self._put_weights(rank, self._weights_for_room(rank))
            ready, clock = inputs[rank][ran[rank]] + send, clocks[rank]
            if ready > clock:
                clock = self._wait(rank, ready)
            clocks[rank] = clock = clock + costs[rank]
            inputs[rank + 1].append(clock)
            ran[rank] += 1
            words[rank].append(F)

    def _run_backwards(self) -> None:
        """Adds one I to each rank, from the last to the first."""
        clocks, costs, words = self.clock, self.costs[I], self.words
        if self.ran[0] == self.shape.m:  # no rank waits for the first rank's I
            self._put_weights(0, self._waiting(0))
        ready = -math.inf
        for rank in reversed(self.shape.ranks):
            clock = clocks[rank]
            if ready > clock:
                clock = self._wait(rank, ready)
            clocks[rank] = clock = clock + costs[rank]
            ready = clock + self.send
            words[rank].append(I)
        self.done += 1

    def _put_weights(self, rank: int, count: int) -> None:
        self.words[rank] += bytes([W]) * count
        self.clock[rank] += count * self.costs[W][rank]
        self.weights[rank] += count

    def _waiting(self, rank: int) -> int:
        """The number of W that a rank could run now."""
        return self.done - self.weights[rank]

    def _weights_for_room(self, rank: int) -> int:
        """The number of W that must run before memory has room for another F."""
        held = self.ran[rank] - self.done + self.w_share * self._waiting(rank)
        over = held + 1 - self.limit - ROUNDING
        return math.ceil(over / self.w_share) if over > 0 < self.w_share else 0

    def _wait(self, rank: int, ready: float) -> float:
        """Advances a rank's clock to the time of an input: runs W while they fit, then idles."""
        cost, waiting, gap = self.costs[W][rank], self._waiting(rank), ready - self.clock[rank]
        if waiting:
            count = min(waiting, int(gap // cost)) if cost else waiting
            gap -= count * cost
            if count < waiting and gap and (self.greedy or gap > self.worst - self.idle[rank]):
                count, gap = count + 1, gap - cost
            self._put_weights(rank, count)
        if gap > 0:
            self.idle[rank] += gap
            self.worst = max(self.worst, self.idle[rank])
            self.span = max(self.span, self.busy[rank] + self.idle[rank])
        return max(ready, self.clock[rank])

    def _first_forward(self) -> int:
        """The first rank that runs another F in a round: from there on, every rank has one left and
        should not skip it."""
        ran, clock, costs, last = self.ran, self.clock, self.costs, self.shape.p - 1
        for rank in reversed(self.shape.ranks):
            if ran[rank] == self.shape.m:
                return rank + 1
            if self.skip and rank < last and ran[rank] >= ran[rank + 1] + 2:
                until = clock[rank + 1] + costs[F][rank + 1] + costs[I][rank + 1] + self.send
                gap = until - clock[rank]
                if gap <= self.worst - self.idle[rank] and (
                    gap <= 0 or gap < costs[F][rank] + costs[W][rank] * self._weights_for_room(rank)
                ):
                    return rank + 1
        return 0
