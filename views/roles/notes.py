"""Warnings about a plan, in the language of the page."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import note_text
from request.answers.roles.notes import plan_notes
from request.context import Context

from ..base.html import tag


def notes_html(context: Context) -> Markup:
    notes = [note_text(note, context.language) for note in plan_notes(context)]
    return (
        tag("ul", *(tag("li", note) for note in notes), class_="plan-notes") if notes else Markup()
    )
