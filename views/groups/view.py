"""The picture of a layout as HTML: panels or overviews, each with its text beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from markupsafe import Markup

from descriptions import GAPS, HOW_TO_READ, HOW_TO_READ_LARGE, JOB, PAGE, TYPES, counted, joined
from groups import LayoutError, Mesh
from groups.audit import spans_of
from groups.grouping import Grouping
from groups.layout import Layout
from render.palette import tones
from render.scenes import groups as scene
from render.svg import groups as svg

from ..base.context import Context
from ..base.html import chip, figure, fold, outside, tag, together
from ..base.names import kind_text
from ..base.units import ranks_text
from ..base.words import explained
from .hero import hero_html, layers_of, told_groups
from .sentence import spoken

PANEL_LIMIT = scene.PANEL_LIMIT

COLOURED = 64
"""GPUs up to which panels have all groups in colour; above, only where that is asked for: many
groups in ten repeating colours say nothing."""


def groups_html(context: Context) -> Markup:
    """What the Groups view shows."""
    layout, state = context.layout, context.state
    strip, layers = _strip(context), layers_of(context.known, layout.mesh.size("pp"))
    return picture_html(
        layout, context.visible, state.group_type, context.language, context.rank, strip, layers
    )


def _strip(context: Context) -> Markup:
    """What the order moves against Megatron's default, where that is another one that works."""
    from ..orders.view import other_layout, strip_html  # which draws with this module

    if context.state.framework == "megatron":
        return Markup()
    try:
        other = other_layout(context, "megatron")
    except LayoutError:
        return Markup()
    return Markup() if other.order == context.layout.order else strip_html(context, other)


@lru_cache(maxsize=64)
def picture_html(
    layout: Layout,
    visible: tuple[Grouping, ...],
    group_type: str,
    language: str,
    rank: int = 0,
    strip: str = "",
    layers: tuple[str, ...] = (),
) -> Markup:
    """The picture of the job and of each visible group; ``strip`` stands above the panels.

    layers: of each stage, as text; empty if no model is set. A pure function of its arguments, so a
    cached answer is the same for every user.
    """
    told = told_groups(layout, visible)
    body = together(
        hero_html(layout, by_grid(layout, told), told, rank, layers, language),
        strip,
        _kinds(layout, visible, language, rank),
        _about(layout, group_type, language),
    )
    return _page(language, body, "groups", mesh_data(layout, told, layers=layers))


def _kinds(layout: Layout, visible: Sequence[Grouping], language: str, rank: int) -> Markup:
    """A panel for each kind; of a large world, the nodes with the groups of one rank."""
    has_two = len(by_grid(layout, visible)) > 1
    words: set[int] = set()
    sections = (
        section(layout, visible, one, language, _panel(layout, one, has_two), words)
        for one in sorted(visible, key=lambda one: has_two and one.size == 1)
    )
    is_grey = COLOURED < layout.world_size <= PANEL_LIMIT
    kinds = tag("div", *sections, class_="kinds grey" if is_grey else "kinds")
    if is_grey:
        box = tag("input", type="checkbox", class_="colour-all")
        switch = tag("label", box, " ", JOB["colour_all"][language], class_="switch")
        return together(switch, kinds)
    if layout.world_size <= PANEL_LIMIT:
        return kinds
    views = (
        overview_figures(
            layout, visible, mesh, shown, language, rank, ("physical",), of=grid if has_two else ""
        )
        for grid, mesh, shown in by_grid(layout, told_groups(layout, visible))
    )
    return together(kinds, tag("div", *views, class_="large views", data_rank=rank))


def framed(
    context: Context,
    body: str,
    view: str,
    marked: Sequence[Grouping] | None = None,
    head: str = "",
) -> Markup:
    """A view's body under the layout, with what the page's script needs to know.

    head: what stands above the card of the GPU under the pointer. marked: groups that overviews in
    the body mark, where they are not the layout's own; None for a body without pictures, which
    needs no card.
    """
    data = mesh_data(context.layout, context.visible, marked or ())
    card = "" if marked is None else _card(context.layout, context.visible, context.language)
    return _page(context.language, together(Markup(head), card, Markup(body)), view, data)


def _page(language: str, body: Markup, view: str, data: dict) -> Markup:
    known = {"data_mesh": data, "data_words": _words(language)}
    return tag("div", body, class_="picture", data_view=view, **known, lang=language)


