"""The tensors that the selected GPU receives, in order, for the page's script to play.

Most tensors are cut and sent alike in many layers: each way is drawn once, and a step says which.
"""

from __future__ import annotations

from typing import Any

from descriptions import MOVES
from groups import LayoutError
from groups.budget import spend, within
from render.draw.tensor import draw_tensor
from render.svg.marks import scene_svg
from request.answers.moves.transfer import WeightTransfer, weight_transfer
from request.context import Context
from request.link import from_values, parsed
from request.resolve import resolve
from request.words import sentence
from training.moves import TensorMove

from ..base.html import as_json
from .pictures import shades_of
from .tensor import kind_of, tensor_picture

PER_UNIT = 8
"""Ranks for a unit of work before anything is worked out of them."""

MOST_WAYS = 400
"""The largest number of different pictures in one reel."""


@within()
def moves_reel(sent: Any) -> str:
    """The reel of a state sent by the page, as JSON; {"refused": sentence} if the state is not
    valid.

    steps     [tensor, its way] in the order of the module; of experts that come alike the first
    ways      {"svg": the tensor as its matrix, "senders": who sends parts of it}
    """
    state = from_values(parsed(sent))
    try:
        layout = resolve(state)
        spend(layout.world_size // PER_UNIT, "ranks")
        return as_json(reel_of(Context(layout, state).once(weight_transfer)))
    except LayoutError as error:
        return as_json({"refused": sentence(error, state.language)})


def reel_of(transfer: WeightTransfer) -> dict[str, Any]:
    """The steps of the reel and its pictures.

    Errors: LayoutError as of `weight_transfer`, and for more than MOST_WAYS pictures.
    """
    steps, rows = steps_of(transfer)
    spend(2000 * max(0, len(rows) - MOST_WAYS), "tensors", control="rank")
    shades = shades_of(transfer)
    return {"steps": steps, "ways": [_way(transfer, row, shades) for row in rows]}


def steps_of(transfer: WeightTransfer) -> tuple[list[tuple[str, int]], list[TensorMove]]:
    """The steps, each a tensor and the number of its picture; and one tensor for each picture."""
    return transfer.source.once(_steps)


def _steps(context: Context) -> tuple[list[tuple[str, int]], list[TensorMove]]:
    numbers: dict[tuple[object, ...], int] = {}
    rows: list[TensorMove] = []
    steps: list[tuple[str, int]] = []
    before: tuple[str, int] | None = None
    for row in context.once(weight_transfer).rows:
        kind, layer = kind_of(row.tensor), row.tensor.partition(".mlp.")[0]
        number = numbers.setdefault((kind, row.axis, row.parts, row.bands), len(rows))
        if number == len(rows):
            rows.append(row)
        step = f"{layer} {kind}", number
        if step != before or ".experts." not in kind:
            steps.append((row.tensor, number))
        before = step
    return steps, rows


def _way(transfer: WeightTransfer, row: TensorMove, shades: dict[int, str]) -> dict[str, Any]:
    spend(600, "pieces", control="rank")
    return {
        "svg": tensor_svg(transfer, row, shades),
        "senders": sorted({part[0] for part in row.parts}),
    }


def tensor_svg(transfer: WeightTransfer, row: TensorMove, shades: dict[int, str]) -> str:
    """The picture of a tensor as SVG for the page."""
    picture = tensor_picture(transfer, row, shades)
    note = MOVES["tensor_note"][transfer.language].format(rank=transfer.rank)
    return scene_svg("moves-tensor", picture, draw_tensor(picture, "page"), f"{row.tensor}: {note}")
