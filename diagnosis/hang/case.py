"""Evidence of a hang beside a layout: whether they fit, what would, and the verdict.

>>> from formats.logs import read_log
>>> from groups.layout import Job
>>> group = "PG ID 2 PG GUID 41(TENSOR_MODEL_PARALLEL_GROUP)"
>>> log = read_log("\\n".join(f"[rank{rank}]: [{group} Rank {rank - 4}] Timeout at NCCL work: 7"
...                          for rank in (4, 6, 7)))
>>> case = case_of(log, Job(nodes=2, tp=4).layout())
>>> case.log.diagnosis.suspects, [note.code for note in case.account]
((5,), ['silent-one', 'waits-here', 'spreads-flat'])
>>> other = case_of(log, Job(nodes=2, tp=2).layout())
>>> other.contradiction.code, other.fitting[0]["tp"]
('contradicts-place', 4)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from groups.errors import LayoutError
from groups.group_names import WORLD
from groups.grouping import Grouping
from groups.layout import Layout
from groups.notes import Note
from groups.placement import Placement

from .account import account_of
from .matching import Match, match_groups, match_layout
from .model import Log
from .silence import heard

MOST_CONNECTED = 16_384
"""The largest job, in GPUs, whose finally waiting ranks are computed."""


@dataclass(frozen=True)
class Case:
    """The evidence beside a layout.

    world: GPUs of the job of the evidence. match: its groups in this layout, None where that has
    other GPUs. fitting: what to change for layouts that would fit, nearest first, as fields of a
    Job. placement: the machines by name, where they are known.
    """

    log: Log
    layout: Layout
    world: int
    match: Match | None
    fitting: tuple[dict[str, object], ...]
    placement: Placement | None = None

    @cached_property
    def every(self) -> Mapping[str, Grouping]:
        """The layout's groups, unless the evidence contradicts them."""
        fits = self.match is not None and not self.match.contradictions
        return self.layout.every if fits and self.layout.world_size <= MOST_CONNECTED else {}

    @property
    def account(self) -> tuple[Note, ...]:
        """Who is missing and who waits, in at most three sentences."""
        per_node = self.layout.gpus_per_node if self.every else None
        return account_of(self.log, self.every, per_node, self.placement)

    @property
    def contradiction(self) -> Note | None:
        """The evidence that the layout contradicts, None if nothing."""
        if self.match is None:
            whole = _whole(self.log)
            code = "contradicts-world" if whole else "contradicts-least"
            gpus = whole or max(self.log.ranks) + 1
            return Note(code, {"evidence": gpus, "layout": self.layout.world_size})
        if not (contradictions := self.match.contradictions):
            return None
        first = contradictions[0]
        facts: dict[str, object] = {"count": len(contradictions), "group": first.claim.key}
        facts |= {"ranks": first.claim.members, "members": first.members or "–"}
        facts |= {"rank": first.claim.rank, "at": first.claim.place}
        return Note("contradicts" if first.claim.place is None else "contradicts-place", facts)


def case_of(log: Log, layout: Layout, placement: Placement | None = None) -> Case:
    """The log beside a layout; if they agree, with the findings from its groups' members."""
    world, *larger = _worlds(log, layout)
    match, fits = _match(log, world, layout)
    for other in larger if match is None and not fits else ():
        if fits := _match(log, other, layout)[1]:
            world = other
    changes = tuple(_changes(fit, layout, world) for fit in fits)
    case = Case(log, layout, world, match, changes, placement)
    return Case(heard(log, case.every), layout, world, match, changes, placement)


def _whole(log: Log) -> int:
    """Members of the job's group of all ranks, 0 if unknown."""
    worlds = (group for group in log.process_groups if group.kind == WORLD and group.complete)
    return max((len(group.members) for group in worlds), default=0)


def _worlds(log: Log, layout: Layout) -> list[int]:
    """Possible sizes of the job: of its group of all ranks, else of the layout, else whole nodes
    that hold all ranks; then usual numbers of nodes."""
    if whole := _whole(log):
        return [whole]
    most = max(log.ranks, default=-1) + 1
    if most <= layout.world_size:
        return [layout.world_size]
    nodes = -(-most // layout.gpus_per_node)
    counts = dict.fromkeys((nodes, 1 << (nodes - 1).bit_length()))
    return [count * layout.gpus_per_node for count in counts]


def _match(log: Log, world: int, layout: Layout) -> tuple[Match | None, list[dict[str, object]]]:
    """The groups of the evidence in this layout, if it has as many GPUs; and sizes that would fit:
    those on screen first, else any."""
    mesh, expert = layout.mesh, layout.expert
    sizes: dict[str, object] = {name: mesh.size(name) for name in ("tp", "cp", "pp")}
    sizes |= {"order": layout.order}
    if expert is not None:
        sizes["ep"] = expert.size("ep")
        sizes |= {} if layout.job.etp is None else {"etp": expert.size("etp")}
    is_same = world == layout.world_size
    for start in (sizes,) if is_same else (sizes, {"order": layout.order}):
        try:
            match = match_layout(log, world, **start)
        except LayoutError:  # the sizes do not divide so many, or Megatron has no such layout
            continue
        if is_same:
            return match, list(match.fits)
        return None, [{**start, **fit} for fit in (match.fits if match.contradictions else [{}])]
    return (match_groups(log, layout.every) if is_same else None), []


def _changes(fit: dict[str, object], layout: Layout, world: int) -> dict[str, object]:
    """The changes of the column for a layout that fits."""
    start = {"tp": 1, "cp": 1, "pp": 1, "ep": 1, **fit}
    changes: dict[str, object] = {name: start[name] for name in ("tp", "cp", "pp", "ep")}
    if start.get("etp") not in (None, start["tp"]):
        changes["etp"] = start["etp"]
    if start.get("order", layout.order) != layout.order:
        changes["order"] = start["order"]
    if world != layout.world_size:
        nodes, rest = divmod(world, layout.gpus_per_node)
        changes |= {"nodes": nodes} if not rest else {"nodes": 1, "gpus_per_node": world}
    return changes
