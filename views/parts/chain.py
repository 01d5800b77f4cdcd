"""The chain of waiting ranks on a picture of the GPUs: who waits, for whom, in which groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from descriptions import RUN, counted
from diagnosis.hang.account import members_of
from diagnosis.hang.model import Hop, Log
from diagnosis.hang.spread import Wave, waves_of
from groups.grouping import Grouping
from groups.layout import Layout
from render.palette import CHAIN_SHADES
from render.scenes.heat import Heat
from request.units import ranges_text

MARKS = (" ", "✕", "?", "0", "1", "2", "3+")
ROLES = ("free", "culprit", "suspect", "first", "hop", "hop", "later", "end")
"""The roles by number: unknown, culprit, suspect, first group, hops, and the ranks that wait
last."""

FREE, CULPRIT, SUSPECT, FIRST, LATER, END = 0, 1, 2, 3, 6, 7
FAR = END + 1
"""The level of those who wait last, but for the first wave of them."""

MOST_MARKED = 64
"""The most culprits and suspects that a large picture rings."""

MOST_RANGES = 6
"""The most ranges of ranks in one line of a legend."""


def chain_of(log: Log, layout: Layout, every: Mapping[str, Grouping]) -> np.ndarray:
    """The role of every rank in a hang, as an index of ROLES: int64, shape (world,).

    A rank that has several parts has the first of them. every: the layout's groups, where the
    evidence does not contradict them.
    """
    return _roles(log, layout, every, _waves(log, layout, every))


def _roles(
    log: Log, layout: Layout, every: Mapping[str, Grouping], waves: Iterable[Wave]
) -> np.ndarray:
    diagnosis, first = log.diagnosis, log.diagnosis.first
    parts = np.zeros(layout.world_size, dtype=np.int64)
    missing, members = _missing(log), _members(log, every)
    named = missing | {*diagnosis.suspects}
    for wave in waves:
        parts[wave.ranks] = END
    for place, hop in reversed([*enumerate(diagnosis.hops)][1:]):
        _paint(parts, hop.ranks, min(FIRST + place, LATER))
    _paint(parts, members if first is None or named else {*first.waiting}, FIRST)
    _paint(parts, diagnosis.suspects, SUSPECT)
    _paint(parts, missing, CULPRIT)
    return parts


def _missing(log: Log) -> set[int]:
    return {*log.diagnosis.culprits, *log.missing}


def _members(log: Log, every: Mapping[str, Grouping]) -> set[int]:
    """The members of the group to look at first."""
    first = log.diagnosis.first
    return {*members_of(first, every), *first.waiting} if first else set()


def _waves(log: Log, layout: Layout, every: Mapping[str, Grouping]) -> tuple[Wave, ...]:
    """How the wait spreads from all ranks of the evidence over the layout's groups."""
    if log.diagnosis.first is None:
        return ()
    reached = _missing(log) | {*log.diagnosis.suspects} | _members(log, every)
    reached |= {rank for hop in log.diagnosis.hops for rank in hop.ranks}
    return waves_of((rank for rank in reached if rank < layout.world_size), every)


def _paint(parts: np.ndarray, ranks: Iterable[int], part: int) -> None:
    inside = [rank for rank in ranks if rank < len(parts)]
    parts[np.array(inside, dtype=np.int64)] = part


# -- the picture ---------------------------------------------------------------------------------


