"""``nsys stats --format csv`` of one process: NCCL's kernels or ranges, and kernels that compute.

Of the reports ``cuda_gpu_trace`` (kernels: Start, Duration, ..., Name) and ``nvtx_gpu_proj_trace``
(ranges as the GPU ran them: Name, Projected Start, Projected Duration, ...), documented in Nsight
Systems, Post-Collection Analysis Guide. Units stand in the headings. Neither says a communicator:
groups are those that fit in one way only (`diagnosis.slow.unnamed`), and the rank is that of the
file's name.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from diagnosis.slow.spans import Spans
from diagnosis.slow.trace import Collective, RankTrace
from groups.errors import quoted

from ..errors import refusal
from .bounds import TraceBounds
from .rank import communicates, computes, kernel_kind

_UNITS = {"ns": 1e-3, "us": 1.0, "usec": 1.0, "ms": 1e3, "msec": 1e3, "s": 1e6, "sec": 1e6}
_COLUMN = re.compile(r"(?:Projected )?(Start|Duration) ?\((\w{1,5})\)$")
_RANGE = re.compile(r"(?:NCCL:)?nccl([A-Z][A-Za-z]{1,40})$")
_RANK = re.compile(r"(\d{1,7})\D{0,40}$")
LONGEST_CELL = 65_536


def is_nsys(start: bytes) -> bool:
    """Whether a file is such a report, by its beginning.

    >>> is_nsys(b'Start (ns),Duration (ns),CorrId,Device,Name')
    True
    """
    text = start[:8192].decode("utf-8", "replace")
    return any("Duration (" in line and "Name" in line for line in text.splitlines())


def read_nsys(lines: Iterable[str], name: str, bounds: TraceBounds | None = None) -> RankTrace:
    """The trace of a report.

    >>> rows = ["Start (ns),Duration (ns),Device,Name", "5000,2000,0,gemm",
    ...         "9000,1000,0,ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)"]
    >>> trace = read_nsys(rows, "report-rank3.csv")
    >>> trace.rank, trace.collectives[0][:4], trace.computation.tolist()
    (3, (None, 'allreduce', 9.0, 1.0), [[5.0, 7.0]])

    Errors: LayoutError ``not-nsys``, ``trace-holds-too-much``.
    """
    bounds = bounds or TraceBounds()
    computation, calls, kernels, unreadable = Spans(), list[Collective](), 0, 0
    for label, times in _rows(lines, name):
        if times is None:
            unreadable += 1
            continue
        found = _RANGE.match(label)
        if found or communicates(label):
            kind = found[1].lower() if found else kernel_kind(label)
            calls.append(Collective(None, kind, *times))
        elif computes(label):
            computation.add(*times)
        kernels += not found
        if len(calls) > bounds.collectives or len(computation) > bounds.busy:
            what, limit = ("collectives", bounds.collectives)
            raise refusal(
                "trace-holds-too-much", "trace", file=quoted(name), what=what, limit=limit
            )
    rank = _RANK.search(name)
    notes = {"no-groups": True, "groups-unknown": bool(calls), "events-unreadable": unreadable > 0}
    return RankTrace(
        file=name,
        rank=int(rank[1]) if rank else None,
        world=None,
        backend="nccl",
        running=None,
        groups={},
        steps=(),
        collectives=tuple(sorted(calls, key=lambda call: call.start)),
        computation=computation.union(),
        kernels=kernels,
        events=kernels + len(calls),
        notes=tuple(note for note, holds in notes.items() if holds),
    )


def _rows(lines: Iterable[str], name: str) -> Iterator[tuple[str, tuple[float, float] | None]]:
    """Name, and start and duration in microseconds, of each row behind the heading."""
    columns: dict[str, tuple[int, float]] = {}
    label = -1
    for cells in _cells(lines):
        if not columns:
            found = {at: _COLUMN.match(cell.strip()) for at, cell in enumerate(cells)}
            columns = {
                match[1]: (at, _UNITS[match[2]])
                for at, match in found.items()
                if match and match[2] in _UNITS
            }
            label = cells.index("Name") if "Name" in cells else -1
            if len(columns) < 2 or label < 0:
                columns = {}
            continue
        if len(cells) <= max(label, *(at for at, _ in columns.values())):
            if any(cells):
                yield "", None
            continue
        yield cells[label], _times(cells, columns)
    if not columns:
        raise refusal("not-nsys", "trace", file=quoted(name))


def _cells(lines: Iterable[str]) -> Iterator[list[str]]:
    short = (line.replace("\0", "") for line in lines if len(line) <= LONGEST_CELL)
    rows = csv.reader(short)
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield ["?"]


def _times(cells: list[str], columns: dict[str, tuple[int, float]]) -> tuple[float, float] | None:
    try:
        start, took = (
            float(cells[columns[what][0]]) * columns[what][1] for what in ("Start", "Duration")
        )
    except ValueError:
        return None
    return (start, took) if abs(start) < 1e18 and 0 <= took < 1e18 else None
