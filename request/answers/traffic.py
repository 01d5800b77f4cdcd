"""The endpoint for traffic: the bytes that each kind of group sends in a step."""

from __future__ import annotations

import json
from collections.abc import Iterable

from descriptions import PURPOSES
from groups import LayoutError
from groups.layout import Layout
from training.machine import NUMBERS, Machine
from training.traffic.per_step import Traffic, traffic
from training.traffic.reached import reached_seconds

from ..context import Context
from ..trained import Trained
from ..trained_endpoint import fixes_tried, job_facts, training_endpoint
from .estimate.measured import measured_facts
from .estimate.words import estimate_facts
from .memory import host_facts


@training_endpoint
def traffic_per_step(context: Context, cluster: str = "dgx-h100", cp_algorithm: str = "p2p") -> str:
    """What each kind of group sends in one step, over which links, and how long, as JSON.

    Seconds of a row are bytes over the speed of the links, null where lacks names the number of the
    machine that is not known; reached_seconds what such groups really take, null where nobody
    measured any; links_unknown says what to give. A step takes about step_seconds (null where
    step_unknown says which number of the machine is missing), nine of ten real ones between low and
    high; parts say for what. Bytes "across" leave NVLink domains.

    Args:
        cluster: (the machines).
        cp_algorithm: how keys and values go round in a cp group: "p2p", "all_gather" or "a2a".
        (the training)
        (the layout)
    """

    with fixes_tried(context, cluster=cluster, cp_algorithm=cp_algorithm) as tried:
        return json.dumps(traffic_facts(tried))


def traffic_facts(context: Context) -> dict[str, object]:
    """The bytes of each kind of group in a step, as JSON values.

    Errors: LayoutError for what the model, the batch or the schedule does not allow.
    """
    trained, layout = context.trained, context.layout
    rows = rows_of(layout, trained)
    return {
        **job_facts(trained),
        "cluster": trained.cluster_id,
        "nvlink_bytes_per_second": trained.cluster.nvlink or None,
        "network_bytes_per_second": trained.cluster.nic or None,
        "links_unknown": [str(error) for error in unknown_links(rows, trained.cluster)],
        "domain": trained.cluster.domain_of(layout.gpus_per_node),
        **_step(trained, layout),
        **measured_facts(context),
        "host": host_facts(trained),
        "total_bytes": sum(row.total for row in rows),
        "across_bytes": sum(row.across for row in rows),
        "rows": [_row(row, trained.cluster) for row in rows],
    }


def _step(trained: Trained, layout: Layout) -> dict[str, object]:
    """The step as JSON values; of a machine of which a number is unknown that a step's time needs
    and its bytes do not, no seconds, and which number that is."""
    try:
        return {**estimate_facts(trained.estimate(layout)), "step_unknown": ""}
    except LayoutError as error:
        if error.code not in UNKNOWN:
            raise
        return {"step_seconds": None, "step_unknown": str(error)}


def unknown_links(rows: Iterable[Traffic], machine: Machine) -> list[LayoutError]:
    """What to give of a machine so that the seconds of every transfer are known."""
    return [
        machine.lacks(name) for name in dict.fromkeys(name for row in rows for name in row.lacks)
    ]


UNKNOWN = [code for code, _ in NUMBERS.values()]
"""Refusals for want of a number of the machine."""


def _row(row: Traffic, machine: Machine) -> dict[str, object]:
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
        "lacks": list(row.lacks),
        "reached_seconds": reached_seconds(row, machine),
        "hidden_by": row.beside,
    }


def rows_of(layout: Layout, trained: Trained) -> list[Traffic]:
    """Every transfer of a step. Errors: as of `Trained.stages`."""
    return traffic(
        trained.model,
        trained.split,
        trained.training,
        layout.roles,
        trained.cluster,
        layout.gpus_per_node,
        trained.cp_algorithm,
        [stage.parameters for stage in trained.stages()],
    )
