"""The row of this view in the list of all."""

from descriptions import TRAFFIC

from ..base.view import View
from .api import better_layouts
from .pictures import search_pictures, search_summary
from .view import search_html

VIEW = View(
    "search",
    "choose",
    search_html,
    pictures=search_pictures,
    title=TRAFFIC["search_title"],
    summary=search_summary,
    endpoints=(better_layouts,),
)
