"""The chain of who waits for whom, on a picture of the GPUs: a colour and a mark a part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from descriptions import RUN, counted
from formats.logs.account import connected, members_of
from formats.logs.model import Log
from groups.grouping import Grouping
from groups.layout import Layout
from render.svg.heat import Heat

COLOURS = ("#e5e7eb", "#8d1c44", "#c2410c", "#f59e0b", "#fbbf24", "#fcd34d", "#fde68a", "#fef3c7")
MARKS = (" ", "✕", "?", "0", "1", "2", "3+", "…")
"""By part: nothing known, culprit, suspect, first group, hops, those that wait in the end."""

FREE, CULPRIT, SUSPECT, FIRST, LATER, END = 0, 1, 2, 3, 6, 7

MOST_CONNECTED = 16_384
"""GPUs of a job up to which all that wait in the end are looked up."""

MOST_MARKED = 64
"""Culprits and suspects that a large picture rings."""


@dataclass(frozen=True, eq=False)
class Chain:
    """The part of every rank in a hang, by COLOURS: int64, shape (world,)."""

    parts: np.ndarray
    marked: tuple[int, ...]


def chain_of(log: Log, layout: Layout, every: Mapping[str, Grouping]) -> Chain:
    """Who is missing, who waits in the first group, who from which hop on, who in the end.

    A rank that has several parts has the first of them. every: the layout's groups, where the
    evidence does not contradict them.
    """
    diagnosis, world = log.diagnosis, layout.world_size
    parts = np.zeros(world, dtype=np.int64)
    named = (*diagnosis.culprits, *diagnosis.suspects)
    first = diagnosis.first
    at_first = {*members_of(first, every), *first.waiting} if first else set()
    reached = {*named, *at_first, *(rank for hop in diagnosis.hops for rank in hop.ranks)}
    if first and every:
        _paint(parts, connected((r for r in reached if r < world), every), END)
    for place, hop in reversed([*enumerate(diagnosis.hops)][1:]):
        _paint(parts, hop.ranks, min(FIRST + place, LATER))
    _paint(parts, at_first, FIRST)
    _paint(parts, diagnosis.suspects, SUSPECT)
    _paint(parts, diagnosis.culprits, CULPRIT)
    return Chain(parts, tuple(rank for rank in named if rank < world)[:MOST_MARKED])


def _paint(parts: np.ndarray, ranks: Iterable[int], part: int) -> None:
    inside = [rank for rank in ranks if rank < len(parts)]
    parts[np.array(inside, dtype=np.int64)] = part


def heat_of_chain(chain: Chain, layout: Layout, language: str) -> Heat:
    """The scene: a level a part, the parts that occur as its legend."""
    parts, counts = np.unique(chain.parts, return_counts=True)
    by_part = sorted(zip(parts.tolist(), counts.tolist()), key=lambda part: (part[0] == FREE, part))
    words = RUN["chain_part"][language]
    legend = []
    for part, count in by_part:
        said = f"{MARKS[part]} {_part(part, language)}"
        said = words.format(part=said, count=counted(count, "gpu", language)).strip()
        legend.append((COLOURS[part], said))
    return Heat(
        chain.parts,
        [MARKS[part] for part in chain.parts.tolist()] if layout.world_size <= 256 else (),
        layout.gpus_per_node,
        tuple(legend),
        colours=COLOURS,
        marked=chain.marked,
        has_ground=True,
    )


def _part(part: int, language: str) -> str:
    names = {FREE: "role_free", CULPRIT: "role_culprit", SUSPECT: "role_suspect"}
    names |= {FIRST: "role_first", LATER: "role_later", END: "role_end"}
    return RUN[names.get(part, "role_hop")][language].format(hop=part - FIRST)
