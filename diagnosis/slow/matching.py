"""Finds the calls of several ranks that are one collective.

Calls that carry their number in the group (torch 2.13) are matched by it. All others are matched
by order, as the members of a group call the same operations in the same order: the k-th call of
each member belongs together, counted over the whole trace if all members have equally many calls,
else over each step in which they have equally many. Calls that match nowhere are left out. A send
is matched with the receive of its peer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .calls import BETWEEN_TWO, ONE_WAY, JobCalls, RankCalls


@dataclass(frozen=True)
class SharedCalls:
    """Calls of one group: a row for each collective, a column for each rank with a trace.

    calls: places in the columns of each rank's `RankCalls`. op, step: of each row; a step's number.
    """

    group: int
    ranks: tuple[int, ...]
    calls: np.ndarray
    op: np.ndarray
    step: np.ndarray
    durations: np.ndarray
    starts: np.ndarray

    @cached_property
    def waits(self) -> np.ndarray:
        """The time that each member waited for the last one to arrive."""
        return self.durations - self.durations.min(axis=1, keepdims=True)

    @cached_property
    def lasts(self) -> np.ndarray:
        """For each collective, the column of the rank that arrived last."""
        return self.durations.argmin(axis=1)

    @property
    def is_together(self) -> bool:
        return len(self.ranks) > 1 and len(self.calls) > 0


def matched(job: JobCalls) -> list[SharedCalls]:
    """The collectives of a job, those of each group together."""
    one_way = np.array([name in ONE_WAY for name in job.ops] or [False])
    open_peer = np.array([name in BETWEEN_TWO for name in job.ops] or [False])
    found = list[SharedCalls]()
    for place, group in enumerate(job.groups):
        members = [job.ranks[rank] for rank in group.ranks if rank in job.ranks]
        if len(members) < 2:
            continue
        calls = {}
        pairs: dict[tuple[int, int], dict[int, np.ndarray]] = {}
        for one in members:
            mine = np.flatnonzero(one.group == place)
            mine = mine[~open_peer[one.op[mine]]] if len(group.ranks) > 2 else mine
            way = one_way[one.op[mine]]
            calls[one.rank] = mine[~way]
            _sort_by_pair(job, one, mine[way], pairs)
        found += rows_of(job, place, calls)
        for both in pairs.values():
            if len(both) == 2:
                found += rows_of(job, place, both, same_op=False)
    return found


def _sort_by_pair(
    job: JobCalls,
    one: RankCalls,
    calls: np.ndarray,
    pairs: dict[tuple[int, int], dict[int, np.ndarray]],
) -> None:
    """Sort the sends and receives of a rank by sender and receiver."""
    sends = np.array([name == "send" for name in job.ops])[one.op[calls]] if len(calls) else calls
    for is_send in (True, False):
        some = calls[sends == is_send] if len(calls) else calls
        for peer in {*one.peer[some].tolist()} - {-1}:
            pair = (one.rank, peer) if is_send else (peer, one.rank)
            pairs.setdefault(pair, {})[one.rank] = some[one.peer[some] == peer]


def rows_of(
    job: JobCalls, place: int, calls: Mapping[int, np.ndarray], same_op: bool = True
) -> Iterator[SharedCalls]:
    """The collectives of a group, matched from the calls of each of its ranks."""
    ranks = tuple(rank for rank, some in calls.items() if len(some)) if calls else ()
    if len(ranks) < 2:
        return
    members = [job.ranks[rank] for rank in ranks]
    table = _aligned(members, [calls[rank] for rank in ranks])
    if not len(table):
        return
    ops = np.stack([one.op[table[:, at]] for at, one in enumerate(members)], axis=1)
    if same_op:
        agree = (ops == ops[:, :1]).all(axis=1)
        table, ops = table[agree], ops[agree]
    first = members[0]
    at = first.step_of[table[:, 0]]
    numbers = np.append(first.steps[:, 0], -1).astype(np.int64)
    found = SharedCalls(
        place,
        ranks,
        table,
        ops[:, 0],
        numbers[at],
        np.stack([one.duration[table[:, at]] for at, one in enumerate(members)], axis=1),
        np.stack([one.start[table[:, at]] for at, one in enumerate(members)], axis=1),
    )
    if found.is_together:
        yield found


def _aligned(members: Sequence[RankCalls], calls: Sequence[np.ndarray]) -> np.ndarray:
    """Calls that are one, in rows; those of which a member has none are left out."""
    numbers = [one.sequence[some] for one, some in zip(members, calls)]
    if all((some >= 0).all() for some in numbers):
        return _same([*zip(numbers, calls)])
    if len({len(some) for some in calls}) == 1:
        return np.stack(calls, axis=1)
    keyed = []
    for one, some in zip(members, calls):
        at = one.step_of[some]
        inside = at >= 0
        number = one.steps[at[inside], 0].astype(np.int64)
        keyed.append((number, some[inside]))
    rows = []
    for step in sorted(set.intersection(*({*number.tolist()} for number, _ in keyed))):
        of_step = [some[number == step] for number, some in keyed]
        if len({len(some) for some in of_step}) == 1:
            rows.append(np.stack(of_step, axis=1))
    return np.concatenate(rows) if rows else np.empty((0, len(calls)), dtype=np.int64)


def _same(keyed: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    common = keyed[0][0]
    for numbers, _ in keyed[1:]:
        common = np.intersect1d(common, numbers)
    columns = []
    for numbers, calls in keyed:
        kept, first = np.unique(numbers, return_index=True)
        columns.append(calls[first[np.searchsorted(kept, common)]] if len(common) else calls[:0])
    return np.stack(columns, axis=1)


def offsets(found: Sequence[SharedCalls], ranks: Sequence[int]) -> dict[int, float]:
    """Clock corrections of the ranks, with which a collective ends at the same time on all.

    From one rank to the next, over groups that both are in, the largest first; a rank that shares
    none with the others keeps its own.
    """
    known: dict[int, float] = {}
    ordered = sorted(found, key=lambda one: -len(one.ranks))
    for start in ranks:
        if start in known:
            continue
        known[start] = 0.0
        grew = True
        while grew:
            grew = False
            for one in ordered:
                column = next((at for at, rank in enumerate(one.ranks) if rank in known), None)
                if column is None or all(rank in known for rank in one.ranks):
                    continue
                ends = one.starts + one.durations
                apart = np.median(ends[:, column : column + 1] - ends, axis=0)
                base = known[one.ranks[column]]
                for at, rank in enumerate(one.ranks):
                    known.setdefault(rank, base + float(apart[at]))
                grew = True
    return known
