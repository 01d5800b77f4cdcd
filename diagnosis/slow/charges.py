"""Attributes waiting to its causes, along the chain to its origin.

The last to come and the one that waited longest were together before, in the latest collective of
both. Since then the last has spent more time on something; that difference is why it is late:

    since the latest common end:  more computation, fetching, own work   it pays itself
                                  more moving of data                    its group there is slow
                                  more waiting in other groups           who is to blame there pays

so that each collective has its share of blame by rank, made of those before it in time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .calls import JobCalls
from .matching import SharedCalls
from .model import COMPUTATION, DATA, OPTIMIZER, OWN, TRANSFER, WAITING, ChainLink, Doing, TimePart
from .spans import covered

DEEPEST = 16
"""The most links of a chain."""
LONGEST, MOST_CHAINS = 512, 32
"""The most collectives whose chains are reported, those with most waiting; and the most chains that
are kept."""
FOLLOWED = 3_000
"""Collectives that are followed along their chains, those with most waiting; for the others the
last to come pays."""
BACK = 256
"""Calls of a rank in which a collective with another is looked for."""
MOST_WAITED = 32
"""Collectives in which the last to come waited itself, those with most waiting."""
WORK = 20_000_000
"""Calls that are looked at in all; what is left then the last to come pays."""
MOST_BLAMED = 24
"""Ranks and doings that share the blame of one collective."""

Row = tuple[int, int]
"""A collective: the index of its group's calls, and its row in them."""
Spent = dict[tuple[Doing, str], float]
"""Time by activity and kind of group."""
Late = tuple[int, Spent, dict[Row, float]]
"""Who came last, the activities with excess time, and where it waited, as shares."""
Blame = dict[tuple[int, Doing, str], float]
"""Shares by rank, activity and kind of group, 1 in total."""


@dataclass(frozen=True)
class _Calls:
    """The matched calls of one rank in the order of their ends, on the clock of all."""

    ends: np.ndarray
    place: np.ndarray
    row: np.ndarray
    waits: np.ndarray  # exposed
    moves: np.ndarray  # likewise, without waiting
    begin: float

    def between(self, start: float, end: float) -> slice:
        low = int(np.searchsorted(self.ends, start, "right"))
        return slice(low, max(low, int(np.searchsorted(self.ends, end, "right"))))


