"""The Orders view: how the framework numbers its ranks, and the ranks that another order moves."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import FRAMEWORKS as NOTES
from descriptions import OWN_GROUPS, PAGE, SAVED, UNSETTLED, counted
from groups import LayoutError, coordinates
from groups.audit import Move
from groups.frameworks import FRAMEWORKS, OWN
from groups.grouping import Grouping
from groups.layout import Layout, own_groupings
from render.scenes import groups as scene
from render.scenes.job_plan import HALF, WHOLE
from render.svg import groups as svg
from render.svg.job import job_svg
from request.context import Context, of_server
from request.resolve import main_groupings, sizes_of
from request.state import State
from request.units import ranges_text, ranks_text
from request.words import saying

from ..base import form
from ..base.html import (
    button,
    cell,
    chip,
    chips,
    figure,
    fold,
    heading,
    intro,
    outside,
    row,
    table,
    tag,
    together,
    tone_class,
    unbroken,
)
from ..base.problems import refusal_line
from ..base.view import Pictures, View
from ..parts.compared import AUTO, Comparison, grids_of, megatrons_kind, order_title
from ..parts.framed import PANEL_LIMIT, card_html, framed, overview_figure
from ..parts.job import described, job_of_grid, layers_of
from ..parts.shown import PictureSpec
from .engines import engines_html, engines_pictures, engines_summary

SHOWN_RANKS = 12
"""The most runs of moved ranks in the table."""


def _engines_html(context: Context) -> Markup:
    return engines_html(context, _framework(context.layout, context.language))


@of_server(_engines_html)
def orders_html(context: Context) -> Markup:
    """The layout's framework, and beside it the same job under the other order."""
    layout, language = context.layout, context.language
    inputs = _inputs(context.state)
    try:
        compared = Comparison.with_other(context)
    except LayoutError as error:
        head = intro(PAGE["moved_title"][language], PAGE["moved_body"][language], language)
        refused = (refusal_line(error, language), _framework(layout, language))
        return framed(PictureSpec(layout, context.state), "orders", head, inputs, *refused)
    head = heading(PAGE["moved_title"][language], tag("p", unbroken(compared.summary())))
    is_small = layout.world_size <= PANEL_LIMIT
    pictures = _jobs(compared) if is_small else _overviews(compared)
    below = _panels(compared) if is_small else ""
    card = card_html(compared.spec, has_line=False)
    beside = tag("div", tag("div", pictures), card, class_="order-shown")
    shown = (_switch(compared), beside, below)
    parts = (head, inputs, *shown, _table(compared), _framework(layout, language))
    return framed(compared.spec, "orders", *parts)


def _inputs(state: State) -> Markup:
    """The inputs of the comparison: a framework, or a typed order."""
    names = {AUTO: PAGE["versus_auto"][state.language]}
    names |= {name: convention.name for name, convention in FRAMEWORKS.items()}
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
    """heads: of its cells, which phones show in each cell."""
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


OWN_SIDE = 1
"""The order that is shown first: the layout's."""


def _shown(side: int) -> dict[str, object]:
    """Attributes of the parts of each order, one of which is visible (picture/order.js)."""
    return {"data_shows": side, "hidden": side != OWN_SIDE or None}


def _card_marks(compared: Comparison, side: int) -> dict[str, object]:
    """The attributes with the groups that the card lists: for the other order its own, by
    number."""
    if side == OWN_SIDE:
        return _shown(side)
    divided = (grouping for grouping in compared.before if grouping.size > 1)
    groupings = dict.fromkeys((*main_groupings(compared.other), *divided))
    return {**_shown(side), "data_tells": [*map(compared.spec.script_groups.index, groupings)]}


def _switch(compared: Comparison) -> Markup:
    """A switch between the orders, and a sentence about what moves."""
    say, moved, rank = saying(PAGE, compared.language), compared.is_elsewhere, compared.rank
    ranks = ranges_text(moved.nonzero()[0][:4096].tolist(), SHOWN_RANKS)
    rank = rank if moved[rank] else int(moved.argmax())
    facts = {"moved": f"{moved.sum():,}", "ranks": f"{len(moved):,}", "list": ranks, "rank": rank}
    words = "order_moved" if moved.any() else "order_same"
    is_dashed = moved.any() and len(moved) <= PANEL_LIMIT
    buttons, texts = [], []
    for at, (title, layout) in enumerate(compared.sides):
        is_own = at == OWN_SIDE
        label = unbroken(say("order_this" if is_own else "order_other", order=title))
        keys = {"tabindex": 0 if is_own else -1, "aria_pressed": str(is_own).lower()}
        buttons.append(button(label, data_order=at, **keys))
        place = coordinates(layout.mesh, rank).items()
        where = ", ".join(f"{name} {index}" for name, index in place if layout.mesh.size(name) > 1)
        sentence = unbroken(say(words, place=where, **facts))
        dashed = together(" ", say("order_dashed")) if is_dashed else ""
        texts.append(tag("p", sentence, dashed, **_shown(at)))
    group = {"role": "group", "aria_label": say("order_switch")}
    return together(
        tag("div", *buttons, class_="orders", **group),
        tag("div", *texts, aria_live="polite", class_="order-said"),
    )


