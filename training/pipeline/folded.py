"""V-Half and V-Min: a V of two chunks whose activations take a half or a third of 1F1B's memory.

A building block says at which slot each rank runs its four ops of one micro-batch: F of its first
stage, F of its second, then I of the second and I of the first. The less time from an F to the I
of the same stage, the less is held. Blocks follow each other every six slots, as many as a
micro-batch has ops on a rank, and W fill what is free (2405.15362, section 3):

    V-Min   down by one slot a rank and up by one, twice; two slots more between for p = 3, 6, ...
    V-Half  down by two slots a rank and up by one, twice; three slots more between for even p

Where fewer micro-batches are under way, slots are free: there each op moves to the first free one
behind what it waits for, while no rank holds more than the fullest one did. It is done twice:

    with W in their slots      up to the first I of rank 0's first stage, and behind the last F
    with W in any free slot    behind the last F, over slots without gaps that hold nothing up

Source: sail-sg/zero-bubble 39f2c186 megatron/core/pipeline_parallel/zerobubble/scheduler/
zbv_greedy.py, whose orders these are for any times: it finds them for equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from groups.kept import kept

from .plan import F, I, Shape, W

PERIOD = 6
"""Ops of a rank for one micro-batch, and slots from one block to the next."""

STEADY = 4
"""Micro-batches, in units of p, from which on each further one repeats those in the middle."""

DOWN, UP, BACK_DOWN, BACK_UP, WEIGHTS = range(5)
"""Types of ops: F of the first stage and of the second, I of the second and of the first, W."""

FREE = 5
"""A slot without an op."""

Rows = list[list[int]]
"""The slots of one rank's ops by type and number."""


def _thin(p: int, rank: int) -> tuple[int, ...]:
    gap = 2 * (p % 3 == 0)
    return rank, 2 * p - rank - 1, 2 * p + gap + rank, 4 * p + gap - rank - 1


def _half(p: int, rank: int) -> tuple[int, ...]:
    gap = 3 * (p % 2 == 0)
    return 2 * rank, 3 * p - rank - 2, 3 * p + gap + 2 * rank - 1, 6 * p + gap - rank - 2


BLOCKS: dict[str, Callable[[int, int], tuple[int, ...]]] = {"v-min": _thin, "v-half": _half}
"""The slots of a block on a rank of p, by schedule."""