def mesh_data(
    layout: Layout,
    told: Sequence[Grouping],
    marked: Sequence[Grouping] = (),
    layers: Sequence[str] = (),
) -> dict:
    """What the page's script needs to know any rank's groups by itself.

    grids: the axes of each mesh, the dense one first. kinds: name, tone, grid, swept axes, and how
    groups are cut (length, stride), thinned (places) or joined; the first ``told`` are those that
    the card tells. spoken: what the sentence is about, as (what for, number of the kind). layers:
    of each stage.
    """
    kinds = all_kinds(layout, told, marked)
    meshes = [layout.mesh]
    meshes += [mesh for mesh in dict.fromkeys(one.mesh for one in kinds) if mesh not in meshes]
    tone = _all_tones(layout, told, marked)
    return {
        "grids": [[[axis.name, axis.size] for axis in mesh.axes] for mesh in meshes],
        "kinds": [
            [
                one.name,
                tone.get(one.name, "tp"),
                meshes.index(one.mesh),
                list(one.axes),
                one.length,
                one.stride,
                list(one.places),
                one.joined,
            ]
            for one in kinds
        ],
        "told": len(told),
        "spoken": [(role, kinds.index(one)) for role, one in spoken(layout)],
        "layers": list(layers),
        "gpusPerNode": layout.gpus_per_node,
        "world": layout.world_size,
    }


def all_kinds(
    layout: Layout, told: Sequence[Grouping], marked: Sequence[Grouping] = ()
) -> list[Grouping]:
    """The groups that the page's script knows, by number: those told, then the others."""
    return list(dict.fromkeys((*told, *marked, *(one for _, one in spoken(layout)))))


def _all_tones(
    layout: Layout, told: Sequence[Grouping], marked: Sequence[Grouping] = ()
) -> dict[str, str]:
    """The tone of every group that the page's script knows: pictures and script must agree."""
    return tones([one.name for one in marked]) | _tones(layout, told)


def _tones(layout: Layout, told: Sequence[Grouping]) -> dict[str, str]:
    """The tone of each group, as in the pictures: each grid has its own."""
    found: dict[str, str] = {}
    for _, _, shown in by_grid(layout, told):
        found |= tones([grouping.name for grouping in shown])
    return found


def by_grid(
    layout: Layout, groupings: Sequence[Grouping]
) -> list[tuple[str, Mesh, tuple[Grouping, ...]]]:
    """Groups by the grid that they live on: dense, expert, or both."""
    is_expert = [grouping.mesh == layout.expert for grouping in groupings]
    sides = []
    for grid, mesh in (("dense_grid", layout.mesh), ("expert_grid", layout.expert)):
        shown = tuple(
            one for one, expert in zip(groupings, is_expert) if expert == (mesh is layout.expert)
        )
        if shown and mesh is not None:
            sides.append((grid, mesh, shown))
    return sides


def group_facts(grouping: Grouping, gpus_per_node: int, language: str) -> str:
    """How many groups of what size, and how many of them leave their node."""
    spanned = spans_of(grouping, gpus_per_node)
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
    """The panel of one kind; beside another grid, groups of one rank are not worth a picture."""
    is_small = layout.world_size <= PANEL_LIMIT
    if not is_small or (grouping.size == 1 and has_two):
        return None
    return scene.panel(grouping, layout.gpus_per_node)


def overview_figures(
    layout: Layout,
    visible: Sequence[Grouping],
    mesh: Mesh,
    shown: Sequence[Grouping],
    language: str,
    rank: int,
    views: Sequence[str] = ("logical", "physical"),
    marked: Sequence[Grouping] = (),
    of: str = "",
) -> Markup:
    """The logical mesh and the nodes; ``marked`` as for `framed`. of: the grid, of two."""
    told = visible if marked else told_groups(layout, visible)
    tone = _all_tones(layout, told, [*marked, *shown])
    known = all_kinds(layout, told, marked)
    numbers = [known.index(one) for one in shown]
    return together(
        *(
            figure(
                PAGE[one.view][language] + (f" · {PAGE[of][language]}" if of else ""),
                svg.overview_svg(one, _overview_text(layout, one, shown, language), numbers),
            )
            for one in scene.overviews(mesh, shown, layout.gpus_per_node, rank, tone)
            if one.view in views
        )
    )


