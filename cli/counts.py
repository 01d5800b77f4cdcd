"""The number of GPUs from a count on the command line: --gpus, or --dp replicas."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from formats.values import Facts
from groups.alternatives import divisors, fit
from groups.errors import LayoutError
from groups.layout import Job, world_of
from groups.mesh import MAX_RANKS, whole_number

COUNTS = ("gpus", "dp")
"""Counts that follow from a job's sizes, which an option may set instead of one of them."""


def with_counts(job: Job, counts: Facts, settled: Collection[str]) -> Job:
    """The job on the number of GPUs that --gpus sets, or that --dp replicas need.

    counts: the values of these options. settled: names of the other sizes that the user has set.

    >>> with_counts(Job(tp=2), {"dp": 8}, ["tp"]).nodes
    2
    >>> with_counts(Job(), {"gpus": 4}, []).gpus_per_node
    4

    Errors: LayoutError where nodes do not make so many, or so many replicas do not remain.
    """
    counts = {name: whole_number(count, name, maximum=MAX_RANKS) for name, count in counts.items()}
    replica = math.prod(getattr(job, name) for name in ("tp", "pp", "cp") if _is_size(job, name))
    if "nodes" in settled and "gpus" in counts and "gpus_per_node" not in settled:
        each, left = divmod(counts["gpus"], job.nodes) if _is_size(job, "nodes") else (0, 1)
        job = job if left else replace(job, gpus_per_node=each)
    if "nodes" in settled:
        world = world_of(job.nodes, job.gpus_per_node, MAX_RANKS)
    else:
        world = counts.get("gpus", replica * counts.get("dp", 1))
        job = _on(job, world, is_free="gpus_per_node" not in settled)
    if counts.get("gpus", world) != world:
        gpus, facts = {"gpus": world}, {"nodes": job.nodes, "each": job.gpus_per_node}
        facts |= {"world": world, "gpus": counts["gpus"]}
        what = f"{job.nodes} nodes of {job.gpus_per_node} have {world} GPUs, not {counts['gpus']}"
        raise LayoutError("other-gpus", what, control="gpus", alternatives=[gpus], facts=facts)
    if "dp" in counts:
        sizes = {name: getattr(job, name) for name in ("tp", "cp", "pp")}
        fit(world, **sizes, dp=counts["dp"])
    return job


def _is_size(job: Job, name: str) -> bool:
    """Whether a size is valid; the job itself refuses others."""
    size = getattr(job, name)
    return type(size) is int and size > 0


def _on(job: Job, world: int, *, is_free: bool) -> Job:
    """The job on so many GPUs: on full nodes, or on a part of one if nodes may be smaller."""
    each = job.gpus_per_node
    if not _is_size(job, "gpus_per_node"):
        return job  # which it refuses itself
    if world % each == 0:
        return replace(job, nodes=world // each)
    if is_free and world < each:
        return replace(job, nodes=1, gpus_per_node=world)
    near = [{"gpus": count * each} for count in (world // each, world // each + 1) if count]
    whole = max(size for size in divisors(world) if size <= each)
    fixes = [*near, {"gpus_per_node": whole}]
    what = f"{world} GPUs are no full nodes of {each}"
    facts = {"world": world, "each": each}
    raise LayoutError("not-full-nodes", what, control="gpus", alternatives=fixes, facts=facts)
