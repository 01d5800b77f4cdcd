"""The row of this view in the list of all."""

from descriptions import RUN

from ..base.view import View
from .api import better_order, read_hosts, slow_groups
from .measures import measures_pictures, measures_summary
from .view import hosts_html

VIEW = View(
    "hosts",
    "run",
    hosts_html,
    pictures=measures_pictures,
    title=RUN["measures_title"],
    summary=measures_summary,
    endpoints=(read_hosts, better_order, slow_groups),
)
