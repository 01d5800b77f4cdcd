"""SGLang's defaults: tokens per prefill chunk, and the share of a GPU.

Source: sgl-project/sglang 0.5.23 python/sglang/srt/arg_groups/memory_hook.py
(handle_gpu_memory_settings, reserve_for_graph_mb and reserve_for_deepep_a2a_mb, in MiB;
attention's dp divides the chunk only afterwards) and cuda_graph_hook.py (graphs of prefill and
their sizes; none where pp or dcp cut layers or sequences, nor, but for few backends of attention,
where its cp does).
"""

from __future__ import annotations

import math

from ..machine import GIB

MIB = 2**20

A2A = ("deepep",)
"""Ways of tokens to their experts, by --moe-a2a-backend, for which the default keeps room."""

DEFAULTS: tuple[tuple[float, int, int, int], ...] = (
    (20, 2048, 8, 8),
    (35, 4096, 48, 160),
    (60, 4096, 32, 160),
    (160, 8192, 256, 512),
    (math.inf, 16384, 512, 512),
)
"""For GPUs with less than so many GiB: the chunk, and the largest decode batch with a CUDA graph,
for tp below 4 and from 4 on."""


def prefill_chunk(total: float) -> int:
    """Tokens per prefill chunk on a GPU with ``total`` bytes."""
    return _defaults(total)[1]


def sglang_share(
    total: float,
    chunk: int,
    requests: int = 0,
    *,
    tp: int,
    pp: int = 1,
    attention_dp: int = 1,
    is_mla: bool = False,
    is_whole: bool = True,
    is_deepep: bool = False,
) -> float:
    """The default of mem_fraction_static: the share of a GPU that activations and CUDA graphs
    leave; on a large GPU they get at least 10 GiB.

    tp: ranks of a stage, in attention_dp parts that each hold all of attention. For each part and
    each request of the largest batch another 3 MiB are kept, 4.5 MiB from 300 requests on, so the
    result may be 0 or less. requests: the most concurrent requests; 0: no limit. is_whole: no cp or
    dcp divides sequences; is_deepep: DeepEP, which needs additional buffers, sends tokens to their
    experts.

    >>> sglang_share(79.18 * GIB, 8192, tp=8)
    0.811
    >>> sglang_share(79.18 * GIB, 8192, tp=8, attention_dp=8, is_mla=True)
    0.571
    >>> sglang_share(139.59 * GIB, 8192, tp=16, is_deepep=True)
    0.864
    """
    _, _, small, large = _defaults(total)
    batch = large if tp >= 4 else small
    batch = min(batch, requests or batch)
    reserved = 512 + 1.5 * max(chunk, 2048) + 1024 * tp * pp / 8 + 2 * batch
    if attention_dp > 1:
        reserved += (4.5 if batch > 300 else 3) * batch * attention_dp
    if pp == 1 and is_whole:
        reserved += (1536 if is_mla else 8 * _graphs(chunk)) + 1024 * is_deepep
    mib = total / MIB
    if mib > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    reserved += 2048 * is_deepep
    return round((mib - reserved) / mib, 3)


def _defaults(total: float) -> tuple[float, int, int, int]:
    return next(row for row in DEFAULTS if total < row[0] * GIB)


def _graphs(chunk: int) -> int:
    """The number of prefill sizes with a CUDA graph.

    >>> [_graphs(chunk) for chunk in (2048, 4096, 8192, 16384)]
    [42, 50, 58, 74]
    """
    steps = ((4, 32), (16, 256), (32, 512), (64, 1024), (256, 4096), (512, chunk))
    starts = (0, *(end for _, end in steps))
    return sum(
        (min(end, chunk) - start) // step
        for start, (step, end) in zip(starts, steps)
        if chunk > start
    )
