"""The shards of each rank -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Mark, Words
from ..palette import GROUPS, rgb
from ..scenes.shards import BAR, LEFT, ROW, TOP, ShardGrid

FAINT = 0.28
"""The opacity of a share that is not yet final."""

OTHERS = "#8d8d94"
"""The colour of the shares of ranks that are left out."""


def draw_shards(shards: ShardGrid, theme: str) -> Iterator[Mark]:
    """The ranks of a group side by side, a box for each tensor, with shares in their owners'
    colours."""
    look = LOOKS[theme]
    each = shards.box / shards.slots
    colours = {slot: GROUPS[theme][slot] for slot in range(len(shards.visible))} | {-1: OTHERS}
    shades = {slot: (colour, _faded(colour, look.page)) for slot, colour in colours.items()}
    frames, filled, fills, words = [], [], [], []
    for row, (letter, _) in enumerate(shards.holds):
        line = TOP + row * ROW + BAR - 3
        words.append(Words(LEFT - 8, line, letter, LABEL, look.ink, "end"))
    if shards.has_more:
        x = LEFT + (len(shards.visible) - 1) * shards.step + shards.box / 2
        words.append(Words(x, TOP + 2 * ROW - 3, "…", LABEL, look.ink, "middle"))
    for place, member in enumerate(shards.visible):
        left = LEFT + shards.column(place) * shards.step
        middle = left + shards.box / 2
        words.append(Words(middle, TOP - 6, str(shards.ranks[member]), LABEL, look.ink, "middle"))
        for row, (_, state) in enumerate(shards.holds):
            top = TOP + row * ROW
            frames.append((left, top))
            for x, slot, is_faint in shards.shares(place, state):
                filled.append((left + x, top))
                fills.append(shades[slot][is_faint])
    if filled:
        yield Blocks(np.array(filled), np.array([each, BAR]), fills)
    yield Blocks(np.array(frames), np.array([shards.box, BAR]), edge=look.quiet)
    yield from words


def _faded(colour: str, page: str) -> str:
    if page.startswith("var"):
        return f"color-mix(in srgb, {colour} {FAINT:.0%}, {page})"
    mixed = (round(FAINT * a + (1 - FAINT) * b) for a, b in zip(rgb(colour), rgb(page)))
    return "#{:02x}{:02x}{:02x}".format(*mixed)
