"""Writes a drawing as a file: SVG here, the other formats with matplotlib."""

from __future__ import annotations

from ..marks import Drawing
from ..svg.marks import to_svg


def to_bytes(drawing: Drawing, form: str, scale: float = 2.0) -> bytes:
    """The drawing as "png" (with so many pixels per pixel, fewer above `paint.MOST_PIXELS`), "svg"
    (text stays text, in the fonts of the reader) or "pdf"; files have no dates.

    Errors: ValueError for any other form.
    """
    if form == "svg":
        return to_svg(drawing).encode()
    if form not in ("png", "pdf"):
        raise ValueError(f"there is no format {form!r:.40}; try png, svg or pdf")
    from .paint import to_pdf, to_png  # with matplotlib, which takes seconds

    return to_pdf(drawing) if form == "pdf" else to_png(drawing, scale)
