"""Files of what is on screen: the picture for papers and slides, the groups for programs."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

from descriptions import PAGE
from groups.exports import groups_json, ranks_csv
from groups.grouping import Grouping
from render import scene

from .details import groups_csv, groups_text
from .picture import by_grid, chosen_rank
from .state import Layout

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


def picture_file(layout: Layout, form: str, pin: int | None = None, theme: str = "light") -> bytes:
    """The picture on screen as PNG at twice its size, SVG or PDF."""
    # matplotlib takes a second to import, and only a download needs it.
    from render import figure

    if layout.world_size <= scene.PANEL_LIMIT:
        scenes: list[Any] = [scene.panel(one, layout.gpus_per_node) for one in layout.shown]
        titles = [_title(one) for one in layout.shown]
    else:
        rank = chosen_rank(layout, pin)
        scenes, titles = [], []
        for grid, mesh, shown in by_grid(layout):
            scenes += scene.overviews(mesh, shown, layout.gpus_per_node, rank)
            which = PAGE[grid]["en"]
            titles += [
                f"{which}: logical mesh {mesh}, groups of rank {rank}",
                f"{which}: physical view, {layout.gpus_per_node} GPUs a node",
            ]
    meshes = ", ".join(str(mesh) for _, mesh, _ in by_grid(layout))
    caption = f"{meshes}, {layout.nodes:,} x {layout.gpus_per_node} GPUs"
    return figure.to_bytes(figure.figure(scenes, titles, caption, theme), form)


def download(layout: Layout, form: str, pin: int | None = None, theme: str = "light") -> dict:
    """A file as the page's script takes it: name, type, base64 data, and when it was asked for."""
    if form in PICTURES:
        kind, data = PICTURES[form], picture_file(layout, form, pin, theme)
    else:
        kind, make = TABLES[form]
        data = make(layout).encode()
    stem, ending = FILES.get(form, ("groups" if form in TABLES else layout.group_type, form))
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
