"""The row of this view in the list of all."""

from descriptions import TRAFFIC

from ..base.view import View
from .api import traffic_per_step
from .pictures import traffic_pictures, traffic_summary
from .view import traffic_html

VIEW = View(
    "traffic",
    "step",
    traffic_html,
    pictures=traffic_pictures,
    title=TRAFFIC["matrix_title"],
    summary=traffic_summary,
    endpoints=(traffic_per_step,),
)
