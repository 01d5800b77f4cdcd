"""Traces on a disk: one file, or those of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diagnosis.slow.trace import RankTrace
from groups.errors import LayoutError, quoted

from ..errors import refusal
from .rank import read_trace

MOST_FILES = 16_384


def read_file(path: Path) -> RankTrace:
    """The trace of a file. Errors: LayoutError as `read_trace`; OSError of the file itself."""
    with path.open("rb") as file:
        return read_trace(file, path.name)


def read_folder(folder: Path) -> Iterator[RankTrace | LayoutError]:
    """The trace of each ``.json`` and ``.json.gz`` of a folder, by name, or the refusal of it.

    Errors: LayoutError ``no-traces``, ``too-many-traces``.
    """
    files = sorted(one for one in folder.iterdir() if one.name.endswith((".json", ".json.gz")))
    if not files:
        raise refusal("no-traces", "trace", folder=quoted(str(folder)))
    if len(files) > MOST_FILES:
        raise refusal("too-many-traces", "trace", count=len(files), limit=MOST_FILES)
    for path in files:
        try:
            yield read_file(path)
        except LayoutError as error:
            yield error
