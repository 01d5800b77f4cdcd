"""The order in which a rank runs its ops, schedule by schedule: one function each.

Each takes the `Shape` of the pipeline and a rank r, and returns that rank's places as numbers
(see `plan`). Chunk k of a looped schedule is stage ``k * p + r``; in a V a rank holds stages r and
``2 * p - 1 - r``, so that the last stage is back on the first rank.

Rules and sources, with the programs whose recorded runs the tests compare: GPipe (1811.06965,
torchgpipe clock_cycles), 1F1B and interleaved (2104.04473; Megatron-LM pipeline_parallel/
schedules.py), breadth-first (2211.05953; torch ScheduleLoopedBFS), ZB-H1, ZB-H2 and ZB-V
(2401.10241; sail-sg, torch ScheduleZBVZeroBubble), interleaved zero bubble (torch
ScheduleInterleavedZeroBubble), DualPipe and DualPipeV (2412.19437; deepseek-ai/DualPipe).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from .shape import Shape


def gpipe(shape: Shape, rank: int) -> np.ndarray:
    """All forwards, then all backwards, micro-batches in the same order."""
    return _joined(shape.forward(rank, shape.all), shape.backward(rank, shape.all))


def one_f_one_b(shape: Shape, rank: int) -> np.ndarray:
    """min(p - 1 - r, m) forwards ahead, then one forward, one backward by turns (1F1B)."""
    forward, backward = shape.forward(rank, shape.all), shape.backward(rank, shape.all)
    return _alternating(forward, backward, min(shape.p - 1 - rank, shape.m))


def interleaved(shape: Shape, rank: int) -> np.ndarray:
    """As 1F1B, over v chunks: see `chunk_table` and `interleaved_warmup`."""
    warmup = interleaved_warmup(shape.p, rank, shape.m, shape.v, shape.n)
    forward, backward = _looped(shape, rank)
    return _alternating(shape.forward(*forward), shape.backward(*backward), warmup)


def breadth_first(shape: Shape, rank: int) -> np.ndarray:
    """Chunk by chunk all micro-batches forward; then all of it in the opposite order back."""
    chunk, micro_batch = np.divmod(np.arange(shape.v * shape.m), shape.m)
    stage = chunk * shape.p + rank
    return _joined(
        shape.forward(stage, micro_batch), shape.backward(stage[::-1], micro_batch[::-1])
    )


def zb_h1(shape: Shape, rank: int) -> np.ndarray:
    """At tick x: F of x, I of x - (p - 1 - r), W of x - (p - 1); the memory of 1F1B."""
    return _ticking(shape, rank, delay=1)


def zb_h2(shape: Shape, rank: int) -> np.ndarray:
    """ZB-H1 with both delays doubled: twice the memory, and no bubble if F = I = W."""
    return _ticking(shape, rank, delay=2)


def interleaved_zb(shape: Shape, rank: int) -> np.ndarray:
    """Interleaved with one hop of warm-up less per rank, I in place of B, and W from the r-th I on.

    W then follows each I and takes the oldest that is left.
    """
    forward, backward = _looped(shape, rank)
    total = shape.m * shape.v
    warmup = min((shape.v - 1) * shape.n + shape.p - 1 - rank, total)
    # By turns: forward number x stands in turn x - warmup, and the i-th I in turn i.
    turn = np.arange(total)
    return _by_key(
        (shape.forward(*forward), 3 * (turn - warmup)),
        (shape.for_input(*backward), 3 * turn + 1),
        (shape.for_weights(*backward), 3 * (turn + rank) + 2),
    )


def zb_v(shape: Shape, rank: int) -> np.ndarray:
    """ZB-V: a V of two chunks, its order fixed for F = I = W.

    Made for at least 2p - 1 micro-batches; of fewer, what is too much is left out.
    """
    p, m = shape.p, shape.m
    line = _Line(shape, ((rank, 0), (2 * p - 1 - rank, 0)))
    total = max(m, 2 * p - 1)
    line.forwards(0, 2 * (p - rank) - 1)
    for _ in range(rank):
        line.forward(1)
        line.forward(0)
    for _ in range(p - rank):
        line.forward(1)
        line.back(1)
    while line.done[1] < total:
        if line.done[0] < total:
            line.forward(0)
        line.back(0)
        line.forward(1)
        line.back(1)
    for _ in range(rank):
        line.for_input(0)
        line.for_input(1)
    for _ in range(p - rank):
        line.for_input(0)
        line.for_weights(0)
    line.rest_of_weights(1)
    line.rest_of_weights(0)
    return line.up_to(m)


def dual_pipe(shape: Shape, rank: int) -> np.ndarray:
    """DualPipe: half of the micro-batches enter at either end, over two copies of the model.

    Rank r holds stage r for the first half of them and stage p - 1 - r for the others.
    """
    p, half = shape.p, shape.m // 2
    near = min(rank, p - 1 - rank)
    own, other = (rank, 0), (p - 1 - rank, half)
    chunks = (own, other) if rank < p // 2 else (other, own)
    return _both_ways(shape, chunks, near, p // 2 - 1 - near, half - p + near + 1)


def dual_pipe_v(shape: Shape, rank: int) -> np.ndarray:
    """DualPipe's order with one copy of the model on a V of two chunks (DualPipeV)."""
    p = shape.p
    chunks = ((rank, 0), (2 * p - 1 - rank, 0))
    return _both_ways(shape, chunks, rank, p - 1 - rank, shape.m - 2 * p + rank + 1)


