"""All views of the page in the order of their buttons, and all endpoints: the registry.

A view is a folder here with its row, VIEW (base/view.py), in view.py; ALSO are rows of what has
links and names of its own, and is a part of it. Nothing else names it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from descriptions import SECTIONS as TITLES
from request.state import State

from .base.view import View


def _found() -> list[View]:
    """The rows of all folders, by section and place."""
    names = sorted(path.parent.name for path in Path(__file__).parent.glob("*/view.py"))
    found = (import_module(f".{name}.view", __package__) for name in names if name != "base")
    rows = [row for room in found for row in (room.VIEW, *getattr(room, "ALSO", ()))]
    sections = [*TITLES, ""]
    return sorted(rows, key=lambda view: (sections.index(view.section), view.place))


VIEWS: dict[str, View] = {view.name: view for view in _found()}

SECTIONS: dict[str, tuple[str, ...]] = {
    section: tuple(
        name for name, view in VIEWS.items() if view.section == section and not view.within
    )
    for section in TITLES
}
"""The views of each section; what a view of no section shows is opened from the header."""

ENDPOINTS: dict[str, Callable[..., str]] = {
    function.__name__: function for view in VIEWS.values() for function in view.endpoints
}
"""The endpoints of a running page, by the names under which Gradio serves them."""


def view_of(state: State) -> str:
    """The view that the state shows; the first view for an unknown name."""
    return state.view if isinstance(state.view, str) and state.view in VIEWS else "groups"
