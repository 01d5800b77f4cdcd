"""The pictures of both jobs, the one below or beside the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from descriptions import PAGE, counted
from groups.grouping import Grouping
from render.scenes.job_plan import HALF
from render.svg import job as svg
from request.answers.compare.sides import Compared, Side
from request.resolve import sizes_of

from ..base.html import tag
from ..parts.job import described, job_of_grid, spec_of
from ..parts.shown import PictureSpec, marked


def spec_of_both(found: Compared) -> PictureSpec:
    """What the page's script needs: the groups of the layout on screen and, if it has the same
    ranks, of the other one."""
    spec = spec_of(found.second.context)
    return replace(spec, others=_groupings(found.first)) if _is_alive(found) else spec


def jobs_html(found: Compared, language: str) -> Markup:
    """Both jobs; pointing at a rank highlights it in both, if they have the same ranks."""
    spec, is_alive = spec_of_both(found), _is_alive(found)
    figures = [
        *_figures(found.first, spec.script_groups if is_alive else None, language),
        *_figures(found.second, spec.script_groups, language),
    ]
    return tag("div", *figures, class_="jobs" if len(figures) == 2 else "jobs wide")


def _figures(side: Side, known: list[Grouping] | None, language: str) -> list[Markup]:
    """A picture of each grid. known: the groups that the script highlights; None: none."""
    layout, figures = side.layout, []
    spec = spec_of(side.context)
    for grid, mesh, groupings in spec.sides:
        groups = marked(layout, groupings)
        picture = job_of_grid(spec, mesh, groups, HALF)
        numbers = [known.index(grouping) for grouping in groups] if known else []
        text = described(layout, picture, groups, language)
        drawn = svg.job_svg(picture, text, numbers, is_still=known is None)
        gpus = counted(layout.world_size, "gpu", language)
        says = f"{gpus}, {layout.nodes:,} × {layout.gpus_per_node}"
        if len(spec.sides) > 1:
            says = f"{PAGE[grid][language]}{PAGE['colon'][language]}{sizes_of(mesh)}"
        title = tag("figcaption", tag("b", side.name), " ", tag("span", says))
        figures.append(tag("figure", title, Markup(drawn), class_=None if known else "still"))
    return figures


def _groupings(side: Side) -> Sequence[Grouping]:
    """The groups that the pictures of a layout mark."""
    spec = spec_of(side.context)
    return [one for *_, groupings in spec.sides for one in marked(side.layout, groupings)]


def _is_alive(found: Compared) -> bool:
    return found.first.layout.world_size == found.second.layout.world_size
