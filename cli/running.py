"""The command running: the process groups that a rank has, the layout that makes them, and where
that is not the one that was meant."""

from __future__ import annotations

import gzip
import io

from formats.documents.tables import Table
from groups.layout import Layout, framework_name
from groups.running import Running, read_running

from .counts import COUNTS
from .inputs import CommandLine
from .messages import FIELDS, CommandError

BEGINNING = 1 << 26
"""Bytes of a trace in which its process groups stand: before its events."""


def running(inputs: CommandLine) -> Table:
    found = read_running(_text(inputs, inputs.words[0]))
    asked = {*FIELDS, *COUNTS, "preset", "args", "gpus"} & {*inputs.options.unread}
    if asked - {"gpus_per_node"}:
        return _differences(found, inputs.layout())
    layout = found.layout(int(inputs.options.gpus_per_node or 8))
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
        before=[f"rank {found.rank} of {found.world}: {_said(layout)}"],
    )


def _said(layout: Layout) -> str:
    expert = f", experts {layout.expert}" if layout.has_experts else ""
    return f"{layout.mesh}{expert} ({framework_name(layout.framework)})"


def _differences(found: Running, meant: Layout) -> Table:
    rows = [[one.rank, one.kind, one.ran, one.meant] for one in found.differences(meant)]
    ranks = len({row[0] for row in rows})
    said = f"{ranks:,} of {found.world:,} ranks have other groups than meant" if rows else (
        "these are the groups that were meant")  # fmt: skip
    return Table(
        "running-differences",
        ["rank", "kind", "runs_with", "meant"],
        rows,
        layout=meant,
        fields={"ranks": ranks},
        before=[f"meant: {_said(meant)}", said],
    )


def _text(inputs: CommandLine, path: str) -> str:
    """The beginning of a file, compressed or not, or standard input."""
    if path == "-":
        return inputs.text(path)
    try:
        with open(path, "rb") as file:
            head = file.read(2)
            file.seek(0)
            packed = head == b"\x1f\x8b"
            opened: io.BufferedIOBase = gzip.GzipFile(fileobj=file) if packed else file
            return opened.read(BEGINNING).decode("utf-8-sig", "replace")
    except (OSError, EOFError) as error:
        raise CommandError(f"cannot read {path!r}: {error}") from None
