"""The memory of a plan's GPUs in one step (training.roles): of the page's plan, and of one that was
read from a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from formats.roles import PlanRead
from groups import LayoutError
from groups.kept import kept
from groups.plan import Plan
from training.roles import (
    Phase,
    RankBytes,
    StepMemory,
    phases_of,
    reads_only,
    served_bytes,
    trained_bytes,
)

from ...context import Context, of_server
from ...inputs import UNKNOWN
from ...roles.opened import cast_of_plan
from ...roles.pages import Cast, layout_of
from ...served import served_of
from ...state import State
from ...trained import capacity_of

Work = Sequence[RankBytes] | LayoutError
"""What a role needs while it works, or the error for which that is unknown."""


@dataclass(frozen=True)
class Moments:
    """The memory of a plan beside what a GPU has; capacity: bytes of one. refused: why the memory
    of a role is not known."""

    step: StepMemory
    capacity: float
    refused: Mapping[str, LayoutError]

    @property
    def fits(self) -> bool:
        return self.step.fullest.total <= self.capacity


def moments_of(context: Context) -> Moments:
    """The memory of the page's plan; its phases follow from the names of the roles."""
    return moments_in(context.plan, phases_of(context.plan), context.cast, context)


def moments_read(read: PlanRead, page: State) -> Moments:
    """The memory of a plan that was read, on the machines of ``page``. The memory of a role whose
    text names no model is unknown.

    Errors: LayoutError for an unknown cluster and an invalid capacity.
    """
    cast = cast_read(read, page)
    return moments_in(read.plan, read.phases, cast)


def cast_read(read: PlanRead, page: State) -> Cast:
    """The roles of a plan that was read, where one whose text names no model has none."""
    cast = cast_of_plan(read, page)
    members = tuple(
        one
        if "model" in read.role(one.name).training
        else replace(one, page=one.page.changed({"model": UNKNOWN}))
        for one in cast.members
    )
    return replace(cast, members=members)


def moments_in(
    plan: Plan, phases: Sequence[Phase], cast: Cast, context: Context | None = None
) -> Moments:
    """The memory of a plan whose roles are those of a cast; context: of the role on screen, if
    there is one."""
    members, work = {one.name: one for one in cast.members}, dict[str, Work]()
    for role in plan.turns:
        is_read = reads_only(role, phases)
        if context and role.name == cast.shown.name:
            work[role.name] = _work_in(context, is_read)
        else:
            work[role.name] = work_of(members[role.name].page, is_read)
    known = {name: one for name, one in work.items() if not isinstance(one, LayoutError)}
    refused = {name: one for name, one in work.items() if isinstance(one, LayoutError)}
    kept = {name: one.kept for name, one in members.items()}
    return Moments(StepMemory(plan, phases, known, kept), capacity_of(cast.shown.page), refused)


@kept
def work_of(page: State, is_read: bool) -> Work:
    """What a role needs while it works, worked out once while that stays as it is."""
    return _work_in(Context(layout_of(page), page), is_read)


def _work_in(context: Context, is_read: bool) -> Work:
    try:
        return _bytes_in(context, is_read)
    except LayoutError as error:
        return error


def _served_in(context: Context) -> Sequence[RankBytes]:
    return served_bytes(served_of(context).memory)


@of_server(_served_in)
def _bytes_in(context: Context, is_read: bool) -> Sequence[RankBytes]:
    return trained_bytes(context.trained.stages(), is_read=is_read)
