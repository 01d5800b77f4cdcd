"""The cost of a collective for each rank of its group: bytes, steps, bus factor.

With n ranks in the group and a buffer of S bytes:

    operation                                          bytes per rank   steps     bus factor
    all_reduce                                         2(n-1)/n S       2(n-1)    2(n-1)/n
    reduce_scatter, all_gather                         (n-1)/n S        n-1       (n-1)/n
    all_to_all, gather, scatter                        (n-1)/n S        n-1       (n-1)/n
    broadcast, reduce                                  S                n-1       1
    send_recv                                          S                1         1
    keep, split                                        0                0         0

Bytes are those that one rank sends: with a ring or pairwise every rank alike; with a root, those
that pass through it. S is the *whole* buffer: where ranks hold pieces of it (all_gather,
reduce_scatter, all_to_all, gather, scatter), n times the piece. A group of one moves nothing.

The bus factor is the bytes per rank over S, so that

    time >= bus factor * S / (bandwidth of one GPU, one way)

whatever the algorithm, unless switches add or copy on the way. NVIDIA/nccl-tests a0b82b2
(doc/PERFORMANCE.md, and the GetBw functions of src/*.cu) calls S / time the algorithm bandwidth,
and that times the bus factor the bus bandwidth.
"""

from __future__ import annotations

COSTS: dict[str, tuple[int, int]] = {
    "all_reduce": (2, 0),
    **dict.fromkeys(("reduce_scatter", "all_gather", "all_to_all", "gather", "scatter"), (1, 0)),
    **dict.fromkeys(("broadcast", "reduce", "send_recv"), (0, 1)),
    **dict.fromkeys(("keep", "split"), (0, 0)),
}
"""By operation: how often every rank sends (n-1)/n of the buffer, and how often the busiest rank
sends all of it."""


def bus_factor(op: str, n: int) -> float:
    """Bytes that one of n ranks sends, relative to the bytes of the buffer; 0 in a group of one.

    >>> bus_factor("all_reduce", 8), bus_factor("broadcast", 8), bus_factor("all_gather", 1)
    (1.75, 1.0, 0.0)
    """
    return bytes_per_rank(op, n, 1.0)


def bytes_per_rank(op: str, n: int, buffer_bytes: float) -> float:
    """Bytes that one of n ranks sends for a whole buffer of ``buffer_bytes``.

    >>> bytes_per_rank("all_reduce", 4, 2**30) / 2**30
    1.5
    """
    shares, wholes = COSTS[op]
    return shares * (n - 1) * buffer_bytes / n + wholes * buffer_bytes if n > 1 else 0.0


def steps(op: str, n: int) -> int:
    """The number of messages in sequence: hops round a ring, rounds of a pairwise exchange.

    >>> steps("all_reduce", 8), steps("broadcast", 8), steps("send_recv", 8)
    (14, 7, 1)
    """
    return min(n - 1, 1) if op == "send_recv" else sum(COSTS[op]) * (n - 1)


def least_seconds(op: str, n: int, buffer_bytes: float, bytes_per_second: float) -> float:
    """Seconds at link speed, one way; less only where switches add or copy on the way.

    >>> least_seconds("all_reduce", 8, 1e9, bytes_per_second=450e9) * 1e3  # milliseconds
    3.888888888888889
    """
    return bytes_per_rank(op, n, buffer_bytes) / bytes_per_second
