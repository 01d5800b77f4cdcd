"""The endpoint about better layouts of the same model on the same GPUs."""

from __future__ import annotations

import json
from typing import Any

from groups import LayoutError
from training.reasons import Reason, alone, compared
from training.search import Candidate, evaluate, search
from training.search import SearchJob as Search

from ..base.context import Context
from ..base.endpoint import stated
from ..base.training_endpoint import answered, job_facts, trained_with, training_endpoint
from .view import job_of, reason_text


@training_endpoint
def better_layouts(
    context: Context,
    cluster: str = "dgx-h100",
    capacity: float = 0.0,
    cp_algorithm: str = "p2p",
) -> str:
    """The best ten layouts of a model on so many GPUs, with their numbers and reasons, as JSON.

    The GPUs, orders and batch are those of the layout that is given; reasons compare with it.
    Seconds are lower bounds; layouts that do not fit into memory come last.

    Args:
        cluster: "dgx-a100", "dgx-a100-40gb", "dgx-h100", "dgx-h200", "hgx-h800", "dgx-b200", "dgx-b300", "gb200-nvl72" or "gb300-nvl72".
        capacity: memory of one GPU in GiB (2**30 bytes); 0: the cluster's.
        cp_algorithm: how keys and values go round in a cp group: "p2p", "all_gather" or "a2a".
        (the training)
        (the layout)
    """  # noqa: E501  a tool shows only a parameter's first line
    own = {"cluster": cluster, "cp_algorithm": cp_algorithm, "capacity": stated(capacity)}
    trained = answered(context, lambda: trained_with(context, **own))
    job = job_of(context.layout, trained)
    current, refusal = None, ""
    try:
        current = evaluate(job, trained.split)
    except LayoutError as error:
        refusal = str(error)
    found = search(job)
    return json.dumps(
        {
            **job_facts(trained),
            "cluster": trained.cluster_id,
            "world_size": job.world,
            "capacity_bytes": job.capacity,
            "tried": found.tried,
            "too_large": found.too_large,
            "complete": found.complete,
            "given": current and _candidate(job, current, alone(current, job.capacity)),
            "given_is_refused": refusal,
            "best": [_candidate(job, one, _reasons(job, one, current)) for one in found.best],
        }
    )


def _reasons(job: Search, one: Candidate, current: Candidate | None) -> list[Reason]:
    if current is None or one.sizes == current.sizes:
        return alone(one, job.capacity)
    return compared(one, current, job.capacity)


def _candidate(job: Search, one: Candidate, reasons: list[Reason]) -> dict[str, Any]:
    return {
        **one.sizes,
        "spread": one.split.spread,
        "memory_schedule": one.training.schedule,
        "micro_batches": one.training.micro_batches,
        "memory_bytes": one.memory,
        "fits": one.memory <= job.capacity,
        "fullest_stage": one.stage,
        "step_seconds": one.seconds,
        "computation_seconds": one.compute,
        "idle_seconds": one.idle,
        "exposed_seconds": one.exposed,
        "exposed_seconds_by_kind": dict(one.by_kind),
        "across_bytes": one.across,
        "reasons": [
            {"code": reason.code, "words": reason_text(reason, "en")} for reason in reasons
        ],
    }
