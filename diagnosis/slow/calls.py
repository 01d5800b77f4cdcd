"""The part of each rank's trace that is kept until all are read: calls as numbers, few spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from groups.running import Running

from .model import Lack, SlowGroup
from .trace import RankTrace, TraceGroup

MOST_SPANS = 4096
"""The most spans of computation of one rank; of more, the nearest are merged."""

MOST_RANKS = 10**7

MOST_CALLS = 4_000_000
"""The most collectives of all files of a job together."""

ONE_WAY = frozenset(("send", "recv"))
BETWEEN_TWO = frozenset(("sendrecv", "coalesced", "batchisendirecv"))
"""Calls without a peer: with more than two members, their ends are unknown."""


@dataclass(frozen=True)
class RankCalls:
    """The calls of one rank, in the order of their start; times in microseconds of its clock.

    Columns with one entry for each call:
        start, duration: when it ran.
        group: index in `JobCalls.groups`; -1: unknown.
        op: index in `JobCalls.ops`.
        sequence: the call's number in its group; -1: unknown.
        peer: the other rank of a send or a receive; -1: it has none.
        size: ranks of the group; -1: unknown.
    steps: a row (number, start, end) for each training step.
    """

    rank: int
    host: str
    start: np.ndarray
    duration: np.ndarray
    group: np.ndarray
    op: np.ndarray
    sequence: np.ndarray
    peer: np.ndarray
    size: np.ndarray
    steps: np.ndarray
    computation: np.ndarray
    data: np.ndarray
    optimizer: np.ndarray
    is_gpu: bool

    @property
    def step_of(self) -> np.ndarray:
        """The index in `steps` of each call, -1 outside of them."""
        starts, ends = self.steps[:, 1], self.steps[:, 2]
        place = np.searchsorted(starts, self.start, "right") - 1
        inside = (place >= 0) & (self.start <= ends[np.maximum(place, 0)])
        return np.where(inside, place, -1)


@dataclass
class JobCalls:
    """The calls of a job's ranks as their traces come; a rank's second trace is left out."""

    most: int = MOST_CALLS  # of all ranks; of further ones only the first are kept
    groups: list[SlowGroup] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    ranks: dict[int, RankCalls] = field(default_factory=dict)
    world: int | None = None
    running: Running | None = None
    unknown: int = 0  # calls whose group nothing says
    count: int = 0
    timed: bool = True  # whether it is known when calls began
    notes: set[Lack] = field(default_factory=set)
    _places: dict[object, int] = field(default_factory=dict)

    def taken(self, traces: Iterable[RankTrace]) -> Iterator[RankTrace]:
        """The traces, added on the way."""
        for trace in traces:
            self.add(trace)
            yield trace

    def add(self, trace: RankTrace) -> None:
        """Adds what is needed of a trace."""
        self.world = self.world or trace.world
        if trace.rank is None or trace.rank >= MOST_RANKS:
            self.notes.add("rank-unknown")
            return
        if trace.rank in self.ranks:
            self.notes.add("rank-twice")
            return
        self.running = self.running or trace.running
        known = trace.collectives[: max(0, self.most - self.count)]
        if len(known) < len(trace.collectives):
            self.notes.add("calls-left-out")
        self.count += len(known)
        places = {name: self._place(group) for name, group in trace.groups.items()}
        group = np.array([places.get(call.group or "", -1) for call in known], dtype=np.int64)
        self.unknown += int((group < 0).sum())
        columns = [
            [call.start for call in known],
            [call.duration for call in known],
            [self._op(call.kind) for call in known],
            [-1 if call.sequence is None else call.sequence for call in known],
            [self._peer(trace, one.group, one.peer, one.kind) for one in known],
            [-1 if call.size is None else call.size for call in known],
        ]
        start, duration = (np.array(column, dtype=np.float64) for column in columns[:2])
        op, sequence, peer, size = (np.array(column, dtype=np.int64) for column in columns[2:])
        if not trace.kernels:
            self.notes.add("no-kernels")
        self.ranks[trace.rank] = RankCalls(
            rank=trace.rank,
            host=trace.host,
            start=start,
            duration=duration,
            group=group,
            op=op,
            sequence=sequence,
            peer=peer,
            size=size,
            steps=_steps(trace, start, duration),
            computation=few(trace.computation),
            data=few(trace.data),
            optimizer=few(trace.optimizer),
            is_gpu=trace.kernels > 0,
        )

    def _place(self, group: TraceGroup) -> int:
        """The index of a group; two descriptions of the same kind and ranks are one group."""
        if not group.ranks or max(group.ranks) >= MOST_RANKS:
            return -1
        key = (group.kind or group.title, group.ranks)
        if key not in self._places:
            self._places[key] = len(self.groups)
            self.groups.append(SlowGroup(group.title, group.kind, group.ranks))
        return self._places[key]

    def _op(self, name: str) -> int:
        plain = name.lower().replace("_", "").removesuffix("base")
        plain = {"isend": "send", "irecv": "recv"}.get(plain, plain)
        if plain not in self.ops:
            self.ops.append(plain)
        return self.ops.index(plain)

    def _peer(self, trace: RankTrace, name: str | None, peer: int | None, kind: str) -> int:
        """The rank of the job that a send or receive is for: as recorded, or the only other one."""
        if self.ops[self._op(kind)] not in ONE_WAY:
            return -1
        group = trace.groups.get(name or "")
        ranks = (group.ranks if group else None) or ()
        if peer is not None and peer in ranks:
            return peer
        others = [rank for rank in ranks if rank != trace.rank] if len(ranks) == 2 else []
        return others[0] if others else -1


def _steps(trace: RankTrace, start: np.ndarray, duration: np.ndarray) -> np.ndarray:
    """Number, start and end of the profiler's steps; without them all that was recorded is one."""
    if trace.steps:
        return np.array([(one.number, one.start, one.start + one.duration) for one in trace.steps])
    ends = [*(start + duration), *trace.computation[-1:, 1]]
    starts = [*start, *trace.computation[:1, 0]]
    return np.array([(0, min(starts), max(ends))]) if starts else np.empty((0, 3))


def few(spans: np.ndarray, most: int = MOST_SPANS) -> np.ndarray:
    """At most ``most`` spans: where there are more, those with the smallest gaps are merged.

    >>> few(np.array([[0, 1], [2, 3], [9, 10]]), most=2).tolist()
    [[0, 3], [9, 10]]
    """
    if len(spans) <= most:
        return spans
    gaps = spans[1:, 0] - spans[:-1, 1]
    kept = np.sort(np.argsort(gaps, kind="stable")[::-1][: most - 1])
    starts = np.concatenate((spans[:1, 0], spans[kept + 1, 0]))
    ends = np.concatenate((spans[kept, 1], spans[-1:, 1]))
    return np.stack((starts, ends), axis=1)
