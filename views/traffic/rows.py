"""The transfers of a training step."""

from __future__ import annotations

from groups.layout import Layout
from request.trained import Trained
from training.traffic.per_step import Traffic, traffic


def rows_of(layout: Layout, trained: Trained) -> list[Traffic]:
    """Every transfer of a step. Errors: as of `Trained.stages`."""
    return traffic(
        trained.model,
        trained.split,
        trained.training,
        layout.every,
        trained.cluster,
        layout.gpus_per_node,
        trained.cp_algorithm,
        [stage.parameters for stage in trained.stages()],
    )
