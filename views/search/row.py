"""The row of this view in the list of all."""

from __future__ import annotations

from ..base.view import View
from .api import better_layouts
from .view import search_html

VIEW = View(
    "search",
    "choose",
    search_html,
    endpoints=(better_layouts,),
)
