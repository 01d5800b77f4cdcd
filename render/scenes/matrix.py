"""The bytes between pairs of ranks as plain data: one pixel per pair, on a log scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LEVELS = 24
"""Steps of the colour scale."""

DECADES = 6
"""Powers of ten below the largest value that the scale covers; smaller values have the first
colour."""

SIDE = 640.0
LEFT, TOP, RIGHT = 62.0, 24.0, 18.0
CHARACTER, APART = 7.0, 9.0  # width of a digit in a label, and pixels between two labels
SMALL = 20.0  # a cell with fewer pixels is smaller than its label


@dataclass(frozen=True, eq=False)
class MatrixPicture:
    """What to draw.

    Attributes:
        levels: uint8, shape (n, n), sender by receiver: 0 nothing, 1 to LEVELS little to much.
        low, high: bytes of the ends of the scale.
        borders: cells before which a node begins, where there are lines.
        labels: cells with their text, such as a rank or N3 for a node.
    """

    levels: np.ndarray
    low: float
    high: float
    borders: tuple[int, ...]
    labels: tuple[tuple[int, str], ...]

    @property
    def cell(self) -> float:
        return SIDE / len(self.levels)


def matrix_picture(
    sent: np.ndarray, ranks_per_cell: int, gpus_per_node: int, firsts: np.ndarray | None = None
) -> MatrixPicture:
    """The picture of bytes by sender and receiver, shape (n, n); firsts: the first rank of each of
    the n cells, unless these are all ranks in order.

    >>> picture = matrix_picture(np.array([[0.0, 1e9], [1e3, 0.0]]), 1, gpus_per_node=8)
    >>> picture.levels.tolist(), picture.labels
    ([[0, 24], [1, 0]], ((0, '0'), (1, '1')))
    >>> matrix_picture(np.ones((2, 2)), 1, 8, np.array([5, 13])).labels
    ((0, '5'), (1, '13'))
    """
    high = float(sent.max(initial=0.0)) or 1.0
    least = float(sent[sent > 0].min(initial=high))
    low = max(least, high / 10**DECADES)
    span = np.log(high / low) or 1.0
    at = np.log(np.maximum(sent, low) / low) / span
    levels = np.where(sent > 0, 1 + np.rint((LEVELS - 1) * at), 0).astype(np.uint8)
    n = len(sent)
    firsts = np.arange(n) * ranks_per_cell if firsts is None else firsts
    nodes = firsts // gpus_per_node
    names = firsts.tolist() if ranks_per_cell == 1 else [f"N{node}" for node in nodes.tolist()]
    begins = tuple((np.flatnonzero(np.diff(nodes)) + 1).tolist())
    cell = SIDE / n
    widest = CHARACTER * max(len(str(name)) for name in (names[0], names[-1])) + APART
    of_node = begins[0] if begins and ranks_per_cell == 1 else 1
    unit = 1 if cell >= widest else of_node
    step = unit * 2 ** max(0, math.ceil(math.log2(widest / (cell * unit))))
    labels = tuple((at, str(names[at])) for at in range(0, n, step))
    is_lined = ranks_per_cell == 1 and cell * of_node >= 6
    return MatrixPicture(levels, low, high, begins if is_lined else (), labels)


def label_place(cell: float) -> tuple[float, float, str]:
    """The place of a label right of and below the corner of its cell, and its anchor.

    Labels of small cells start at the cell itself: in the corner of the picture two would touch.
    """
    return (0.0, CHARACTER, "start") if cell < SMALL else (cell / 2, cell / 2, "middle")
