"""The content of a log, a dump or a report, as data.

Ranks are global unless a name says otherwise. A number that a line prints as the place within a
process group is a group rank; one that may be either is ambiguous, and is never counted as global.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Interval

from groups.notes import Note

Ranks = tuple[Annotated[int, Interval(ge=0, lt=10**7)], ...]
"""Ranks of up to seven digits, as lines have them; also the limit for checking digests."""


@dataclass(frozen=True)
class Stall:
    """One line about unfinished work: who waits, and in which operation.

    Counters are those of the group in the line's own prefix; -1 means that nothing ever completed.
    """

    rank: int | None  # global
    group_rank: int | None
    group: str | None  # as in `Log.groups`
    guid: str | None  # the group's name in the whole job, where the line has it
    seq: int | None = None
    op: str | None = None  # as printed, e.g. ALLREDUCE
    numel_in: int | None = None
    numel_out: int | None = None
    last_enqueued: int | None = None
    last_completed: int | None = None
    begun: int | None = None  # seconds of its clock, of a year whose months have 31 days


@dataclass(frozen=True)
class ProcessGroup:
    """A process group of the job, as the evidence has it."""

    key: str  # as in `Log.groups`
    name: str | None  # torch's own: a counter or a hash, the same on all ranks
    description: str | None
    kind: str | None  # tp, pp, dp-cp ..., world; None where the name does not say
    members: Ranks = ()  # global ranks in the group's order; empty where nothing says
    complete: bool = False  # whether these are all members

    @property
    def title(self) -> str:
        """Its display name: its kind, else its printed name."""
        return self.kind or self.key


@dataclass(frozen=True)
class Party:
    """Ranks of a group with the same call at the same place in the group's order."""

    ranks: Ranks
    op: str
    sizes: str  # input and output sizes or element counts, as printed


@dataclass(frozen=True)
class Wait:
    """One unfinished operation of one group."""

    group: ProcessGroup
    op: str
    seq: int
    waiting: Ranks  # ranks that entered it and wait
    absent: Ranks = ()  # members that did not enter it, so that it cannot finish
    parties: tuple[Party, ...] = ()  # where members called different things, who called what
    unknown: Ranks = ()  # members of whom no dump says anything, and no line that they wait there
    late: Ranks = ()  # members that entered it only after the others had given up
    possible: Ranks = ()  # that may be members: the dumps name only those who called
    peers: tuple[int, int] | None = None  # sender and receiver of a point-to-point operation

    @property
    def callers(self) -> set[int]:
        return {rank for party in self.parties for rank in party.ranks}


@dataclass(frozen=True)
class Hop:
    """One step of the chain: these groups wait because of ``through``, and with them new ranks."""

    waits: tuple[Wait, ...]
    through: Ranks  # ranks of the step before, for whom these groups wait
    ranks: Ranks  # that wait from this step on


@dataclass(frozen=True)
class Diagnosis:
    """The origin of a hang, and the ranks that wait for it.

    A culprit did not arrive while nothing held it, or called something else than its peers. The
    reason is ``absent``, ``different``, ``order``, ``late``, ``no-dump``, ``silent`` (a text has
    lines of the other members), ``elsewhere`` (it has lines of this one, but not that it waits),
    ``all-arrived`` (a device or the network), ``unclear`` or ``none`` (nothing is stuck).
    """

    culprits: Ranks = ()
    suspects: Ranks = ()  # one or more are to blame: the evidence does not tell which
    reason: str = "none"
    waits: tuple[Wait, ...] = ()  # every operation that does not finish, where to look first
    hops: tuple[Hop, ...] = ()  # how the waiting spreads, from the first group outwards
    without_dump: Ranks = ()  # members of groups that are stuck

    @property
    def is_unheard(self) -> bool:
        """Whether the suspects are members that are not seen to wait with the others."""
        return bool(self.suspects) and self.reason in ("silent", "elsewhere")

    @property
    def first(self) -> Wait | None:
        """The operation to look at first: among those that wait for nobody who waits elsewhere, one
        that shows the reason."""
        roots = self.hops[0].waits if self.hops else ()
        return next(filter(self.blamed_in, roots), next(iter(roots), None))

    def blamed_in(self, wait: Wait) -> tuple[int, ...]:
        """Culprits that skipped an operation or made another call, by the reason; if members made
        different calls and nobody is a culprit, all of them."""
        is_different = self.reason == "different"
        named = wait.callers if is_different else {*wait.absent, *wait.late}
        blamed = named & {*self.culprits} if self.culprits or not is_different else named
        return tuple(sorted(blamed))


@dataclass(frozen=True)
class Standing:
    """The position of a rank by its stack: its collective (empty: none), and its line of the
    program."""

    rank: int
    op: str
    function: str
    file: str
    line: int


@dataclass(frozen=True)
class Log:
    """The content of some evidence; see `formats.logs.read_log`."""

    ranks: Ranks = ()  # global ranks that are named, ascending
    group_ranks: Ranks = ()  # places within a group or a communicator
    ambiguous_ranks: Ranks = ()  # the evidence contradicts that these are global
    groups: Mapping[str, str | None] = field(default_factory=dict)  # as printed, with their kind
    missing: Ranks = ()  # that did not arrive or did otherwise, by the evidence
    stalls: tuple[Stall, ...] = ()
    process_groups: tuple[ProcessGroup, ...] = ()
    dumped: Ranks = ()  # ranks of whom there is a dump
    hosts: Mapping[int, str] = field(default_factory=dict)  # by rank, where a launcher says it
    devices: Mapping[int, int] = field(default_factory=dict)  # local ranks, likewise
    diagnosis: Diagnosis = Diagnosis()
    notes: tuple[Note, ...] = ()
    files: int = 0  # that say all this; 0 of a text
    spoke: Ranks = ()  # whose own lines there are
    relayed: Ranks = ()  # that passed on a signal of another rank
    stacks: tuple[Standing, ...] = ()
