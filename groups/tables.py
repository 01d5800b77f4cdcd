"""Data beside the code: TOML files, read on first use and checked against dataclasses.

The content of a file has one type, its model: a dataclass, or a dict of them by id. A dataclass
accepts only its own fields, each of its type; TOML lists become tuples.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Link:
...     gigabits: int
...     name: str = ""
>>> checked("links.toml", {"nvlink": {"gigabits": 3600}}, dict[str, Link])
{'nvlink': Link(gigabits=3600, name='')}
>>> checked("links.toml", {"nvlink": {"gigabits": "3600", "nmae": "NVLink"}}, dict[str, Link])
Traceback (most recent call last):
    ...
groups.tables.TableError: links.toml: 2 errors
  [nvlink] gigabits: Input should be a valid integer, not '3600'
  [nvlink] nmae: Unexpected field, not 'NVLink'
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, TypeVar, cast, overload

import orjson

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

Model = TypeVar("Model")
Row = TypeVar("Row")
Other = TypeVar("Other")


class TableError(ValueError):
    """A file that does not match its model: file, table, field, and what was expected."""


class Rows(Mapping[str, Row]):
    """The rows of a file by id, read on first access.

    >>> squares = Rows(lambda: {"two": 4})
    >>> squares["two"], list(squares), len(squares)
    (4, ['two'], 1)
    """

    def __init__(self, read: Callable[[], Mapping[str, Row]], name: str = "") -> None:
        self._read, self._name = read, name  # the error of a missing key shows the name

    @cached_property
    def _rows(self) -> Mapping[str, Row]:
        return self._read()

    def __getitem__(self, key: str) -> Row:
        try:
            return self._rows[key]
        except KeyError:
            raise KeyError(f"{self._name} has no {key!r}" if self._name else key) from None

    # Mapping's own methods call `__getitem__`; half of a launch file reader's keys are missing.

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    @overload
    def get(self, key: str, /) -> Row | None: ...
    @overload
    def get(self, key: str, /, default: Row | Other) -> Row | Other: ...
    def get(self, key: str, /, default: object = None) -> object:
        return self._rows.get(key, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Rows({dict(self._rows)!r})"


def read_table(file: Path, model: type[Model]) -> Model:
    """The content of a TOML file as its model. Errors: TableError."""
    return checked(f"{file.parent.name}/{file.name}", parsed(file), model)


def parsed(file: Path) -> dict[str, object]:
    """The content of a TOML file, unchecked. Errors: TableError for invalid TOML."""
    return parsed_text(f"{file.parent.name}/{file.name}", file.read_text(encoding="utf-8"))


def parsed_text(name: str, text: str) -> dict[str, object]:
    """The content of a TOML text. Errors: TableError for invalid TOML, which says the name."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # the package that became tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{name}: {error}") from None


def checked(name: str, values: object, model: type[Model]) -> Model:
    """The values of a file as its model. Errors: TableError, which names the file."""
    from pydantic import ValidationError  # takes 0.1 s, so only if a table is read

    text = orjson.dumps([values])  # as JSON a list may be a tuple, though no text a number
    try:
        (value,) = _adapter(cast("Hashable", model)).validate_json(text, strict=True)
    except ValidationError as error:
        raise TableError("\n  ".join(_lines(name, error))) from None
    return cast("Model", value)


@cache
def _adapter(model: Hashable) -> TypeAdapter[tuple[object]]:
    """Pydantic's adapter of a model. A dataclass takes its settings from the list that holds it."""
    from pydantic import ConfigDict, TypeAdapter

    adapter: Callable[..., TypeAdapter[tuple[object]]] = TypeAdapter
    return adapter(GenericAlias(tuple, (model,)), config=ConfigDict(extra="forbid"))


def _lines(name: str, error: ValidationError) -> Iterator[str]:
    """The number of wrong fields, then a line for each: its place, what was expected, what it
    is."""
    count = error.error_count()
    yield f"{name}: {count} error{'s' * (count > 1)}"
    for one in error.errors(include_url=False):
        _, *place = map(str, one["loc"])
        at = " ".join(filter(None, (f"[{place[0]}]" if place else "", ".".join(place[1:]))))
        message = _MESSAGES.get(one["type"], one["msg"])
        if one["type"] not in ("missing", "missing_argument", "value_error"):
            text = repr(one["input"])
            message += f", not {text if len(text) <= 60 else f'{text[:60]}...'}"
        yield f"{at}: {message}"


_MESSAGES = dict.fromkeys(("extra_forbidden", "unexpected_keyword_argument"), "Unexpected field")
