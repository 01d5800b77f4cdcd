"""The row of this view in the list of all."""

from descriptions import PAGE

from ..base.view import View
from .api import node_audit
from .pictures import nodes_pictures, nodes_summary
from .view import nodes_html

VIEW = View(
    "nodes",
    "see",
    nodes_html,
    pictures=nodes_pictures,
    title=PAGE["nodes_title"],
    summary=nodes_summary,
    endpoints=(node_audit,),
    pins_locally=True,
)
