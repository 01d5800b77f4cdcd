"""The shards of each rank: the ranks of one group, each with boxes cut into every rank's share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

SLOT, BAR, ROW, APART, LEFT, TOP = 8.0, 14.0, 18.0, 14.0, 20.0, 18.0
"""Pixels: width of a share, height of a box, from box to box, between ranks, and the margins."""

WHOLE, OWN, LOCAL, STALE, NONE = "whole", "own", "local", "stale", "none"
"""The state of a rank's tensor: complete; its own share; complete but of its own samples only;
complete but only its own share up to date; nothing."""

NARROWEST = 48.0
"""The least width of a rank's box in pixels, so that its number fits."""

MOST = 8
"""The most ranks drawn of one group; of more, the first ones and the last."""


@dataclass(frozen=True)
class ShardGrid:
    """Ranks and, for each tensor by its letter, each rank's state of it."""

    ranks: tuple[int, ...]
    holds: tuple[tuple[str, str], ...]  # letter, one of the states above
    legend: tuple[tuple[str, str], ...] = ()  # for files

    @cached_property
    def visible(self) -> tuple[int, ...]:
        """Places of the ranks that are drawn."""
        count = len(self.ranks)
        return tuple(range(count)) if count <= MOST else (*range(MOST - 1), count - 1)

    @cached_property
    def has_more(self) -> bool:
        return len(self.ranks) > MOST

    @cached_property
    def slots(self) -> int:
        """Columns of ranks, and shares of a box: one more if ranks are left out."""
        return len(self.visible) + self.has_more

    @cached_property
    def box(self) -> float:
        return max(self.slots * SLOT, NARROWEST)

    @property
    def step(self) -> float:
        return self.box + APART

    @property
    def width(self) -> float:
        return LEFT + self.slots * self.step

    @property
    def height(self) -> float:
        return TOP + len(self.holds) * ROW

    def column(self, place: int) -> int:
        """The column of a visible rank; the last one is after those left out."""
        return place + (self.has_more and place == len(self.visible) - 1)

    def shares(self, place: int, state: str) -> list[tuple[float, int, bool]]:
        """The filled shares of a visible rank's box: left edge, owner, and whether faint.

        -1 is the share of the ranks left out.
        """
        each, shares = self.box / self.slots, []
        for slot in range(len(self.visible)):
            if state == NONE or (state == OWN and slot != place):
                continue
            is_faint = state == LOCAL or (state == STALE and slot != place)
            shares.append((self.column(slot) * each, slot, is_faint))
        if self.has_more and state in (WHOLE, LOCAL, STALE):
            shares.append(((len(self.visible) - 1) * each, -1, state != WHOLE))
        return shares
