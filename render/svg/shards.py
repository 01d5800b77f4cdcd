"""Who holds which shard: the ranks of one group, each with boxes cut into every rank's share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from html import escape

SLOT, BAR, ROW, APART, LEFT, TOP = 8.0, 14.0, 18.0, 14.0, 20.0, 18.0
"""Pixels: width of a share, height of a box, from box to box, between ranks, and the margins."""

WHOLE, OWN, LOCAL, STALE, NONE = "whole", "own", "local", "stale", "none"
"""What a rank has of a tensor: all of it; its own share; all, but of its own samples alone; all,
but only its own share is up to date; nothing."""

NARROWEST = 48.0
"""Pixels that the box of a rank is wide at least, so that its number has room."""

MOST = 8
"""Ranks drawn of one group; of more, the first ones and the last."""


@dataclass(frozen=True)
class Shards:
    """Ranks and, for each tensor by its letter, what each of them has of it."""

    ranks: tuple[int, ...]
    holds: tuple[tuple[str, str], ...]  # letter, one of the states above
    legend: tuple[tuple[str, str], ...] = ()  # for files

    @cached_property
    def visible(self) -> tuple[int, ...]:
        """Places of the ranks that are drawn.

        >>> Shards(tuple(range(64)), ()).visible
        (0, 1, 2, 3, 4, 5, 6, 63)
        """
        count = len(self.ranks)
        return tuple(range(count)) if count <= MOST else (*range(MOST - 1), count - 1)

    @cached_property
    def has_more(self) -> bool:
        return len(self.ranks) > MOST

    @cached_property
    def slots(self) -> int:
        """Columns of ranks, and shares of a box: one more where ranks are left out."""
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
        """Where a rank that is shown stands: the last one stands behind the ones left out."""
        return place + (self.has_more and place == len(self.visible) - 1)

    def shares(self, place: int, state: str) -> list[tuple[float, int, bool]]:
        """What is filled of the box of a rank that is shown: left edge, whose share, whether faint.

        -1 is the share of the ranks left out.

        >>> Shards((0, 4), ()).shares(1, STALE)
        [(0.0, 0, True), (24.0, 1, False)]
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


def shards_svg(shards: Shards, description: str) -> str:
    """The ranks side by side, a box a tensor, a share in the colour of the rank that owns it."""
    ranks = "".join(
        _rank(shards, place, member, LEFT + shards.column(place) * shards.step)
        for place, member in enumerate(shards.visible)
    )
    letters = "".join(
        f'<text x="{LEFT - 8:g}" y="{TOP + row * ROW + BAR - 3:g}" text-anchor="end">{letter}'
        "</text>"
        for row, (letter, _) in enumerate(shards.holds)
    )
    more = ""
    if shards.has_more:
        x = LEFT + (len(shards.visible) - 1) * shards.step + shards.box / 2
        more = f'<text x="{x:g}" y="{TOP + 2 * ROW - 3:g}" text-anchor="middle">…</text>'
    return (
        f'<svg class="shards" role="img" viewBox="0 0 {shards.width:g} {shards.height:g}" '
        f'style="width:{shards.width:g}px" aria-label="{escape(description)}">'
        f"{letters}{more}{ranks}</svg>"
    )


def _rank(shards: Shards, place: int, member: int, x: float) -> str:
    title = (
        f'<text x="{shards.box / 2:g}" y="{TOP - 6:g}" text-anchor="middle" class="rank">'
        f"{shards.ranks[member]}</text>"
    )
    drawn = {state: _box(shards, place, state) for state in {one for _, one in shards.holds}}
    boxes = "".join(
        f'<g transform="translate(0,{TOP + row * ROW:g})">{drawn[state]}</g>'
        for row, (_, state) in enumerate(shards.holds)
    )
    return f'<g transform="translate({x:g},0)">{title}{boxes}</g>'


def _box(shards: Shards, place: int, state: str) -> str:
    each = shards.box / shards.slots
    shares = "".join([_share(each, *one) for one in shards.shares(place, state)])
    return f'{shares}<rect class="box" width="{shards.box:g}" height="{BAR:g}"/>'


@lru_cache(maxsize=256)  # of a few dozen that differ, a strip has hundreds
def _share(width: float, x: float, slot: int, is_faint: bool) -> str:
    owner = "others" if slot < 0 else f"g{slot}"
    return (
        f'<g class="{owner}{" faint" if is_faint else ""}">'
        f'<rect x="{x:g}" width="{width:g}" height="{BAR:g}"/></g>'
    )
