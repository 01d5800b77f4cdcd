"""The row of this view in the list of all."""

from descriptions import PAGE

from ..base.view import View
from .api import cluster_check, launch_command, read_launch
from .pictures import launch_pictures
from .view import launch_html

VIEW = View(
    "launch",
    "run",
    launch_html,
    pictures=launch_pictures,
    title=PAGE["emit_title"],
    files=(),
    endpoints=(launch_command, cluster_check, read_launch),
    pins_locally=True,
)
