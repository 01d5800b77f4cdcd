"""A group by name: a request to a mesh, and how its answer is cut, thinned or joined.

Most of Megatron's groups are one kind of one mesh. The others are made from such groups, whose
members are counted from place 0 in mesh order:

    cut      places p in runs of ``length``, ``stride`` places apart (hierarchical context parallel
             levels, optimizer instances; the last run is short if the length does not divide)
    thinned  only some ``places`` take part, the other ranks are in no such group (embeddings)
    joined   so many consecutive groups become one (all ranks of an optimizer instance)

so one small value says everything, to the maths, to the pictures and to the page's own script.

Ranks that hang or crawl together usually wait in one group: the smallest group that has them all is
the first suspect (`shared_groups`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .errors import LayoutError, quoted, refusal
from .mesh import Mesh, group_index, group_of, index_of, rank_groups

SMALL = 2048
"""Ranks up to which looking at every group is quicker than a short cut."""

Groups = np.ndarray | list[list[int]]
"""Ranks, shape (num_groups, group_size); lists where the groups differ in size."""


@dataclass(frozen=True)
class Grouping:
    """All groups of one name over the ranks of a mesh.

    >>> from groups import parse_mesh
    >>> mesh = parse_mesh("tp2-cp4")
    >>> Grouping("cp", mesh, "cp").groups().tolist()
    [[0, 2, 4, 6], [1, 3, 5, 7]]
    >>> Grouping("hcp-l1", mesh, "cp", length=2, stride=2).groups().tolist()
    [[0, 4], [2, 6], [1, 5], [3, 7]]
    >>> Grouping("first", mesh, "cp", places=(0,)).groups().tolist()
    [[0], [1]]
    """

    name: str
    mesh: Mesh
    kind: str  # axes of the mesh joined by dashes
    length: int = 0  # members of a group after cutting; 0: not cut
    stride: int = 1
    places: tuple[int, ...] = ()  # the coordinates that take part; empty: all
    joined: int = 1

    @cached_property
    def axes(self) -> tuple[str, ...]:
        return self.mesh.axes_of(self.kind)

    @property
    def world_size(self) -> int:
        return self.mesh.world_size

    @cached_property
    def whole(self) -> int:
        """Number of ranks in one group of the kind, before it is cut, thinned or joined."""
        return math.prod(map(self.mesh.size, self.axes))

    @property
    def pieces(self) -> int:
        """Number of pieces that one group of the kind is cut into."""
        return -(-self.whole // self.length) if self.length else 1

    @property
    def num_groups(self) -> int:
        return self.world_size // self.whole * self.pieces // self.joined

    @property
    def size(self) -> int:
        """Number of ranks in one group; in the largest, if sizes differ."""
        return len(self.places) or self.length or self.whole * self.joined

    @property
    def is_even(self) -> bool:
        """Whether all groups have the same size."""
        return not self.length or self.whole % (self.length * self.stride) == 0

    @property
    def is_plain(self) -> bool:
        """Whether it is a kind of the mesh as it is: not cut, thinned or joined."""
        return not self.length and not self.places and self.joined == 1

    @property
    def spread(self) -> tuple[tuple[int, int], ...] | None:
        """(stride, ranks) of each run of steps from a member to the next; None if it is not plain.

        Two plain groupings of one world make the same groups exactly if their spreads are equal,
        whatever their axes are called.

        >>> from groups import parse_mesh
        >>> plain(parse_mesh("tp2-cp2-dp4"), "tp-cp").spread
        ((1, 4),)
        >>> plain(parse_mesh("etp1-ep4-edp4"), "ep").spread
        ((1, 4),)
        """
        if not self.is_plain:
            return None
        runs: list[tuple[int, int]] = []
        for name, size, stride in zip(self.mesh.names, self.mesh.sizes, self.mesh.strides):
            if name not in self.axes or size == 1:
                continue
            if runs and runs[-1][0] * runs[-1][1] == stride:
                runs[-1] = (runs[-1][0], runs[-1][1] * size)
            else:
                runs.append((stride, size))
        return tuple(runs)

    def firsts(self) -> np.ndarray:
        """The first rank of each group of the kind: int64, shape (number of such groups,)."""
        first = self.mesh.offset
        return group_of(self.mesh, self._others, first) if self._others else np.array([first])

    def groups(self) -> Groups:
        """All groups, in the order in which Megatron makes them."""
        groups = rank_groups(self.mesh, self.kind)
        if self.places:
            return groups[:, list(self.places)]
        if self.joined > 1:
            return groups.reshape(-1, self.whole * self.joined)
        if not self.length or self.length == self.whole:
            return groups
        if not self.is_even:
            step = self.length
            return [g[at : at + step].tolist() for g in groups for at in range(0, self.whole, step)]
        runs = groups.reshape(-1, self.length, self.stride)
        return runs.transpose(0, 2, 1).reshape(-1, self.length)

    def leading(self, count: int) -> Groups:
        """The first ``count`` groups; for a plain kind the others are not made.

        >>> from groups import parse_mesh
        >>> Grouping("dp", parse_mesh("tp2-dp2-pp2"), "dp").leading(2).tolist()
        [[0, 2], [1, 3]]
        """
        if not self.is_plain or self.world_size <= SMALL:
            return self.groups()[:count]
        first = self.mesh.offset
        return self.firsts()[:count, None] + (self.members(first) - first)

    def index(self) -> np.ndarray:
        """The group of each rank: int64, shape (world_size,); -1 for a rank that is in none."""
        index = group_index(self.mesh, self.kind) // self.joined
        if not (self.places or self.length):
            return index
        # A place counts the swept axes in mesh order: it is the group index of the other axes.
        others = self._others
        place = group_index(self.mesh, others) if others else np.arange(self.world_size)
        if self.places:
            return np.where(np.isin(place, self.places), index, -1)
        return index * self.pieces + self._piece(place)

    def index_of(self, rank: int) -> int | None:
        """The group of one rank, or None if it is in none."""
        index = index_of(self.mesh, self.kind, rank) // self.joined
        if not (self.places or self.length):
            return index
        place = self._place_of(rank)
        if self.places:
            return index if place in self.places else None
        return index * self.pieces + int(self._piece(place))

    def members(self, rank: int) -> np.ndarray:
        """The group of one rank, ascending, without making the others; empty if it is in none.

        >>> from groups import parse_mesh
        >>> Grouping("hcp-l1", parse_mesh("tp2-cp4"), "cp", length=2, stride=2).members(6).tolist()
        [2, 6]
        """
        if self.joined > 1:
            index = index_of(self.mesh, self.kind, rank) // self.joined
            return np.sort(self.groups()[index])
        group = group_of(self.mesh, self.kind, rank)
        if self.is_plain:
            return group
        place = self._place_of(rank)
        if self.places:
            return group[list(self.places)] if place in self.places else group[:0]
        span = self.length * self.stride
        first = place - place % span + place % self.stride
        return group[first : first + span : self.stride]

    def neighbours(self, rank: int) -> tuple[int, int] | None:
        """The previous and next member on the ring of a rank's group; None if it is in no group."""
        ring = self.members(rank).tolist()
        if not ring:
            return None
        place = ring.index(rank)
        return ring[place - 1], ring[(place + 1) % len(ring)]

    @property
    def _others(self) -> str:
        """Name of the axes that the kind does not sweep, joined by dashes."""
        swept = self.axes
        return "-".join(name for name in self.mesh.names if name not in swept)

    def _place_of(self, rank: int) -> int:
        """The index of a rank in its group of the kind."""
        others = self._others
        return index_of(self.mesh, others, rank) if others else rank - self.mesh.offset

    def _piece(self, place: np.ndarray | int) -> np.ndarray | int:
        """The piece of a group that a position in the group falls into."""
        return place // (self.length * self.stride) * self.stride + place % self.stride