def chunk_table(m: int, v: int, n: int) -> list[tuple[int, int]]:
    """(micro-batch, chunk) in the order of the forwards: by groups of n, chunk by chunk.

    >>> chunk_table(m=4, v=2, n=2)
    [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0), (2, 1), (3, 1)]

    Source: Megatron-LM megatron/core/pipeline_parallel/schedules.py, get_schedule_table.
    """
    return [
        (micro_batch, chunk)
        for first in range(0, m, n)
        for chunk in range(v)
        for micro_batch in range(first, min(first + n, m))
    ]


def interleaved_warmup(
    p: int, rank: int, m: int, v: int, n: int, *, overlap_moe: bool = False
) -> int:
    """Forwards of chunks before the first backward: min(2(p - r - 1) + (v - 1)n, mv); one chunk:
    min(p - r - 1, m).

    overlap_moe: with overlap_moe_expert_parallel_comm, one more where there are chunks.

    >>> [interleaved_warmup(4, rank, m=8, v=2, n=4) for rank in range(4)]
    [10, 8, 6, 4]

    Source: Megatron-LM, the same file, get_pp_rank_microbatches.
    """
    if v == 1:
        return min(p - rank - 1, m)
    return min(2 * (p - rank - 1) + (v - 1) * n + bool(overlap_moe), m * v)


