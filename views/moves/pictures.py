"""The first picture of the Moves view: both layouts, and lines from the senders to one GPU."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from descriptions import MOVES, counted
from groups.layout import Layout
from groups.mesh import rank_groups
from render.palette import TONES
from render.scenes.moves import (
    NARROW,
    ROOM,
    MovesPicture,
    SentLine,
    ShardRow,
    cell_width,
    shard_rows,
)

from ..base.context import Context
from .sides import size_text
from .transfer import WeightTransfer, weight_transfer

MOST_LINES = 64
"""The largest number of senders drawn with a line."""


class BothSides(NamedTuple):
    """What is drawn of a move: both layouts and their first ranks, and the bytes that the selected
    GPU receives from each sender. roles: the names of both sides if they are roles of one plan."""

    language: str
    received: Counter[int]
    rank: int
    layouts: tuple[Layout, Layout]
    firsts: tuple[int, int]
    roles: tuple[str, ...] = ()

    @property
    def last(self) -> int:
        """The highest rank of both layouts."""
        ends = zip(self.firsts, self.layouts)
        return max(first + layout.world_size for first, layout in ends) - 1


def sides_of(transfer: WeightTransfer) -> BothSides:
    layouts = transfer.source.layout, transfer.target.layout
    firsts = transfer.moves.source.first_rank, transfer.moves.target.first_rank
    received = transfer.received
    return BothSides(transfer.language, received, transfer.rank, layouts, firsts, transfer.roles)


def job_picture(both: BothSides, *, is_stacked: bool = False) -> MovesPicture:
    """Both layouts, and lines from the senders to the selected GPU. is_stacked: one layout above
    the other, for narrow screens."""
    language, received = both.language, both.received
    most = max(received.values(), default=1)
    lines = tuple(
        SentLine(rank, size / most, rank == both.rank)
        for rank, size in received.most_common(MOST_LINES)
    )
    shown = ({line.rank for line in lines}, {both.rank})
    titles = [
        MOVES[word][language].format(name=" · ".join((*role, *_size_texts(layout, language))))
        for word, layout, role in zip(("from", "into"), both.layouts, _role_names(both))
    ]
    cell = cell_width(both.last)
    room = NARROW if is_stacked else ROOM
    sides = (
        _rows(layout, first, ranks, language, (cell, room))
        for layout, first, ranks in zip(both.layouts, both.firsts, shown)
    )
    left, right = sides
    return MovesPicture((titles[0], titles[1]), (left, right), both.rank, lines, is_stacked)


def _size_texts(layout: Layout, language: str) -> tuple[str, str]:
    return size_text(layout), counted(layout.world_size, "gpu", language)


def _role_names(both: BothSides) -> list[list[str]]:
    """For each side a list of its role's name; empty lists if the sides are not roles."""
    return [[name] for name in both.roles] or [[], []]


def _rows(
    layout: Layout, first: int, shown: set[int], language: str, sizes: tuple[float, float]
) -> tuple[ShardRow, ...]:
    """The stages of a layout, each with its tp groups."""
    groups = rank_groups(layout.mesh, "tp")
    mesh = layout.mesh
    stride = mesh.strides[mesh.names.index("pp")] if "pp" in mesh.names else layout.world_size
    stages = groups[:, 0] // stride % mesh.size("pp")
    by_stage = [groups[stages == stage] + first for stage in range(mesh.size("pp"))]
    labels = [MOVES["stage"][language].format(stage=stage) for stage in range(len(by_stage))]
    if len(labels) == 1:
        labels = [""]
    near = [_near(of, shown) for of in by_stage]
    return shard_rows(near, labels, shown, *sizes)


def _near(groups: np.ndarray, shown: set[int], most: int = 48) -> list[list[int]]:
    """The groups that hold a shown rank, and the first `most` of the others (a row has room for
    fewer)."""
    if len(groups) <= most:
        return [*groups.tolist()]
    wanted = np.flatnonzero(np.isin(groups, list(shown)).any(axis=1))
    kept = np.union1d(wanted, np.arange(most))
    return [*groups[kept].tolist()]


def tones_of(transfer: WeightTransfer) -> dict[int, str]:
    """The colour of each sender, by rank."""
    senders = [line.rank for line in transfer.source.once(_picture).lines if not line.is_own]
    return {rank: TONES[number % len(TONES)] for number, rank in enumerate(senders)}


def _picture(context: Context) -> MovesPicture:
    return job_picture(sides_of(context.once(weight_transfer)))
