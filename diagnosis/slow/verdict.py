"""Who is slow: one GPU, a node, a stage, one rank of every tp group, a group, or nobody.

Each rank has its own time in each step, which waiting for others does not change. A set of ranks is
slow where all steps agree that it has more of it than the others:

    excess(S) = median own time in S - median own time outside of S

It counts where it is above LEAST of the step, above NOISE times what ranks of one side differ from
each other and clear of chance (the steps of a rank differ too, and the largest of N such medians
is about sqrt(2 ln N) standard errors away), and where the set explains more of the differences
than any other does. Groups are compared likewise: what moving data takes at least in one, beside
its fellows of that kind.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from groups.layout import Layout

from .model import COMPUTATION, DATA, OPTIMIZER, OWN, TRANSFER, RankTime, Slowness

LEAST = 0.05
"""The share of a step below which an excess does not count."""
NOISE = 3.0
SURE = 2.0
"""Standard errors beyond those of the largest of all sets by chance."""
LEAST_REPORTS = 3
"""Reports of a detector that name a slowest GPU: there is one in each, by chance too."""
AGREE = 0.75
"""The share of steps in which a set must have the larger own time."""

MOST_SETS = 16
"""The most sets of each kind to look at: those with most own time."""

ORDER = ("rank", "node", "stage", "place", "group")
"""Kinds of sets by precedence, if several have the same ranks."""


@dataclass(frozen=True)
class Culprit:
    """Who is slow.

    kind: rank, node, stage, place (one rank of every tp group), group (its network is slow), ranks
    (several, of nothing in common), nobody, or unknown (too few traces). index: which node, stage,
    place or group. also: what else the same ranks are. cause: as `model` names what a rank does.
    excess_us: a step. steps: in which it holds. host: of a node, where it has a name.
    """

    kind: str
    ranks: tuple[int, ...] = ()
    index: int | None = None
    cause: str = ""
    excess_us: float = 0.0
    share: float = 0.0
    steps: int = 0
    also: tuple[str, ...] = ()
    host: str = ""


@dataclass(frozen=True)
class _Candidate:
    kind: str
    index: int
    ranks: frozenset[int]
    host: str = ""


def verdict_of(slow: Slowness, layout: Layout | None = None) -> Culprit:
    """Who is slow, from the traces; ``layout`` supplies nodes and stages that they leave out."""
    known = [one for one in slow.ranks if one.own_us]
    if len(known) < 2 or not (slow.waits or "timers" in slow.notes):
        return _by_detector(slow)
    own = np.array([one.own_us for one in known])
    best = _slow_ranks(slow, known, own, layout)
    network = _slow_group(slow)
    if best is None or (network is not None and network.excess_us > best.excess_us):
        return network or Culprit("nobody", steps=own.shape[1])
    return best


def _by_detector(slow: Slowness) -> Culprit:
    """The rank that a straggler detector names, if it is the same in nearly all of its reports;
    those that it calls stragglers itself, in however few."""
    named = slow.straggler
    if named is None:
        return Culprit("unknown")
    if named.of < LEAST_REPORTS and not named.ranks:
        return Culprit("unknown")
    if named.times < AGREE * named.of or named.share < LEAST:
        return Culprit("nobody", steps=named.of)
    ranks = named.ranks or (named.rank,)
    kind, index = ("rank", named.rank) if len(ranks) == 1 else ("ranks", None)
    excess = 0.0 if named.score is not None else named.excess_us
    return Culprit(
        kind, ranks, index, COMPUTATION, excess, named.share, named.times, host=named.host
    )


# -- ranks -----------------------------------------------------------------------------------------


def _slow_ranks(
    slow: Slowness, known: list[RankTime], own: np.ndarray, layout: Layout | None
) -> Culprit | None:
    ranks = [one.rank for one in known]
    found: list[tuple[float, int, float, int, _Candidate]] = []
    step = slow.step_us
    sets = [*_candidates(slow, known, layout)]
    sure = SURE + math.sqrt(2 * math.log(len(sets)))
    for one, inside in _highest(sets, ranks, own):
        if inside.all() or not inside.any():
            continue
        gaps = np.median(own[inside], axis=0) - np.median(own[~inside], axis=0)
        excess = float(np.median(gaps))
        agree = int((gaps > 0).sum())
        if excess < LEAST * step or agree < AGREE * len(gaps):
            continue
        left = _left(own, inside)
        chance = sure * _chance(own, int(inside.sum()))
        if excess < max(NOISE * left, chance) or not _is_apart(own, inside, excess):
            continue
        found.append((left, ORDER.index(one.kind), excess, agree, one))
    if not found:
        return None
    least = min(left for left, *_ in found)
    near = [one for one in found if one[0] <= 1.2 * least]
    left, _, excess, agree, one = min(near, key=lambda row: (row[1], row[0]))
    also = tuple(
        other.kind for *_, other in found if other.ranks == one.ranks and other.kind != one.kind
    )
    members = [time for time in known if time.rank in one.ranks]
    others = [time for time in known if time.rank not in one.ranks]
    return Culprit(
        kind=one.kind,
        ranks=tuple(sorted(one.ranks)),
        index=one.index,
        cause=_cause(members, others, excess),
        excess_us=excess,
        share=float(excess / step) if step else 0.0,
        steps=agree,
        also=also,
        host=one.host,
    )


def _highest(
    sets: Iterable[_Candidate], ranks: Sequence[int], own: np.ndarray
) -> Iterator[tuple[_Candidate, np.ndarray]]:
    """The sets of each kind with most own time, and the places of their ranks."""
    at = {rank: place for place, rank in enumerate(ranks)}
    each = np.median(own, axis=1)
    by_kind: dict[str, list[tuple[float, int, _Candidate, np.ndarray]]] = defaultdict(list)
    for number, one in enumerate(sets):
        places = np.array([at[rank] for rank in one.ranks])
        by_kind[one.kind].append((-float(np.median(each[places])), number, one, places))
    for some in by_kind.values():
        for _, _, one, places in sorted(some, key=lambda row: row[:2])[:MOST_SETS]:
            inside = np.zeros(len(ranks), dtype=bool)
            inside[places] = True
            yield one, inside


def _chance(own: np.ndarray, size: int) -> float:
    """The standard error of the median of a set of ranks, from the differences between each rank's
    steps; 0 with one step, which has none."""
    steps = own.shape[1]
    if steps < 2:
        return 0.0
    away = np.median(np.abs(own - np.median(own, axis=1, keepdims=True)), axis=1)
    of_step = 1.4826 * steps / (steps - 0.8) * float(np.mean(away))
    return 1.2533 * of_step / float(np.sqrt(steps * size))  # of a median of normal values


def _left(own: np.ndarray, inside: np.ndarray) -> float:
    """The remaining differences between ranks of one side: the mean distance of each from its
    side's median."""
    each = np.median(own, axis=1)
    parts = [np.abs(each[side] - np.median(each[side])) for side in (inside, ~inside)]
    return float(np.concatenate(parts).mean())


