"""A better order of the same machines: the fewest groups in several racks, weighted by cost.

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
from itertools import chain
from math import isfinite

import numpy as np

from groups.alternatives import divisors
from groups.budget import spend
from groups.errors import LayoutError, quoted
from groups.grouping import Grouping
from groups.layout import Layout
from groups.megatron import groupings
from groups.mesh import MAX_RANKS, whole_number
from groups.notes import Note

from ..errors import refusal
from ..values import Document, Facts
from .crossings import KindCrossings, cost_of, hops_of, key_of, kind_of, least
from .hosts import Hosts, LevelPlaces, host_twice
from .placing import Upper, arranged, even_slots, numbered, placement_of
from .search import search, with_fewer

KINDS = ("ep", "tp", "cp", "dp", "pp")

OBJECTIVES = {"dp-first": "ep, tp+cp, dp, pp", "pp-first": "ep, tp+cp, pp, dp"}
"""Objectives by short name; the first is the default."""

TIME = "time"
"""The objective of seconds, if they are known; else of counts."""

MOST_ORDERED = 8192
"""The most machines that are ordered: 65,536 GPUs, eight per machine."""

WORK_OF_A_HOST = 150
"""Units of a request's budget for ordering one machine."""


@dataclass(frozen=True)
class Crossings:
    """The groups of one kind, before and after: in total, across nodes, across racks."""

    kind: str
    groups: int
    leave_node: int  # on more than one machine, which no order changes
    largest: int  # most machines of one
    before: int
    after: int
    least: int  # over racks in any order, at least


@dataclass(frozen=True)
class LayoutFix:
    """Sizes of the layout with which no group of a kind leaves its node, or its rack."""

    kind: str
    place: str  # "node" or "rack"
    changes: Mapping[str, int]


@dataclass(frozen=True)
class BetterOrder:
    """An order of machines and its gain."""

    names: tuple[str, ...]
    key: tuple[int, ...]  # groups in more than one rack, a number for each level of the objective
    key_before: tuple[int, ...]
    names_before: tuple[str, ...]
    kinds: tuple[Crossings, ...]
    reasons: tuple[Note, ...]  # why it is so (views/nodes/words.toml, ORDER_REASONS)
    is_least: bool  # proved: no order has a smaller key, or where kinds have costs a smaller cost
    cost: float  # by the caller's costs, 0 where there are none
    cost_before: float
    gpus_per_node: int
    segment: int  # machines of one ep group: what Slurm's --segment takes
    upper: tuple[Upper, ...]  # the places above the racks, closest first
    objective: str
    costs: Mapping[str, float] = field(default_factory=dict)  # of one group that crosses, by kind
    fixes: tuple[LayoutFix, ...] = ()

    @property
    def is_kept(self) -> bool:
        return self.names == self.names_before

    @property
    def moved(self) -> int:
        """The number of machines at another place than before."""
        return sum(before != other for before, other in zip(self.names_before, self.names))

    @property
    def document(self) -> Document:
        """The order and its gain as plain values; the caller adds kinds, reasons and fixes."""
        return {
            "hosts": list(self.names),
            "hosts_before": list(self.names_before),
            "key": list(self.key),
            "key_before": list(self.key_before),
            "objective": self.objective,
            "seconds": self.cost if self.costs else None,
            "seconds_before": self.cost_before if self.costs else None,
            "is_least": self.is_least,
            "segment": self.segment,
        }


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
    above: LevelPlaces | None = None,
) -> BetterOrder:
    """The order of these machines with the fewest groups in several racks.

    racks: machine -> rack, switch, block or NVLink domain. order: Megatron's order of ranks.
    objective: a name of OBJECTIVES, or levels such as "ep, tp+cp, dp, pp". costs: of one group of a
    kind that crosses, by kind, in any unit: their sum then counts before the key. above: what the
    racks stand in, closest first: racks of one size change places so that fewest groups cross it.

    >>> racks = {"n0": "A", "n1": "B", "n2": "A", "n3": "B"}
    >>> better = best_order([*racks], racks, gpus_per_node=8, tp=8, pp=2, ep=16, etp=1)
    >>> better.names, better.key_before, better.key, better.is_least
    (('n0', 'n2', 'n1', 'n3'), (2, 0, 16, 0), (0, 0, 0, 16), True)

    Errors: LayoutError for a layout that does not fit the machines, a machine that is named twice
    or stands in no rack, and an unknown objective or a bad cost.
    """
    gpus_per_node = whole_number(gpus_per_node, "gpus_per_node", maximum=MAX_RANKS)
    world = whole_number(len(names) * gpus_per_node, "hosts", minimum=0, maximum=MAX_RANKS)
    hosts = Hosts("names", tuple(names), levels={"rack": racks, **(above or {})})
    sizes: Document = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "etp": etp, "order": order}
    better = _order_for(
        groupings(world, **sizes), hosts, gpus_per_node, objective, costs or {}, by_cost=True
    )
    return replace(better, fixes=_fixes(better, hosts, sizes))