def section(
    layout: Layout,
    visible: Sequence[Grouping],
    grouping: Grouping,
    language: str,
    panel: scene.Panel | None = None,
    words: set[int] | None = None,
) -> Markup:
    """One kind: its picture and, beside it, what the kind is and what these groups are.

    words: those that sections before it explained.
    """
    words = set() if words is None else words
    text = kind_text(layout, grouping, language)
    note, drawn, cp = "", "", layout.mesh.size("cp")
    if grouping.name == "dp" and cp > 1 and all(one.name != "cp" for one in visible):
        note = tag("p", PAGE["cp_hidden"][language].format(cp=cp), class_="note")
    if panel is not None:
        picture = Markup(svg.panel_svg(panel, _panel_text(layout, grouping, language)))
        drawn = tag("figure", picture, style=f"max-width:{panel.width:g}px")
    tone = _tones(layout, told_groups(layout, visible)).get(grouping.name, "tp")
    facts = group_facts(grouping, layout.gpus_per_node, language)
    source = tag("p", text.source, class_="source") if text.source else ""
    return tag(
        "section",
        tag("h3", chip(grouping.name), " ", text.title),
        tag("p", explained(facts, language, words), class_="facts"),
        tag("p", explained(text.lead, language, words), class_="short"),
        *(note, drawn, fold(JOB["more"][language], tag("p", text.body), source, kind="")),
        class_=f"kind t-{tone}",
    )


def _about(layout: Layout, group_type: str, language: str) -> Markup:
    """What the type of groups is for, what there is to read, and how to read the pictures."""
    words = TYPES[group_type]
    how = HOW_TO_READ if layout.world_size <= PANEL_LIMIT else HOW_TO_READ_LARGE
    links = [tag("li", outside(link.url, link.title[language])) for link in words.reading]
    reading = (tag("h4", PAGE["reading"][language]), tag("ul", *links)) if links else ()
    return fold(
        JOB["reads"][language],
        tag("p", how[language]),
        tag("h4", words.title[language]),
        tag("p", words.body[language]),
        tag("div", *reading, class_="reading"),
        kind="how",
    )


def _card(layout: Layout, visible: Sequence[Grouping], language: str) -> Markup:
    """The layout in a line, and where the script tells about one GPU; until then, what to do."""
    world = tag("b", counted(layout.world_size, "gpu", language))
    machines = f" = {counted(layout.nodes, 'node', language)} × {layout.gpus_per_node} · "
    data, meshes = [tag("b", f"DP {layout.mesh.size('dp'):,}")], [tag("code", layout.mesh)]
    sides = by_grid(layout, visible)
    if len(sides) > 1 or sides[0][0] == "expert_grid":
        data.append(tag("b", f"EDP {layout.expert.size('edp'):,}"))
        meshes.append(tag("code", layout.expert))
    line = together(world, machines, Markup(" · ").join(data), " · ", Markup(" ").join(meshes))
    return tag(
        "div",
        tag("p", line, class_="layout"),
        tag("div", class_="told", aria_live="polite"),
        class_=f"card{' wide' if len(visible) > 4 else ''}",
        style=f"--kinds:{len(visible)}",
    )


def _panel_text(layout: Layout, grouping: Grouping, language: str) -> str:
    first = grouping.members(int(grouping.firsts()[0]))
    return PAGE["picture_of"][language].format(
        kind=grouping.name,
        groups=counted(grouping.num_groups, "group", language),
        ranks=counted(grouping.size, "rank", language),
        nodes=counted(layout.nodes, "node", language),
        first=PAGE["first_group"][language].format(ranks=ranks_text(first)),
    )


def _overview_text(
    layout: Layout, overview: scene.Overview, shown: Iterable[Grouping], language: str
) -> str:
    return PAGE["overview_of"][language].format(
        view=PAGE[overview.view][language],
        gpus=counted(layout.world_size, "gpu", language),
        nodes=counted(layout.nodes, "node", language),
        rank=overview.rank,
        groups=marks_text(overview.marks, shown, overview.rank, language),
    )


def marks_text(
    marks: Iterable[scene.Mark], shown: Iterable[Grouping], rank: int, language: str
) -> str:
    """The groups that are marked, in words."""
    by_name = {grouping.name: grouping for grouping in shown}
    return " ".join(
        PAGE["mark_of"][language].format(
            kind=mark.kind, index=by_name[mark.kind].index_of(rank), ranks=ranks_text(mark.ranks)
        )
        for mark in marks
    )


def _words(language: str) -> dict[str, str]:
    """The sentences that the page's script fills in."""
    own = {
        name.removeprefix("card_"): text[language]
        for name, text in PAGE.items()
        if name.startswith("card_")
    }
    said = {name: text[language] for name, text in JOB.items() if not name.startswith("label_")}
    return {**own, **said, "gap": GAPS[language]}
