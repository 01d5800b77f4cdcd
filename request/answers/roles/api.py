"""The endpoint for a plan: its roles in numbers, and every rank of each."""

from __future__ import annotations

import json
from collections.abc import Iterable

from descriptions import note_text
from formats.roles import PlanRead
from formats.roles.facts import COLUMNS, plan_facts, rank_rows
from formats.roles.warned import warnings_of
from formats.values import Document
from groups.notes import Note
from groups.plan import Plan

from ...context import Context
from ...endpoint import require_text, serving
from ...named.text import plan_named
from ...roles.pages import Cast
from ...state import State
from .fitting import ways_to_fit
from .moments import Moments, cast_read, moments_of, moments_read
from .notes import plan_notes


@serving()
def roles(plan: str = "", given: str = "", rank: int = -1) -> str:
    """The roles of a plan, and which ranks of them each GPU is, as JSON.

    "roles" have name, first GPU, GPUs, sizes and engines; "turns" is the order in which roles have
    the GPUs that they share; "fullest" is the phase and the GPU with most bytes, "would_fit" what would make them enough, tried; "ranks" are [GPU, node, role, rank of the role, groups] of every rank.

    Args:
        plan: a published one such as "slime-glm4-5", a link of the page, or a configuration of verl, slime, NeMo-RL or OpenRLHF.
        given: what a configuration leaves open, such as "trainer.nnodes=4"; semicolons part settings.
        rank: a GPU, whose roles alone are listed; -1: all.
    """  # noqa: E501  a tool shows only a parameter's first line
    facts, found = facts_named(require_text("plan", plan), require_text("given", given))
    if rank != -1:
        found.roles_of(rank)  # refuses one that there is not
    rows = [*rank_rows(found, None if rank == -1 else rank)]
    return json.dumps({**facts, "columns": COLUMNS, "ranks": rows})


def facts_named(text: str, answers: str = "") -> tuple[Document, Plan]:
    """Errors: LayoutError for what names no plan, and for what has to be known first."""
    named = plan_named(text, answers)
    if isinstance(named, Context):
        return _facts(moments_of(named), named.cast, plan_notes(named)), named.plan
    return read_facts(named, State()), named.plan


def read_facts(read: PlanRead, page: State) -> Document:
    """A plan that was read, for programs; page: whose machines it has.

    Errors: LayoutError for unknown machines, and for a bad capacity.
    """
    moments = moments_read(read, page)
    facts = _facts(moments, cast_read(read, page), warnings_of(read), read.beside)
    return {**facts, "assumed": [*map(_note_facts, read.assumed)]}


def _facts(
    moments: Moments, cast: Cast, notes: Iterable[Note], beside: Iterable[str] = ()
) -> Document:
    step, fullest = moments.step, moments.step.fullest
    return {
        **plan_facts(step.plan, step.phases, beside),
        "fullest": {
            "phase": fullest.phase.name,
            "gpu": fullest.gpu,
            "bytes": fullest.total,
            "capacity_bytes": moments.capacity,
            "unknown": [*moments.refused],
        },
        "would_fit": [
            {"changes": [vars(change) for change in way.changes], "bytes": way.bytes}
            for way in ways_to_fit(moments, cast)
        ],
        "warnings": [*map(_note_facts, (*notes, *step.crowded(moments.capacity)))],
    }


def _note_facts(note: Note) -> Document:
    return {"code": note.code, "facts": note.facts, "text": note_text(note)}