def folded(shape: Shape, rank: int, name: str) -> np.ndarray:
    """The places of a rank: those for few micro-batches, with the middle as often as it takes.

    >>> from training.pipeline import schedule
    >>> schedule("v-min", p=2, m=2)[0]
    ['0F0', '0F1', '3F0', '3I0', '3W0', '0I0', '0W0', '3F1', '3I1', '3W1', '0I1', '0W1']
    """
    few = min(shape.m, STEADY * shape.p + PERIOD)
    kinds, chunks, numbers = _squeezed(name, shape.p, few)[rank]
    if more := shape.m - few:
        start, end = np.flatnonzero((kinds == F) & (chunks == 0))[few // 2 : few // 2 + 2]
        again = np.tile(np.arange(start, end), more)
        place = np.concatenate((np.arange(end), again, np.arange(end, len(kinds))))
        later = np.full(len(place), more)
        later[:end] = 0
        later[end : end + len(again)] = np.repeat(np.arange(1, more + 1), end - start)
        kinds, chunks, numbers = kinds[place], chunks[place], numbers[place] + later
    stage = np.where(chunks == 0, rank, 2 * shape.p - 1 - rank)
    return shape.op(kinds, stage, numbers)


@kept
def _squeezed(name: str, p: int, m: int) -> tuple[tuple[np.ndarray, ...], ...]:
    """Kind, chunk and micro-batch of the ops of each rank, in order."""
    blocks = [BLOCKS[name](p, rank) for rank in range(p)]
    ranks = [[list(range(at, at + PERIOD * m, PERIOD)) for at in block] for block in blocks]
    for rows in ranks:
        rows.append(sorted(chain(*weights(rows))))
    _move(ranks, with_weights=True)
    ranks = [rows[:WEIGHTS] for rows in soonest(ranks)]
    _move(ranks, with_weights=False)
    ranks = soonest([[*rows, sorted(chain(*weights(rows)))] for rows in ranks])
    return tuple(_in_order(rows[:WEIGHTS], m) for rows in ranks)


def _in_order(rows: Rows, m: int) -> tuple[np.ndarray, ...]:
    rows = [*rows, *weights(rows)]
    kinds, chunks = np.array((F, F, I, I, W, W)), np.array((0, 1, 1, 0, 1, 0))
    order = np.argsort(np.concatenate(rows), kind="stable")
    return (
        np.repeat(kinds, m)[order],
        np.repeat(chunks, m)[order],
        np.tile(np.arange(m), PERIOD)[order],
    )


# -- slots ---------------------------------------------------------------------------------------


def weights(rows: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """The slots of W of the second stage and of the first: the first free ones behind an I, for the
    second stage where both wait.

    >>> weights([[0], [1], [2], [4]])
    ([3], [5])
    """
    kinds = {slot: kind for kind, slots in enumerate(rows[:WEIGHTS]) for slot in slots}
    found: tuple[list[int], list[int]] = ([], [])
    waiting, slot, last = [0, 0], 0, max(kinds)
    while slot <= last or any(waiting):
        kind = kinds.get(slot, WEIGHTS)
        if kind in (BACK_DOWN, BACK_UP):
            waiting[kind - BACK_DOWN] += 1
        elif kind == WEIGHTS and any(waiting):
            of = 0 if waiting[0] else 1
            found[of].append(slot)
            waiting[of] -= 1
        slot += 1
    return found


def in_turns(ranks: Sequence[Rows]) -> Iterator[tuple[int, int, int]]:
    """(rank, type, number) of all ops by their slots; at one slot, by rank."""
    ops = [
        (slot, rank, kind, number)
        for rank, rows in enumerate(ranks)
        for kind, slots in enumerate(rows)
        for number, slot in enumerate(slots)
    ]
    for _, rank, kind, number in sorted(ops):
        yield rank, kind, number


def soonest(ranks: Sequence[Rows]) -> list[Rows]:
    """The slots where each op runs as soon as what it waits for has, in the same order.

    A W waits for nothing but its turn.
    """
    found: list[Rows] = [[[] for _ in rows] for rows in ranks]
    free = [0] * len(ranks)
    for rank, kind, number in in_turns(ranks):
        slot = max(free[rank], _after(found, rank, kind, number))
        found[rank][kind].append(slot)
        free[rank] = slot + 1
    return found


def _after(ranks: Sequence[Rows], rank: int, kind: int, number: int) -> int:
    """The first slot behind the same op on the rank before, the one before it of the same
    micro-batch, and the same one of the micro-batch before."""
    behind = [-1]
    beside = rank + (-1 if kind in (DOWN, BACK_DOWN) else 1)
    if kind != WEIGHTS:
        if 0 <= beside < len(ranks):
            behind.append(ranks[beside][kind][number])
        if kind:
            behind.append(ranks[rank][kind - 1][number])
    if number:
        behind.append(ranks[rank][kind][number - 1])
    return max(behind) + 1


# -- moving ops into free slots ------------------------------------------------------------------


def _move(ranks: list[Rows], *, with_weights: bool) -> None:
    """Moves ops to earlier slots, in place."""
    held = [(Slots if with_weights else SlotsAtMost)(rows) for rows in ranks]
    most = max(each.most for each in held)
    last = len(ranks[0][DOWN]) - 1
    moves, is_under_way = with_weights, False
    for rank, kind, number in list(in_turns(ranks)):
        if not is_under_way and (rank, kind) == (0, BACK_UP):
            moves, is_under_way = False, True
        if moves:
            rows = ranks[rank]
            first = _after(ranks, rank, kind, number)
            if kind == WEIGHTS:
                first = max(first, sorted(rows[BACK_DOWN] + rows[BACK_UP])[number] + 1)
            rows[kind][number] = held[rank].earlier(kind, first, rows[kind][number], most)
        elif is_under_way and (kind, number) == (DOWN, last):
            moves = True


class Slots:
    """What a rank holds after each slot, in chunks of a micro-batch, with W where they are."""

    ADDED = (1, 1, 0, 0, -1, 0)  # by type; the last one: a free slot

    def __init__(self, rows: Rows) -> None:
        kinds = {slot: kind for kind, slots in enumerate(rows) for slot in slots}
        self.kinds = [kinds.get(slot, FREE) for slot in range(max(kinds) + 1)]
        self.after: list[int] = []
        self._count()

    def _count(self) -> None:
        now = 0
        for kind in self.kinds:
            now += self.ADDED[kind]
            self.after.append(now)

    @property
    def most(self) -> int:
        return max(self.after)

    def earlier(self, kind: int, first: int, slot: int, most: int) -> int:
        """The first free slot from ``first`` on at which an op may run instead of at ``slot``."""
        for at in range(first, slot):
            if self.kinds[at] == FREE and self._moves(kind, at, slot, most):
                self.kinds[at], self.kinds[slot] = kind, FREE
                return at
        return slot

    def _moves(self, kind: int, at: int, slot: int, most: int) -> bool:
        """Counts an op at another slot if no more than ``most`` is held then."""
        added = self.ADDED[kind]
        if added and max(self.after[at:slot]) + added > most:
            return False
        for between in range(at, slot):
            self.after[between] += added
        return True


class SlotsAtMost(Slots):
    """What a rank holds after each slot with a W in every free slot that has one to run."""

    def _count(self) -> None:
        self.waiting: list[int] = []  # W, after each slot
        now = waiting = 0
        for kind in self.kinds:
            now, waiting = self._next(kind, now, waiting)
            self.after.append(now)
            self.waiting.append(waiting)

    def _next(self, kind: int, now: int, waiting: int) -> tuple[int, int]:
        if kind == FREE:
            return (now - 1, waiting - 1) if waiting else (now, waiting)
        return now + self.ADDED[kind], waiting + (kind in (BACK_DOWN, BACK_UP))

    def _moves(self, kind: int, at: int, slot: int, most: int) -> bool:
        now, waiting = (self.after[at - 1], self.waiting[at - 1]) if at else (0, 0)
        after, waits = [], []
        for between in range(at, len(self.kinds)):
            own = self.kinds[between]
            own = kind if between == at else FREE if between == slot else own
            now, waiting = self._next(own, now, waiting)
            if now > most:
                return False
            if between > slot and waiting == self.waiting[between]:
                break  # as before from here on
            after.append(now)
            waits.append(waiting)
        end = at + len(after)
        self.after[at:end], self.waiting[at:end] = after, waits
        return True
