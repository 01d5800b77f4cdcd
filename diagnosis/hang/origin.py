"""The origin of a hang: the graph of who waits for whom, and its sinks.

    rank r waits in operation w        r -> w
    rank a did not enter w             w -> a
    a member of w has an older operation that is stuck, w' (its stream is in order)   w -> w'

A sink of this graph is where to look:

    a rank     it did not arrive, and nothing holds it
    an operation that all entered      they called different things, or a device or the network
    a circle   ranks entered groups in different orders

Ranks of a job run one program, so a group's fellows (same description, other ranks) call the same
at the same number, and in the same order relative to other groups: they tell who is the odd one.
Where that does not settle it, nobody is named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from groups.budget import spend

from .job import Group, LoggedJob, signature, waits_of
from .model import Diagnosis, Hop, Party, Wait

Node = tuple[str, int]  # ("rank", rank) or ("wait", place in the list)
Edges = dict[Node, set[Node]]

Verdict = tuple[Iterable[int], Iterable[int], str, Iterable[int]]
"""Culprits, suspects, the reason and the first operations, for one sink."""


def diagnosis_of(job: LoggedJob) -> Diagnosis:
    """The missing ranks, those that wait for them, and how that spreads."""
    waits = waits_of(job)
    if not waits:
        return Diagnosis()
    edges = _edges(waits, job)
    causes: dict[int, str] = {}
    suspects: set[int] = set()
    reasons: set[str] = set()
    roots: set[int] = set()
    for sink in sinks_of(edges):
        blamed, doubted, reason, inside = _look_at(sink, waits, edges, job)
        causes |= dict.fromkeys(blamed, reason)
        suspects |= set(doubted)
        roots |= set(inside)
        reasons.add(reason)
    idle = {rank for rank in causes if not edges.get(("rank", rank))}
    if len(idle) > 1 and not any(idle <= set(wait.absent) for wait in waits):
        # Ranks that hold up different operations on their own: the job still moved when it dumped.
        causes = {rank: reason for rank, reason in causes.items() if rank not in idle}
        suspects |= idle
        reasons.add("unclear")
    for place, wait in enumerate(waits):  # different calls are a cause wherever they stand
        if wait.parties and place not in roots:
            roots.add(place)
            odd, doubted = _different([wait], waits, job)
            causes |= dict.fromkeys(odd, "different")
            suspects |= doubted
            reasons.add("different")
    return Diagnosis(
        culprits=tuple(sorted(causes)),
        suspects=tuple(sorted(suspects - {*causes})),
        reason=first_reason(causes, reasons),
        waits=tuple(waits),
        hops=hops_of(waits, causes or suspects, roots),
        without_dump=tuple(sorted({rank for wait in waits for rank in wait.unknown})),
    )


def first_reason(causes: Mapping[int, str], reasons: Iterable[str]) -> str:
    """Why the culprits are to blame, else why nobody is."""
    order = ("different", "order", "unclear", "absent", "late", "no-dump", "all-arrived")
    possible = {*causes.values()} or {*reasons}
    return next((reason for reason in order if reason in possible), "none")


def hops_of(waits: Sequence[Wait], named: Iterable[int], roots: Iterable[int]) -> tuple[Hop, ...]:
    """How the waiting spreads, from the roots over groups that wait for waiting ranks."""
    reached = set(named)
    left = dict(enumerate(waits))
    first = [left.pop(place) for place in sorted(roots)]
    hops = []
    through = tuple(sorted(reached))
    while first:
        new = {rank for wait in first for rank in wait.waiting} - reached
        hops.append(Hop(tuple(first), through, tuple(sorted(new))))
        reached |= new
        through = tuple(sorted(new))
        spend(sum(len(wait.absent) + len(wait.unknown) for wait in left.values()) // 8, "groups")
        places = [place for place, wait in left.items() if reached & {*wait.absent, *wait.unknown}]
        first = [left.pop(place) for place in places]
    return tuple(hops)


# -- the graph -----------------------------------------------------------------------------------


def _edges(waits: Sequence[Wait], job: LoggedJob) -> Edges:
    edges: Edges = {}
    waits_of_rank: dict[int, dict[int, bool]] = defaultdict(dict)  # whether it waits there
    for place, wait in enumerate(waits):
        for rank in {*wait.waiting, *wait.callers}:
            waits_of_rank[rank][place] = False
        for rank in wait.waiting:
            waits_of_rank[rank][place] = True
    for place, wait in enumerate(waits):
        spend((len(wait.absent) + len(wait.possible)) // 4, "groups")
        following = edges["wait", place] = {
            ("rank", rank) for rank in (*wait.absent, *wait.possible)
        }
        edges |= {node: edges.get(node, set()) for node in following}
    for rank, places in waits_of_rank.items():
        for place, older in _next_older(rank, places, waits, job):
            edges["wait", place] |= {("wait", at) for at in older}
    for rank, places in waits_of_rank.items():
        edges.setdefault(("rank", rank), set()).update(("wait", place) for place in places)
    return edges


def _next_older(
    rank: int, places: Mapping[int, bool], waits: Sequence[Wait], job: LoggedJob
) -> Iterator[tuple[int, list[int]]]:
    """For each operation that a rank waits in, the ones that it entered before; of many the latest
    in which it waits, from which a path leads to the others."""
    by_order: dict[int, list[int]] = defaultdict(list)
    for at in places:
        by_order[_order(waits[at], rank, job)].append(at)
    older: list[int] = []
    for order in sorted(by_order):
        here = by_order[order]
        waiting = [at for at in here if places[at]]
        spend(len(waiting) * len(older) // 4, "groups")
        yield from ((at, older) for at in waiting)
        older = here if waiting else [*older, *here]


def _order(wait: Wait, rank: int, job: LoggedJob) -> int:
    """The index of a rank's call of this operation among all its calls."""
    group = job.group_of(wait)
    if wait.peers:
        return next((call.order for call in group.p2p.get(rank, ()) if not call.ended), 0)
    return _place(group, rank, wait.seq) or 0


