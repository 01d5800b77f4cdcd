"""What a rank's data parallelism does in a step: its collectives in order, and what is alive.

Four kinds of temporary tensors are counted, as bytes:

    unsharded_params        gathered parameters, with the padding
    all_gather_buffers      outputs of all-gathers that are not yet copied out and freed
    unsharded_grads         gradients of whole units, and sums of them over micro-batches
    reduce_scatter_inputs   inputs of reduce-scatters that are not yet waited for
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

SERIES = ("all_gather_buffers", "reduce_scatter_inputs", "unsharded_grads", "unsharded_params")
"""The temporary tensors that are counted apart."""

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp64": 8, "int64": 8, "int32": 4, "uint8": 1, "fp8": 1}
"""Bytes of an element."""


class GroupCall(NamedTuple):
    """One collective of a rank: input and output bytes of that rank.

    phase: what runs meanwhile, such as "forward:0"; op: its name; group: its group's name; unit:
    the unit that it carries, None where it is none's; format: of its elements.
    """

    phase: str
    op: str
    group: str
    unit: str | None
    bytes_in: int
    bytes_out: int
    format: str


class FullestMoment(NamedTuple):
    """The fullest moment: when, at which unit, and the bytes of each series then."""

    bytes: int
    phase: str
    unit: str
    parts: dict[str, int]


@dataclass
class Record:
    """Collectives and living tensors of one rank, as they come.

    >>> record = Record()
    >>> record.alive("unsharded_params", 8, "root")
    >>> record.alive("unsharded_params", -8, "root")
    >>> record.peaks, record.fullest.bytes
    ({'unsharded_params': 8}, 8)
    """

    collectives: list[GroupCall] = field(default_factory=list)
    peaks: dict[str, int] = field(default_factory=dict)
    fullest: FullestMoment = field(default_factory=lambda: FullestMoment(0, "", "", {}))
    phase: str = ""
    now: dict[str, int] = field(default_factory=lambda: {"unsharded_grads": 0})
    owned: dict[int, int] = field(default_factory=dict)
    module: int = -1  # that runs; -1: behind all of them
    moments: list[tuple[int, int]] | None = None  # each change: the module, and bytes then

    def send(self, op: str, group: str, unit: str | None, sizes: tuple[int, int], of: str) -> None:
        """Adds a collective; sizes: its input and its output, as elements of the format."""
        each = BYTES[of]
        found = GroupCall(self.phase, op, group, unit, sizes[0] * each, sizes[1] * each, of)
        self.collectives.append(found)

    def alive(self, series: str, more: int, unit: str) -> None:
        """Adds to what is alive, or takes from it."""
        self.count(series, self.now.get(series, 0) + more, unit)

    def share(self, series: str, owner: object, size: int, unit: str) -> None:
        """Sets what is alive of one owner among several."""
        self.owned[id(owner)] = size
        self.count(series, sum(self.owned.values()), unit)

    def count(self, series: str, size: int, unit: str) -> None:
        """Sets what is alive."""
        self.now[series] = size
        self.peaks[series] = max(self.peaks.get(series, 0), size)
        total = sum(self.now.values())
        if total > self.fullest.bytes:
            self.fullest = FullestMoment(total, self.phase, unit, dict(self.now))
        if self.moments is not None:
            self.moments.append((self.module, total))


class Total(NamedTuple):
    """Collectives of one sort: their number and the sums of their bytes."""

    sort: tuple[str | None, ...]
    number: int
    bytes_in: int
    bytes_out: int


def totals(collectives: Iterable[tuple[tuple[str | None, ...], GroupCall]]) -> list[Total]:
    """Collectives with their sort, summed by it, in the order in which sorts first come."""
    found: dict[tuple[str | None, ...], Total] = {}
    for sort, each in collectives:
        _, number, before, after = found.get(sort, Total(sort, 0, 0, 0))
        found[sort] = Total(sort, number + 1, before + each.bytes_in, after + each.bytes_out)
    return list(found.values())