def _is_apart(own: np.ndarray, inside: np.ndarray, excess: float) -> bool:
    """Whether nearly every rank of the set is above nearly every other."""
    each = np.median(own, axis=1)
    middle = np.median(each[~inside]) + excess / 2
    return bool((each[inside] > middle).mean() >= 0.75 and (each[~inside] < middle).mean() >= 0.9)


def _cause(members: list[RankTime], others: list[RankTime], excess: float) -> str:
    """The activity that makes up most of the excess."""

    def more(part: str) -> float:
        sides = [[getattr(one, part) or 0.0 for one in side] for side in (members, others)]
        return float(np.median(sides[0]) - np.median(sides[1]))

    parts = {DATA: more("data_us"), OPTIMIZER: more("optimizer_us")}
    if all(one.computation_us is not None for one in (*members, *others)):
        parts[COMPUTATION] = more("computation_us")
    what = max(parts, key=lambda name: parts[name])
    return what if parts[what] > excess / 2 else OWN


def _candidates(
    slow: Slowness, known: Iterable[RankTime], layout: Layout | None
) -> Iterator[_Candidate]:
    """Sets of ranks that may be slow together."""
    ranks = {one.rank: None for one in known}
    yield from (_Candidate("rank", rank, frozenset((rank,))) for rank in ranks)
    sides: dict[tuple[str, int], set[int]] = defaultdict(set)
    hosts = nodes_of(slow, layout)
    for rank in ranks:
        if rank in hosts:
            sides["node", hosts[rank][0]].add(rank)
    for name, kind in (("stage", "pp"), ("place", "tp")):
        for rank, place in places_in(slow, layout, kind).items():
            if rank in ranks:
                sides[name, place].add(rank)
    names = dict(hosts.values())
    for (kind, index), some in sides.items():
        host = names.get(index, "") if kind == "node" else ""
        yield _Candidate(kind, index, frozenset(some), host)


