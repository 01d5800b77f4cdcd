"""The row of this view in the list of all."""

from __future__ import annotations

from ..base.view import View
from .api import node_audit
from .view import nodes_html

VIEW = View(
    "nodes",
    "see",
    nodes_html,
    endpoints=(node_audit,),
    pins_locally=True,
)
