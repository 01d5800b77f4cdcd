"""Which groups fit into a node, or into an NVLink domain of some size, and which cross its border.

A group crosses where its members stand in more than one domain of so many consecutive ranks. That
hurts most where the group waits for each message (tp and ep, several times a layer), and least
where much computation hides it (dp, once a step).

A domain is so many consecutive ranks, or a level of places of any sizes (racks, switches), given as
the place of every rank: `placement.Placement.of_ranks`.

Another order numbers the same GPUs differently: a kind keeps its number and size of groups, but not
their members. Where every group of a kind is the same set of ranks, nothing has moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .grouping import SMALL, Grouping, Groups
from .mesh import whole_number
from .placement import distinct, node_of, nodes_spanned

DOMAINS = (4, 8, 16, 32, 72)
"""GPUs that one NVLink domain may have: half a node, a node, two, four, and a GB200 NVL72 rack."""

LATENCY_BOUND = (
    *("tp", "ep", "etp", "tp-ep", "egtp", "gtp"),
    *("attention_tp", "moe_ep", "moe_tp"),  # of servers
)
"""Groups that the next layer waits for: they want to stay inside one NVLink domain."""


@dataclass(frozen=True)
class Span:
    """How the groups of one name stand on domains of one size, or on the places of a level.

    domain: GPUs of a domain; of the largest place where they differ.
    """

    name: str
    size: int  # ranks of a group, of the largest where they differ
    domain: int
    groups: int
    crossing: int  # groups on more than one domain
    most: int  # domains of the widest group
    level: str = ""  # "rack", "switch" ...; empty: domains of so many consecutive ranks
    widest: int = 0  # the number of a group on most domains

    @property
    def is_slow(self) -> bool:
        """Whether a group that is waited for leaves its domain."""
        return self.crossing > 0 and self.name in LATENCY_BOUND


def spans_of(grouping: Grouping, domain: int | np.ndarray) -> np.ndarray:
    """On how many domains each group stands: int64, shape (num_groups,).

    domain: consecutive ranks of one, or the place of every rank, shape (world,).

    >>> from groups import parse_mesh
    >>> spans_of(Grouping("dp", parse_mesh("tp2-dp4"), "dp"), domain=4).tolist()
    [2, 2]
    >>> racks = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    >>> spans_of(Grouping("tp", parse_mesh("tp4-dp2"), "tp"), racks).tolist()
    [1, 2]
    """
    is_size = not isinstance(domain, np.ndarray)
    if is_size and grouping.is_plain and grouping.world_size > SMALL:
        return _translated(grouping, whole_number(domain, "domain"))
    return spans_of_groups(grouping.groups(), domain)


def spans_of_groups(groups: Groups, domain: int | np.ndarray) -> np.ndarray:
    """The same of groups that are made already, or of some of them.

    >>> spans_of_groups(np.array([[0, 2], [4, 6]]), domain=4).tolist()
    [1, 1]
    """

    def places(ranks: np.ndarray | list[int]) -> np.ndarray:
        return domain[ranks] if isinstance(domain, np.ndarray) else node_of(ranks, domain)

    if isinstance(groups, np.ndarray):
        return distinct(places(groups))
    return np.array([len(np.unique(places(ranks))) for ranks in groups])


def _translated(grouping: Grouping, domain: int) -> np.ndarray:
    """The same without the groups: all groups of a mesh are group 0, moved to another first rank.

    So how many domains a group stands on depends only on where in a domain it starts.
    """
    offsets = grouping.members(grouping.mesh.offset) - grouping.mesh.offset
    starts = grouping.firsts() % domain
    distinct_starts = np.flatnonzero(np.bincount(starts))
    spans = np.zeros(distinct_starts[-1] + 1, dtype=np.int64)
    spans[distinct_starts] = nodes_spanned(distinct_starts[:, None] + offsets, domain)
    return spans[starts]


def span(grouping: Grouping, domain: int | np.ndarray, level: str = "") -> Span:
    """How many domains the groups of a kind span: nodes of a size, or places of a named level.

    >>> from groups import parse_mesh
    >>> tensor = span(Grouping("tp", parse_mesh("tp8-dp2"), "tp"), domain=4)
    >>> tensor.crossing, tensor.most, tensor.is_slow
    (2, 2, True)
    """
    size = int(np.bincount(domain).max()) if isinstance(domain, np.ndarray) else domain
    return _summed(grouping, spans_of(grouping, domain), size, level)


def spans_by_size(grouping: Grouping, domains: Sequence[int]) -> list[Span]:
    """The same on domains of each of these sizes.

    >>> from groups import parse_mesh
    >>> tensor = Grouping("tp", parse_mesh("tp8-dp2"), "tp")
    >>> [span.most for span in spans_by_size(tensor, (4, 8))]
    [2, 1]
    """
    groups = grouping.groups() if grouping.world_size <= SMALL else None
    if not isinstance(groups, np.ndarray):
        return [span(grouping, size) for size in domains]
    sizes = [whole_number(size, "domain") for size in domains]
    places = groups // np.array(sizes)[:, None, None]
    return [_summed(grouping, *of_size) for of_size in zip(distinct(places), sizes)]


def _summed(grouping: Grouping, spans: np.ndarray, domain: int, level: str = "") -> Span:
    return Span(
        name=grouping.name,
        size=grouping.size,
        domain=domain,
        groups=len(spans),
        crossing=int(np.count_nonzero(spans > 1)),
        most=int(spans.max()),
        level=level,
        widest=int(spans.argmax()),
    )


def audit(
    groupings: Iterable[Grouping],
    domains: Iterable[int],
    levels: Mapping[str, np.ndarray] | None = None,
) -> list[list[Span]]:
    """One row a grouping, one column a domain size, then one a level; no groups of one rank.

    levels: by name ("rack", "switch" ...) the place of every rank.
    """
    sizes, named = tuple(domains), (levels or {}).items()
    return [
        spans_by_size(grouping, sizes) + [span(grouping, of, name) for name, of in named]
        for grouping in groupings
        if grouping.size > 1
    ]


# -- what another order changes --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Move:
    """One name under two orders."""

    name: str
    moved: np.ndarray  # bool, shape (world_size,): ranks whose group has other members
    crossing_before: int  # groups on more than one node
    crossing_after: int
    groups: int

    @property
    def ranks(self) -> int:
        return int(np.count_nonzero(self.moved))


def moved_ranks(before: Grouping, after: Grouping) -> np.ndarray:
    """Whether each rank's group has other members than before: bool, shape (world_size,).

    >>> from groups import parse_mesh
    >>> before, after = parse_mesh("tp2-dp2-pp2"), parse_mesh("tp2-pp2-dp2")
    >>> [bool(moved_ranks(Grouping(kind, before, kind), Grouping(kind, after, kind)).any())
    ...  for kind in ("dp", "tp")]
    [True, False]
    """
    index = after.index()
    sizes = np.bincount(index[index >= 0], minlength=1)
    moved = index >= 0  # a rank that joins a group has moved, unless its group was the same
    groups = before.groups()
    rows = [groups] if isinstance(groups, np.ndarray) else [np.array([group]) for group in groups]
    for ranks in rows:
        there = index[ranks]
        same = (there == there[:, :1]).all(axis=1) & (there[:, 0] >= 0)
        same &= sizes[there[:, 0]] == ranks.shape[1]
        moved[ranks] = ~same[:, None]
    return moved


def moves(
    before: Mapping[str, Grouping], after: Mapping[str, Grouping], gpus_per_node: int
) -> list[Move]:
    """One move a name that both have, in the order of ``after``; no groups of one rank."""
    rows = []
    for name, now in after.items():
        if name in before and now.size > 1:
            then = before[name]
            left, leave = (span(grouping, gpus_per_node).crossing for grouping in (then, now))
            rows.append(Move(name, moved_ranks(then, now), left, leave, now.num_groups))
    return rows
