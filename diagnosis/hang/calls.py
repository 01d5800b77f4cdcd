"""What one rank has called, in order: the content of a Flight Recorder's dump."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

GroupKey = tuple[str, tuple[int, ...]]
"""Name and members (empty if the dump does not have them): one name can be several groups."""


class Call(NamedTuple):
    """One entry: a call of an operation."""

    group: str  # its name
    seq: int  # in the group, of collectives or of point-to-point operations
    op: str  # all_reduce, send ...
    sizes: tuple[str, str]  # of inputs and outputs, as text
    dtypes: str  # of inputs
    numels: tuple[int, int]
    ended: bool
    timed_out: bool
    created_ns: int
    timeout_ms: int
    order: int  # its place in the dump
    peers: tuple[int, int] | None = None  # sender and receiver, places in the group


@dataclass
class Dump:
    """One rank's recording."""

    rank: int | None
    file: str
    backend: str = ""
    calls: list[Call] = field(default_factory=list)
    descriptions: dict[str, str] = field(default_factory=dict)  # by group name
    members: dict[str, tuple[int, ...]] = field(default_factory=dict)
    local_ids: dict[str, int] = field(default_factory=dict)
    wrapped: bool = False  # whether older entries were overwritten
    dropped: int = 0  # entries that are none
