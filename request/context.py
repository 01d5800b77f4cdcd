"""The row of a view, and the context that it draws: a state, its layout and what follows from
both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

from groups.grouping import Grouping
from groups.layout import Layout
from groups.plan import Plan

from .inputs import ShownInputs
from .model import with_model
from .resolve import resolve, visible_groups
from .roles.edits import edited
from .roles.pages import Cast, cast_of
from .state import State, pinned_rank
from .trained import Trained, trained_of

Found = TypeVar("Found")
Asked = ParamSpec("Asked")


class _Laid(Protocol):
    """What is about one layout."""

    @property
    def layout(self) -> Layout: ...


Subject = TypeVar("Subject", bound=_Laid)


def of_server(
    serves: Callable[[Subject], Found],
) -> Callable[
    [Callable[Concatenate[Subject, Asked], Found]], Callable[Concatenate[Subject, Asked], Found]
]:
    """Decorates a part that a training job has: that of a server is ``serves``.

    >>> def cache(context: Context) -> str:
    ...     return "KV cache"
    >>> @of_server(cache)
    ... def kept(context: Context) -> str:
    ...     return "gradients"
    >>> kept(Context.of(State())), kept(Context.of(State(framework="vllm", pp=1)))
    ('gradients', 'KV cache')
    """

    def decorated(
        trains: Callable[Concatenate[Subject, Asked], Found],
    ) -> Callable[Concatenate[Subject, Asked], Found]:
        @wraps(trains)
        def part(subject: Subject, *values: Asked.args, **named: Asked.kwargs) -> Found:
            if subject.layout.is_server:
                return serves(subject)
            return trains(subject, *values, **named)

        return part

    return decorated


@dataclass(frozen=True)
class Context:
    """The one argument of a view; results computed from it are cached on it."""

    layout: Layout
    state: State
    _found: dict[object, object] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @classmethod
    def of(cls, state: State) -> Context:
        """The context of a state. Errors: LayoutError about the invalid field."""
        state = edited(state)
        context = cls(resolve(state), state)
        if state.roles:
            _ = context.plan  # raises an error for impossible other roles
        return context

    @property
    def language(self) -> str:
        return self.state.language

    @cached_property
    def visible(self) -> tuple[Grouping, ...]:
        return visible_groups(self.layout, self.state.parsed(ShownInputs))

    @cached_property
    def cast(self) -> Cast:
        """The roles of the cluster. Errors: LayoutError about the field "roles"."""
        return cast_of(self.state)

    @cached_property
    def plan(self) -> Plan:
        """The plan of all roles. Errors: LayoutError about the field "roles"."""
        return self.cast.plan(self.layout)

    @cached_property
    def trained(self) -> Trained:
        """The model and its training. Errors: LayoutError about the invalid field."""
        return trained_of(self.layout, self.state)

    @cached_property
    def known(self) -> State:
        """The state with the layers and experts of the selected model."""
        return with_model(self.state)

    def once(self, work: Callable[[Context], Found]) -> Found:
        """The result of a function of the context, computed once for all parts of a view."""
        if work not in self._found:
            self._found[work] = work(self)
        return cast("Found", self._found[work])

    @property
    def rank(self) -> int:
        """The selected rank; 0 if none is."""
        return pinned_rank(self.layout.world_size, self.state.values["rank"])

    @property
    def moment(self) -> int | None:
        """The chosen moment of a step, in parts of 10,000 of its film; None if none is, as where a
        link says one that cannot be."""
        moment = self.state.values["moment"]
        return moment if isinstance(moment, int) and 0 <= moment < 10_000 else None
