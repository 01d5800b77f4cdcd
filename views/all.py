"""All views of the page in the order of their buttons, and all endpoints.

A view is a folder here, with its row, VIEW (base/view.py), in view.py; and its name, a line of
VIEWS in texts/controls.toml, where its button stands among the others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from descriptions import VIEWS as NAMES
from request.answers.collectives.api import collective
from request.answers.compare.api import compare
from request.answers.estimate.api import estimate
from request.answers.groups import layout, picture, process_groups, rank_table
from request.answers.hosts import better_order, read_hosts, slow_groups
from request.answers.launch import cluster_check, launch_command, read_launch
from request.answers.memory import memory_per_rank, server_memory
from request.answers.moves.api import moves, moves_check
from request.answers.moves.cache import moves_cache
from request.answers.nodes import node_audit
from request.answers.pipeline.api import pipeline_schedule
from request.answers.ranks import rank_card, shared_by_ranks
from request.answers.roles.api import roles
from request.answers.search import better_layouts
from request.answers.slow.api import slow_steps
from request.answers.traffic import traffic_per_step
from request.state import State

from .base.view import View

VIEWS: dict[str, View] = {name: import_module(f".{name}.view", __package__).VIEW for name in NAMES}

SECTIONS: dict[str, tuple[str, ...]] = {
    section: tuple(name for name, view in VIEWS.items() if view.section == section)
    for section in dict.fromkeys(view.section for view in VIEWS.values())
}
"""The views of each section."""

ENDPOINTS: dict[str, Callable[..., str]] = {
    function.__name__: function
    for function in (
        *(layout, process_groups, picture, rank_table, node_audit, rank_card, shared_by_ranks),
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
