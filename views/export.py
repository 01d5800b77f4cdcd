"""Files of what is on screen: the picture for papers and slides, the groups for programs."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from typing import Any

from descriptions import MEMORY, PAGE, RUN, TRAFFIC, counted
from formats.documents.exports import groups_json, ranks_csv
from groups import LayoutError
from groups.budget import spend
from groups.grouping import Grouping
from render.scenes import groups as scene
from render.scenes import job_plan

from .base.context import Context
from .base.resolve import sizes_of, sizes_text
from .charts import (
    Pictures,
    collectives_pictures,
    memory_pictures,
    pipeline_pictures,
    pipeline_trace,
    traffic_pictures,
)
from .compare.view import compare_pictures
from .groups.details import groups_csv, groups_text
from .groups.hero import job_of_grid, label_words, layers_of, marked, told_groups
from .groups.sentence import question, sentence_of
from .groups.view import by_grid
from .hang.view import hang_pictures, hang_verdict
from .hosts.measures import measures_pictures
from .orders.view import orders_pictures

PICTURES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
TABLES: dict[str, tuple[str, Callable[[Context], str]]] = {
    "csv": ("text/csv", groups_csv),
    "txt": ("text/plain", groups_text),
    "json": ("application/json", lambda context: groups_json(context.layout)),
    "ranks": ("text/csv", lambda context: ranks_csv(context.layout)),
}
"""Files for programs: csv and txt hold the groups shown; json and ranks, all (docs/schema.md)."""

FILES = {"ranks": ("ranks", "csv"), "json": ("groups", "json"), "trace": ("trace", "json")}
"""What a file is called, and its ending, where the form alone does not say."""


DRAWN: dict[str, Callable[[Context], Pictures]] = {
    "groups": lambda context: groups_pictures(context),
    "orders": orders_pictures,
    "collectives": collectives_pictures,
    "pipeline": pipeline_pictures,
    "memory": memory_pictures,
    "traffic": traffic_pictures,
    "compare": compare_pictures,
    "hang": hang_pictures,
    "hosts": measures_pictures,
}
"""What a picture file holds, by the view that is shown; the other views have no pictures."""


SHOWN = {
    "orders": PAGE["moved_title"],
    "collectives": PAGE["collectives_title"],
    "pipeline": PAGE["pipeline_title"],
    "memory": MEMORY["title"],
    "traffic": TRAFFIC["matrix_title"],
    "compare": PAGE["compare_title"],
    "hang": RUN["hang_title"],
    "hosts": RUN["measures_title"],
}
"""Titles of slides of the views that have pictures of their own; others show the job."""

SHARP = 1.5
"""Pixels of a PNG for each of a slide: 1920 by 1080."""

SLIDE = (736.0, 330.0)
"""Room for the picture of the job on a slide, in its own pixels."""

ANY_PICTURE = 50_000
"""Units of work that matplotlib takes for the smallest picture."""


def picture_file(
    context: Context, form: str, theme: str = "light", address: str | None = None
) -> bytes:
    """The pictures on screen as PNG at twice their size, SVG or PDF.

    address: None for a file as tall as its pictures; else a slide that says this address.

    Errors: LayoutError where the view refuses what it is asked, or has nothing to draw of it.
    """
    layout, state = context.layout, context.state
    spend(ANY_PICTURE, "pixels")
    # matplotlib takes a second to import, and only a download needs it.
    from render.files import groups as figure

    if address is not None and state.view not in SHOWN:
        drawn = job_pictures(context, SLIDE)
    else:
        drawn = DRAWN.get(state.view, DRAWN["groups"])(context)
    if not drawn:
        raise LayoutError("no-picture", "the view has no picture of this layout")
    titles, scenes = zip(*drawn)
    if address is not None:
        made = _slide(context, titles, scenes, theme, address)
        return figure.to_bytes(made, form, SHARP)
    meshes = ", ".join(str(mesh) for _, mesh, _ in by_grid(layout, context.visible))
    caption = f"{meshes}, {layout.nodes:,} x {layout.gpus_per_node} GPUs"
    return figure.to_bytes(figure.figure(scenes, titles, caption, theme), form)


def _slide(
    context: Context,
    titles: Sequence[str],
    scenes: Sequence[Any],
    theme: str,
    address: str,
) -> Any:
    """The figure of a slide: what the view asks, its answer where it is one sentence, the job."""
    from render.files import slide

    layout, view, rank = context.layout, context.state.view, context.rank
    title, sentence = question(rank, "en"), sentence_of(layout, rank, "en")
    if view in SHOWN:
        title, sentence = SHOWN[view]["en"], ""
        if view == "hang":
            sentence = hang_verdict(context, "en")
    machines = (
        f"{counted(layout.world_size, 'gpu', 'en')}, {layout.nodes:,} × {layout.gpus_per_node}"
    )
    told = slide.Told(title, sentence, f"{machines}: {sizes_text(layout)}", address)
    return slide.slide(told, scenes, titles, theme)


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


SLIDES = tuple(f"slide-{form}" for form in PICTURES)
TRACE = "trace"
"""Other forms of a file: the picture as a slide, and the pipeline as a trace."""


def download(context: Context, form: str, theme: str = "light", address: str = "") -> dict:
    """A file as the page's script takes it: name, type, base64 data, and when it was asked for.

    address: of what is on screen, for slides.
    """
    if form in PICTURES:
        kind, data = PICTURES[form], picture_file(context, form, theme)
    elif form in SLIDES:
        form = form.removeprefix("slide-")
        kind, data = PICTURES[form], picture_file(context, form, theme, address)
    elif form == TRACE:
        kind = "application/json"
        data = pipeline_trace(context).encode()
    else:
        kind, make = TABLES[form]
        data = make(context).encode()
    state = context.state
    shown = state.group_type if state.view == "groups" else state.view
    stem, ending = FILES.get(form, ("groups" if form in TABLES else shown, form))
    return {
        "name": f"{stem}-{context.layout.mesh}.{ending}",
        "type": kind,
        "data": base64.b64encode(data).decode(),
        "asked": time.time_ns(),  # the same file twice is two downloads
    }


def _title(grouping: Grouping) -> str:
    number, size = grouping.num_groups, grouping.size
    groups = "group" if number == 1 else "groups"
    of = "of" if grouping.is_even else "of up to"
    return f"{grouping.name}: {number} {groups} {of} {size} rank{'' if size == 1 else 's'}"
