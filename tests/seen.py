"""A layout with what of it is visible, as the tests of the page speak of both at once."""

from __future__ import annotations

from dataclasses import dataclass

from groups.grouping import Grouping
from groups.layout import Layout
from request.context import Context
from request.state import State


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
    parts = (layout.job, layout.mesh, layout.expert, layout.every, context.visible)
    return Seen(*parts, roles=layout.roles)


def above_one(layout: Layout) -> list[tuple[str, int]]:
    """What numbers the ranks: the axes above 1, in their order.

    Servers side by side are copies of a model, as the ranks of a training's dp are: where a server
    stands for a training job, one is the other. Every other axis has to be the same by name.
    """
    axes = [("dp" if a.name == "server" else a.name, a.size) for a in layout.mesh.axes]
    return [(name, size) for name, size in axes if size > 1]
