"""The endpoints about a model on a layout: memory of each rank, traffic of a step, better layouts.

They ask what the Memory, Traffic and Better layouts views ask, under the names that the fields of
those views have in the page's links.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from descriptions import PURPOSES
from groups import LayoutError
from groups.errors import not_a_choice, quoted
from groups.mesh import whole_number
from training.memory.per_stage import StageMemory, Training, largest
from training.model import require_choice
from training.models import DEFAULT
from training.parameters import active_parameters, total_parameters
from training.pipeline.in_flight import SCHEDULES
from training.reasons import Reason, alone, compared
from training.search import Candidate, search, worked_out
from training.search import Job as Search
from training.traffic.per_step import Computation, Traffic, exposed_by_kind

from .base.context import Context
from .base.endpoint import LAYOUT, Shared, layout_of, require_text, serving, stated
from .base.model import FLAGS, OF_COLUMN, SIZES
from .base.state import State
from .base.trained import Trained, trained_of
from .search.view import job_of, reason_text
from .traffic.inputs import fixes_of_training
from .traffic.view import sent_in_a_step

TRAINING = Shared(
    "(the training)",
    {
        "model": (str, DEFAULT, 'a published model, such as "llama3-70b" or "deepseek-v3".'),
        "changes": (
            str,
            "",
            'a JSON object of what differs from it, such as {"layers": 40, "sequence": 4096}.',
        ),
        "micro_batch": (int, 1, "samples of a micro-batch."),
        "global_batch": (int, 0, "samples of a step; 0: four micro-batches a pipeline stage."),
        "vpp": (int, 1, "chunks of layers on each pipeline rank."),
        "memory_schedule": (
            str,
            "",
            'the pipeline schedule; empty: "1f1b", with vpp "interleaved".',
        ),
        "precision": (str, "bf16-fp32", "formats of weights and gradients."),
        "zero": (int, 1, "stage of ZeRO, 0 to 3; 1: Megatron's distributed optimizer."),
        "recompute": (str, "selective", '"none", "selective" or "full".'),
        "sequence_parallel": (bool, True, "whether tp cuts the sequence too."),
        "spread": (str, "equal", 'layers of the stages: "equal", or "nearly" (one more on some).'),
        "account": (bool, False, "whether embedding and loss count as a layer each."),
    },
)


Found = TypeVar("Found")


def context_of(**given: Any) -> Context:
    """What the parameters of `TRAINING` and `LAYOUT` ask for.

    Errors: LayoutError about a layout that cannot be, or a value of another type; the values
    themselves are checked by the views' readers.
    """
    job = {name: given.pop(name) for name in LAYOUT.parameters}
    layout = layout_of(**job)
    for name in ("micro_batch", "vpp"):
        whole_number(given[name], name)
    whole_number(given["global_batch"], "global_batch", minimum=0)
    for name in ("sequence_parallel", "account"):
        require_choice(name, given[name], (False, True))
    if given["memory_schedule"]:
        require_choice("memory_schedule", given["memory_schedule"], tuple(SCHEDULES))
    changes = _changes(given["changes"])
    column = {name: changes.pop(name) for name in OF_COLUMN if name in changes}
    whose = {"framework": "own"} if job["order"] else {}
    state = State(
        **{**job, "etp": job["etp"] or "", **whose, **column},
        **{name: given[name] for name in ("vpp", "account", "micro_batch")},
        global_batch=given["global_batch"] or "",
        schedule=given["memory_schedule"],
        **{name: given[name] for name in ("model", "precision", "recompute")},
        zero=str(whole_number(given["zero"], "zero", minimum=0)),
        sequence_parallel="on" if given["sequence_parallel"] else "off",
        spread=given["spread"],
        **changes,
    )
    return Context(layout, state)


def _changes(text: Any) -> dict[str, Any]:
    """The fields of a model that are typed over its preset, as the page has them."""
    require_text("changes", text)
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise LayoutError(
            "not-an-object",
            f"{quoted(text)} is not a JSON object",
            control="changes",
            facts={"value": quoted(text)},
        )
    known = (*OF_COLUMN, *SIZES, *FLAGS, "biases")
    for name in given:
        if name not in known:
            raise not_a_choice("changes", name, known)
    switches = {True: "on", False: "off"}
    return {
        name: switches[value] if name in FLAGS and isinstance(value, bool) else value
        for name, value in given.items()
    }


def _answered(context: Context, work: Callable[[], Found]) -> Found:
    """What the work comes to; a refusal has the changes that were tried and work."""
    try:
        return work()
    except LayoutError as error:
        ways = fixes_of_training(error, context)
        fixes = [_renamed(changes) for changes in ways]
        raise error.renamed(PARAMETERS).but(alternatives=fixes) from None


PARAMETERS = {"schedule": "memory_schedule"}
"""The parameter of a field of the page, where they have different names."""


def _renamed(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {PARAMETERS.get(name, name): value for name, value in changes.items()}


training_endpoint = serving(context_of, TRAINING, LAYOUT)
"""A function of a model on a layout, as one of the parameters of both."""


# -- memory --------------------------------------------------------------------------------------


@training_endpoint
def memory_per_rank(context: Context, capacity: float = 0.0, cluster: str = "dgx-h100") -> str:
    """What a rank of each pipeline stage holds at its worst moment of a step, as JSON.

    All ranks of a stage hold the same: weights, gradients, optimizer state, activations and what
    else there is, each in bytes.

    Args:
        capacity: memory of one GPU in GiB (2**30 bytes); 0: the cluster's.
        cluster: whose GPUs, such as "dgx-h100".
        (the training)
        (the layout)
    """

    def work() -> tuple[Trained, tuple[StageMemory, ...]]:
        trained = _trained(context, capacity=stated(capacity), cluster=cluster)
        return trained, trained.stages()

    trained, stages = _answered(context, work)
    most = largest(stages)
    return json.dumps(
        {
            **_job(trained),
            "capacity_bytes": trained.capacity,
            "fits": most.total <= trained.capacity,
            "fullest_stage": most.stage,
            "fullest_bytes": most.total,
            "ranks_per_stage": context.layout.world_size // trained.split.pp,
            "stages": [
                {
                    "stage": one.stage,
                    "layers": one.parameters.layers,
                    "parameters": one.parameters.total,
                    "micro_batches_in_flight": one.in_flight,
                    "bytes": one.parts,
                    "total_bytes": one.total,
                }
                for one in stages
            ],
        }
    )


def _job(trained: Trained) -> dict[str, Any]:
    """The model and its training, with what was taken where nothing is said."""
    chosen, training = trained.chosen, trained.training
    return {
        "model": chosen.preset,
        "changed": list(chosen.changed),
        "parameters": total_parameters(chosen.model),
        "active_parameters": active_parameters(chosen.model),
        "training": {
            "global_batch": training.micro_batches * training.micro_batch * trained.split.dp,
            **{one.name: getattr(training, one.name) for one in fields(Training)},
        },
    }


# -- traffic -------------------------------------------------------------------------------------


@training_endpoint
def traffic_per_step(context: Context, cluster: str = "dgx-h100", cp_algorithm: str = "p2p") -> str:
    """What each kind of group sends in one step, over which links, and how long, as JSON.

    Seconds are lower bounds: bytes over the speed of the links. Exposed is what no computation
    hides; the most exposed come first. Bytes "across" leave NVLink domains.

    Args:
        cluster: "dgx-a100", "dgx-a100-40gb", "dgx-h100", "dgx-h200", "hgx-h800", "dgx-b200", "dgx-b300", "gb200-nvl72" or "gb300-nvl72".
        cp_algorithm: how keys and values go round in a cp group: "p2p", "all_gather" or "a2a".
        (the training)
        (the layout)
    """  # noqa: E501  a tool shows only a parameter's first line

    def work() -> tuple[Trained, list[Traffic], Computation]:
        trained = _trained(context, cluster=cluster, cp_algorithm=cp_algorithm)
        return trained, *sent_in_a_step(context.layout, trained)

    trained, rows, time = _answered(context, work)
    return json.dumps(
        {
            **_job(trained),
            "cluster": trained.cluster_id,
            "nvlink_bytes_per_second": trained.cluster.nvlink,
            "network_bytes_per_second": trained.cluster.nic,
            "domain": trained.cluster.domain_of(context.layout.gpus_per_node),
            "computation_seconds": time.step,
            "exposed_seconds_by_kind": exposed_by_kind(rows),
            "total_bytes": sum(row.total for row in rows),
            "across_bytes": sum(row.across for row in rows),
            "rows": [_row(row) for row in rows],
        }
    )


def _trained(context: Context, **changes: Any) -> Trained:
    return trained_of(context.layout, replace(context.state, **changes))


def _row(row: Traffic) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "group_size": row.size,
        "purpose": row.what,
        "meaning": PURPOSES[row.what]["en"],
        "operation": row.operation,
        "count": row.count,
        "buffer_bytes": row.buffer,
        "sent_bytes_per_rank": row.sent,
        "total_bytes": row.total,
        "across_bytes": row.across,
        "seconds": row.seconds,
        "exposed_seconds": row.exposed,
        "hidden_by": row.beside,
    }


# -- better layouts ------------------------------------------------------------------------------


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
    trained = _answered(context, lambda: _trained(context, **own))
    job = job_of(context.layout, trained)
    current, refusal = None, ""
    try:
        current = worked_out(job, trained.split)
    except LayoutError as error:
        refusal = str(error)
    found = search(job)
    return json.dumps(
        {
            **_job(trained),
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
