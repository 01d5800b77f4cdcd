"""Data beside the code: TOML files, read when first asked for and checked against dataclasses.

A file is one value of a type, its model: a dataclass, or a dict of them by id. A dataclass has the
fields that it names and no others, each of its type; a list is a tuple there.

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
    """A file that does not hold what its model asks for: file, table, field, what was expected."""


class Rows(Mapping[str, Row]):
    """The rows of a file by id; it is read when the first one is asked for.

    >>> squares = Rows(lambda: {"two": 4})
    >>> squares["two"], list(squares), len(squares)
    (4, ['two'], 1)
    """

    def __init__(self, read: Callable[[], Mapping[str, Row]], name: str = "") -> None:
        self._read, self._name = read, name  # which a missing key tells

    @cached_property
    def _rows(self) -> Mapping[str, Row]:
        return self._read()

    def __getitem__(self, key: str) -> Row:
        try:
            return self._rows[key]
        except KeyError:
            raise KeyError(f"{self._name} has no {key!r}" if self._name else key) from None

    # Mapping's own ask `__getitem__`, and half of what readers of launch files look up is missing.

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
    """What a TOML file holds, as its model. Errors: TableError."""
    return checked(f"{file.parent.name}/{file.name}", parsed(file), model)


def parsed(file: Path) -> dict[str, object]:
    """What a TOML file holds, unchecked. Errors: TableError for what is no TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # the same code as a package

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{file.parent.name}/{file.name}: {error}") from None


def checked(name: str, values: object, model: type[Model]) -> Model:
    """Values of a file as its model. Errors: TableError, which names the file."""
    from pydantic import ValidationError  # 0.1 s, for who reads a table

    text = orjson.dumps([values])  # as JSON a list may be a tuple, though no text a number
    try:
        (value,) = _adapter(cast("Hashable", model)).validate_json(text, strict=True)
    except ValidationError as error:
        raise TableError("\n  ".join(_lines(name, error))) from None
    return cast("Model", value)


@cache
def _adapter(model: Hashable) -> TypeAdapter[tuple[object]]:
    """Of a list with the model alone: a dataclass takes the settings of what holds it."""
    from pydantic import ConfigDict, TypeAdapter

    adapter: Callable[..., TypeAdapter[tuple[object]]] = TypeAdapter
    return adapter(GenericAlias(tuple, (model,)), config=ConfigDict(extra="forbid"))


def _lines(name: str, error: ValidationError) -> Iterator[str]:
    """How many fields are wrong, and where each stands, what it should be and is."""
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
