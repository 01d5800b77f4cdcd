"""The row of this view in the list of all."""

from descriptions import ESTIMATE

from ..base.view import View
from .pictures import estimate_pictures, estimate_summary
from .view import estimate_html

VIEW = View(
    "estimate",
    "step",
    estimate_html,
    pictures=estimate_pictures,
    title=ESTIMATE["title"],
    summary=estimate_summary,
)