def plain(mesh: Mesh, kind: str) -> Grouping:
    """All groups of one kind of a mesh, under the kind's own name."""
    return Grouping(kind, mesh, kind)


# -- the groups that ranks share -----------------------------------------------------------------

MOST_RANKS = 4096
"""Ranks that one question may name."""

LONGEST_TEXT = 1_000_000
"""Characters that name them."""

_PART = re.compile(r"([0-9]{1,9})(?:\s*(?:-|–|\.\.)\s*([0-9]{1,9}))?", re.ASCII)


@dataclass(frozen=True)
class SharedGroups:
    """One group that holds all requested ranks; ``names`` are all names of that group."""

    names: tuple[str, ...]
    indices: tuple[int, ...]  # of the group under each name
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class SplitGroups:
    """A name whose groups separate the requested ranks, or leave some of them out."""

    name: str
    groups: int
    alone: int  # ranks in no group of this name


def parse_ranks(text: str, world_size: int) -> tuple[int, ...]:
    """The ranks of a list such as ``3, 11 19-23``, ascending, each once; logs: `formats.logs`.

    >>> parse_ranks("3, 11, 5-7 3", world_size=16)
    (3, 5, 6, 7, 11)

    Errors: LayoutError that names the part that is no rank, or the ranks that the world lacks.
    """
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise bad_ranks(text)
    spaced = " ".join(text.strip(" \t\r\n[]()").split())  # the next is quadratic otherwise
    parts = re.split(r"[\s,;]+", re.sub(r" ?(-|–|\.\.) ?", r"\1", spaced))
    ranges = []
    for part in parts:
        match = _PART.fullmatch(part)
        if not match:
            raise bad_ranks(part)
        ranges.append((int(match[1]), int(match[2] or match[1])))
    for first, last in ranges:
        require_ranks(last, world_size)
        if last < first:
            raise bad_ranks(f"{first}-{last}")
    if sum(last - first + 1 for first, last in ranges) > MOST_RANKS:
        raise refusal("too-many-ranks-named", "ranks", limit=MOST_RANKS)
    return tuple(sorted({rank for first, last in ranges for rank in range(first, last + 1)}))


