"""Where a hang begins: the graph of who waits for whom, and what nobody else explains.

    rank r waits in operation w        r -> w
    rank a did not enter w             w -> a
    a member of w has an older operation that is stuck, w' (its stream is in order)   w -> w'

A sink of this graph is where to look:

    a rank     it did not arrive, and nothing holds it
    an operation that all entered      they called different things, or a device or the network
    a circle   ranks entered groups in different orders
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from .job import LoggedJob
from .model import Diagnosis, Hop, Wait
from .votes import odd_orders, odd_parties
from .waits import waits_of

Node = tuple[str, int]  # ("rank", rank) or ("wait", place in the list)


def diagnosis_of(job: LoggedJob) -> Diagnosis:
    """Who is missing, who waits for it and how that spreads."""
    waits = waits_of(job)
    if not waits:
        return Diagnosis()
    edges = _edges(waits, job)
    culprits: set[int] = set()
    suspects: set[int] = set()
    reasons: list[str] = []
    roots: set[int] = set()
    for sink in _sinks(edges):
        found, doubted, reason, own = _look_at(sink, waits, edges, job)
        culprits |= set(found)
        suspects |= set(doubted)
        roots |= set(own)
        reasons.append(reason)
    idle = {rank for rank in culprits if not edges.get(("rank", rank))}
    if len(idle) > 1 and not any(idle <= set(wait.absent) for wait in waits):
        # Ranks that hold up different operations on their own: the job still moved when it dumped.
        culprits, suspects = culprits - idle, suspects | idle
        reasons.append("unclear")
    for place, wait in enumerate(waits):  # different calls are a cause wherever they stand
        if wait.parties and place not in roots:
            roots.add(place)
            odd, doubted = _different([wait], waits, job)
            culprits |= odd
            suspects |= doubted
            reasons.append("different")
    named = culprits or suspects
    hops = hops_of(waits, named, roots)
    unknown = {rank for wait in waits for rank in wait.unknown}
    return Diagnosis(
        culprits=tuple(sorted(culprits)),
        suspects=tuple(sorted(suspects - culprits)),
        reason=_main(reasons),
        waits=tuple(waits),
        hops=hops,
        without_dump=tuple(sorted(unknown)),
    )


def _edges(waits: Sequence[Wait], job: LoggedJob) -> dict[Node, set[Node]]:
    edges: dict[Node, set[Node]] = {}
    waits_of_rank: dict[int, list[int]] = defaultdict(list)
    for place, wait in enumerate(waits):
        for rank in {*wait.waiting, *(rank for one in wait.parties for rank in one.ranks)}:
            waits_of_rank[rank].append(place)
    for place, wait in enumerate(waits):
        node = ("wait", place)
        edges[node] = {("rank", rank) for rank in (*wait.absent, *wait.possible)}
        for rank in (*wait.absent, *wait.possible):
            edges.setdefault(("rank", rank), set())
        for rank in wait.waiting:
            edges[node] |= {
                ("wait", other)
                for other in waits_of_rank[rank]
                if other != place and _order(waits[other], rank, job) < _order(wait, rank, job)
            }
    for rank, places in waits_of_rank.items():
        edges.setdefault(("rank", rank), set()).update(("wait", place) for place in places)
    return edges


def _order(wait: Wait, rank: int, job: LoggedJob) -> int:
    """The place of a rank's call of this operation among all its calls."""
    for group in job.groups.values():
        if group.group is wait.group:
            if wait.peers:
                pending = [call for call in group.p2p.get(rank, ()) if not call.ended]
                return pending[0].order if pending else 0
            calls = group.calls.get(rank, {}).get(wait.seq)
            return calls[0].order if calls else 0
    return 0


