"""The endpoint for the time of a step: the estimate, its parts and the nearest measured runs."""

from __future__ import annotations

import json

from training.estimate import MeasuredRun, sources

from ...context import Context
from ...endpoint import empty_if_zero
from ...trained_endpoint import fit_facts, fixes_tried, job_facts, training_endpoint
from .measured import measured_facts
from .used import use_facts
from .words import estimate_facts


@training_endpoint
def estimate(
    context: Context,
    cluster: str = "dgx-h100",
    capacity: float = 0.0,
    cp_algorithm: str = "p2p",
    own_step: str = "",
) -> str:
    """About how long a training step takes, and whether it fits in memory, as JSON.

    A step takes about step_seconds, nine of ten real ones between low and high; parts say for what. "fit" is "fits", "close" where the limit of memory lies within its error,
    memory_low_bytes to memory_high_bytes, or "over".
    "nearest" are the measured runs of others that are most like it. "used" says how well the GPUs are used, "from_peak_seconds" what each cause adds to the time at their peak.

    Args:
        cluster: (the machines).
        capacity: memory of one GPU in GiB (2**30 bytes); 0: the cluster's.
        cp_algorithm: how keys and values go round in a cp group: "p2p", "all_gather" or "a2a".
        own_step: a measured step: seconds, tokens/s, TFLOP/s, or lines of Megatron's log.
        (the training)
        (the layout)
    """  # noqa: E501  a tool shows only a parameter's first line
    texts = {"cluster": cluster, "cp_algorithm": cp_algorithm, "capacity": empty_if_zero(capacity)}
    texts["own_step"] = own_step
    with fixes_tried(context, **texts) as changed:
        return json.dumps(step_facts(changed))


def step_facts(context: Context) -> dict[str, object]:
    """The time of a step, its parts, the memory of the fullest GPU and the nearest runs, as JSON
    values.

    Errors: LayoutError for what the model, the batch or the schedule does not allow.
    """
    trained = context.trained
    step = trained.estimate(context.layout)
    return {
        **job_facts(trained),
        "cluster": trained.cluster_id,
        "world_size": context.layout.world_size,
        **estimate_facts(step),
        **measured_facts(context),
        "capacity_bytes": trained.capacity,
        **fit_facts(step.fit),
        "nearest": [_run(run) for run in step.nearest(NEAREST)],
        **use_facts(context, step),
    }


def _run(run: MeasuredRun) -> dict[str, object]:
    arguments = run.arguments
    return {
        "model": run.model,
        "gpus": arguments.gpus,
        "cluster": arguments.cluster,
        "precision": arguments.precision,
        "measured_seconds": run.seconds,
        "source": sources()[run.source]["name"],
    }


NEAREST = 5
"""The number of measured runs shown."""
