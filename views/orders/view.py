"""The Orders view: how the framework numbers its ranks, and what another order would move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from markupsafe import Markup

from descriptions import FRAMEWORKS, OWN_GROUPS, PAGE, SAVED, UNSETTLED, counted
from groups import LayoutError
from groups.audit import Move, moves
from groups.conventions import CONVENTIONS, MEGATRONS, OWN
from groups.grouping import Grouping
from groups.layout import Layout, framework_name, own_groupings
from render.scenes import groups as scene
from render.svg import groups as svg

from ..base import form
from ..base.context import Context, Pictures, View
from ..base.html import (
    cell,
    chip,
    chips,
    figure,
    fold,
    heading,
    intro,
    outside,
    row,
    saying,
    table,
    tag,
    together,
    tone_class,
    unbroken,
)
from ..base.names import megatrons_name
from ..base.problems import refusal_line
from ..base.resolve import resolve
from ..base.state import State
from ..base.units import ranges_text, ranks_text
from ..groups.shown import PictureSpec
from ..groups.view import PANEL_LIMIT, card_html, framed, overview_figure

AUTO = "auto"
"""Compare with Megatron's default order, or, from that, with its other one."""

SHOWN_RANKS = 12
"""Runs of moved ranks that the table writes out."""


def other_layout(context: Context, versus: Any) -> Layout:
    """The same sizes under the framework or the order that they are compared with.

    Errors: LayoutError if it cannot be, without alternatives: the state is another layout's.
    """
    text = versus.strip() if isinstance(versus, str) else versus
    if text == AUTO and context.state.framework != "megatron":
        text = "megatron"
    if text == AUTO:
        return _first_that_works(context)
    is_known = isinstance(text, str) and text in CONVENTIONS
    changes = {"framework": text} if is_known else {"framework": OWN, "order": text}
    expert = context.layout.expert
    if changes["framework"] in MEGATRONS:  # without a grid of experts etp says nothing
        changes["etp"] = "" if expert is None else str(expert.size("etp"))
    try:
        return resolve(replace(context.state, **changes))
    except LayoutError as error:
        raise error.replace(alternatives=()) from None


OTHERS = ("megatron-pp-dp", "tp-cp-dp-ep-pp", "tp-dp-cp-ep-pp", "dp-tp-cp-ep-pp")
"""What Megatron's default is compared with: its other order; else data before ep, cp or tp."""


def _first_that_works(context: Context) -> Layout:
    """Megatron's other order refuses most MoE and context parallel jobs: then the next one."""
    for order in OTHERS:
        try:
            other = other_layout(context, order)
        except LayoutError:
            continue
        every = context.layout.every
        if any(other.every[name].spread != grouping.spread for name, grouping in every.items()):
            break
    return other


@dataclass(frozen=True)
class Comparison(Context):
    """A layout, with the groups that it shows, and the same job under another order."""

    other: Layout

    @classmethod
    def with_other(cls, context: Context, other: Layout | None = None) -> Comparison:
        """Errors: LayoutError if there is nothing to compare with."""
        other = other or other_layout(context, context.state.versus)
        return cls(context.layout, context.state, other)

    @cached_property
    def after(self) -> dict[str, Grouping]:
        """The shown groups that the other order may be asked for: those of Megatron's names."""
        names = (_megatrons(self.layout, grouping) for grouping in self.visible)
        return {name: self.layout.every[name] for name in names if name}

    @cached_property
    def before(self) -> list[Grouping]:
        return [self.other.every[name] for name in self.after if name in self.other.every]

    @cached_property
    def spec(self) -> PictureSpec:
        """What its pictures mark: the groups under the other order too."""
        return PictureSpec(self.layout, self.state, others=self.before)

    @cached_property
    def moves(self) -> list[Move]:
        return moves(self.other.every, self.after, self.layout.gpus_per_node)

    @cached_property
    def sides(self) -> tuple[tuple[str, Layout], tuple[str, Layout]]:
        """Titles and layouts, the other one first."""
        other, own = ((_title(side, self.language), side) for side in (self.other, self.layout))
        return other, own

    def summary(self) -> str:
        """Which kinds get other members under the other order."""
        say = saying(PAGE, self.language)
        moved, same = (
            say("and_list").join(move.name for move in self.moves if bool(move.ranks) is is_moved)
            for is_moved in (True, False)
        )
        words = "moved_some" if moved else "moved_none"
        (before, _), (after, _) = self.sides
        return say(words, before=before, after=after, kinds=moved, same=same or say("none"))


