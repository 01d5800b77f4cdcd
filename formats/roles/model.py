"""The roles of one job as a text has them, and their plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from groups.notes import Note
from groups.plan import Plan, Role
from training.roles import Phase


@dataclass(frozen=True)
class RoleRead:
    """A role, and the settings of the text beside its layout."""

    role: Role
    values: Mapping[str, object]  # of its model's layers and batch, in the names of launch's MODEL
    training: Mapping[str, object]  # of its model and how it trains or serves, as `training_of`
    # and `served_of` name it: fields of the page
    away: tuple[str, ...] = ()  # parts that leave the GPUs while others have them
    updates: int = 1  # steps of the optimizer in one step of the plan

    @property
    def name(self) -> str:
        return self.role.name


@dataclass(frozen=True)
class PlanRead:
    """The plan of a text: its roles, and the defaults that were assumed."""

    framework: str  # whose text it is, of formats.launch's names; empty where nobody knows
    roles: tuple[RoleRead, ...]
    plan: Plan
    phases: tuple[Phase, ...]  # in order; every role works in one
    beside: tuple[str, ...] = ()  # roles that work beside all the others, a step ahead
    assumed: tuple[Note, ...] = ()  # what the text leaves open: `texts.sentences.note_text`

    def role(self, name: str) -> RoleRead:
        """The role of a name. Errors: LayoutError for an unknown name, with the known ones."""
        wanted = self.plan.role(name)
        return next(read for read in self.roles if read.role is wanted)
