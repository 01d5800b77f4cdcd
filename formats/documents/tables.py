"""A table: rows under their columns, written as aligned text, JSON and CSV.

The page (`views.base.html`) and slides (`render.files.tables`) show the same value.

>>> table = Table("sizes", ["name", "size"], [["tp", 2], ["dp-cp", 16]])
>>> print(*table.printed("text"), sep="", end="")
name   size
tp        2
dp-cp    16
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from groups.layout import Layout

from .exports import VERSION, heading, opened, quoted_cell

NUMBERS = (int, float, type(None))

MEMBERS = 16
"""The most ranks of a group in a line of text; JSON and CSV have all."""


@dataclass(frozen=True)
class Table:
    """Rows under their columns; the text of a cell is that of `cell`.

    title: the schema of its JSON is ``parallel-<title>``.
    """

    title: str
    columns: Sequence[object]  # texts, on the page markup
    rows: Sequence[Sequence[object]]
    layout: Layout | None = None
    fields: Mapping[str, object] = field(default_factory=dict)  # of the JSON, before the rows
    before: Sequence[str] = ()  # lines of the text around the rows
    after: Sequence[str] = ()

    def printed(self, form: str) -> Iterator[str]:
        return {"json": self._json, "csv": self._csv, "text": self._text}[form]()

    def _json(self) -> Iterator[str]:
        schema = f"parallel-{self.title}"
        about = {"schema": schema, "version": VERSION}
        yield opened({**(heading(self.layout, schema) if self.layout else about), **self.fields})
        rows = (f"\n    {json.dumps(dict(zip(self.columns, row)))}" for row in self.rows)
        yield f'  "rows": [{",".join(rows)}\n  ]\n}}\n'

    def _csv(self) -> Iterator[str]:
        for row in (self.columns, *self.rows):
            yield ",".join(quoted_cell(cell(value)) for value in row) + "\n"

    def _text(self) -> Iterator[str]:
        yield from (f"{line}\n" for line in self.before)
        if self.rows:
            yield from _aligned(self.columns, self.rows)
        yield from (f"{line}\n" for line in self.after)


def _aligned(columns: Sequence[object], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Lines with numbers aligned right, everything else left, and the last column unpadded."""
    texts = ([cell(value, most=MEMBERS) for value in row] for row in rows)
    cells = [list(map(str, columns)), *texts]
    widths = [max(map(len, column)) for column in zip(*cells)]
    numbers = [all(type(value) in NUMBERS for value in column) for column in zip(*rows)]
    for line in cells:
        aligned = (
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, numbers)
        )
        yield "  ".join(aligned).rstrip() + "\n"


def cell(value: object, most: int = 0) -> str:
    """A value as text; of a list longer than ``most`` the first ones and the last."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (list, tuple)):
        if most and len(value) > most:
            value = [*value[: most - 2], "...", value[-1]]
        return " ".join(map(str, value))
    return "" if value is None else str(value)
