"""The endpoint that compares two layouts; the command line prints the same facts."""

from __future__ import annotations

import json
from collections.abc import Mapping

from groups.audit import span
from groups.grouping import Grouping
from groups.layout import Layout, job_fields

from ...context import Context
from ...endpoint import LAYOUT, Parameters, empty_if_zero, require_text, serving
from ...named.kept import SHOWN
from ...named.text import context_named
from ...resolve import layout_for, main_groupings
from ...served import server_facts
from ...trained import cluster_of
from ...trained_endpoint import TRAINING, fit_facts, fixes_tried, job_facts, trainable_of
from ..estimate.measured import measured_facts
from ..estimate.words import estimate_facts, order_facts
from ..memory import SERVED
from .sides import (
    Compared,
    Side,
    compared_with,
    moved_by_kind,
    settings_that_differ,
)
from .words import verdict_text

SIDES = ("first", "second")
"""The layout that is named, and the one of the parameters."""


_OF_SERVER = {name: row for name, row in SERVED.rows.items() if row.field.startswith("served_")}
SERVING = Parameters("(the server)", _OF_SERVER, late=_OF_SERVER)
"""How a server among the parameters serves."""


OF_FIT = ("no-room-for-cache", "sglang-reserves-all", "request-does-not-fit")
"""Refusals of a server that could be started but for its memory."""


def _compared_of(arguments: Mapping[str, object]) -> Context:
    context = trainable_of(arguments)
    with SERVING.named():
        state = context.state.changed(SERVING.fields(arguments))
    return Context(layout_for(context.layout, state), state)


@serving(_compared_of, TRAINING, LAYOUT, SERVING)
def compare(
    context: Context,
    kept: str = "",
    cluster: str = "dgx-h100",
    capacity: float = 0.0,
    cp_algorithm: str = "p2p",
) -> str:
    """Which of two layouts is better for the same work, and why, as JSON.

    "first" is the layout that is named by kept, "second" the one that the parameters ask for; both
    train the second one's model and batch on its cluster, or serve it. "better" is one of them or
    null, "order" says how sure it is that the first is quicker ("is_quicker", 0 to 1), "decided_by" is "memory", "time", "bytes" (out of NVLink domains), "nothing" or "refused".
    A server has no step, so beside one "better" is the one that is not refused, or null; each side
    has its groups, and a server what server_memory says, with its tokens and requests per GPU.

    Args:
        kept: a published layout such as "llama3-405b-1", a link of the page, a launch command or file, a JSON document of this project, or after a ~ what differs from the second: "~tp=8;pp=1".
        cluster: (the machines).
        capacity: memory of one GPU in GiB (2**30 bytes); 0: the cluster's.
        cp_algorithm: how keys and values go round in a cp group: "p2p", "all_gather" or "a2a".
        (the training)
        (the layout)
        (the server)
    """  # noqa: E501  a tool shows only a parameter's first line
    texts = {"cluster": cluster, "cp_algorithm": cp_algorithm, "capacity": empty_if_zero(capacity)}
    first = context_named(require_text("kept", kept), context)
    with SERVING.named(), fixes_tried(context, **texts) as second:
        first = context_named(kept, second)
        return json.dumps(compare_facts(compared_with(second, first)))


def compare_facts(found: Compared) -> dict[str, object]:
    """The verdict, the costs of both layouts, and the settings and groups that differ, as JSON
    values.

    Errors: LayoutError for what the model, the batch or the schedule of the second one do not
    allow; a first one that is refused is one of the facts, and so is a server.
    """
    second, verdict = found.second.context, found.verdict
    if found.second.estimate is None and not second.layout.is_server:
        second.trained.estimate(second.layout)
    problem = found.second.problem
    if problem and str(problem.control).startswith("served_") and problem.code not in OF_FIT:
        raise problem
    layouts = found.first.layout, found.second.layout
    return {
        **_work(found),
        "verdict": verdict_text(found, "en"),
        "better": None if verdict.better is None else SIDES[verdict.better],
        "decided_by": verdict.by,
        "error": verdict.error,
        "order": found.order and order_facts(found.order),
        **{name: _side(side, found) for name, side in zip(SIDES, found.sides)},
        "settings": [
            {"name": name, **dict(zip(SIDES, values))}
            for name, *values in settings_that_differ(found.first.context, second, "en")
            if name not in SHOWN
        ],
        "groups": [
            {
                "kind": kind,
                **{name: _groups(each, kind) for name, each in zip(SIDES, layouts)},
                "moved_ranks": moved,
            }
            for kind, moved in moved_by_kind(*layouts).items()
        ],
    }


def _work(found: Compared) -> dict[str, object]:
    """What both do, and on which GPUs; beside a server what the second one does."""
    context = found.second.context
    if not context.layout.is_server:
        trained = context.trained
        on = {"cluster": trained.cluster_id, "capacity_bytes": trained.capacity}
        return {**job_facts(trained), **on}
    cluster = {"cluster": cluster_of(context.state)}
    if found.second.served is None:
        return {"model": context.state.model, "changed": [], **cluster}
    known = server_facts(context)
    same = ("model", "changed", "max_model_len", "capacity_bytes")
    return {**{name: known[name] for name in same}, **cluster}


def _side(side: Side, found: Compared) -> dict[str, object]:
    layout, world = side.layout, side.layout.world_size
    known: dict[str, object] = {
        "name": side.name,
        "job": job_fields(layout.explicit_job),
        "world_size": world,
        "refused": "",
    }
    if found.serves:
        known["does"] = layout.made_by.does
        known["groups"] = {
            one.name: {
                **(_groups(layout, one.name) or {}),
                "leave_node": reach.crossing,
                "most_nodes": reach.most,
            }
            for one in main_groupings(layout)
            for reach in [span(one, layout.gpus_per_node)]
        }
    if side.is_refused:
        return {**known, "refused": str(side.problem or found.problems[0])}
    if side.served is not None:
        return {
            **known,
            **server_facts(side.context),
            "all_tokens": side.served.tokens,
            "all_requests": side.served.requests,
            "tokens_per_gpu": side.served.tokens / world,
            "requests_per_gpu": side.served.requests / world,
        }
    step = side.estimate
    assert step
    return {
        **known,
        **estimate_facts(step),
        **measured_facts(side.worked),
        **fit_facts(step.fit),
        "across_bytes": side.across,
    }


def _groups(layout: Layout, kind: str) -> dict[str, object] | None:
    grouping: Grouping | None = layout.every.get(kind)
    return None if grouping is None else {"count": grouping.num_groups, "size": grouping.size}
