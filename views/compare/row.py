"""The row of this view in the list of all."""

from descriptions import PAGE

from ..base.view import View
from .view import compare_html, compare_pictures, compare_slide, compare_summary

VIEW = View(
    "compare",
    "choose",
    compare_html,
    pictures=compare_pictures,
    slide=compare_slide,
    title=PAGE["compare_title"],
    summary=compare_summary,
    pins_locally=True,
)
