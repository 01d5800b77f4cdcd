"""The endpoint that compares two layouts; its facts are the command's too."""

from __future__ import annotations

import json

from groups.grouping import Grouping
from groups.layout import Layout, job_fields

from ..base.context import Context
from ..base.endpoint import (
    empty_if_zero,
    fit_facts,
    fixes_tried,
    job_facts,
    require_text,
    training_endpoint,
)
from ..estimate.measured import measured_facts
from ..estimate.words import estimate_facts
from .named import context_named
from .sides import SHOWN, Compared, Side, compared_with, settings_that_differ
from .view import moved_by_kind
from .words import verdict_text

SIDES = ("first", "second")
"""The layout that is named, and the one that the parameters ask for."""


@training_endpoint
def compare(
    context: Context,
    kept: str = "",
    cluster: str = "dgx-h100",
    capacity: float = 0.0,
    cp_algorithm: str = "p2p",
) -> str:
    """Which of two layouts is better for the same work, and why, as JSON.

    "first" is the layout that is named by kept, "second" the one that the parameters ask for; both
    train the second one's model and batch on its cluster. "better" is one of them or null,
    "decided_by" is "memory", "time", "bytes" (out of NVLink domains), "nothing" or "refused".

    Args:
        kept: a published layout such as "llama3-405b-1", a link of the page, a launch command or file, a JSON document of this project, or after a ~ what differs from the second: "~tp=8;pp=1".
        cluster: "dgx-a100", "dgx-a100-40gb", "dgx-h100", "dgx-h200", "hgx-h800", "dgx-b200", "dgx-b300", "gb200-nvl72" or "gb300-nvl72".
        capacity: memory of one GPU in GiB (2**30 bytes); 0: the cluster's.
        cp_algorithm: how keys and values go round in a cp group: "p2p", "all_gather" or "a2a".
        (the training)
        (the layout)
    """  # noqa: E501  a tool shows only a parameter's first line
    texts = {"cluster": cluster, "cp_algorithm": cp_algorithm, "capacity": empty_if_zero(capacity)}
    first = context_named(require_text("kept", kept), context)
    with fixes_tried(context, **texts) as second:
        first = context_named(kept, second)
        return json.dumps(compare_facts(compared_with(second, first)))


def compare_facts(found: Compared) -> dict[str, object]:
    """The verdict, what comes of both layouts, which settings and groups differ, for programs.

    Errors: LayoutError for what the model, the batch or the schedule of the second one do not
    allow; a first one that is refused is one of the facts.
    """
    second = found.second.context
    trained, verdict = second.trained, found.verdict
    if found.second.estimate is None:
        trained.estimate(second.layout)
    layouts = found.first.layout, found.second.layout
    return {
        **job_facts(trained),
        "cluster": trained.cluster_id,
        "capacity_bytes": trained.capacity,
        "verdict": verdict_text(found, "en"),
        "better": None if verdict.better is None else SIDES[verdict.better],
        "decided_by": verdict.by,
        "error": verdict.error,
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


def _side(side: Side, found: Compared) -> dict[str, object]:
    known: dict[str, object] = {
        "name": side.name,
        "job": job_fields(side.layout.explicit_job),
        "world_size": side.layout.world_size,
        "refused": "",
    }
    if side.estimate is None:
        return {**known, "refused": str(found.problems[0])}
    step = side.estimate
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
