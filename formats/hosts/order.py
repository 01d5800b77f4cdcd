"""A better order of the same machines: fewest groups in more than one rack, by what they cost.

A launcher fills the machines in the order it is given, so the order decides which groups leave a
rack, never which leave a machine (for machines with equal numbers of GPUs). Machines of one rack
are interchangeable: an order is a rack for each place.

What is small first is said by an objective, kinds of groups in levels:

    "ep, tp+cp, dp, pp"     experts' exchanges first, then what each layer waits for, then gradients
    "ep, tp+cp, pp, dp"     the same with pipelines before gradients (dlrover orders so)

or by costs, such as the exposed seconds of one group of each kind that crosses. The order that is
given stays where none is better.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np

from groups.alternatives import divisors
from groups.budget import spend
from groups.errors import LayoutError, quoted
from groups.grouping import Grouping
from groups.megatron import groupings
from groups.mesh import MAX_RANKS, whole_number

from .crossings import KindCrossings, cost_of, key_of, kind_of, least, weigh
from .search import search
from .upper import Upper, arranged
from .values import Level

KINDS = ("ep", "tp", "cp", "dp", "pp")

OBJECTIVES = {"dp-first": "ep, tp+cp, dp, pp", "pp-first": "ep, tp+cp, pp, dp"}
"""Objectives by a short name; the first counts where none is said."""


MOST_ORDERED = 8192
"""Machines that are put in order: 65,536 GPUs, eight to a machine."""

WORK_OF_A_HOST = 150
"""Units of a request's budget that ordering one machine may cost."""


@dataclass(frozen=True)
class Crossings:
    """The groups of one kind, before and after: in all, over nodes, over racks.

    leave_node: on more than one machine, which no order changes. largest: most machines of one.
    least: over racks in any order, at least.
    """

    kind: str
    groups: int
    leave_node: int
    largest: int
    before: int
    after: int
    least: int


@dataclass(frozen=True)
class OrderReason:
    """Why it is so, in words by its code (texts/hosts.txt)."""

    code: str
    facts: Mapping[str, object]


@dataclass(frozen=True)
class LayoutFix:
    """Sizes of the layout under which no group of a kind leaves its node, or its rack."""

    kind: str
    place: str  # "node" or "rack"
    changes: Mapping[str, int]


@dataclass(frozen=True)
class BetterOrder:
    """An order of machines and what it is worth.

    key, key_before: groups in more than one rack, a number for each level of the objective.
    is_least: whether it is proved that no order has a smaller key. cost, cost_before: by the
    caller's costs, 0 where there are none.
    """

    names: tuple[str, ...]
    key: tuple[int, ...]
    key_before: tuple[int, ...]
    names_before: tuple[str, ...]
    kinds: tuple[Crossings, ...]
    reasons: tuple[OrderReason, ...]
    fixes: tuple[LayoutFix, ...]
    moved: int  # machines that stand at another place than before
    is_least: bool
    cost: float
    cost_before: float
    gpus_per_node: int
    segment: int  # machines of one ep group: what Slurm's --segment takes
    upper: tuple[Upper, ...]  # the places above the racks, closest first
    objective: str
    costs: Mapping[str, float] = field(default_factory=dict)  # of one group that crosses, by kind


def best_order(
    names: Sequence[str],
    racks: Mapping[str, str],
    *,
    gpus_per_node: int,
    tp: int = 1,
    cp: int = 1,
    pp: int = 1,
    ep: int = 1,
    etp: int | None = None,
    order: str = "tp-cp-ep-dp-pp",
    objective: str = "dp-first",
    costs: Mapping[str, float] | None = None,
    above: Sequence[Level] = (),
) -> BetterOrder:
    """The order of these machines under which fewest groups stand in more than one rack.

    racks: machine -> rack, switch, block or NVLink domain. order: Megatron's order of ranks.
    objective: a name of OBJECTIVES, or levels such as "ep, tp+cp, dp, pp". costs: of one group of a
    kind that crosses, by kind, in any unit: their sum then counts before the key. above: what the
    racks stand in, closest first: racks of one size change places so that fewest groups cross it.

    >>> racks = {"n0": "A", "n1": "B", "n2": "A", "n3": "B"}
    >>> found = best_order([*racks], racks, gpus_per_node=8, tp=8, pp=2, ep=16, etp=1)
    >>> found.names, found.key_before, found.key, found.is_least
    (('n0', 'n2', 'n1', 'n3'), (2, 0, 16, 0), (0, 0, 0, 16), True)

    Errors: LayoutError for a layout that does not fit the machines, a machine that is named twice
    or stands in no rack, and an objective or cost that is none.
    """
    count = len(_require_hosts(names, racks))
    gpus_per_node = whole_number(gpus_per_node, "gpus_per_node", maximum=MAX_RANKS)
    world = whole_number(count * gpus_per_node, "hosts", maximum=MAX_RANKS)
    sizes: dict[str, Any] = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "etp": etp}
    every = groupings(world, **sizes, order=order)
    found = order_for(
        every,
        names,
        racks,
        gpus_per_node=gpus_per_node,
        objective=objective,
        costs=costs,
        above=above,
    )
    largest = Counter(str(racks[name]) for name in names).most_common(1)[0][1]
    return replace(found, fixes=_fixes(found.kinds, world, gpus_per_node, largest, order, sizes))