class Charges:
    """The waiting that each rank caused, and why it was late."""

    def __init__(
        self, job: JobCalls, found: Sequence[SharedCalls], clocks: Mapping[int, float]
    ) -> None:
        self._job, self._found, self._clocks = job, found, clocks
        self._members = [{rank: at for at, rank in enumerate(one.ranks)} for one in found]
        self._waits = [one.waits for one in found]
        self._ends = [self._ends_of(one) for one in found]
        self._calls = self._by_rank()
        self._work = WORK
        self._blame: dict[Row, Blame] = {}
        self._known: dict[Row, Late] = {}
        self._paid: dict[int, Spent] = defaultdict(lambda: defaultdict(float))
        self._charge()

    def cost(self, rank: int) -> float:
        """Microseconds that other ranks spent waiting for this rank, in total."""
        return float(sum(self._paid[rank].values()))

    def before(self, rank: int, steps: int) -> tuple[TimePart, ...]:
        """The causes of a rank's delay, as mean time per step, the largest first."""
        parts = sorted(self._paid[rank].items(), key=lambda item: -item[1])
        return tuple(
            TimePart(what, float(us) / steps, kind) for (what, kind), us in parts if us > 0
        )

    def _ends_of(self, one: SharedCalls) -> np.ndarray:
        """The end of each collective, on the common clock."""
        apart = np.array([self._clocks.get(rank, 0.0) for rank in one.ranks])
        return np.median(one.starts + one.durations + apart, axis=1)

    def _by_rank(self) -> dict[int, _Calls]:
        parts: dict[int, list[np.ndarray]] = defaultdict(list)
        for place, one in enumerate(self._found):
            moves = one.durations.min(axis=1)
            count = len(moves)
            for at, rank in enumerate(one.ranks):
                ends = self._ends[place]
                columns = (ends, np.full(count, place), np.arange(count), self._waits[place][:, at])
                parts[rank].append(np.stack((*columns, moves), axis=1))
        found = {}
        for rank, some in parts.items():
            rows = np.concatenate(some)
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            ends, waits, moves = rows[:, 0], rows[:, 3], rows[:, 4]
            waits, moves = self._exposed(rank, ends, waits, moves)
            places, row = rows[:, 1].astype(int), rows[:, 2].astype(int)
            steps = self._job.ranks[rank].steps
            begin = float(steps[0, 1]) + self._clocks.get(rank, 0.0) if len(steps) else ends[0]
            found[rank] = _Calls(ends, places, row, waits, moves, begin)
        return found

    def _exposed(
        self, rank: int, ends: np.ndarray, waits: np.ndarray, moves: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Waiting and moving, without the time in which kernels compute."""
        spans = self._job.ranks[rank].computation
        if not len(spans):
            return waits, moves
        apart = self._clocks.get(rank, 0.0)
        bare = np.array([covered(spans, e - m - apart, e - apart) for e, m in zip(ends, moves)])
        other = np.array(
            [
                covered(spans, e - m - w - apart, e - m - apart)
                for e, m, w in zip(ends, moves, waits)
            ]
        )
        return np.maximum(waits - other, 0.0), np.maximum(moves - bare, 0.0)

    # -- blame -------------------------------------------------------------------------------------

    def _charge(self) -> None:
        """Blame for each collective, those before it first, and what that costs."""
        totals = self._totals = [waits.sum(axis=1) for waits in self._waits]
        every = np.concatenate(totals) if totals else np.empty(0)
        least = float(np.sort(every)[-FOLLOWED]) if len(every) > FOLLOWED else 0.0
        least = least if self._job.timed else math.inf
        order = sorted(
            (float(self._ends[place][row]), place, row)
            for place, total in enumerate(totals)
            for row in range(len(total))
        )
        for _, place, row in order:
            total = float(totals[place][row])
            if total <= 0:
                continue
            is_followed = total >= least and self._work > 0 and len(self._known) < FOLLOWED
            blame = self._blame_of(place, row) if is_followed else self._last_only(place, row)
            self._blame[place, row] = blame
            for (rank, what, kind), share in blame.items():
                self._paid[rank][what, kind] += share * total

    def _last_only(self, place: int, row: int) -> Blame:
        one = self._found[place]
        return {(one.ranks[int(one.lasts[row])], OWN, ""): 1.0}

    def _blame_of(self, place: int, row: int) -> Blame:
        last, more, waited = self._late(place, row)
        total = sum(more.values())
        if total <= 0:
            return self._last_only(place, row)
        blame: Blame = defaultdict(float)
        for (what, kind), us in more.items():
            if what != WAITING:
                blame[last, what, kind] += us / total
                continue
            for other, long in waited.items():
                of_other = self._blame.get(other) or {(last, OWN, ""): 1.0}
                for key, share in of_other.items():
                    blame[key] += us / total * long * share
        largest = sorted(blame.items(), key=lambda item: -item[1])[:MOST_BLAMED]
        whole = sum(share for _, share in largest)
        return {key: share / whole for key, share in largest}

    def _late(self, place: int, row: int) -> Late:
        """Who came last; its activities with excess time since it was last together with the one
        that waited longest; and the collectives in which it waited, as shares."""
        if (place, row) not in self._known:
            self._known[place, row] = self._lateness(place, row)
        return self._known[place, row]

    def _lateness(self, place: int, row: int) -> Late:
        one, waits = self._found[place], self._waits[place][row]
        last, other = one.ranks[int(one.lasts[row])], one.ranks[int(waits.argmax())]
        end = float(self._ends[place][row])
        came = end - float(one.durations[row].min())
        start = self._together(last, other, (place, row), end)
        mine, waited = self._spent(last, start, came, (place, row))
        theirs, _ = self._spent(other, start, came - float(waits.max()), (place, row))
        more = {key: mine[key] - theirs.get(key, 0.0) for key in mine}
        return last, {key: us for key, us in more.items() if us > 0}, waited

    def _together(self, one: int, other: int, but: Row, end: float) -> float:
        """The end of the last common collective of both before this one; else the time when both
        begin."""
        calls = self._calls[one]
        until = int(np.searchsorted(calls.ends, end, "right"))
        for at in range(until - 1, max(-1, until - 1 - BACK), -1):
            row = int(calls.place[at]), int(calls.row[at])
            if row != but and other in self._members[row[0]] and calls.ends[at] < end:
                return float(calls.ends[at])
        return max(calls.begin, self._calls[other].begin)

    def _spent(
        self, rank: int, start: float, end: float, but: Row
    ) -> tuple[Spent, dict[Row, float]]:
        """How a rank spent the time between: by activity, and the collectives in which it
        waited."""
        one, calls = self._job.ranks[rank], self._calls[rank]
        window = start - self._clocks.get(rank, 0.0), end - self._clocks.get(rank, 0.0)
        left = max(0.0, end - start)
        within = calls.between(start, end)
        self._work -= within.stop - within.start
        place, row = calls.place[within], calls.row[within]
        other = (place != but[0]) | (row != but[1])
        waits, moves = calls.waits[within] * other, calls.moves[within] * other
        total = float(waits.sum() + moves.sum())
        fit = min(1.0, left / total) if total else 0.0  # several at once count once
        spent = {(WAITING, ""): float(waits.sum()) * fit}
        for at in np.unique(place).tolist():
            kind = (TRANSFER, self._job.groups[self._found[at].group].title)
            spent[kind] = spent.get(kind, 0.0) + float(moves[place == at].sum()) * fit
        left -= total * fit
        spans = ((COMPUTATION, one.computation), (DATA, one.data), (OPTIMIZER, one.optimizer))
        for what, some in spans:
            us = min(left, covered(some, *window))
            spent[what, ""] = us
            left -= us
        spent[OWN, ""] = left
        longest = np.argsort(-waits, kind="stable")[:MOST_WAITED]
        known = [at for at in longest.tolist() if waits[at] > 0]
        whole = sum(float(waits[at]) for at in known)
        return spent, {(int(place[at]), int(row[at])): float(waits[at]) / whole for at in known}

    # -- chains ------------------------------------------------------------------------------------

    def chains(self) -> tuple[tuple[ChainLink, ...], ...]:
        """The longest chain of waiting for each rank and activity that caused one, the costliest
        rank first."""
        longest = sorted(
            (-float(total), place, row)
            for place, totals in enumerate(self._totals)
            for row, total in enumerate(totals.tolist())
            if total > 0
        )[:LONGEST]
        best: dict[tuple[int, str], tuple[float, tuple[ChainLink, ...]]] = {}
        self._work = max(self._work, WORK // 4)
        for total, place, row in longest:
            if self._work <= 0:
                break
            hops = tuple(self._hops(place, row))
            worth = -total * (1 + 0.5 * (len(hops) - 1))
            end = hops[-1].rank, hops[-1].doing
            if worth > best.get(end, (0.0,))[0]:
                best[end] = worth, hops
        order = sorted(best, key=lambda end: (-self.cost(end[0]), -best[end][0]))
        return tuple(best[end][1] for end in order[:MOST_CHAINS])

    def _hops(self, place: int, row: int) -> Iterator[ChainLink]:
        for _ in range(DEEPEST):
            last, more, waited = self._late(place, row)
            (what, kind), _ = max(more.items(), key=lambda item: item[1], default=((OWN, ""), 0.0))
            following = max(waited, key=lambda one: waited[one]) if what == WAITING else None
            one = self._found[place]
            if following is not None:
                kind = self._job.groups[self._found[following[0]].group].title
            yield ChainLink(
                group=one.group,
                op=self._job.ops[int(one.op[row])],
                step=int(one.step[row]),
                rank=last,
                waited_us=float(self._waits[place][row].max()),
                doing=what,
                kind=kind,
            )
            if following is None:
                return
            place, row = following
