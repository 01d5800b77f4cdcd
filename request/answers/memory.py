"""The endpoints for memory: the bytes of a rank of each stage, in training and on servers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from formats.values import Document
from training.estimate.memory import fit_of
from training.memory.optimizing import optimizer_step
from training.memory.per_stage import StageMemory, largest

from ..context import Context
from ..endpoint import LAYOUT, Parameters, empty_if_zero, layout_of, parameter, serving
from ..served import server_facts
from ..state import State
from ..trained import Trained
from ..trained_endpoint import (
    CHANGES,
    changes_of,
    fit_facts,
    fixes_tried,
    job_facts,
    training_endpoint,
)
from .estimate.measured import measured_facts
from .over_step import over_step_facts

SERVED = Parameters(
    "(the server)",
    {
        "model": parameter("model", means='a published model, such as "llama3-70b"'),
        "changes": CHANGES,
        "weights": parameter("served_weights"),
        "cache": parameter("served_cache", start=""),
        "share": parameter("served_share"),
        "max_model_len": parameter("served_length"),
        "max_num_seqs": parameter("served_requests"),
        "max_num_batched_tokens": parameter("served_batched"),
        "a2a": parameter("served_a2a"),
        "partition": parameter("served_partition"),
        "cluster": parameter("cluster"),
        "capacity": parameter("capacity"),
        "log": parameter("engine_log"),
    },
)
"""Parameters of a model on servers."""


def served_arguments(arguments: Mapping[str, object], *more: Parameters) -> Context:
    """The servers that the arguments of an endpoint say; more: its parameters beside SERVED."""
    layout = layout_of(arguments)
    fields = LAYOUT.fields(arguments)
    for each in (SERVED, *more):
        with each.named():
            fields |= each.fields(arguments)
    with SERVED.named():
        fields |= changes_of(arguments["changes"])
    return Context(layout, State(**fields))


@serving(served_arguments, SERVED, LAYOUT)
def server_memory(context: Context) -> str:
    """What a rank of each stage of a server holds, and how many requests fit, as JSON.

    The layout's framework is a server's, such as "vllm" or "sglang". Bytes of weights and of
    working space by part, what the KV cache gets, its tokens and its requests at full length, KV
    heads of a rank and how many ranks keep each, the line that the engine prints; with a log, what
    it says beside what is reckoned, and which rank decides.

    Args:
        (the server)
        (the layout)
    """
    with SERVED.named():
        return json.dumps(server_facts(context))


@training_endpoint
def memory_per_rank(context: Context, capacity: float = 0.0, cluster: str = "dgx-h100") -> str:
    """What a rank of each pipeline stage holds at its worst moment of a step, as JSON.

    All ranks of a stage hold the same: weights, gradients, optimizer state, activations and what
    else there is, each in bytes. "needed_bytes" adds what a GPU must have beside tensors; nine of
    ten real runs need between memory_low_bytes and memory_high_bytes. "fit" is "fits", "close"
    where the limit lies between these, or "over"; "fits" is false only then. "optimizer_step" has
    the bytes that the optimizer's step allocates beside what stays between two steps, null where
    that is unknown, and why: "foreach", "foreach_sgd", "fused", "matrix" or "unknown".

    Args:
        capacity: memory of one GPU in GiB (2**30 bytes); 0: the cluster's.
        cluster: whose GPUs, such as "dgx-h100".
        (the training)
        (the layout)
    """

    with fixes_tried(context, capacity=empty_if_zero(capacity), cluster=cluster) as tried:
        return json.dumps(memory_facts(tried))


def memory_facts(context: Context) -> dict[str, object]:
    """The memory of a rank of each stage, as JSON values.

    Errors: LayoutError for what the model, the batch or the schedule does not allow.
    """
    trained = context.trained
    stages, fit = trained.stages(), fit_of(trained.request(context.layout))
    fullest = largest(stages)
    step = optimizer_step(trained.model, trained.split, trained.training, fullest.parts)
    return {
        **job_facts(trained),
        "capacity_bytes": trained.capacity,
        **fit_facts(fit),
        "fullest_stage": fullest.stage,
        "fullest_bytes": fullest.total,
        "host_bytes_per_rank": fit.host,
        **measured_facts(context),
        "optimizer_step": step._asdict(),
        "ranks_per_stage": context.layout.world_size // trained.split.pp,
        "stages": [
            {
                "stage": stage.stage,
                "layers": stage.parameters.layers,
                "parameters": stage.parameters.total,
                "micro_batches_in_flight": stage.in_flight,
                "bytes": stage.parts,
                "total_bytes": stage.total,
                "host_bytes": stage.host,
            }
            for stage in stages
        ],
    }


@training_endpoint
def memory_over_step(
    context: Context, rank: int = 0, capacity: float = 0.0, cluster: str = "dgx-h100"
) -> str:
    """What one GPU holds over a step, op by op, as JSON.

    "ops" lists what its pipeline rank runs, in order: forwards and backwards of micro-batches, the
    reductions behind them, the optimizer. Each has its start and end, in units of a rank's forward,
    and its bytes by part at its fullest time. "fullest" is the index of the fullest op, whose sum
    is the bytes of the GPU's stage in memory_per_rank. Of long steps as many micro-batches are
    played as repeat ("micro_batches" of "of").

    Args:
        rank: the GPU.
        capacity: memory of one GPU in GiB (2**30 bytes); 0: the cluster's.
        cluster: whose GPUs, such as "dgx-h100".
        (the training)
        (the layout)
    """

    with fixes_tried(context, rank=rank, capacity=empty_if_zero(capacity), cluster=cluster) as own:
        return json.dumps(over_step_facts(own))


def most_on_host(stages: Sequence[StageMemory]) -> StageMemory:
    return max(stages, key=lambda stage: stage.on_host)


def host_facts(trained: Trained) -> Document:
    """For the ranks with most host memory: its bytes, and the transfers; else empty."""
    if trained.training.offload == "none":
        return {}
    fullest = most_on_host(trained.stages())
    crosses = fullest.crossing(trained.training)
    during, after = crosses.seconds(trained.cluster.link)
    return {
        "bytes_per_rank": fullest.on_host,
        "down_bytes": crosses.down,
        "up_bytes": crosses.up,
        "link_bytes_per_second": trained.cluster.link,
        "seconds_during": during,
        "seconds_after": after,
        "parameters_updated": crosses.updated,
    }
