"""The Orders view: how the framework numbers its ranks, and what another order would move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from descriptions import FRAMEWORKS, OWN_GROUPS, PAGE, SAVED, UNSETTLED, counted
from groups import LayoutError
from groups.conventions import CONVENTIONS, MEGATRONS, OWN
from groups.grouping import Grouping
from groups.layout import Layout, framework_name, own_groupings
from groups.moves import Move, moves
from render.palette import tones
from render.scenes import groups as scene
from render.svg import groups as svg

from ..base import form
from ..base.context import Context, View
from ..base.html import cell, chip, figure, fold, heading, intro, outside, row, table, tag, together
from ..base.names import megatrons_name
from ..base.problems import refusal_line
from ..base.resolve import resolve
from ..base.state import as_text
from ..base.units import ranges_text, ranks_text
from ..groups.shown import PictureSpec
from ..groups.view import PANEL_LIMIT, framed, overview_figure

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
    if expert is not None and changes["framework"] in MEGATRONS:
        changes["etp"] = str(expert.size("etp"))
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


def orders_html(context: Context) -> Markup:
    """The layout's framework, and beside it the same job under the other order."""
    layout, language = context.layout, context.language
    inputs = _inputs(context.state.versus, language)
    try:
        other = other_layout(context, context.state.versus)
    except LayoutError as error:
        head = intro(PAGE["moved_title"][language], PAGE["moved_body"][language], language)
        refused = refusal_line(error, language)
        body = together(head, inputs, refused, _framework(layout, language))
        return framed(context, body, "orders")
    visible = by_megatrons_name(layout, context.visible)
    before = [other.every[name] for name in visible if name in other.every]
    rank = context.rank if layout.world_size > PANEL_LIMIT else 0  # else it is lit in the browser
    head, body = _compared(layout, other, context.visible, language, rank)
    return framed(context, body, "orders", before, together(head, inputs))


def _inputs(versus: Any, language: str) -> str:
    """What to compare with: a framework from the list, or an order that is typed."""
    named = [(convention.name, name) for name, convention in CONVENTIONS.items()]
    names = (AUTO, *CONVENTIONS)
    order = "" if as_text(versus) in names else versus
    return form.fields(
        form.choice("versus", versus, [(PAGE["versus_auto"][language], AUTO), *named], language),
        form.text("versus_order", order, language, sets="versus", besides=" ".join(names)),
    )


@lru_cache(maxsize=64)
def _compared(
    layout: Layout, other: Layout, visible: tuple[Grouping, ...], language: str, rank: int
) -> tuple[Markup, Markup]:
    """What stands above the card, and what below."""
    groupings = by_megatrons_name(layout, visible)
    before = [other.every[name] for name in groupings if name in other.every]
    changes = moves(other.every, groupings, layout.gpus_per_node)
    titles = [_title(side, language) for side in (other, layout)]
    pictures = (
        _panels(layout, other, changes, titles, language)
        if layout.world_size <= PANEL_LIMIT
        else _overviews(PictureSpec(layout, visible, language, rank), other, before, titles)
    )
    head = heading(PAGE["moved_title"][language], tag("p", _summary(changes, titles, language)))
    moved = _table(changes, layout, other, language)
    return head, together(moved, pictures, _framework(layout, language))


MOST_BESIDE = 64
"""GPUs of a panel whose numbers are read beside another panel."""


def orders_summary(context: Context) -> str:
    """Which kinds get other members under the other order.

    Errors: LayoutError if there is nothing to compare with.
    """
    other, layout, language = (
        other_layout(context, context.state.versus),
        context.layout,
        context.language,
    )
    groupings = by_megatrons_name(layout, context.visible)
    changes = moves(other.every, groupings, layout.gpus_per_node)
    return _summary(changes, [_title(side, language) for side in (other, layout)], language)


def orders_slide(context: Context) -> list[tuple[str, Any]]:
    """The same with both orders side by side: of more GPUs than fit so, one rank's groups."""
    return orders_pictures(context, MOST_BESIDE)


def orders_pictures(context: Context, most: int = PANEL_LIMIT) -> list[tuple[str, Any]]:
    """What of the view goes into a file: titles and scenes, both orders of each kind that moved.

    most: GPUs up to which every group has a colour; of more, the groups of the chosen rank have.
    """
    other = other_layout(context, context.state.versus)
    layout = context.layout
    groupings = by_megatrons_name(layout, context.visible)
    language = context.language
    sides = [(side, _title(side, language)) for side in (other, layout)]
    if layout.world_size > most:
        before = [other.every[name] for name in groupings if name in other.every]
        rank = context.rank
        return [
            (
                SAVED["groups_of_rank"][language].format(order=title, rank=rank),
                scene.overview(side.mesh, groups, layout.gpus_per_node, rank),
            )
            for (side, title), groups in zip(sides, (before, context.visible))
        ]
    return [
        (f"{move.name}: {title}", scene.panel(side.every[move.name], layout.gpus_per_node))
        for move in moves(other.every, groupings, layout.gpus_per_node)
        if move.ranks
        for side, title in sides
    ]


def by_megatrons_name(layout: Layout, visible: Sequence[Grouping]) -> dict[str, Grouping]:
    """The shown groups that another order may be asked for: those that Megatron has a name for.

    A framework's own name may be that of another group of Megatron's, such as fairscale's mp.
    """
    names = [
        grouping.name
        if layout.every.get(grouping.name) == grouping
        else megatrons_name(layout, grouping)
        for grouping in visible
    ]
    return {name: layout.every[name] for name in names if name}


