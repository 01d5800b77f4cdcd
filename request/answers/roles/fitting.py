"""What would make a plan fit: changes of one role that shares the fullest GPU, each tried, or where
none is enough the mildest of all of them together.

    an engine     a smaller share of a GPU's memory; its memory given back between its turns
    a trainer     what ZeRO, recomputation and host memory spare; its state away between its turns

A change counts if no GPU of the plan is crowded in any phase after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from groups import LayoutError
from groups.inputs import number_in
from training.roles import WORKING

from ...roles.pages import Cast, RolePage, layout_of
from ...state import State
from .moments import Moments, moments_in

SHARES = (0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3)
"""Shares of a GPU's memory that an engine is tried with, the mildest first."""

MOST_WAYS = 3
"""The most ways that are told."""

MOST_CROWDING = 6
MOST_GPUS = 16_384
"""The most roles on one GPU, and GPUs of a plan, for which changes are tried: each try works out
the memory of the plan once more."""

Fields = dict[str, str]


@dataclass(frozen=True)
class Change:
    """Changes of a role's fields; away: its memory is given back while others work instead."""

    role: str
    fields: Fields
    away: bool = False


@dataclass(frozen=True)
class Way:
    """Changes after which a plan fits: its fullest GPU has `bytes` then."""

    changes: tuple[Change, ...]
    bytes: float
    cast: Cast

    def page(self) -> State:
        """The page with the changes made."""
        return self.cast.state()


def ways_to_fit(found: Moments, cast: Cast) -> tuple[Way, ...]:
    """The mildest changes after which a plan fits; none where it does, where the memory of a role
    is not known, or where nothing that is tried helps."""
    if found.fits or found.refused or not found.step.fullest.total:
        return ()
    crowding = dict.fromkeys(role for role, *_ in found.step.fullest.held)
    members = [member for name in crowding if (member := cast.named(name))]
    gpus = found.step.plan.nodes * found.step.plan.gpus_per_node
    if max(len(members), len(cast.members)) > MOST_CROWDING or gpus > MOST_GPUS:
        return ()
    ways = (_first_way(found, cast, member) for member in members)
    single = sorted((way for way in ways if way), key=lambda way: way.changes[0].away)
    return tuple(single[:MOST_WAYS]) or _together(found, cast, members)


def _first_way(found: Moments, cast: Cast, member: RolePage) -> Way | None:
    """The mildest change that is enough; of shares, each of which spares more than the one before,
    it is found by halves."""
    tries = [*_tries(member, found)]
    if not tries or "served_share" not in tries[-1].fields:
        ways = (_way(found, cast, (change,)) for change in tries)
        return next((way for way in ways if way), None)
    low, best = 0, _way(found, cast, (tries[-1],))
    high = len(tries) - 1
    while best and low < high:
        middle = (low + high) // 2
        way = _way(found, cast, (tries[middle],))
        best, low, high = (way, low, middle) if way else (best, middle + 1, high)
    return best


def _together(found: Moments, cast: Cast, members: list[RolePage]) -> tuple[Way, ...]:
    """Everything at once, as far as it is needed: of each role what spares most."""
    taken: tuple[Change, ...] = ()
    for member in members:
        *_, last = (*_tries(member, found), None)
        taken += () if last is None else (last,)
        if len(taken) > 1 and (way := _way(found, cast, taken)):
            return (way,)
    return ()


def _tries(member: RolePage, found: Moments) -> Iterator[Change]:
    """Changes of a role that spare memory, the mildest first."""
    page, parts = member.page, {part for role, part, _ in found.step.fullest.held
                                if role == member.name}  # fmt: skip
    works = WORKING in parts
    if member.kept and not works:
        yield Change(member.name, {}, away=True)
    if layout_of(page).is_server:
        share = number_in(page.served_share) if page.served_share else 0.9
        now = share if isinstance(share, float) else 0.9
        yield from (
            Change(member.name, {"served_share": f"{one:g}"}) for one in SHARES if one < now
        )
        return
    for fields in (
        {"recompute": "full"},
        {"offload": "optimizer"},
        {"zero": "3"},
        {"zero": "3", "recompute": "full"},
        {"zero": "3", "recompute": "full", "offload": "optimizer"},
        {"zero": "3", "recompute": "full", "offload": "parameters"},
    ):
        if any(getattr(page, name) != value for name, value in fields.items()):
            yield Change(member.name, fields)


def _way(found: Moments, cast: Cast, changes: tuple[Change, ...]) -> Way | None:
    """A way, if the plan fits after these changes."""
    for change in changes:
        member = cast.named(change.role)
        if member is None:
            return None
        other = replace(member, kept=()) if change.away else member.changed(change.fields)
        cast = cast.with_(member, other)
    try:
        after = moments_in(found.step.plan, found.step.phases, cast)
    except LayoutError:
        return None
    worked = not after.refused and after.fits
    return Way(changes, after.step.fullest.total, cast) if worked else None
