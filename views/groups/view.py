"""The picture of a layout as HTML: panels or overviews, each with its text beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape
from itertools import groupby

import numpy as np

from descriptions import HOW_TO_READ, HOW_TO_READ_LARGE, PAGE, TYPES, counted
from groups import Mesh
from groups.audit import spans_of
from groups.grouping import Grouping
from render.palette import tones
from render.scenes import groups as scene
from render.svg import groups as svg

from ..base.names import kind_text
from ..base.state import Layout

PANEL_LIMIT = scene.PANEL_LIMIT


@lru_cache(maxsize=64)
def picture_html(layout: Layout, language: str, pin: int | None = None, strip: str = "") -> str:
    """What the Groups view shows; ``pin`` matters to large worlds only, ``strip`` goes on top.

    A pure function of its arguments, so a cached answer is the same for every user.
    """
    small = layout.world_size <= PANEL_LIMIT
    sides = by_grid(layout)
    if len(sides) > 1:
        body = "".join(
            f'<div class="grid"><h3>{PAGE[grid][language]} <code>{mesh}</code></h3>'
            f"{_pictures(layout, mesh, shown, language, pin)}</div>"
            for grid, mesh, shown in sides
        )
        body = f'<div class="grids">{body}</div>'
    else:
        body = _pictures(layout, sides[0][1], layout.shown, language, pin)
    how = (HOW_TO_READ if small else HOW_TO_READ_LARGE)[language]
    return framed(
        layout,
        language,
        f"{strip}{_intro(layout, language)}{body}"
        f'<details class="how"><summary>{PAGE["how_to_read"][language]}</summary>'
        f"<p>{escape(how)}</p></details>",
        "groups",
        (),
    )


def framed(
    layout: Layout, language: str, body: str, view: str, marked: Sequence[Grouping] | None = None
) -> str:
    """A view's body under the layout, with what the page's script needs to know.

    marked: groups that overviews in the body mark, where they are not the layout's own; None for a
    body without pictures, which needs no card of the GPU under the pointer.
    """
    return (
        f'<div class="picture" data-view="{view}" '
        f'data-mesh="{_attribute(mesh_data(layout, marked or ()))}" '
        f'data-words="{_attribute(_words(language))}" lang="{language}">'
        f"{_card(layout, language, marked is not None)}{body}</div>"
    )


def mesh_data(layout: Layout, marked: Sequence[Grouping]) -> dict:
    """What the page's script needs to know any rank's groups by itself.

    grids: the axes of each mesh, the dense one first. kinds: name, tone, grid, swept axes, and how
    groups are cut (length, stride), thinned (places) or joined; the first ``told`` are the layout's
    own, which the card tells.
    """
    kinds = all_kinds(layout, marked)
    meshes = [layout.mesh]
    if layout.expert is not None and any(one.mesh == layout.expert for one in kinds):
        meshes.append(layout.expert)
    told = len(meshes)
    meshes += [mesh for mesh in dict.fromkeys(one.mesh for one in kinds) if mesh not in meshes]
    tone = _all_tones(layout, marked)
    return {
        "grids": [[[axis.name, axis.size] for axis in mesh.axes] for mesh in meshes],
        "coordinates": told,
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
        "told": len(layout.shown),
        "gpusPerNode": layout.gpus_per_node,
        "world": layout.world_size,
    }


def all_kinds(layout: Layout, marked: Sequence[Grouping] = ()) -> list[Grouping]:
    """The groups that the page's script knows, by number: the layout's own, then the others."""
    return [*layout.shown, *(one for one in marked if one not in layout.shown)]


def _all_tones(layout: Layout, marked: Sequence[Grouping]) -> dict[str, str]:
    """The tone of every group that the page's script knows: pictures and script must agree."""
    return tones([one.name for one in marked]) | _tones(layout)


