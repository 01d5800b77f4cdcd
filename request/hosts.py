"""The machines that a request names, and the ranks on them."""

from __future__ import annotations

from collections.abc import Iterable

from descriptions import HOSTS_REMARKS, ORDER_REASONS
from diagnosis.machines.hosts import Hosts
from diagnosis.machines.placing import placement_of
from formats.hosts import read_hosts
from groups import LayoutError
from groups.layout import Layout
from groups.notes import Note
from groups.placement import Placement

from .context import Context
from .endpoint import require_text
from .state import is_empty


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
