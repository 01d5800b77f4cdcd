"""How a wait spreads over groups that no line of the evidence names: wave after wave.

A rank that waits does not come to the next operation of any of its groups, so their members wait
for it in turn. Each wave is of one kind of group, the first of CONNECTING that reaches somebody:

    GPU 3 is missing -> 2 waits in its tp group -> 10, 11 in two pp groups -> the rest in dp groups
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from groups.grouping import Grouping

CONNECTING = ("tp", "pp", "dp-cp", "cp", "ep")
"""Kinds of groups over which a wait spreads."""


@dataclass(frozen=True, eq=False)
class Wave:
    """Ranks that wait from this step on, int64 ascending, in ``groups`` groups of one kind, for the
    ranks ``through`` that wait in them already."""

    kind: str
    groups: int
    through: np.ndarray
    ranks: np.ndarray


def waves_of(ranks: Iterable[int], groupings: Mapping[str, Grouping]) -> tuple[Wave, ...]:
    """The waves that begin at these ranks; each other rank that waits in the end is in one of them.

    >>> from groups.megatron import groupings
    >>> for wave in waves_of([2, 3], groupings(16, tp=2, pp=2)):
    ...     print(wave.kind, wave.groups, wave.through.tolist(), wave.ranks.tolist())
    pp 2 [2, 3] [10, 11]
    dp-cp 4 [2, 3, 10, 11] [0, 1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15]
    """
    kinds = {kind: groupings[kind].index() for kind in CONNECTING if kind in groupings}
    if not kinds:
        return ()
    waiting = np.zeros(len(next(iter(kinds.values()))), dtype=bool)
    waiting[[*ranks]] = True
    waves: list[Wave] = []
    while wave := next(filter(None, (_wave(*kind, waiting) for kind in kinds.items())), None):
        waiting[wave.ranks] = True
        waves.append(wave)
    return tuple(waves)


def _wave(kind: str, index: np.ndarray, waiting: np.ndarray) -> Wave | None:
    """The ranks that wait in groups of a kind because others in them do; None if there are none."""
    held = np.zeros(index.max() + 2, dtype=bool)
    held[index[waiting]] = True
    held[-1] = False  # of ranks that are in none
    new = held[index] & ~waiting
    if not new.any():
        return None
    spreading = np.zeros_like(held)
    spreading[index[new]] = True
    through = np.flatnonzero(waiting & spreading[index])
    return Wave(kind, int(spreading.sum()), through, np.flatnonzero(new))
