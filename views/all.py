"""All views of the page, in the order of their buttons: the one list that names them.

A view is its folder, whose row says what it is (base/view.py), its words in texts/, its fields in
base/state.py, and its name here.
"""

from __future__ import annotations

from collections.abc import Callable

from .base.state import State
from .base.view import View
from .collectives.row import VIEW as COLLECTIVES
from .compare.row import VIEW as COMPARE
from .estimate.row import VIEW as ESTIMATE
from .groups.row import VIEW as GROUPS
from .hang.row import VIEW as HANG
from .hosts.row import VIEW as HOSTS
from .launch.row import VIEW as LAUNCH
from .memory.row import VIEW as MEMORY
from .nodes.row import VIEW as NODES
from .orders.row import VIEW as ORDERS
from .pipeline.row import VIEW as PIPELINE
from .ranks.row import VIEW as RANKS
from .search.row import VIEW as SEARCH
from .traffic.row import VIEW as TRAFFIC

VIEWS: dict[str, View] = {
    view.name: view
    for view in (
        *(GROUPS, NODES, ORDERS, RANKS),
        *(COLLECTIVES, PIPELINE, MEMORY, TRAFFIC, ESTIMATE),
        *(SEARCH, COMPARE),
        *(LAUNCH, HANG, HOSTS),
    )
}

SECTIONS: dict[str, tuple[str, ...]] = {
    section: tuple(name for name, view in VIEWS.items() if view.section == section)
    for section in dict.fromkeys(view.section for view in VIEWS.values())
}
"""The views of each section."""

ENDPOINTS: dict[str, Callable[..., str]] = {
    one.__name__: one for view in VIEWS.values() for one in view.endpoints
}
"""What programs may ask of a running page, by the name under which Gradio serves it."""


def view_of(state: State) -> str:
    """The view that is shown; the first for anything that is none."""
    return state.view if isinstance(state.view, str) and state.view in VIEWS else "groups"
