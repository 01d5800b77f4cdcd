"""Files of what is on screen: the picture for papers and slides, the groups for programs."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from typing import Any

from descriptions import counted
from formats.documents.exports import groups_json_parts, ranks_csv_parts
from groups import LayoutError
from groups.budget import spend

from .all import VIEWS, view_of
from .base.context import Context
from .base.resolve import sizes_text
from .groups.details import groups_csv, groups_text
from .groups.pictures import groups_pictures, job_pictures
from .groups.sentence import question, sentence_of
from .groups.view import by_grid
from .hosts.inputs import placement_or_none
from .pipeline.pictures import pipeline_trace

PICTURES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
TABLES: dict[str, tuple[str, Callable[[Context], str]]] = {
    "csv": ("text/csv", groups_csv),
    "txt": ("text/plain", groups_text),
    "json": (
        "application/json",
        lambda context: "".join(
            groups_json_parts(context.layout, None, placement_or_none(context))
        ),
    ),
    "ranks": (
        "text/csv",
        lambda context: "".join(ranks_csv_parts(context.layout, None, placement_or_none(context))),
    ),
    "trace": ("application/json", pipeline_trace),
}
"""Files for programs: csv and txt hold the groups shown; json and ranks, all (docs/schema.md)."""

FILES = {"ranks": ("ranks", "csv"), "json": ("groups", "json"), "trace": ("trace", "json")}
"""What a file is called, and its ending, where the form alone does not say."""


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

    view = VIEWS[view_of(state)]
    if address is not None and view.title is None:
        drawn = job_pictures(context, SLIDE)
    else:
        drawn = (view.pictures or groups_pictures)(context)
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

    layout, rank = context.layout, context.rank
    view = VIEWS[view_of(context.state)]
    title, sentence = question(rank, "en"), sentence_of(layout, rank, "en")
    if view.title is not None:
        title = view.title["en"]
        sentence = view.summary(context, "en") if view.summary else ""
    machines = (
        f"{counted(layout.world_size, 'gpu', 'en')}, {layout.nodes:,} × {layout.gpus_per_node}"
    )
    told = slide.Told(title, sentence, f"{machines}: {sizes_text(layout)}", address)
    return slide.slide(told, scenes, titles, theme)


SLIDES = tuple(f"slide-{form}" for form in PICTURES)
"""The picture as a slide."""


def download(context: Context, form: str, theme: str = "light", address: str = "") -> dict:
    """A file as the page's script takes it: name, type, base64 data, and when it was asked for.

    address: of what is on screen, for slides.
    """
    if form in PICTURES:
        kind, data = PICTURES[form], picture_file(context, form, theme)
    elif form in SLIDES:
        form = form.removeprefix("slide-")
        kind, data = PICTURES[form], picture_file(context, form, theme, address)
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
