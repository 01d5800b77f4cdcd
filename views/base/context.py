"""The row of a view, and the context that it draws: a state, its layout and what follows from
both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar, cast

from markupsafe import Markup

from descriptions import Text
from groups.grouping import Grouping
from groups.layout import Layout
from groups.plan import Plan
from render.marks import Titled

from .inputs import ShownInputs
from .model import with_model
from .resolve import resolve, visible_groups
from .role_edits import edited
from .roles import Cast, cast_of
from .state import State, pinned_rank
from .trained import Trained, trained_of

Found = TypeVar("Found")
Pictures = Titled
"""Titles with their scenes, in order."""

TABLES = ("csv", "txt", "json", "ranks")
"""Formats of files with a layout's groups, which most views offer."""


@dataclass(frozen=True)
class View:
    """A view: the row VIEW of its view.py. Its script, style sheet and words are beside it, if it
    has any: view.js, view.css, words.toml. Its files raise the LayoutErrors that the view itself
    raises.

    Attributes:
        name: its folder, and its name in links.
        section: the section of the page that has its button.
        html: its HTML, for the layout that the page's script has to know.
        pictures: its content of picture files; None: it has none.
        title: the title of its slide; None: a slide shows the picture of the job.
        summary: the sentence below the title, in the language of the page.
        slide: its content of a slide, if that is not its pictures.
        details: the content below its HTML.
        files: formats of other files that it offers.
        pins_locally: whether a pinned rank lights up in the browser alone.
        of_step: whether it is about a training step, which servers do not have.
        is_framed: whether ``html`` tells the script of the layout by itself, with its own marks.
    """

    name: str
    section: str
    html: Callable[[Context], Markup]
    pictures: Callable[[Context], Pictures] | None = None
    title: Text | None = None
    summary: Callable[[Context], str] | None = None
    slide: Callable[[Context], Pictures] | None = None
    details: Callable[[Context], Markup] | None = None
    files: tuple[str, ...] = TABLES
    pins_locally: bool = False
    is_framed: bool = False
    of_step: bool = False

    def asset(self, name: str) -> Path | None:
        """The text of a file beside it, such as view.js; None if there is none."""
        path = Path(__file__).parent.parent / self.name / name
        return path if path.exists() else None


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
        return pinned_rank(self.layout.world_size, self.state.rank)
