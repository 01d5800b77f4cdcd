"""A schedule with its sizes: whether they are valid, and its order as text.

>>> schedule("1f1b", p=2, m=2)
[['0F0', '0F1', '0B0', '0B1'], ['1F0', '1B0', '1F1', '1B1']]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from groups.alternatives import MOST, in_ranges, nearest, with_changes
from groups.mesh import MAX_RANKS
from groups.stages.layers import MAX_LAYERS

from ..errors import refusal, require_choice
from .automatic import TRIES, automatic
from .plan import MOST_OPS, PipelinePlan, Shape, too_many_ops
from .schedules import DEFAULT_VIRTUAL, SCHEDULES, VARIANTS, Schedule
from .simulate import Durations

MAX_MICRO_BATCHES = 1_000_000
"""The most micro-batches of one step: far more than any job has."""

SETTLED = 4
"""The number of micro-batches, in units of p, after which each further p repeats the ones
before."""

OF_SCHEDULES = {"p": "pp", "m": "micro_batches", "v": "vpp"}
"""A job's names of a schedule's sizes."""

Refused = tuple[str, str, Mapping[str, object]]
"""Code, control and facts of a refusal."""


@dataclass(frozen=True)
class ScheduleSpec:
    """A schedule with its requested sizes; v or group_size None: the schedule's default.

    w_share: the part of an activation that is held from I to W, where an order is found. variant:
    of `schedules.VARIANTS`, "" for none.
    """

    name: str
    p: int
    m: int
    v: int | None = None
    group_size: int | None = None
    w_share: float = 1.0
    variant: str = ""

    @property
    def rule(self) -> Schedule:
        return VARIANTS.get((self.name, self.variant)) or SCHEDULES[self.name]

    @property
    def chunks(self) -> int:
        """Chunks per rank: as requested, or those of the schedule (2 if it can choose)."""
        return self.v if self.v is not None else self.rule.v or DEFAULT_VIRTUAL

    @property
    def group(self) -> int:
        """Micro-batches per group: as requested, or per round; else p."""
        if self.rule.rounds:
            return self.m // max(1, self.m // self.p)
        return self.p if self.group_size is None else self.group_size

    @property
    def shape(self) -> Shape:
        return Shape(self.p, self.m, self.chunks, self.group)

    def require(self, *, drawn: bool = True) -> None:
        """Raises LayoutError for sizes that are invalid for the schedule; drawn: as for
        `alternatives`.

        Errors: LayoutError whose every alternative works.
        """
        for code, control, facts in self._refusals():
            fixes = self.alternatives(control, drawn=drawn)
            raise refusal(code, control, *fixes, **facts)

    def require_chunks(self) -> None:
        """Raises LayoutError for a number of chunks that the schedule never has."""
        for code, control, facts in self._refused_chunks():
            raise refusal(code, control, {"v": self.rule.v or DEFAULT_VIRTUAL}, **facts)

    def require_drawn(self) -> None:
        """Raises LayoutError for more ops than may be placed."""
        if self.num_ops > MOST_OPS:
            raise too_many_ops(self.num_ops).replace(alternatives=self.alternatives("m"))

    @property
    def num_ops(self) -> int:
        """The number of different op numbers."""
        return 4 * self.p * self.chunks * self.m

    @property
    def num_settled(self) -> int:
        """`num_ops` of the longer of the two steps that determine the peaks of any longer one."""
        return 4 * self.p * self.chunks * max(SETTLED + 1, self.rule.least_m) * self.p

    @property
    def num_run(self) -> int:
        """An upper bound of the ops that all ranks run: F and B, or F, I and W, of each
        micro-batch."""
        return (3 if self.rule.splits else 2) * self.p * self.chunks * self.m

    @property
    def num_tried(self) -> int:
        """An upper bound of the ops of all orders that are tried, for schedules that are
        searched."""
        return TRIES * self.num_run if self.rule.limit else 0

    @property
    def is_taken(self) -> bool:
        """Whether these sizes are valid."""
        return not any(self._refusals())

    @property
    def works(self) -> bool:
        return self.is_taken and self.num_ops <= MOST_OPS

    def alternatives(self, control: str | None, *, drawn: bool = True) -> list[dict[str, int]]:
        """The nearest single-size changes that make the schedule valid; changes of ``control`` come
        first.

        drawn: whether every op is to be placed, which limits their number to MOST_OPS.
        """
        if self.rule.rounds and not drawn and self.num_ops > MOST_OPS >= self.num_settled:
            return [{"m": self.m - self.m % (self.m // self.p)}]
        group = self.group if self.rule.grouped else self.group_size
        parameters = {"m": self.m, "v": self.v, "group_size": group, "p": self.p}
        sizes = {name: size for name, size in parameters.items() if size is not None}
        changes: list[dict[str, int]] = []
        for name in sorted(sizes, key=lambda name: name != control):
            most = max(4 * self.p, 2 * self.m, 8) if name != "p" else max(self.m, 2 * self.p)
            if name != "group_size" and self.num_ops > MOST_OPS:  # larger sizes have too many ops
                most = min(most, MOST_OPS * getattr(self, name) // self.num_ops)
            most = min(most, self.m if name == "group_size" else 2**14)
            values = nearest(sizes[name], partial(self._works_with, name), maximum=most)
            changes += [{name: value} for value in values[: None if name == control else 1]]
        return changes[:MOST]

    def _works_with(self, name: str, size: int) -> bool:
        return with_changes(self, {name: size}).works

    def plan(self, durations: Durations | None = None) -> PipelinePlan:
        """The ops of every rank; a searched order is optimised for ``durations``."""
        shape, order = self.shape, self.rule.order
        if order is not None:
            return PipelinePlan(
                shape.stages, self.m, tuple(order(shape, rank) for rank in shape.ranks)
            )
        times = durations or Durations()
        limit = self.rule.limit * self.p
        places = automatic(shape, times.table(shape.stages), times.send, limit, self.w_share)
        return PipelinePlan(shape.stages, self.m, places)

    def _refusals(self) -> Iterator[Refused]:
        rule, p, m = self.rule, self.p, self.m
        named = {"schedule": rule.title}
        yield from self._refused_chunks()
        if rule.grouped and p == 1:
            yield "schedule-needs-stages", "p", named
        if self.group_size is not None and not rule.grouped:
            yield "schedule-has-no-groups", "group_size", named
        if rule.even and p % 2:
            yield self._odd("p", "pipeline ranks", "the two directions mirror each other")
        least = rule.least_m * p if self.group_size is None else 0
        if m < least:
            yield "schedule-needs-micro-batches", "m", {**named, "least": least, "p": p, "m": m}
        if rule.even and m % 2:
            yield self._odd("m", "micro-batches", "half of them enter at either end")
        if rule.grouped:
            yield from self._refused_groups()
        if rule.rounds and m % max(1, m // p):
            yield "rounds-do-not-divide", "m", {"m": m, "rounds": m // p}

    def _refused_chunks(self) -> Iterator[Refused]:
        rule = self.rule
        if rule.v is not None and self.chunks != rule.v:
            facts = {"schedule": rule.title, "chunks": rule.v, "v": self.v}
            yield "schedule-has-chunks", "v", facts
        if rule.grouped and self.chunks == 1:
            yield "interleaved-needs-chunks", "v", {}

    def _odd(self, name: str, things: str, why: str) -> Refused:
        value, title = getattr(self, name), self.rule.title
        sentence = f"{title} needs an even number of {things}, not {value}"
        facts = {"schedule": title, "what": name, "value": value}
        return "schedule-needs-even", name, {"sentence": sentence, "why": why, **facts}

    def _refused_groups(self) -> Iterator[Refused]:
        """Megatron's rule for groups of N micro-batches: p <= N <= m, and the last group has N or
        at least p."""
        p, m, n = self.p, self.m, self.group
        facts = {"p": p, "m": m, "n": n}
        if n < p:
            yield "group-too-small", "group_size", facts
        if n > m:
            yield "group-too-large", "group_size", facts
        if 0 < m % n < p:
            yield "last-group-too-small", "m", {**facts, "rest": m % n}


def schedule(
    name: str, p: int, m: int, v: int | None = None, group_size: int | None = None
) -> list[list[str]]:
    """The ops of each pipeline rank, in order: ``<stage><F|B|I|W><micro-batch>``, see `plan`.

    p pipeline ranks, m micro-batches, v chunks of the model on each rank (None: as many as the
    schedule has, 2 where that can be chosen). group_size: for "interleaved", the micro-batches
    that go through a chunk before the next chunk's turn (None: p).

    >>> schedule("interleaved", p=2, m=2, v=2)[1]
    ['1F0', '1F1', '3F0', '3B0', '3F1', '3B1', '1B0', '1B1']

    Errors: LayoutError for sizes that the schedule does not take, with the nearest that it does.
    Sources: see `orders`.
    """
    return plan_of(name, p, m, v, group_size).order()


def plan_of(
    name: str, p: int, m: int, v: int | None = None, group_size: int | None = None
) -> PipelinePlan:
    """The ops of every rank under a schedule, without times; arguments as for `schedule`."""
    spec = checked(name, p, m, v, group_size)
    spec.require_drawn()
    return spec.plan()


def checked(
    name: str,
    p: int,
    m: int,
    v: int | None = None,
    group_size: int | None = None,
    *,
    variant: str = "",
) -> ScheduleSpec:
    """The schedule with its sizes, if they are valid.

    Errors: LayoutError whose every alternative works.
    """
    require_choice("schedule", name, tuple(SCHEDULES))
    sizes = _in_range(name, {"p": p, "m": m, "v": v, "group_size": group_size})
    spec = _spec(name, sizes, variant)
    spec.require()
    return spec


def _spec(name: str, sizes: Mapping[str, int], variant: str = "") -> ScheduleSpec:
    v, group = sizes.get("v"), sizes.get("group_size")
    return ScheduleSpec(name, sizes["p"], sizes["m"], v, group, variant=variant)


def least_group(p: int, m: int) -> int | None:
    """The smallest group size with which Megatron interleaves m micro-batches; None if it is p, or
    if there is none.

    >>> least_group(4, 8), least_group(4, 6), least_group(4, 10), least_group(4, 3)
    (None, 6, 5, None)
    """
    sizes = range(p, m + 1) if m % p else ()
    return next((n for n in sizes if m % n == 0 or m % n >= p), None)


def _in_range(name: str, requested: Mapping[str, int | None]) -> dict[str, int]:
    """Sizes as whole numbers in their ranges; optional sizes that are None are left out."""
    needed = ("p", "m")
    present = {of: size for of, size in requested.items() if size is not None or of in needed}
    sizes, refusals = in_ranges(present, _LIMITS)
    if not refusals:
        return sizes
    is_mended = len(refusals) == 1 and sizes.keys() == present.keys()
    works = is_mended and _spec(name, sizes).works
    raise refusals[0].replace(alternatives=refusals[0].alternatives if works else ())


_LIMITS = {
    **{"p": (1, MAX_RANKS), "v": (1, MAX_LAYERS)},
    **dict.fromkeys(("m", "group_size"), (1, MAX_MICRO_BATCHES)),
}
