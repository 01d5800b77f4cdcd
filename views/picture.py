"""The picture of a layout as HTML: panels or overviews, each with its text beside it."""

from __future__ import annotations

import json
from functools import lru_cache
from html import escape

import numpy as np

from descriptions import (
    HOW_TO_READ,
    HOW_TO_READ_LARGE,
    KINDS,
    PAGE,
    TYPES,
    counted,
)
from groups import index_of, rank_groups
from groups.placement import nodes_spanned
from render import scene, svg

from .state import Layout


@lru_cache(maxsize=64)
def picture_html(layout: Layout, language: str, pin: int | None = None) -> str:
    """Everything the picture's place shows; ``pin`` matters to large worlds only.

    A pure function of its arguments, so a cached answer is the same for every user.
    """
    small = layout.world_size <= scene.PANEL_LIMIT
    body = _panels(layout, language) if small else _overviews(layout, language, pin)
    how = HOW_TO_READ if small else HOW_TO_READ_LARGE
    return (
        f'<div class="picture" data-mesh="{_attribute(mesh_data(layout))}" '
        f'data-words="{_attribute(_words(language))}" lang="{language}">'
        f"{_card(layout, language)}{_intro(layout, language)}{body}"
        f'<details class="how"><summary>{PAGE["how_to_read"][language]}</summary>'
        f"<p>{escape(how[language])}</p></details></div>"
    )


def mesh_data(layout: Layout) -> dict:
    """What the page's script needs to know any rank's groups by itself."""
    return {
        "axes": [[axis.name, axis.size] for axis in layout.mesh.axes],
        "kinds": [[kind, KINDS[kind].short, kind.split("-")] for kind in layout.kinds],
        "gpusPerNode": layout.gpus_per_node,
        "world": layout.world_size,
    }


def group_facts(layout: Layout, kind: str, language: str) -> str:
    """How many groups of what size, and how many of them leave their node."""
    groups = rank_groups(layout.mesh, kind)
    spanned = nodes_spanned(groups, layout.gpus_per_node)
    leaving = int(np.count_nonzero(spanned > 1))
    nodes = counted(int(spanned.max()), "node", language)
    number, size = groups.shape
    facts = PAGE["groups_of"][language].format(
        groups=counted(number, "group", language), ranks=counted(size, "rank", language)
    )
    if not leaving:
        where = PAGE["stays"][language]
    elif leaving == number and spanned.min() == spanned.max():
        where = PAGE["leaves_all"][language].format(nodes=nodes)
    else:
        where = PAGE["leaves_some"][language].format(
            leaving=f"{leaving:,}", total=f"{number:,}", nodes=nodes
        )
    return facts + ("" if language == "zh" else " ") + where


def _panels(layout: Layout, language: str) -> str:
    return "".join(
        _section(
            layout,
            kind,
            language,
            scene.panel(layout.mesh, kind, layout.gpus_per_node),
        )
        for kind in layout.kinds
    )


def _overviews(layout: Layout, language: str, pin: int | None) -> str:
    rank = pin if pin is not None and pin < layout.world_size else 0
    logical, physical = scene.overviews(layout.mesh, layout.kinds, layout.gpus_per_node, rank)
    figures = "".join(
        f"<figure><figcaption>{PAGE[overview.view][language]}</figcaption>"
        f"{svg.overview_svg(overview, _overview_text(layout, overview, language))}</figure>"
        for overview in (logical, physical)
    )
    texts = "".join(_section(layout, kind, language) for kind in layout.kinds)
    return (
        f'<div class="large" data-rank="{rank}"><div class="views">{figures}</div>'
        f'<div class="texts">{texts}</div></div>'
    )


def _section(layout: Layout, kind: str, language: str, panel: scene.Panel | None = None) -> str:
    """One kind: its picture and, beside it, what the kind is and what these groups are."""
    note = ""
    cp = layout.mesh.size("cp")
    if kind == "dp" and cp > 1 and "cp" not in TYPES[layout.group_type].kinds:
        note = f'<p class="note">{escape(PAGE["cp_hidden"][language].format(cp=cp))}</p>'
    figure, width = "", 0.0
    if panel is not None:
        width = panel.width
        figure = f"<figure>{svg.panel_svg(panel, _panel_text(layout, kind, language))}</figure>"
    return (
        f'<section class="kind k-{kind}" style="--picture:{width:g}px">{figure}<div class="text">'
        f'<h3><span class="chip">{kind}</span> {escape(KINDS[kind].title[language])}</h3>'
        f'<p class="facts">{escape(group_facts(layout, kind, language))}</p>'
        f"<p>{escape(KINDS[kind].body[language])}</p>{note}</div></section>"
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


def _card(layout: Layout, language: str) -> str:
    """Where the script tells about one GPU; until then, the layout and what to do."""
    world, nodes = (
        counted(number, noun, language)
        for number, noun in ((layout.world_size, "gpu"), (layout.nodes, "node"))
    )
    return (
        f'<div class="card" style="--kinds:{len(layout.kinds)}"><p class="layout"><b>{world}</b>'
        f" = {nodes} × {layout.gpus_per_node} · <b>DP {layout.mesh.size('dp'):,}</b> · "
        f"<code>{layout.mesh}</code></p>"
        f'<div class="told" aria-live="polite">{escape(PAGE["idle"][language])}</div></div>'
    )


def _panel_text(layout: Layout, kind: str, language: str) -> str:
    groups = rank_groups(layout.mesh, kind)
    first = PAGE["first_group"][language].format(ranks=ranks_text(groups[0]))
    return PAGE["picture_of"][language].format(
        kind=kind,
        groups=counted(len(groups), "group", language),
        ranks=counted(groups.shape[1], "rank", language),
        nodes=counted(layout.nodes, "node", language),
        first=first,
    )


def _overview_text(layout: Layout, overview: scene.Overview, language: str) -> str:
    marks = " ".join(
        PAGE["mark_of"][language].format(
            kind=mark.kind,
            index=index_of(layout.mesh, mark.kind, overview.rank),
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


def ranks_text(ranks: np.ndarray, most: int = 24) -> str:
    """Ranks in one line, the middle left out where there are too many.

    >>> ranks_text(np.arange(4)), ranks_text(np.arange(100), most=6)
    ('0, 1, 2, 3', '0, 1, 2, … 97, 98, 99')
    """
    if len(ranks) <= most:
        return ", ".join(map(str, ranks.tolist()))
    half = most // 2
    head, tail = ranks[:half].tolist(), ranks[-half:].tolist()
    return f"{', '.join(map(str, head))}, … {', '.join(map(str, tail))}"


def _words(language: str) -> dict[str, str]:
    """The sentences that the page's script fills in."""
    return {
        name.removeprefix("card_"): text[language]
        for name, text in PAGE.items()
        if name.startswith("card_") or name == "idle"
    }


def _attribute(value: object) -> str:
    return escape(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
