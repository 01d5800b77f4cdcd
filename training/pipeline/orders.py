"""The order in which a rank runs its ops, schedule by schedule: one function each.

Each takes the `Shape` of the pipeline and a rank r, and returns that rank's places as numbers
(see `plan`). Chunk k of a looped schedule is stage ``k * p + r``; in a V a rank holds stages r and
``2 * p - 1 - r``, so that the last stage is back on the first rank.

Rules and sources, with the programs whose recorded runs the tests compare: GPipe (1811.06965,
torchgpipe clock_cycles), 1F1B and interleaved (2104.04473; Megatron-LM pipeline_parallel/
schedules.py), breadth-first (2211.05953; torch ScheduleLoopedBFS), ZB-H1, ZB-H2 and ZB-V
(2401.10241; sail-sg, torch ScheduleZBVZeroBubble), interleaved zero bubble (torch
ScheduleInterleavedZeroBubble), DualPipe and DualPipeV (2412.19437; deepseek-ai/DualPipe). ZB-2p
has no rule: see `automatic`; V-Half and V-Min: see `folded`.
"""

from __future__ import annotations

import numpy as np

from groups.kept import kept

from .plan import B, F, I, Shape, W


def gpipe(shape: Shape, rank: int) -> np.ndarray:
    """All forwards, then all backwards, micro-batches in the same order."""
    return np.concatenate((shape.op(F, rank, shape.all), shape.op(B, rank, shape.all)))


def one_f_one_b(shape: Shape, rank: int) -> np.ndarray:
    """min(p - 1 - r, m) forwards first, then alternately one forward and one backward (1F1B)."""
    forward, backward = shape.op(F, rank, shape.all), shape.op(B, rank, shape.all)
    return _alternating(forward, backward, min(shape.p - 1 - rank, shape.m))


def interleaved(shape: Shape, rank: int) -> np.ndarray:
    """1F1B over v chunks of the model; see `chunk_table` and `interleaved_warmup`."""
    warmup = interleaved_warmup(shape, rank)
    forward, backward = _looped(shape, rank)
    return _alternating(shape.op(F, *forward), shape.op(B, *backward), warmup)


def paired(shape: Shape, rank: int) -> np.ndarray:
    """Interleaved or 1F1B where a micro-batch's exchange of tokens hides behind another one's
    computation: one more forward first, then each forward runs with a backward, as a pair.

    Source: NVIDIA/Megatron-LM d98e8a6 core/pipeline_parallel/schedules.py, get_pp_rank_microbatches
    with overlap_moe_expert_parallel_comm, and combined_1f1b.py.
    """
    warmup = min(interleaved_warmup(shape, rank) + 1, shape.m * shape.v)
    (stages, micro_batches), backward = _looped(shape, rank)
    forward, backward = shape.op(F, stages, micro_batches), shape.op(B, *backward)
    turns = len(forward) - warmup
    pairs = shape.pair(forward[warmup:], backward[:turns])
    return np.concatenate((forward[:warmup], pairs, backward[turns:]))


def interleaved_of_torch(shape: Shape, rank: int) -> np.ndarray:
    """Interleaved as torch warms it up: 2(p - r - 1) + (v - 1)n forwards also with one chunk.

    Source: torch 2.13.0 torch/distributed/pipelining/schedules.py, _get_warmup_ops.
    """
    forward, backward = _looped(shape, rank)
    ops = (shape.op(F, *forward), shape.op(B, *backward))
    return _alternating(*ops, torch_warmup(shape, rank))


def torch_warmup(shape: Shape, rank: int) -> int:
    """Forwards of chunks before torch's first backward."""
    warmup = 2 * (shape.p - rank - 1) + (shape.v - 1) * shape.n
    return min(warmup, shape.m * shape.v)


def breadth_first(shape: Shape, rank: int) -> np.ndarray:
    """All micro-batches forward, chunk by chunk; then all backwards in the opposite order."""
    chunk, micro_batch = np.divmod(np.arange(shape.v * shape.m), shape.m)
    stage = chunk * shape.p + rank
    return np.concatenate(
        (shape.op(F, stage, micro_batch), shape.op(B, stage[::-1], micro_batch[::-1]))
    )


