"""A pipeline's step as a trace that Perfetto and Chrome open (ui.perfetto.dev, chrome://tracing).

The JSON object form of the Trace Event Format: complete events ("ph": "X") with ``ts`` and ``dur``
in microseconds, and metadata ("ph": "M") that names processes and threads. A schedule is a process
and a pipeline rank a thread of it.

Source: Trace Event Format (Google, docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSs
KchNAySU), as perfetto.dev/docs/getting-started/other-formats says that it is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

UNIT = 1000.0
"""Microseconds that stand for one unit of the schedule's own time: a millisecond."""

Row = Sequence[tuple[str, float, float]]
"""(op, start, end) of all ops of one rank."""

_OP = re.compile(r"(\d+)([A-Z])(\d+)")
NAMES = {"F": "forward", "B": "backward", "I": "backward for inputs", "W": "backward for weights"}


def chrome_trace(schedules: Mapping[str, Sequence[Row]], ranks: Sequence[int] = ()) -> str:
    """Some schedules, each with a row of ops a rank, as the text of a trace.

    ranks: what the ranks are called; else they count from 0.

    >>> found = json.loads(chrome_trace({"1F1B": [[("0F3", 0.0, 1.5)]]}))["traceEvents"]
    >>> {name: found[-1][name] for name in ("name", "ph", "ts", "dur", "pid", "tid")}
    {'name': 'F3', 'ph': 'X', 'ts': 0.0, 'dur': 1500.0, 'pid': 0, 'tid': 0}
    """
    events: list[dict[str, Any]] = []
    for process, (title, rows) in enumerate(schedules.items()):
        events.append(_named("process_name", process, 0, title))
        for thread, row in enumerate(rows):
            rank = ranks[thread] if ranks else thread
            events.append(_named("thread_name", process, thread, f"pp {thread}, rank {rank}"))
            events += _events(row, process, thread)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":"))


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _events(row: Row, process: int, thread: int) -> Iterator[dict[str, Any]]:
    for op, start, end in row:
        parts = [(kind, int(stage), int(batch)) for stage, kind, batch in _OP.findall(op)]
        yield {
            "name": " & ".join(f"{kind}{batch}" for kind, _, batch in parts) or op,
            "cat": " & ".join(NAMES.get(kind, kind) for kind, *_ in parts),
            "ph": "X",
            "ts": start * UNIT,
            "dur": (end - start) * UNIT,
            "pid": process,
            "tid": thread,
            "args": {"op": op, "stage": [stage for _, stage, _ in parts]},
        }
