"""What the Moves view is asked: both sides, what moves between them, the GPU that is looked at."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import NamedTuple

from groups import LayoutError
from training.moves import Moves, TensorMove

from ..base.context import Context
from ..base.state import is_empty
from ..compare.sides import FROM_HERE, kept_context
from .sides import moves_between

PLACES = ("here", "behind")
"""Where the other layout stands: on the same GPUs, or on those behind them."""


class Asked(NamedTuple):
    """What the view is asked: both sides, what moves, and the GPU that is looked at."""

    source: Context
    target: Context
    moves: Moves
    rank: int

    @property
    def language(self) -> str:
        return self.source.language

    @property
    def rows(self) -> list[TensorMove]:
        """The slices of the chosen GPU."""
        return self.source.once(_rows_of)


def asked_of(context: Context) -> Asked:
    """Errors: LayoutError for a layout that cannot be, and as `moves_between`."""
    target, state = target_of(context), context.state
    rule, where = state.value("moves_rule"), state.value("moves_first")
    first = 0 if where == "here" else context.layout.world_size
    moves = moves_between(context, target, rule, first)
    rank = first + min(context.rank, target.layout.world_size - 1)
    return Asked(context, target, moves, rank)


def target_of(context: Context) -> Context:
    """The kept layout of Compare; without one this layout as a server has it: one stage."""
    if not is_empty(context.state.kept):
        return kept_context(context)
    return context.once(usual_target)[1]


def usual_target(context: Context) -> tuple[str, Context]:
    """Fewer stages and less tp, as far as that can be: what differs, and the layout."""
    mesh = context.layout.mesh
    tp = mesh.size("tp")
    for sizes in ({"tp": tp // 2, "pp": 1}, {"pp": 1}, {"tp": 2 * tp}):
        with suppress(LayoutError):
            changes = {**sizes, "vpp": "", "schedule": "", "layers": ""}
            other = Context.of(context.state.changed(changes))
            if str(other.layout.mesh) != str(mesh):
                said = ";".join(f"{name}={size}" for name, size in sizes.items())
                return f"{FROM_HERE}{said}", other
    return "", context


def _rows_of(context: Context) -> list[TensorMove]:
    asked = context.once(asked_of)
    return [*asked.moves.rows(asked.rank)]


def received_of(asked: Asked) -> Counter[int]:
    """Bytes that the chosen GPU has of each sender, itself among them."""
    received: Counter[int] = Counter()
    for row in asked.rows:
        for part, size in zip(row.parts, row.sizes):
            received[part[0]] += size
    return received
