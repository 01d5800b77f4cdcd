"""Orders that a scheduler finds for given times and memory: ZB-2p, and ZB-1p with half the memory.

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
from itertools import product

import numpy as np

from .plan import F, I, W
from .shape import Shape

TRIES = 8
"""Orders that are made at most."""

DIGITS = 9
"""Digits of the longest time that count."""

ROUNDING = 1e-9
"""Micro-batches by which a sum of shares may be off."""


def automatic(
    shape: Shape, times: np.ndarray, send: float, limit: float, w_share: float
) -> tuple[np.ndarray, ...]:
    """The places of every rank of a line of stages.

    times: by kind and stage, as `Durations.table` has them. send: time of a message. limit:
    micro-batches that a rank may hold; w_share: the part of one that it holds from I to W.
    """
    longest = max(float(times[[F, I, W]].max()), send)
    # Whole numbers, so that equal sums of decimal times are equal.
    unit = 10.0 ** (math.ceil(math.log10(longest)) - DIGITS) if longest else 1.0
    costs = np.rint(times / unit).tolist()
    busy = max(shape.m * (costs[F][rank] + costs[I][rank] + costs[W][rank]) for rank in shape.ranks)
    tries = []
    for choices in product((False, True), (True, False), (True, False)):
        tries.append(_Try(shape, costs, round(send / unit), limit, w_share, *choices))
        tries[-1].run()
        if tries[-1].span <= busy:  # none can be shorter
            break
    return tuple(map(np.array, min(tries, key=lambda one: one.span).order))


class _Try:
    """One order in the making: what each rank has run, until when, and how long it was idle.

    late, skip, greedy: the three choices. ends: of each rank's F and of its I, one by one. worst:
    the idle time of the rank that is idle most, after its first op.
    """

    def __init__(
        self,
        shape: Shape,
        costs: list[list[float]],
        send: float,
        limit: float,
        w_share: float,
        late: bool,
        skip: bool,
        greedy: bool,
    ) -> None:
        self.shape, self.costs, self.send = shape, costs, send
        self.limit, self.w_share = limit, w_share
        self.late, self.skip, self.greedy = late, skip, greedy
        self.order: list[list[int]] = [[] for _ in shape.ranks]
        self.ends: dict[int, list[list[float]]] = {k: [[] for _ in shape.ranks] for k in (F, I)}
        self.ran = {kind: [0] * shape.p for kind in (F, I, W)}
        self.clock, self.idle, self.first = ([0.0] * shape.p for _ in range(3))
        self.worst = 0.0

    @property
    def span(self) -> float:
        """The longest time from a rank's own first op to its own last."""
        return max(end - start for end, start in zip(self.clock, self.first))

    def run(self) -> None:
        ranks = self.shape.ranks
        self._warm_up()
        for number in range(self.shape.m):
            for rank in self._forwards() if number else ():
                self._put_weights(rank, self._weights_for_room(rank))
                self._put(rank, F)
            for rank in reversed(ranks):
                self._put(rank, I)
        for rank in ranks:
            self._put_weights(rank, self._waiting(rank))

    def _put(self, rank: int, kind: int) -> None:
        """W until the input of a rank's next F or I is there, and then that op."""
        ready = self._ready(rank, kind)
        if ready > self.clock[rank]:
            self._fill(rank, ready)
        if rank == 0 and kind == I and self.ran[F][0] == self.shape.m:  # nobody waits for its I
            self._put_weights(0, self._waiting(0))
        clock, order = self.clock[rank], self.order[rank]
        if not order:
            self.first[rank] = clock = max(clock, ready)
        elif ready > clock:
            self.idle[rank] += ready - clock
            self.worst = max(self.worst, self.idle[rank])
            clock = ready
        self.clock[rank] = clock = clock + self.costs[kind][rank]
        ends = self.ends[kind][rank]
        order.append(kind + 4 * (len(ends) + self.shape.m * rank))
        ends.append(clock)
        self.ran[kind][rank] += 1

    def _put_weights(self, rank: int, count: int) -> None:
        for _ in range(count):
            self.order[rank].append(W + 4 * (self.ran[W][rank] + self.shape.m * rank))
            self.clock[rank] += self.costs[W][rank]
            self.ran[W][rank] += 1

    def _ready(self, rank: int, kind: int) -> float:
        """When the input of a rank's next F or I is there."""
        sender = rank - 1 if kind == F else rank + 1
        if not 0 <= sender < self.shape.p:
            return -math.inf
        return self.ends[kind][sender][self.ran[kind][rank]] + self.send

    def _waiting(self, rank: int) -> int:
        """W that a rank could run."""
        return self.ran[I][rank] - self.ran[W][rank]

    def _weights_for_room(self, rank: int) -> int:
        """W that have to run before memory holds one more F."""
        held = self.ran[F][rank] - self.ran[I][rank] + self.w_share * self._waiting(rank)
        over = held + 1 - self.limit - ROUNDING
        return math.ceil(over / self.w_share) if over > 0 < self.w_share else 0

    def _fill(self, rank: int, ready: float) -> None:
        """W until an input is there."""
        while self._waiting(rank) and self.clock[rank] < ready:
            gap = ready - self.clock[rank]
            fits = self.costs[W][rank] <= gap
            if fits or self.greedy or gap > self.worst - self.idle[rank]:
                self._put_weights(rank, 1)
            if not fits:
                break

    def _warm_up(self) -> None:
        """The first F of every rank, and those that end before its first I."""
        shape, forward = self.shape, self.costs[F]
        for rank in shape.ranks:
            self._put(rank, F)
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
            for _ in range(more[rank]):
                self._put(rank, F)

    def _forwards(self) -> list[int]:
        """The ranks that run one more F in a round: up to the last, or none."""
        found: list[int] = []
        for rank in reversed(self.shape.ranks):
            if not self._runs_forward(rank):
                break
            found.insert(0, rank)
        return found

    def _runs_forward(self, rank: int) -> bool:
        """Whether a rank has an F left that it should not leave out."""
        ran, after = self.ran[F], rank + 1
        if ran[rank] == self.shape.m:
            return False
        if not self.skip or after == self.shape.p or ran[rank] < ran[after] + 2:
            return True
        clock, costs = self.clock[rank], self.costs
        until = self.clock[after] + costs[F][after] + costs[I][after] + self.send
        weights = self._weights_for_room(rank) * costs[W][rank]
        if clock + weights + costs[F][rank] <= until:
            return clock < until
        return clock < until and until - clock > self.worst - self.idle[rank]