def _sinks(edges: dict[Node, set[Node]]) -> list[list[Node]]:
    """Strongly connected components that nothing leaves (Tarjan, without recursion)."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    component: dict[Node, int] = {}
    components: list[list[Node]] = []
    for start in edges:
        if start in index:
            continue
        work = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, successors = work[-1]
            for following in successors:
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    work.append((following, iter(edges[following])))
                    break
                if following not in component:
                    low[node] = min(low[node], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members: list[Node] = []
                    while not members or members[-1] != node:
                        members.append(stack.pop())
                        component[members[-1]] = len(components)
                    components.append(members)
    return [
        members
        for place, members in enumerate(components)
        if all(component[after] == place for node in members for after in edges[node])
    ]


def _look_at(
    sink: list[Node], waits: Sequence[Wait], edges: dict[Node, set[Node]], job: LoggedJob
) -> tuple[Iterable[int], Iterable[int], str, Iterable[int]]:
    """Culprits, suspects, the reason and the operations to look at first, of one sink."""
    ranks = sorted(number for kind, number in sink if kind == "rank")
    inside = [number for kind, number in sink if kind == "wait"]
    if not inside:
        (rank,) = ranks
        places = [place for place, wait in enumerate(waits) if rank in wait.absent]
        if not places:
            places = [place for place, wait in enumerate(waits) if rank in wait.possible]
            idle = [one for one in job.dumped if not edges.get(("rank", one))]
            if len(idle) > 1 or job.backend != "gloo":
                return (), (rank,), "unclear", places
        loners = _loners([waits[place] for place in places], edges)
        if loners:
            return (), loners, "unclear", places
        return (rank,), (), "absent", places
    own = [waits[place] for place in inside]
    different = [wait for wait in own if wait.parties]
    if different:
        return *_different(different, waits, job), "different", inside
    if len(sink) > 1 and ranks:
        answers = odd_orders(ranks, own, job)
        odd_ones = [rank for rank, is_odd in answers.items() if is_odd]
        return odd_ones, () if odd_ones else ranks, "order", inside
    unknown = {rank for wait in own for rank in wait.unknown}
    if unknown:
        return (), unknown, "no-dump", inside
    late = {rank for wait in own for rank in wait.late}
    if late:
        few = all(2 * len(wait.late) < len(wait.group.members) for wait in own)
        return (late, (), "late", inside) if few else ((), late, "late", inside)
    return _all_arrived(own, edges, job, inside)


def _different(
    different: Sequence[Wait], waits: Sequence[Wait], job: LoggedJob
) -> tuple[set[int], set[int]]:
    """Culprits and suspects of operations in which the members called different things."""
    culprits: set[int] = set()
    suspects: set[int] = set()
    for wait in different:
        odd = set(odd_parties(wait, job))
        parties = {rank for one in wait.parties for rank in one.ranks}
        if not odd:  # a rank that left out another group's operation to be here?
            answers = odd_orders(parties, waits, job)
            odd = {rank for rank, is_odd in answers.items() if is_odd}
        culprits |= odd
        suspects |= set() if odd else parties
    return culprits, suspects


def _loners(waits: Sequence[Wait], edges: dict[Node, set[Node]]) -> list[int]:
    """A rank alone in an operation that two or more idle members never entered: it, or they."""
    found: list[int] = []
    for wait in waits:
        idle = [rank for rank in wait.absent if not edges[("rank", rank)]]
        if len(wait.waiting) != 1 or len(idle) < 2:
            return []
        found += wait.waiting
    return found


def _all_arrived(
    own: Sequence[Wait], edges: dict[Node, set[Node]], job: LoggedJob, inside: list[int]
) -> tuple[Iterable[int], Iterable[int], str, Iterable[int]]:
    """All whose calls are recorded entered the same: a device or the network, unless the dumps
    do not say who the members are."""
    if all(wait.group.complete for wait in own):
        return (), (), "all-arrived", inside
    idle = [rank for rank in job.dumped if not edges.get(("rank", rank))]
    if len(idle) == 1 and job.backend == "gloo":
        return idle, (), "absent", inside
    return (), idle, "unclear", inside


def hops_of(waits: Sequence[Wait], named: Iterable[int], roots: Iterable[int]) -> tuple[Hop, ...]:
    """How the waiting spreads, from the roots over the groups that wait for ranks that wait."""
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
        places = [place for place, wait in left.items() if reached & set(wait.absent)]
        first = [left.pop(place) for place in places]
    return tuple(hops)


def _main(reasons: Sequence[str]) -> str:
    order = ("different", "order", "unclear", "absent", "late", "no-dump", "all-arrived")
    return next((one for one in order if one in reasons), "none")