def zb_h(shape: Shape, rank: int, delay: int) -> np.ndarray:
    """At tick x: F of x, I of x - d(p - 1 - r), W of x - d(p - 1).

    ZB-H1 has delay d = 1 and the memory of 1F1B; ZB-H2 d = 2, twice the memory, and no bubble if
    F = I = W.
    """
    tick = shape.all
    return _by_key(
        (shape.op(F, rank, tick), 3 * tick),
        (shape.op(I, rank, tick), 3 * (tick + delay * (shape.p - 1 - rank)) + 1),
        (shape.op(W, rank, tick), 3 * (tick + delay * (shape.p - 1)) + 2),
    )


def interleaved_zb(shape: Shape, rank: int) -> np.ndarray:
    """Interleaved with one hop of warm-up less per rank, I in place of B, and W from the r-th I on.

    From then on a W follows each I, for the oldest micro-batch that still needs one.
    """
    forward, backward = _looped(shape, rank)
    total = shape.m * shape.v
    warmup = min((shape.v - 1) * shape.n + shape.p - 1 - rank, total)
    # In turns: forward number x runs in turn x - warmup, and the i-th I in turn i.
    turn = np.arange(total)
    return _by_key(
        (shape.op(F, *forward), 3 * (turn - warmup)),
        (shape.op(I, *backward), 3 * turn + 1),
        (shape.op(W, *backward), 3 * (turn + rank) + 2),
    )


def zb_v(shape: Shape, rank: int) -> np.ndarray:
    """ZB-V: a V of two chunks, with the order for F = I = W.

    The order for 2p - 1 or more micro-batches; with fewer, ops of missing micro-batches are left
    out.
    """
    p, total = shape.p, max(shape.m, 2 * shape.p - 1)
    with_new = total - (2 * p - 1 - rank)
    word = (
        F0 * (2 * (p - rank) - 1)
        + (F1 + F0) * rank
        + (F1 + I1 + W1) * (p - rank)
        + (F0 + I0 + W0 + F1 + I1 + W1) * with_new
        + (I0 + W0 + F1 + I1 + W1) * (total - p - with_new)
        + (I0 + I1) * rank
        + (I0 + W0) * (p - rank)
        + W1 * rank
        + W0 * rank
    )
    return _numbered(shape, ((rank, 0), (2 * p - 1 - rank, 0)), word)


def dual_pipe(shape: Shape, rank: int) -> np.ndarray:
    """DualPipe: half of the micro-batches enter at each end, over two copies of the model.

    Rank r holds stage r for the first half of the micro-batches, and stage p - 1 - r for the
    others.
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


@kept
def chunk_table(m: int, v: int, n: int) -> np.ndarray:
    """Micro-batches and their chunks, in the order of the forwards: by groups of n, chunk by chunk.

    >>> chunk_table(m=4, v=2, n=2).tolist()
    [[0, 1, 0, 1, 2, 3, 2, 3], [0, 0, 1, 1, 0, 0, 1, 1]]

    Source: Megatron-LM megatron/core/pipeline_parallel/schedules.py, get_schedule_table.
    """
    chunk, micro_batch = np.divmod(np.arange(m * v), m)
    return np.stack([micro_batch, chunk])[:, np.argsort(micro_batch // n, kind="stable")]


def interleaved_warmup(shape: Shape, rank: int) -> int:
    """Forwards of chunks before the first backward: min(2(p - r - 1) + (v - 1)n, mv); one chunk:
    min(p - r - 1, m).

    >>> [interleaved_warmup(Shape(p=4, m=8, v=2, n=4), rank) for rank in range(4)]
    [10, 8, 6, 4]

    Source: Megatron-LM, the same file, get_pp_rank_microbatches.
    """
    hops, total = shape.p - rank - 1, shape.m * shape.v
    return min(hops if shape.v == 1 else 2 * hops + (shape.v - 1) * shape.n, total)


def _looped(
    shape: Shape, rank: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(stages, micro-batches) of the forwards, and of the backwards, whose chunks are reversed."""
    micro_batch, chunk = chunk_table(shape.m, shape.v, shape.n)
    back = shape.v - 1 - chunk
    return (chunk * shape.p + rank, micro_batch), (back * shape.p + rank, micro_batch)


