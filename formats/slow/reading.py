"""Traces or a summary of them, as files on a disk or as bytes, to what they say about waiting."""

from __future__ import annotations

import io
from collections.abc import Mapping

from groups.errors import LayoutError

from ..errors import refusal
from ..traces import read_trace
from ..traces.bounds import TraceBounds
from .calls import JobCalls
from .files import is_summary, read_summary
from .measure import slowness_of
from .model import Slowness


def read_evidence(files: Mapping[str, bytes], bounds: TraceBounds | None = None) -> Slowness:
    """What files say: one summary, or traces of several ranks, compressed or not.

    >>> read_evidence({"a.json": b"{}"})
    Traceback (most recent call last):
    ...
    groups.errors.LayoutError: 'a.json' is not a trace of PyTorch's profiler: ...

    Errors: LayoutError ``no-evidence`` without files, as `read_summary`, and as `read_trace` where
    no file is a trace; some that are none among others are a note.
    """
    if not files:
        raise refusal("no-evidence", "trace")
    for name, content in files.items():
        if is_summary(content):
            return read_summary(content, name)
    job = JobCalls()
    refused: list[LayoutError] = []
    for name, content in files.items():
        try:
            job.add(read_trace(io.BytesIO(content), name, bounds))
        except LayoutError as error:
            refused.append(error)
    if len(refused) == len(files):
        raise refused[0]
    if refused:
        job.notes.add("file-unreadable")
    return slowness_of(job)
