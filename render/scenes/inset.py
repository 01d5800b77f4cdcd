"""The selected rank's replica at its stage and those beside it, magnified: for a card of a picture
whose cells are too small for a number.

    a cell     one GPU with its number
    a row      a stage: of the replica's own cells, or, where a replica has few, of the replicas
               beside it too
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from groups import Mesh, coordinates

from .job import JobPicture

ACROSS, ROWS, STAGES = 8, 3, 3
"""The most cells in a line, the most lines of a stage, and the most stages."""

SIDE, TALL, GAP, TITLE = 46.0, 34.0, 4.0, 20.0
"""Pixels: width and height of a cell, between two, and for the name of a stage."""


class InsetCell(NamedTuple):
    """A GPU: its left upper corner, and the tone of its group with the selected one."""

    rank: int
    x: float
    y: float
    tone: str


@dataclass(frozen=True, eq=False)
class Inset:
    """The cells round the selected rank of a picture."""

    of: JobPicture

    @cached_property
    def _own(self) -> dict[str, int]:
        return coordinates(self.of.mesh, self.of.rank)

    @cached_property
    def stages(self) -> tuple[int, ...]:
        """The stages that are drawn, the selected rank's among them."""
        mesh = self.of.mesh
        own, count = self._own.get("pp", 0), mesh.size("pp")
        most = STAGES if len(self._line) <= ACROSS else 1
        return tuple(range(count))[_window(own, count, most)]

    @cached_property
    def _line(self) -> tuple[int, ...]:
        """The ranks of the selected rank's stage that are drawn, in order."""
        mesh, rank, columns = self.of.mesh, self.of.rank, self.of.plan.columns
        inner = [name for name in mesh.names if name not in (*columns, "pp")]
        ways = (
            tuple((at - self._own.get(name, 0)) * _stride(mesh, name) for at in range(size))
            for name in inner
            if (size := mesh.size(name)) > 1
        )
        own = sorted(rank + sum(shifts) for shifts in product(*ways))
        most = ACROSS * ROWS
        if len(own) > most:
            return tuple(own[_window(own.index(rank) // ACROSS * ACROSS, len(own), most)])
        data = next((name for name in columns if mesh.size(name) > 1), "")
        beside = range(0)
        if data and 2 * len(own) <= ACROSS:
            count = mesh.size(data)
            beside = range(count)[_window(self._own.get(data, 0), count, ACROSS // len(own))]
        shifts = [(at - self._own.get(data, 0)) * _stride(mesh, data) for at in beside] or [0]
        return tuple(one + shift for shift in shifts for one in own)

    @cached_property
    def cells(self) -> tuple[InsetCell, ...]:
        mesh = self.of.mesh
        tones = {int(one): mark.tone for mark in self.of.marks for one in mark.ranks}
        cells, top = [], 0.0
        for stage in self.stages:
            shift = (stage - self._own.get("pp", 0)) * _stride(mesh, "pp")
            top += TITLE
            for place, one in enumerate(self._line):
                row, column = divmod(place, ACROSS)
                x, y = column * (SIDE + GAP), top + row * (TALL + GAP)
                cells.append(InsetCell(one + shift, x, y, tones.get(one + shift, "")))
            top += -(-len(self._line) // ACROSS) * (TALL + GAP) + GAP
        return tuple(cells)

    @property
    def width(self) -> float:
        return max(cell.x for cell in self.cells) + SIDE

    @property
    def height(self) -> float:
        return self.cells[-1].y + TALL


def _window(own: int, count: int, most: int) -> slice:
    """As many places as are wanted, one's own in their middle where there are that many.

    >>> [list(range(9))[_window(own, 9, 3)] for own in (0, 4, 8)]
    [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    """
    first = max(0, min(own - most // 2, count - most))
    return slice(first, first + most)


def _stride(mesh: Mesh, name: str) -> int:
    return mesh.strides[mesh.names.index(name)] if name in mesh.names else 0


def insets_of(pictures: Sequence[object]) -> list[Inset]:
    """The magnified part of the first picture that has no numbers, if one is such."""
    plain = (one for one in pictures if isinstance(one, JobPicture) and not one.is_numbered)
    return [Inset(one) for one in plain][:1]
