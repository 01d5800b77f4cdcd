"""All views of the page in the order of their buttons, and all endpoints.

A view is a folder here, with its row, VIEW (base/context.py), in view.py; and its name, a line of
VIEWS in texts/controls.toml, where its button stands among the others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from descriptions import VIEWS as NAMES
from request.state import State

from .base.view import View
from .collectives.api import collective
from .compare.api import compare
from .estimate.api import estimate
from .groups.api import layout, process_groups, rank_table
from .hosts.api import better_order, read_hosts, slow_groups
from .launch.api import cluster_check, launch_command, read_launch
from .memory.api import memory_per_rank, server_memory
from .moves.api import moves, moves_check
from .moves.cache_api import moves_cache
from .nodes.api import node_audit
from .pipeline.api import pipeline_schedule
from .ranks.api import rank_card, shared_by_ranks
from .roles.api import roles
from .search.api import better_layouts
from .slow.api import slow_steps
from .traffic.api import traffic_per_step

VIEWS: dict[str, View] = {name: import_module(f".{name}.view", __package__).VIEW for name in NAMES}

SECTIONS: dict[str, tuple[str, ...]] = {
    section: tuple(name for name, view in VIEWS.items() if view.section == section)
    for section in dict.fromkeys(view.section for view in VIEWS.values())
}
"""The views of each section."""

ENDPOINTS: dict[str, Callable[..., str]] = {
    function.__name__: function
    for function in (
        *(layout, process_groups, rank_table, node_audit, rank_card, shared_by_ranks),
        *(collective, pipeline_schedule),
        *(memory_per_rank, server_memory, traffic_per_step, estimate, better_layouts, compare),
        *(moves, moves_check, moves_cache, roles),
        *(launch_command, cluster_check, read_launch, read_hosts, better_order, slow_groups),
        slow_steps,
    )
}
"""The endpoints of a running page, by the names under which Gradio serves them."""


def view_of(state: State) -> str:
    """The view that the state shows; the first view for an unknown name."""
    return state.view if isinstance(state.view, str) and state.view in VIEWS else "groups"