def order_for(
    every: Mapping[str, Grouping],
    names: Sequence[str],
    racks: Mapping[str, str],
    *,
    gpus_per_node: int,
    objective: str = "dp-first",
    costs: Mapping[str, float] | None = None,
    above: Sequence[Level] = (),
) -> BetterOrder:
    """The same for groups that are made already, of any framework; it offers no other layout.

    every: groupings by Megatron's names, as `Layout.every` has them.
    """
    hosts = _require_hosts(names, racks)
    named = tuple(dict.fromkeys(str(racks[host]) for host in hosts))
    number = {rack: at for at, rack in enumerate(named)}
    given = np.array([number[str(racks[host])] for host in hosts])
    levels = [
        [kind_of(every[kind], gpus_per_node) for kind in level if kind in every]
        for level in _levels(objective)
    ]  # fmt: skip
    weighed = weigh(levels, _require_costs(costs or {}))

    def score(of: np.ndarray) -> tuple[float, ...]:
        key = key_of(levels, of)
        return (cost_of(weighed, of), *key) if costs else key

    found = search(levels, given, score, by_key=not costs)
    better, upper = arranged(hosts, given, found.racks, above, levels)
    capacities = np.bincount(given).tolist()
    kinds = tuple(
        _crossings(kind, given, found.racks, capacities) for level in levels for kind in level
    )
    is_proved = found.is_proved or (
        costs is not None and all(one.after == one.least for one in kinds if costs.get(one.kind))
    )
    expert = every["ep"].mesh if "ep" in every else None
    members = expert.size("etp") * expert.size("ep") if expert else 1
    return BetterOrder(
        names=better,
        key=key_of(levels, found.racks),
        key_before=key_of(levels, given),
        names_before=hosts,
        kinds=kinds,
        reasons=_reasons(kinds, capacities, is_proved, better == hosts),
        fixes=(),
        moved=sum(one != other for one, other in zip(hosts, better)),
        is_least=is_proved,
        cost=cost_of(weighed, found.racks),
        cost_before=cost_of(weighed, given),
        gpus_per_node=gpus_per_node,
        segment=max(1, -(-members // gpus_per_node)),
        upper=upper,
        objective=OBJECTIVES.get(objective, objective),
        costs=costs or {},
    )


# -- what is asked ---------------------------------------------------------------------------------


def _require_hosts(names: Sequence[str], racks: Mapping[str, str]) -> tuple[str, ...]:
    """The names, each once and each in a rack."""
    hosts = tuple(names)
    if not hosts:
        raise LayoutError("no-hosts", "there are no hosts to order", control="hosts")
    if len(hosts) > MOST_ORDERED:
        raise LayoutError(
            "too-many-to-order",
            f"{len(hosts):,} hosts are more than the {MOST_ORDERED:,} that are put in order",
            why="order each pod or each pipeline stage of the cluster by itself",
            control="hosts",
            facts={"count": len(hosts), "limit": MOST_ORDERED},
        )
    spend(len(hosts) * WORK_OF_A_HOST, "hosts", control="hosts")
    again = [host for host, count in Counter(hosts).items() if count > 1]
    if again:
        raise LayoutError(
            "host-twice",
            f"the host {quoted(again[0])} is named twice",
            why="an order has each host once",
            control="hosts",
            facts={"host": quoted(again[0])},
        )
    nowhere = [host for host in hosts if not racks.get(host)]
    if nowhere:
        raise LayoutError(
            "host-without-rack",
            f"nothing says in which rack the host {quoted(nowhere[0])} stands",
            why=f"{len(nowhere)} of {len(hosts)} hosts are in no rack: say where, or leave them "
            "out of the job",
            control="hosts",
            facts={"host": quoted(nowhere[0]), "count": len(nowhere), "hosts": len(hosts)},
        )
    return hosts


def _levels(objective: str) -> list[list[str]]:
    """The kinds of an objective by level.

    >>> _levels("pp-first")
    [['ep'], ['tp', 'cp'], ['pp'], ['dp']]
    """
    text = OBJECTIVES.get(objective, objective) if isinstance(objective, str) else ""
    levels = [part.split("+") for part in re.sub(r"\s*\+\s*", "+", text).replace(",", " ").split()]
    named = [kind for level in levels for kind in level]
    if not named or len(set(named)) < len(named) or not set(named) <= set(KINDS):
        raise LayoutError(
            "bad-objective",
            f"{quoted(objective)} is no objective: write kinds in levels, such as "
            f"{OBJECTIVES['dp-first']!r}",
            why=f"each of {', '.join(KINDS)} may stand once",
            control="objective",
            alternatives=[{"objective": name} for name in OBJECTIVES],
            facts={"value": quoted(objective)},
        )
    return levels


def _require_costs(costs: Mapping[str, float]) -> Mapping[str, float]:
    for kind, cost in costs.items():
        is_number = isinstance(cost, (int, float)) and not isinstance(cost, bool)
        if kind not in KINDS or not is_number or not isfinite(cost) or cost < 0:
            raise LayoutError(
                "bad-cost",
                f"{quoted(cost)} is no cost of {quoted(kind)}: a number from 0 up for a kind",
                why=f"kinds are {', '.join(KINDS)}",
                control="costs",
                facts={"kind": quoted(kind), "value": quoted(cost)},
            )
    return costs


# -- what is found ---------------------------------------------------------------------------------


def _crossings(
    kind: KindCrossings, before: np.ndarray, after: np.ndarray, capacities: Sequence[int]
) -> Crossings:
    return Crossings(
        kind=kind.name,
        groups=kind.groups,
        leave_node=kind.leave_node,
        largest=int(kind.sizes.max(initial=1)),
        before=kind.crossing(before),
        after=kind.crossing(after),
        least=least(kind, capacities),
    )


def _reasons(
    kinds: Sequence[Crossings], capacities: Sequence[int], is_proved: bool, is_given: bool
) -> tuple[OrderReason, ...]:
    """What the order mends, what it gives up for that, and what no order mends."""
    found = []
    largest = max(capacities)
    if is_given:
        found.append(OrderReason("order-kept-best" if is_proved else "order-kept", {}))
    for one in kinds:
        facts = {
            "kind": one.kind, "groups": one.groups, "before": one.before, "after": one.after,
            "nodes": one.largest, "rack": largest, "least": one.least, "leave": one.leave_node,
        }  # fmt: skip
        if one.after < one.before:
            found.append(OrderReason("fewer-cross", facts))
        elif one.after > one.before:
            found.append(OrderReason("more-cross", facts))
        if one.largest > largest:
            found.append(OrderReason("larger-than-racks", facts))
        elif one.after and one.after == one.least:
            found.append(OrderReason("racks-hold-no-more", facts))
        if one.leave_node and one.kind in ("tp", "cp", "ep"):
            found.append(OrderReason("leaves-node", facts))
    if not is_given and is_proved:
        found.append(OrderReason("proved-least", {}))
    return tuple(found)


def _fixes(
    kinds: Sequence[Crossings], world: int, gpus_per_node: int, largest: int, order: str,
    sizes: Mapping[str, Any],
) -> tuple[LayoutFix, ...]:  # fmt: skip
    """For kinds that are waited for and leave a node or every rack: the nearest size that stays."""
    found = []
    for one in kinds:
        if one.kind not in ("tp", "cp", "ep"):
            continue
        places = []
        if one.leave_node:
            places.append(("node", 1))
        if one.largest > largest:
            places.append(("rack", largest))
        for place, nodes in places:
            changes = _staying(one.kind, nodes, world, gpus_per_node, order, sizes)
            if changes:
                found.append(LayoutFix(one.kind, place, changes))
    return tuple(found)


def _staying(
    kind: str, nodes: int, world: int, gpus_per_node: int, order: str,
    sizes: Mapping[str, Any],
) -> dict[str, int]:  # fmt: skip
    """The largest smaller size of a kind whose groups stand on so many nodes; etp 1 before that."""
    size = int(sizes[kind] or 1)
    tries: list[dict[str, int]] = [{"etp": 1}] if kind == "ep" else []
    tries += [{kind: smaller} for smaller in reversed(divisors(size)) if smaller < size]
    for changes in tries:
        try:
            every = groupings(world, **{**sizes, **changes}, order=order)
        except LayoutError:
            continue
        if _widest(every[kind], gpus_per_node) <= nodes:
            return changes
    return {}


def _widest(grouping: Grouping, gpus_per_node: int) -> int:
    return int(kind_of(grouping, gpus_per_node).sizes.max(initial=1))
