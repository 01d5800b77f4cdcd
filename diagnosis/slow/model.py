"""Who waits for whom in a step, as data; times in microseconds, of all steps or a mean of them.

A collective ends when its last member has come: who comes last waits least, so that

    waited(rank) = duration(rank) - least duration of the members

needs no clock that two hosts share. A rank's own time is what is left of a step without the time
in which it waited or data moved, and no kernel computed. What others lost to a rank is charged
along the chain: while it waited itself, the rank for which it waited pays (the delay costs of
Böhme, Geimer, Wolf, Arnold: Identifying the Root Causes of Wait States in Large-Scale Parallel
Applications, ICPP 2010).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum
from typing import Annotated, Literal

from annotated_types import Interval

from groups.running import Running

VERSION = 1

Doing = Literal["computation", "data", "optimizer", "own", "waiting", "transfer"]
COMPUTATION: Doing = "computation"
DATA: Doing = "data"
OPTIMIZER: Doing = "optimizer"
OWN: Doing = "own"
WAITING: Doing = "waiting"
TRANSFER: Doing = "transfer"
"""What a rank does: kernels compute; it fetches samples; it updates weights; other work of its own
(all of it, where only the CPU was recorded); it waits for another group; that group moves data."""


Lack = Literal[
    "no-kernels",
    "groups-unknown",
    "groups-matched",
    "rank-unknown",
    "rank-twice",
    "file-unreadable",
    "calls-left-out",
    "rows-left-out",
    "timers",
    "straggler-only",
    "no-times",
    "steps-unnumbered",
]
"""What the evidence lacks, or how it was read: views/slow/words.toml says each."""

Time = Annotated[float, Interval(ge=-1e20, le=1e20)]
Count = Annotated[int, Interval(ge=0, lt=2**53)]
Step = Annotated[int, Interval(ge=-1, lt=2**53)]  # -1 outside of all steps
Rank = Annotated[int, Interval(ge=0, lt=10**7)]
"""Bounds for what comes back from elsewhere."""


@dataclass(frozen=True)
class SlowGroup:
    """A group: its name in the program, and its kind; ranks: of the job."""

    name: str
    kind: str | None
    ranks: tuple[Rank, ...]

    @property
    def title(self) -> str:
        return self.kind or self.name


@dataclass(frozen=True)
class KindTime:
    """Time of one kind of groups in a step of a rank; waited: exposed, for others."""

    kind: str
    exposed_us: Time
    hidden_us: Time
    waited_us: Time


@dataclass(frozen=True)
class TimePart:
    """Time by activity; kind: of the group, for waiting or moving data."""

    what: Doing
    us: Time
    kind: str = ""


@dataclass(frozen=True)
class RankTime:
    """A step of one rank: means over its steps, except own_us, which has each.

    lost_us: that it waited for others. cost_us: that others waited for it, along the chain.
    before: what it did while others waited for it, the most first. computation_us: None where only
    the CPU was recorded. wait_us, moved_us: of own and of others' making, in own_us of no step.
    """

    rank: Rank
    host: str
    step_us: Time
    own_us: tuple[Time, ...]
    lost_us: Time
    cost_us: Time
    computation_us: Time | None
    data_us: Time
    optimizer_us: Time
    kinds: tuple[KindTime, ...] = ()
    before: tuple[TimePart, ...] = ()

    @property
    def bubble_us(self) -> float:
        """Waiting for other stages of the pipeline."""
        return sum(one.waited_us for one in self.kinds if one.kind == "pp")


@dataclass(frozen=True)
class Last:
    """A rank that came last: how often, and the total time that the others then waited.

    late_us: how long after the median of the others, each time.
    """

    rank: Rank
    times: Count
    waited_us: Time
    late_us: Time


@dataclass(frozen=True)
class GroupWait:
    """A group in one step: its calls, who came last in them, and the least time of moving data."""

    group: Count  # place in `Slowness.groups`
    step: Step
    calls: Count
    waited_us: Time
    transfer_us: Time
    lasts: tuple[Last, ...]


@dataclass(frozen=True)
class ChainLink:
    """One link of a chain: others wait in a group for a rank, which meanwhile does something."""

    group: Count
    op: str
    step: Step
    rank: Rank
    waited_us: Time  # of the one that waited longest
    doing: Doing
    kind: str = ""  # of the group that it waits for itself, or which moves data


@dataclass(frozen=True)
class AlignedCall:
    """One call of a group, drawn at its end, which is common to all.

    end_us: after the end of the first that is drawn. took_us: by member, None of one without trace.
    """

    op: str
    step: Step
    end_us: Time
    took_us: tuple[Time | None, ...]
    last: Rank


@dataclass(frozen=True)
class GroupTimeline:
    """Calls of one group, in their order; ranks as its members."""

    group: Count
    calls: tuple[AlignedCall, ...]
    left_out: Count = 0


SLOW_SCORE = 0.75
"""Below so much of the fastest GPU's speed a straggler detector calls one slow
(NVIDIA/nvidia-resiliency-ext identify_stragglers)."""


@dataclass(frozen=True)
class Straggler:
    """Whom a straggler detector names slowest most often: in how many of its reports, what its
    forward pass took then, and that of the fastest; or its speed beside the fastest.

    ranks: all whose speed is below SLOW_SCORE in most reports.
    """

    rank: Rank
    times: Count
    of: Count
    slow_us: Time
    fast_us: Time
    clock: tuple[float, float] | None = None  # MHz, its own and the highest, if it has the lowest
    celsius: tuple[float, float] | None = None  # its own and the lowest, if it is the hottest
    watts: tuple[float, float] | None = None  # its own and the highest, if it draws least
    score: float | None = None  # its speed beside the fastest's
    ranks: tuple[Rank, ...] = ()
    host: str = ""

    @property
    def excess_us(self) -> float:
        return self.slow_us - self.fast_us

    @property
    def share(self) -> float:
        """How much of its time the fastest does not need."""
        if self.score is not None:
            return 1 - self.score
        return self.excess_us / self.slow_us if self.slow_us else 0.0


@dataclass(frozen=True)
class Slowness:
    """The waiting in the traces of a job; bounded, whatever their size.

    steps: numbers of those in which the traces agree. calls: that were matched; unmatched: that
    could not be. running: what one rank knows of its groups, which says the layout. clocks_us: how
    far hosts' clocks are apart. notes: by names that views/slow/words.toml has words for.
    """

    world: Count | None
    steps: tuple[Count, ...]
    groups: tuple[SlowGroup, ...]
    ranks: tuple[RankTime, ...]
    waits: tuple[GroupWait, ...]
    chains: tuple[tuple[ChainLink, ...], ...]
    timelines: tuple[GroupTimeline, ...]
    calls: Count
    unmatched: Count
    clocks_us: Time
    running: Running | None = None
    notes: tuple[Lack, ...] = field(default=())
    straggler: Straggler | None = None

    def chain_to(self, ranks: Iterable[int] = (), doing: str = "") -> tuple[ChainLink, ...]:
        """A chain that ends at one of ``ranks``, best with this activity; else the costliest."""
        ends = {*ranks}
        leading = [chain for chain in self.chains if chain and chain[-1].rank in ends]
        leading.sort(key=lambda chain: chain[-1].doing != doing)
        return next(iter([*leading, *self.chains]), ())

    @property
    def chain(self) -> tuple[ChainLink, ...]:
        """The chain that costs most."""
        return self.chain_to()

    @property
    def step_us(self) -> float:
        """The mean step of all ranks."""
        return fsum(one.step_us for one in self.ranks) / len(self.ranks) if self.ranks else 0.0
