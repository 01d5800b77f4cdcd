"""The summary of a trace, and of those of a job: how long collectives ran, hidden and exposed.

Of a rank, with C the time in which any kernel computes and G that in which any collective of a
group runs on the GPU (each moment counted once, as a union):

    busy = |G|        overlapped = |G and C|        exposed = busy - overlapped

For all groups together, overlapped / busy is `comp_comm_overlap_pctg` of Holistic Trace Analysis
(facebookresearch/HolisticTraceAnalysis f4d0062, hta/analyzers/communication_analysis.py). Of single
groups the sum may be more: collectives of two groups run at once. What a collective waits for
others is in its time, and a CPU's trace (Gloo) has no kernels, so that nothing is said of overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from groups.errors import LayoutError
from groups.layout import Layout
from groups.running import Running

from ..errors import refusal
from ..values import Document
from .spans import length, shared, union
from .trace import Collective, RankTrace, TraceGroup

VERSION = 1
MOST_KINDS = 64
"""The most kinds of calls of one group in one rank; the rest is "other"."""

NOTES = {
    "no-groups": "no process groups are listed (a single process, or traced on demand)",
    "no-kernels": "no GPU kernels: only the CPU was recorded, so that overlap is unknown",
    "groups-unknown": "of some collectives the group is not recorded",
    "events-unreadable": "some events have no time, and were left out",
}


@dataclass(frozen=True)
class Calls:
    """Calls of one kind and dtype; times in microseconds, bytes None if one call has none."""

    kind: str
    dtype: str | None
    count: int
    bytes: int | None
    total_us: float
    least_us: float
    most_us: float


@dataclass(frozen=True)
class GroupTime:
    """Time of one group's collectives on a rank; group None: unknown."""

    group: TraceGroup | None
    busy_us: float
    overlapped_us: float | None
    calls: tuple[Calls, ...]

    @property
    def exposed_us(self) -> float | None:
        return None if self.overlapped_us is None else self.busy_us - self.overlapped_us

    @property
    def count(self) -> int:
        return sum(calls.count for calls in self.calls)


@dataclass(frozen=True)
class RankSummary:
    """One rank; whole: of the collectives of all groups. step_us: median of its steps."""

    file: str
    rank: int | None
    world: int | None
    backend: str
    steps: int
    step_us: float | None
    computation_us: float | None
    whole: GroupTime
    groups: tuple[GroupTime, ...]
    notes: tuple[str, ...]


def summary_of(trace: RankTrace) -> RankSummary:
    """The summary of a rank's trace, groups in the order of the trace.

    >>> from .trace import TraceStep
    >>> call = Collective("1", "allreduce", start=0.0, duration=10.0)
    >>> tp = TraceGroup("1", "mesh_tp", "tp", (0, 1))
    >>> computed = np.array([[6.0, 20.0]])
    >>> trace = RankTrace("a", 0, 2, "nccl", None, {"1": tp}, (), (call,), computed, 2, 2)
    >>> whole = summary_of(trace).whole
    >>> whole.busy_us, whole.overlapped_us, whole.exposed_us
    (10.0, 4.0, 6.0)
    """
    computed = trace.computation if trace.kernels else None
    by_group: dict[str | None, list[Collective]] = {name: [] for name in trace.groups}
    for call in trace.collectives:
        by_group.setdefault(call.group, []).append(call)
    durations = [step.duration for step in trace.steps]
    return RankSummary(
        file=trace.file,
        rank=trace.rank,
        world=trace.world,
        backend=trace.backend,
        steps=len(durations),
        step_us=median(durations) if durations else None,
        computation_us=None if computed is None else length(computed),
        whole=_time_of(None, trace.collectives, computed),
        groups=tuple(
            _time_of(trace.groups.get(name or ""), calls, computed)
            for name, calls in by_group.items()
            if calls
        ),
        notes=trace.notes,
    )


def _time_of(
    group: TraceGroup | None, calls: Sequence[Collective], computed: np.ndarray | None
) -> GroupTime:
    starts = np.array([call.start for call in calls])
    covered = union(starts, starts + np.array([call.duration for call in calls]))
    overlapped = None if computed is None else shared(covered, computed)
    return GroupTime(group, length(covered), overlapped, tuple(_calls_of(calls)))


