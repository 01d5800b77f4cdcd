"""DeepSpeed's ZeRO: what a config says, and how its states are cut.

    stage 0    gradients all-reduced behind the last micro-batch; with stages of a pipeline and 16
               bits the optimizer is cut as in stage 1 (`has_bf16_optimizer`)
    stage 1    the same, in buckets; one all-gather of the updated weights
    stage 2    gradients all-reduced behind every micro-batch
    stage 3    weights gathered module by module (`zero3`), gradients reduce-scattered behind every
               micro-batch

Flat states of stages 1 and 2 are padded to a multiple of 2d; stage 3 cuts each parameter into d
parts of ceil(elements / d).

Source: deepspeedai/DeepSpeed 0.19.8 deepspeed/runtime/zero/stage_1_and_2.py, average_tensor and
allreduce_and_scatter; stage3.py; bf16_optimizer.py; engine.py, buffered_allreduce_fallback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import require_choice
from ..recipe import Training
from .units import ModuleParameter

ALIGNMENT = 2
"""Elements of a flat state's shard that its start is aligned to."""


@dataclass(frozen=True)
class ZeroConfig:
    """What a DeepSpeed config says of ZeRO; sizes count elements.

    format: of weights, bf16 or fp32. hpz: ranks of the secondary partition. reduce_scatter,
    multi_rank: keys of stages 1 and 2; to_owner: whether pieces go to their owners with a reduce.
    accumulates: the format of gradient sums of BF16_Optimizer, "" for the usual optimizer.
    """

    stage: int = 0
    format: str = "bf16"
    reduce_bucket: int = 500_000_000
    prefetch_bucket: int = 50_000_000
    persistence: int = 100_000
    persistence_of_model: int = 2**63
    max_live: int = 1_000_000_000
    max_reuse: int = 1_000_000_000
    hpz: int = 1
    reduce_scatter: bool = True
    multi_rank: bool = True
    accumulates: str = ""

    def __post_init__(self) -> None:
        require_choice("zero", self.stage, (0, 1, 2, 3))
        require_choice("format", self.format, ("bf16", "fp16", "fp32"))


def has_bf16_optimizer(training: Training, pp: int) -> bool:
    """Whether DeepSpeed wraps its BF16_Optimizer round a job without ZeRO: with stages and weights
    of 16 bits. It cuts the optimizer's states all the same, keeps gradients in 16 bits beside its
    sums, and gathers the updated weights (0.19.8 deepspeed/runtime/engine.py:2316-2320,
    bf16_optimizer.py:173-191 and 599, pipe/engine.py:838-862).
    """
    is_bf16 = training.precision.startswith("bf16")
    return training.engine == "zero" and not training.zero and is_bf16 and pp > 1


def partition(parameter: ModuleParameter, ranks: int) -> int:
    """Elements of one part of a parameter that stage 3 cuts."""
    return -(-parameter.elements // ranks)


def padded(elements: int, ranks: int) -> int:
    """The length of a flat state: a multiple of twice the ranks.

    >>> padded(13, 4)
    16
    """
    unit = ALIGNMENT * ranks
    return -(-elements // unit) * unit


def persistent(parameters: Sequence[ModuleParameter], config: ZeroConfig) -> list[ModuleParameter]:
    """Small parameters that stage 3 keeps whole."""
    kept, total = [], 0
    for each in parameters:
        fits = each.elements + total <= config.persistence_of_model
        if fits and each.elements <= config.persistence:
            kept.append(each)
            total += each.elements
    return kept
