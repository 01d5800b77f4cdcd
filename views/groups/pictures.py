"""What of the Groups view goes into files: the picture of the job, then every visible group."""

from __future__ import annotations

from descriptions import PAGE
from groups.grouping import Grouping
from render.scenes import groups as scene
from render.scenes import job_plan

from ..base.context import Context
from ..base.resolve import sizes_of
from ..base.view import Pictures
from .hero import job_of_grid, label_words, layers_of, marked, told_groups
from .sentence import question
from .view import by_grid


def job_pictures(context: Context, room: tuple[float, float] = job_plan.WHOLE) -> Pictures:
    """The picture of the job with the groups of the chosen rank: of each grid."""
    from render.files.job import JobScene

    layout, rank = context.layout, context.rank
    layers = layers_of(context.known, layout.mesh.size("pp"))
    sides = by_grid(layout, told_groups(layout, context.visible))
    found: Pictures = []
    for grid, mesh, shown in sides:
        own = job_plan.HALF if len(sides) > 1 else room
        picture = job_of_grid(layout, mesh, marked(layout, shown), rank, own, layers)
        title = f"{PAGE[grid]['en']}: {sizes_of(mesh)}" if len(sides) > 1 else ""
        found.append((title, JobScene(picture, label_words(mesh == layout.expert, "en"))))
    return found


def groups_pictures(context: Context) -> Pictures:
    """The picture of the job; then every group shown, of a large world its nodes."""
    jobs = job_pictures(context)
    layout, rank = context.layout, context.rank
    jobs = [(title or question(rank, "en"), one) for title, one in jobs]
    if layout.world_size <= scene.PANEL_LIMIT:
        panels = [(_title(one), scene.panel(one, layout.gpus_per_node)) for one in context.visible]
        return [*jobs, *panels]
    for grid, mesh, shown in by_grid(layout, context.visible):
        _, physical = scene.overviews(mesh, shown, layout.gpus_per_node, rank)
        which = PAGE[grid]["en"]
        jobs.append((f"{which}: physical view, {layout.gpus_per_node} GPUs a node", physical))
    return jobs


def _title(grouping: Grouping) -> str:
    number, size = grouping.num_groups, grouping.size
    groups = "group" if number == 1 else "groups"
    of = "of" if grouping.is_even else "of up to"
    return f"{grouping.name}: {number} {groups} {of} {size} rank{'' if size == 1 else 's'}"
