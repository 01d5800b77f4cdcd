"""What a rank holds or processes besides layers: chunks of the sequence, experts, samples."""

from __future__ import annotations

from ..alternatives import not_a_multiple
from ..mesh import MAX_RANKS, whole_number

MAX_BATCH = 10**12
"""The largest global batch, in samples."""


def sequence_chunks(cp: int, cp_rank: int) -> tuple[int, int]:
    """The two of 2*cp sequence chunks that a context parallel rank holds: i and 2*cp - 1 - i.

    Under a causal mask early chunks attend to few keys and late ones to many; paired like this, all
    ranks have the same work.

    >>> [sequence_chunks(4, rank) for rank in range(4)]
    [(0, 7), (1, 6), (2, 5), (3, 4)]

    Source: NVIDIA/Megatron-LM, megatron/core/utils.py, get_batch_on_this_cp_rank.
    """
    return cp_rank, 2 * cp - 1 - cp_rank


def attended(n: int, rank: int, block: int) -> list[tuple[int, int]]:
    """The (query chunk, key chunk) pairs that a rank computes with K and V of ``block``'s rank.

    Ring attention over n ranks: a query sees keys of its own chunk and of those before.

    >>> attended(2, rank=0, block=0), attended(2, rank=0, block=1), attended(2, rank=1, block=0)
    ([(0, 0), (3, 0), (3, 3)], [(3, 1), (3, 2)], [(1, 0), (2, 0)])
    """
    queries, keys = sequence_chunks(n, rank), sequence_chunks(n, block)
    return [(query, key) for query in queries for key in keys if key <= query]


def local_experts(num_experts: int, ep: int, ep_rank: int) -> range:
    """The experts of an expert parallel rank: a run of num_experts / ep.

    >>> local_experts(8, ep=4, ep_rank=1)
    range(2, 4)

    Errors: LayoutError if ep does not divide num_experts.
    Source: NVIDIA/Megatron-LM, megatron/core/transformer/moe/moe_layer.py, BaseMoELayer.
    """
    experts = whole_number(num_experts, "num_experts", maximum=MAX_RANKS)
    held, left = divmod(experts, ep)
    if left:
        quote = "Number of experts should be a multiple of expert model parallel_size."
        by = {"ep": ep}
        raise not_a_multiple("num_experts", experts, by, maximum=MAX_RANKS, quote=quote)
    return range(ep_rank * held, (ep_rank + 1) * held)


def sample_starts(dp: int, dp_rank: int, micro_batch: int, global_batch: int) -> range:
    """The first sample of each micro-batch of a global batch that a data parallel rank reads.

    Each step all dp ranks read dp * micro_batch consecutive samples, in runs of micro_batch by
    rank; global_batch / (dp * micro_batch) such steps make the batch.

    >>> list(sample_starts(dp=2, dp_rank=1, micro_batch=2, global_batch=8))
    [2, 6]

    Source: NVIDIA/Megatron-LM, megatron/training/datasets/data_samplers.py,
    MegatronPretrainingSampler, with --dataloader-type single.
    """
    return range(dp_rank * micro_batch, global_batch, dp * micro_batch)
