"""The tensors of groups before and after, as scenes: of the group that is watched and of others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from groups.layout import Layout
from groups.placement import nodes_spanned
from render.scenes.exchange import Block, Cell, Exchange, Flow, Member

from ..base.state import State
from .inputs import MOST_MEMBERS, CollectiveSpec, contributors, ranks_of, tensors_of

MOST_GROUPS = 4
"""Groups that are drawn together; and no more ranks than of one large group."""

SUMS = ("all_reduce", "reduce_scatter", "reduce", "sum_at_root")
JOINS = ("all_gather", "gather", "join_at_root")


@dataclass(frozen=True)
class ShownGroup:
    """One group that is drawn: which, its ranks, its tensors."""

    index: int
    ranks: tuple[int, ...]
    exchange: Exchange

    def nodes(self, layout: Layout) -> int:
        return int(nodes_spanned(np.array([self.ranks]), layout.gpus_per_node)[0])


def exchanges(watched: CollectiveSpec, state: State) -> list[ShownGroup]:
    """The group that is watched first, and others beside it if that is asked."""
    before, after = tensors_of(watched)
    who = contributors(watched, before)
    flow = _flow(watched, who)
    groups = []
    for index, ranks in _groups(watched, state):
        if watched.values == "rank" and ranks != watched.members:
            before, after = tensors_of(replace(watched, members=ranks))
        members = tuple(
            Member(rank, _block(tensor, _own(tensor, place)), _block(result, whose))
            for place, (rank, tensor, result, whose) in enumerate(zip(ranks, before, after, who))
        )
        groups.append(ShownGroup(index, ranks, Exchange(members, flow)))
    return groups


def _groups(watched: CollectiveSpec, state: State) -> list[tuple[int, tuple[int, ...]]]:
    """The group that is watched, and after it as many others as there is room for."""
    groups = [(watched.index, watched.members)]
    if state.collective_all in ("1", True):
        room = min(MOST_GROUPS, MOST_MEMBERS // len(watched.members))
        total = watched.grouping.num_groups
        for index in range(total):
            ranks = tuple(ranks_of(watched.grouping, index)[: len(watched.members)].tolist())
            # A group of another size has other tensors; groups differ in size only where cut.
            if index != watched.index and len(ranks) == len(watched.members):
                groups.append((index, ranks))
            if len(groups) >= room:
                break
    return groups


def _block(tensor: np.ndarray, who: np.ndarray) -> Block:
    """A tensor as rows of cells; ``who``: bool, shape (*shape, members)."""
    columns = tensor.shape[-1]
    numbers, whose = tensor.reshape(-1, columns), who.reshape(-1, columns, who.shape[-1])
    return [
        [
            Cell(number_text(value), tuple(np.flatnonzero(places).tolist()))
            for value, places in zip(row, whose_row)
        ]
        for row, whose_row in zip(numbers, whose)
    ]


def _own(tensor: np.ndarray, place: int) -> np.ndarray:
    """Before anything moved, a tensor is its member's alone."""
    who = np.zeros((*tensor.shape, place + 1), dtype=bool)
    who[..., place] = True
    return who


def number_text(value: Any) -> str:
    """
    >>> number_text(12.0), number_text(0.5)
    ('12', '0.5')
    """
    return f"{float(value):g}" if abs(float(value)) < 1e6 else str(int(value))


def _flow(watched: CollectiveSpec, who: list[np.ndarray]) -> Flow:
    """Who sends to whom: a member whose numbers are in another's result, or in its own."""
    pairs = [
        (sender, receiver)
        for receiver, sources in enumerate(who)
        for sender in np.flatnonzero(sources.reshape(-1, sources.shape[-1]).any(axis=0)).tolist()
    ]
    if all(sender == receiver for sender, receiver in pairs):
        return Flow(tuple(pairs))
    moved = [pair for pair in pairs if pair[0] != pair[1]]
    if watched.function in SUMS + JOINS:
        taking = {receiver for _, receiver in moved}
        through = tuple(pair for pair in pairs if pair[1] in taking)
        return Flow(through, "Σ" if watched.function in SUMS else "++")
    return Flow(tuple(moved))
