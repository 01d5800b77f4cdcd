"""A summary of traces as a file, written by `trace`, read by the page and `slow`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import orjson

from diagnosis.slow.model import VERSION, Slowness
from groups.errors import quoted

from ..errors import refusal
from ..values import Document

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LARGEST = 32 * 2**20
"""The largest summary that is read, in bytes."""


def as_json(slow: Slowness) -> Document:
    """The summary as plain values, in tenths of microseconds."""
    plain = _rounded(_adapter().dump_python(slow, mode="json"))
    assert isinstance(plain, dict)
    return {"version": VERSION, **plain}


def read_summary(content: bytes | str, file: str = "summary") -> Slowness:
    """Reads a summary.

    Errors: LayoutError ``not-a-summary``, ``summary-too-large``.
    """
    from pydantic import ValidationError

    if len(content) > LARGEST:
        raise refusal("summary-too-large", "trace", file=quoted(file), limit=LARGEST // 2**20)
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise refusal("not-a-summary", "trace", file=quoted(file)) from None
    while isinstance(document, dict) and "slow" not in document and "summary" in document:
        document = document["summary"]
    slow = document.get("slow") if isinstance(document, dict) else None
    if not isinstance(slow, dict) or slow.get("version") != VERSION:
        raise refusal("not-a-summary", "trace", file=quoted(file))
    try:
        found = _adapter().validate_python({k: v for k, v in slow.items() if k != "version"})
    except ValidationError as error:
        where = error.errors()[0]
        place = ".".join(map(str, where["loc"]))
        raise refusal(
            "bad-summary", "trace", file=quoted(file), place=place[:80], what=where["msg"][:120]
        ) from None
    _require_places(found, file)
    return found


def is_summary(start: bytes | str) -> bool:
    """Whether a file looks like a summary rather than a trace, by its beginning."""
    head = start[:4096]
    text = head.decode("utf-8", "replace") if isinstance(head, bytes) else head
    return '"traceEvents"' not in text and ('"slow"' in text or '"parallel-trace"' in text)


def _require_places(slow: Slowness, file: str) -> None:
    """Refuses groups that are not listed, and calls with another number of times than members."""
    count = len(slow.groups)
    places = [one.group for one in slow.waits]
    places += [one.group for one in slow.timelines]
    places += [link.group for chain in slow.chains for link in chain]
    members = all(
        len(call.took_us) <= len(slow.groups[line.group].ranks)
        for line in slow.timelines
        if line.group in range(count)
        for call in line.calls
    )
    steps = all(len(one.own_us) == len(slow.steps) for one in slow.ranks)
    if not members or not steps or not all(place in range(count) for place in places):
        raise refusal("not-a-summary", "trace", file=quoted(file))


@cache
def _adapter() -> TypeAdapter[Slowness]:
    from pydantic import TypeAdapter  # 50 ms, for who reads or writes a summary alone

    return TypeAdapter(Slowness)


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 1)
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else value
