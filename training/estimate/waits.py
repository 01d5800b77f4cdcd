"""What a step waits for each kind of group, of a model that is named."""

from __future__ import annotations

from groups.layout import Layout

from ..clusters import CLUSTERS
from ..errors import require_choice
from ..models import MODELS
from .answer import estimate
from .seconds import PARTS

WAITED = tuple(name for name in PARTS if name in ("tp", "cp", "ep", "pp", "dp"))
ROUNDS = 4
"""Micro-batches of a pipeline stage where nobody says how many samples a step has."""


def seconds_waited(
    layout: Layout, model: str, cluster: str = "dgx-h100", global_batch: int = 0
) -> dict[str, float]:
    """Seconds of a step by kind, of a published model trained on a layout.

    global_batch: samples of a step; 0: ROUNDS micro-batches of one for each pipeline stage.

    >>> from groups.job import Job
    >>> seconds = seconds_waited(Job(nodes=2, tp=8, pp=2).layout(), "llama3-8b")
    >>> seconds["tp"] > seconds["pp"] > seconds["ep"] == 0.0
    True

    Errors: LayoutError for no such model or cluster, and for what does not go together.
    """
    require_choice("model", model, tuple(MODELS))
    require_choice("cluster", cluster, tuple(CLUSTERS))
    mesh = layout.mesh
    shape = MODELS[model].model
    expert = layout.expert if shape.experts else None
    step = estimate(
        shape,
        cluster=cluster,
        gpus=layout.world_size,
        gpus_per_node=layout.gpus_per_node,
        tp=mesh.size("tp"),
        cp=mesh.size("cp"),
        pp=mesh.size("pp"),
        ep=expert.size("ep") if expert else 1,
        etp=expert.size("etp") if expert else None,
        global_batch=global_batch or ROUNDS * mesh.size("pp") * mesh.size("dp"),
    )
    return {name: step.parts[name] for name in WAITED}
