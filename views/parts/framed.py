"""A view's HTML with what the page's script has to know of the layout; the card of a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from markupsafe import Markup

from descriptions import (
    CARD,
    GAP,
    JOB,
    PAGE,
    counted,
)
from groups import Mesh
from groups.grouping import Grouping
from groups.layout import Layout
from render.scenes import groups as scene
from render.svg import groups as svg

from ..base.html import (
    attribute_value,
    dotted,
    figure,
    tag,
    together,
)
from .job import marks_text
from .shown import PictureSpec

PANEL_LIMIT = scene.PANEL_LIMIT


def framed(spec: PictureSpec, view: str, *parts: object) -> Markup:
    """A view's HTML with the data about the layout for the page's script."""
    known = {"data_mesh": spec.data, "data_words": _words(spec.language)}
    return tag("div", *parts, class_="picture", data_view=view, **known, lang=spec.language)


def overview_figure(
    spec: PictureSpec, mesh: Mesh, groupings: Sequence[Grouping], of: str = ""
) -> Markup:
    """The nodes with groups of the rank. of: the grid, if there are two."""
    layout, language = spec.layout, spec.language
    overview = scene.overview(mesh, groupings, layout.gpus_per_node, spec.rank, spec.tones)
    described = _overview_text(layout, overview, groupings, language)
    numbers = [spec.script_groups.index(grouping) for grouping in groupings]
    drawn = svg.overview_svg(overview, described, numbers)
    title = PAGE["physical"][language] + (f" · {PAGE[of][language]}" if of else "")
    return figure(title, drawn)


def card_html(spec: PictureSpec, *, has_line: bool = True) -> Markup:
    """The layout in one line, and the card of a GPU for the script to fill in.

    has_line: whether it is said here which layout.
    """
    layout, language, kinds = spec.layout, spec.language, len(spec.listed)
    world = tag("b", counted(layout.world_size, "gpu", language))
    machines = f" = {counted(layout.nodes, 'node', language)} × {layout.gpus_per_node}"
    data, meshes = [tag("b", f"DP {layout.mesh.size('dp'):,}")], [tag("code", layout.mesh)]
    if layout.expert is not None and any(grid == "expert_grid" for grid, *_ in spec.sides):
        data.append(tag("b", f"EDP {layout.expert.size('edp'):,}"))
        meshes.append(tag("code", layout.expert))
    line = dotted(together(world, machines), *data, Markup(" ").join(meshes))
    return tag(
        "div",
        tag("p", line, class_="layout") if has_line else "",
        tag("div", class_="told", aria_live="polite"),
        class_=f"card{' wide' if kinds > 4 else ''}",
        style=f"--kinds:{kinds}",
    )


def _overview_text(
    layout: Layout, overview: scene.Overview, groupings: Iterable[Grouping], language: str
) -> str:
    return PAGE["overview_of"][language].format(
        view=PAGE["physical"][language],
        gpus=counted(layout.world_size, "gpu", language),
        nodes=counted(layout.nodes, "node", language),
        rank=overview.rank,
        groups=marks_text(overview.marks, groupings, overview.rank, language),
    )


@cache
def _words(language: str) -> str:
    """The sentences that the page's script fills in, as an attribute's value."""
    card = {name: text[language] for name, text in CARD.items()}
    texts = {name: text[language] for name, text in JOB.items() if not name.startswith("label_")}
    return attribute_value({**card, **texts, "gap": GAP[language]})
