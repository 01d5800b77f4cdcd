"""NCCL's and RCCL's Inspector: JSON lines of each process, a line per collective.

A line names the communicator, the rank inside of it and how long the kernel ran; which rank of the
job that is, the communicator of all processes says: every process has its rank there. Since v4.3 a
``dump_stats`` line has that of all lines behind it.

Fields: NVIDIA/nccl ext-profiler/inspector/README.md (formats v4.0 to v4.3); ROCm/rccl has the same.
When a call began is told in verbose mode only (``event_trace_ts``). Without it a process's calls
stand one after the other, so that times between them say nothing: `timed` is False.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from diagnosis.slow.trace import Collective, RankTrace, TraceGroup, TraceStep
from groups.group_names import kind_of

from ..errors import refusal
from .bounds import TraceBounds

LONGEST_LINE = 65_536
MOST_RANKS = 1_000_000

Process = tuple[str, int]
"""Host and process id."""


@dataclass
class _Communicator:
    size: int
    name: str = ""
    members: dict[Process, int] = field(default_factory=dict)


@dataclass
class InspectorReading:
    """A reading of lines as they come, of one process or of all."""

    bounds: TraceBounds = field(default_factory=TraceBounds)
    communicators: dict[str, _Communicator] = field(default_factory=dict)
    calls: dict[Process, list[tuple[str, Collective]]] = field(default_factory=dict)
    timed: bool = True
    unreadable: int = 0
    count: int = 0
    _about: dict[str, Any] = field(default_factory=dict)

    def read(self, lines: Iterable[bytes]) -> None:
        """Adds the lines of a file."""
        self._about = {}
        for line in lines:
            text = line.strip()
            if text and len(text) <= LONGEST_LINE:
                self._line(text)
            elif text:
                self.unreadable += 1

    def _line(self, text: bytes) -> None:
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            self.unreadable += 1
            return
        if not isinstance(found, dict):
            self.unreadable += 1
            return
        if "header" in found or "id" in found:
            self._about = {**_part(found, "header", found), **_part(found, "metadata", found)}
        for what, op in (("coll_perf", "coll"), ("p2p_perf", "p2p")):
            if isinstance(found.get(what), dict):
                self._call(found[what], op)

    def _call(self, perf: Mapping[str, Any], op: str) -> None:
        about = self._about
        name, host, pid = about.get("id"), about.get("hostname", ""), about.get("pid", 0)
        rank, size = (_whole(about.get(key)) for key in ("rank", "n_ranks"))
        took, kind = _number(perf.get(f"{op}_exec_time_us")), perf.get(op)
        if rank is None or size is None or took is None or name is None or not rank < size:
            self.unreadable += 1
            return
        process = str(host)[:80], _whole(pid) or 0
        key = str(name)[:80]
        if key not in self.communicators:
            label = about.get("comm_name", about.get("name", ""))
            self.communicators[key] = _Communicator(min(size, MOST_RANKS), str(label)[:80])
        self.communicators[key].members[process] = rank
        self.count += 1
        limit = self.bounds.calls
        if self.count > limit:
            facts = {"file": "the lines", "what": "collectives", "limit": limit}
            raise refusal("trace-holds-too-much", "trace", **facts)
        begin = _began(perf)
        self.timed = self.timed and begin is not None
        call = Collective(
            group=key,
            kind=str(kind)[:80],
            start=begin or 0.0,
            duration=took,
            sequence=_whole(perf.get(f"{op}_sn")),
            bytes=_whole(perf.get(f"{op}_msg_size_bytes")),
            peer=_whole(perf.get("p2p_peer")),
        )
        self.calls.setdefault(process, []).append((key, call))

    def traces(self) -> Iterator[RankTrace]:
        """A trace for each process. Errors: LayoutError ``inspector-without-calls``,
        ``inspector-without-world``."""
        if not self.calls:
            raise refusal("inspector-without-calls", "trace")
        world = self._world()
        rank_of = world.members
        groups = {key: self._group(key, one, rank_of) for key, one in self.communicators.items()}
        whole = max(sum(call.duration for _, call in some) for some in self.calls.values())
        for process, some in sorted(self.calls.items(), key=lambda item: rank_of[item[0]]):
            calls = [self._placed(key, call, groups) for key, call in some]
            steps: tuple[TraceStep, ...] = ()
            if not self.timed:
                starts = np.concatenate(([0.0], np.cumsum([call.duration for call in calls])))
                calls = [call._replace(start=float(at)) for call, at in zip(calls, starts)]
                steps = (TraceStep(0, 0.0, whole),)
            mine = {key for key, _ in some}
            yield RankTrace(
                file=f"{process[0]}:{process[1]}",
                rank=rank_of[process],
                world=world.size,
                backend="nccl",
                running=None,
                groups={key: group for key, group in groups.items() if key in mine},
                steps=steps,
                collectives=tuple(sorted(calls, key=lambda call: call.start)),
                computation=np.empty((0, 2)),
                kernels=0,
                events=len(calls),
                notes=("events-unreadable",) if self.unreadable else (),
                host=process[0],
            )

    def _world(self) -> _Communicator:
        """The communicator of all processes, which has their ranks."""
        largest = max(self.communicators.values(), key=lambda one: one.size)
        if len(self.communicators) > 1 and {*self.calls} - {*largest.members}:
            lost = len({*self.calls} - {*largest.members})
            raise refusal("inspector-without-world", "trace", count=lost, size=largest.size)
        return largest

    def _group(self, key: str, one: _Communicator, rank_of: Mapping[Process, int]) -> TraceGroup:
        places = {place: rank_of[process] for process, place in one.members.items()}
        about, _, name = one.name.rpartition(":")
        is_whole = len(places) == one.size
        ranks = tuple(places[at] for at in sorted(places)) if is_whole else None
        return TraceGroup(key, about or one.name, kind_of(about or one.name, name), ranks)

    def _placed(self, key: str, call: Collective, groups: Mapping[str, TraceGroup]) -> Collective:
        """The call with its peer as a rank of the job."""
        ranks, place = groups[key].ranks or (), call.peer
        is_known = place is not None and place < len(ranks)
        return call._replace(peer=ranks[place] if is_known and place is not None else None)


def is_inspector(start: bytes) -> bool:
    """Whether a file is one of Inspector's, by its beginning.

    >>> is_inspector(b'{"header": {"id": "0x7f", "rank": 0, "n_ranks": 8}, "coll_perf": {}}')
    True
    """
    head = start[:8192]
    kinds = (b'"coll_perf"', b'"p2p_perf"', b'"dump_stats"')
    return b'"n_ranks"' in head and any(kind in head for kind in kinds)


def _part(found: Mapping[str, Any], name: str, otherwise: Mapping[str, Any]) -> Mapping[str, Any]:
    part = found.get(name)
    return part if isinstance(part, dict) else otherwise


def _began(perf: Mapping[str, Any]) -> float | None:
    """When the first of its kernels started, in microseconds, where the line says it."""
    kernels = _part(perf, "event_trace_ts", {}).get("kernel_events")
    if not isinstance(kernels, list):
        return None
    starts = [_number(one.get("kernel_start_ts")) for one in kernels if isinstance(one, dict)]
    known = [start for start in starts if start is not None]
    return min(known) if known else None


def _whole(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 2**62 else None
