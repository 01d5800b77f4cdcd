"""The first picture of the Moves view: both layouts, and lines from the senders to one GPU."""

from __future__ import annotations

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
from .asked import Asked, asked_of, received_of
from .sides import size_text

MOST_LINES = 64
"""Senders that are drawn with a line."""


def job_picture(asked: Asked, *, is_stacked: bool = False) -> MovesPicture:
    """Both layouts, and lines from the senders to the chosen GPU; is_stacked: one above the other,
    for narrow screens."""
    language, received = asked.language, received_of(asked)
    most = max(received.values(), default=1)
    lines = tuple(
        SentLine(rank, size / most, rank == asked.rank)
        for rank, size in received.most_common(MOST_LINES)
    )
    layouts = (asked.source.layout, asked.target.layout)
    firsts = (asked.moves.source.first_rank, asked.moves.target.first_rank)
    shown = ({line.rank for line in lines}, {asked.rank})
    titles = [
        MOVES[word][language].format(name=" · ".join((*role, *_size_texts(layout, language))))
        for word, layout, role in zip(("from", "into"), layouts, _role_names(asked))
    ]
    cell = cell_width(asked.moves.ranks - 1)
    room = NARROW if is_stacked else ROOM
    sides = (
        _rows(layout, first, ranks, language, (cell, room))
        for layout, first, ranks in zip(layouts, firsts, shown)
    )
    left, right = sides
    return MovesPicture((titles[0], titles[1]), (left, right), asked.rank, lines, is_stacked)


def _size_texts(layout: Layout, language: str) -> tuple[str, str]:
    return size_text(layout), counted(layout.world_size, "gpu", language)


def _role_names(asked: Asked) -> list[list[str]]:
    """Of either side the name of its role, where it is one."""
    return [[name] for name in asked.roles] or [[], []]


def _rows(
    layout: Layout, first: int, shown: set[int], language: str, sizes: tuple[float, float]
) -> tuple[ShardRow, ...]:
    """The stages of a layout with their tp groups."""
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
    """Of many groups those that are shown, and the first ones: more than a row has room for."""
    if len(groups) <= most:
        return [*groups.tolist()]
    wanted = np.flatnonzero(np.isin(groups, list(shown)).any(axis=1))
    kept = np.union1d(wanted, np.arange(most))
    return [*groups[kept].tolist()]


def tones_of(asked: Asked) -> dict[int, str]:
    """The colour of each sender."""
    senders = [line.rank for line in asked.source.once(_picture).lines if not line.is_own]
    return {rank: TONES[number % len(TONES)] for number, rank in enumerate(senders)}


def _picture(context: Context) -> MovesPicture:
    return job_picture(context.once(asked_of))
