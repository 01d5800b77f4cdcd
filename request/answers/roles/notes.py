"""What there is to say of a plan."""

from __future__ import annotations

from contextlib import suppress

from groups import LayoutError
from groups.notes import Note
from groups.plan_notes import notes_of

from ...context import Context
from ...model import model_of


def plan_notes(context: Context) -> list[Note]:
    """What there is to say of the plan, role by role, and of GPUs that are left."""
    heads: dict[str, int] = {}
    for member in context.cast.members:
        with suppress(LayoutError):  # of a model that nobody knows nothing is said
            model = model_of(member.page).model
            if not model.is_mla and model.kv_heads:
                heads[member.name] = model.kv_heads
    return notes_of(context.plan, heads)
