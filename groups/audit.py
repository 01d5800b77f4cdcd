"""Which groups fit into a node or an NVLink domain, and which cross its border.

A group crosses a border if its members are in more than one domain. That costs most where the next
layer waits for every message (tp and ep, several times a layer), and least where much computation
hides it (dp, once a step).

A domain is either a run of consecutive ranks, or a place of a level (racks, switches) of any size,
given as the place of every rank: `placement.Placement.of_ranks`.

Another order numbers the same GPUs differently: a kind keeps its number and size of groups, but not
their members. If every group of a kind has the same set of ranks as before, nothing has moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .grouping import SMALL, Grouping, Groups
from .mesh import whole_number
from .placement import distinct, node_of, nodes_spanned

DOMAINS = (4, 8, 16, 32, 72)
"""Sizes of an NVLink domain, in GPUs: half a node, a node, two, four, and a GB200 NVL72 rack."""

LATENCY_BOUND = (
    *("tp", "ep", "etp", "tp-ep", "egtp", "gtp"),
    *("attention_tp", "moe_ep", "moe_tp"),  # of servers
)
"""Kinds that the next layer waits for: they should stay inside one NVLink domain."""


@dataclass(frozen=True)
class Span:
    """How the groups of one kind span domains of one size, or the places of a topology level.

    domain: number of GPUs in a domain; in the largest one, if places differ in size.
    """

    name: str
    size: int  # ranks of a group; of the largest, if sizes differ
    domain: int
    groups: int
    crossing: int  # groups on more than one domain
    most: int  # domains of the widest group
    level: str = ""  # "rack", "switch" ...; empty: domains of consecutive ranks
    widest: int = 0  # index of a group that spans the most domains

    @property
    def is_slow(self) -> bool:
        """Whether a latency-bound group crosses a domain's border."""
        return self.crossing > 0 and self.name in LATENCY_BOUND


def spans_of(grouping: Grouping, domain: int | np.ndarray) -> np.ndarray:
    """The number of domains that each group spans: int64, shape (num_groups,).

    domain: the number of consecutive ranks in a domain, or the place of every rank, shape (world,).

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
    """The number of domains that each of the given groups spans: int64, shape (num_groups,).

    >>> spans_of_groups(np.array([[0, 2], [4, 6]]), domain=4).tolist()
    [1, 1]
    """

    def places(ranks: np.ndarray | list[int]) -> np.ndarray:
        return domain[ranks] if isinstance(domain, np.ndarray) else node_of(ranks, domain)

    if isinstance(groups, np.ndarray):
        return distinct(places(groups))
    return np.array([len(np.unique(places(ranks))) for ranks in groups])


def _translated(grouping: Grouping, domain: int) -> np.ndarray:
    """`spans_of` without making the groups: every group is a translation of group 0.

    The number of domains that a group spans depends only on where in a domain it starts.
    """
    offsets = grouping.members(grouping.mesh.offset) - grouping.mesh.offset
    starts = grouping.firsts() % domain
    distinct_starts = np.flatnonzero(np.bincount(starts))
    spans = np.zeros(distinct_starts[-1] + 1, dtype=np.int64)
    spans[distinct_starts] = nodes_spanned(distinct_starts[:, None] + offsets, domain)
    return spans[starts]


def span(grouping: Grouping, domain: int | np.ndarray, level: str = "") -> Span:
    """How many domains the groups of a kind span; level: the topology level, if not nodes.

    >>> from groups import parse_mesh
    >>> tensor = span(Grouping("tp", parse_mesh("tp8-dp2"), "tp"), domain=4)
    >>> tensor.crossing, tensor.most, tensor.is_slow
    (2, 2, True)
    """
    size = int(np.bincount(domain).max()) if isinstance(domain, np.ndarray) else domain
    return _summed(grouping, spans_of(grouping, domain), size, level)


def spans_by_size(grouping: Grouping, domains: Sequence[int]) -> list[Span]:
    """`span` for domains of each size.

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
    """A row for each grouping of more than one rank: its spans for each domain size, then for each
    level.

    levels: the place of every rank, by name of the level ("rack", "switch" ...).
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
    """How one kind of group changes from one order of the axes to another."""

    name: str
    moved: np.ndarray  # bool, shape (world_size,): ranks whose group has other members
    crossing_before: int  # groups on more than one node
    crossing_after: int
    groups: int

    @property
    def ranks(self) -> int:
        return int(np.count_nonzero(self.moved))


def moved_ranks(before: Grouping, after: Grouping) -> np.ndarray:
    """Whether the members of each rank's group changed: bool, shape (world_size,).

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
    """A `Move` for each kind that both orders have, in the order of ``after``; kinds whose groups
    have a single rank are left out."""
    rows = []
    for name, now in after.items():
        if name in before and now.size > 1:
            then = before[name]
            left, leave = (span(grouping, gpus_per_node).crossing for grouping in (then, now))
            rows.append(Move(name, moved_ranks(then, now), left, leave, now.num_groups))
    return rows
