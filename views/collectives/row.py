"""The row of this view in the list of all."""

from descriptions import PAGE

from ..base.view import View
from .api import collective
from .pictures import collectives_pictures, collectives_summary
from .view import collectives_html

VIEW = View(
    "collectives",
    "step",
    collectives_html,
    pictures=collectives_pictures,
    title=PAGE["collectives_title"],
    summary=collectives_summary,
    endpoints=(collective,),
)
