"""The row of this view in the list of all."""

from __future__ import annotations

from ..base.view import View
from .api import cluster_check, launch_command, read_launch
from .view import launch_html

VIEW = View(
    "launch",
    "run",
    launch_html,
    files=(),
    endpoints=(launch_command, cluster_check, read_launch),
    pins_locally=True,
)