def _place(group: Group | None, rank: int, seq: int) -> int | None:
    calls = group.calls.get(rank, {}).get(seq) if group else None
    return calls[0].order if calls else None


def sinks_of(edges: Edges) -> list[set[Node]]:
    """Strongly connected components without outgoing edges (Kosaraju, without recursion)."""
    into: dict[Node, list[Node]] = defaultdict(list)
    for node, successors in edges.items():
        for following in successors:
            into[following].append(node)
    finished: list[Node] = []  # by walks against the edges: the last is in a sink
    seen: set[Node] = set()
    walks = [(node, False) for node in edges]
    while walks:
        node, is_left = walks.pop()
        if is_left:
            finished.append(node)
        elif node not in seen:
            seen.add(node)
            walks += [(node, True), *((before, False) for before in into[node])]
    sinks, seen = [], set()
    for start in reversed(finished):
        component: set[Node] = set()
        left = [start]
        while left:
            node = left.pop()
            if node not in seen:
                seen.add(node)
                component.add(node)
                left += edges[node]
        if component and all(edges[node] <= component for node in component):
            sinks.append(component)
    return sinks


# -- a sink --------------------------------------------------------------------------------------


def _look_at(sink: set[Node], waits: Sequence[Wait], edges: Edges, job: LoggedJob) -> Verdict:
    ranks = sorted(number for kind, number in sink if kind == "rank")
    inside = sorted(number for kind, number in sink if kind == "wait")
    if not inside:
        return _one_rank(ranks[0], waits, edges, job)
    sink_waits = [waits[place] for place in inside]
    different = [wait for wait in sink_waits if wait.parties]
    if different:
        return *_different(different, waits, job), "different", inside
    if len(sink) > 1 and ranks:
        odd = _odd_orders(ranks, sink_waits, job)
        return odd, () if odd else ranks, "order", inside
    unknown = {rank for wait in sink_waits for rank in wait.unknown}
    if unknown:
        return (), unknown, "no-dump", inside
    late = {rank for wait in sink_waits for rank in wait.late}
    if late:
        few = all(2 * len(wait.late) < len(wait.group.members) for wait in sink_waits)
        return (late, (), "late", inside) if few else ((), late, "late", inside)
    if all(wait.group.complete for wait in sink_waits):  # a device or the network
        return (), (), "all-arrived", inside
    idle = _idle(sink_waits, edges, job)
    if _is_missing(idle, job):
        return idle, (), "absent", inside
    return (), idle, "unclear", inside


