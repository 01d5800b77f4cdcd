"""Files of the page: pictures for papers and slides, groups for programs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from descriptions import PAGE, SAVED, SHELL, counted
from formats.documents.exports import groups_json_parts, ranks_csv_parts
from groups import LayoutError
from groups.budget import spend
from groups.layout import Layout
from render.files.card import CardText, card
from render.files.figure import figure
from render.files.forms import to_bytes
from render.files.slide import SlideText, slide
from render.marks import Drawing, Together
from request.answers.sentence import question, sentence_of
from request.context import Context, of_server
from request.hosts import placement_or_none
from request.link import short_query
from request.model import model_name, model_of
from request.named.kept import short_kept
from request.resolve import sizes_text
from request.state import is_empty
from request.trained import batch_of

from .all import VIEWS, view_of
from .base.view import Pictures
from .groups.details import groups_csv, groups_text
from .parts.job import groups_pictures, job_pictures
from .parts.shown import by_grid
from .pipeline.chart import pipeline_trace
from .roles.view import roles_csv


def _all_of(parts: Callable[..., Iterable[str]], context: Context) -> str:
    return "".join(parts(context.layout, None, placement_or_none(context)))


PICTURES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
SLIDES = tuple(f"slide-{form}" for form in PICTURES)
TABLES: dict[str, tuple[str, str, Callable[[Context], str]]] = {
    "csv": ("groups-{}.csv", "text/csv", groups_csv),
    "txt": ("groups-{}.txt", "text/plain", groups_text),
    "json": ("groups-{}.json", "application/json", partial(_all_of, groups_json_parts)),
    "ranks": ("ranks-{}.csv", "text/csv", partial(_all_of, ranks_csv_parts)),
    "roles": ("roles-{}.csv", "text/csv", roles_csv),
    "trace": ("trace-{}.json", "application/json", pipeline_trace),
}
"""Files for programs, by the name of the file with its mesh: csv and txt hold the groups shown;
json and ranks, all (docs/schema.md); roles, every rank of a plan."""

SHARP = 1.5
"""Pixels of a PNG per pixel of a slide: 1920 by 1080 in total."""

SAFE = ":,|*();=~/"
"""Characters of a query that an address shows unescaped."""

ANY_PICTURE = 50_000
"""Units of work that matplotlib needs for the smallest picture."""


def picture_file(
    context: Context, form: str, theme: str = "light", address: str | None = None
) -> bytes:
    """The pictures on screen as PNG at twice their size, SVG or PDF; with an address, a slide that
    shows it.

    Errors: LayoutError where the view refuses what it is asked, or has nothing to draw of it.
    """
    spend(ANY_PICTURE, "pixels")
    context = in_a_font(context, form)
    if address is None:
        return to_bytes(file_of(context, theme), form)
    return to_bytes(slide_of(context, theme, address), form, SHARP)


def file_of(context: Context, theme: str = "light") -> Drawing:
    """The pictures, one below the other."""
    layout, language = context.layout, context.language
    drawn = _drawn((VIEWS[view_of(context.state)].pictures or groups_pictures)(context))
    meshes = ", ".join(str(mesh) for _, mesh, _ in by_grid(layout, context.visible))
    caption = f"{meshes}, {_machines(layout, language)}"
    return figure(drawn, caption, theme, _key(language))


def card_of(context: Context) -> Drawing:
    """The card of a link: its job and model, its view's answer, its picture."""
    layout, language = context.layout, context.language
    title, sentence, drawn = _said(context)
    model = model_text(context).partition(" · ")[0]
    gpus = counted(layout.world_size, "gpu", language)
    text = CardText(
        " · ".join(filter(None, (model, gpus))),
        sentence or title,
        sizes_text(layout),
        PAGE["title"][language],
    )
    return card(text, drawn)


