"""Tensors before and after, and what moved between them -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import BASELINE, LOOKS, Blocks, Lines, Mark, Words, ring
from ..palette import GROUP_INK, GROUPS
from ..scenes.exchange import HEIGHT, HUB, LABEL, STRIP, Exchange

NUMBER, RANK, SIGN = 12.0, 13.0, 15.0
"""Font sizes in pixels: of a cell's number, of a rank, and of the hub's sign."""


def draw_exchange(exchange: Exchange, theme: str) -> Iterator[Mark]:
    """Cells in the colour of the member whose number they hold, or with a strip of contributors."""
    look = LOOKS[theme]
    yield from _draw_lines(exchange, theme)
    yield from _draw_ranks(exchange, theme)
    members = len(exchange.members)
    cells = list(exchange.cells())
    corners = np.array([(x + 1, y + 1) for x, y, _ in cells])
    colours = GROUPS[theme]
    fills = [
        colours[cell.who[0] % len(colours)] if len(cell.who) == 1 else look.ground
        for _, _, cell in cells
    ]
    side = np.array([exchange.cell - 2, HEIGHT - 2])
    yield Blocks(corners, side, fills, edge=look.edge, width=0.8, radius=3.0)
    field = (exchange.cell - 6) / members
    shares = [
        (x + 3 + place * field, y + HEIGHT - STRIP - 3, colours[place % len(colours)])
        for x, y, cell in cells
        if len(cell.who) != 1
        for place in cell.who
    ]
    if shares:
        corners = np.array([(x, y) for x, y, _ in shares])
        yield Blocks(corners, np.array([field, STRIP]), [colour for _, _, colour in shares])
    for x, y, cell in cells:
        down, reads = (16, GROUP_INK[theme]) if len(cell.who) == 1 else (14, look.ink)
        yield Words(x + exchange.cell / 2, y + down, cell.text, NUMBER, reads, "middle")


def _draw_ranks(exchange: Exchange, theme: str) -> Iterator[Mark]:
    look, middles = LOOKS[theme], exchange.middles
    marks = np.array([(2.0, middle - 6) for middle in middles])
    fills = [GROUPS[theme][place % len(GROUPS[theme])] for place in range(len(middles))]
    yield Blocks(marks, np.array([12.0, 12.0]), fills, radius=3.0)
    for member, middle in zip(exchange.members, middles):
        y = middle + BASELINE * RANK
        yield Words(LABEL - 8, y, str(member.rank), RANK, look.ink, "end", True)


def _draw_lines(exchange: Exchange, theme: str) -> Iterator[Mark]:
    look, lines = LOOKS[theme], exchange.lines()
    for stays, dashes in ((False, ()), (True, (2.0, 4.0))):
        ways = [line.points for line in lines if line.stays == stays]
        yield Lines(ways, look.quiet, 1.2, dashes, opacity=0.75, is_curved=True)
    if exchange.flow.hub:
        x, y = exchange.hub
        yield ring(x, y, HUB, look.ink, 1.5, look.page)
        yield Words(x, y + 5, exchange.flow.hub, SIGN, look.ink, "middle", True)
