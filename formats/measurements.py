"""One measured number per rank, from CSV and JSON."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np

from groups.budget import spend
from groups.errors import LayoutError, quoted
from groups.mesh import whole_number
from groups.placement import Placement

from .errors import refusal

LONGEST_TEXT = 32_000_000
"""The longest text of measurements in characters: a million ranks."""

WORK_OF_A_LINE = 4
"""Units of a request's budget per line, beside its characters."""

RANK, HOST, LOCAL = ("rank", "global_rank"), ("host", "hostname", "node"), ("local_rank", "gpu")
"""Headings of the columns that identify a line's rank; the last other column is the number."""
PLACES = frozenset((*RANK, *HOST, *LOCAL))


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
    if _REPORT in text:
        read = _of_report
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


_REPORT = "Straggler Report at Step"
_SECTION = re.compile(r"\s{2}([\w.-]{1,80}):\s{0,9}$")
_OF_RANK = re.compile(r"Rank (\d{1,9}): ([\d.]{1,20}) ?ms")


def _of_report(text: str, placement: Placement | None) -> Iterable[Measured]:
    """The last report of FlagScale's straggler detector: of its sections the one in which a rank
    stands out most.

    Source: flagos-ai/FlagScale 16a2dd5 flagscale/train/straggler (its issue 938).
    """
    start = text.rfind(_REPORT)
    before = text.count("\n", 0, start)
    sections: list[list[Measured]] = []
    for number, line in enumerate(text[start:].splitlines(), before + 1):
        if _SECTION.search(line[-120:]):
            sections.append([])
        elif sections and (match := _OF_RANK.search(line[:400])):
            sections[-1].append((number, int(match[1]), float(match[2])))
    told = [section for section in sections if section]
    if not told:
        raise _refusal("no-measurements")
    return max(told, key=lambda section: _stands_out([cast("float", row[2]) for row in section]))


def _stands_out(values: Sequence[float]) -> float:
    """By how much the largest of some values is above their median, relative to it.

    >>> _stands_out([10.0, 10.0, 15.0])
    0.5
    """
    middle = float(np.median(values)) or 1.0
    return (max(values) - middle) / middle


_TIMES = ("_ms", "_us", "_s", "_seconds", "_sec")


def _telling(read: Iterable[Row], heading: Sequence[str]) -> Iterable[Row]:
    """The rows with the one of several columns of times in which a rank stands out most: what is
    slow in one part waits less in another, so that their sum and the last alone may say nothing."""
    times = [at for at, name in enumerate(heading) if str(name).lower().endswith(_TIMES)]
    others = [at for at, name in enumerate(heading) if str(name).lower() in PLACES]
    if len(times) < 2 or len(times) + len(others) != len(heading):
        return read
    rows = list(read)
    try:
        columns = {at: [float(str(cells[at])) for _, _, cells in rows] for at in times}
    except (ValueError, IndexError):
        return rows
    kept = max(columns, key=lambda at: _stands_out(columns[at]))
    shown = [*others, kept]
    return [(n, [heading[at] for at in shown], [cells[at] for at in shown]) for n, _, cells in rows]


def _of_csv(text: str, placement: Placement | None) -> Iterable[Measured]:
    numbered = enumerate(text.splitlines(), 1)
    lines = [(n, line) for n, line in numbered if line.strip() and not line.startswith("#")]
    if not lines:
        raise _refusal("no-measurements")
    between = next((mark for mark in ",;\t" if mark in lines[0][1]), " ")
    rows = ((n, _cells(line, between, n)) for n, line in lines)
    _, heading = next(rows)
    if not {*RANK, *HOST}.isdisjoint(map(str.lower, heading)):
        told = ((n, heading, cells) for n, cells in rows)
        return _of_table(_telling(told, heading), placement)
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
