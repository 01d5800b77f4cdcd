"""One measured number per rank, and the groups and stages that are slow by them.

The law is that of Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993): among values of
one kind, with median m and MAD the median of |x - m|,

    deviations(x) = 0.6745 * (x - m) / MAD        slow: more than 3.5 in the worse direction

or, where more than half of the values are equal (MAD 0), (x - m) / (1.2533 * mean |x - m|). One of
four stands 3.2 of these from three equal ones however far it is, so what is SURE away from equal
ones is slow too. A group counts by the median of its ranks, so that one rank does not make its
groups slow; a value within LEAST of the median is never slow, however alike the others are.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from groups.budget import spend
from groups.errors import LayoutError, not_a_choice, quoted
from groups.grouping import Grouping
from groups.mesh import whole_number
from groups.placement import Placement

from .errors import refusal

LONGEST_TEXT = 32_000_000
"""The longest text of measurements in characters: a million ranks."""

WORK_OF_A_LINE = 4
"""Units of a request's budget per line, beside its characters."""

THRESHOLD = 3.5
LEAST, SURE = 0.02, 0.1
"""Shares of the median: smaller differences do not count; larger ones count even if more than half
of the values are equal."""

RANK, HOST, LOCAL = ("rank", "global_rank"), ("host", "hostname", "node"), ("local_rank", "gpu")
"""Headings of the columns that identify a line's rank; the last other column is the number."""
PLACES = frozenset((*RANK, *HOST, *LOCAL))


@dataclass(frozen=True)
class Slow:
    """A rank, group or stage that stands out: its value, and by how many deviations."""

    names: tuple[str, ...]  # all of this very group, "rank" and "stage" among them
    indices: tuple[int, ...]  # under each of its names
    value: float
    times: float
    ranks: tuple[int, ...]


