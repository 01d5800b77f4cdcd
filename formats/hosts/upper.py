"""Racks in the places of an order: which of them are next to each other, for what stands above.

An order gives each place of the job a rack. Racks of one size are interchangeable, so that those of
one spine, pod or block can be put side by side without any group crossing one more rack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .crossings import KindCrossings, key_of
from .values import LevelPlaces


@dataclass(frozen=True)
class Upper:
    """One kind of place above the racks, and the groups in more than one of them."""

    kind: str
    key: tuple[int, ...]  # a number for each level of the objective, as `BetterOrder.key`
    key_before: tuple[int, ...]


def arranged(
    hosts: tuple[str, ...],
    given: np.ndarray,
    chosen: np.ndarray,
    above: LevelPlaces,
    levels: Sequence[Sequence[KindCrossings]],
) -> tuple[tuple[str, ...], tuple[Upper, ...]]:
    """The machines by the racks of the places, and what that is worth above the racks.

    given, chosen: the rack of each place, before and after. The order that moves least stays where
    no other is better above.
    """
    places = [*above.values()]

    def keys(names: Sequence[str]) -> list[tuple[int, ...]]:
        """For each kind of place the groups that stand in several of them."""
        rows = ([of.get(host, f"only {host}") for host in names] for of in places)
        return [key_of(levels, numbered(row)) for row in rows]

    tries = [hosts if (given == chosen).all() else _placed(hosts, given, chosen, {})]
    for count in range(len(places), 0, -1):
        parents = {
            rack: tuple(of.get(host, host) for of in reversed(places[:count]))
            for host, rack in zip(hosts, given.tolist())
        }
        tries.append(_placed(hosts, given, chosen, parents))
    best = min(tries, key=keys)
    return best, tuple(map(Upper, above, keys(best), keys(hosts)))


def numbered(places: Sequence[str]) -> np.ndarray:
    """The places, each by its number as they first come."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(place, len(number)) for place in places])


def _placed(
    hosts: Sequence[str],
    given: np.ndarray,
    chosen: np.ndarray,
    parents: Mapping[int, tuple[str, ...]],
) -> tuple[str, ...]:
    """The machines by the racks of the places: those of a rack keep their order.

    Each rack takes the places that begin where it began; with parents, those of one stand together.
    """
    before, after = (list(dict.fromkeys(racks.tolist())) for racks in (given, chosen))
    first: dict[tuple[str, ...], int] = {}  # the number of each place above, as they first come
    above = {
        rack: [
            first.setdefault(parents[rack][: depth + 1], len(first))
            for depth in range(len(parents.get(rack, ())))
        ]
        for rack in before
    }
    sizes = np.bincount(given)
    stands: dict[int, int] = {}
    for size in set(sizes.tolist()):
        alike = sorted((rack for rack in before if sizes[rack] == size), key=above.__getitem__)
        stands |= zip((rack for rack in after if sizes[rack] == size), alike)
    inside: dict[int, list[str]] = {}
    for host, rack in zip(hosts, given.tolist()):
        inside.setdefault(rack, []).append(host)
    left = {rack: iter(names) for rack, names in inside.items()}
    return tuple(next(left[stands[rack]]) for rack in chosen.tolist())
