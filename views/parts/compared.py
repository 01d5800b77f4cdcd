"""A layout beside the same job under another order of ranks: the ranks that move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from markupsafe import Markup

from descriptions import PAGE, close_up
from groups import LayoutError, Mesh
from groups.audit import Move, moves
from groups.frameworks import FRAMEWORKS, OWN, framework_of
from groups.grouping import Grouping
from groups.layout import Layout, framework_name
from request.context import Context
from request.resolve import main_groupings, resolve
from request.words import saying

from ..base.html import tag, unbroken
from ..base.names import megatrons_name
from .shown import PictureSpec, by_grid, marked

AUTO = "auto"
"""Compares with Megatron's default order; if that is the layout's, with Megatron's other one."""


def other_layout(context: Context, versus: str) -> Layout:
    """The same sizes under the framework or order to compare with.

    Errors: LayoutError if it cannot be, without alternatives: the state is another layout's.
    """
    text = versus.strip()
    if text == AUTO and context.state.framework != "megatron":
        text = "megatron"
    if text == AUTO:
        return _first_that_works(context)
    changes = {"framework": text} if text in FRAMEWORKS else {"framework": OWN, "order": text}
    expert = context.layout.expert
    if framework_of(
        changes["framework"]
    ).speaks_megatron:  # without a grid of experts etp says nothing
        changes["etp"] = "" if expert is None else str(expert.size("etp"))
    changes |= {"group_type": "auto", "more": ""}  # the names may be this framework's own
    if not framework_of(changes["framework"]).has("hpz"):
        changes["hpz"] = ""  # which moves no rank
    try:
        return resolve(replace(context.state, **changes))
    except LayoutError as error:
        raise error.replace(alternatives=()) from None


OTHERS = ("megatron-pp-dp", "tp-cp-dp-ep-pp", "tp-dp-cp-ep-pp", "dp-tp-cp-ep-pp")
"""What Megatron's default is compared with: its other order; else data before ep, cp or tp."""


def _first_that_works(context: Context) -> Layout:
    """The first valid order: Megatron's other order refuses most jobs with MoE or context
    parallelism."""
    for order in OTHERS:
        try:
            other = other_layout(context, order)
        except LayoutError:
            continue
        every = context.layout.roles
        if any(other.roles[name].spread != grouping.spread for name, grouping in every.items()):
            break
    return other


@dataclass(frozen=True)
class Comparison(Context):
    """A layout with its visible groups, and the same job under another order."""

    other: Layout

    @classmethod
    def with_other(cls, context: Context, other: Layout | None = None) -> Comparison:
        """The comparison. Errors: LayoutError if there is nothing to compare with."""
        other = other or other_layout(context, context.state.versus)
        return cls(context.layout, context.state, other)

    @cached_property
    def after(self) -> dict[str, Grouping]:
        """The visible groups that the other order has too: those with Megatron's names."""
        names = (megatrons_kind(self.layout, grouping) for grouping in self.visible)
        return {name: self.layout.roles[name] for name in names if name}

    @cached_property
    def before(self) -> list[Grouping]:
        return [self.other.roles[name] for name in self.after if name in self.other.roles]

    @cached_property
    def spec(self) -> PictureSpec:
        """What its pictures mark, with the groups under the other order."""
        drawn = (groupings for _, _, groupings in grids_of(self.other))
        others = (*self.before, *chain.from_iterable(drawn))
        return PictureSpec(self.layout, self.state, others=others)

    @cached_property
    def elsewhere(self) -> dict[str, np.ndarray]:
        """For each grid that both have, whether each rank has another place on it: bool, shape
        (world,)."""
        own, other = (
            {name: mesh for name, mesh, _ in grids_of(one)} for one in (self.layout, self.other)
        )
        return {name: _differ(own[name], other[name]) for name in own if name in other}

    @cached_property
    def is_elsewhere(self) -> np.ndarray:
        return np.any([*self.elsewhere.values()], axis=0)

    @cached_property
    def moves(self) -> list[Move]:
        return moves(self.other.roles, self.after, self.layout.gpus_per_node)

    @cached_property
    def sides(self) -> tuple[tuple[str, Layout], tuple[str, Layout]]:
        """Titles and layouts, the other one first."""
        other, own = (
            (order_title(side, self.language), side) for side in (self.other, self.layout)
        )
        return other, own

    def summary(self) -> str:
        """The kinds that get other members under the other order."""
        say = saying(PAGE, self.language)
        moved, same = (
            say("and_list").join(move.name for move in self.moves if bool(move.ranks) is is_moved)
            for is_moved in (True, False)
        )
        words = "moved_some" if moved else "moved_none"
        (before, _), (after, _) = self.sides
        facts = {"before": before, "after": after, "kinds": moved, "same": same or say("none")}
        return close_up(say(words, **facts))


def grids_of(layout: Layout) -> list[tuple[str, Mesh, tuple[Grouping, ...]]]:
    """The grids of a layout's main kinds, each with the groups that its picture marks."""
    grids = by_grid(layout, main_groupings(layout))
    return [(name, mesh, marked(layout, groupings)) for name, mesh, groupings in grids]


def _differ(one: Mesh, other: Mesh) -> np.ndarray:
    """Whether each rank has another coordinate on an axis of either mesh: bool, shape (world,).

    >>> from groups import parse_mesh
    >>> _differ(parse_mesh("tp2-dp2"), parse_mesh("dp2-tp2")).tolist()
    [False, True, True, False]
    """
    names = dict.fromkeys((*one.names, *other.names))
    differs = np.zeros(one.world_size, dtype=bool)
    for name in names:
        differs |= _along(one, name) != _along(other, name)
    return differs


def _along(mesh: Mesh, name: str) -> np.ndarray:
    """The coordinate of each rank on an axis, 0 if there is none."""
    if name not in mesh.names:
        return np.zeros(mesh.world_size, dtype=int)
    return np.arange(mesh.world_size) // mesh.strides[mesh.names.index(name)] % mesh.size(name)


def megatrons_kind(layout: Layout, grouping: Grouping) -> str:
    """Megatron's name of a group; empty if it has none.

    A framework's own name may be that of another group of Megatron's, such as fairscale's mp.
    """
    is_named_so = layout.every.get(grouping.name) == grouping
    return grouping.name if is_named_so else megatrons_name(layout, grouping)


def order_title(layout: Layout, language: str) -> str:
    is_own = layout.framework == OWN
    name = PAGE["own_short"][language] if is_own else framework_name(layout.framework)
    return name + PAGE["in_brackets"][language].format(words=layout.order)


def strip_html(context: Context, other: Layout) -> Markup:
    """A line about what the layout's order moves against another one; empty if nothing."""
    say = saying(PAGE, context.language)
    moved = [move for move in Comparison.with_other(context, other).moves if move.ranks]
    if not moved:
        return Markup()
    text = say("strip", order=other.order, kinds=say("and_list").join(move.name for move in moved))
    leaving = [
        say("strip_leaving", kind=move.name, before=f"{before:,}", after=f"{after:,}")
        for move in moved
        if (before := move.crossing_before) != (after := move.crossing_after)
    ]
    return tag("p", unbroken(" ".join([text, *leaving])), class_="strip")
