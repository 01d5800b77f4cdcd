"""The row of this view in the list of all."""

from __future__ import annotations

from descriptions import PAGE

from ..base.view import View
from .view import compare_html, compare_pictures

VIEW = View(
    "compare",
    "choose",
    compare_html,
    pictures=compare_pictures,
    title=PAGE["compare_title"],
    pins_locally=True,
)
