"""Endpoints for what moves from one layout to another; the command line prints the same facts."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from formats.moves.script import moves_script
from formats.values import Document
from groups import LayoutError
from groups.budget import spend
from groups.errors import quoted
from groups.layout import job_fields
from training.moves import Moves, TensorMove
from training.moves.cost import balance, busiest, least_seconds, seconds_of
from training.moves.senders import RULES

from ...context import Context
from ...endpoint import LAYOUT, Parameter, Parameters, require_text, serving
from ...errors import refusal
from ...model import model_of
from ...named.text import context_named, plan_named
from ...roles.opened import state_of_plan
from ...state import is_empty
from ...trained_endpoint import TRAINING, changes_of, fixes_tried, trainable_of
from .sides import ROLE, cluster_used, moves_between, role_side, size_text

OF_PLAN = (
    "the roles of which the one that trains sends, in place of the layout: a published plan such "
    'as "slime-glm4-5", a link of the page, whose role on screen sends, or a configuration of '
    "verl, slime, NeMo-RL or OpenRLHF"
)
PLAN = Parameters("(the plan)", {"plan": Parameter(str, "", OF_PLAN)}, late=("plan",))


def _source(arguments: Mapping[str, object]) -> Context:
    """The layout that sends: of the parameters, or of the plan's role that trains; parameters of
    the training override the plan's.

    Errors: LayoutError also for a layout that is stated beside a plan.
    """
    plan = require_text("plan", arguments["plan"])
    if is_empty(plan):
        return trainable_of(arguments)
    for name, row in LAYOUT.rows.items():
        if arguments[name] != row.start:
            raise refusal("layout-beside-plan", name, {name: row.start}, field=name)
    named = plan_named(plan)
    state = named.state if isinstance(named, Context) else state_of_plan(named)
    rows = TRAINING.rows.items()
    set_fields = {row.field for name, row in rows if arguments[name] != row.start}
    fields = {name: text for name, text in TRAINING.fields(arguments).items() if name in set_fields}
    return Context.of(state.changed({**fields, **changes_of(arguments["changes"])}))


moves_endpoint = serving(_source, TRAINING, LAYOUT, PLAN)


def _moves_to(to: str, source: Context, rule: str, first_rank: int) -> tuple[Context, Moves]:
    """The layout that a text names, which may be another role of the plan, and what moves there."""
    if not to.strip().startswith(ROLE):
        target = context_named(to, source, "to")
        return target, moves_between(source, target, rule or _usual_rule(source), first_rank)
    if is_empty(source.state.roles):
        raise refusal("role-without-plan", "plan", value=quoted(to))
    try:
        target, here, there = role_side(to, source)
    except LayoutError as error:
        raise error.renamed({"moves_other": "to"}) from None
    return target, moves_between(source, target, rule or _usual_rule(source), there, here)


def _usual_rule(source: Context) -> str:
    """The rule of the plan's framework, or of a link, else the first."""
    return str(source.state.value("moves_rule"))


@moves_endpoint
def moves(
    context: Context,
    to: str = "",
    rule: str = "",
    first_rank: int = 0,
    rank: int = -1,
    by: str = "node",
    cluster: str = "dgx-h100",
) -> str:
    """What moves of a model's weights from this layout to another, as JSON: in all and by rank.

    "bytes" are what the ranks of the target need: on their GPU already, from their node, from
    others; by a rule that gathers, all that passes. "seconds" are at the speed of the links, "least_seconds" those that no rule undercuts.
    "matrix" has [from, to, bytes], what stays on the diagonal. "tensors" are one rank's: "parts"
    are [source, source start, target start, length] along "axis", [source] of a whole tensor.

    Args:
        to: the other layout: a published one such as "llama3-405b-1", a link of the page, a launch command or file, a JSON document of this project, after a ~ what differs from this one: "~tp=8;pp=1", or "role:" and the name of a role of the plan: "role:rollout".
        rule: who sends: "nearest", "megatron" (its resharding planner), "first" (one sender a shard, copies pass on), or as whole tensors are gathered on the way by "verl" (on every GPU) and "slime" (on each stage, whose first GPU sends them); empty: that of the plan's framework, else nearest.
        first_rank: the first rank of the target; 0: on the GPUs of this layout; a role has its own.
        rank: whose tensors to list; -1: none's.
        by: rows of the matrix: "node" or "rank".
        cluster: (the machines).
        (the training)
        (the layout)
        (the plan)
    """  # noqa: E501  a tool shows only a parameter's first line
    require_text("to", to)
    with fixes_tried(context, cluster=cluster) as tried:
        target, found = _moves_to(to, tried, rule, first_rank)
        return json.dumps(moves_facts(tried, target, found, None if rank == -1 else rank, by))


