"""The chain of waiting ranks on a picture of the GPUs, with a colour and a mark for each role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from descriptions import RUN, counted
from diagnosis.hang.account import connected, members_of
from diagnosis.hang.model import Log
from groups.grouping import Grouping
from groups.layout import Layout
from render.palette import CHAIN_SHADES
from render.scenes.heat import Heat

MARKS = (" ", "✕", "?", "0", "1", "2", "3+", "…")
ROLES = ("free", "culprit", "suspect", "first", "hop", "hop", "later", "end")
"""The roles by number: unknown, culprit, suspect, first group, hops, and the ranks that wait
last."""

FREE, CULPRIT, SUSPECT, FIRST, LATER, END = 0, 1, 2, 3, 6, 7

MOST_MARKED = 64
"""The most culprits and suspects that a large picture rings."""


def chain_of(log: Log, layout: Layout, every: Mapping[str, Grouping]) -> np.ndarray:
    """The role of every rank in a hang, as an index of ROLES: int64, shape (world,).

    A rank that has several parts has the first of them. every: the layout's groups, where the
    evidence does not contradict them.
    """
    diagnosis, world, first = log.diagnosis, layout.world_size, log.diagnosis.first
    parts = np.zeros(world, dtype=np.int64)
    missing = {*diagnosis.culprits, *log.missing}
    named = missing | {*diagnosis.suspects}
    members = {*members_of(first, every), *first.waiting} if first else set()
    at_first = members if first is None or named else {*first.waiting}
    reached = named | members
    reached |= {rank for hop in diagnosis.hops for rank in hop.ranks}
    if first and every:
        _paint(parts, connected((r for r in reached if r < world), every), END)
    for place, hop in reversed([*enumerate(diagnosis.hops)][1:]):
        _paint(parts, hop.ranks, min(FIRST + place, LATER))
    _paint(parts, at_first, FIRST)
    _paint(parts, diagnosis.suspects, SUSPECT)
    _paint(parts, missing, CULPRIT)
    return parts


def _paint(parts: np.ndarray, ranks: Iterable[int], part: int) -> None:
    inside = [rank for rank in ranks if rank < len(parts)]
    parts[np.array(inside, dtype=np.int64)] = part


def heat_of_chain(log: Log, layout: Layout, every: Mapping[str, Grouping], language: str) -> Heat:
    """The heat map of a hang: one level per role, a legend of the roles that occur, and a ring
    round each named rank."""
    chain = chain_of(log, layout, every)
    legend = []
    for part in (*range(CULPRIT, len(ROLES)), FREE):
        if count := int((chain == part).sum()):
            name = "unheard" if part == SUSPECT and log.diagnosis.is_unheard else ROLES[part]
            role = RUN[f"role_{name}"][language].format(hop=part - FIRST)
            count_text = counted(count, "gpu", language)
            label = RUN["chain_part"][language].format(
                part=f"{MARKS[part]} {role}", count=count_text
            )
            legend.append((CHAIN_SHADES[part], label.strip()))
    named = dict.fromkeys((*log.diagnosis.culprits, *log.missing, *log.diagnosis.suspects))
    return Heat(
        chain,
        [MARKS[part] for part in chain.tolist()] if layout.world_size <= 256 else (),
        layout.gpus_per_node,
        tuple(legend),
        shades=CHAIN_SHADES,
        marked=tuple(rank for rank in named if rank < layout.world_size)[:MOST_MARKED],
    )
