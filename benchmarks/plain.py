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


def plain_process_groups(
    world: int, *, tp: int, cp: int, pp: int, ep: int, etp: int, instances: int, levels: list[int]
) -> dict[str, list[list[int]]]:
    """All groups that process_groups makes in its default order, by lists alone.

    >>> made = plain_process_groups(8, tp=2, cp=2, pp=2, ep=2, etp=1, instances=1, levels=[2])
    >>> made["edp"], made["embd"]
    ([[0, 2], [1, 3], [4, 6], [5, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]])
    """
    dense = {"tp": tp, "cp": cp, "dp": world // (tp * cp * pp), "pp": pp}
    expert = {"etp": etp, "ep": ep, "edp": world // (etp * ep * pp), "pp": pp}
    joins = ("tp", "cp", "dp", "dp-cp", "pp", "tp-cp", "tp-dp", "tp-dp-cp")
    made = {kind: _swept(dense, kind) for kind in joins}
    made["mp"] = _swept(dense, "tp-pp")
    made["embd"] = [[group[0], group[-1]] if pp > 1 else group[:1] for group in made["pp"]]
    made["pos-embd"] = [group[:1] for group in made["pp"]]
    made |= {kind: _swept(expert, kind) for kind in ("ep", "etp", "edp")}
    made["tp-ep"] = _swept(expert, "etp-ep")
    made["tp-ep-pp"] = _swept(expert, "etp-ep-pp")
    together = len(made["tp-ep-pp"]) // instances
    made["intra-dist-opt"] = [
        [rank for group in made["tp-ep-pp"][at : at + together] for rank in group]
        for at in range(0, len(made["tp-ep-pp"]), together)
    ]
    if instances > 1:
        made["intra-dp-cp"] = _cut(made["dp-cp"], len(made["dp-cp"][0]) // instances, 1)
        shard = expert["edp"] // instances
        made["intra-edp"] = _cut(made["edp"], shard, 1)
        made["inter-edp"] = _cut(made["edp"], instances, shard)
    stride = 1
    for level, size in enumerate(levels):
        made[f"hcp-l{level}"] = _cut(made["cp"], size, stride)
        stride *= size
    return made


def _swept(sizes: dict[str, int], kind: str) -> list[list[int]]:
    """One group a place along the axes that the kind does not name."""
    members, firsts, stride = [0], [0], 1
    for name, size in sizes.items():
        steps = range(0, size * stride, stride)
        if name in kind.split("-"):
            members = [step + rank for step in steps for rank in members]
        else:
            firsts = [step + rank for step in steps for rank in firsts]
        stride *= size
    return [[first + member for member in members] for first in firsts]


def _cut(groups: list[list[int]], length: int, stride: int) -> list[list[int]]:
    """Each group in runs of ``length`` members that stand ``stride`` places apart."""
    run = length * stride
    return [
        group[first : at + run : stride]
        for group in groups
        for at in range(0, len(group), run)
        for first in range(at, at + stride)
    ]
