"""Machines of a text as the placement of a job's ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from groups.errors import quoted
from groups.placement import Placement, filled

from ..errors import refusal
from .values import Hosts, slots_unknown


def placement_of(hosts: Hosts, world: int, gpus_per_node: int | None = None) -> Placement:
    """The machine of every rank of a job, as the text says it rank by rank, else filled in order.

    gpus_per_node: slots of the machines whose text says none.

    >>> from formats.hosts import read_hosts
    >>> placement_of(read_hosts("b slots=2\\na slots=1"), world=3).nodes.tolist()
    [0, 0, 1]
    >>> placement_of(read_hosts("b\\na\\nb"), world=3).nodes.tolist()
    [0, 1, 0]

    Errors: LayoutError for machines too few or too many, and for slots that nobody says.
    """
    total = len(hosts.ranks)
    if total == world:
        number = {name: at for at, name in enumerate(hosts.names)}
        nodes = np.array([number[name] for name in hosts.ranks])
        return Placement(hosts.names, nodes, hosts.levels, hosts.devices)
    if hosts.ranks:
        code = "too-few-hosts" if total < world else "too-many-hosts-for-job"
        said = f"the layout needs {world} GPUs, and the text places {total} ranks"
        facts = {"world": world, "hosts": len(hosts.names), "slots": total, "spare": 0}
        raise refusal(code, "hosts", sentence=said, **facts)
    unknown = [name for name, slots in hosts.slots.items() if slots is None]
    if unknown and gpus_per_node is None:
        raise slots_unknown(unknown)
    slots = [(gpus_per_node if slots is None else slots) or 0 for slots in hosts.slots.values()]
    placement = filled(hosts.names, slots, world=world, levels=hosts.levels)
    return replace(placement, devices=hosts.devices)


def even_slots(hosts: Hosts, gpus_per_node: int | None = None) -> int:
    """GPUs of every machine, where all have as many; what the text leaves open is as said.

    Errors: LayoutError for machines with different numbers, and where nobody says any.
    """
    said = {name: slots for name, slots in hosts.slots.items() if slots is not None}
    least, most = min(said.values(), default=gpus_per_node), max(said.values(), default=0)
    if least is None:
        raise slots_unknown(hosts.names)
    if said and least < most:
        few = next(name for name, slots in said.items() if slots < most)
        facts = {"host": quoted(few), "slots": said[few], "most": most, "least": least}
        raise refusal("uneven-slots", "hosts", {"gpus_per_node": least}, **facts)
    return least
