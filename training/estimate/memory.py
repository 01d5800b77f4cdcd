"""Whether a layout fits: what is allocated at the worst moment, and what the GPU must have for it.

    allocated   training.memory, to the byte: within 2 % of 18 runs of Megatron (SimuMax's)
    needed      what the machine must hold beside: kernels that fuse less than Megatron's, a 32-bit
                copy of a rank's share of the gradients, memory in pieces too small to use,
                buffers of NCCL and of CUDA itself

needed is weights + gradients in 16 bits + 16 bytes for each parameter whose state a rank holds
+ activations * ACTIVATIONS + logits + BESIDE. Its numbers are of 52 runs whose memory nvidia-smi
told (BigScience: median error 4 %). With ZeRO-2 and 3, experts, 8-bit numbers or chunks, which few
but fused kernels train, it is allocated * PIECES + CONTEXT, gradients in 16 bits: FSDP runs whose
micro-batches were chosen to fill a GPU are 93 to 95 % full by `allocated` (llm-foundry). Where
gradients in 32 bits do not fit and those in 16 do, a team takes 16: `allocated` then counts these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..clusters import GIB
from ..memory.per_stage import PRECISIONS, StageMemory, memory_per_stage
from .request import Request

ACTIVATIONS, BESIDE = 1.4, 5 * GIB
PIECES, CONTEXT = 1.03, 1 * GIB


@dataclass(frozen=True)
class Fit:
    """Bytes on the fullest rank.

    Attributes:
        allocated: what tensors take at the worst moment.
        needed: what a GPU must have for that.
        fits: whether the cluster's GPU has so much.
        gradient_bits: of each gradient, in ``allocated``.
        stage: the fullest.
        parts: of ``allocated``, by training.memory's PARTS.
    """

    allocated: float
    needed: float
    fits: bool
    gradient_bits: int
    stage: int
    parts: dict[str, float]


def fit_of(asked: Request) -> Fit:
    """What the fullest rank holds, and whether it can."""
    training = asked.training
    if asked.split.vpp > 1:
        # Groups of chunks may be cut short at the end; the fullest moment comes before.
        rounds = -(-training.micro_batches // asked.split.pp)
        training = replace(training, micro_batches=rounds * asked.split.pp)
    stages = memory_per_stage(asked.model, asked.split, training)
    capacity = asked.machine.memory
    needed = max(_needed(asked, stage) for stage in stages)
    fits, bits = needed <= capacity, 32
    fullest = max(stages, key=lambda one: one.total)
    if fits and fullest.total > capacity:
        bits = 16
        small = replace(training, precision="bf16-bf16")
        stages = memory_per_stage(asked.model, asked.split, small)
        fullest = max(stages, key=lambda one: one.total)
    return Fit(fullest.total, needed, fits, bits, fullest.stage, dict(fullest.parts))


def _needed(asked: Request, stage: StageMemory) -> float:
    parts = stage.parts
    precision = PRECISIONS[asked.training.precision]
    gradients = parts.get("gradients", 0.0)
    small = gradients * 2 / precision.gradient
    if asked.training.zero >= 2:
        return stage.total * PIECES + CONTEXT
    if asked.precision not in ("bf16", "fp16") or asked.model.experts or asked.split.vpp > 1:
        return (stage.total - gradients + small) * PIECES + CONTEXT
    states = parts.get("weights", 0.0) + small
    states += parts.get("optimizer", 0.0) * 16 / precision.optimizer
    kept = parts.get("activations", 0.0) + parts.get("embedding", 0.0)
    kept += parts.get("recomputed", 0.0)
    rest = parts.get("output", 0.0) + parts.get("working", 0.0)
    return states + ACTIVATIONS * kept + rest + BESIDE
