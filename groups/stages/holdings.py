"""What a rank holds and works on beside layers: chunks of the sequence, experts, samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..alternatives import not_a_multiple
from ..mesh import MAX_RANKS, whole_number

MAX_BATCH = 10**12
"""Samples that one batch may have: beyond any, and short enough to read."""


def sequence_chunks(cp: int, cp_rank: int) -> tuple[int, int]:
    """The two of 2*cp sequence chunks that a context parallel rank holds: i and 2*cp - 1 - i.

    Under a causal mask early chunks attend to little and late ones to much; so paired, every rank
    computes alike.

    >>> [sequence_chunks(4, rank) for rank in range(4)]
    [(0, 7), (1, 6), (2, 5), (3, 4)]

    Source: NVIDIA/Megatron-LM, megatron/core/utils.py, get_batch_on_this_cp_rank.
    """
    size = whole_number(cp, "cp", maximum=MAX_RANKS)
    rank = whole_number(cp_rank, "cp_rank", minimum=0, maximum=size - 1)
    return rank, 2 * size - 1 - rank


def attended(n: int, rank: int, block: int) -> list[tuple[int, int]]:
    """(query chunk, key chunk) pairs that a rank works out on the K and V of ``block``'s rank.

    Ring attention over n ranks: a query sees keys of its own chunk and of those before.

    >>> attended(2, rank=0, block=0), attended(2, rank=0, block=1), attended(2, rank=1, block=0)
    ([(0, 0), (3, 0), (3, 3)], [(3, 1), (3, 2)], [(1, 0), (2, 0)])
    """
    queries, keys = sequence_chunks(n, rank), sequence_chunks(n, block)
    return [(query, key) for query in queries for key in keys if key <= query]


def local_experts(num_experts: int, ep: int, ep_rank: int) -> range:
    """The experts that an expert parallel rank holds: a run of num_experts / ep.

    >>> local_experts(8, ep=4, ep_rank=1)
    range(2, 4)

    Errors: LayoutError if ep does not divide num_experts.
    Source: NVIDIA/Megatron-LM, megatron/core/transformer/moe/moe_layer.py, BaseMoELayer.
    """
    experts = whole_number(num_experts, "num_experts", maximum=MAX_RANKS)
    size = whole_number(ep, "ep", maximum=MAX_RANKS)
    rank = whole_number(ep_rank, "ep_rank", minimum=0, maximum=size - 1)
    if experts % size:
        raise not_a_multiple(
            "num_experts",
            experts,
            {"ep": size},
            maximum=MAX_RANKS,
            quote="Number of experts should be a multiple of expert model parallel_size.",
        )
    held = experts // size
    return range(rank * held, (rank + 1) * held)


@dataclass(frozen=True)
class Samples(Sequence[range]):
    """The samples of each micro-batch, as a sequence of ranges that is never written out."""

    starts: range  # the first sample of every micro-batch
    micro_batch: int

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return Samples(self.starts[index], self.micro_batch)
        start = self.starts[index]
        return range(start, start + self.micro_batch)


def samples_of(dp: int, dp_rank: int, micro_batch: int, global_batch: int) -> Samples:
    """The samples of one global batch that a data parallel rank reads, a range per micro-batch.

    Each step all dp ranks read dp * micro_batch consecutive samples, in runs of micro_batch by
    rank; global_batch / (dp * micro_batch) such steps make the batch.

    >>> list(samples_of(dp=2, dp_rank=1, micro_batch=2, global_batch=8))
    [range(2, 4), range(6, 8)]

    Errors: LayoutError if micro_batch * dp does not divide global_batch.
    Source: NVIDIA/Megatron-LM, megatron/training/datasets/data_samplers.py,
    MegatronPretrainingSampler, with --dataloader-type single.
    """
    size = whole_number(dp, "dp", maximum=MAX_RANKS)
    rank = whole_number(dp_rank, "dp_rank", minimum=0, maximum=size - 1)
    run = whole_number(micro_batch, "micro_batch", maximum=MAX_BATCH)
    batch = whole_number(global_batch, "global_batch", maximum=MAX_BATCH)
    if batch % (run * size):
        raise not_a_multiple(
            "global_batch",
            batch,
            {"micro_batch": run, "dp": size},
            maximum=MAX_BATCH,
            quote=f"global batch size ({batch}) is not divisible by micro batch size ({run}) "
            f"times data parallel size ({size})",
        )
    return Samples(range(rank * run, batch, run * size), run)
