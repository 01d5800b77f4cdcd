"""A layout with what of it is visible, as the tests of the page speak of both at once."""

from __future__ import annotations

from dataclasses import dataclass

from groups.grouping import Grouping
from groups.layout import Layout
from views.base.context import Context
from views.base.state import State


@dataclass(frozen=True)
class Seen(Layout):
    """A layout on screen."""

    shown: tuple[Grouping, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.shown)


def seen(state: State) -> Seen:
    """What a state shows.

    Errors: LayoutError about the field that cannot be.
    """
    context = Context.of(state)
    layout = context.layout
    return Seen(layout.job, layout.mesh, layout.expert, layout.every, context.visible)
