"""Which machine a launcher puts each rank on, given the machines in its order with their slots.

    slot             fill one machine after the other: torchrun, DeepSpeed, mpirun; Slurm with Pack
    node, cyclic     one rank a machine in turn, round and round
    ppr:N:node       N to each machine
    block            Slurm: as many to each as cyclic gives, but numbered machine by machine
    plane=P          Slurm: P consecutive ranks a machine in turn

When all slots are taken, the turns go on over all machines (oversubscription). Sources:
open-mpi/ompi docs/launching-apps/scheduling.rst; SchedMD/slurm, src/common/slurm_step_layout.c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from groups.errors import LayoutError, not_a_choice, quoted
from groups.mesh import MAX_RANKS, whole_number

from .values import Hosts

WAYS = ("slot", "node", "block", "cyclic", "plane=P", "ppr:N:node")


def rank_hosts(hosts: Hosts, tasks: int | None = None, by: str = "slot") -> tuple[str, ...]:
    """The machine of every rank; what a text says rank by rank counts before the rest.

    tasks: ranks, all slots if left out.

    >>> hosts = Hosts("hostfile", ("a", "b"), {"a": 2, "b": 2})
    >>> rank_hosts(hosts), rank_hosts(hosts, by="node"), rank_hosts(hosts, 3, by="block")
    (('a', 'a', 'b', 'b'), ('a', 'b', 'a', 'b'), ('a', 'a', 'b'))

    Errors: LayoutError for machines whose slots nobody says, and for a way that there is not.
    """
    if hosts.ranks and tasks in (None, len(hosts.ranks)):
        return hosts.ranks
    slots = _slots(hosts, by)
    total = sum(slots)
    count = total if tasks is None else whole_number(tasks, "tasks", maximum=MAX_RANKS)
    if total > MAX_RANKS:
        whole_number(total, "slots", maximum=MAX_RANKS)
    if by in ("slot", "") or by.startswith("ppr:"):
        filled = [at for at, room in enumerate(slots) for _ in range(room)]
        order = [filled[rank % total] for rank in range(count)]
    elif by.startswith("plane="):
        plane = whole_number(_number(by, r"plane=([0-9]{1,7})"), "plane")
        order = _turns(slots, count, plane)
    else:
        order = _turns(slots, count)
    if by == "block":
        order = sorted(order)
    return tuple(hosts.names[at] for at in order)


def c10d_order(names: Sequence[str]) -> list[str]:
    """The order in which torchrun's c10d and etcd rendezvous number machines: by name, as text.

    It takes no notice of --node-rank nor of a host file: only the static rendezvous does.
    Source: pytorch/pytorch #191190, torch/distributed/elastic/rendezvous/dynamic_rendezvous.py.

    >>> c10d_order(["gpu-1", "gpu-2", "gpu-10"])
    ['gpu-1', 'gpu-10', 'gpu-2']
    """
    return sorted(names)


def _slots(hosts: Hosts, by: str) -> list[int]:
    """Slots of each machine, in the order of the machines."""
    if by not in ("", "slot", "node", "block", "cyclic") and not re.fullmatch(
        r"plane=[0-9]{1,7}|ppr:[0-9]{1,7}:node", by
    ):
        raise not_a_choice("by", by, WAYS)
    if by.startswith("ppr:"):
        each = whole_number(_number(by, r"ppr:([0-9]{1,7}):node"), "ppr")
        return [each] * len(hosts.names)
    unknown = [name for name, slots in hosts.slots.items() if slots is None]
    if unknown:
        raise slots_unknown(unknown)
    return [slots or 0 for slots in hosts.slots.values()]


def slots_unknown(names: Sequence[str]) -> LayoutError:
    return LayoutError(
        "slots-unknown",
        f"the text does not say how many GPUs {quoted(names[0])} has",
        why="write slots=N beside its name, or say GPUs per node",
        control="gpus_per_node",
        facts={"host": quoted(names[0]), "count": len(names)},
    )


def _number(text: str, pattern: str) -> int:
    match = re.fullmatch(pattern, text, re.ASCII)
    assert match is not None  # `_slots` has let only such texts through
    return int(match[1])


def _turns(slots: Sequence[int], count: int, plane: int = 1) -> list[int]:
    """So many ranks a machine in turn; full machines are passed until all are full."""
    order: list[int] = []
    left = list(enumerate(slots))
    while len(order) < count:
        for at, room in left:
            order += [at] * min(plane, room)
        left = [(at, room - plane) for at, room in left if room > plane]
        left = left or [(at, plane) for at in range(len(slots))]
    return order[:count]


def even_slots(hosts: Hosts, gpus_per_node: int | None = None) -> int:
    """GPUs of every machine, where all have as many; what the text leaves open is as said.

    Errors: LayoutError for machines with different numbers, and where nobody says any.
    """
    said: Mapping[str, int | None] = hosts.slots
    counts = {slots for slots in said.values() if slots is not None}
    if not counts:
        if gpus_per_node is None:
            raise slots_unknown(hosts.names)
        return gpus_per_node
    if len(counts) > 1:
        most = max(counts)
        few = next(name for name, slots in said.items() if slots is not None and slots < most)
        raise LayoutError(
            "uneven-slots",
            f"the host {quoted(few)} has {said[few]} slots, others have {most}",
            why="groups of a mesh lie alike on all nodes only where each has as many GPUs",
            control="hosts",
            alternatives=[{"gpus_per_node": min(counts)}],
            facts={"host": quoted(few), "slots": said[few], "most": most, "least": min(counts)},
        )
    return counts.pop()