def _title(layout: Layout, language: str) -> str:
    name = (
        PAGE["own_short"][language] if layout.framework == OWN else framework_name(layout.framework)
    )
    return f"{name} ({layout.order})"


def strip_html(context: Context, other: Layout) -> Markup:
    """What the layout's order moves against another one, in a line; nothing if nothing moved."""
    layout, language = context.layout, context.language
    groupings = by_megatrons_name(layout, context.visible)
    changes = [move for move in moves(other.every, groupings, layout.gpus_per_node) if move.ranks]
    if not changes:
        return Markup()
    leaving = [
        PAGE["strip_leaving"][language].format(
            kind=move.name, before=f"{move.crossing_before:,}", after=f"{move.crossing_after:,}"
        )
        for move in changes
        if move.crossing_before != move.crossing_after
    ]
    text = PAGE["strip"][language].format(
        order=other.order, kinds=PAGE["and_list"][language].join(move.name for move in changes)
    )
    return tag("p", " ".join([text, *leaving]), class_="strip")


def _framework(layout: Layout, language: str) -> str:
    """How the layout's framework names and numbers, from which source, and what is open."""
    if layout.framework == OWN:
        return heading(_title(layout, language), tag("p", PAGE["own_order_note"][language]))
    convention = CONVENTIONS[layout.framework]
    unsettled = UNSETTLED.get(layout.framework)
    notes = [tag("p", FRAMEWORKS[layout.framework][language])]
    if unsettled:
        left_open = PAGE["framework_open"][language].format(what=unsettled[language])
        notes.append(tag("p", left_open))
    basis = PAGE[f"basis_{convention.basis}"][language]
    link = outside(convention.url, convention.source)
    source = tag("p", link, PAGE["in_brackets"][language].format(words=basis), class_="source")
    rows = (_own_row(layout, grouping, language) for grouping in own_groupings(layout))
    heads = (PAGE[f"column_{name}"][language] for name in ("name", "same", "axes", "first"))
    return together(
        heading(_title(layout, language), *notes, source),
        fold(PAGE["own_names"][language], table(heads, rows)),
    )


def _own_row(layout: Layout, grouping: Grouping, language: str) -> Markup:
    is_megatrons = layout.every.get(grouping.name) == grouping
    same = grouping.name if is_megatrons else megatrons_name(layout, grouping)
    words = same or OWN_GROUPS.get(grouping.name, PAGE["own_none"])[language].format(
        axes=" × ".join(grouping.axes)
    )
    first = ranks_text(grouping.members(0), most=8)
    axes = " × ".join(grouping.axes)
    return row(cell(tag("code", grouping.name)), words, axes, cell(first, class_="ranks"))


def _summary(changes: list[Move], titles: list[str], language: str) -> str:
    comma = PAGE["and_list"][language]
    moved, same = (
        comma.join(move.name for move in changes if bool(move.ranks) is is_moved)
        for is_moved in (True, False)
    )
    words = "moved_some" if moved else "moved_none"
    return PAGE[words][language].format(
        before=titles[0],
        after=titles[1],
        kinds=moved,
        same=same or PAGE["none"][language],
    )


def _table(changes: list[Move], layout: Layout, other: Layout, language: str) -> Markup:
    leaving = (
        PAGE["column_leaving"][language].format(order=side.order) for side in (other, layout)
    )
    heads = (PAGE["column_kind"][language], PAGE["column_moved"][language], *leaving)
    return table(heads, (_move_row(move, language) for move in changes), "moves")


def _move_row(move: Move, language: str) -> Markup:
    moved = together(counted(move.ranks, "rank", language))
    if 0 < move.ranks < len(move.moved):
        ranks = move.moved.nonzero()[0][:4096].tolist()
        moved = together(moved, " ", tag("small", ranges_text(ranks, SHOWN_RANKS)))
    before, after = (
        f"{n:,} / {move.groups:,}" for n in (move.crossing_before, move.crossing_after)
    )
    slow = "slow" if move.crossing_after > move.crossing_before else ""
    return row(move.name, moved, before, cell(after, class_=slow))


def _panels(
    layout: Layout, other: Layout, changes: list[Move], titles: list[str], language: str
) -> Markup:
    """Both pictures of each kind that moved, the ranks that moved outlined unless all did."""
    tone, sides, gpus = (
        tones([move.name for move in changes]),
        (other, layout),
        layout.gpus_per_node,
    )

    def drawn(side: Layout, title: str, move: Move) -> Markup:
        panel = scene.panel(side.every[move.name], gpus)
        outlined = None if move.moved.all() else move.moved
        return figure(title, svg.panel_svg(panel, f"{move.name}: {title}", outlined))

    def moved(move: Move) -> str:
        facts = {"moved": f"{move.ranks:,}", "ranks": f"{layout.world_size:,}"}
        return PAGE["moved_ranks"][language].format(**facts)

    pairs = (
        tag(
            "section",
            tag("h3", chip(move.name), " ", moved(move)),
            tag("div", *(drawn(side, title, move) for side, title in zip(sides, titles))),
            class_=f"pair t-{tone[move.name]}",
        )
        for move in changes
        if move.ranks
    )
    return together(*pairs)


def _overviews(
    spec: PictureSpec, other: Layout, before: list[Grouping], titles: list[str]
) -> Markup:
    sides = (
        tag(
            "div", tag("h3", title), overview_figure(spec, side.mesh, groups, before), class_="grid"
        )
        for side, groups, title in zip((other, spec.layout), (before, spec.visible), titles)
    )
    return tag("div", *sides, class_="large grids", data_rank=spec.rank)


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
