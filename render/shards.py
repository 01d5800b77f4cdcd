"""Who holds which shard: the ranks of one group, each with boxes cut into every rank's share."""

from __future__ import annotations

from dataclasses import dataclass
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

    @property
    def shown(self) -> tuple[int, ...]:
        """Places of the ranks that are drawn.

        >>> Shards(tuple(range(64)), ()).shown
        (0, 1, 2, 3, 4, 5, 6, 63)
        """
        count = len(self.ranks)
        return tuple(range(count)) if count <= MOST else (*range(MOST - 1), count - 1)

    @property
    def has_more(self) -> bool:
        return len(self.ranks) > MOST


def shards_svg(shards: Shards, description: str) -> str:
    """The ranks side by side, a box a tensor, a share in the colour of the rank that owns it."""
    shown = shards.shown
    slots = len(shown) + shards.has_more
    width = max(slots * SLOT, NARROWEST)
    step = width + APART
    ranks = "".join(
        _rank(shards, place, own, LEFT + _column(shards, place) * step, width)
        for place, own in enumerate(shown)
    )
    letters = "".join(
        f'<text x="{LEFT - 8:g}" y="{TOP + row * ROW + BAR - 3:g}" text-anchor="end">{letter}'
        "</text>"
        for row, (letter, _) in enumerate(shards.holds)
    )
    more = ""
    if shards.has_more:
        x = LEFT + (len(shown) - 1) * step + width / 2
        more = f'<text x="{x:g}" y="{TOP + 2 * ROW - 3:g}" text-anchor="middle">…</text>'
    across, down = LEFT + slots * step, TOP + len(shards.holds) * ROW
    return (
        f'<svg class="shards" role="img" viewBox="0 0 {across:g} {down:g}" '
        f'style="width:{across:g}px" aria-label="{escape(description)}">'
        f"{letters}{more}{ranks}</svg>"
    )


def _column(shards: Shards, place: int) -> int:
    """The last rank stands one further, behind the ones left out."""
    return place + (shards.has_more and place == len(shards.shown) - 1)


def _rank(shards: Shards, place: int, own: int, x: float, width: float) -> str:
    title = (
        f'<text x="{width / 2:g}" y="{TOP - 6:g}" text-anchor="middle" class="rank">'
        f"{shards.ranks[own]}</text>"
    )
    boxes = "".join(
        f'<g transform="translate(0,{TOP + row * ROW:g})">{_box(shards, place, state, width)}</g>'
        for row, (_, state) in enumerate(shards.holds)
    )
    return f'<g transform="translate({x:g},0)">{title}{boxes}</g>'


def _box(shards: Shards, place: int, state: str, width: float) -> str:
    count = len(shards.shown)
    slots = count + shards.has_more
    each = width / slots
    shares = []
    for slot in range(count):
        if state == NONE or (state == OWN and slot != place):
            continue
        faint = " faint" if state == LOCAL or (state == STALE and slot != place) else ""
        x = _column(shards, slot) * each
        shares.append(
            f'<g class="g{slot}{faint}"><rect x="{x:g}" width="{each:g}" height="{BAR:g}"/></g>'
        )
    if shards.has_more and state in (WHOLE, LOCAL, STALE):
        x = (count - 1) * each
        faint = "" if state == WHOLE else " faint"
        shares.append(
            f'<g class="others{faint}"><rect x="{x:g}" width="{each:g}" height="{BAR:g}"/></g>'
        )
    outline = f'<rect class="box" width="{width:g}" height="{BAR:g}"/>'
    return "".join(shares) + outline