def _jobs(compared: Comparison) -> Markup:
    """The picture of the job under each order, with the moved GPUs outlined."""
    state, language = compared.state, compared.language
    layers = layers_of(compared.known, compared.layout.mesh.size("pp"))
    sides = []
    for at, (title, layout) in enumerate(compared.sides):
        spec, grids = PictureSpec(layout, state, layers), grids_of(layout)
        figures = []
        for name, mesh, groupings in grids:
            picture = job_of_grid(spec, mesh, groupings, WHOLE if len(grids) == 1 else HALF)
            caption = PAGE[name][language] + PAGE["colon"][language] + sizes_of(mesh)
            numbers = [compared.spec.script_groups.index(grouping) for grouping in groupings]
            words = described(layout, picture, groupings, language)
            text = title + PAGE["colon"][language] + words
            drawn = job_svg(picture, text, numbers, outlined=compared.elsewhere.get(name))
            figures.append(figure(caption if len(grids) > 1 else "", drawn))
        jobs = "jobs two" if len(grids) > 1 else "jobs"
        sides.append(tag("div", *figures, class_=jobs, **_card_marks(compared, at)))
    return together(*sides)


def _panels(compared: Comparison) -> Markup:
    """Both pictures of each kind that moved, with the moved ranks outlined unless all moved."""
    say, world = saying(PAGE, compared.language), compared.layout.world_size
    pairs = []
    for move in filter(lambda move: move.ranks, compared.moves):
        outlined = None if move.moved.all() else move.moved
        drawn = (
            (title, svg.panel_svg(panel, f"{move.name}: {title}", outlined))
            for title, panel in _scenes(compared, move)
        )
        pictures = (
            tag("div", figure(unbroken(title), picture), **_shown(at))
            for at, (title, picture) in enumerate(drawn)
        )
        moved = say("moved_ranks", moved=f"{move.ranks:,}", ranks=f"{world:,}")
        head, kind = tag("h3", chip(move.name), " ", moved), f"pair {tone_class(move.name)}"
        pairs.append(tag("section", head, *pictures, class_=kind))
    return tag("div", *pairs, class_="pairs") if pairs else Markup()


def _scenes(compared: Comparison, move: Move) -> list[tuple[str, scene.Panel]]:
    gpus = compared.layout.gpus_per_node
    return [(title, scene.panel(side.roles[move.name], gpus)) for title, side in compared.sides]


def _overviews(compared: Comparison) -> Markup:
    sides = []
    for at, groups in enumerate((compared.before, compared.visible)):
        title, side = compared.sides[at]
        drawn = overview_figure(compared.spec, side.mesh, groups)
        sides.append(
            tag(
                "div", tag("h3", unbroken(title)), drawn, class_="grid", **_card_marks(compared, at)
            )
        )
    return tag("div", *sides, class_="large", data_rank=compared.rank)


def _framework(layout: Layout, language: str) -> Markup:
    """The axis names and the order of the layout's framework, their source, and open questions."""
    say = saying(PAGE, language)
    title = order_title(layout, language)
    if layout.framework == OWN:
        return heading(title, tag("p", say("own_order_note")))
    convention = FRAMEWORKS[layout.framework]
    notes = [tag("p", NOTES[layout.framework][language])]
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
    return row(name, megatrons_kind(layout, grouping) or alone, axes, first)


# -- in files --------------------------------------------------------------------------------------

MOST_BESIDE = 64
"""The largest panel whose numbers are readable beside another one, in GPUs."""


@of_server(engines_summary)
def orders_summary(context: Context) -> str:
    return Comparison.with_other(context).summary()


def orders_slide(context: Context) -> Pictures:
    """Both orders side by side; of more GPUs than fit, one rank's groups."""
    return orders_pictures(context, MOST_BESIDE)


@of_server(engines_pictures)
def orders_pictures(context: Context, most: int = PANEL_LIMIT) -> Pictures:
    """Titles and scenes for files: both orders of each kind that moved.

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
    title_of, gpus, rank = SAVED["groups_of_rank"], context.layout.gpus_per_node, context.rank
    return [
        (
            title_of[context.language].format(order=title, rank=rank),
            scene.overview(side.mesh, groups, gpus, rank, compared.spec.tones),
        )
        for (title, side), groups in zip(compared.sides, (compared.before, context.visible))
    ]


VIEW = View(
    "orders",
    "layout",
    orders_html,
    orders_pictures,
    PAGE["moved_title"],
    orders_summary,
    slide=orders_slide,
    pins_locally=True,
    is_framed=True,
    place=4,
)