def _idle(waits: Sequence[Wait], edges: Edges, job: LoggedJob) -> list[int]:
    """Ranks with a dump that wait nowhere and did not complete all of these operations."""
    calls = [(job.group_of(wait), wait.seq) for wait in waits]
    still = [rank for rank in job.dumped if not edges.get(("rank", rank))]
    spend((len(job.dumped) + len(still) * len(calls)) // 4, "groups")
    return [rank for rank in still if not all(group.called(rank, seq) for group, seq in calls)]


def _is_missing(idle: Sequence[int], job: LoggedJob) -> bool:
    """Whether the others wait for ranks that wait nowhere, if dumps have no members: it is a single
    rank, and no rank before the last lacks a dump."""
    return len(idle) == 1 and job.backend == "gloo" and len(job.dumped) == job.dumped[-1] + 1


def _one_rank(rank: int, waits: Sequence[Wait], edges: Edges, job: LoggedJob) -> Verdict:
    """A rank that nothing blocks: itself, or one that alone entered what two or more idle members
    never did."""
    spend(sum(2 + len(wait.absent) + len(wait.possible) for wait in waits) // 16, "groups")
    places = [place for place, wait in enumerate(waits) if rank in wait.absent]
    if not places:
        places = [place for place, wait in enumerate(waits) if rank in wait.possible]
        if not _is_missing(_idle([waits[place] for place in places], edges, job), job):
            return (), (rank,), "unclear", places
    loners: list[int] = []
    for wait in (waits[place] for place in places):
        idle = [rank for rank in wait.absent if not edges[("rank", rank)]]
        if len(wait.waiting) != 1 or len(idle) < 2:
            return (rank,), (), "absent", places
        loners += wait.waiting
    return ((), loners, "unclear", places) if loners else ((rank,), (), "absent", places)


# -- the odd one ---------------------------------------------------------------------------------


def _different(
    different: Sequence[Wait], waits: Sequence[Wait], job: LoggedJob
) -> tuple[set[int], set[int]]:
    """Culprits and suspects of operations in which the members made different calls."""
    culprits: set[int] = set()
    suspects: set[int] = set()
    for wait in different:
        # Else a rank that left out another group's operation to be here?
        odd = _odd_parties(wait, job) or _odd_orders(wait.callers, waits, job)
        culprits |= odd
        suspects |= set() if odd else wait.callers
    return culprits, suspects


def _odd_parties(wait: Wait, job: LoggedJob) -> set[int]:
    """The ranks that made another call than they should have; none if that is open."""
    size = max(len(wait.group.members), sum(len(party.ranks) for party in wait.parties))
    right = [wait.parties[0]]
    if 2 * len(right[0].ranks) <= size:
        right = [party for party in wait.parties if _is_supported(wait, party, job)]
        if len(right) != 1 or wait.peers:
            return set()
    return wait.callers - {*right[0].ranks}


def _is_supported(wait: Wait, party: Party, job: LoggedJob) -> bool:
    """Whether ranks of other groups of the family made just this call at the same number."""
    wait_group = job.group_of(wait)
    spend(sum(2 + len(group.calls) for group in job.groups.values()) // 8, "groups")
    return any(
        signature(calls[wait.seq], sizes=party.sizes != "") == (party.op, party.sizes)
        for group in job.groups.values()
        if group.family == wait_group.family and group is not wait_group
        for calls in group.calls.values()
        if wait.seq in calls
    )


def _odd_orders(ranks: Iterable[int], waits: Iterable[Wait], job: LoggedJob) -> set[int]:
    """Among ranks that wait for each other in a cycle: those that entered the groups in an order of
    their own.

    None where nothing tells.
    """
    waits = [wait for wait in waits if not wait.peers]
    odd = set()
    size = sum(2 + len(wait.waiting) + len(wait.absent) + len(wait.possible) for wait in waits)
    for rank in ranks:
        spend(size // 16, "groups")
        entered = [wait for wait in waits if rank in wait.waiting]
        left = [wait for wait in waits if rank in wait.absent or rank in wait.possible]
        if any(_is_odd(rank, *pair, job) for pair in product(entered, left)):
            odd.add(rank)
    return odd


def _is_odd(rank: int, entered: Wait, left: Wait, job: LoggedJob) -> bool:
    """Whether this rank alone entered one group before it had been in the other."""
    families = job.group_of(entered).family, job.group_of(left).family
    same = other = 0
    spend(len(job.dumped), "groups")
    for fellow in job.dumped:
        first, second = (
            _place(job.of_family(family, fellow), fellow, wait.seq)
            for family, wait in zip(families, (entered, left))
        )
        if fellow == rank or (first is None and second is None):
            continue
        if second is None or (first is not None and first < second):
            same += 1
        else:
            other += 1
    return other >= 2 and other > 2 * same
