"""What a text says about machines: their names in rank order, their slots, what they stand in.

A `Level` is one kind of place above the machine (a rack, a leaf switch, a block, an NVLink domain),
the closest first. Nothing is guessed: a machine that the text puts nowhere is in no level, slots
that it does not say are None, and what a reader should know beside the answer is a `Remark`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from groups.errors import LayoutError, quoted

MAX_HOSTS = 131_072
"""Machines that one text may name: a million GPUs, eight to a machine."""

LONGEST_TEXT = 4_000_000
"""Characters of a text: MAX_HOSTS lines of thirty."""


@dataclass(frozen=True)
class Level:
    """One kind of place above the machine, and where in it each machine stands.

    kind: "rack", "switch", "block", "domain" (NVLink), "partition" (of such a domain), or the
    source's own word ("subblock", "layer-2" ...).
    """

    kind: str
    of: Mapping[str, str]  # machine -> name of its place


@dataclass(frozen=True)
class Remark:
    """Something to know beside the answer, in words by its code (texts/hosts.txt)."""

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Hosts:
    """The machines of a text.

    names: in rank order, each once. slots: processes of each, None where the text does not say.
    levels: closest first. ranks: the machine of every rank, where the text says it rank by rank.
    max_slots: where a host file limits them. devices: GPUs of each that a filter leaves. node: what
    stands inside a machine, where that is what the text says.

    >>> hosts = Hosts("plain", ("a", "b"), levels=(Level("rack", {"a": "r0", "b": "r1"}),))
    >>> hosts.names, hosts.racks, hosts.slots
    (('a', 'b'), {'a': 'r0', 'b': 'r1'}, {'a': None, 'b': None})
    """

    form: str
    names: tuple[str, ...]
    slots: Mapping[str, int | None] = field(default_factory=dict)
    levels: tuple[Level, ...] = ()
    ranks: tuple[str, ...] = ()
    max_slots: Mapping[str, int] = field(default_factory=dict)
    devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    block_sizes: tuple[int, ...] = ()  # planning sizes of Slurm, in machines
    remarks: tuple[Remark, ...] = ()
    node: Any = None  # a `node.Node`

    def __post_init__(self) -> None:
        slots = {name: self.slots.get(name) for name in self.names}
        object.__setattr__(self, "slots", slots)

    def level(self, *kinds: str) -> dict[str, str]:
        """Machine -> place, of the first of these kinds of level that the text has; else empty."""
        for kind in kinds:
            for one in self.levels:
                if one.kind == kind:
                    return dict(one.of)
        return {}

    @property
    def racks(self) -> dict[str, str]:
        """Machine -> rack: the closest place that is no part of an NVLink domain, else the domain.

        A leaf switch may be a rack, a rail group or a scalable unit: a text cannot say which.
        """
        above = [one for one in self.levels if one.kind not in ("partition", "domain")]
        closest = above or self.levels
        return dict(closest[0].of) if closest else {}

    @property
    def above_racks(self) -> tuple[Level, ...]:
        """What the racks stand in: spines, pods, blocks; closest first."""
        levels = [one for one in self.levels if one.kind not in ("partition", "domain")]
        return tuple(levels[1:])

    @property
    def domains(self) -> dict[str, str]:
        """Machine -> NVLink domain, where the text says it; a block of Slurm's is one by custom."""
        return self.level("partition", "domain", "subblock", "block")

    def with_places(self, other: Hosts) -> Hosts:
        """These machines, standing where another text says; its other machines are left out.

        >>> hosts = Hosts("plain", ("b",))
        >>> hosts.with_places(Hosts("tree", ("a", "b"), levels=(Level("rack", {"b": "r"}),))).racks
        {'b': 'r'}
        """
        named = set(self.names)
        levels = (
            Level(one.kind, {host: place for host, place in one.of.items() if host in named})
            for one in other.levels
        )
        kept = tuple(one for one in levels if one.of)
        return replace(self, levels=(*self.levels, *kept), remarks=(*self.remarks, *other.remarks))


# -- refusals --------------------------------------------------------------------------------------


def bad_line(line: str, number: int, form: str, why: str = "") -> LayoutError:
    """A line that does not fit the form that the text has."""
    return LayoutError(
        "bad-host-line",
        f"line {number} {quoted(line.strip())} does not fit a text of {form}",
        why=why,
        control="hosts",
        facts={"line": number, "value": quoted(line.strip()), "form": form},
    )


def too_many_hosts(count: int, value: object) -> LayoutError:
    many = count if count < 10**15 else quoted(count)
    return LayoutError(
        "too-many-hosts",
        f"{quoted(value)} names {many if many != count else f'{count:,}'} machines, "
        f"more than {MAX_HOSTS:,}",
        control="hosts",
        facts={"value": quoted(value), "count": many, "limit": MAX_HOSTS},
    )


def host_twice(host: str, why: str) -> LayoutError:
    return LayoutError(
        "host-twice",
        f"the host {quoted(host)} is named twice",
        why=why,
        control="hosts",
        alternatives=[{"form": "openmpi"}],
        facts={"host": quoted(host)},
    )


def no_hosts(what: str = "a host") -> LayoutError:
    return LayoutError(
        "no-hosts",
        f"the text names no {what.removeprefix('a ')}",
        why="paste a host file, a Slurm host list or topology, or what a cloud says of its nodes",
        control="hosts",
    )


def bad_document(what: str) -> LayoutError:
    return LayoutError(
        "bad-host-document",
        f"the document cannot be read: {what}",
        control="hosts",
        facts={"what": what},
    )


def once(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in the order in which it first comes."""
    found = tuple(dict.fromkeys(names))
    if len(found) > MAX_HOSTS:
        raise too_many_hosts(len(found), found[0])
    return found
