"""Where ranks stand: node = rank // GPUs per node, local rank = rank % GPUs per node.

Launchers (torchrun, srun) fill one node after the other, so rank r of a job with g GPUs a node is
GPU r % g of node r // g. A group leaves its node when its members stand on more than one. Where
the machines are known by name, with their racks, switches and domains, a `Placement` says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .errors import quoted, refusal
from .mesh import MAX_RANKS, whole_number


def node_of(ranks: ArrayLike, gpus_per_node: int) -> np.ndarray:
    """The node of each rank, in the shape given."""
    return np.asarray(ranks) // whole_number(gpus_per_node, "gpus_per_node", maximum=MAX_RANKS)


def local_rank(ranks: ArrayLike, gpus_per_node: int) -> np.ndarray:
    """The GPU of each rank within its node, in the shape given."""
    return np.asarray(ranks) % whole_number(gpus_per_node, "gpus_per_node", maximum=MAX_RANKS)


def nodes_spanned(groups: ArrayLike, gpus_per_node: int) -> np.ndarray:
    """The number of nodes that each group spans: int64, shape (num_groups,).

    groups: ranks, shape (num_groups, group_size), members in any order.

    >>> nodes_spanned([[0, 1], [0, 8], [8, 15]], gpus_per_node=8).tolist()
    [1, 2, 1]
    """
    return distinct(node_of(groups, gpus_per_node))


def distinct(places: np.ndarray) -> np.ndarray:
    """The number of distinct places in each row: shape (..., members) to shape (...)."""
    steps = places[..., 1:] - places[..., :-1]
    if (steps < 0).any():  # a group of a mesh ascends already
        steps = np.diff(np.sort(places, axis=-1), axis=-1)
    return 1 + (steps != 0).sum(axis=-1)


# -- machines by name ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placement:
    """The machine of every rank by name, and the places of each machine.

    hosts: names, by number of the node. nodes: the node of each rank, int64, shape (world,).
    levels: by kind ("rack", "switch", "domain" ...), closest first: host -> name of its place. A
    host that a level does not name has a separate place there. devices: for a host, the GPUs that a
    filter leaves.

    >>> racks = {"rack": {"a": "r0", "b": "r0", "c": "r1"}}
    >>> placement = filled(["b", "a", "c"], [2, 2, 2], world=6, levels=racks)
    >>> placement.host(2), placement.local_rank(3), placement.places(4)
    ('a', 1, {'rack': 'r1'})
    >>> placement.of_ranks("rack").tolist()
    [0, 0, 0, 0, 1, 1]
    """

    hosts: tuple[str, ...]
    nodes: np.ndarray
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        return len(self.nodes)

    @cached_property
    def local_ranks(self) -> np.ndarray:
        """The local rank of each rank on its machine: int64, shape (world,)."""
        order = np.argsort(self.nodes, kind="stable")
        ordered = self.nodes[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        lengths = np.diff(np.append(starts, len(ordered)))
        places = np.empty(len(ordered), dtype=np.int64)
        places[order] = np.arange(len(ordered)) - np.repeat(starts, lengths)
        return places

    def where(self, ranks: Iterable[int]) -> Iterator[str]:
        """Host and device of each rank, as gpu-04:5."""
        return (f"{self.host(rank)}:{self.device(rank)}" for rank in ranks)

    def host(self, rank: int) -> str:
        return self.hosts[int(self.nodes[rank])]

    def local_rank(self, rank: int) -> int:
        return int(self.local_ranks[rank])

    def device(self, rank: int) -> int:
        """The device index of a rank's GPU on its machine: its local rank indexes the GPUs that the
        filter leaves."""
        local = self.local_rank(rank)
        left = self.devices.get(self.host(rank), ())
        return left[local] if local < len(left) else local

    def places(self, rank: int) -> dict[str, str]:
        """The named places of a rank's machine, by level."""
        host = self.host(rank)
        return {kind: of[host] for kind, of in self.levels.items() if host in of}

    def of_ranks(self, kind: str = "node") -> np.ndarray:
        """The place of each rank in a level, numbered from 0, as `audit` expects it; the level
        "node" gives the node.

        Errors: KeyError for an unknown level.
        """
        if kind == "node":
            return self.nodes
        numbers: dict[str, int] = {}
        of = self.levels[kind]
        names = (f"in {of[host]}" if host in of else f"only {host}" for host in self.hosts)
        places = [numbers.setdefault(name, len(numbers)) for name in names]
        return np.asarray(places, dtype=np.int64)[self.nodes]

    def by_level(self) -> dict[str, np.ndarray]:
        """The place of each rank on the nodes and in every level, by level."""
        return {kind: self.of_ranks(kind) for kind in ("node", *self.levels)}

    def columns(self) -> Iterator[tuple[str, list[str]]]:
        """Columns for a table of ranks: host and device, then the place in each level."""
        nodes = self.nodes.tolist()
        yield "host", [self.hosts[node] for node in nodes]
        yield "device", [str(self.device(rank)) for rank in range(self.world_size)]
        for kind, of in self.levels.items():
            by_node = [of.get(host, "") for host in self.hosts]
            yield kind, [by_node[node] for node in nodes]


def filled(
    hosts: Sequence[str],
    slots: Sequence[int],
    *,
    world: int,
    levels: Mapping[str, Mapping[str, str]] | None = None,
) -> Placement:
    """Ranks placed as launchers do it: one machine after the other, each up to its slots.

    Errors: LayoutError for fewer slots than ranks, and for unused machines; the fixes are
    numbers of nodes.
    """
    total = sum(slots)
    even = slots[0] if slots and len(set(slots)) == 1 else None
    facts = {"world": world, "hosts": len(hosts), "slots": total}
    fixes = [{"nodes": len(hosts), "gpus_per_node": even}] if even else []
    have = "the host has" if len(hosts) == 1 else f"the {len(hosts)} hosts have"
    needed = f"the layout needs {world} GPUs, and {have} {total}"
    if total < world:
        raise refusal("too-few-hosts", "hosts", *fixes, sentence=needed, **facts)
    nodes = np.repeat(np.arange(len(hosts)), slots)
    used = int(nodes[world - 1]) + 1
    if used < len(hosts):
        spare, first = len(hosts) - used, quoted(hosts[used])
        left = f"the host {first} is" if spare == 1 else f"{spare} hosts from {first} on are"
        facts |= {"spare": spare}
        sentence = f"{needed}: {left} left over"
        raise refusal("too-many-hosts-for-job", "hosts", *fixes, sentence=sentence, **facts)
    return Placement(tuple(hosts), nodes[:world], levels or {})
