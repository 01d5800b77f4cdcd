"""Reads files about waiting of any kind into one `Slowness`.

A summary stands alone. Traces of PyTorch's profiler, lines of NCCL's or RCCL's Inspector, reports
of Nsight Systems and logs with Megatron's timers may come together; where there are calls, these
are compared, else the timers speak.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from diagnosis.slow.calls import JobCalls
from diagnosis.slow.measure import slowness_of
from diagnosis.slow.model import Slowness
from diagnosis.slow.unnamed import with_groups
from groups.errors import LayoutError
from groups.layout import Layout

from ..errors import refusal
from ..traces import read_trace
from ..traces.bounds import TraceBounds
from ..traces.inspector import InspectorReading, is_inspector
from ..traces.nsys import is_nsys, read_nsys
from ..traces.stream import GZIP
from .files import LARGEST, is_summary, read_summary
from .timers import TimerReading

START = 65_536
"""Bytes that suffice to recognise a file."""
LONGEST_LINE = 262_144


def read_evidence(
    files: Mapping[str, bytes], layout: Layout | None = None, bounds: TraceBounds | None = None
) -> Slowness:
    """Reads files: one summary, or traces and logs of several ranks.

    layout: whose groups calls may be of that name none.

    >>> read_evidence({"a.json": b"{}"})
    Traceback (most recent call last):
    ...
    groups.errors.LayoutError: 'a.json' is not a trace of PyTorch's profiler: ...

    Errors: LayoutError ``no-evidence`` without files, as `read_summary`, and as their readers where
    no file can be read; some that cannot, among others, are a note.
    """
    if not files:
        raise refusal("no-evidence", "trace")
    reading = SlowReading(bounds)
    for name, content in files.items():
        reading.add(name, io.BytesIO(content))
    return reading.slowness(layout)


class SlowReading:
    """A reading of files as they come."""

    def __init__(self, bounds: TraceBounds | None = None) -> None:
        self.bounds = bounds or TraceBounds()
        self.job = JobCalls(self.bounds.calls)
        self.refused: list[LayoutError] = []
        self._summary: Slowness | None = None
        self._inspector, self._timers = InspectorReading(self.bounds), TimerReading()
        self._has_log = False

    def add(self, name: str, file: BinaryIO) -> None:
        """Reads a file, open for reading bytes from its start; keeps a refusal."""
        try:
            self._reader(name, file)()
        except LayoutError as error:
            self.refused.append(error)

    def _reader(self, name: str, file: BinaryIO) -> Callable[[], None]:
        start = file.read(START)
        file.seek(0)
        if start.startswith(GZIP):
            return lambda: self.job.add(read_trace(file, name, self.bounds))
        if is_inspector(start):
            return lambda: self._inspector.read(lines_of(file))
        if is_summary(start):
            return lambda: self._add_summary(name, file)
        if is_nsys(start):
            texts = (line.decode("utf-8", "replace") for line in lines_of(file))
            return lambda: self.job.add(read_nsys(texts, name, self.bounds))
        if not start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            return lambda: self._add_log(file)
        return lambda: self.job.add(read_trace(file, name, self.bounds))

    def _add_summary(self, name: str, file: BinaryIO) -> None:
        self._summary = read_summary(file.read(LARGEST + 1), name)

    def _add_log(self, file: BinaryIO) -> None:
        self._has_log = True
        self._timers.read(line.decode("utf-8", "replace") for line in lines_of(file))

    def slowness(self, layout: Layout | None = None) -> Slowness:
        """The result. Errors: as `read_evidence`."""
        if self._summary is not None:
            return self._summary
        if self._inspector.calls:
            self.job.timed = self._inspector.timed
            for trace in self._inspector.traces():
                self.job.add(trace)
        if not self.job.ranks and self._has_log:
            return self._timers.slowness()
        if not self.job.ranks and self.refused:
            raise self.refused[0]
        if not self.job.ranks and not self.job.notes:
            raise refusal("inspector-without-calls", "trace")
        if self.refused:
            self.job.notes.add("file-unreadable")
        return slowness_of(with_groups(self.job, layout))


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, without those that are too long."""
    whole = True
    while line := file.readline(LONGEST_LINE):
        is_end = line.endswith(b"\n")
        if whole and (is_end or len(line) < LONGEST_LINE):
            yield line
        whole = is_end
