"""The machines of a text: names in rank order, slots, and places.

Levels are kinds of places above the machine, the closest first: "rack", "switch", "block", "domain"
(NVLink), "partition" (of such a domain), or the source's own word ("subblock", "layer-2" ...).
Nothing is guessed: a machine that the text puts nowhere is in no level, slots that it does not say
are None, and what a reader should know beside the answer is a `Note`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from groups.errors import LayoutError, quoted
from groups.mesh import MAX_RANKS, too_many_ranks
from groups.notes import Note

from ..errors import refusal
from .inside import Node

MAX_HOSTS = 131_072
"""The most machines of one text: a million GPUs, eight per machine."""

NAMELESS = "node-0"
"""The name of a machine whose text has none."""

HOST_NAME = re.compile(r"\w[\w.:@%-]*")
"""A name that is a single word to a shell, an option, a host file and a CSV. A colon and a percent
sign occur in IPv6 addresses."""

LevelPlaces = Mapping[str, Mapping[str, str]]
"""Kind of place -> machine -> name of its place."""


@dataclass(frozen=True)
class Hosts:
    """The machines of a text, at least one; each has slots if any has.

    >>> hosts = Hosts("plain", ("a", "b"), levels={"rack": {"a": "r0", "b": "r1"}})
    >>> hosts.names, hosts.racks, hosts.slots
    (('a', 'b'), {'a': 'r0', 'b': 'r1'}, {'a': None, 'b': None})

    Errors: LayoutError for none, more than MAX_HOSTS, one of no slots, more slots than MAX_RANKS,
    and for a name that a shell or a host file would read as something else.
    """

    form: str
    names: tuple[str, ...]  # in rank order, each once
    slots: Mapping[str, int | None] = field(default_factory=dict)  # None: the text does not say
    levels: LevelPlaces = field(default_factory=dict)  # closest first
    ranks: tuple[str, ...] = ()  # the machine of every rank, where the text says it rank by rank
    devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # that a filter leaves
    remarks: tuple[Note, ...] = ()
    node: Node | None = None  # the inside of one, where the text is that

    def __post_init__(self) -> None:
        if not self.names:
            raise no_hosts()
        require_count(len(self.names), self.names[0])
        strange = next((name for name in self.names if not HOST_NAME.fullmatch(str(name))), None)
        if strange is not None:
            reason = no_name()
            facts = {"because": reason.code, "reason": reason.what, "host": quoted(strange)}
            raise refusal("bad-host-name", "hosts", **facts)
        slots = {name: self.slots.get(name) for name in self.names}
        if 0 in slots.values():
            empty = next(name for name, count in slots.items() if count == 0)
            raise refusal("host-without-slots", "hosts", host=quoted(empty))
        if (total := sum(filter(None, slots.values()))) > MAX_RANKS:
            raise too_many_ranks(total, "hosts")
        object.__setattr__(self, "slots", slots)

    def level(self, *kinds: str) -> dict[str, str]:
        """Machine -> place, for the first of these kinds of level that the text has; else empty."""
        return next((dict(self.levels[kind]) for kind in kinds if kind in self.levels), {})

    @property
    def racks(self) -> dict[str, str]:
        """Machine -> rack: the closest place that is not part of an NVLink domain, else the domain.

        A leaf switch may be a rack, a rail group or a scalable unit: a text cannot say which.
        """
        return self.level(*self._outside, *self.levels)

    @property
    def above_racks(self) -> LevelPlaces:
        """The places above the racks: spines, pods, blocks; closest first."""
        return {kind: self.levels[kind] for kind in self._outside[1:]}

    @property
    def _outside(self) -> list[str]:
        return [kind for kind in self.levels if kind not in ("partition", "domain")]

    @property
    def domains(self) -> dict[str, str]:
        """Machine -> NVLink domain, if the text has it; a block of Slurm's is one by convention."""
        return self.level("partition", "domain", "subblock", "block")

    def with_places(self, other: Hosts) -> Hosts:
        """These machines with the places of another text; its other machines are left out.

        >>> hosts = Hosts("plain", ("b",))
        >>> hosts.with_places(Hosts("tree", ("a", "b"), levels={"rack": {"b": "r"}})).racks
        {'b': 'r'}
        """
        named, levels = set(self.names), dict(self.levels)
        for kind, of in other.levels.items():
            if stand := {host: place for host, place in of.items() if host in named}:
                levels[kind] = {**levels.get(kind, {}), **stand}
        return replace(self, levels=levels, remarks=(*self.remarks, *other.remarks))

    def require_slots(self, default: int | None = None) -> list[int]:
        """The slots of each machine; default: if the text has none.

        Errors: LayoutError where nobody says them.
        """
        unknown = [name for name, slots in self.slots.items() if slots is None]
        if unknown and default is None:
            raise slots_unknown(unknown)
        return [slots or default or 0 for slots in self.slots.values()]


# -- refusals --------------------------------------------------------------------------------------


def require_count(count: int, value: object, limit: int = MAX_HOSTS, why: str = "") -> None:
    """Errors: LayoutError for more machines than the limit."""
    if count > limit:
        named = f"{count:,}" if count < 10**15 else quoted(count)
        facts = {"value": quoted(value), "count": count if count < 10**15 else named}
        sentence = f"{quoted(value)} names {named} machines, more than {limit:,}"
        raise refusal("too-many-hosts", "hosts", sentence=sentence, why=why, **facts, limit=limit)


def host_twice(host: str, why: str) -> LayoutError:
    return refusal("host-twice", "hosts", why=why, host=quoted(host))


def no_hosts() -> LayoutError:
    return refusal("no-hosts", "hosts")


def no_name() -> LayoutError:
    """The refusal of a word that is no host name."""
    return refusal("line-name", "hosts")


def slots_unknown(names: Sequence[str]) -> LayoutError:
    return refusal("slots-unknown", "gpus_per_node", host=quoted(names[0]), count=len(names))
