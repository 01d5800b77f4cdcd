"""The Groups view: the job's picture, then a panel or overview of each kind, with its text."""

from __future__ import annotations

import re

import numpy as np
from markupsafe import Markup

from descriptions import (
    GAP,
    HOW_TO_READ,
    JOB,
    LINKS,
    PAGE,
    TYPES,
    counted,
    joined,
)
from groups.grouping import Grouping
from groups.inputs import inputs_of
from groups.kept import kept
from groups.layout import Job, Layout
from render.scenes import groups as scene
from render.svg import groups as svg
from request.answers.groups import layout as layout_endpoint
from request.answers.groups import picture, process_groups, rank_table
from request.context import Context, of_server
from request.inputs import ShownInputs
from request.state import State
from request.units import ranks_text

from ..base.html import (
    by_pointer,
    chip,
    explained,
    fold,
    outside,
    tag,
)
from ..base.names import kind_text
from ..base.view import View
from ..parts.compared import other_layout, strip_html
from ..parts.framed import PANEL_LIMIT, framed, overview_figure
from ..parts.job import groups_pictures, hero_html, spec_of
from ..parts.shown import PictureSpec, by_grid
from .details import details_html, node_spans


def groups_html(context: Context) -> Markup:
    """The picture of the job and of each visible group, and how to read them.

    It is painted once for all states that show the same: of the model it says the layers of each
    stage, of a training nothing. A slider of the batch paints nothing anew.
    """
    names = (*inputs_of(Job), *inputs_of(ShownInputs), "rank", "lang")
    shown = State(**{name: getattr(context.state, name) for name in names})
    return _painted(context.layout, shown, spec_of(context).layers)


@kept
def _painted(layout: Layout, shown: State, layers: tuple[str, ...]) -> Markup:
    spec = PictureSpec(layout, shown, layers)
    hero = hero_html(spec, _on_nodes(spec))
    return framed(spec, "groups", hero, _strip(spec), _kinds(spec), _about(spec))


def _no_strip(_: Context) -> Markup:
    return Markup()


@of_server(_no_strip)
def _strip(context: Context) -> Markup:
    """What the order moves against Megatron's default, if it is another."""
    if context.state.framework == "megatron":
        return Markup()
    other = other_layout(context, "megatron")
    return Markup() if other.order == context.layout.order else strip_html(context, other)


def _kinds(spec: PictureSpec) -> Markup:
    """A panel for each kind; for a large world only its text."""
    layout, words = spec.layout, set[str]()
    has_two = len(by_grid(layout, spec.visible)) > 1
    sections = (
        section(spec, grouping, _panel(layout, grouping, has_two), words)
        for grouping in sorted(spec.visible, key=lambda grouping: has_two and grouping.size == 1)
    )
    kinds = tag("div", *sections, class_="kinds")
    if layout.world_size <= PANEL_LIMIT:
        # The chosen group is in its kind's colour: many in ten repeating ones say nothing.
        box = tag("input", type="checkbox")
        switch = tag("label", box, " ", JOB["colour_all"][spec.language], class_="switch")
        return tag("div", switch, kinds, class_="panels")
    return kinds


def _on_nodes(spec: PictureSpec) -> list[Markup]:
    """For a large world, the nodes with the groups of the selected rank, one picture per grid; the
    switch above the picture shows them."""
    if spec.layout.world_size <= PANEL_LIMIT:
        return []
    has_two = len(spec.sides) > 1
    return [
        overview_figure(spec, mesh, groupings, grid if has_two else "")
        for grid, mesh, groupings in spec.sides
    ]


def group_facts(grouping: Grouping, gpus_per_node: int, language: str) -> str:
    """The number and size of groups, and how many of them leave their node."""
    spanned = node_spans(grouping, gpus_per_node)
    number = len(spanned)
    leaving = int(np.count_nonzero(spanned > 1))
    nodes = counted(int(spanned.max()), "node", language)
    words = "groups_of" if grouping.is_even else "groups_of_up_to"
    facts = [
        PAGE[words][language].format(
            groups=counted(number, "group", language),
            ranks=counted(grouping.size, "rank", language),
        )
    ]
    if grouping.places:
        others = grouping.world_size - number * grouping.size
        if others:
            facts.append(PAGE["in_none"][language].format(gpus=counted(others, "gpu", language)))
    if not leaving:
        facts.append(PAGE["stays"][language])
    elif leaving == number and spanned.min() == spanned.max():
        facts.append(PAGE["leaves_all"][language].format(nodes=nodes))
    else:
        facts.append(
            PAGE["leaves_some"][language].format(
                leaving=f"{leaving:,}", total=f"{number:,}", nodes=nodes
            )
        )
    return joined(facts, language)


