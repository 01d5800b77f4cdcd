"""A drawing as a file of a form: SVG is written here, the others by matplotlib."""

from __future__ import annotations

from ..marks import Drawing
from ..svg.marks import to_svg


def to_bytes(drawing: Drawing, form: str, scale: float = 2.0) -> bytes:
    """The drawing as "png" (so many pixels a pixel of it, fewer where these would be more than
    `paint.MOST_PIXELS`), "svg" (its text as text, in the fonts of whoever opens it) or "pdf"; no
    dates in it.

    Errors: ValueError for any other form.
    """
    if form == "svg":
        return to_svg(drawing).encode()
    if form not in ("png", "pdf"):
        raise ValueError(f"there is no format {form!r:.40}; try png, svg or pdf")
    from .paint import to_pdf, to_png  # with matplotlib, which takes seconds

    return to_pdf(drawing) if form == "pdf" else to_png(drawing, scale)
