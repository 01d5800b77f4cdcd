"""What the Moves view is asked: both sides, what moves between them, the GPU that is looked at."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import NamedTuple

from groups import LayoutError
from training.moves import Moves, TensorMove

from ..base.context import Context
from ..base.state import is_empty
from ..compare.named import context_named
from ..compare.sides import FROM_HERE, kept_context
from .sides import ROLE, moves_between, role_side

PLACES = ("here", "behind")
"""Where the other layout stands: on the same GPUs, or on those behind them."""


class Asked(NamedTuple):
    """What the view is asked: both sides, what moves, and the GPU that is looked at.

    roles: the names of both sides, where they are roles of one plan; else empty.
    """

    source: Context
    target: Context
    moves: Moves
    rank: int
    roles: tuple[str, ...] = ()

    @property
    def language(self) -> str:
        return self.source.language

    @property
    def rows(self) -> list[TensorMove]:
        """The slices of the chosen GPU."""
        return self.source.once(_rows_of)


class OtherSide(NamedTuple):
    """The other layout, where both begin, and the names of both where they are roles."""

    context: Context
    source_rank: int
    first_rank: int
    roles: tuple[str, ...] = ()


def asked_of(context: Context) -> Asked:
    """Errors: LayoutError for a layout that cannot be, and as `moves_between`."""
    other = context.once(other_side)
    rule = context.state.value("moves_rule")
    moves = moves_between(context, other.context, rule, other.first_rank, other.source_rank)
    rank = other.first_rank + min(context.rank, other.context.layout.world_size - 1)
    return Asked(context, other.context, moves, rank, other.roles)


def other_side(context: Context) -> OtherSide:
    """The side that the page names; else the next role of the plan, the layout that Compare keeps,
    or this one as a server has it: one stage."""
    named = context.state.moves_other
    text = named if not is_empty(named) else usual_name(context)
    if text.strip().startswith(ROLE):
        target, here, there = role_side(text, context)
        names = context.cast.shown.name, text.strip().removeprefix(ROLE).strip()
        return OtherSide(target, here, there, names)
    where = context.state.value("moves_first")
    first = 0 if where == "here" else context.layout.world_size
    return OtherSide(_named(text, context), 0, first)


KEPT = "kept"
"""How the layout is named that Compare keeps."""


def usual_name(context: Context) -> str:
    """What counts where the page names no other layout."""
    if others := other_roles(context):
        return f"{ROLE}{others[0]}"
    return KEPT if not is_empty(context.state.kept) else context.once(usual_target)[0]


def other_roles(context: Context) -> list[str]:
    """The other roles of the plan, the next one first."""
    if is_empty(context.state.roles):
        return []
    cast = context.cast
    names = [member.name for member in cast.members]
    return names[cast.at + 1 :] + names[: cast.at]


def _named(text: str, context: Context) -> Context:
    if text == KEPT:
        return kept_context(context)
    if not text:
        return context  # nothing differs
    try:
        return context_named(text, context)
    except LayoutError as error:
        raise error.renamed({"kept": "moves_other"}) from None


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
