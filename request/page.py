"""What the page's script asks, read once.

>>> asked = PageRequest.of('{"tp": "4", "words": "en", "shown": "groups", "drawn": "v=2&tp=2"}')
>>> asked.state.tp, asked.drawn.tp, asked.words, asked.link
('4', '2', 'en', None)
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from groups import LayoutError

from .inputs import fields_of
from .link import from_query, from_values, link_of, parsed
from .roles.edits import edited
from .state import State

OF_LAYOUT = (*fields_of("job", "model", "training", "machine"), "roles")


@dataclass(frozen=True)
class PageRequest:
    """A question of the page.

    state: the state, with the instruction to its roles followed. link: what the page has just
    opened. last: the query of the picture that it shows. words: the language that it has, shown:
    its view. is_edited: whether there was an instruction.
    """

    state: State
    link: str | None = None
    last: object = None
    words: object = None
    shown: object = None
    is_edited: bool = False

    @classmethod
    def of(cls, sent: object) -> PageRequest:
        """The question in what a page sends, as a text or read; anything is one."""
        values = sent if isinstance(sent, dict) else parsed(sent)
        state = from_values(values)
        with suppress(LayoutError):  # an instruction that cannot be followed stands, refused
            state = edited(state)
        return cls(
            state,
            link_of(values),
            values.get("drawn"),
            values.get("words"),
            values.get("shown"),
            bool(values.get("role_edit")),
        )

    @property
    def changes_state(self) -> bool:
        """Whether the page gets a state that it has not sent."""
        return self.link is not None or self.is_edited

    @cached_property
    def drawn(self) -> State:
        """The state of the picture that the page shows; the initial one if it says none."""
        with suppress(LayoutError):
            last = from_query(self.last or "")
            return replace(last, lang=last.language)
        return State(lang="en")

    @property
    def last_drawn(self) -> State:
        """The state with the layout of the picture that the page shows."""
        last = {name: getattr(self.drawn, name) for name in OF_LAYOUT}
        return self.state.changed({**last, "role_edit": ""})
