"""The chain of who waits for whom, on a picture of the GPUs: a colour and a mark a part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

import numpy as np

from descriptions import RUN, counted
from formats.logs.account import connected, members_of
from formats.logs.model import Log
from groups.grouping import Grouping
from groups.layout import Layout
from render.palette import ink
from render.svg.heat import Heat, heat_svg

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


def chain_html(chain: Chain, layout: Layout, language: str) -> str:
    """The picture, and what its colours and marks mean."""
    heat = heat_of_chain(chain, layout, language)
    legend = "".join(
        f'<li style="background:{colour};color:{ink(colour)}">{escape(words)}</li>'
        for colour, words in heat.legend
    )
    label = RUN["chain_label"][language]
    return (
        f'<ul class="parts">{legend}</ul>'
        f'<div class="chain">{heat_svg(heat, label, leads=True)}</div>'
    )


def heat_of_chain(chain: Chain, layout: Layout, language: str) -> Heat:
    """The scene: a level a part, the parts that occur as its legend."""
    parts, counts = np.unique(chain.parts, return_counts=True)
    legend = [
        (
            (part == FREE, part),
            COLOURS[part],
            RUN["chain_part"][language]
            .format(
                part=f"{MARKS[part]} {_part(part, language)}", count=counted(count, "gpu", language)
            )
            .strip(),
        )
        for part, count in zip(parts.tolist(), counts.tolist())
    ]
    return Heat(
        chain.parts,
        [MARKS[part] for part in chain.parts.tolist()] if layout.world_size <= 256 else (),
        layout.gpus_per_node,
        tuple((colour, words) for _, colour, words in sorted(legend)),
        colours=COLOURS,
        marked=chain.marked,
    )


def _part(part: int, language: str) -> str:
    names = {FREE: "role_free", CULPRIT: "role_culprit", SUSPECT: "role_suspect"}
    names |= {FIRST: "role_first", LATER: "role_later", END: "role_end"}
    return RUN[names.get(part, "role_hop")][language].format(hop=part - FIRST)
