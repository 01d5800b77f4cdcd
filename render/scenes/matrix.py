"""Who sends how much to whom, as plain data: one pixel a pair, its bytes on a log scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LEVELS = 24
"""Steps of the colour scale."""

COLOURS = ("#aebff2", "#14145e")
"""Least and most."""

DECADES = 6
"""The scale reaches so many powers of ten below the most; what is less has the first colour."""

SIDE = 640.0
LEFT, TOP, RIGHT = 62.0, 24.0, 18.0
CHARACTER, APART = 7.0, 9.0  # width of one in a label, and pixels between two labels
SMALL = 20.0  # pixels of a cell that a label is larger than


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


def matrix_picture(sent: np.ndarray, ranks_per_cell: int, gpus_per_node: int) -> MatrixPicture:
    """The picture of bytes by sender and receiver, shape (n, n).

    >>> picture = matrix_picture(np.array([[0.0, 1e9], [1e3, 0.0]]), 1, gpus_per_node=8)
    >>> picture.levels.tolist(), picture.labels
    ([[0, 24], [1, 0]], ((0, '0'), (1, '1')))
    """
    high = float(sent.max(initial=0.0)) or 1.0
    least = float(sent[sent > 0].min(initial=high))
    low = max(least, high / 10**DECADES)
    span = np.log(high / low) or 1.0
    at = np.log(np.maximum(sent, low) / low) / span
    levels = np.where(sent > 0, 1 + np.rint((LEVELS - 1) * at), 0).astype(np.uint8)
    n = len(sent)
    nodes = ranks_per_cell > 1
    cell = SIDE / n
    widest = CHARACTER * len(_label(n - 1, ranks_per_cell, gpus_per_node)) + APART
    unit = 1 if nodes or cell >= widest else gpus_per_node
    step = unit * 2 ** max(0, math.ceil(math.log2(widest / (cell * unit))))
    labels = tuple((at, _label(at, ranks_per_cell, gpus_per_node)) for at in range(0, n, step))
    is_lined = not nodes and cell * gpus_per_node >= 6
    borders = tuple(range(gpus_per_node, n, gpus_per_node)) if is_lined else ()
    return MatrixPicture(levels, low, high, borders, labels)


def _label(cell: int, ranks_per_cell: int, gpus_per_node: int) -> str:
    """The rank of a cell, or the first node of several ranks."""
    return str(cell) if ranks_per_cell == 1 else f"N{cell * ranks_per_cell // gpus_per_node}"


def label_place(cell: float) -> tuple[float, float, str]:
    """Where a label stands, right of and below the corner of its cell, and its anchor.

    That of small cells begins where they do: in the corner of the picture two would touch.
    """
    return (0.0, CHARACTER, "start") if cell < SMALL else (cell / 2, cell / 2, "middle")
