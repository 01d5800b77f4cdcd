"""What of the Groups view goes into files: the picture of the job, then every visible group."""

from __future__ import annotations

from descriptions import PAGE, SAVED, counted
from groups.grouping import Grouping
from render.scenes import groups as scene
from render.scenes import job_plan

from ..base.context import Context, Pictures
from ..base.resolve import sizes_of
from .hero import job_of_grid, layers_of
from .sentence import question
from .shown import PictureSpec, by_grid, marked


def job_pictures(context: Context) -> Pictures:
    """The picture of the job with the groups of the chosen rank: of each grid."""
    layout, language = context.layout, context.language
    layers = layers_of(context.known, layout.mesh.size("pp"))
    spec = PictureSpec(layout, context.visible, language, context.rank, layers)
    has_two = len(spec.sides) > 1
    room = job_plan.HALF if has_two else job_plan.WHOLE
    return [
        (
            f"{PAGE[grid][language]}: {sizes_of(mesh)}" if has_two else "",
            job_of_grid(spec, mesh, marked(layout, groupings), room),
        )
        for grid, mesh, groupings in spec.sides
    ]


def groups_pictures(context: Context) -> Pictures:
    """The picture of the job; then every group shown, of a large world its nodes."""
    jobs = job_pictures(context)
    layout, rank, language = context.layout, context.rank, context.language
    jobs = [(title or question(rank, language), picture) for title, picture in jobs]
    if layout.world_size <= scene.PANEL_LIMIT:
        panels = [
            (_title(grouping, language), scene.panel(grouping, layout.gpus_per_node))
            for grouping in context.visible
        ]
        return [*jobs, *panels]
    for grid, mesh, groupings in by_grid(layout, context.visible):
        physical = scene.overview(mesh, groupings, layout.gpus_per_node, rank)
        each = counted(layout.gpus_per_node, "gpu", language)
        jobs.append(
            (SAVED["nodes"][language].format(grid=PAGE[grid][language], gpus=each), physical)
        )
    return jobs


def _title(grouping: Grouping, language: str) -> str:
    words = PAGE["groups_of" if grouping.is_even else "groups_of_up_to"][language]
    said = words.format(
        groups=counted(grouping.num_groups, "group", language),
        ranks=counted(grouping.size, "rank", language),
    )
    return f"{grouping.name}: {said.rstrip('.。')}"
