"""The row of this view in the list of all."""

from descriptions import PAGE

from ..base.view import TABLES, View
from .api import pipeline_schedule
from .pictures import pipeline_pictures
from .view import pipeline_html

VIEW = View(
    "pipeline",
    "step",
    pipeline_html,
    pictures=pipeline_pictures,
    title=PAGE["pipeline_title"],
    files=("trace", *TABLES),
    endpoints=(pipeline_schedule,),
)