def _looped(
    shape: Shape, rank: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(stages, micro-batches) of the forwards, and of the backwards: chunks the other way round."""
    micro_batch, chunk = np.array(chunk_table(shape.m, shape.v, shape.n)).T
    back = shape.v - 1 - chunk
    return (chunk * shape.p + rank, micro_batch), (back * shape.p + rank, micro_batch)


def _ticking(shape: Shape, rank: int, delay: int) -> np.ndarray:
    tick = shape.all
    return _by_key(
        (shape.forward(rank, tick), 3 * tick),
        (shape.for_input(rank, tick), 3 * (tick + delay * (shape.p - 1 - rank)) + 1),
        (shape.for_weights(rank, tick), 3 * (tick + delay * (shape.p - 1)) + 2),
    )


def _by_key(*runs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Runs of ops, each with its keys, as one run by ascending key."""
    ops, keys = (np.concatenate(part) for part in zip(*runs))
    return ops[np.argsort(keys, kind="stable")]


def _alternating(forward: np.ndarray, backward: np.ndarray, warmup: int) -> np.ndarray:
    """``warmup`` forwards; forward and backward by turns; the backwards that are left."""
    turns = len(forward) - warmup
    by_turns = np.stack([forward[warmup:], backward[:turns]], axis=1).ravel()
    return _joined(forward[:warmup], by_turns, backward[turns:])


def _joined(*runs: np.ndarray) -> np.ndarray:
    return np.concatenate(runs)


def _both_ways(
    shape: Shape, chunks: tuple[tuple[int, int], ...], near: int, far: int, main: int
) -> np.ndarray:
    """The eight steps of DualPipe's ``step()``, for a rank ``near`` hops from the nearer end and
    ``far`` hops from where the two directions meet."""
    line = _Line(shape, chunks)
    line.forwards(0, 2 * far)
    for _ in range(near + 1):
        line.forward(0)
        line.forward(1)
    for _ in range(far):
        line.back(1)
        line.forward(1)
    for turn in range(main):
        if turn == 0 and far == 0:  # where the directions meet, this pair would wait for itself
            line.forward(0)
            line.backward(1)
        else:
            line.pair(0, 1)
        line.pair(1, 0)
    for _ in range(far):
        line.backward(1)
        line.pair(1, 0)
    # From the middle of these on, weights wait: from its 1 if near is odd, from its 0 if even.
    for turn in range(2 * (near + 1)):
        chunk = 1 - turn % 2
        whole = turn < near + 1
        (line.backward if whole else line.for_input)(chunk)
    for _ in range(far):
        line.oldest_weights()
        line.for_input(0)
    for _ in range(near + 1):
        line.oldest_weights()
    return line.up_to(shape.m)


@dataclass
class _Line:
    """A rank's order while it is written: each chunk goes on with its next micro-batch.

    chunks: the stage of each chunk and its first micro-batch.
    """

    shape: Shape
    chunks: tuple[tuple[int, int], ...]
    places: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # the micro-batch of each place
    done: list[int] = field(default_factory=lambda: [0, 0])  # forwards of each chunk
    returned: list[int] = field(default_factory=lambda: [0, 0])  # backwards, or I
    waiting: deque[tuple[int, int]] = field(default_factory=deque)  # chunk, micro-batch without W

    def forwards(self, chunk: int, count: int) -> None:
        for _ in range(count):
            self.forward(chunk)

    def forward(self, chunk: int) -> None:
        stage, number = self._next(chunk, self.done)
        self._add(self.shape.forward(stage, number), number)

    def backward(self, chunk: int) -> None:
        stage, number = self._next(chunk, self.returned)
        self._add(self.shape.backward(stage, number), number)

    def for_input(self, chunk: int) -> None:
        stage, number = self._next(chunk, self.returned)
        self._add(self.shape.for_input(stage, number), number)
        self.waiting.append((chunk, number))

    def oldest_weights(self) -> None:
        """W of the micro-batch that waits longest for it, of whatever chunk."""
        chunk, number = self.waiting.popleft()
        self._add(self.shape.for_weights(self.chunks[chunk][0], number), number)

    def for_weights(self, chunk: int) -> None:
        """W of the micro-batch of this chunk that waits longest for it."""
        found = next(one for one in self.waiting if one[0] == chunk)
        self.waiting.remove(found)
        self._add(self.shape.for_weights(self.chunks[chunk][0], found[1]), found[1])

    def rest_of_weights(self, chunk: int) -> None:
        for _ in range(sum(one[0] == chunk for one in self.waiting)):
            self.for_weights(chunk)

    def back(self, chunk: int) -> None:
        """I and at once its W."""
        self.for_input(chunk)
        self.for_weights(chunk)

    def pair(self, ahead: int, back: int) -> None:
        """A forward of one chunk overlapped with a whole backward of the other."""
        stage, number = self._next(ahead, self.done)
        behind, other = self._next(back, self.returned)
        pair = self.shape.pair(
            self.shape.forward(stage, number), self.shape.backward(behind, other)
        )
        self._add(pair, number)

    def up_to(self, m: int) -> np.ndarray:
        """The places of the first m micro-batches."""
        return np.array(self.places, dtype=np.int64)[np.array(self.numbers) < m]

    def _next(self, chunk: int, counts: list[int]) -> tuple[int, int]:
        stage, first = self.chunks[chunk]
        counts[chunk] += 1
        return stage, first + counts[chunk] - 1

    def _add(self, place: int, number: int) -> None:
        self.places.append(place)
        self.numbers.append(number)
