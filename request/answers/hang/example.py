"""An example hang: the output of PyTorch's watchdog for one group of a layout in which a GPU is
missing."""

from __future__ import annotations

from groups.layout import Layout

NAMES = {
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "dp": "DATA_PARALLEL_GROUP",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "cp": "CONTEXT_PARALLEL_GROUP",
}
"""Megatron's descriptions (parallel_state.py) of the kinds for an example: the first with several
ranks."""

MOST = 64
"""The largest group of an example."""


def watchdog_example(layout: Layout) -> str:
    """The watchdog's lines of the second group (or only one) of the first kind with several ranks,
    whose second member is behind the others (formats/logs/lines.py has their form).

    >>> from groups.layout import Job
    >>> text = watchdog_example(Job(nodes=1, tp=4, pp=1).layout())
    >>> [line[:8] for line in text.splitlines()], text.count("failure detected")
    (['[rank4]:', '[rank5]:', '[rank6]:', '[rank7]:'], 3)

    Empty where every group is one rank or too large to read.
    """
    ranks = _ranks(layout)
    kind = _kind(layout)
    if not ranks:
        return ""
    group = f"PG ID 2 PG GUID 40({NAMES[kind]})"
    stuck = " failure detected by watchdog at work sequence id: 7"
    return "\n".join(
        f"[rank{rank}]:[E] [{group} Rank {place}] PG status: last enqueued work: {6 + (place != 1)}"
        f", last completed work: 6{stuck if place != 1 else ''}"
        for place, rank in enumerate(ranks)
    )


def _kind(layout: Layout) -> str:
    """The first kind with several ranks; empty if no group has a suitable size."""
    kinds = {name: grouping for name in NAMES if (grouping := layout.kind(name)) is not None}
    return next((name for name, one in kinds.items() if 1 < one.size <= MOST), "")


def _ranks(layout: Layout) -> list[int]:
    """The ranks of its second group, or of its only one."""
    grouping = layout.kind(_kind(layout)) if _kind(layout) else None
    if grouping is None:
        return []
    return [int(rank) for rank in grouping.members(int(grouping.firsts()[:2][-1]))]


def stacks_example(layout: Layout) -> str:
    """The stacks of the same ranks in the form of torch.distributed.debug: one is in its data
    loader, the others wait in a collective (formats/logs/stacks.py has their form).

    >>> from groups.layout import Job
    >>> text = stacks_example(Job(nodes=1, tp=4, pp=1).layout())
    >>> text.count("=== Rank"), text.count("in all_reduce")
    (4, 3)

    Empty where `watchdog_example` is.
    """
    ranks = _ranks(layout)
    return "\n".join(
        _STACK.format(rank=rank, frames=_LOADS if place == 1 else _WAITS)
        for place, rank in enumerate(ranks)
    )


_STACK = """\
=== Rank {rank}: http://gpu-{rank}:25999/stacks ===
Thread 0x00007f5a (most recent call first):
{frames}
  File "/work/train.py", line 118 in step"""

_WAITS = """\
  File "/opt/torch/distributed/distributed_c10d.py", line 3054 in all_reduce
  File "/opt/torch/distributed/c10d_logger.py", line 83 in wrapper"""

_LOADS = """\
  File "/opt/torch/utils/data/dataloader.py", line 1284 in _next_data
  File "/opt/torch/utils/data/dataloader.py", line 733 in __next__"""