def _megatrons(layout: Layout, grouping: Grouping) -> str:
    """Megatron's name of a group; empty where it has none.

    A framework's own name may be that of another group of Megatron's, such as fairscale's mp.
    """
    is_named_so = layout.every.get(grouping.name) == grouping
    return grouping.name if is_named_so else megatrons_name(layout, grouping)


def _title(layout: Layout, language: str) -> str:
    is_own = layout.framework == OWN
    name = PAGE["own_short"][language] if is_own else framework_name(layout.framework)
    return f"{name} ({layout.order})"


# -- on the page -----------------------------------------------------------------------------------


def orders_html(context: Context) -> Markup:
    """The layout's framework, and beside it the same job under the other order."""
    layout, language = context.layout, context.language
    inputs = _inputs(context.state)
    try:
        compared = Comparison.with_other(context)
    except LayoutError as error:
        head = intro(PAGE["moved_title"][language], PAGE["moved_body"][language], language)
        parts = (head, inputs, refusal_line(error, language), _framework(layout, language))
        return framed(PictureSpec(layout, context.state), "orders", *parts)
    head = heading(PAGE["moved_title"][language], tag("p", unbroken(compared.summary())))
    pictures = (_panels if layout.world_size <= PANEL_LIMIT else _overviews)(compared)
    parts = (head, inputs, pictures, card_html(compared.spec), _table(compared))
    return framed(compared.spec, "orders", *parts, _framework(layout, language))


def _inputs(state: State) -> Markup:
    """What to compare with: a framework from the list, or an order that is typed."""
    names = {AUTO: PAGE["versus_auto"][state.language]}
    names |= {name: convention.name for name, convention in CONVENTIONS.items()}
    return form.line(
        form.choice("versus", state, ((label, name) for name, label in names.items())),
        form.text("versus_order", state, sets="versus", besides=" ".join(names)),
    )


def _table(compared: Comparison) -> Markup:
    say = saying(PAGE, compared.language)
    leaving = (say("column_leaving", order=side.order) for _, side in compared.sides)
    heads = (say("column_moved"), *leaving)
    rows = (_move_row(move, compared.language, heads) for move in compared.moves)
    return table((say("column_kind"), *map(unbroken, heads)), rows, "moves")


def _move_row(move: Move, language: str, heads: Sequence[str]) -> Markup:
    """heads: of its cells, which on a phone say them."""
    moved = together(counted(move.ranks, "rank", language))
    if 0 < move.ranks < len(move.moved):
        ranks = move.moved.nonzero()[0][:4096].tolist()
        moved = together(moved, " ", tag("small", ranges_text(ranks, SHOWN_RANKS)))
    crossing = move.crossing_before, move.crossing_after
    before, after = (f"{count:,} / {move.groups:,}" for count in crossing)
    slow = "slow" if move.crossing_after > move.crossing_before else None
    cells = ((moved, None), (before, None), (after, slow))
    labelled = (
        cell(text, class_=name, data_label=head) for head, (text, name) in zip(heads, cells)
    )
    return row(chips([move.name]), *labelled)


def _panels(compared: Comparison) -> Markup:
    """Both pictures of each kind that moved, the ranks that moved outlined unless all did."""
    say, world = saying(PAGE, compared.language), compared.layout.world_size
    pairs = []
    for move in filter(lambda move: move.ranks, compared.moves):
        outlined = None if move.moved.all() else move.moved
        pictures = [
            figure(unbroken(title), svg.panel_svg(panel, f"{move.name}: {title}", outlined))
            for title, panel in _scenes(compared, move)
        ]
        moved = say("moved_ranks", moved=f"{move.ranks:,}", ranks=f"{world:,}")
        head, kind = tag("h3", chip(move.name), " ", moved), f"pair {tone_class(move.name)}"
        pairs.append(tag("section", head, tag("div", *pictures), class_=kind))
    return together(*pairs)


