"""All views of the page, in the order of their buttons: the one table that names them.

A view is its folder, its words in texts/, its fields in base/state.py, and its row here
(base/view.py says what stands in it).
"""

from __future__ import annotations

from collections.abc import Callable

from descriptions import ESTIMATE, MEMORY, PAGE, RUN, TRAFFIC

from .base.state import State
from .base.view import TABLES, View
from .collectives.api import collective
from .collectives.view import collectives_html, collectives_pictures, collectives_summary
from .compare.view import compare_html, compare_pictures, compare_slide, compare_summary
from .estimate.view import estimate_html, estimate_pictures, estimate_summary
from .groups.api import layout, process_groups, rank_table
from .groups.details import visible_details
from .groups.pictures import groups_pictures
from .groups.view import groups_html
from .hang.view import hang_html, hang_pictures, hang_verdict
from .hosts.api import better_order, read_hosts, slow_groups
from .hosts.measures import measures_pictures, measures_summary
from .hosts.view import hosts_html
from .launch.api import cluster_check, launch_command, read_launch
from .launch.view import launch_html, launch_pictures
from .memory.api import memory_per_rank
from .memory.pictures import memory_pictures, memory_slide, memory_summary
from .memory.view import memory_html
from .nodes.api import node_audit
from .nodes.view import nodes_html, nodes_pictures, nodes_summary
from .orders.view import orders_html, orders_pictures, orders_slide
from .pipeline.api import pipeline_schedule
from .pipeline.pictures import pipeline_pictures
from .pipeline.view import pipeline_html
from .ranks.api import rank_card, shared_by_ranks
from .ranks.view import ranks_html
from .search.api import better_layouts
from .search.view import search_html, search_pictures, search_summary
from .traffic.api import traffic_per_step
from .traffic.view import traffic_html, traffic_pictures, traffic_summary

# fmt: off
_ROWS = (
    View("groups", "see", groups_html, groups_pictures, details=visible_details,
         pins_locally=True, is_framed=True),
    View("nodes", "see", nodes_html, nodes_pictures, PAGE["nodes_title"], nodes_summary,
         pins_locally=True),
    View("orders", "see", orders_html, orders_pictures, PAGE["moved_title"], slide=orders_slide,
         pins_locally=True, is_framed=True),
    View("ranks", "see", ranks_html),
    View("collectives", "step", collectives_html, collectives_pictures, PAGE["collectives_title"],
         collectives_summary),
    View("pipeline", "step", pipeline_html, pipeline_pictures, PAGE["pipeline_title"],
         files=("trace", *TABLES)),
    View("memory", "step", memory_html, memory_pictures, MEMORY["title"], memory_summary,
         slide=memory_slide),
    View("traffic", "step", traffic_html, traffic_pictures, TRAFFIC["matrix_title"],
         traffic_summary),
    View("estimate", "step", estimate_html, estimate_pictures, ESTIMATE["title"], estimate_summary),
    View("search", "choose", search_html, search_pictures, TRAFFIC["search_title"], search_summary),
    View("compare", "choose", compare_html, compare_pictures, PAGE["compare_title"],
         compare_summary, slide=compare_slide, pins_locally=True),
    View("launch", "run", launch_html, launch_pictures, PAGE["emit_title"], files=(),
         pins_locally=True),
    View("hang", "run", hang_html, hang_pictures, RUN["hang_title"], hang_verdict),
    View("hosts", "run", hosts_html, measures_pictures, RUN["measures_title"], measures_summary),
)
# fmt: on

VIEWS: dict[str, View] = {view.name: view for view in _ROWS}

SECTIONS: dict[str, tuple[str, ...]] = {
    section: tuple(name for name, view in VIEWS.items() if view.section == section)
    for section in dict.fromkeys(view.section for view in VIEWS.values())
}
"""The views of each section."""

ENDPOINTS: dict[str, Callable[..., str]] = {
    one.__name__: one
    for one in (
        *(layout, process_groups, rank_table, node_audit, rank_card, shared_by_ranks),
        *(collective, pipeline_schedule, memory_per_rank, traffic_per_step, better_layouts),
        *(launch_command, cluster_check, read_launch, read_hosts, better_order, slow_groups),
    )
}
"""What programs may ask of a running page, by the name under which Gradio serves it."""


def view_of(state: State) -> str:
    """The view that is shown; the first for anything that is none."""
    return state.view if isinstance(state.view, str) and state.view in VIEWS else "groups"
