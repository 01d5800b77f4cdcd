"""The first picture of the Moves view: both layouts, and lines from the senders to one GPU."""

from __future__ import annotations

import numpy as np

from descriptions import MOVES, counted
from groups.layout import Layout
from groups.mesh import rank_groups
from render.scenes.moves import (
    NARROW,
    ROOM,
    MovesPicture,
    SentLine,
    ShardRow,
    cell_width,
    shard_rows,
)
from request.answers.moves.sides import size_text
from request.answers.moves.transfer import LayoutTransfer, WeightTransfer, weight_transfer
from request.context import Context

MOST_LINES = 64
"""The largest number of senders drawn with a line."""


def job_picture(transfer: LayoutTransfer, *, is_stacked: bool = False) -> MovesPicture:
    """Both layouts, and lines from the senders to the selected GPU. is_stacked: one layout above
    the other, for narrow screens."""
    language, received = transfer.language, transfer.received
    most = max(received.values(), default=1)
    lines = tuple(
        SentLine(rank, size / most, rank == transfer.rank)
        for rank, size in received.most_common(MOST_LINES)
    )
    shown = ({line.rank for line in lines}, {transfer.rank})
    titles = [
        MOVES[word][language].format(name=" · ".join((*role, *_size_texts(layout, language))))
        for word, layout, role in zip(("from", "into"), transfer.layouts, _role_names(transfer))
    ]
    cell = cell_width(transfer.last)
    room = NARROW if is_stacked else ROOM
    sides = (
        _rows(layout, first, ranks, language, (cell, room))
        for layout, first, ranks in zip(transfer.layouts, transfer.firsts, shown)
    )
    left, right = sides
    return MovesPicture((titles[0], titles[1]), (left, right), transfer.rank, lines, is_stacked)


def _size_texts(layout: Layout, language: str) -> tuple[str, str]:
    return size_text(layout), counted(layout.world_size, "gpu", language)


def _role_names(transfer: LayoutTransfer) -> list[list[str]]:
    """For each side a list of its role's name; empty lists if the sides are not roles."""
    return [[name] for name in transfer.roles] or [[], []]


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


def shades_of(transfer: WeightTransfer) -> dict[int, str]:
    """The shade of each sender by its bytes, by rank."""
    return transfer.source.once(_picture).shades


def _picture(context: Context) -> MovesPicture:
    return job_picture(context.once(weight_transfer))