def _panel(layout: Layout, grouping: Grouping, has_two: bool) -> scene.Panel | None:
    """The panel of one kind; beside another grid, groups of one rank have none."""
    is_small = layout.world_size <= PANEL_LIMIT
    if not is_small or (grouping.size == 1 and has_two):
        return None
    return scene.panel(grouping, layout.gpus_per_node)


def section(
    spec: PictureSpec, grouping: Grouping, panel: scene.Panel | None, words: set[str]
) -> Markup:
    """One kind: its picture, its description and these groups.

    words: those that sections before it explained.
    """
    layout, language = spec.layout, spec.language
    text = kind_text(layout, grouping, language)
    note, drawn, cp = "", "", layout.mesh.size("cp")
    if grouping.name == "dp" and cp > 1 and all(grouping.name != "cp" for grouping in spec.visible):
        note = tag("p", PAGE["cp_hidden"][language].format(cp=cp), class_="note")
    if panel is not None:
        picture = Markup(svg.panel_svg(panel, _panel_text(layout, grouping, language)))
        drawn = tag("figure", picture, style=f"max-width:{panel.width:g}px")
    first, *rest = sentences_of(text.lead)
    told = [] if text.body == text.lead else [text.body]
    facts = group_facts(grouping, layout.gpus_per_node, language)
    more = (
        tag("p", joined((*rest, *told), language)),
        tag("p", explained(facts, language, words), class_="facts"),
        tag("p", text.source, class_="source") if text.source else "",
    )
    return tag(
        "section",
        tag("h3", chip(grouping.name), " ", text.title),
        tag("p", explained(first, language, words), class_="short"),
        *(note, drawn, fold(JOB["more"][language], *more, kind="")),
        class_=f"kind t-{spec.tones.get(grouping.name, 'tp')}" + " drawn" * (panel is not None),
    )


def sentences_of(text: str) -> list[str]:
    """The sentences of a short text, in English or Chinese.

    >>> sentences_of("Splits every sequence. K and V travel."), sentences_of("切分序列。传递 K。")
    (['Splits every sequence.', 'K and V travel.'], ['切分序列。', '传递 K。'])
    """
    return [one for one in re.split(r"(?<=[.]) (?=[A-Z])|(?<=。)", text) if one]


def _about(context: Context) -> Markup:
    """The purpose of this type of groups, further reading, and how to read the pictures."""
    words, language = TYPES[context.state.group_type], context.language
    size = "small" if context.layout.world_size <= PANEL_LIMIT else "large"
    how, *point = (HOW_TO_READ[name][language] for name in (size, "point", "point_touch"))
    every = [LINKS[name] for name in words.reading]
    own = [page for page in every if (page.language or "en") == language]
    pages = own or [page for page in every if not page.language]
    links = [tag("li", outside(page.url, page.title[language])) for page in pages]
    reading = (tag("h4", PAGE["reading"][language]), tag("ul", *links)) if links else ()
    return fold(
        JOB["how"][language],
        tag("p", how, GAP[language], by_pointer(*point)),
        tag("h4", words.title[language]),
        tag("p", words.body[language]),
        tag("div", *reading, class_="reading"),
        kind="how",
    )


def _panel_text(layout: Layout, grouping: Grouping, language: str) -> str:
    first = grouping.members(grouping.mesh.offset)
    return PAGE["picture_of"][language].format(
        kind=grouping.name,
        groups=counted(grouping.num_groups, "group", language),
        ranks=counted(grouping.size, "rank", language),
        nodes=counted(layout.nodes, "node", language),
        first=PAGE["first_group"][language].format(ranks=ranks_text(first)),
    )


VIEW = View(
    "groups",
    "layout",
    groups_html,
    groups_pictures,
    details=details_html,
    pins_locally=True,
    is_framed=True,
    place=1,
    endpoints=(layout_endpoint, process_groups, picture, rank_table),
    commands=("groups", "ranks", "layout", "picture"),
)
