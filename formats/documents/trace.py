"""A pipeline's step as a trace for Perfetto and Chrome (ui.perfetto.dev, chrome://tracing).

The JSON object form of the Trace Event Format: complete events ("ph": "X") with ``ts`` and ``dur``
in microseconds, and metadata ("ph": "M") that names processes and threads. A schedule is a process
and a pipeline rank a thread of it.

Source: Trace Event Format (Google, docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSs
KchNAySU), as perfetto.dev/docs/getting-started/other-formats says that it is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

UNIT = 1000.0
"""Microseconds of a trace per unit of the schedule's time: a millisecond."""

Row = Sequence[tuple[str, float, float]]
"""(op, start, end) of all ops of one rank, with ops as training.pipeline.plan writes them."""

_OP = re.compile(r"([0-9]+)([FBIW])([0-9]+)")
NAMES = {"F": "forward", "B": "backward", "I": "backward for inputs", "W": "backward for weights"}


def chrome_trace(schedules: Mapping[str, Sequence[Row]], ranks: Sequence[int] = ()) -> str:
    """Schedules, each with a row of ops per rank, as the text of a trace.

    ranks: what the ranks are called; else they count from 0.

    >>> events = json.loads(chrome_trace({"1F1B": [[("0F3", 0.0, 1.5)]]}))["traceEvents"]
    >>> {name: events[-1][name] for name in ("name", "ph", "ts", "dur", "pid", "tid")}
    {'name': 'F3', 'ph': 'X', 'ts': 0.0, 'dur': 1500.0, 'pid': 0, 'tid': 0}
    """
    events = []
    for process, (title, rows) in enumerate(schedules.items()):
        events.append(_named("process_name", process, 0, title))
        events += [_row(row, process, thread, ranks) for thread, row in enumerate(rows)]
    return f'{{"traceEvents":[{",".join(events)}],"displayTimeUnit":"ms"}}'


def _named(what: str, process: int, thread: int, name: str) -> str:
    event = {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
    return json.dumps(event, separators=(",", ":"))


def _row(row: Row, process: int, thread: int, ranks: Sequence[int]) -> str:
    """The events of a rank as text: an object for each op would need ten times the memory."""
    rank = ranks[thread] if ranks else thread
    events = [_named("thread_name", process, thread, f"pp {thread}, rank {rank}")]
    for op, start, end in row:
        parts = _OP.findall(op)
        name = " & ".join([kind + batch for _, kind, batch in parts])
        what = " & ".join([NAMES[kind] for _, kind, _ in parts])
        stages = ",".join([stage for stage, _, _ in parts])
        events.append(
            f'{{"name":"{name}","cat":"{what}","ph":"X","ts":{start * UNIT!r},'
            f'"dur":{(end - start) * UNIT!r},"pid":{process},"tid":{thread},'
            f'"args":{{"op":"{op}","stage":[{stages}]}}}}'
        )
    return ",".join(events)