def read_measurements(text: str, world: int, placement: Placement | None = None) -> np.ndarray:
    """One number for each rank: float64, shape (world,), NaN where the text has none.

    CSV with the columns rank and value; with host and local_rank (or gpu) and value; a line a host
    with a number for each of its GPUs; JSON [numbers], {rank: number} or [{"rank": ..}].

    placement: which ranks a host has; needed where the text names hosts.

    >>> read_measurements("rank,ms\\n0,10.5\\n2,11", world=3).tolist()
    [10.5, nan, 11.0]

    Errors: LayoutError for a bad number, a rank that the world lacks or that stands twice, a
    host that is not the job's.
    """
    world = whole_number(world, "world")
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise _bad(text, 1)
    spend(len(text) // 10, "characters", control="measurements")
    read = _of_json if text.lstrip()[:1] in ("[", "{") else _of_csv
    values = [math.nan] * world
    for line, rank, value in read(text, placement):
        if not 0 <= rank < world:
            raise _refusal("no-such-rank", rank=quoted(rank), first=0, last=world - 1)
        if not math.isnan(values[rank]):
            raise _refusal("measurement-twice", rank=rank)
        values[rank] = _number(value, line)
    if all(map(math.isnan, values)):
        raise _refusal("no-measurements")
    return np.array(values)


def _number(value: object, line: int) -> float:
    try:
        number = float(cast("str", value))  # what is none is refused
    except (TypeError, ValueError, OverflowError):
        raise _bad(value, line) from None
    if isinstance(value, bool) or not math.isfinite(number):
        raise _bad(value, line)
    return number


def _refusal(code: str, **facts: object) -> LayoutError:
    return refusal(code, "measurements", **facts)


def _bad(value: object, line: int) -> LayoutError:
    return _refusal("bad-measurements", value=quoted(value), line=line)


Measured = tuple[int, int, object]
"""Line, rank and value."""
Row = tuple[int, Sequence[str], Sequence[object]]
"""Line, headings of its columns, cells."""


def _of_json(text: str, placement: Placement | None) -> Iterable[Measured]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _bad(text[:40], 1) from None
    if isinstance(document, dict):
        return ((1, _whole(rank, 1), value) for rank, value in document.items())
    if not document or not all(isinstance(record, dict) for record in document):
        return ((rank + 1, rank, value) for rank, value in enumerate(document) if value is not None)
    rows = ((line, [*record], [*record.values()]) for line, record in enumerate(document, 1))
    return _of_table(rows, placement)


def _of_csv(text: str, placement: Placement | None) -> Iterable[Measured]:
    numbered = enumerate(text.splitlines(), 1)
    lines = [(n, line) for n, line in numbered if line.strip() and not line.startswith("#")]
    if not lines:
        raise _refusal("no-measurements")
    between = next((mark for mark in ",;\t" if mark in lines[0][1]), " ")
    rows = ((n, _cells(line, between, n)) for n, line in lines)
    _, heading = next(rows)
    if not {*RANK, *HOST}.isdisjoint(map(str.lower, heading)):
        return _of_table(((n, heading, cells) for n, cells in rows), placement)
    pairs = [(lines[0][0], heading), *rows]
    if any(len(cells) != 2 for _, cells in pairs):
        raise _refusal("no-measurements")
    return ((n, _whole(rank, n), value) for n, (rank, value) in pairs)


def _cells(line: str, between: str, number: int) -> list[str]:
    spend(WORK_OF_A_LINE, "lines", control="measurements")
    try:
        rows = [line.split()] if between == " " else csv.reader([line], delimiter=between)
        return [cell.strip() for cell in next(iter(rows))]
    except csv.Error:
        raise _bad(line, number) from None


def _of_table(rows: Iterable[Row], placement: Placement | None) -> Iterator[Measured]:
    """Rows that name a rank, a GPU of a host, or all GPUs of a host."""
    ranks: dict[str, list[int]] = {}
    if placement is not None:
        for rank, node in enumerate(placement.nodes.tolist()):
            ranks.setdefault(placement.hosts[node], []).append(rank)
    known: Sequence[str] = ()
    for line, heading, cells in rows:
        if heading != known:
            known, columns = heading, [name.lower() for name in heading]
            rank_at, host_at, local_at = (
                next((columns.index(name) for name in names if name in columns), None)
                for names in (RANK, HOST, LOCAL)
            )
            last = max((at for at, name in enumerate(columns) if name not in PLACES), default=-1)
        if rank_at is not None:
            if last < 0:
                raise _refusal("no-measurements")
            yield line, _whole(_cell(cells, rank_at, line), line), _cell(cells, last, line)
            continue
        host = None if host_at is None else _cell(cells, host_at, line)
        if host not in ranks:
            raise _refusal("measurement-of-no-host", host=quoted(host))
        values = [cell for at, cell in enumerate(cells) if at not in (host_at, local_at)]
        places = ranks[host]
        if local_at is not None:
            local = _whole(_cell(cells, local_at, line), line)
            places, values = places[local : local + 1], values[-1:]
        if not values or len(values) != len(places):
            raise _bad(",".join(map(str, cells)), line)
        for rank, value in zip(places, values):
            if value or local_at is not None:
                yield line, rank, value


def _whole(value: object, line: int) -> int:
    if type(value) is int and 0 <= value < 10**9:
        return value
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise _bad(value, line)
    return int(text)


def _cell(cells: Sequence[object], at: int, line: int) -> object:
    if at >= len(cells):
        raise _bad(",".join(map(str, cells)), line)
    return cells[at]


# -- what is slow ----------------------------------------------------------------------------------


def deviations(values: np.ndarray) -> np.ndarray:
    """How far each value is from the median of those known, in robust deviations; NaN stays NaN.

    >>> deviations(np.array([10.0, 11.0, 12.0, 30.0])).round(1).tolist()
    [-1.0, -0.3, 0.3, 12.5]
    """
    known = values[~np.isnan(values)]
    median = np.median(known)
    away = np.abs(known - median)
    mad = np.median(away)
    scale = mad / 0.6745 if mad else 1.2533 * away.mean()
    return (values - median) / scale if scale else np.where(np.isnan(values), np.nan, 0.0)


def slow(values: np.ndarray, every: Mapping[str, Grouping], *, worse: str = "high") -> list[Slow]:
    """The ranks, groups and stages that stand out in the worse direction, the worst first.

    values: one number a rank, NaN for none. worse: "high" (times, temperatures) or "low"
    (bandwidths). A stage is all ranks with one place in the pipeline.

    >>> from groups.megatron import groupings
    >>> step = np.array([10.0, 10.1, 9.9, 10.0, 10.1, 10.0, 14.0, 14.1])
    >>> late = slow(step, groupings(8, tp=2))
    >>> [(group.names[0], group.indices[0], group.ranks) for group in late]
    [('rank', 7, (7,)), ('tp', 3, (6, 7)), ('rank', 6, (6,))]

    Errors: LayoutError for another word than high or low.
    """
    if worse not in ("high", "low"):
        raise not_a_choice("worse", worse, ("high", "low"), [{"worse": "high"}, {"worse": "low"}])
    sign = 1.0 if worse == "high" else -1.0
    outliers = _standing_out("rank", values, np.arange(len(values)), sign)
    indices = {
        name: grouping.index()
        for name, grouping in every.items()
        if 1 < grouping.size < len(values)
    }
    pipeline = every.get("pp")
    if pipeline is not None and pipeline.size > 1:
        indices["stage"] = _stages(pipeline)
    for name, index in indices.items():
        outliers += _standing_out(name, values, index, sign)
    return sorted(_once(outliers), key=lambda grouping: -grouping.times)


def _once(outliers: Iterable[Slow]) -> list[Slow]:
    by_ranks: dict[tuple[int, ...], Slow] = {}
    for outlier in outliers:
        same = by_ranks.get(outlier.ranks)
        if same is not None:
            names, indices = (*same.names, *outlier.names), (*same.indices, *outlier.indices)
            outlier = replace(
                same, names=names, indices=indices, times=max(same.times, outlier.times)
            )
        by_ranks[outlier.ranks] = outlier
    return list(by_ranks.values())


def _stages(pipeline: Grouping) -> np.ndarray:
    """The stage of each rank: its place in its pipeline."""
    stages = np.zeros(pipeline.world_size, dtype=np.int64)
    for stage, ranks in enumerate(np.asarray(pipeline.groups()).T):
        stages[ranks - pipeline.mesh.offset] = stage
    return stages


def _standing_out(kind: str, values: np.ndarray, index: np.ndarray, sign: float) -> list[Slow]:
    """The groups of one kind whose median is worse than the others' by more than THRESHOLD."""
    medians, ranks, bounds = medians_of(values, index)
    known = medians[~np.isnan(medians)]
    if len(known) < 3:
        return []
    away, middle = sign * deviations(medians), np.median(known)
    worse = sign * (medians - middle)
    is_slow = (away > THRESHOLD) & (worse > LEAST * abs(middle))
    if middle and not np.median(abs(known - middle)):
        is_slow |= worse > SURE * abs(middle)
    return [
        Slow(
            (kind,),
            (at,),
            float(medians[at]),
            round(float(away[at]), 1),
            tuple(sorted(ranks[bounds[at] : bounds[at + 1]].tolist())),
        )
        for at in np.flatnonzero(is_slow).tolist()
    ]


def medians_of(values: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The median of each group's known values, NaN without any; the ranks, group by group; and the
    start of each group among them, with the end of the last.

    index: the group of each rank, -1 for none.
    """
    order = np.lexsort((values, index))  # not a number comes last
    order = order[index[order] >= 0]
    starts = np.flatnonzero(np.diff(index[order], prepend=-1))
    ranked = values[order]
    known = np.add.reduceat((~np.isnan(ranked)).astype(np.int64), starts)
    medians = (ranked[starts + (known - 1) // 2] + ranked[starts + known // 2]) / 2
    return medians, order, np.append(starts, len(order))
