"""Warnings about a plan, in the language of the page."""

from __future__ import annotations

from contextlib import suppress

from markupsafe import Markup

from descriptions import note_text
from groups import LayoutError
from groups.notes import Note
from groups.plan_notes import notes_of
from request.context import Context
from request.model import model_of

from ..base.html import tag


def plan_notes(context: Context) -> list[Note]:
    """What there is to say of the plan, role by role, and of GPUs that are left."""
    heads: dict[str, int] = {}
    for member in context.cast.members:
        with suppress(LayoutError):  # of a model that nobody knows nothing is said
            model = model_of(member.page).model
            if not model.is_mla and model.kv_heads:
                heads[member.name] = model.kv_heads
    return notes_of(context.plan, heads)


def notes_html(context: Context) -> Markup:
    notes = [note_text(note, context.language) for note in plan_notes(context)]
    return (
        tag("ul", *(tag("li", note) for note in notes), class_="plan-notes") if notes else Markup()
    )
