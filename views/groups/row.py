"""The row of this view in the list of all."""

from ..base.view import View
from .api import layout, process_groups, rank_table
from .details import visible_details
from .pictures import groups_pictures
from .view import groups_html

VIEW = View(
    "groups",
    "see",
    groups_html,
    details=visible_details,
    pictures=groups_pictures,
    endpoints=(layout, process_groups, rank_table),
    pins_locally=True,
)
