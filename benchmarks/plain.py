"""The same groups as rank_groups, the way one writes them first: loops that build lists.

rank = t + tp * (c + cp * (d + dp * p)),  t, c, d, p = coordinates along tp, cp, dp, pp
"""

from __future__ import annotations


def plain_groups(tp: int, cp: int, dp: int, pp: int) -> dict[str, list[list[int]]]:
    """All tp, cp, dp and pp groups of a mesh in the order tp-cp-dp-pp.

    >>> plain_groups(tp=2, cp=1, dp=2, pp=2)["dp"]
    [[0, 2], [1, 3], [4, 6], [5, 7]]
    """
    groups: dict[str, list[list[int]]] = {"tp": [], "cp": [], "dp": [], "pp": []}
    for p in range(pp):
        for d in range(dp):
            for c in range(cp):
                groups["tp"].append([t + tp * (c + cp * (d + dp * p)) for t in range(tp)])
    for p in range(pp):
        for d in range(dp):
            for t in range(tp):
                groups["cp"].append([t + tp * (c + cp * (d + dp * p)) for c in range(cp)])
    for p in range(pp):
        for c in range(cp):
            for t in range(tp):
                groups["dp"].append([t + tp * (c + cp * (d + dp * p)) for d in range(dp)])
    for d in range(dp):
        for c in range(cp):
            for t in range(tp):
                groups["pp"].append([t + tp * (c + cp * (d + dp * p)) for p in range(pp)])
    return groups
