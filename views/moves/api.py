"""Endpoints for what moves from one layout to another; the command line prints the same facts."""

from __future__ import annotations

import json

import numpy as np

from formats.moves.script import moves_script
from formats.values import Document
from groups.budget import spend
from groups.layout import job_fields
from training.moves import Moves, TensorMove
from training.moves.cost import balance, busiest, least_seconds, seconds_of
from training.moves.senders import RULES

from ..base.context import Context
from ..base.endpoint import fixes_tried, require_text, training_endpoint
from ..base.model import model_of
from ..compare.named import context_named
from .sides import cluster_used, moves_between, size_text


@training_endpoint
def moves(
    context: Context,
    to: str = "",
    rule: str = "megatron",
    first_rank: int = 0,
    rank: int = -1,
    by: str = "node",
    cluster: str = "dgx-h100",
) -> str:
    """What moves of a model's weights from this layout to another, as JSON: in all and by rank.

    "bytes" are what the ranks of the target need: on their GPU already, from their node, from
    others. "seconds" are at the speed of the links, "least_seconds" those that no rule undercuts.
    "matrix" has [from, to, bytes], what stays on the diagonal. "tensors" are one rank's: "parts"
    are [source, source start, target start, length] along "axis", [source] of a whole tensor.

    Args:
        to: the other layout: a published one such as "llama3-405b-1", a link of the page, a launch command or file, a JSON document of this project, or after a ~ what differs from this one: "~tp=8;pp=1".
        rule: who sends: "nearest", "megatron" (its resharding planner) or "first" (one sender a shard, copies pass on).
        first_rank: the first rank of the target; 0: on the GPUs of this layout.
        rank: whose tensors to list; -1: none's.
        by: rows of the matrix: "node" or "rank".
        cluster: "dgx-a100", "dgx-a100-40gb", "dgx-h100", "dgx-h200", "hgx-h800", "dgx-b200", "dgx-b300", "gb200-nvl72" or "gb300-nvl72".
        (the training)
        (the layout)
    """  # noqa: E501  a tool shows only a parameter's first line
    require_text("to", to)
    with fixes_tried(context, cluster=cluster) as tried:
        target = context_named(to, tried)
        found = moves_between(tried, target, rule, first_rank)
        return json.dumps(moves_facts(tried, target, found, None if rank == -1 else rank, by))


@training_endpoint
def moves_check(context: Context, to: str = "", rule: str = "megatron", first_rank: int = 0) -> str:
    """A script for torchrun that makes the shards of both layouts, moves them by the plan of
    /moves and checks every element, on GPUs or on CPUs.

    Args:
        to: the other layout, as for /moves.
        rule: who sends: "nearest", "megatron" or "first".
        first_rank: the first rank of the target; 0: on the GPUs of this layout.
        (the training)
        (the layout)
    """
    require_text("to", to)
    with fixes_tried(context) as tried:
        return moves_script(moves_between(tried, context_named(to, tried), rule, first_rank))


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
        other = moves_between(source, target, rule, found.target.first_rank)
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
