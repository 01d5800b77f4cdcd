"""What a view draws: a layout, the state that it was asked for with, and what follows of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from groups.grouping import Grouping
from groups.layout import Layout

from .link import to_query
from .model import with_model
from .resolve import resolve
from .state import State, pinned_rank
from .trained import Trained, trained_of
from .visible import visible_groups

Found = TypeVar("Found")


@dataclass(frozen=True)
class Context:
    """The one argument of a view; what is worked out of it is worked out once."""

    layout: Layout
    state: State

    @classmethod
    def of(cls, state: State) -> Context:
        """
        >>> [grouping.name for grouping in Context.of(State(cp=2)).visible]
        ['tp', 'cp', 'dp', 'pp']

        Errors: LayoutError about the field that cannot be.
        """
        return cls(resolve(state), state)

    @property
    def language(self) -> str:
        return self.state.language

    @cached_property
    def visible(self) -> tuple[Grouping, ...]:
        return visible_groups(self.layout, self.state)

    @cached_property
    def trained(self) -> Trained:
        """What is trained on the layout.

        Errors: LayoutError about the field that cannot be.
        """
        return trained_of(self.layout, self.state)

    @cached_property
    def known(self) -> State:
        """The state with the layers and experts of the model that is chosen."""
        return with_model(self.state)

    @cached_property
    def _found(self) -> dict[Callable[..., Any], Any]:
        return {}

    def once(self, work: Callable[[Context], Found]) -> Found:
        """What a view works out of it for several of its parts."""
        if work not in self._found:
            self._found[work] = work(self)
        return self._found[work]

    @property
    def rank(self) -> int:
        """The chosen rank; 0 where none is."""
        return pinned_rank(self.layout.world_size, self.state.rank)

    def link(self, changes: Mapping[str, Any]) -> str:
        """The query of the same page with some fields changed."""
        return to_query(self.state.changed(changes))
