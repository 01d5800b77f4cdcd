"""Limits of one trace."""

from __future__ import annotations

from dataclasses import dataclass

from diagnosis.slow.calls import MOST_CALLS

MEGABYTE = 2**20


@dataclass(frozen=True)
class TraceBounds:
    """Limits of one file; its content is counted as it comes.

    Events are read in blocks and let go, so that only what stands outside of them, one event, and
    what is kept of all are held: 4 MB of JSON are at most some 90 MB of values.
    """

    bytes: int = 4096 * MEGABYTE  # unpacked; a trace with stacks is above one gigabyte
    density: int = 100  # unpacked for each packed byte; traces have 10 to 25
    slack: int = 16 * MEGABYTE  # unpacked beyond that
    block: int = MEGABYTE // 2  # that is read at once
    held: int = 4 * MEGABYTE  # of one event, and of what stands before or behind all of them
    collectives: int = 262_144
    members: int = 4_000_000  # ranks in lists of groups
    busy: int = 1_000_000  # pieces of time in which the GPU computes, apart from each other
    steps: int = 65_536
    calls: int = MOST_CALLS  # collectives of all files of a job together