def heat_of_chain(log: Log, layout: Layout, every: Mapping[str, Grouping], language: str) -> Heat:
    """The heat map of a hang: one level per role, a legend that says who waits for whom, and a ring
    round each named rank. Who waits last bears the kind of group in which it waits.

    >>> from formats.logs import read_log
    >>> from groups.layout import Job
    >>> from request.answers.hang.example import watchdog_example
    >>> layout = Job(nodes=2, tp=2, pp=2).layout()
    >>> log = read_log(watchdog_example(layout))
    >>> for _, text in heat_of_chain(log, layout, layout.every, "en").legend:
    ...     print(text)
    ✕ is missing, or did something else: GPU 3
    0 waits for GPU 3 in its tp group: GPU 2
    pp waits for GPUs 2–3 in 2 pp groups: GPUs 10–11
    dp waits for GPUs 2–3, 10–11 in 4 dp groups: 12 GPUs (0–1, 4–9, 12–15)
    """
    waves = _waves(log, layout, every)
    chain = _roles(log, layout, every, waves)
    marks = [*(MARKS[part] for part in chain[chain != END].tolist())]
    levels, amounts = chain.copy(), np.full(len(chain), "", dtype=object)
    amounts[chain != END] = marks
    rows = [*_told(log, chain, language)]
    for wave in waves:
        kind = _shown(wave.kind, layout)
        level = END if wave is waves[0] else FAR
        levels[wave.ranks], amounts[wave.ranks] = level, kind
        role = _waits(wave.through, kind, wave.groups, language)
        rows.append((level, kind, role, wave.ranks))
    if (unknown := np.flatnonzero(chain == FREE)).size:
        rows.append((FREE, "", RUN["role_free"][language], unknown))
    named = dict.fromkeys((*log.diagnosis.culprits, *log.missing, *log.diagnosis.suspects))
    return Heat(
        levels,
        amounts.tolist() if layout.world_size <= 256 else (),
        layout.gpus_per_node,
        tuple((CHAIN_SHADES[row[0]], _row(row, language)) for row in rows),
        shades=CHAIN_SHADES,
        marked=tuple(rank for rank in named if rank < layout.world_size)[:MOST_MARKED],
    )


Row = tuple[int, str, str, np.ndarray]
"""A row of the legend: level, mark, role and ranks."""


def _told(log: Log, chain: np.ndarray, language: str) -> Iterator[Row]:
    """Each part that the evidence itself tells."""
    for part in range(CULPRIT, END):
        ranks = np.flatnonzero(chain == part)
        if not ranks.size:
            continue
        name = "unheard" if part == SUSPECT and log.diagnosis.is_unheard else ROLES[part]
        role = RUN[f"role_{name}"][language].format(hop=part - FIRST)
        hops = log.diagnosis.hops
        hop = hops[part - FIRST] if FIRST <= part < LATER and part - FIRST < len(hops) else None
        yield part, MARKS[part], _waits_of(hop, log, language) if hop else role, ranks


def _waits_of(hop: Hop, log: Log, language: str) -> str:
    """For whom the ranks of a hop wait, and in which groups, where they are of one kind."""
    kinds = {wait.group.title for wait in hop.waits}
    if len(kinds) > 1 or not hop.through:
        is_first = hop is log.diagnosis.hops[0]
        place = log.diagnosis.hops.index(hop)
        return RUN["role_first" if is_first else "role_hop"][language].format(hop=place)
    return _waits(np.array(hop.through), kinds.pop(), len(hop.waits), language)


def _waits(through: np.ndarray, kind: str, groups: int, language: str) -> str:
    which = RUN["waits_in_one" if groups == 1 else "waits_in"][language]
    whom = _ranks(through, language)
    return RUN["role_waits"][language].format(
        whom=whom, groups=which.format(kind=kind, count=f"{groups:,}")
    )


def _shown(kind: str, layout: Layout) -> str:
    """The kind as the picture names it: of dp-cp only dp where cp divides nothing."""
    cp = layout.kind("cp")
    return "dp" if kind == "dp-cp" and (cp is None or cp.size == 1) else kind


def _ranks(ranks: np.ndarray, language: str) -> str:
    """Few ranks as they are, many with their number.

    >>> _ranks(np.array([5]), "en"), _ranks(np.arange(4, 12), "en"), _ranks(np.arange(2), "zh")
    ('GPU 5', '8 GPUs (4–11)', 'GPU 0–1')
    """
    listed = ranges_text(ranks, most=MOST_RANGES)
    if len(ranks) <= 4:
        return RUN["ranks_few" if len(ranks) > 1 else "gpu_button"][language].format(rank=listed)
    count = counted(len(ranks), "gpu", language)
    return RUN["ranks_many"][language].format(count=count, ranks=listed)


def _row(row: Row, language: str) -> str:
    _, mark, role, ranks = row
    part = RUN["chain_part"][language]
    return part.format(part=f"{mark} {role}".strip(), count=_ranks(ranks, language))
