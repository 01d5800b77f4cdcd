"""The endpoints for machines: those of a text, and a better order of them for a layout."""

from __future__ import annotations

import json

import numpy as np

from diagnosis.machines.order import BetterOrder
from diagnosis.machines.order import better_order as order_of
from diagnosis.slow.outliers import slow
from formats.hosts.launchers import launcher_files
from formats.measurements import read_measurements
from formats.values import Document
from groups.layout import Layout
from groups.mesh import whole_number
from training.clusters import machine_of
from training.estimate import seconds_waited

from ..endpoint import endpoint, require_text, serving
from ..hosts import notes_text, placement_from, read_texts


@serving()
def read_hosts(text: str = "", racks: str = "") -> str:
    """Machines of a text in rank order, their slots, racks, switches and NVLink domains, as JSON.

    Args:
        text: a host file, Slurm host list or topology, cloud or Kubernetes JSON, NVLink report.
        racks: another text that says where they stand, such as a topology.conf; empty: the first.
    """
    hosts = read_texts(text, racks)
    inside = hosts.node and {
        "gpus": hosts.node.gpus,
        "nics": hosts.node.nics,
        "links": hosts.node.gpu_links,
        "rails": hosts.node.rails,
    }
    return json.dumps(
        {
            "form": hosts.form,
            "names": hosts.names,
            "slots": hosts.slots,
            "racks": hosts.racks,
            "levels": dict(hosts.levels),
            "ranks": hosts.ranks,
            "remarks": notes_text(hosts.remarks, "en"),
            "node": inside,
        }
    )


@endpoint
def better_order(
    layout: Layout,
    hosts: str = "",
    racks: str = "",
    objective: str = "time",
    model: str = "",
    cluster: str = "dgx-h100",
    global_batch: int = 0,
) -> str:
    """The order of machines under which fewest groups stand in several racks, as JSON.

    Args:
        hosts: the job's machines in their order, as /read_hosts takes them.
        racks: another text that says in which racks, switches or domains they stand; empty: hosts.
        objective: "time" (of a model's step), "dp-first", "pp-first" or as "ep, tp+cp, dp, pp".
        model: a published model, such as "mixtral-8x7b"; empty: none, groups are counted alone.
        cluster: whose links, such as "dgx-h100".
        global_batch: samples of a step; 0: four micro-batches a pipeline stage.
        (the layout)
    """
    seconds = None
    whole_number(global_batch, "global_batch", minimum=0)
    machine_of(cluster)
    if require_text("model", model):
        seconds = seconds_waited(layout, model, cluster, global_batch)
    better = order_of(
        layout, read_texts(hosts, racks), require_text("objective", objective), seconds
    )
    return json.dumps(order_document(better))


@endpoint
def slow_groups(
    layout: Layout, measurements: str = "", worse: str = "high", hosts: str = ""
) -> str:
    """The ranks, groups and pipeline stages whose measured numbers stand out, as JSON.

    Args:
        measurements: CSV or JSON of one number for each rank, or for each GPU of a host.
        worse: "high" (step times, temperatures) or "low" (bandwidths).
        hosts: the job's machines, where the measurements name them; as /read_hosts takes them.
        (the layout)
    """
    placement = placement_from(layout, hosts, "")
    text = require_text("measurements", measurements)
    values = read_measurements(text, layout.world_size, placement)
    known = values[~np.isnan(values)]
    return json.dumps(
        {
            "measured": len(known),
            "median": float(np.median(known)),
            "least": float(known.min()),
            "most": float(known.max()),
            "slow": [vars(outlier) for outlier in slow(values, layout.every, worse=worse)],
        }
    )


def order_document(better: BetterOrder) -> Document:
    """A better order as JSON values, with its files for launchers."""
    return {
        **better.document,
        "kinds": [vars(kind) for kind in better.kinds],
        "upper": [vars(upper) for upper in better.upper],
        "reasons": notes_text(better.reasons, "en"),
        "reasons_zh": notes_text(better.reasons, "zh"),
        "fixes": [{"kind": fix.kind, "place": fix.place, **fix.changes} for fix in better.fixes],
        "files": launcher_files(better.names, better.gpus_per_node),
    }
