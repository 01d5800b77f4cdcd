"""A hang in three sentences, as facts: where it begins, who waits there, how far it spreads.

Each `Note` names its sentence in views/hang/words.toml and holds what stands in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from functools import partial
from pathlib import PurePath

from groups.group_names import WORLD
from groups.grouping import Grouping
from groups.notes import Note
from groups.placement import Placement

from .matching import grouping_of
from .model import Log, Wait
from .spread import waves_of
from .standing import common_op

MOST_SENTENCES = 3


def account_of(
    log: Log,
    groupings: Mapping[str, Grouping] | None = None,
    gpus_per_node: int | None = None,
    placement: Placement | None = None,
) -> tuple[Note, ...]:
    """At most three sentences; without a layout, without the facts that only it has.

    placement: the machines by name, for what the log does not say of them.

    >>> from formats.logs import read_log
    >>> from groups.megatron import groupings
    >>> group = "PG ID 2 PG GUID 40(TENSOR_MODEL_PARALLEL_GROUP)"
    >>> lines = [f"[rank{rank}]:[E] [{group} Rank {rank % 4}] "
    ...          f"failure detected by watchdog at work sequence id: 7 PG status: "
    ...          f"last enqueued work: 7, last completed work: 6" for rank in (4, 6, 7)]
    >>> lines += [f"[rank5]:[E] [{group} Rank 1] "
    ...           "PG status: last enqueued work: 6, last completed work: 6"]
    >>> notes = account_of(read_log("\\n".join(lines)), groupings(16, tp=4, pp=2))
    >>> [(note.code, note.facts["count"]) for note in notes[1:]]
    [('waits-here', 3), ('spreads', 16)]
    >>> notes[0].code, notes[0].facts["rank"], notes[0].facts["seq"], notes[0].facts["kind"]
    ('never-entered', 5, 7, 'tp')
    """
    diagnosis, groupings = log.diagnosis, groupings or {}
    first = diagnosis.first
    place = partial(place_of, log, gpus_per_node=gpus_per_node, placement=placement)
    notes = []
    stood = _stood(log, place)
    if stood and log.missing and not diagnosis.culprits:
        notes.append(stood)
    elif log.missing and not diagnosis.culprits:  # the text says it itself
        facts: dict[str, object] = {"ranks": log.missing, "rank": log.missing[0]}
        facts |= place(log.missing[0])
        notes.append(Note("said-missing" + "-one" * (len(log.missing) == 1), facts))
    if first is None and diagnosis.suspects and diagnosis.reason == "silent" and groupings:
        world = next(iter(groupings.values())).world_size
        facts = {"ranks": diagnosis.suspects, "rank": diagnosis.suspects[0], "world": world}
        facts |= place(diagnosis.suspects[0])
        notes.append(Note("only-silent" + "-one" * (len(diagnosis.suspects) == 1), facts))
    if first is None:
        notes += [stood] if stood and not notes else []
        return (*notes,) if notes or not log.dumped else (Note("nothing-stuck"),)
    members = members_of(first, groupings)
    if diagnosis.is_unheard:
        notes.append(_unheard(log, first, groupings, place))
    else:
        notes.append(_cause(log, first, place))
    named = {*diagnosis.culprits, *log.missing, *diagnosis.suspects}
    # Where nobody is named, any of the members may be missing but those that are seen to wait.
    waiting = (set(members) - named) if members and named else set(first.waiting) - named
    if waiting:
        code = ("waits-here" if named else "seen-here") + "-one" * (len(waiting) == 1)
        here = {"count": len(waiting), "rank": min(waiting), "kind": first.group.title}
        notes.append(Note(code, here))
    far = _spread(log, {*members, *first.waiting, *named}, groupings)
    if far and "world" in far.facts and not named:
        far = Note("spreads-unnamed", far.facts)
    if stood and diagnosis.culprits:
        notes.append(stood)
    return (*notes, *([far] if far else []))[:MOST_SENTENCES]


def _stood(log: Log, place: Place) -> Note | None:
    """Where the missing ranks are by their stacks; or that all are in a collective."""
    stacks = {one.rank: one for one in log.stacks}
    if not stacks:
        return None
    inside = sum(bool(one.op) for one in log.stacks)
    facts: dict[str, object] = {"op": common_op(log.stacks), "count": inside}
    out = [rank for rank in log.missing if rank in stacks and not stacks[rank].op]
    if not out:
        return Note("stands-inside", facts) if inside == len(stacks) > 1 else None
    first = stacks[out[0]]
    facts |= {"ranks": tuple(out), "rank": first.rank, **place(first.rank)}
    facts |= {"function": first.function, "file": PurePath(first.file).name, "line": first.line}
    return Note("stands-outside" + "-one" * (len(out) == 1), facts)


def members_of(wait: Wait, groupings: Mapping[str, Grouping]) -> tuple[int, ...]:
    """The members of the waiting group: by the evidence, else by the layout."""
    if wait.group.complete:
        return wait.group.members
    some = (*wait.waiting, *wait.absent)
    grouping = grouping_of(wait.group.kind, groupings)
    if wait.group.kind == WORLD and groupings:
        return tuple(range(next(iter(groupings.values())).world_size))
    if grouping is None or not some or max(some) >= grouping.world_size:
        return ()
    members = tuple(int(rank) for rank in grouping.members(some[0]))
    return members if set(some) <= set(members) else ()


Place = Callable[[int], dict[str, object]]
"""The place of a rank: host, node and device, as far as they are known."""


def _unheard(log: Log, first: Wait, groupings: Mapping[str, Grouping], place: Place) -> Note:
    """The first sentence if members of groups are not seen to wait: who, in which group."""
    diagnosis = log.diagnosis
    suspects = diagnosis.suspects
    grouping = grouping_of(first.group.kind, groupings)
    index = None if grouping is None else grouping.index_of(first.waiting[0])
    facts: dict[str, object] = {"op": first.op, "seq": first.seq, "kind": first.group.title}
    facts |= {"group": first.group.key, "index": index}
    facts |= {"ranks": suspects, "rank": suspects[0]}
    if not {*suspects} <= {*first.unknown}:
        return Note("groups-unheard", {**facts, "count": len(diagnosis.hops[0].waits)})
    if len(suspects) == 1:
        return Note(f"{diagnosis.reason}-one", {**facts, **place(suspects[0])})
    return Note(diagnosis.reason, facts)


def _cause(log: Log, first: Wait, place: Place) -> Note:
    """The first sentence: who, what, where."""
    diagnosis = log.diagnosis
    culprits, suspects, reason = diagnosis.culprits, diagnosis.suspects, diagnosis.reason
    if culprits:  # others, of other groups, are no part of a sentence about this one
        culprits = diagnosis.blamed_in(first) or culprits
    facts: dict[str, object] = {"op": first.op, "seq": first.seq}
    facts |= {"kind": first.group.title, "group": first.group.key, "ranks": culprits or suspects}
    if not culprits:
        codes = {"no-dump": "no-dump", "all-arrived": "all-arrived", "different": "parties-differ"}
        if reason == "different":
            facts["parties"] = tuple(map(astuple, first.parties))
        return Note(codes.get(reason, "one-of" if suspects else "unclear"), facts)
    rank = culprits[0]
    facts |= {"rank": rank, **place(rank)}
    if len(culprits) > 1:
        return Note(f"several-{reason}", facts)
    party = next((party for party in first.parties if rank in party.ranks), None)
    other = next((party for party in first.parties if rank not in party.ranks), None)
    if reason == "different" and party and other:
        facts |= {"own_op": party.op, "own_sizes": party.sizes}
        facts |= {"other_op": other.op, "other_sizes": other.sizes}
        return Note("other-op" if party.op != other.op else "other-size", facts)
    codes = {"late": "came-late", "order": "other-order", "different": "other-order"}
    return Note(codes.get(reason, "never-entered"), facts)


def place_of(
    log: Log, rank: int, gpus_per_node: int | None, placement: Placement | None
) -> dict[str, object]:
    """Host and device of a rank, from the log, the named machines or the layout."""
    host, device, node = log.hosts.get(rank), log.devices.get(rank), None
    if placement is not None and rank < placement.world_size:
        host = host or placement.host(rank)
        device = placement.device(rank) if device is None else device
    elif gpus_per_node and device is None:
        node, device = divmod(rank, gpus_per_node)
    return {"host": host, "device": device, "node": node}


def _spread(log: Log, ranks: Iterable[int], groupings: Mapping[str, Grouping]) -> Note | None:
    """The third sentence: pipelines with ranks of the first group, and all that wait."""
    ranks = set(ranks)
    pipeline = groupings.get("pp")
    world = next(iter(groupings.values())).world_size if groupings else None
    reached = ranks | {rank for hop in log.diagnosis.hops for rank in hop.ranks}
    if world is None or max(reached, default=0) >= world:
        return Note("waits-in-all", {"count": len(reached)}) if len(reached) > len(ranks) else None
    pipelines = 0
    if pipeline is not None and pipeline.size > 1:
        pipelines = len({pipeline.index_of(rank) for rank in ranks} - {None})
    total = len(reached) + sum(len(wave.ranks) for wave in waves_of(reached, groupings))
    code = {0: "spreads-flat", 1: "spreads-one"}.get(pipelines, "spreads")
    return Note(code, {"pipelines": pipelines, "count": total, "world": world})
