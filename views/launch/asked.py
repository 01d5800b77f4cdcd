"""The picture of the layout that a pasted text asks for: beside the text, before it is used."""

from __future__ import annotations

from html import escape

from markupsafe import Markup

from groups import LayoutError
from render.draw.job import draw_job
from render.scenes.job import JobPicture
from render.svg.job import letters
from render.svg.marks import marks_svg
from request.context import Context
from request.resolve import sizes_text
from request.state import State

from ..base.html import tag
from ..parts.job import job_pictures

ROOM = (600.0, 330.0)
"""The largest width and height of the picture in pixels."""


def asked_html(wanted: State) -> Markup:
    """The job of a state with the groups of its first GPU, whichever is chosen on the page; empty
    where there is no such layout."""
    try:
        context = Context.of(wanted.changed({"rank": ""}))
        (_, picture), *_ = job_pictures(context)
    except LayoutError:  # is said where it is
        return Markup()
    assert isinstance(picture, JobPicture)
    drawn = picture.fitted(ROOM)
    scale = min(1.6, ROOM[0] / drawn.width, ROOM[1] / drawn.height)
    look = "numbered" if drawn.is_numbered else "plain"
    svg = (
        f'<svg class="asked {look}" role="img" aria-label="{escape(sizes_text(context.layout))}" '
        f'viewBox="0 0 {drawn.width + 2:.1f} {drawn.height + 2:.1f}" '
        f'style="{letters(drawn)};max-width:{scale * drawn.width:.0f}px">'
        f"{marks_svg(draw_job(drawn, 'page'))}</svg>"
    )
    return tag("figure", Markup(svg))