def nodes_of(slow: Slowness, layout: Layout | None) -> dict[int, tuple[int, str]]:
    """Number and name of the node of each rank: from the traces' hosts, else from the layout."""
    hosts = {one.rank: one.host for one in slow.ranks}
    firsts: dict[str, int] = {}
    for rank, host in sorted(hosts.items()):
        firsts.setdefault(host, rank)
    if len(firsts) > 1 and "" not in firsts:
        numbers = {host: number for number, host in enumerate(firsts)}
        return {rank: (numbers[host], host) for rank, host in hosts.items()}
    if layout is None:
        return {}
    return {
        rank: (rank // layout.gpus_per_node, "")
        for rank in hosts
        if rank < layout.world_size and layout.world_size > layout.gpus_per_node
    }


def places_in(slow: Slowness, layout: Layout | None, kind: str) -> dict[int, int]:
    """The place of each rank in its group of a kind: from the traces, else from the layout."""
    found = {
        rank: place
        for group in slow.groups
        if group.kind == kind and len(group.ranks) > 1
        for place, rank in enumerate(sorted(group.ranks))
    }
    grouping = layout.kind(kind) if layout is not None and not found else None
    if grouping is None or layout is None or grouping.size < 2:
        return found
    return {
        int(rank): place for group in grouping.groups() for place, rank in enumerate(sorted(group))
    }


# -- groups ----------------------------------------------------------------------------------------


def _slow_group(slow: Slowness) -> Culprit | None:
    """The group in which moving data takes longer than in the others of its kind."""
    times: dict[int, dict[int, tuple[int, float]]] = defaultdict(dict)
    for row in slow.waits:
        times[row.group][row.step] = row.calls, row.transfer_us
    fellows: dict[object, list[int]] = defaultdict(list)
    for group, of_step in times.items():
        one, calls = slow.groups[group], {step: count for step, (count, _) in of_step.items()}
        fellows[one.title, len(one.ranks), tuple(sorted(calls.items()))].append(group)
    best: Culprit | None = None
    for some in fellows.values():
        steps = sorted(times[some[0]])
        table = np.array([[times[group][step][1] for step in steps] for group in some])
        order = np.argsort(-np.median(table, axis=1), kind="stable")[:MOST_SETS]
        for place in order.tolist() if len(some) > 1 else []:
            rest = np.delete(table, place, axis=0)
            gaps = table[place] - np.median(rest, axis=0)
            excess, agree = float(np.median(gaps)), int((gaps > 0).sum())
            spread = float(np.abs(rest - np.median(rest, axis=0)).mean())
            is_slow = excess > LEAST * slow.step_us and agree >= AGREE * len(steps)
            if is_slow and excess > NOISE * spread and (best is None or excess > best.excess_us):
                best = _of_group(slow, some[place], excess, agree)
    return best


def _of_group(slow: Slowness, group: int, excess: float, steps: int) -> Culprit:
    """A slow group; if it is one rank of every tp group, that too."""
    ranks = slow.groups[group].ranks
    places = places_in(slow, None, "tp")
    of_place = {places.get(rank) for rank in ranks}
    place = next(iter(of_place)) if len(of_place) == 1 else None
    whole = place is not None and {*ranks} == {r for r, at in places.items() if at == place}
    return Culprit(
        kind="group",
        ranks=ranks,
        index=group,
        cause=TRANSFER,
        excess_us=excess,
        share=excess / slow.step_us if slow.step_us else 0.0,
        steps=steps,
        also=("place",) if whole else (),
    )
