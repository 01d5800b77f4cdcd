"""The endpoint about a plan: its roles in numbers, and every rank of each."""

from __future__ import annotations

import json
from typing import Any

from descriptions import note_text
from formats.roles import read_plan
from formats.roles.facts import COLUMNS, rank_rows, role_facts
from formats.roles.presets import PLANS, preset_plan
from groups.budget import spend
from groups.errors import in_any_case
from groups.plan import Plan
from groups.plan_notes import notes_of

from ..base.context import Context
from ..base.endpoint import require_text, serving
from ..base.link import from_query
from ..compare.named import is_link
from ..compare.sides import query_of
from ..launch.plan import answers_of
from .moments import phases_of


@serving()
def roles(plan: str = "", given: str = "", rank: int = -1) -> str:
    """The roles of a plan, and which ranks of them each GPU is, as JSON.

    "roles" have name, first GPU, GPUs, sizes and engines; "turns" is the order in which roles have
    the GPUs that they share; "ranks" are [GPU, node, role, rank of the role, groups] of every rank.

    Args:
        plan: a published one such as "slime-glm4-5", a link of the page, or a configuration of verl, slime, NeMo-RL or OpenRLHF.
        given: what a configuration leaves open, such as "trainer.nnodes=4"; semicolons part settings.
        rank: a GPU, whose roles alone are listed; -1: all.
    """  # noqa: E501  a tool shows only a parameter's first line
    found = plan_named(require_text("plan", plan), require_text("given", given))
    world = sum(role.layout.world_size for role in found.roles)
    if rank == -1:
        spend(world * 4, "ranks", control="plan")
    else:
        found.roles_of(rank)  # refuses one that there is not
    return json.dumps(plan_facts(found, None if rank == -1 else rank))


def plan_named(text: str, settings: str = "") -> Plan:
    """Errors: LayoutError for what names no plan, and for what has to be known first."""
    name = in_any_case(text.strip(), PLANS)
    if name in PLANS:
        return preset_plan(str(name)).plan
    if is_link(text):
        return Context.of(from_query(query_of(text))).plan
    return read_plan(text, answers_of(settings)).plan


def plan_facts(plan: Plan, rank: int | None = None) -> dict[str, Any]:
    """A plan for programs; rank: a GPU whose roles alone are listed."""
    rows = rank_rows(plan)
    notes = notes_of(plan)
    return {
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "roles": [role_facts(role) for role in plan.roles],
        "turns": [role.name for role in plan.turns],
        "phases": [{"name": one.name, "roles": [*one.roles]} for one in phases_of(plan)],
        "unused": len(plan.unused),
        "warnings": [{"code": note.code, "text": note_text(note)} for note in notes],
        "columns": [*COLUMNS],
        "ranks": [row for row in rows if rank is None or row[0] == rank],
    }
