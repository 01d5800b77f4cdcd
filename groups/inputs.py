"""The inputs of a typed model, each declared once, with its field.

A model is a frozen dataclass; a field that users may set is annotated with an `Input`. Page, links,
endpoints, command line and documents are made from these annotations. A text that they receive is
read once, by `InputField.entered`; from there on it is a value, of which `checked_model` makes the
model. `parse` is both at once:

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
"""A whole number, any number, on or off, one of several names, a text, a list of names or of
sizes."""

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
LARGEST = 10**18
"""The first whole number that is no number of a text."""

SWITCH: Mapping[str, bool] = MappingProxyType(
    {"on": True, "off": False, "1": True, "0": False, "true": True, "false": False}
)
"""Spellings of on and off, in any case. Pages and links write "on" and "off", for a box "1" and
"0"."""


@dataclass(frozen=True)
class Input:
    """A field that users may set, beyond its type and its default.

    Attributes:
        means: what it is, as endpoints and the command line describe it.
        otherwise: what applies while it is unset, if that is not the default.
        choices: names that it may have; the keys of a mapping.
        least, most: the range of a number.
        check: a function that returns a value in its canonical form, or refuses it.
        name: its name on the page, in endpoints and options; empty: that of the field.
        link: its name in links; None: `name`; empty: in none, as a pasted text may be private.
        maths: names of the arguments of the maths that it becomes.
        stands: whether its box shows the default; else the box is empty, and the default applies.
        ticked: whether a switch is a checkbox instead of a choice between on, off and the default.
        closed: whether a link whose value is not one of the choices opens nothing.
        stays: whether it keeps its value when a published layout is opened.
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
        """Whether it has choices; does not read the table that lists them."""
        return not isinstance(self.choices, (tuple, list)) or len(self.choices) > 0


@dataclass(frozen=True)
class InputField:
    """An input: the annotation of a field, and the properties that follow from the field's type."""

    name: str  # on the page, of endpoints and options
    attribute: str  # of the model
    kind: Kind
    is_optional: bool  # whether it may be None
    default: object  # None too where it has none
    input: Input

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The texts of its list: names, or on and off."""
        if self.kind == "switch":
            return ("1", "0") if self.input.ticked else ("on", "off")
        return tuple(self.input.choices)

    @cached_property
    def start(self) -> str:
        """The initial text of its box."""
        is_shown = self.input.stands or self.input.ticked
        return self.text(self.default) if is_shown else ""

    @property
    def counts(self) -> str:
        """The text of the value that applies while its box is empty."""
        return self.text(self.default)

    @property
    def link(self) -> str:
        """Its name in links; empty if links do not have it."""
        return self.name if self.input.link is None else self.input.link

    @property
    def maths(self) -> tuple[str, ...]:
        """Names of the field in refusals, besides its own."""
        renamed = (self.attribute,) if self.attribute != self.name else ()
        return (*renamed, *self.input.maths)

    def is_in_range(self, number: int) -> bool:
        most = self.input.most
        return self.input.least <= number and (most is None or number <= most)

    # -- a value as text ---------------------------------------------------------------------------

    def text(self, value: object) -> str:
        """The text of a value in its box and its link; an invalid value unchanged."""
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
        """A text with its numbers and names in canonical spelling."""
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

    def entered(self, value: object) -> tuple[str, object]:
        """The text of a value that was typed or passed, and the value that it spells: None where it
        is empty, the text itself where it spells none of this kind.

        >>> field = InputField("tp", "tp", "count", False, 1, Input("tensor parallel size"))
        >>> field.entered(" 08 "), field.entered(8), field.entered(""), field.entered("many")
        (('8', 8), ('8', 8), ('', None), ('many', 'many'))
        """
        if self.kind in ("count", "amount"):
            number = number_in(value) if type(value) is str else value
            if type(number) is int and abs(number) < LARGEST:
                return str(number), number
        text = self.text(value)
        return text, self.read(text) if text.strip() else None

    def read(self, text: str) -> object:
        """The value of a text; the text unchanged if it is no value of this kind."""
        if self.kind in ("count", "amount"):
            return number_in(text)
        if self.kind == "switch":
            return SWITCH.get(text.strip().lower(), text)
        if self.kind == "names":
            return tuple(dict.fromkeys(text.replace(",", " ").split()))
        if self.kind == "sizes":
            return tuple(map(number_in, re.split(r"[\s,x×*]+", text.strip())))
        return text

    def chosen(self, value: object) -> object:
        """A value that was read, if the field can have it. Errors: LayoutError otherwise."""
        if self.kind in ("count", "switch") and self.choices:
            is_other = self.kind == "count" and str(value) not in self.choices
            if type(value) is str or is_other:
                raise self._not_a_choice(str(value))
        return self.checked(value)

    @cached_property
    def closed(self) -> tuple[str, ...]:
        """All values that a link may have, ignoring case; empty: any value."""
        if self.input.ticked:
            return tuple(SWITCH)
        unsaid = () if self.input.stands else ("",)
        return (*unsaid, *self.choices) if self.input.closed else ()

    def or_default(self, value: object) -> object:
        """A value that was read; the default for None. Errors: as `chosen`."""
        return self.default if value is None else self.chosen(value)

    def checked(self, value: object) -> object:
        """The value unchanged if the field can have it. Errors: LayoutError otherwise."""
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
    """The inputs of a model, by their names on the page and in programs."""
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


def values_for(model: type, values: Mapping[str, object]) -> list[tuple[InputField, object]]:
    """The inputs of a model that have a value, and their values; None leaves the default."""
    found = ((row, values.get(row.name)) for row in inputs_of(model).values())
    return [
        (row, "" if value is None else value)
        for row, value in found
        if value is not None or (row.input.stands and not row.is_optional)
    ]


def unchecked_model(model: type[Model], values: Mapping[str, object]) -> Model:
    """A model from values that were read; the model itself checks the numbers.

    Errors: LayoutError about the first choice that does not exist.
    """
    found = values_for(model, values)
    named = ("choice", "switch")
    known = (row.chosen(value) if row.kind in named else value for row, value in found)
    return model(**{row.attribute: value for value, (row, _) in zip(known, found)})


def checked_model(model: type[Model], values: Mapping[str, object]) -> Model:
    """A model from values that were read, by the names of its inputs.

    Errors: LayoutError about the first field that cannot have its value.
    """
    return model(**{row.attribute: row.chosen(value) for row, value in values_for(model, values)})


def parse(model: type[Model], texts: Mapping[str, str]) -> Model:
    """A model from texts, by the names of its inputs. Errors: as `checked_model`."""
    kind: type = model
    rows = inputs_of(kind)
    read = {name: rows[name].entered(text)[1] for name, text in texts.items() if name in rows}
    return checked_model(model, read)


def require_inputs(model: object) -> None:
    """Checks the fields of a model, and replaces each by its canonical form.

    Errors: LayoutError about the first field with an invalid value.
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
    """The number that a text spells; any other text unchanged, to be refused later.

    >>> number_in(" 8 "), number_in("2.5"), number_in("many")
    (8, 2.5, 'many')
    """
    if not _NUMBER.fullmatch(stripped := text.strip()):
        return text
    return float(stripped) if "." in stripped else int(stripped)
