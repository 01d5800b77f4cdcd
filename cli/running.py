"""The command running: the process groups of a rank, the layout that makes them, and the
differences from the intended one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import BinaryIO, cast

from formats.documents.tables import Table
from formats.traces.stream import GZIP, TraceStream
from groups.layout import Layout, framework_name
from groups.running import Running, read_process_groups, read_running

from .counts import COUNTS
from .inputs import CommandLine
from .messages import FIELDS, CommandError

LARGEST_TEXT = 1 << 26
"""The largest text other than a trace, in bytes: a ``pg_config`` or a printed DeviceMesh."""

START = 65_536
"""Bytes that suffice to recognise a trace."""


def running(inputs: CommandLine) -> Table:
    found = _read(inputs, inputs.words[0])
    named = {*FIELDS, *COUNTS, "preset", "args", "gpus"} & {*inputs.options.unread}
    if named - {"gpus_per_node"}:
        return _differences(found, inputs.layout())
    layout = found.layout(inputs.gpus_per_node)
    rows = []
    for one in found.named:
        spread = one.spread
        steps = None if spread is None else [stride for stride, _ in spread]
        rows.append([one.name, one.kind or "", len(one.ranks), steps, sorted(one.ranks)])
    return Table(
        "running",
        ["name", "kind", "size", "strides", "ranks"],
        rows,
        layout=layout,
        fields={"rank": found.rank},
        before=[f"rank {found.rank} of {found.world}: {_layout_text(layout)}"],
    )


def _layout_text(layout: Layout) -> str:
    expert = f", experts {layout.expert}" if layout.has_experts else ""
    return f"{layout.mesh}{expert} ({framework_name(layout.framework)})"


def _differences(found: Running, meant: Layout) -> Table:
    rows = [[one.rank, one.kind, one.ran, one.meant] for one in found.differences(meant)]
    ranks = len({row[0] for row in rows})
    summary = f"{ranks:,} of {found.world:,} ranks have other groups than meant" if rows else (
        "these are the groups that were meant")  # fmt: skip
    return Table(
        "running-differences",
        ["rank", "kind", "runs_with", "meant"],
        rows,
        layout=meant,
        fields={"ranks": ranks},
        before=[f"meant: {_layout_text(meant)}", summary],
    )


def _read(inputs: CommandLine, path: str) -> Running:
    """The groups of a trace of any size, compressed or not; of another text; of standard input."""
    if path == "-":
        return read_running(inputs.text(path))
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            opened: BinaryIO = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
            start = opened.read(START)
            if b'"traceEvents"' in start or b'"schemaVersion"' in start:
                file.seek(0)
                return _of_trace(file, Path(path).name)
            text = start + opened.read(LARGEST_TEXT - len(start))
    except (OSError, EOFError) as error:
        raise CommandError(f"cannot read {path!r}: {error}") from None
    return read_running(text.decode("utf-8-sig", "replace"))


def _of_trace(file: BinaryIO, name: str) -> Running:
    """The groups of a trace, which are before its events or after them."""
    stream = TraceStream(file, name)
    for _ in stream:
        if "distributedInfo" in stream.about:
            break
    return read_process_groups({"distributedInfo": stream.about.get("distributedInfo")})
