"""The preview of a link in other programs: a title, a description and a picture of the job.

Chats and search engines read the head of the page at an address and run none of its scripts, so the
server writes there what the link is about; its picture is a card, made when somebody asks for it.
"""

from __future__ import annotations

import base64
from contextlib import suppress

from markupsafe import Markup

from descriptions import PAGE, SHELL, counted, joined
from groups import LayoutError
from groups.budget import spend, within
from groups.kept import kept
from render.files.forms import to_bytes
from request.answers.sentence import sentence_of
from request.context import Context
from request.link import as_far_as_known, to_query
from request.resolve import sizes_text
from request.state import State

from .base.html import tag, together
from .export import ANY_PICTURE, card_of, in_a_font, model_text

PICTURE = "preview.png"
"""The name of the picture, under the address of the page; its query is the link's."""

WIDE, HIGH = 1200, 630
"""Pixels of a card as PNG (render/files/card.py)."""


PER_UNIT = 8
"""Ranks for a unit of work of a sentence about one of them: its groups may have as many."""


def context_of(query: object) -> Context:
    """The context of a link, ignoring unknown names; the initial one if it is invalid."""
    with suppress(LayoutError):
        state, _ = as_far_as_known(query)
        return Context.of(state)
    return Context.of(State())


@kept
def head_html(query: str, address: str) -> Markup:
    """The elements of a page's head for a link; address: of the page, without a query.

    >>> 'content="16 GPUs ' in head_html("?tp=4", "https://a.b/")
    True
    """
    try:
        with within():
            context = context_of(query)
            title, text = title_of(context), text_of(context)
    except LayoutError:  # too large a job for a few words
        context = context_of("")
        title, text = title_of(context), text_of(context)
    canonical = to_query(context.state)
    link = f"{address}?{canonical}" if canonical else address
    properties = {
        "og:type": "website",
        "og:site_name": PAGE["title"][context.language],
        "og:title": title,
        "og:description": text,
        "og:url": link,
        "og:image": f"{address}{PICTURE}?{_drawn(context)}",
        "og:image:width": WIDE,
        "og:image:height": HIGH,
        "og:image:alt": title,
    }
    names = {"description": text, "twitter:card": "summary_large_image"}
    return together(
        *(tag("meta", property=name, content=content) for name, content in properties.items()),
        *(tag("meta", name_=name, content=content) for name, content in names.items()),
    )


def title_of(context: Context) -> str:
    """The machines and the sizes of the job."""
    layout, language = context.layout, context.language
    machines = SHELL["gpus_chip"][language].format(
        world=counted(layout.world_size, "gpu", language),
        nodes=f"{layout.nodes:,}",
        gpus=f"{layout.gpus_per_node:,}",
    )
    return f"{machines}{PAGE['colon'][language]}{sizes_text(layout)}"


def text_of(context: Context) -> str:
    """What the selected GPU shares and with whom, and the model if it is known."""
    language = context.language
    spend(context.layout.world_size // PER_UNIT, "ranks")
    sentences = (sentence_of(context.layout, context.rank, language), model_text(context))
    return joined([*filter(None, sentences)], language)


@within()
def preview(query: object) -> str:
    """The picture for a link, as base64: of its view, or of the job where the view has nothing to
    draw of it. Errors: LayoutError past the budget of a request."""
    context = context_of(query)
    with suppress(LayoutError):
        return _preview(_drawn(context))
    return _preview(to_query(context.state.changed({"view": "groups"})))


def _drawn(context: Context) -> str:
    """The query of the picture: the link's own, in the order that is written."""
    return to_query(context.state)


@kept
def _preview(query: str) -> str:
    context = in_a_font(context_of(query), "png")
    spend(ANY_PICTURE, "pixels")
    return base64.b64encode(to_bytes(card_of(context), "png", scale=1.0)).decode()
