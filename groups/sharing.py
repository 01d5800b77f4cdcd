"""From ranks to groups: which kinds of group some ranks share, smallest group first.

Ranks that hang or crawl together usually wait in one group: the smallest group that has them all is
the first suspect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .errors import LayoutError, quoted, refusal
from .grouping import Grouping

MOST_RANKS = 4096
"""Ranks that one question may name."""

LONGEST_TEXT = 1_000_000

_PART = re.compile(r"([0-9]{1,9})(?:\s*(?:-|–|\.\.)\s*([0-9]{1,9}))?", re.ASCII)


@dataclass(frozen=True)
class SharedGroups:
    """One group that has all the ranks asked about; ``names`` are all names of this very group."""

    names: tuple[str, ...]
    indices: tuple[int, ...]  # of the group under each name
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class SplitGroups:
    """A name under which the ranks asked about fall into several groups, or some into none."""

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
    ranges = list(_ranges(text))
    if not ranges:
        raise bad_ranks(text)
    for first, last in ranges:
        require_ranks(last, world_size)
        if last < first:
            raise bad_ranks(f"{first}-{last}")
    if sum(last - first + 1 for first, last in ranges) > MOST_RANKS:
        raise refusal("too-many-ranks-named", "ranks", limit=MOST_RANKS)
    return tuple(sorted({rank for first, last in ranges for rank in range(first, last + 1)}))


def require_ranks(last: int, world_size: int) -> None:
    """Refuse a rank that the world does not have."""
    if last >= world_size:
        raise refusal("no-such-rank", "ranks", rank=last, first=0, last=world_size - 1)


def shared_groups(
    groupings: Iterable[Grouping], ranks: Sequence[int]
) -> tuple[list[SharedGroups], list[SplitGroups]]:
    """Groups that have all of ``ranks``, smallest first; and the names under which they part.

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


def _ranges(text: str) -> Iterable[tuple[int, int]]:
    """First and last of each number or range in a list; anything else is refused."""
    spaced = " ".join(text.strip(" \t\r\n[]()").split())  # else the next takes quadratic time
    for part in re.split(r"[\s,;]+", re.sub(r" ?(-|–|\.\.) ?", r"\1", spaced)):
        match = _PART.fullmatch(part)
        if not match:
            raise bad_ranks(part)
        yield int(match[1]), int(match[2] or match[1])


def bad_ranks(part: object) -> LayoutError:
    return refusal("bad-ranks", "ranks", value=quoted(part))
