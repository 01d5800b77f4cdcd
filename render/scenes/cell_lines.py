"""Columns and rows of cells, and the borders of nodes between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .geometry import Fold


class CellLines(NamedTuple):
    """Columns or rows of cells: the position of each, ascending, and its share of its cells' ranks.

    The rank of the cell where two lines cross is the sum of their shares. There is no cell where
    both lines are late: in a band that is not full, beyond its last cell.
    """

    places: np.ndarray
    ranks: np.ndarray
    is_late: np.ndarray


LATE = 2**40
"""More than any rank: added to those of a line that is late."""


def cell_lines(
    folds: Sequence[Fold], start: float, steps: Callable[[Fold], tuple[float, float]]
) -> CellLines:
    """The columns or rows of folds; steps: the length of a fold, within a band and from band to
    band."""
    places, ranks, stride = np.zeros(1), np.zeros(1, dtype=np.int64), 1
    for fold in folds:
        step, jump = steps(fold)
        bands, rest = divmod(fold.size, fold.period)
        for count, by, of_rank, full in (
            (fold.period, step, stride, rest or fold.period),
            (bands + (rest > 0), jump, stride * fold.period, bands),
        ):
            if by and (count > 1 or not full):  # else it changes nothing
                at = np.arange(count)
                places = np.add.outer(at * by, places).reshape(-1)
                at *= of_rank
                at[full:] += LATE
                ranks = np.add.outer(at, ranks).reshape(-1)
        stride *= fold.size
    order = places.argsort()
    ranks = ranks[order]
    return CellLines((start + places[order]).round(3), ranks % LATE, ranks >= LATE)


def node_end_runs(
    lines: CellLines, others: CellLines, gpus_per_node: int, near: float | None
) -> list[tuple[int, int, int]]:
    """(line, first other, last other) of each run along which a node ends after the line.

    near: the largest distance between neighbouring others; a run ends at a larger one, which leads
    to another band. None: only lines after which a node ends along their whole length; and no line
    at all if that holds for most, as lines between all neighbours would tell nothing.
    """
    if near is None:
        whole = _ends_throughout(lines, others, gpus_per_node).tolist()
        is_shown = 2 * len(whole) <= len(lines.places)
        return [(at, 0, len(others.places) - 1) for at in whole if is_shown]
    bands = np.flatnonzero(np.diff(others.places) > near) + 1
    parts = np.split(_is_end(lines, others, gpus_per_node), bands)
    return [
        (at, start + first, start + last)
        for start, part in zip([0, *bands.tolist()], parts)
        for at, first, last in _runs(part)
    ]


def _is_end(lines: CellLines, others: CellLines, gpus_per_node: int) -> np.ndarray:
    """Whether a node ends between a line and the next: bool, shape (others, lines - 1)."""
    node = (others.ranks[:, None] + lines.ranks) // gpus_per_node
    gone = others.is_late[:, None] & lines.is_late
    return (node[:, :-1] != node[:, 1:]) & ~gone[:, :-1] & ~gone[:, 1:]


def _ends_throughout(lines: CellLines, others: CellLines, gpus_per_node: int) -> np.ndarray:
    """The lines after which a node ends in every other line that has cells of both.

    Others that start at the same place of a node need to be tested only once.
    """

    def ends(ranks: np.ndarray) -> np.ndarray:
        node = (np.unique(ranks % gpus_per_node)[:, None] + lines.ranks) // gpus_per_node
        return (node[:, :-1] != node[:, 1:]).all(axis=0)

    is_late = lines.is_late[:-1] | lines.is_late[1:]
    return np.flatnonzero(
        np.where(is_late, ends(others.ranks[~others.is_late]), ends(others.ranks))
    )


def _runs(is_end: np.ndarray) -> list[tuple[int, int, int]]:
    """(column, first row, last row) of each run."""
    # A run begins where the row above is not an end, and ends where the row below is not an end.
    framed = np.zeros((is_end.shape[1], is_end.shape[0] + 2), dtype=np.int8)
    framed[:, 1:-1] = is_end.T
    changes = framed[:, 1:] - framed[:, :-1]
    columns, first = np.nonzero(changes == 1)
    _, after = np.nonzero(changes == -1)
    return list(zip(columns.tolist(), first.tolist(), (after - 1).tolist()))
