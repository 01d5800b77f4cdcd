"""How DeepSpeed cuts the layers of a pipeline into its stages: evenly, or by their weights.

Source: deepspeedai/DeepSpeed, deepspeed/runtime/utils.py; checked against deepspeed 0.19.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np

from groups.errors import LayoutError, quoted
from groups.mesh import MAX_RANKS, whole_number


def partition_uniform(num_items: int, num_parts: int) -> list[int]:
    """DeepSpeed's even cut: part i is items bounds[i] up to bounds[i + 1].

    The first parts take the remainder, one item each; with more parts than items, the last parts
    are empty.

    >>> partition_uniform(10, 4)
    [0, 3, 6, 8, 10]

    Source: deepspeedai/DeepSpeed, deepspeed/runtime/utils.py, partition_uniform.
    """
    items = whole_number(num_items, "num_items", minimum=0)
    parts = whole_number(num_parts, "num_parts", maximum=MAX_RANKS)
    share, remaining = divmod(items, parts)
    return [part * share + min(part, remaining) for part in range(parts + 1)]


def partition_balanced(weights: Sequence[float], num_parts: int) -> list[int]:
    """DeepSpeed's weighted cut: the bounds whose heaviest part exceeds the lightest by the least.

    Not the cut with the lightest heaviest part: DeepSpeed minimizes max - min. Of equally good
    cuts the one with the latest bounds wins, the last bound first. No more weights than parts
    are cut evenly. Best of the first i weights in j parts, by dynamic programming over the start
    of the last part: O(len(weights)**2 * num_parts).

    >>> partition_balanced([5, 1, 1, 1, 1, 1], 3)
    [0, 1, 4, 6]

    Errors: LayoutError for a weight that is not a number from 0 up.
    Source: deepspeedai/DeepSpeed, deepspeed/runtime/utils.py, partition_balanced.
    """
    parts = whole_number(num_parts, "num_parts", maximum=MAX_RANKS)
    for weight in weights:
        if not isinstance(weight, Real) or not 0 <= weight < math.inf:
            raise LayoutError(
                "bad-weight",
                f"{quoted(weight)} is not a weight: a number from 0 up",
                control="weights",
                facts={"value": quoted(weight)},
            )
    count = len(weights)
    if count <= parts:
        return partition_uniform(count, parts)
    total = np.concatenate(([0.0], np.cumsum(np.asarray(weights, dtype=float))))
    heaviest = np.full((parts + 1, count + 1), np.inf)
    lightest = np.full((parts + 1, count + 1), np.inf)
    start = np.zeros((parts + 1, count + 1), dtype=np.int64)
    heaviest[0, 0] = 0
    for part in range(1, parts + 1):
        for end in range(part, count + 1):
            last = total[end] - total[:end]
            most = np.maximum(heaviest[part - 1, :end], last)
            least = np.minimum(lightest[part - 1, :end], last)
            best = end - 1 - int(np.argmin((most - least)[::-1]))
            start[part, end] = best
            heaviest[part, end], lightest[part, end] = most[best], least[best]
    bounds = [count]
    for part in range(parts, 0, -1):
        bounds.append(int(start[part, bounds[-1]]))
    return bounds[::-1]
