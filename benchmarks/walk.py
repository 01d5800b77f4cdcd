"""Layouts as a visitor meets them: each one slider away from the one before, all of them valid."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

GPUS_PER_NODE = 8
SMALL = (2, 3, 4, 5, 6, 7, 8)
"""Nodes of 16 to 64 GPUs."""

ANY = (1, 2, 3, 4, 8, 12, 16, 32, 48, 128, 512, 2_048, 16_384)
"""Nodes of 8 to 131,072 GPUs."""

TYPES = ("dp+tp+pp", "tp", "cp+dp+tp+pp", "dp", "dp+tp", "pp", "cp+dp")


def walk(seed: int, nodes: Sequence[int]) -> Iterator[dict[str, int]]:
    """Values of the four sliders, for ever.

    >>> steps = walk(0, SMALL)
    >>> all(16 <= GPUS_PER_NODE * next(steps)["nodes"] <= 64 for _ in range(100))
    True
    """
    pick = random.Random(seed)
    stops = {"nodes": nodes, **dict.fromkeys(("tp", "pp", "cp"), range(1, 65))}
    at = {"nodes": nodes[seed % len(nodes)], "tp": 2, "pp": 2, "cp": 1}
    while True:
        name = pick.choice(list(stops))
        moves = [{**at, name: value} for value in stops[name] if value != at[name]]
        fitting = [sizes for sizes in moves if _fits(**sizes)]
        if fitting:
            at = pick.choice(fitting)
            yield at


def _fits(nodes: int, tp: int, pp: int, cp: int) -> bool:
    return nodes * GPUS_PER_NODE % (tp * pp * cp) == 0
