"""The part of one rank's trace that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from groups.running import Running


class TraceGroup(NamedTuple):
    """A process group; ranks: of the job, None if the trace does not have all of them.

    name: torch's own, which differs between the groups of one kind. description: the program's.
    kind: what that means (`groups.group_names`), None where it means nothing.
    """

    name: str
    description: str
    kind: str | None
    ranks: tuple[int, ...] | None

    @property
    def title(self) -> str:
        """Its name in the program, else torch's."""
        return self.name if self.description in ("", "undefined") else self.description


class Collective(NamedTuple):
    """One call; times in microseconds of this rank's clock.

    group: the name of its group, None where the trace does not say it. sequence: its number in the
    group, since torch 2.13. bytes: of the larger side, elements of its dtype. peer: the rank of
    the job that a send goes to or a receive comes from. size: ranks of its group.
    """

    group: str | None
    kind: str
    start: float
    duration: float
    sequence: int | None = None
    bytes: int | None = None
    dtype: str | None = None
    peer: int | None = None
    size: int | None = None


class TraceStep(NamedTuple):
    """A step of the profiler; times in microseconds."""

    number: int
    start: float
    duration: float


@dataclass(frozen=True)
class RankTrace:
    """The activity of one rank.

    computation: when kernels computed, an array (n, 2) of microseconds, apart from each other.
    data, optimizer: likewise, when it fetched samples and updated weights, as annotated.
    kernels: how many GPU kernels it has; none where only the CPU was recorded. notes: what it
    lacks, by names that `diagnosis.slow.summary.NOTES` has words for.
    """

    file: str
    rank: int | None
    world: int | None
    backend: str
    running: Running | None
    groups: dict[str, TraceGroup]
    steps: tuple[TraceStep, ...]
    collectives: tuple[Collective, ...]
    computation: np.ndarray
    kernels: int
    events: int
    notes: tuple[str, ...] = field(default=())
    host: str = ""
    data: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    optimizer: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
