"""Traces and their summaries as a digest, which the browser keeps.

A digest is a `diagnosis.slow.Slowness` as compressed JSON, without what stands last in it where not
all fits. It comes back from a browser: `read_summary` checks every value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

import orjson

from descriptions import SLOW_DOING, SLOW_NOTES
from diagnosis.slow import Slowness
from formats.slow import as_json, read_evidence, read_summary
from formats.slow.reading import START
from formats.traces.bounds import MEGABYTE, TraceBounds
from formats.traces.stream import A_UNIT, GZIP
from groups.budget import spend
from groups.errors import LayoutError
from groups.layout import Layout
from groups.program import PROGRAM

from ...context import Context
from ...digests import bad_digest, packed, unpacked
from ...errors import refusal
from ...state import is_empty

BOUNDS = TraceBounds(
    bytes=64 * MEGABYTE,
    held=MEGABYTE,
    collectives=65_536,
    members=500_000,
    busy=200_000,
    steps=1_024,
    calls=64_000,
)
"""Limits of one trace on the page: a few steps of a rank, without stacks."""

KEPT = ((12, 4_096), (6, 512), (2, 128), (0, 32))
"""The most timelines and rows of waits of a digest; the next smaller set if it would be too
long."""

COMMAND = f"{PROGRAM} trace FOLDER --format json > summary.json"
"""The command that reads traces of any size where they are, for the page."""

EXAMPLE = Path(__file__).with_name("example.json")
"""The summary of traces of a run of eight processes (torch 2.13.0, Gloo), tp 2, dp 2 and pp 2 on
two nodes, of which rank 3 slept 60 % longer instead of computing."""


def read_slow(files: Mapping[str, str | bytes], layout: Layout | None) -> str:
    """The digest of traces, of a summary of them, or of logs. layout: the one on screen, for groups
    without a known kind.

    Errors: LayoutError for files that are none, and where they are too much.
    """
    contents = {name: _bytes(content) for name, content in files.items()}
    return digest_of(read_bounded(contents, layout))


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8", "replace") if isinstance(content, str) else content


def read_bounded(files: Mapping[str, bytes], layout: Layout | None) -> Slowness:
    """The content of files, within the budget of a page. Errors: as `read_evidence`."""
    for content in files.values():
        if not (content.startswith(GZIP) or b'"traceEvents"' in content[:START]):
            # Those of a trace count as they are read.
            parts = content.count(b"[") + content.count(b"{")
            spend(len(content) // A_UNIT + 2 * parts, "characters")
    slow = read_evidence(files, layout, BOUNDS)
    return _checked(slow, as_json(slow))


MOST_RANKS = 131_072
MOST_US = 1e13
"""The most ranks of a job, and microseconds of a step, of a plausible summary."""


def _checked(slow: Slowness, document: object) -> Slowness:
    """The summary, checked; document: its values. Errors: LayoutError ``absurd-summary`` for
    implausible values."""
    ranks = [one.rank for one in slow.ranks]
    ranks += [rank for group in slow.groups for rank in group.ranks]
    world = max([slow.world or 0, 1 + max(ranks, default=0)])
    world = max(world, slow.running.world if slow.running else 0)
    doing = {link.doing for chain in slow.chains for link in chain}
    doing |= {part.what for one in slow.ranks for part in one.before}
    is_named = doing <= {*SLOW_DOING} and {*slow.notes} <= {*SLOW_NOTES}
    is_sane = min(ranks, default=0) >= 0 and _largest(document) <= MOST_US
    if not is_named or not is_sane or world > MOST_RANKS:
        raise refusal("absurd-summary", "traces", limit=MOST_RANKS)
    spend(world // 2, "ranks", control="traces")
    return slow


def _largest(document: object) -> float:
    """The largest absolute value of all numbers in a document.

    >>> _largest({"a": [1, {"b": -3.5}], "c": "9"})
    3.5
    """
    largest, left = 0.0, [document]
    while left:
        one = left.pop()
        if isinstance(one, (int, float)):
            largest = max(largest, abs(one) if one == one else inf)
        elif isinstance(one, (list, tuple)):
            left.extend(one)
        elif isinstance(one, Mapping):
            left.extend(one.values())
    return largest


def digest_of(slow: Slowness) -> str:
    """A summary as text. Errors: LayoutError ``long-digest`` if nothing fits."""
    for timelines, waits in KEPT:
        cut = replace(slow, timelines=slow.timelines[:timelines], waits=slow.waits[:waits])
        if text := packed(orjson.dumps(as_json(cut)).decode()):
            return text
    raise refusal("long-digest", "trace")


def slow_of(text: object) -> Slowness:
    """The summary of a digest.

    >>> slow = slow_of(example())
    >>> slow_of(digest_of(slow)) == slow, len(slow.ranks)
    (True, 8)

    Errors: LayoutError ``bad-digest`` for any other text; ``too-much-work``.
    """
    plain = unpacked(text, "traces_digest")
    try:
        return _checked(read_summary(f'{{"slow":{plain}}}'), orjson.loads(plain))
    except (LayoutError, ValueError, TypeError, RecursionError):
        raise bad_digest("traces_digest") from None


@cache
def example_run() -> Slowness:
    """The recorded run."""
    return read_summary(EXAMPLE.read_bytes())


@cache
def example() -> str:
    """The digest of the recorded run."""
    return digest_of(example_run())


def slow_on_page(context: Context) -> Slowness | None:
    """The summary of the pasted text, else of the files; None without either.

    Errors: LayoutError for text that is neither a trace nor a summary.
    """
    state = context.state
    if not is_empty(state.traces):
        text = {"the text": state.traces.encode("utf-8", "replace")}
        return read_bounded(text, context.layout)
    return None if is_empty(state.traces_digest) else slow_of(state.traces_digest)