def better_order(
    layout: Layout, hosts: Hosts, objective: str = TIME, seconds: Mapping[str, float] | None = None
) -> BetterOrder:
    """`best_order` for a job and the machines of a text, with the places above their racks.

    seconds: of a step that are waited for each kind, as `training.estimate` has them: a kind's are
    spread over its groups evenly, and an order costs those of groups that cross.

    With other layouts, where the order of ranks is Megatron's. Errors: as `best_order`; LayoutError
    for machines that are not as many as the job needs, and with uneven slots.
    """
    slots = even_slots(hosts, layout.gpus_per_node)
    placement_of(hosts, layout.world_size, slots)
    costs = {
        kind: seconds[kind] / layout.every[kind].num_groups
        for kind in KINDS
        if seconds and seconds.get(kind) and kind in layout.every
    }
    by_time, words = objective == TIME, "dp-first" if objective == TIME else objective
    better = _order_for(layout.every, hosts, slots, words, costs, by_cost=by_time)
    if layout.expert is None or not layout.made_by.speaks_megatron:
        return better
    job = layout.explicit_job
    sizes = {name: getattr(job, name) for name in ("tp", "cp", "pp", "ep", "etp", "order")}
    return replace(better, fixes=_fixes(better, hosts, sizes))


def _order_for(
    every: Mapping[str, Grouping],
    hosts: Hosts,
    gpus_per_node: int,
    objective: str,
    costs: Mapping[str, float],
    *,
    by_cost: bool,
) -> BetterOrder:
    """`best_order` for groups that exist already, of any framework; it offers no other layout.

    by_cost: whether costs decide, and not only are said.
    """
    racks_before = numbered(_racks_of(hosts))
    levels = [
        [kind_of(every[kind], gpus_per_node) for kind in level if kind in every]
        for level in _levels(objective)
    ]  # fmt: skip
    _require_costs(costs)
    by_cost = by_cost and any(costs.get(kind.name) for kind in chain(*levels))

    def score(of: np.ndarray) -> tuple[float, ...]:
        key = key_of(levels, of)
        return (cost_of(levels, costs, of), *key) if by_cost else key

    hops = [
        hops_of(every[kind], gpus_per_node, is_ring=kind != "pp")
        for kind in ("pp", "dp", "cp")
        if kind in every
    ]

    def hops_in(of: np.ndarray) -> int:
        return sum(kind.crossing(of) for kind in hops)

    racks_after, is_least = search(levels, racks_before, score, by_key=not by_cost)
    if hops_in(racks_after):  # of orders as good, one with the fewest hops between racks
        racks_after = with_fewer(racks_after, lambda of: (*score(of), hops_in(of)))
    names, upper = arranged(hosts.names, racks_before, racks_after, hosts.above_racks, levels)
    capacities = np.bincount(racks_before).tolist()
    kinds = tuple(
        _crossings(kind, racks_before, racks_after, capacities) for kind in chain(*levels)
    )
    expert = every["ep"].mesh if "ep" in every else None
    members = expert.size("etp") * expert.size("ep") if expert else 1
    is_proved = is_least or (
        by_cost and all(kind.after == kind.least for kind in kinds if costs.get(kind.kind))
    )
    return BetterOrder(
        names=names,
        key=key_of(levels, racks_after),
        key_before=key_of(levels, racks_before),
        names_before=hosts.names,
        kinds=kinds,
        reasons=(
            *_reasons(kinds, max(capacities), is_proved, names == hosts.names),
            *_fewer_hops(hops_in(racks_before), hops_in(racks_after)),
        ),
        is_least=is_proved,
        cost=cost_of(levels, costs, racks_after),
        cost_before=cost_of(levels, costs, racks_before),
        gpus_per_node=gpus_per_node,
        segment=max(1, -(-members // gpus_per_node)),
        upper=upper,
        objective=OBJECTIVES.get(objective, objective),
        costs=costs,
    )


def _crossings(
    kind: KindCrossings, before: np.ndarray, after: np.ndarray, capacities: list[int]
) -> Crossings:
    """How many groups of a kind span racks, in both orders and at least."""
    return Crossings(
        *(kind.name, kind.groups, kind.leave_node, kind.widest),
        *(kind.crossing(before), kind.crossing(after), least(kind, capacities)),
    )


# -- what is asked ---------------------------------------------------------------------------------


def _racks_of(hosts: Hosts) -> list[str]:
    """The rack of each machine. Errors: LayoutError for one repeated or without a rack, or for too
    many."""
    names, racks = hosts.names, hosts.racks
    if len(names) > MOST_ORDERED:
        raise refusal("too-many-to-order", "hosts", count=len(names), limit=MOST_ORDERED)
    spend(len(names) * WORK_OF_A_HOST, "hosts", control="hosts")
    ((host, count),) = Counter(names).most_common(1)
    if count > 1:
        raise host_twice(host, "an order has each host once")
    if nowhere := [host for host in names if not racks.get(host)]:
        facts = {"host": quoted(nowhere[0]), "count": len(nowhere), "hosts": len(names)}
        raise refusal("host-without-rack", "hosts", **facts)
    return [str(racks[host]) for host in names]


def _levels(objective: str) -> list[list[str]]:
    """The kinds of an objective by level: [['ep'], ['tp', 'cp'], ['pp'], ['dp']]."""
    text = OBJECTIVES.get(objective, objective) if isinstance(objective, str) else ""
    levels = [part.split("+") for part in re.sub(r"\s*\+\s*", "+", text).replace(",", " ").split()]
    named = [kind for level in levels for kind in level]
    if not named or len(set(named)) < len(named) or not set(named) <= set(KINDS):
        fixes = ({"objective": name} for name in OBJECTIVES)
        raise refusal("bad-objective", "objective", *fixes, value=quoted(objective))
    return levels


def _require_costs(costs: Mapping[str, float]) -> None:
    for kind, cost in costs.items():
        is_number = isinstance(cost, (int, float)) and not isinstance(cost, bool)
        if kind not in KINDS or not is_number or not isfinite(cost) or cost < 0:
            raise refusal("bad-cost", "costs", kind=quoted(kind), value=quoted(cost))


# -- what is found ---------------------------------------------------------------------------------


def _reasons(
    kinds: Sequence[Crossings], largest: int, is_proved: bool, is_unchanged: bool
) -> tuple[Note, ...]:
    """What the order improves, what it worsens for that, and what no order improves."""
    remarks = [Note("order-kept-best" if is_proved else "order-kept")] if is_unchanged else []
    for kind in kinds:
        codes = {
            "fewer-cross": kind.after < kind.before,
            "more-cross": kind.after > kind.before,
            "larger-than-racks": kind.largest > largest,
            "racks-hold-no-more": kind.largest <= largest and 0 < kind.after == kind.least,
            "leaves-node": kind.leave_node and kind.kind in ("tp", "cp", "ep"),
        }
        facts = {
            "kind": kind.kind, "groups": kind.groups, "before": kind.before, "after": kind.after,
            "nodes": kind.largest, "rack": largest, "least": kind.least, "leave": kind.leave_node,
        }  # fmt: skip
        remarks += [Note(code, facts) for code, is_so in codes.items() if is_so]
    if not is_unchanged and is_proved:
        remarks.append(Note("proved-least"))
    return tuple(remarks)


def _fewer_hops(before: int, after: int) -> tuple[Note, ...]:
    """What the order saves of the hops of pipelines and rings between racks."""
    return (Note("fewer-hops", {"before": before, "after": after}),) if after < before else ()


def _fixes(better: BetterOrder, hosts: Hosts, sizes: Facts) -> tuple[LayoutFix, ...]:
    """For latency-bound kinds that leave a node or every rack: the nearest size that stays.

    That is the largest smaller size whose groups stand on so few nodes; etp 1 before that. sizes:
    arguments of `groups.megatron.groupings`.
    """
    world = len(better.names) * better.gpus_per_node
    largest = Counter(map(hosts.racks.get, better.names)).most_common(1)[0][1]
    fixes = []
    for kind in better.kinds:
        size = int(sizes[kind.kind] or 1) if kind.kind in ("tp", "cp", "ep") else 1
        tries: list[dict[str, int]] = [{"etp": 1}] if kind.kind == "ep" else []
        tries += [{kind.kind: smaller} for smaller in reversed(divisors(size)) if smaller < size]
        places = [("node", 1)] if kind.leave_node else []
        places += [("rack", largest)] if kind.largest > largest else []
        for place, nodes in places:
            for changes in tries:
                try:
                    every = groupings(world, **{**sizes, **changes})
                except LayoutError:
                    continue
                if kind_of(every[kind.kind], better.gpus_per_node).widest <= nodes:
                    fixes.append(LayoutFix(kind.kind, place, changes))
                    break
    return tuple(fixes)
