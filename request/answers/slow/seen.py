"""Traces beside a layout: the one that ran if they show it, else that on screen."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diagnosis.next_step import NextStep
from diagnosis.slow import Slowness, account_of, verdict_of
from diagnosis.slow.model import ChainLink, GroupTimeline, RankTime
from diagnosis.slow.steps import next_steps
from diagnosis.slow.verdict import Culprit
from groups import LayoutError
from groups.layout import Job, Layout
from groups.notes import Note

from ...context import Context
from .files import slow_on_page


@dataclass(frozen=True, eq=False)
class SeenSlow:
    """The traces of a job, and the layout on screen with its selected rank.

    ran: the layout that the traces say, None where they do not; layout: in which ranks are shown.
    """

    slow: Slowness
    screen: Layout
    rank: int | None

    @cached_property
    def ran(self) -> Layout | None:
        if self.slow.running is None:
            return None
        with suppress(LayoutError):
            return self.slow.running.layout(self._gpus_per_node)
        return None

    @property
    def _gpus_per_node(self) -> int:
        """Ranks on a host, if the traces name several hosts."""
        hosts = Counter(one.host for one in self.slow.ranks)
        counts = {*hosts.values()}
        is_known = len(hosts) > 1 and len(counts) == 1 and "" not in hosts
        return counts.pop() if is_known else self.screen.gpus_per_node

    @cached_property
    def world(self) -> int:
        """Ranks of the job: as the traces have it, else their number."""
        return self.slow.world or max((one.rank for one in self.slow.ranks), default=-1) + 1

    @cached_property
    def layout(self) -> Layout:
        if self.ran is not None and self.ran.world_size == self.world:
            return self.ran
        if self.screen.world_size == self.world:
            return self.screen
        return Job(nodes=1, gpus_per_node=self.world, tp=1, pp=1).layout()

    @cached_property
    def verdict(self) -> Culprit:
        return verdict_of(self.slow, self.layout)

    @cached_property
    def account(self) -> tuple[Note, ...]:
        return account_of(self.slow, self.layout)

    @cached_property
    def next_steps(self) -> tuple[NextStep, ...]:
        return next_steps(self.slow, self.verdict, self.layout)

    @cached_property
    def of_rank(self) -> dict[int, RankTime]:
        return {one.rank: one for one in self.slow.ranks}

    @cached_property
    def chosen(self) -> int:
        """The selected rank; without one, or of another job, the slowest rank."""
        if self.rank is not None and self.rank < self.layout.world_size:
            return self.rank
        return next((rank for rank in self.verdict.ranks if rank < self.layout.world_size), 0)

    @cached_property
    def chain(self) -> tuple[ChainLink, ...]:
        """The chain of waiting back to the slow rank."""
        return self.slow.chain_to(self.verdict.ranks, self.verdict.cause)

    def seconds(self, name: str) -> np.ndarray:
        """The seconds "lost" or "caused" by each rank, nan without a trace: float64, shape
        (world,)."""
        seconds = np.full(self.layout.world_size, np.nan)
        for one in self.slow.ranks:
            if one.rank < len(seconds):
                seconds[one.rank] = (one.lost_us if name == "lost" else one.cost_us) / 1e6
        return seconds

    @property
    def most(self) -> float:
        """The seconds of the last step of both scales: a whole step of the job, whatever was lost
        in it; so little that does not matter has no strong colour. 0 where no step was seen."""
        return self.slow.step_us / 1e6

    @cached_property
    def worth(self) -> tuple[float, ...]:
        """The seconds that members waited in each timeline, by index."""
        return tuple(
            sum(
                took - min(known)
                for call in line.calls
                if (known := [one for one in call.took_us if one is not None])
                for took in known
            )
            for line in self.slow.timelines
        )

    def timeline_of(self, rank: int) -> GroupTimeline | None:
        """The timeline with most waiting that a rank is in; None if it is in none."""
        own = [
            (self.worth[place], -place)
            for place, line in enumerate(self.slow.timelines)
            if rank in self.slow.groups[line.group].ranks
        ]
        return self.slow.timelines[-max(own)[1]] if own else None

    def timeline(self, chosen: str) -> GroupTimeline | None:
        """The timeline of a group by its number, else of the selected or the slow rank, or the
        first."""
        for line in self.slow.timelines:
            if str(line.group) == chosen:
                return line
        ranks = self.verdict.ranks[:1] if self.rank is None else (self.chosen,)
        named = (self.timeline_of(rank) for rank in ranks)
        first = self.slow.timelines[0] if self.slow.timelines else None
        return next(named, None) or first


def seen_of(context: Context) -> SeenSlow | None:
    """The traces of the page; None without any. Errors: LayoutError as `slow_on_page`."""
    slow = slow_on_page(context)
    if slow is None:
        return None
    is_chosen = context.state.values["rank"] is not None
    return SeenSlow(slow, context.layout, context.rank if is_chosen else None)
