"""Assigns machines to a job's ranks, and groups them by rack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from groups.errors import quoted
from groups.placement import Placement, filled

from ..errors import refusal
from .crossings import Levels, key_of
from .hosts import Hosts, LevelPlaces, slots_unknown


def placement_of(hosts: Hosts, world: int, gpus_per_node: int | None = None) -> Placement:
    """The machine of every rank: as the text lists it rank by rank, else filled in order.

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
        sentence = f"the layout needs {world} GPUs, and the text places {total} ranks"
        facts = {"world": world, "hosts": len(hosts.names), "slots": total, "spare": 0}
        raise refusal(code, "hosts", sentence=sentence, **facts)
    slots = hosts.require_slots(gpus_per_node)
    placement = filled(hosts.names, slots, world=world, levels=hosts.levels)
    return replace(placement, devices=hosts.devices)


def even_slots(hosts: Hosts, gpus_per_node: int | None = None) -> int:
    """GPUs of every machine, if all have the same; by default the requested number.

    Errors: LayoutError for machines with different numbers, and where nobody says any.
    """
    counts = {name: slots for name, slots in hosts.slots.items() if slots is not None}
    least, most = min(counts.values(), default=gpus_per_node), max(counts.values(), default=0)
    if least is None:
        raise slots_unknown(hosts.names)
    if counts and least < most:
        few = next(name for name, slots in counts.items() if slots < most)
        facts = {"host": quoted(few), "slots": counts[few], "most": most, "least": least}
        raise refusal("uneven-slots", "hosts", {"gpus_per_node": least}, **facts)
    return least


# -- racks side by side ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Upper:
    """One kind of place above the racks, and the groups that span several of them."""

    kind: str
    key: tuple[int, ...]  # a number for each level of the objective, as `BetterOrder.key`
    key_before: tuple[int, ...]


def arranged(
    hosts: tuple[str, ...],
    racks_before: np.ndarray,
    chosen: np.ndarray,
    above: LevelPlaces,
    levels: Levels,
) -> tuple[tuple[str, ...], tuple[Upper, ...]]:
    """The machines by the racks of the places, and the gain above the racks.

    racks_before, chosen: the rack of each place, before and after. Racks of one size are
    interchangeable, so that those of one spine, pod or block can be put side by side without any
    group crossing one more rack. The order that moves least stays where no other is better above.
    """
    places = [*above.values()]

    def keys(names: Sequence[str]) -> list[tuple[int, ...]]:
        """For each kind of place the groups that span several of them."""
        rows = ([of.get(host, f"only {host}") for host in names] for of in places)
        return [key_of(levels, numbered(row)) for row in rows]

    tries = [hosts if (racks_before == chosen).all() else _placed(hosts, racks_before, chosen, [])]
    tries += (_placed(hosts, racks_before, chosen, places[:n]) for n in range(len(places), 0, -1))
    best = min(tries, key=keys)
    return best, tuple(map(Upper, above, keys(best), keys(hosts)))


def numbered(places: Sequence[str]) -> np.ndarray:
    """The places, numbered in the order of their first occurrence."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(place, len(number)) for place in places])


def _placed(
    hosts: Sequence[str],
    racks_before: np.ndarray,
    chosen: np.ndarray,
    above: Sequence[Mapping[str, str]],
) -> tuple[str, ...]:
    """The machines by the racks of the places; those of a rank keep their order.

    Each rack takes the places that begin where it began; those of one place above stand together.
    """
    inside: dict[int, list[str]] = {}
    for host, rack in zip(hosts, racks_before.tolist()):
        inside.setdefault(rack, []).append(host)
    first: dict[tuple[str, ...], int] = {}  # the number of each place above, as they first come
    standing = {}
    for rack, names in inside.items():
        path = tuple(of.get(names[-1], names[-1]) for of in reversed(above))
        ends = range(1, len(path) + 1)
        standing[rack] = [first.setdefault(path[:end], len(first)) for end in ends]
    after = dict.fromkeys(chosen.tolist())
    sizes = np.bincount(racks_before)
    taken: dict[int, Iterator[str]] = {}
    for size in set(sizes.tolist()):
        alike = sorted((rack for rack in inside if sizes[rack] == size), key=standing.__getitem__)
        wanted = (rack for rack in after if sizes[rack] == size)
        taken |= {rack: iter(inside[other]) for rack, other in zip(wanted, alike)}
    return tuple(next(taken[rack]) for rack in chosen.tolist())
