"""Events of a trace, block by block: the memory is that of one block, whatever the file's size.

A block is cut where one event seems to end and the next to begin. JSON itself says whether that was
so: the beginning of a list that ends inside a text or an event is no list, so what parses was cut
between two events.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from gzip import GzipFile
from typing import Any, BinaryIO, cast

import orjson

from groups.budget import spend
from groups.errors import quoted

from ..errors import refusal
from ..values import Document
from .bounds import MEGABYTE, TraceBounds

GZIP = b"\x1f\x8b"

_EVENTS = re.compile(rb'"traceEvents"\s{0,64}:\s{0,64}\[')
_BETWEEN = re.compile(rb"\}(\s{0,64},\s{0,64})\{")

A_UNIT = 12
"""Bytes read per unit of work (groups.budget)."""

TRIES = 3
"""The most places tried before more is read: a string in an event may look like one."""

_TAIL = 65_536
"""Bytes at the end of a block in which those places are looked for first."""


class TraceStream:
    """The events of one file; after that, in `about`, its other fields.

    >>> import io
    >>> file = io.BytesIO(b'{"a": 1, "traceEvents": [{"ph": "X"}, {"ph": "M"}], "b": 2}')
    >>> stream = TraceStream(file, "trace.json")
    >>> [event for block in stream for event in block], stream.about
    ([{'ph': 'X'}, {'ph': 'M'}], {'a': 1, 'b': 2})

    Errors, as it goes: LayoutError ``not-a-trace``, ``trace-cut``, ``trace-broken``,
    ``trace-too-large``, ``trace-dense``.
    """

    def __init__(self, file: BinaryIO, name: str, bounds: TraceBounds | None = None) -> None:
        self.name = name
        self.bounds = bounds or TraceBounds()
        self.about: Document = {}
        self.count = 0  # of events that were read
        self._chunks = self._read(file)

    def __iter__(self) -> Iterator[list[Document]]:
        held = self._begin()
        while True:
            found = _complete(held)
            if found is not None:
                events, held = found
                yield self._checked(events)
                if len(held) >= self.bounds.block:
                    continue
            elif len(held) > self.bounds.held:
                raise refusal("trace-broken", "trace", file=self._file, after=self.count)
            more = next(self._chunks, None)
            if more is None:
                break
            held += more
        yield self._checked(self._end(held))

    def _begin(self) -> bytes:
        """Reads the fields in front of the events; returns the beginning of the events."""
        head = b""
        for chunk in self._chunks:
            head += chunk
            if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
                break
            for match in _EVENTS.finditer(head):
                about = _parsed(head[: match.end()].removeprefix(b"\xef\xbb\xbf") + b"]}")
                if isinstance(about, dict):
                    about.pop("traceEvents")
                    self.about = about
                    return head[match.end() :]
            if len(head) > self.bounds.held:
                break
        raise refusal("not-a-trace", "trace", file=self._file)

    def _end(self, held: bytes) -> list[Document]:
        """Reads the last events, and the fields after them."""
        found = _parsed(b'{"traceEvents":[' + held)
        if not isinstance(found, dict):
            is_cut = not held.rstrip().endswith(b"}") or b"]" not in held
            where = {"file": self._file, "after": self.count}
            if is_cut:
                raise refusal("trace-cut", "trace", **where)
            raise refusal("trace-broken", "trace", **where)
        events = found.pop("traceEvents")
        self.about.update(found)
        return cast("list[Document]", events)

    def _checked(self, events: list[Document]) -> list[Document]:
        if not isinstance(events, list) or not all(type(event) is dict for event in events):
            raise refusal("trace-broken", "trace", file=self._file, after=self.count)
        self.count += len(events)
        return events

    def _read(self, file: BinaryIO) -> Iterator[bytes]:
        """The bytes of the file, unpacked, as many as the bounds allow."""
        start = file.read(2)
        file.seek(0)
        packed = start == GZIP
        source = cast(BinaryIO, GzipFile(fileobj=file)) if packed else file
        size, bounds = 0, self.bounds
        while True:
            try:
                chunk = source.read(bounds.block)
            except EOFError:
                raise refusal("trace-cut", "trace", file=self._file, after=self.count) from None
            except (zlib.error, OSError) as error:
                if not packed:
                    raise
                where = {"file": self._file, "after": self.count}
                raise refusal("trace-broken", "trace", **where) from error
            if not chunk:
                return
            size += len(chunk)
            spend(len(chunk) // A_UNIT, "characters")
            if size > bounds.bytes:
                raise refusal(
                    "trace-too-large", "trace", file=self._file, limit=bounds.bytes // MEGABYTE
                )
            if packed and size > bounds.density * file.tell() + bounds.slack:
                raise refusal("trace-dense", "trace", file=self._file, limit=bounds.density)
            yield chunk

    @property
    def _file(self) -> str:
        return quoted(self.name)


def _complete(held: bytes) -> tuple[list[Document], bytes] | None:
    """The complete events, and the bytes after them; None if no event ends there."""
    places = [*_BETWEEN.finditer(held, max(0, len(held) - _TAIL))]
    if not places:
        places = [*_BETWEEN.finditer(held)]
    for place in reversed(places[-TRIES:]):
        events = _parsed(b"[" + held[: place.start() + 1] + b"]")
        if isinstance(events, list):
            return events, held[place.end() - 1 :]
    return None


def _parsed(data: bytes) -> Any:
    """The value of JSON, None if it is invalid; of names that are not UTF-8 the readable part."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        data.decode()
    except UnicodeDecodeError:
        try:
            return orjson.loads(data.decode("utf-8", "replace"))
        except orjson.JSONDecodeError:
            pass
    return None
