"""Files of what is on screen: the picture for papers and slides, the groups for programs."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable

from descriptions import PAGE
from formats.documents.exports import groups_json, ranks_csv
from groups import LayoutError
from groups.budget import spend
from groups.grouping import Grouping
from render.scenes import groups as scene

from .base.link import Linked
from .base.state import Layout, rank_or_none
from .charts import (
    Pictures,
    collectives_pictures,
    memory_pictures,
    pipeline_pictures,
    traffic_pictures,
)
from .compare.view import compare_pictures
from .groups.details import groups_csv, groups_text
from .groups.view import by_grid, chosen_rank
from .orders.view import orders_pictures

PICTURES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
TABLES: dict[str, tuple[str, Callable[[Layout], str]]] = {
    "csv": ("text/csv", groups_csv),
    "txt": ("text/plain", groups_text),
    "json": ("application/json", lambda layout: groups_json(layout.made())),
    "ranks": ("text/csv", lambda layout: ranks_csv(layout.made())),
}
"""Files for programs: csv and txt hold the groups shown; json and ranks, all (docs/schema.md)."""

FILES = {"ranks": ("ranks", "csv"), "json": ("groups", "json")}
"""What a file is called, and its ending, where the form alone does not say."""


DRAWN: dict[str, Callable[[Layout, Linked], Pictures]] = {
    "groups": lambda layout, now: groups_pictures(layout, rank_or_none(now.asked.rank)),
    "orders": lambda layout, now: orders_pictures(
        layout, now.controls, now.asked.versus, rank_or_none(now.asked.rank)
    ),
    "collectives": lambda layout, now: collectives_pictures(
        layout, now.asked.collectives, now.asked.rank
    ),
    "pipeline": lambda layout, now: pipeline_pictures(
        layout, now.known, now.asked.pipeline, now.asked.rank
    ),
    "memory": lambda layout, now: memory_pictures(
        layout, now.controls, now.asked.memory, now.asked.rank
    ),
    "traffic": lambda layout, now: traffic_pictures(
        layout, now.controls, now.asked.memory, now.asked.traffic
    ),
    "compare": lambda layout, now: compare_pictures(layout, now.asked.kept),
}
"""What a picture file holds, by the view that is shown; the other views have no pictures."""


ANY_PICTURE = 50_000
"""Units of work that matplotlib takes for the smallest picture."""


def picture_file(layout: Layout, now: Linked, form: str, theme: str = "light") -> bytes:
    """The pictures on screen as PNG at twice their size, SVG or PDF.

    Errors: LayoutError where the view refuses what it is asked, or has nothing to draw of it.
    """
    spend(ANY_PICTURE, "pixels")
    # matplotlib takes a second to import, and only a download needs it.
    from render.files import groups as figure

    drawn = DRAWN.get(now.asked.view, DRAWN["groups"])(layout, now)
    if not drawn:
        raise LayoutError("no-picture", "the view has no picture of this layout")
    meshes = ", ".join(str(mesh) for _, mesh, _ in by_grid(layout))
    caption = f"{meshes}, {layout.nodes:,} x {layout.gpus_per_node} GPUs"
    titles, scenes = zip(*drawn)
    return figure.to_bytes(figure.figure(scenes, titles, caption, theme), form)


def groups_pictures(layout: Layout, pin: int | None = None) -> Pictures:
    """Every group shown; of a large world, its grids with the groups of one rank."""
    if layout.world_size <= scene.PANEL_LIMIT:
        return [(_title(one), scene.panel(one, layout.gpus_per_node)) for one in layout.shown]
    rank = chosen_rank(layout, pin)
    drawn: Pictures = []
    for grid, mesh, shown in by_grid(layout):
        logical, physical = scene.overviews(mesh, shown, layout.gpus_per_node, rank)
        which = PAGE[grid]["en"]
        drawn += [
            (f"{which}: logical mesh {mesh}, groups of rank {rank}", logical),
            (f"{which}: physical view, {layout.gpus_per_node} GPUs a node", physical),
        ]
    return drawn


def download(layout: Layout, now: Linked, form: str, theme: str = "light") -> dict:
    """A file as the page's script takes it: name, type, base64 data, and when it was asked for."""
    if form in PICTURES:
        kind, data = PICTURES[form], picture_file(layout, now, form, theme)
    else:
        kind, make = TABLES[form]
        data = make(layout).encode()
    shown = layout.group_type if now.asked.view == "groups" else now.asked.view
    stem, ending = FILES.get(form, ("groups" if form in TABLES else shown, form))
    return {
        "name": f"{stem}-{layout.mesh}.{ending}",
        "type": kind,
        "data": base64.b64encode(data).decode(),
        "asked": time.time_ns(),  # the same file twice is two downloads
    }


def _title(grouping: Grouping) -> str:
    number, size = grouping.num_groups, grouping.size
    groups = "group" if number == 1 else "groups"
    of = "of" if grouping.is_even else "of up to"
    return f"{grouping.name}: {number} {groups} {of} {size} rank{'' if size == 1 else 's'}"