def slide_of(context: Context, theme: str = "light", address: str = "") -> Drawing:
    """The view's question, its answer if that is one sentence, and its pictures; else the job."""
    layout, language = context.layout, context.language
    title, sentence, drawn = _said(context)
    sizes = _machines(layout, language) + PAGE["colon"][language] + sizes_text(layout)
    sizes = " · ".join(filter(None, (sizes, model_text(context))))
    shown = short_address(address, context)
    return slide(SlideText(title, sentence, sizes, shown), drawn, theme, _key(language))


def _said(context: Context) -> tuple[str, str, Pictures | Together]:
    """The question, the answer and the pictures of a view; else of the job."""
    rank, language = context.rank, context.language
    view = VIEWS[view_of(context.state)]
    if view.title is None:
        answer = sentence_of(context.layout, rank, language)
        return question(rank, language), answer, _drawn(job_pictures(context))
    drawn = _drawn((view.slide or view.pictures or job_pictures)(context))
    return view.title[language], view.summary(context) if view.summary else "", drawn


def _served_model(context: Context) -> str:
    """The model of a server, if one is selected."""
    if is_empty(context.state.model):
        return ""
    try:
        return model_name(model_of(context.state), context.language)
    except LayoutError:
        return ""


@of_server(_served_model)
def model_text(context: Context) -> str:
    """The model and the samples of a step; empty if they are refused, which the views show."""
    try:
        chosen, batch = model_of(context.state), batch_of(context.layout, context.state)
    except LayoutError:
        return ""
    return SHELL["batch_chip"][context.language].format(
        model=model_name(chosen, context.language),
        batch=f"{batch.global_batch:,}",
        tokens=f"{chosen.model.sequence:,}",
    )


def short_address(address: str, context: Context) -> str:
    """An address as a slide shows it: a published layout by its name; a compared layout by what
    differs, and left out on slides of other views."""
    before, mark, query = address.partition("?")
    parts = [part for part in query.split("&") if not part.startswith("kept=")]
    short = short_query(replace(context.state, kept=""))
    if short.startswith("preset=") and len(short) < len("&".join(parts)):
        parts = [short]
    if not is_empty(context.state.kept) and view_of(context.state) == "compare":
        parts.append(f"kept={quote(short_kept(context), safe=SAFE)}")
    return before + mark + "&".join(parts)


Some = TypeVar("Some", Pictures, Pictures | Together)


def _drawn(pictures: Some) -> Some:
    """Errors: LayoutError where there are none."""
    if not pictures:
        raise LayoutError("no-picture", "the view has no picture of this layout")
    return pictures


def in_a_font(context: Context, form: str) -> Context:
    """The page in English if the fonts lack its letters; SVG uses the reader's fonts."""
    if context.language != "zh" or form == "svg":
        return context
    from render.files.paint import chinese_font  # with matplotlib, as the picture will be

    if chinese_font():
        return context
    return Context(context.layout, replace(context.state, lang="en"))


def _machines(layout: Layout, language: str) -> str:
    gpus = counted(layout.world_size, "gpu", language)
    facts = {"nodes": f"{layout.nodes:,}", "each": layout.gpus_per_node}
    return SAVED["machines"][language].format(gpus=gpus, **facts)


def _key(language: str) -> dict[str, str]:
    return {name: text[language] for name, text in SAVED.items()}


def download(
    context: Context, form: str, theme: str = "light", address: str = ""
) -> dict[str, str]:
    """A file for the page's script. ``address``: the link of the page, for slides."""
    note = {}
    if form in TABLES:
        name, kind, make = TABLES[form]
        data = make(context).encode()
    else:
        is_slide, form = form in SLIDES, form.removeprefix("slide-")
        kind, view = PICTURES[form], view_of(context.state)
        name = f"{context.state.group_type if view == 'groups' else view}-{{}}.{form}"
        data = picture_file(context, form, theme, address if is_slide else None)
        if in_a_font(context, form) is not context:
            note = {"note": SAVED["font"][context.language]}
    return {
        "name": name.format(context.layout.mesh),
        "type": kind,
        "data": base64.b64encode(data).decode(),
        **note,
    }