def _scenes(compared: Comparison, move: Move) -> list[tuple[str, scene.Panel]]:
    gpus = compared.layout.gpus_per_node
    return [(title, scene.panel(side.every[move.name], gpus)) for title, side in compared.sides]


def _overviews(compared: Comparison) -> Markup:
    sides = []
    for (title, side), groups in zip(compared.sides, (compared.before, compared.visible)):
        drawn = overview_figure(compared.spec, side.mesh, groups)
        sides.append(tag("div", tag("h3", unbroken(title)), drawn, class_="grid"))
    return tag("div", *sides, class_="large grids", data_rank=compared.rank)


def strip_html(context: Context, other: Layout) -> Markup:
    """What the layout's order moves against another one, in a line; nothing if nothing moved."""
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


def _framework(layout: Layout, language: str) -> Markup:
    """How the layout's framework names and numbers, from which source, and what is open."""
    say = saying(PAGE, language)
    title = _title(layout, language)
    if layout.framework == OWN:
        return heading(title, tag("p", say("own_order_note")))
    convention = CONVENTIONS[layout.framework]
    notes = [tag("p", FRAMEWORKS[layout.framework][language])]
    if unsettled := UNSETTLED.get(layout.framework):
        notes.append(tag("p", say("framework_open", what=unsettled[language])))
    link = outside(convention.url, convention.source)
    basis = say("in_brackets", words=say(f"basis_{convention.basis}"))
    rows = (_own_row(layout, grouping, language) for grouping in own_groupings(layout))
    heads = (say(f"column_{name}") for name in ("name", "same", "axes", "first"))
    return together(
        heading(title, *notes, tag("p", link, basis, class_="source")),
        fold(say("own_names"), table(heads, rows)),
    )


def _own_row(layout: Layout, grouping: Grouping, language: str) -> Markup:
    axes = " × ".join(grouping.axes)
    alone = OWN_GROUPS.get(grouping.name, PAGE["own_none"])[language].format(axes=axes)
    first = cell(ranks_text(grouping.members(0), most=8), class_="ranks")
    name = cell(tag("code", grouping.name))
    return row(name, _megatrons(layout, grouping) or alone, axes, first)


# -- in files --------------------------------------------------------------------------------------

MOST_BESIDE = 64
"""GPUs of a panel whose numbers are read beside another panel."""


def orders_summary(context: Context) -> str:
    return Comparison.with_other(context).summary()


def orders_slide(context: Context) -> Pictures:
    """The same with both orders side by side: of more GPUs than fit so, one rank's groups."""
    return orders_pictures(context, MOST_BESIDE)


def orders_pictures(context: Context, most: int = PANEL_LIMIT) -> Pictures:
    """What of the view goes into a file: titles and scenes, both orders of each kind that moved.

    most: GPUs up to which every group has a colour; of more, the groups of the chosen rank have.
    """
    compared = Comparison.with_other(context)
    if context.layout.world_size <= most:
        return [
            (move.name + PAGE["colon"][context.language] + title, panel)
            for move in compared.moves
            if move.ranks
            for title, panel in _scenes(compared, move)
        ]
    said, gpus, rank = SAVED["groups_of_rank"], context.layout.gpus_per_node, context.rank
    return [
        (
            said[context.language].format(order=title, rank=rank),
            scene.overview(side.mesh, groups, gpus, rank, compared.spec.tones),
        )
        for (title, side), groups in zip(compared.sides, (compared.before, context.visible))
    ]


VIEW = View(
    "orders",
    "see",
    orders_html,
    orders_pictures,
    PAGE["moved_title"],
    orders_summary,
    slide=orders_slide,
    pins_locally=True,
    is_framed=True,
)
