"""What people say for the fields of a typed model: once, where the field is declared.

A model is a frozen dataclass; a field that somebody may say is annotated with an `Input`. Page,
links, endpoints, command line and documents are made of these annotations, and the texts that come
from them are read and checked by `parse`:

>>> @dataclass(frozen=True)
... class Oven:
...     degrees: Annotated[int, Input("how hot it gets", most=300)] = 180
...     fan: Annotated[bool, Input("whether air moves")] = False
...     grid: Annotated[str, Input("where it stands", choices=("low", "high"))] = "low"
>>> [(row.name, row.kind) for row in inputs_of(Oven).values()]
[('degrees', 'count'), ('fan', 'switch'), ('grid', 'choice')]
>>> parse(Oven, {"degrees": "200", "fan": "on"})
Oven(degrees=200, fan=True, grid='low')
>>> parse(Oven, {"degrees": "400"})
Traceback (most recent call last):
groups.errors.LayoutError: degrees must be a whole number from 1 to 300, not 400; try degrees 300
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from functools import cache, cached_property
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import LayoutError, in_any_case, nearest_names, not_a_choice, quoted
from .mesh import whole_number

Model = TypeVar("Model")
Kind = Literal["count", "amount", "switch", "choice", "text", "names", "sizes"]
"""A whole number, any number, on or off, one of some names, a text, several names or sizes."""

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)

SWITCH: Mapping[str, bool] = MappingProxyType(
    {"on": True, "off": False, "1": True, "0": False, "true": True, "false": False}
)
"""What says on or off, in any case. Pages and links write "on" and "off", of a box "1" and "0"."""


@dataclass(frozen=True)
class Input:
    """What a field is to those who say it, beside its type and its default.

    Attributes:
        means: what it is, for programs: endpoints and the command line say it.
        otherwise: what counts where nobody says it, if that is not the default.
        choices: names that it may be; of a mapping the keys.
        least, most: the range of a number.
        check: what else it may be: gives a value as it is written everywhere, or refuses it.
        name: what page, endpoints and options call it; empty: as the field.
        link: its name in links; empty: in none, for a text that somebody pasted may be long, or
            not meant for others. None: as it is called.
        maths: what arguments of the maths call it.
        stands: whether its default stands in its box; else that is empty, and the default counts.
        ticked: whether a switch is a box to tick, and no choice between on, off and the default.
        closed: whether a link that says none of its choices opens nothing.
        stays: whether it stays as it is where a published layout is opened.
    """

    means: str = ""
    _: KW_ONLY
    otherwise: str = ""
    choices: Collection[str] = ()
    least: int = 1
    most: int | None = None
    check: Callable[[object], object] | None = None
    name: str = ""
    link: str | None = None
    maths: tuple[str, ...] = ()
    stands: bool = False
    ticked: bool = False
    closed: bool = False
    stays: bool = False

    @property
    def has_choices(self) -> bool:
        """Whether it is one of some names; what these are, a table may have to be read for."""
        return not isinstance(self.choices, (tuple, list)) or len(self.choices) > 0


@dataclass(frozen=True)
class InputField:
    """A field that somebody may say: its annotation, and what follows from its type."""

    name: str  # on the page, of endpoints and options
    attribute: str  # of the model
    kind: Kind
    is_optional: bool  # whether it may be None
    default: object  # None too where it has none
    input: Input

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """Texts that a list offers: names, or on and off."""
        if self.kind == "switch":
            return ("1", "0") if self.input.ticked else ("on", "off")
        return tuple(self.input.choices)

    @cached_property
    def start(self) -> str:
        """The text that its box starts with."""
        is_shown = self.input.stands or self.input.ticked
        return self.text(self.default) if is_shown else ""

    @property
    def counts(self) -> str:
        """The text of what counts while its box is empty."""
        return self.text(self.default)

    @property
    def link(self) -> str:
        """Its name in links; empty: in none."""
        return self.name if self.input.link is None else self.input.link

    @property
    def maths(self) -> tuple[str, ...]:
        """What else refusals call it."""
        renamed = (self.attribute,) if self.attribute != self.name else ()
        return (*renamed, *self.input.maths)

    def is_in_range(self, number: int) -> bool:
        most = self.input.most
        return self.input.least <= number and (most is None or number <= most)

    # -- a value as text ---------------------------------------------------------------------------

    def text(self, value: object) -> str:
        """Any value as its box and its link write it; what is none of its values as it is."""
        if type(value) is str:
            return self._spelled(value) if value or self.input.ticked else ""
        if value is None:
            return ""
        if isinstance(value, bool) and self.kind == "switch":
            return self.choices[not value]
        if isinstance(value, (list, tuple)) and self.kind in ("names", "sizes"):
            return self._spelled(("," if self.kind == "names" else "x").join(map(str, value)))
        try:
            return self._spelled(str(value)) if self.kind == "switch" else str(value)
        except ValueError:  # a number of more digits than Python writes
            return quoted(value)

    def _spelled(self, text: str) -> str:
        """A text with numbers and names in the one spelling that they have."""
        if self.kind == "switch":
            is_on = SWITCH.get(text.strip().lower(), False if not text else None)
            if is_on is None:
                return "0" if self.input.ticked else text
            return self.choices[not is_on]
        if self.kind in ("count", "amount"):
            number = number_in(text)
            return text if number is text else str(number)
        if self.kind == "names":
            return ",".join(text.replace(",", " ").split())
        if self.input.check is not None:
            with suppress(LayoutError):
                return str(self.input.check(text))
        if text == self.default or not self.input.has_choices or text in self.input.choices:
            return text
        return str(in_any_case(text, self.input.choices))

    # -- a text as value ---------------------------------------------------------------------------

    def read(self, text: str) -> object:
        """What a text says; as it is where it says no value of this kind."""
        if self.kind in ("count", "amount"):
            return number_in(text)
        if self.kind == "switch":
            return SWITCH.get(text.strip().lower(), text)
        if self.kind == "names":
            return tuple(dict.fromkeys(text.replace(",", " ").split()))
        if self.kind == "sizes":
            return tuple(map(number_in, re.split(r"[\s,x×*]+", text.strip())))
        return text

    def value(self, text: str) -> object:
        """The value that a text says. Errors: LayoutError where the field cannot be that."""
        value = self.read(text)
        is_other = self.kind == "count" and text.strip() not in self.choices
        if self.kind in ("count", "switch") and self.choices and (value is text or is_other):
            raise self._not_a_choice(text)
        return self.checked(value)

    @cached_property
    def closed(self) -> tuple[str, ...]:
        """All that a link may say, in any case; none: anything."""
        if self.input.ticked:
            return tuple(SWITCH)
        unsaid = () if self.input.stands else ("",)
        return (*unsaid, *self.choices) if self.input.closed else ()

    def of_text(self, text: str) -> object:
        """The value that counts: what a text says, else the default. Errors: as `value`."""
        return self.value(text) if text.strip() else self.default

    def checked(self, value: object) -> object:
        """A value, if the field can be that. Errors: LayoutError."""
        if self.input.check is not None:
            return self.input.check(value)
        if self.kind == "count":
            least, most = self.input.least, self.input.most
            return whole_number(value, self.name, minimum=least, maximum=most)
        if self.kind == "switch" and type(value) is not bool:
            raise not_a_choice(self.name, value, ("False", "True"))
        if self.kind == "choice" and (type(value) is not str or value not in self.input.choices):
            raise self._not_a_choice(value)
        return value

    def _not_a_choice(self, value: object) -> LayoutError:
        near = nearest_names(value, self.choices) if isinstance(value, str) else []
        return not_a_choice(self.name, value, self.choices, [{self.name: one} for one in near])


@cache
def inputs_of(model: type) -> Mapping[str, InputField]:
    """The fields of a model that somebody may say, by the names that page and programs have."""
    return MappingProxyType({row.name: row for row in _rows_of(model)})


@cache
def _rows_of(model: type) -> tuple[InputField, ...]:
    hints = get_type_hints(model, include_extras=True)
    rows = (_row(one.name, one.default, hints[one.name]) for one in fields(model))
    return tuple(row for row in rows if row is not None)


def _row(attribute: str, default: object, hint: object) -> InputField | None:
    if get_origin(hint) is not Annotated:
        return None
    of, *marks = get_args(hint)
    found = next((mark for mark in marks if isinstance(mark, Input)), None)
    if found is None:
        return None
    kinds = get_args(of) if get_origin(of) in (UnionType, Union) else (of,)
    base = next(kind for kind in kinds if kind is not NoneType)
    default = None if default is MISSING else default
    name = found.name or attribute
    return InputField(name, attribute, _kind(base, found), NoneType in kinds, default, found)


def _kind(base: object, found: Input) -> Kind:
    kinds: dict[object, Kind] = {bool: "switch", int: "count", float: "amount"}
    if get_origin(base) is not None:
        return "names" if str in get_args(base) else "sizes"
    return kinds.get(base) or ("choice" if found.has_choices else "text")


def texts_for(model: type, texts: Mapping[str, str]) -> list[tuple[InputField, str]]:
    """The fields of a model that texts say, with these; an empty one leaves the default."""
    found = ((row, texts.get(row.name, "")) for row in inputs_of(model).values())
    return [
        (row, text)
        for row, text in found
        if text.strip() or (row.input.stands and not row.is_optional)
    ]


def read(model: type[Model], texts: Mapping[str, str]) -> Model:
    """The model that texts ask for, of numbers that it checks itself.

    Errors: LayoutError about the first choice that there is not.
    """
    found = texts_for(model, texts)
    known = (row.value if row.kind in ("choice", "switch") else row.read for row, _ in found)
    return model(**{row.attribute: value(text) for value, (row, text) in zip(known, found)})


def parse(model: type[Model], texts: Mapping[str, str]) -> Model:
    """The model that texts ask for, by the names of its inputs.

    Errors: LayoutError about the first field that cannot be what its text says.
    """
    return model(**{row.attribute: row.value(text) for row, text in texts_for(model, texts)})


def require_inputs(model: object) -> None:
    """Check the fields of a model, and write them as they are written everywhere.

    Errors: LayoutError about the first field that cannot be what it is.
    """
    kind: type = type(model)
    values = vars(model)
    for row in _rows_of(kind):
        value = values[row.attribute]
        if type(value) is int and row.kind == "count" and row.is_in_range(value):  # nearly always
            continue
        if (value is not None or not row.is_optional) and (new := row.checked(value)) is not value:
            object.__setattr__(model, row.attribute, new)


def number_in(text: str) -> int | float | str:
    """A number as a text has it; any other text as it is, to be refused in words.

    >>> number_in(" 8 "), number_in("2.5"), number_in("many")
    (8, 2.5, 'many')
    """
    if not _NUMBER.fullmatch(stripped := text.strip()):
        return text
    return float(stripped) if "." in stripped else int(stripped)
