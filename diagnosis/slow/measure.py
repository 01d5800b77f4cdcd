"""From the calls of all ranks to who waited for whom: `slowness_of`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .calls import JobCalls, RankCalls
from .charges import Charges
from .matching import SharedCalls, matched, offsets
from .model import AlignedCall, GroupTimeline, GroupWait, KindTime, Lack, Last, RankTime, Slowness
from .spans import length, shared, union

MOST_STEPS = 32
MOST_ROWS = 4096
"""Groups and steps that are told, those with most waiting first."""
MOST_LASTS = 8
"""Ranks of a group and step that came last."""
MOST_TIMELINES, MOST_CALLS, MOST_MEMBERS = 12, 48, 64
"""Groups that are drawn, calls of each, and ranks of such a group."""


def slowness_of(job: JobCalls) -> Slowness:
    """The waiting in the traces of a job."""
    found = matched(job)
    ranks = sorted(job.ranks)
    steps = _common_steps(job, ranks)
    clocks = offsets(found, ranks)
    waited = _waited(found)
    charges = Charges(job, found, clocks)
    times = tuple(_time_of(job, job.ranks[rank], waited, steps, charges) for rank in ranks)
    calls = sum(one.calls.size for one in found)
    everything = sum(len(one.start) for one in job.ranks.values())
    waits = sorted(_group_waits(found, steps), key=lambda one: -one.waited_us)
    notes: set[Lack] = {*job.notes}
    if not job.timed:
        notes.add("no-times")
    if job.unknown:
        notes.add("groups-unknown")
    if steps == (0,):
        notes.add("steps-unnumbered")
    if len(waits) > MOST_ROWS:
        notes.add("rows-left-out")
    return Slowness(
        world=job.world,
        steps=steps,
        groups=tuple(job.groups),
        ranks=times,
        waits=tuple(waits[:MOST_ROWS]),
        chains=charges.chains() if job.timed else (),
        timelines=tuple(_timelines(job, found)),
        calls=calls,
        unmatched=everything - calls,
        clocks_us=float(np.ptp([*clocks.values()])) if clocks else 0.0,
        running=job.running,
        notes=tuple(sorted(notes)),
    )


def _common_steps(job: JobCalls, ranks: Sequence[int]) -> tuple[int, ...]:
    """Numbers of the steps that every trace has; of many the last ones."""
    numbers = [{*job.ranks[rank].steps[:, 0].astype(int).tolist()} for rank in ranks]
    return tuple(sorted(set.intersection(*numbers))[-MOST_STEPS:]) if numbers else ()


def _waited(found: Sequence[SharedCalls]) -> dict[int, np.ndarray]:
    """By rank: the index of the call and its waiting time, an array (n, 2)."""
    parts: dict[int, list[np.ndarray]] = defaultdict(list)
    for one in found:
        waits = one.waits
        for at, rank in enumerate(one.ranks):
            parts[rank].append(np.stack((one.calls[:, at], waits[:, at]), axis=1))
    return {rank: np.concatenate(some) for rank, some in parts.items()}


# -- a rank ----------------------------------------------------------------------------------------


def _time_of(
    job: JobCalls,
    one: RankCalls,
    waited: Mapping[int, np.ndarray],
    steps: Sequence[int],
    charges: Charges,
) -> RankTime:
    wait = np.zeros(len(one.start))
    for place, long in waited.get(one.rank, np.empty((0, 2))):
        wait[int(place)] = long
    bounds = {int(number): (start, end) for number, start, end in one.steps}
    windows = [bounds[number] for number in steps]
    count = max(1, len(windows))
    busy = union(one.start, one.start + one.duration)
    waiting = union(one.start, one.start + wait)
    own, lost = [], 0.0
    for window in windows:
        inside = np.array([window])
        within = window[1] - window[0]
        own.append(float(within - _exposed(busy, inside, one.computation)))
        lost += _exposed(waiting, inside, one.computation)
    parts = [_in(spans, windows) / count for spans in (one.computation, one.data, one.optimizer)]
    return RankTime(
        rank=one.rank,
        host=one.host,
        step_us=float(sum(end - start for start, end in windows)) / count,
        own_us=tuple(own),
        lost_us=lost / count,
        cost_us=charges.cost(one.rank) / count,
        computation_us=parts[0] if one.is_gpu else None,
        data_us=parts[1],
        optimizer_us=parts[2],
        kinds=tuple(_kinds(job, one, wait, windows)),
        before=charges.before(one.rank, count),
    )


def _in(spans: np.ndarray, windows: Sequence[tuple[float, float]]) -> float:
    return shared(np.array(windows), spans) if windows else 0.0


def _exposed(spans: np.ndarray, inside: np.ndarray, computation: np.ndarray) -> float:
    """Time of spans in a window, without the time in which kernels compute."""
    cut = np.clip(spans, inside[0, 0], inside[0, 1])
    cut = cut[cut[:, 1] > cut[:, 0]]
    return length(cut) - shared(cut, computation)


def _kinds(
    job: JobCalls, one: RankCalls, wait: np.ndarray, windows: Sequence[tuple[float, float]]
) -> Iterator[KindTime]:
    kinds = [group.title for group in job.groups]
    of_call = [kinds[place] if place >= 0 else "" for place in one.group.tolist()]
    count = max(1, len(windows))
    names = np.array(of_call)
    for kind in sorted({*of_call}):
        mine = names == kind
        start, took = one.start[mine], one.duration[mine]
        busy = union(start, start + took)
        waiting = union(start, start + wait[mine])
        exposed = hidden = waits = 0.0
        for window in windows:
            inside = np.array([window])
            bare = _exposed(busy, inside, one.computation)
            exposed += bare
            hidden += shared(inside, busy) - bare
            waits += _exposed(waiting, inside, one.computation)
        yield KindTime(kind, exposed / count, hidden / count, waits / count)


# -- groups ----------------------------------------------------------------------------------------


def _group_waits(found: Sequence[SharedCalls], steps: Sequence[int]) -> Iterator[GroupWait]:
    """A row for each group and step; pairs of senders and receivers of a group together."""
    rows: dict[tuple[int, int], list[tuple[SharedCalls, np.ndarray]]] = defaultdict(list)
    for one in found:
        for step in {*one.step.tolist()} & {*steps}:
            rows[one.group, step].append((one, np.flatnonzero(one.step == step)))
    for (group, step), parts in rows.items():
        times: Counter[int] = Counter()
        waited: Counter[int] = Counter()
        late: dict[int, float] = defaultdict(float)
        calls, transfer = 0, 0.0
        for one, at in parts:
            waits, lasts = one.waits[at], one.lasts[at]
            calls += len(at)
            transfer += float(one.durations[at].min(axis=1).sum())
            behind = np.median(_others(waits, lasts), axis=1)
            for row, last in enumerate(lasts.tolist()):
                rank = one.ranks[last]
                times[rank] += 1
                waited[rank] += waits[row].sum()
                late[rank] += behind[row]
        by_waiting = sorted(waited, key=lambda rank: -waited[rank])[:MOST_LASTS]
        yield GroupWait(
            group,
            step,
            calls,
            float(sum(waited.values())),
            transfer,
            tuple(
                Last(rank, times[rank], float(waited[rank]), float(late[rank] / times[rank]))
                for rank in by_waiting
            ),
        )


def _others(waits: np.ndarray, lasts: np.ndarray) -> np.ndarray:
    """The waiting of all but the last of each row."""
    kept = np.ones(waits.shape, dtype=bool)
    kept[np.arange(len(waits)), lasts] = False
    return waits[kept].reshape(len(waits), -1)


def _timelines(job: JobCalls, found: Sequence[SharedCalls]) -> Iterator[GroupTimeline]:
    """The groups of each kind with most waiting, each kind's first."""
    totals: Counter[int] = Counter()
    parts: dict[int, list[SharedCalls]] = defaultdict(list)
    for one in found:
        totals[one.group] += one.waits.sum()
        parts[one.group].append(one)
    seen: Counter[str] = Counter()
    order = list[tuple[int, int, int]]()
    for group, _ in totals.most_common():
        seen[job.groups[group].title] += 1
        order.append((seen[job.groups[group].title], len(order), group))
    for _, _, group in sorted(order)[:MOST_TIMELINES]:
        yield _timeline(job, group, parts[group])


def _timeline(job: JobCalls, group: int, parts: Sequence[SharedCalls]) -> GroupTimeline:
    """Calls around those with most waiting, in their order by the first member's clock."""
    members = job.groups[group].ranks[:MOST_MEMBERS]
    rows = [
        (float(one.starts[row, 0] + one.durations[row, 0]), one, row)
        for one in parts
        for row in range(len(one.calls))
    ]
    rows.sort(key=lambda row: row[0])
    worst = max(range(len(rows)), key=lambda at: rows[at][1].waits[rows[at][2]].sum())
    first = max(0, min(worst - MOST_CALLS // 2, len(rows) - MOST_CALLS))
    shown = rows[first : first + MOST_CALLS]
    calls = []
    for end, one, row in shown:
        took = dict(zip(one.ranks, one.durations[row].tolist()))
        calls.append(
            AlignedCall(
                op=job.ops[int(one.op[row])],
                step=int(one.step[row]),
                end_us=end - shown[0][0],
                took_us=tuple(took.get(rank) for rank in members),
                last=one.ranks[int(one.lasts[row])],
            )
        )
    return GroupTimeline(group, tuple(calls), len(rows) - len(shown))