@moves_endpoint
def moves_check(context: Context, to: str = "", rule: str = "", first_rank: int = 0) -> str:
    """A script for torchrun that makes the shards of both layouts, moves them by the plan of
    /moves and checks every element, on GPUs or on CPUs.

    Args:
        to: the other layout, as for /moves.
        rule: who sends: "nearest", "megatron", "first", "verl" or "slime"; empty: as for /moves.
        first_rank: the first rank of the target; 0: on the GPUs of this layout.
        (the training)
        (the layout)
        (the plan)
    """
    require_text("to", to)
    with fixes_tried(context) as tried:
        return moves_script(_moves_to(to, tried, rule, first_rank)[1])


def moves_facts(
    source: Context, target: Context, found: Moves, rank: int | None = None, by: str = "node"
) -> Document:
    """The bytes, seconds and tensors that move between two layouts, as a JSON document.

    Errors: LayoutError for a rank that the target does not have, and for a matrix that is too
    large.
    """
    chosen, cluster = model_of(source.state), cluster_used(source)
    pairs = found.matrix(by)
    rows, columns = np.nonzero(pairs)
    spend(len(rows) * 2, "table-cells", control="by")
    return {
        "model": chosen.preset,
        "changed": list(chosen.changed),
        "rule": found.rule,
        "source": side_facts(source, found.source.first_rank),
        "target": side_facts(target, found.target.first_rank),
        "bytes": found.bytes._asdict(),
        "seconds": seconds_of(found, cluster),
        "least_seconds": least_seconds(found, cluster),
        "least_bytes": found.least._asdict(),
        "busiest_sender": busiest(found, sender=True)._asdict(),
        "busiest_receiver": busiest(found, sender=False)._asdict(),
        "balance": balance(found),
        "rules": {rule: _by_rule(source, target, found, rule) for rule in RULES},
        "matrix": {
            "by": by,
            "cells": np.stack((rows, columns, pairs[rows, columns]), axis=1).tolist(),
        },
        "rank": rank,
        "tensors": [] if rank is None else [_tensor(row) for row in found.rows(rank)],
    }


def _by_rule(source: Context, target: Context, found: Moves, rule: str) -> Document:
    """The bytes, seconds and busiest sender of another rule."""
    other = found
    if rule != found.rule:
        first, here = found.target.first_rank, found.source.first_rank
        other = moves_between(source, target, rule, first, here)
    return {
        **other.bytes._asdict(),
        "seconds": seconds_of(other, cluster_used(source)),
        "busiest_sender": busiest(other, sender=True)._asdict(),
    }


def side_facts(side: Context, first_rank: int) -> Document:
    layout = side.layout
    return {
        "name": size_text(layout),
        "job": job_fields(layout.explicit_job),
        "world_size": layout.world_size,
        "first_rank": first_rank,
    }


def _tensor(row: TensorMove) -> Document:
    return {
        "tensor": row.tensor,
        "axis": row.axis,
        "parts": [list(part) for part in row.parts],
        "bytes": list(row.sizes),
    }
