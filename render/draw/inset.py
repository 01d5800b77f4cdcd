"""The magnified replica -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Mark, Words
from ..palette import GROUP_INK, KIND_TINTS, PLAIN_CELL
from ..scenes.inset import SIDE, TALL, Inset
from .groups import boxes_of


def draw_inset(inset: Inset, theme: str) -> Iterator[Mark]:
    """A box for each GPU with its number, in the tint of its group with the selected one, and the
    name of each stage above it."""
    look, cells = LOOKS[theme], inset.cells
    each = len(cells) // len(inset.stages)
    for number, stage in enumerate(inset.stages):
        text = inset.of.words.get("stage", "stage {first}").format(first=stage, last=stage)
        top = cells[number * each].y
        yield Words(0.0, top - 6, text, LABEL, look.quiet)
    corners = np.array([(cell.x, cell.y) for cell in cells])
    tints, plain = KIND_TINTS[theme], PLAIN_CELL[theme]
    fills = [tints[cell.tone] if cell.tone else plain for cell in cells]
    yield Blocks(corners, np.array([SIDE, TALL]), fills, radius=5.0)
    own = next(cell for cell in cells if cell.rank == inset.of.rank)
    box = (own.x, own.y, SIDE, TALL)
    yield boxes_of([box], 5.0, GROUP_INK[theme], "none")
    size = min(14.0, SIDE / 0.66 / len(str(inset.of.num_cells - 1)))
    for cell in cells:
        ink = look.page if cell is own else GROUP_INK[theme]
        x, y = cell.x + SIDE / 2, cell.y + TALL / 2
        yield Words(x, y, str(cell.rank), size, ink, "middle", bold=True, is_middle=True)
