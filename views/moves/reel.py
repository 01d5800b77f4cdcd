"""The tensors of the chosen GPU one after the other, as the page's script plays them.

Most tensors are cut and sent alike in many layers: each way is drawn once, and a step says which.
"""

from __future__ import annotations

from typing import Any

from descriptions import MOVES
from groups import LayoutError
from groups.budget import spend, within
from render.draw.tensor import draw_tensor
from render.svg.marks import scene_svg
from training.moves import TensorMove

from ..base.context import Context
from ..base.html import as_json
from ..base.link import from_values, parsed
from ..base.problems import sentence
from ..base.resolve import resolve
from .asked import Asked, asked_of
from .pictures import tones_of
from .tensor import kind_of, tensor_picture

MOST_WAYS = 400
"""Pictures of one reel."""


@within()
def moves_reel(sent: Any) -> str:
    """The reel of a state that the page sends, as JSON; {"refused": sentence} where there is none.

    steps     [tensor, its way] in the order of the module; of experts that come alike the first
    ways      {"svg": the tensor as its matrix, "senders": who sends parts of it}
    """
    state = from_values(parsed(sent))
    try:
        return as_json(reel_of(Context(resolve(state), state).once(asked_of)))
    except LayoutError as error:
        return as_json({"refused": sentence(error, state.language)})


def reel_of(asked: Asked) -> dict[str, Any]:
    """Errors: LayoutError as of `asked_of`, and for more ways than a page takes."""
    steps, rows = steps_of(asked)
    spend(2000 * max(0, len(rows) - MOST_WAYS), "tensors", control="rank")
    tones = tones_of(asked)
    return {"steps": steps, "ways": [_way(asked, row, tones) for row in rows]}


def steps_of(asked: Asked) -> tuple[list[tuple[str, int]], list[TensorMove]]:
    """The steps, each a tensor and the number of its way; a tensor that goes each way."""
    return asked.source.once(_steps)


def _steps(context: Context) -> tuple[list[tuple[str, int]], list[TensorMove]]:
    numbers: dict[tuple[object, ...], int] = {}
    rows: list[TensorMove] = []
    steps: list[tuple[str, int]] = []
    before: tuple[str, int] | None = None
    for row in context.once(asked_of).rows:
        kind, layer = kind_of(row.tensor), row.tensor.partition(".mlp.")[0]
        number = numbers.setdefault((kind, row.axis, row.parts, row.bands), len(rows))
        if number == len(rows):
            rows.append(row)
        step = f"{layer} {kind}", number
        if step != before or ".experts." not in kind:
            steps.append((row.tensor, number))
        before = step
    return steps, rows


def _way(asked: Asked, row: TensorMove, tones: dict[int, str]) -> dict[str, Any]:
    spend(600, "pieces", control="rank")
    return {
        "svg": tensor_svg(asked, row, tones),
        "senders": sorted({part[0] for part in row.parts}),
    }


def tensor_svg(asked: Asked, row: TensorMove, tones: dict[int, str]) -> str:
    """The picture of a tensor on the page."""
    picture = tensor_picture(asked, row, tones)
    note = MOVES["tensor_note"][asked.language].format(rank=asked.rank)
    return scene_svg("moves-tensor", picture, draw_tensor(picture, "page"), f"{row.tensor}: {note}")
