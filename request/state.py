"""The unchecked state of the page: a text for each field of request.inputs.

Every part of the page and every view reads the same `State`: the browser holds it, a link says what
of it differs from the start (link.py), `groups.inputs.parse` makes typed inputs of it, and
`resolve` (resolve.py) the layout.

>>> State(tp=4).changed({"order": "dp-tp-cp-ep-pp"}).framework
'own'
>>> State(tp=4).tp, State(flash=False).flash, State().nodes
('4', 'off', '2')
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
from groups.inputs import number_in, parse
from groups.mesh import whole_number
from training.pipeline.spec import OF_SCHEDULES

from .inputs import FIELDS, OF_MATHS, STARTS

Inputs = TypeVar("Inputs")
Choice = TypeVar("Choice", str, bool)


class State:
    """The state of the page: a text for each field; values of other types are converted."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, DataclassField[str]]]

        def __getattr__(self, name: str) -> str: ...

    def __init__(self, **values: object) -> None:
        # A frozen dataclass's own sets its fields one by one, which takes ten times as long.
        vars(self).update(STARTS)
        vars(self).update(_texts(values))

    @property
    def language(self) -> str:
        return language_of(self.lang)

    def parsed(self, inputs: type[Inputs]) -> Inputs:
        """The inputs of one model, checked. Errors: LayoutError about the first invalid field."""
        return parse(inputs, vars(self))

    def value(self, name: str) -> Any:
        """The value of one field, or its default. Errors: LayoutError."""
        return FIELDS[name].row.of_text(getattr(self, name))

    def changed(self, changes: Mapping[str, object]) -> State:
        """The state after a change, such as an alternative of a refusal."""
        other = State.__new__(State)
        vars(other).update(vars(self))
        vars(other).update(_texts(merged(changes)))
        return other


State.__annotations__ = dict.fromkeys(FIELDS, str)
dataclass(frozen=True, init=False)(State)


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    try:
        return {name: FIELDS[name].row.text(value) for name, value in values.items()}
    except KeyError:
        unknown = sorted(values.keys() - FIELDS.keys())
        raise TypeError(f"no such fields of a state: {unknown}") from None


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
    return _texts(merged(values))


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


def pinned_rank(world_size: int, rank: str) -> int:
    """The pinned rank, for a view that must show one; 0 if there is none, or if it is invalid."""
    try:
        return whole_number(number_in(rank), "rank", minimum=0, maximum=world_size - 1)
    except LayoutError:
        return 0


def pinned_group(grouping: Grouping, rank: str) -> int:
    """The group of the pinned rank; the first group if the rank is in none."""
    return grouping.index_of(pinned_rank(grouping.world_size, rank)) or 0
