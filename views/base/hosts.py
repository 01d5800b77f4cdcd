"""The machines that the page names, and the ranks on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from markupsafe import Markup

from descriptions import RUN
from groups import LayoutError
from groups.alternatives import works
from groups.notes import Note
from groups.placement import Placement
from request.hosts import notes_text
from request.inputs import FIELDS
from request.resolve import resolve
from request.state import State
from request.units import ranges_text

from .html import TableCell, cell, tag
from .problems import problem_html

ROWS = 64
"""The largest number of machines listed, in their order."""

MOST_PLACED = 256
"""The largest group whose machines a table lists."""


def notes_html(notes: Iterable[Note], kind: str, language: str) -> Markup | str:
    items = [tag("li", sentence) for sentence in notes_text(notes, language)]
    return tag("ul", *items, class_=kind) if items else ""


def refused_html(error: LayoutError, state: State) -> Markup:
    """The HTML of a refusal, with only the fixes that make the layout valid."""
    fixes = [fix for fix in error.alternatives if fix.keys() <= FIELDS.keys()]
    tried = [fix for fix in fixes if works(resolve, state.changed(fix))]
    return problem_html(error, state.language, tried)


def hosts_head(placement: Placement | None, language: str) -> list[str]:
    """The heading of a table's column of machines; none without machines."""
    return [RUN["column_hosts"][language]] if placement else []


def hosts_cell(placement: Placement | None, ranks: np.ndarray | Sequence[int]) -> list[TableCell]:
    if placement is None:
        return []
    runs = groupby(map(int, ranks[:MOST_PLACED]), placement.host)
    parts = [f"{host}: {ranges_text([placement.device(name) for name in of])}" for host, of in runs]
    parts += ["…"] if len(ranks) > MOST_PLACED else []
    return [cell("; ".join(parts), class_="ranks")]
