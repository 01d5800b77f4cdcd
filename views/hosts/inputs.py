"""The machines that the page names, and where the ranks stand on them."""

from __future__ import annotations

from formats.hosts import read_hosts
from formats.hosts.placing import placement_of
from formats.hosts.values import Hosts
from groups import LayoutError
from groups.placement import Placement

from ..base.context import Context
from ..base.state import State, is_empty


def hosts_of(state: State) -> Hosts | None:
    """The machines that the page names, standing where its other text says; None where none is.

    Errors: LayoutError for a text of no machines.
    """
    if is_empty(state.hosts):
        return None
    hosts = read_hosts(state.hosts)
    return hosts if is_empty(state.racks) else hosts.with_places(read_hosts(state.racks))


def placement_or_none(context: Context) -> Placement | None:
    """Where the ranks stand by name, for views beside this one: what is wrong is said here."""
    try:
        hosts = hosts_of(context.state)
        layout = context.layout
        return hosts and placement_of(hosts, layout.world_size, layout.gpus_per_node)
    except LayoutError:
        return None