def _calls_of(calls: Sequence[Collective]) -> Iterable[Calls]:
    kinds = Counter((call.kind, call.dtype) for call in calls)
    common = {kind for kind, _ in kinds.most_common(MOST_KINDS)}
    alike: dict[tuple[str, str | None], list[Collective]] = {}
    for call in calls:
        kind = (call.kind, call.dtype)
        alike.setdefault(kind if kind in common else ("other", None), []).append(call)
    for (name, dtype), some in alike.items():
        times = [call.duration for call in some]
        sizes = [call.bytes for call in some if call.bytes is not None]
        size = sum(sizes) if len(sizes) == len(some) else None
        yield Calls(name, dtype, len(some), size, sum(times), min(times), max(times))


@dataclass(frozen=True)
class JobSummary:
    """The ranks of a job; layout: that makes the groups of one of them, None if unknown.

    groups: each once, by description, kind and ranks. why: what keeps the layout from being told.
    """

    world: int | None
    layout: Layout | None
    why: str
    groups: tuple[TraceGroup, ...]
    ranks: tuple[RankSummary, ...]

    def as_json(self) -> Document:
        """Plain values: groups once, and in each rank's times by their place in that list."""
        places = {_key(group): place for place, group in enumerate(self.groups)}
        return {
            "world_size": self.world,
            "groups": [
                {"name": one.title, "kind": one.kind, "ranks": one.ranks} for one in self.groups
            ],
            "ranks": [_rank_json(one, places) for one in self.ranks],
        }


def job_of(traces: Iterable[RankTrace], gpus_per_node: int = 8) -> JobSummary:
    """The summary of a job's traces; only summaries are held, one trace at a time.

    Errors: LayoutError ``traces-of-two-jobs`` where the worlds differ.
    """
    groups: dict[object, TraceGroup] = {}
    ranks: list[RankSummary] = []
    layout, why, worlds = None, "", dict[int, str]()
    for trace in traces:
        if trace.world is not None:
            worlds.setdefault(trace.world, trace.file)
            if len(worlds) > 1:
                (one, file), (other, second) = worlds.items()
                facts = {"one": one, "file": file, "other": other, "second": second}
                raise refusal("traces-of-two-jobs", "trace", **facts)
        for group in trace.groups.values():
            groups.setdefault(_key(group), group)
        if layout is None and trace.running is not None:
            try:
                layout, why = _layout_of(trace.running, gpus_per_node), ""
            except LayoutError as error:
                why = error.what
        ranks.append(summary_of(trace))
    found = tuple(sorted(groups.values(), key=lambda one: (len(one.ranks or ()), one.ranks or ())))
    ordered = sorted(ranks, key=lambda one: (one.rank is None, one.rank or 0, one.file))
    return JobSummary(next(iter(worlds), None), layout, why, found, tuple(ordered))


def _layout_of(running: Running, gpus_per_node: int) -> Layout:
    """The layout of a rank's groups.

    Errors: LayoutError as `Running.layout`, and if all groups have all ranks: they may be of any
    kind.
    """
    if running.world > 1 and not any(1 < len(one.ranks) < running.world for one in running.groups):
        raise refusal("groups-of-all-ranks", "trace")
    return running.layout(gpus_per_node)


def _key(group: TraceGroup) -> object:
    """A key that is equal for two ranks' descriptions of one group: torch's names of it may
    differ."""
    return group.title, group.kind, group.ranks


def _rank_json(one: RankSummary, places: Mapping[object, int]) -> Document:
    return {
        **{name: getattr(one, name) for name in ("file", "rank", "backend", "steps")},
        **{name: _rounded(getattr(one, name)) for name in ("step_us", "computation_us")},
        "communication": _time_json(one.whole),
        "groups": [
            {
                "group": None if time.group is None else places[_key(time.group)],
                **_time_json(time),
                "calls": [_calls_json(calls) for calls in time.calls],
            }
            for time in one.groups
        ],
        "notes": [*one.notes],
    }


def _time_json(time: GroupTime) -> Document:
    names = ("busy_us", "overlapped_us", "exposed_us")
    return {"count": time.count, **{name: _rounded(getattr(time, name)) for name in names}}


def _calls_json(calls: Calls) -> Document:
    return {name: _rounded(value) for name, value in vars(calls).items()}


def _rounded(value: object) -> object:
    """Microseconds to the thousandth, which is what traces have."""
    return round(value, 3) if isinstance(value, float) else value
