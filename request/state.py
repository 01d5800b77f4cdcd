"""The state of the page: of each field of request.inputs its text, and the value that it spells.

Every part of the page and every view reads the same `State`: the browser holds it, a link says what
of it differs from the start (link.py), and `resolve` (resolve.py) makes the layout of it. A field
is read once, when the state is made: boxes and links show its text, all else takes its value, which
is None where the box is empty, and still the text where that spells none. What a field may be is
asked where it is used, for a page shows what was typed beside the refusal.

>>> State(tp=4).changed({"order": "dp-tp-cp-ep-pp"}).framework
'own'
>>> State(tp=4).tp, State(flash=False).flash, State().nodes
('4', 'off', '2')
>>> state = State(tp=" 4 ", flash="off", more="embd tp-cp", pp="many")
>>> [state.values[name] for name in ("tp", "flash", "more", "pp", "dp")]
[4, False, ('embd', 'tp-cp'), 'many', None]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import Field as DataclassField
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from descriptions import LANGUAGES
from groups import LayoutError
from groups.errors import not_a_choice
from groups.frameworks import OWN
from groups.grouping import Grouping
from groups.inputs import InputField, checked_model, unchecked_model
from groups.mesh import whole_number
from training.pipeline.spec import OF_SCHEDULES

from .inputs import FIELDS, OF_MATHS, STARTS

Inputs = TypeVar("Inputs")
Choice = TypeVar("Choice", str, bool)


class State:
    """The state of the page: a text for each field, which ``vars`` has, and ``values``, what the
    texts spell; values of other types are written as texts."""

    __slots__ = ("__dict__", "__weakref__", "values")

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, DataclassField[str]]]
        values: Mapping[str, Any]

        def __getattr__(self, name: str) -> str: ...

    def __init__(self, **values: object) -> None:
        self._hold(STARTS, START_VALUES, values)

    def _hold(
        self, texts: Mapping[str, str], known: Mapping[str, object], values: Mapping[str, object]
    ) -> None:
        """Sets the fields that are known, then others by their values."""
        # A frozen dataclass's own sets its fields one by one, which takes ten times as long.
        own = vars(self)
        own.update(texts)
        read = {**known}
        for name, value in values.items():
            if name not in own or own[name] != value:
                own[name], read[name] = _field(name).entered(value)
        object.__setattr__(self, "values", read)

    @property
    def language(self) -> str:
        return language_of(self.lang)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_texts, ({**vars(self)},)

    def parsed(self, inputs: type[Inputs]) -> Inputs:
        """The inputs of one model, checked. Errors: LayoutError about the first invalid field."""
        return checked_model(inputs, self.values)

    def unchecked(self, inputs: type[Inputs]) -> Inputs:
        """The inputs of a model that checks its numbers itself. Errors: LayoutError about the first
        choice that does not exist."""
        return unchecked_model(inputs, self.values)

    def value(self, name: str) -> Any:
        """The value of one field, or its default. Errors: LayoutError."""
        return FIELDS[name].row.or_default(self.values[name])

    def number(self, name: str, empty: int, *, least: int = 1, most: int | None = None) -> int:
        """The whole number of a field; ``empty`` where there is none. Errors: LayoutError."""
        value = self.values[name]
        return empty if value is None else whole_number(value, name, minimum=least, maximum=most)

    def changed(self, changes: Mapping[str, object]) -> State:
        """The state after a change, such as an alternative of a refusal."""
        other = State.__new__(State)
        other._hold(vars(self), self.values, merged(changes))
        return other


State.__annotations__ = dict.fromkeys(FIELDS, str)
dataclass(frozen=True, init=False)(State)

START_VALUES: Mapping[str, object] = {
    name: FIELDS[name].row.entered(text)[1] for name, text in STARTS.items()
}


def _field(name: str) -> InputField:
    try:
        return FIELDS[name].row
    except KeyError:
        raise TypeError(f"no such field of a state: {name!r}") from None


def _of_texts(texts: dict[str, str]) -> State:
    return State(**texts)


def merged(changes: Mapping[str, object]) -> dict[str, Any]:
    """The fields of the state that an alternative of a refusal sets."""
    values = {OF_MATHS.get(name, name): value for name, value in changes.items()}
    if "order" in values:
        values.setdefault("framework", OWN)
    switches = {name for name in values if name in FIELDS and FIELDS[name].row.kind == "switch"}
    values |= {name: FIELDS[name].row.text(values[name]) for name in switches}
    return {name: "" if value is None else value for name, value in values.items()}


def texts_of(values: Mapping[str, object]) -> dict[str, str]:
    """Values of a job, a model or its training as texts of the state."""
    return {name: _field(name).text(value) for name, value in merged(values).items()}


def fixes_or_reset(error: LayoutError) -> list[dict[str, Any]]:
    """The alternatives of a refusal, by field; if it has none, the initial value of its field, or
    of the schedule if that does not take the field."""
    field = OF_MATHS.get(str(error.control), str(error.control))
    resets = [{field: STARTS[field]}] if field in STARTS else []
    if field in (*OF_SCHEDULES.values(), "group_size"):
        resets.append({"schedule": "1f1b", "vpp": ""})
    return [*map(merged, error.alternatives)] or resets


def is_empty(text: str) -> bool:
    return not text.strip()


def require_choice(
    name: str, value: object, choices: Collection[Choice], instead: Iterable[str] = ()
) -> Choice:
    """The value, if it is a choice; True is not accepted for 1.0, though they are equal. A refusal
    offers the choices of ``instead``."""
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    raise not_a_choice(name, value, map(str, choices), [{name: choice} for choice in instead])


def language_of(value: object) -> str:
    """The language of the answer; English for an unknown one."""
    return value if isinstance(value, str) and value in LANGUAGES else "en"


# -- the pinned rank -----------------------------------------------------------------------------


def pinned_rank(world_size: int, rank: object) -> int:
    """The pinned rank, for a view that must show one; 0 if there is none, or if it is invalid."""
    return rank if type(rank) is int and 0 <= rank < world_size else 0


def pinned_group(grouping: Grouping, rank: object) -> int:
    """The group of the pinned rank; the first group if the rank is in none."""
    return grouping.index_of(pinned_rank(grouping.world_size, rank)) or 0
