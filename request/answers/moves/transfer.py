"""The weight transfer that the page selects: both sides, the moves between them, the selected
GPU."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from groups import LayoutError
from groups.layout import Layout
from training.moves import Moves, TensorMove

from ...context import Context
from ...named.kept import FROM_HERE, kept_context
from ...named.text import context_named
from ...state import is_empty
from .sides import ROLE, moves_between, role_side

PLACES = ("here", "behind")
"""Where the other layout runs: on the same GPUs, or on the GPUs behind them."""


@dataclass(frozen=True, eq=False)
class LayoutTransfer:
    """What moves between two layouts, and the selected GPU of the target.

    roles: the names of both sides if they are roles of one plan, else empty.
    """

    source: Context
    target: Context
    rank: int
    roles: tuple[str, ...]

    @property
    def language(self) -> str:
        return self.source.language

    @property
    def layouts(self) -> tuple[Layout, Layout]:
        return self.source.layout, self.target.layout

    @property
    def firsts(self) -> tuple[int, int]:
        """The first ranks of both layouts."""
        raise NotImplementedError

    @property
    def last(self) -> int:
        """The highest rank of both layouts."""
        ends = zip(self.firsts, self.layouts)
        return max(first + layout.world_size for first, layout in ends) - 1

    @property
    def received(self) -> Counter[int]:
        """Bytes that the selected GPU receives from each sender, itself included."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class WeightTransfer(LayoutTransfer):
    """The weights of a model on their way from one layout to another."""

    moves: Moves

    @property
    def firsts(self) -> tuple[int, int]:
        return self.moves.source.first_rank, self.moves.target.first_rank

    @property
    def rows(self) -> list[TensorMove]:
        """The slices that the selected GPU receives."""
        return self.source.once(_rows_of)

    @property
    def received(self) -> Counter[int]:
        return self.source.once(_received_of)


class OtherSide(NamedTuple):
    """The other layout, the first ranks of both, and their names if they are roles of one plan."""

    context: Context
    source_rank: int
    first_rank: int
    roles: tuple[str, ...] = ()

    def chosen_by(self, context: Context) -> int:
        """The selected GPU, counted from the first rank of this side."""
        return self.first_rank + min(context.rank, self.context.layout.world_size - 1)


def weight_transfer(context: Context) -> WeightTransfer:
    """The weight transfer that the page's state selects.

    Errors: LayoutError for a layout that cannot be built, and as of `moves_between`.
    """
    other = context.once(other_side)
    rule = context.state.value("moves_rule")
    try:
        moves = moves_between(context, other.context, rule, other.first_rank, other.source_rank)
    except LayoutError as error:
        if error.control != "first_rank":
            raise
        behind = [{"moves_first": "behind"}] if error.alternatives else []
        raise error.replace(control="moves_first", alternatives=behind) from None
    return WeightTransfer(context, other.context, other.chosen_by(context), other.roles, moves)


def other_side(context: Context) -> OtherSide:
    """The layout that the page names; by default the plan's next role, else the layout kept by
    Compare, else this layout with fewer stages, as a server would have it."""
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
"""Name of the layout that Compare keeps."""


def usual_name(context: Context) -> str:
    """The name of the other layout when the page names none."""
    if others := other_roles(context):
        return f"{ROLE}{others[0]}"
    return KEPT if not is_empty(context.state.kept) else context.once(usual_target)[0]


def other_roles(context: Context) -> list[str]:
    """The names of the plan's other roles, the next one first."""
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
    """This layout with fewer stages and less tp, as far as such a layout is valid, of a server with
    another tp, dp or ep; the changes, as text, and its context.

    >>> from request.state import State
    >>> server = State(framework="sglang", nodes=40, tp=320, dp=80, ep=320, pp=1)
    >>> usual_target(Context.of(server))[0], usual_target(Context.of(State()))[0]
    ('~dp=40', '~tp=1;pp=1')
    """
    mesh, job = context.layout.mesh, context.layout.job
    tp, ways = mesh.size("tp"), list[dict[str, int]]()
    if context.layout.made_by.serves:
        tp, dp, ep = job.tp, job.dp or 1, job.ep
        ways = [{"dp": dp // 2}, {"dp": 2 * dp}, {"ep": ep // 2}, {"ep": 2 * ep}]
    for sizes in ({"tp": tp // 2, "pp": 1}, {"pp": 1}, {"tp": 2 * tp}, *ways):
        with suppress(LayoutError):
            changes = {**sizes, "vpp": "", "schedule": "", "layers": ""}
            other = Context.of(context.state.changed(changes))
            if other.layout.main != context.layout.main:
                changes_text = ";".join(f"{name}={size}" for name, size in sizes.items())
                return f"{FROM_HERE}{changes_text}", other
    return "", context


def _rows_of(context: Context) -> list[TensorMove]:
    transfer = context.once(weight_transfer)
    return [*transfer.moves.rows(transfer.rank)]


def _received_of(context: Context) -> Counter[int]:
    received: Counter[int] = Counter()
    for row in context.once(_rows_of):
        for part, size in zip(row.parts, row.sizes):
            received[part[0]] += size
    return received
