"""A number of a tensor, with who contributed to it, as a cell of the picture."""

from __future__ import annotations

from render.scenes.exchange import Cell
from request.answers.collectives.inputs import places_of


def cell_of(number: int, bits: int) -> Cell:
    """The number, and the members whose bits are set.

    >>> cell_of(7, 0b1010)
    Cell(text='7', who=(1, 3))
    """
    return Cell(str(int(number)), places_of(bits))
