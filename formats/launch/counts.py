"""Counts that programs define differently: batches in tokens or per device, chunks of a layout."""

from __future__ import annotations

from contextlib import suppress

from groups.errors import LayoutError
from groups.layout import Job
from groups.stages.layout_strings import parse_layout

from ..values import Document, Facts


def replicas(job: Job) -> int:
    """The data parallel size of a job.

    >>> replicas(Job(nodes=2, tp=4, pp=2))
    2
    """
    return job.nodes * job.gpus_per_node // (job.tp * job.cp * job.pp)


def chunks_of(job: Job, values: Facts) -> int | None:
    """The number of model chunks on each rank; None for one."""
    count = values.get("vpp") or 1
    if layout := values.get("layout"):
        with suppress(LayoutError):
            count = len(parse_layout(layout)) // job.pp
    return count if count > 1 else None


def local_batch(job: Job, values: Facts) -> Document:
    """Torchtitan's local batch size: with a pipeline all micro-batches of a step, else one of
    them."""
    micro, batch = values.get("micro_batch"), values.get("global_batch")
    if job.pp == 1:
        return {"local_batch": micro, "micro_batch": None}
    share, left = divmod(batch or 0, replicas(job))
    return {"local_batch": share if share and not left else None}


def in_tokens(job: Job, model: Facts) -> Document:
    """Batch sizes in tokens, as in torchtitan after 0.3, which needs the sequence length."""
    sequence, micro, batch = model.get("seq"), model.get("micro_batch"), model.get("global_batch")
    values = {}
    if sequence and micro:
        values["micro_tokens"] = micro * sequence
    if sequence and batch is not None:
        values["step_tokens"] = batch * sequence
    count, left = divmod(batch or 0, replicas(job) * (micro or 1))
    if job.pp > 1 and micro and count and not left:
        values["num_pp_microbatches"] = count
    return values
