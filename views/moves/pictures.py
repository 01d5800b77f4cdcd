"""The pictures of the Moves view: both layouts, one tensor, who sends how much to whom."""

from __future__ import annotations

import numpy as np

from descriptions import MOVES, counted
from groups.layout import Layout
from groups.mesh import rank_groups
from render.palette import TONES
from render.scenes.matrix import MatrixPicture, matrix_picture
from render.scenes.moves import (
    MOST_BANDS,
    Band,
    MovesPicture,
    SentLine,
    ShardRow,
    TensorPicture,
    cell_width,
    shard_rows,
)
from training.moves import Moves
from training.moves.tensors import Tensor, tensors_of

from ..base.html import saying
from ..base.units import bytes_text
from .asked import Asked, received_of
from .sides import size_text

MOST_LINES = 24
"""Senders that are drawn with a line."""

CELLS = 128
"""Rows of the matrix at most."""


# -- both layouts --------------------------------------------------------------------------------


def job_picture(asked: Asked) -> MovesPicture:
    """Both layouts, and lines from the senders to the chosen GPU."""
    language, received = asked.language, received_of(asked)
    most = max(received.values(), default=1)
    lines = tuple(
        SentLine(rank, size / most, rank == asked.rank)
        for rank, size in received.most_common(MOST_LINES)
    )
    layouts = (asked.source.layout, asked.target.layout)
    firsts = (0, asked.moves.target.first_rank)
    shown = ({line.rank for line in lines}, {asked.rank})
    titles = tuple(
        MOVES[word][language].format(
            name=f"{size_text(layout)} · {counted(layout.world_size, 'gpu', language)}"
        )
        for word, layout in zip(("from", "into"), layouts)
    )
    cell = cell_width(asked.moves.ranks - 1)
    sides = (
        _rows(layout, first, ranks, language, cell)
        for layout, first, ranks in zip(layouts, firsts, shown)
    )
    left, right = sides
    return MovesPicture((titles[0], titles[1]), (left, right), asked.rank, lines)


def _rows(
    layout: Layout, first: int, shown: set[int], language: str, cell: float
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
    return shard_rows(near, labels, shown, cell)


def _near(groups: np.ndarray, shown: set[int], most: int = 48) -> list[list[int]]:
    """Of many groups those that are shown, and the first ones: more than a row has room for."""
    if len(groups) <= most:
        return [*groups.tolist()]
    wanted = np.flatnonzero(np.isin(groups, list(shown)).any(axis=1))
    kept = np.union1d(wanted, np.arange(most))
    return [*groups[kept].tolist()]


# -- one tensor ----------------------------------------------------------------------------------


def tensor_names(asked: Asked) -> list[str]:
    """Tensors of the chosen GPU, one of each kind, cut ones first; experts by their first."""
    names: dict[str, str] = {}
    for row in asked.rows:
        if row.axis is not None:
            kind = ".".join(part for part in row.tensor.split(".") if not part.isdigit())
            names.setdefault(kind.rstrip("0123456789"), row.tensor)
    return [*names.values()]


def chosen_tensor(asked: Asked, names: list[str]) -> str:
    name = asked.source.state.moves_tensor
    if name in names:
        return name
    return next((one for one in names if "linear_fc1.weight" in one), names[0] if names else "")


def tensor_picture(asked: Asked, name: str) -> TensorPicture:
    """A tensor cut as this layout cuts it; what the chosen GPU wants of it, and from whom."""
    source, say = asked.moves.source, saying(MOVES, asked.language)
    tensor, tones = _tensor_named(asked.moves, name), _tones(asked)
    parts = source.parts(tensor)
    held = source.length(tensor) // tensor.blocks // parts
    received = _received_parts(asked, name, tensor, held)
    word, axis = ("columns" if tensor.axis == 1 else "rows"), "etp" if tensor.expert else "tp"
    bands = []
    for block in range(tensor.blocks):
        wanted = [number for number in range(parts) if (block, number) in received]
        for number in _few(parts, wanted):
            sender, size = received.get((block, number), (-1, 0))
            is_own, told = sender == asked.rank, say("not_wanted", rank=asked.rank)
            if is_own:
                told = say("has", rank=asked.rank)
            elif sender >= 0:
                told = say("sent", sender=sender, size=bytes_text(size))
            first = (block * parts + number) * held
            label = say(word, first=f"{first:,}", last=f"{first + held - 1:,}")
            tone = "" if is_own else tones.get(sender, "")
            bands.append(Band(block, f"{axis} {number}: {label}", told, tone, is_own, sender >= 0))
    names = (say("gate"), say("up")) if tensor.blocks == 2 else ("",)
    return TensorPicture(tuple(bands), names)


def _received_parts(
    asked: Asked, name: str, tensor: Tensor, held: int
) -> dict[tuple[int, int], tuple[int, int]]:
    """By block and part of the source: who sends it to the chosen GPU, and how many bytes."""
    target = asked.moves.target
    row = next(row for row in asked.rows if row.tensor == name)
    each = target.length(tensor) // tensor.blocks // target.parts(tensor)
    parts_at = target.etp_at if tensor.expert else target.tp_at
    own = int(parts_at[asked.rank - target.first_rank]) if target.parts(tensor) > 1 else 0
    received: dict[tuple[int, int], tuple[int, int]] = {}
    for part, size in zip(row.parts, row.sizes):
        block, inside = divmod(part[2], each)
        key = block, (inside + own * each) // held
        received[key] = part[0], received.get(key, (0, 0))[1] + size
    return received


def _tensor_named(moves: Moves, name: str) -> Tensor:
    """The tensor that a full name is of; the longest one that it ends in."""
    bare = name.rstrip("0123456789")
    found = (tensor for place in moves.target.homes for tensor in tensors_of(moves.model, place))
    fitting = [one for one in found if (bare if one.expert else name).endswith(one.name)]
    return max(fitting, key=lambda one: len(one.name))


def _few(parts: int, wanted: list[int]) -> list[int]:
    """The parts of a block that are drawn: those that are wanted, and as many others."""
    kept = sorted(range(parts), key=lambda number: (number not in wanted, number))[:MOST_BANDS]
    return sorted(kept)


def _tones(asked: Asked) -> dict[int, str]:
    """The colour of each sender, as the picture of both layouts has it."""
    senders = [line.rank for line in job_picture(asked).lines if not line.is_own]
    return {rank: TONES[number % len(TONES)] for number, rank in enumerate(senders)}


# -- who sends how much to whom ------------------------------------------------------------------


def flows_picture(asked: Asked) -> tuple[MatrixPicture, int]:
    """Bytes by sending and receiving node, and how many nodes a cell is."""
    sent = asked.moves.matrix("node").astype(float)
    per = -(-len(sent) // CELLS)
    if per > 1:
        short = -len(sent) % per
        padded = np.pad(sent, (0, short))
        cells = len(padded) // per
        sent = padded.reshape(cells, per, cells, per).sum(axis=(1, 3))
    gpus = asked.source.layout.gpus_per_node
    some = sent > 0  # bytes that are nearly equal have one colour
    sent[some] = 2.0 ** (np.round(8 * np.log2(sent[some])) / 8)
    return matrix_picture(sent, per * gpus, gpus), per