def require_ranks(last: int, world_size: int) -> None:
    """Raises LayoutError for a rank outside the world; ``last`` is the largest requested rank."""
    if last >= world_size:
        raise refusal("no-such-rank", "ranks", rank=last, first=0, last=world_size - 1)


def shared_groups(
    groupings: Iterable[Grouping], ranks: Sequence[int]
) -> tuple[list[SharedGroups], list[SplitGroups]]:
    """Groups that hold all of ``ranks``, smallest first; and the names whose groups separate them.

    >>> from groups import parse_mesh
    >>> mesh = parse_mesh("tp2-dp2-pp2")
    >>> kinds = [Grouping(kind, mesh, kind) for kind in ("tp", "dp", "tp-dp", "pp")]
    >>> together, apart = shared_groups(kinds, [0, 1])
    >>> [(group.names, group.ranks) for group in together]
    [(('tp',), (0, 1)), (('tp-dp',), (0, 1, 2, 3))]
    >>> [(kind.name, kind.groups) for kind in apart]
    [('dp', 2), ('pp', 2)]
    """
    names_by_members: dict[tuple[int, ...], list[tuple[str, int]]] = {}
    apart = []
    for grouping in groupings:
        indices = [grouping.index_of(rank) for rank in ranks]
        groups = {index for index in indices if index is not None}
        if len(groups) == 1 and None not in indices:
            members = tuple(grouping.members(ranks[0]).tolist())
            names_by_members.setdefault(members, []).append((grouping.name, groups.pop()))
        else:
            apart.append(SplitGroups(grouping.name, len(groups), indices.count(None)))
    together = [
        SharedGroups(tuple(name for name, _ in names), tuple(index for _, index in names), members)
        for members, names in names_by_members.items()
    ]
    return sorted(together, key=lambda group: len(group.ranks)), apart


def bad_ranks(part: object) -> LayoutError:
    """The refusal of a text that is not a list of ranks."""
    return refusal("bad-ranks", "ranks", value=quoted(part))