def _tones(layout: Layout) -> dict[str, str]:
    """The tone of each shown group, as in the pictures: each grid has its own."""
    found: dict[str, str] = {}
    for _, _, shown in by_grid(layout):
        found |= tones([grouping.name for grouping in shown])
    return found


def by_grid(layout: Layout) -> list[tuple[str, Mesh, tuple[Grouping, ...]]]:
    """The shown groups by the grid that they live on: dense, expert, or both side by side."""
    is_expert = [grouping.mesh == layout.expert for grouping in layout.shown]
    sides = []
    for grid, mesh in (("dense_grid", layout.mesh), ("expert_grid", layout.expert)):
        shown = tuple(
            one for one, expert in zip(layout.shown, is_expert) if expert == (mesh is layout.expert)
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
    return ("" if language == "zh" else " ").join(facts)


def _pictures(
    layout: Layout, mesh: Mesh, shown: Sequence[Grouping], language: str, pin: int | None
) -> str:
    if layout.world_size <= PANEL_LIMIT:
        return "".join(
            section(layout, one, language, _panel(layout, one, len(shown) < len(layout.shown)))
            for one in shown
        )
    rank = chosen_rank(layout, pin)
    texts = "".join(section(layout, one, language) for one in shown)
    return (
        f'<div class="large" data-rank="{rank}">'
        f'<div class="views">{overview_figures(layout, mesh, shown, language, rank)}</div>'
        f'<div class="texts">{texts}</div></div>'
    )


def _panel(layout: Layout, grouping: Grouping, beside: bool) -> scene.Panel | None:
    """The panel of one kind; beside another grid, groups of one rank are not worth a picture."""
    if beside and grouping.size == 1:
        return None
    return scene.panel(grouping, layout.gpus_per_node)


def chosen_rank(layout: Layout, pin: int | None) -> int:
    """The rank whose groups a large picture marks: the pinned one, else 0."""
    return pin if pin is not None and pin < layout.world_size else 0


def overview_figures(
    layout: Layout,
    mesh: Mesh,
    shown: Sequence[Grouping],
    language: str,
    rank: int,
    views: Sequence[str] = ("logical", "physical"),
    marked: Sequence[Grouping] = (),
) -> str:
    """The logical mesh and the nodes; ``marked`` as for `framed`."""
    tone = _all_tones(layout, [*marked, *shown])
    pictures = scene.overviews(mesh, shown, layout.gpus_per_node, rank, tone)
    known = all_kinds(layout, marked)
    numbers = [known.index(one) for one in shown]
    return "".join(
        f"<figure><figcaption>{PAGE[overview.view][language]}</figcaption>"
        f"{svg.overview_svg(overview, _overview_text(layout, overview, shown, language), numbers)}"
        "</figure>"
        for overview in pictures
        if overview.view in views
    )


def section(
    layout: Layout, grouping: Grouping, language: str, panel: scene.Panel | None = None
) -> str:
    """One kind: its picture and, beside it, what the kind is and what these groups are."""
    text = kind_text(layout, grouping, language)
    note = ""
    cp = layout.mesh.size("cp")
    if grouping.name == "dp" and cp > 1 and "cp" not in layout.kinds:
        note = f'<p class="note">{escape(PAGE["cp_hidden"][language].format(cp=cp))}</p>'
    figure, width = "", 0.0
    if panel is not None:
        width = panel.width
        description = _panel_text(layout, grouping, language)
        figure = f"<figure>{svg.panel_svg(panel, description)}</figure>"
    tone = _tones(layout).get(grouping.name, "tp")
    facts = group_facts(grouping, layout.gpus_per_node, language)
    source = f'<p class="source">{escape(text.source)}</p>' if text.source else ""
    return (
        f'<section class="kind t-{tone}" style="--picture:{width:g}px">{figure}<div class="text">'
        f'<h3><span class="chip">{escape(grouping.name)}</span> {escape(text.title)}</h3>'
        f'<p class="facts">{escape(facts)}</p>'
        f"<p>{escape(text.body)}</p>{note}{source}</div></section>"
    )


def _intro(layout: Layout, language: str) -> str:
    group_type = TYPES[layout.group_type]
    links = "".join(
        f'<li><a href="{escape(link.url)}" target="_blank" rel="noopener noreferrer">'
        f"{escape(link.title[language])}</a></li>"
        for link in group_type.reading
    )
    reading = (
        f'<details class="reading"><summary>{PAGE["reading"][language]}</summary>'
        f"<ul>{links}</ul></details>"
        if links
        else ""
    )
    return (
        f'<div class="intro"><h2>{escape(group_type.title[language])}</h2>'
        f"<p>{escape(group_type.body[language])}</p>{reading}</div>"
    )


def _card(layout: Layout, language: str, tells: bool) -> str:
    """The layout in a line, and where the script tells about one GPU; until then, what to do."""
    world, nodes = (
        counted(number, noun, language)
        for number, noun in ((layout.world_size, "gpu"), (layout.nodes, "node"))
    )
    meshes = f"<code>{layout.mesh}</code>"
    data = f"<b>DP {layout.mesh.size('dp'):,}</b>"
    if len(by_grid(layout)) > 1 or by_grid(layout)[0][0] == "expert_grid":
        meshes += f" <code>{layout.expert}</code>"
        data += f" · <b>EDP {layout.expert.size('edp'):,}</b>"
    line = f"<b>{world}</b> = {nodes} × {layout.gpus_per_node} · {data} · {meshes}"
    if not tells:
        return f'<div class="card bare"><p class="layout">{line}</p></div>'
    wide = " wide" if len(layout.shown) > 4 else ""
    return (
        f'<div class="card{wide}" style="--kinds:{len(layout.shown)}"><p class="layout">{line}</p>'
        f'<div class="told" aria-live="polite">{escape(PAGE["idle"][language])}</div></div>'
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
    by_name = {grouping.name: grouping for grouping in shown}
    marks = " ".join(
        PAGE["mark_of"][language].format(
            kind=mark.kind,
            index=by_name[mark.kind].index_of(overview.rank),
            ranks=ranks_text(mark.ranks),
        )
        for mark in overview.marks
    )
    return PAGE["overview_of"][language].format(
        view=PAGE[overview.view][language],
        gpus=counted(layout.world_size, "gpu", language),
        nodes=counted(layout.nodes, "node", language),
        rank=overview.rank,
        groups=marks,
    )


def ranks_text(ranks: np.ndarray | Sequence[int], most: int = 24) -> str:
    """Ranks in one line, the middle left out where there are too many.

    >>> ranks_text(np.arange(4)), ranks_text(np.arange(100), most=6)
    ('0, 1, 2, 3', '0, 1, 2, … 97, 98, 99')
    """
    if len(ranks) <= most:
        return _joined(ranks)
    half = most // 2
    return f"{_joined(ranks[:half])}, … {_joined(ranks[-half:])}"


def _joined(ranks: np.ndarray | Sequence[int]) -> str:
    return ", ".join(map(str, ranks.tolist() if isinstance(ranks, np.ndarray) else ranks))


def ranges_text(ranks: Sequence[int], most: int = 24) -> str:
    """Ranks in one line, neighbours as ranges.

    >>> ranges_text([0, 1, 2, 3, 8, 10, 11])
    '0-3, 8, 10-11'
    """
    runs = []
    for _, run in groupby(enumerate(ranks), key=lambda pair: pair[1] - pair[0]):
        members = [rank for _, rank in run]
        runs.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    if len(runs) <= most:
        return ", ".join(runs)
    return ", ".join(runs[: most // 2]) + ", … " + ", ".join(runs[-most // 2 :])


def _words(language: str) -> dict[str, str]:
    """The sentences that the page's script fills in."""
    return {
        name.removeprefix("card_"): text[language]
        for name, text in PAGE.items()
        if name.startswith("card_") or name == "idle"
    }


def _attribute(value: object) -> str:
    return escape(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