def _by_key(*runs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Merges runs of ops by ascending key."""
    ops, keys = (np.concatenate(part) for part in zip(*runs))
    return ops[np.argsort(keys, kind="stable")]


def _alternating(forward: np.ndarray, backward: np.ndarray, warmup: int) -> np.ndarray:
    """``warmup`` forwards; alternately a forward and a backward; the remaining backwards."""
    turns = len(forward) - warmup
    by_turns = np.stack([forward[warmup:], backward[:turns]], axis=1).ravel()
    return np.concatenate((forward[:warmup], by_turns, backward[turns:]))


def _both_ways(
    shape: Shape, chunks: tuple[tuple[int, int], ...], near: int, far: int, main: int
) -> np.ndarray:
    """The eight phases of DualPipe's ``step()``, for a rank ``near`` hops from the nearer end of
    the pipeline and ``far`` hops from the middle, where the two directions meet."""
    # In the middle the first pair would wait for itself: there its ops run one by one.
    first = F0 + B1 if far == 0 else _pair(F0, B1)
    # From the middle of these on, weights wait.
    last = (B1 + B0) * (near + 1)
    last = last[: near + 1] + ((I1 + I0) * (near + 1))[near + 1 :]
    word = (
        F0 * (2 * far)
        + (F0 + F1) * (near + 1)
        + (I1 + OLDEST_W + F1) * far
        + first
        + _pair(F1, B0)
        + (_pair(F0, B1) + _pair(F1, B0)) * (main - 1)
        + (B1 + _pair(F1, B0)) * far
        + last
        + (OLDEST_W + I0) * far
        + OLDEST_W * (near + 1)
    )
    return _numbered(shape, chunks, word, oldest_first=True)


# The letters of a word: kind + 4 * chunk; a pair has its second letter, plus 1, times 8 more.
F0, B0, I0, W0, F1, B1, I1, W1 = (bytes([letter]) for letter in range(8))
OLDEST_W = W0


def _pair(first: bytes, second: bytes) -> bytes:
    return bytes([first[0] + 8 * (second[0] + 1)])


def _numbered(
    shape: Shape, chunks: tuple[tuple[int, int], ...], word: bytes, oldest_first: bool = False
) -> np.ndarray:
    """The places of a word: each chunk takes its micro-batches one after the other.

    chunks: the stage of each chunk and its first micro-batch. The k-th W of a chunk is of its k-th
    I; with oldest_first, the k-th W of all is of the k-th I of all, whatever chunk its letter has.
    """
    letters = np.frombuffer(word, dtype=np.uint8).astype(np.int64)
    paired = np.flatnonzero(letters >= 8)
    single = np.insert(letters & 7, paired + 1, (letters[paired] >> 3) - 1)
    kind, chunk = single & 3, single >> 2
    forwards, inputs, weights = kind == F, kind == I, kind == W
    backwards = inputs | (kind == B)
    if oldest_first:
        chunk[weights] = chunk[inputs]
    stage, number = np.zeros((2, len(single)), dtype=np.int64)
    for place, (its_stage, first) in enumerate(chunks):
        of_chunk = chunk == place
        stage[of_chunk] = its_stage
        for which in (forwards & of_chunk, backwards & of_chunk):
            number[which] = first + np.arange(np.count_nonzero(which))
        number[weights & of_chunk] = number[inputs & of_chunk]
    op = kind + 4 * (number + shape.m * stage)
    starts = np.delete(np.arange(len(single)), paired + 1 + np.arange(len(paired)))
    places = op[starts]
    places[paired] = shape.pair(places[paired], op[starts[paired] + 1])
    return places[number[starts] < shape.m]
