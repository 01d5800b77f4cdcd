"""The machines that the page names, and the ranks on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from markupsafe import Markup

from descriptions import HOSTS_REMARKS, ORDER_REASONS, RUN
from diagnosis.machines.hosts import Hosts
from diagnosis.machines.placing import placement_of
from formats.hosts import read_hosts
from groups import LayoutError
from groups.alternatives import works
from groups.layout import Layout
from groups.notes import Note
from groups.placement import Placement

from .context import Context
from .endpoint import require_text
from .html import TableCell, cell, tag
from .inputs import FIELDS
from .problems import problem_html
from .resolve import resolve
from .state import State, is_empty
from .units import ranges_text

ROWS = 64
"""The largest number of machines listed, in their order."""

MOST_PLACED = 256
"""The largest group whose machines a table lists."""


def hosts_of(context: Context) -> Hosts | None:
    """The machines in the page's text of hosts, with places from its text of racks; None without
    texts.

    Errors: LayoutError for a text without machines, and for places of unknown machines.
    """
    state = context.state
    if is_empty(state.hosts) and is_empty(state.racks):
        return None
    hosts = "" if is_empty(state.hosts) else state.hosts
    return read_hosts(hosts, None if is_empty(state.racks) else state.racks)


def placement_here(context: Context) -> Placement | None:
    """The machine of every rank. Errors: as `hosts_of`, and for too few or too many machines."""
    hosts, layout = context.once(hosts_of), context.layout
    if hosts is None:
        return None
    return placement_of(hosts, layout.world_size, layout.gpus_per_node)


def placement_or_none(context: Context) -> Placement | None:
    """`placement_here` for views other than Hosts; None if the texts are refused: Hosts shows the
    refusal."""
    try:
        return context.once(placement_here)
    except LayoutError:
        return None


def notes_text(notes: Iterable[Note], language: str) -> list[str]:
    """Notes about machines, and reasons of an order, as sentences."""
    words = {**HOSTS_REMARKS, **ORDER_REASONS}
    return [words[note.code][language].format(**note.facts) for note in notes]


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


def placement_from(layout: Layout, hosts: object, racks: object) -> Placement | None:
    """The machine of every rank of a job, from an endpoint's texts; None without texts.

    Errors: LayoutError for places of unknown machines.
    """
    if not (require_text("hosts", hosts) or require_text("racks", racks)):
        return None
    return placement_of(read_texts(hosts, racks), layout.world_size, layout.gpus_per_node)


def read_texts(text: object, racks: object) -> Hosts:
    """The machines of an endpoint's texts. Errors: LayoutError."""
    return read_hosts(require_text("hosts", text), require_text("racks", racks) or None)
