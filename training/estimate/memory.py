"""Whether a layout fits: what is allocated at the worst moment, and what the GPU must have for it.

    allocated   training.memory, to the byte: within 2 % of 18 runs of Megatron (SimuMax's)
    needed      what the machine must hold beside: kernels that fuse less than Megatron's, a 32-bit
                copy of a rank's share of the gradients, memory in pieces too small to use,
                buffers of NCCL and of CUDA itself

needed is weights + gradients in 16 bits + 16 bytes for each parameter whose state a rank holds
+ activations * ACTIVATIONS + logits + BESIDE. Its numbers are of 52 runs whose memory nvidia-smi
told (BigScience: median error 4 %). With ZeRO-2 and 3, experts, 8-bit numbers or chunks, which few
but fused kernels train, and where a request that tells everything has FlashAttention, it is
allocated * PIECES + CONTEXT: FSDP runs whose micro-batches were chosen to fill a GPU are 93 to 95 %
full by `allocated` (llm-foundry). Formats that nobody says are LEAN, if wider ones lack room.

Three BigScience runs that ran out of memory are not told so, and cannot be: another run of theirs
with the same sizes and a larger micro-batch fitted (tp 4, pp 6, of 181 billion parameters with 4
samples; of 184 billion with 1 it failed). Between them gradients began to be summed in 32 bits
beside those in 16, which no setting says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..clusters import GIB
from ..memory.activations import WIDE
from ..memory.per_stage import PRECISIONS, StageMemory, memory_per_stage
from .request import Request

LEAN = {True: "bf16-bf16", False: "fp8-bf16"}
"""What is taken where nobody says the formats and more does not fit: by whether products are in 16
bits. Megatron-Bridge's recipes (perf_recipes at 067f987) sum gradients in 16 bits and, where
products have 8, gather weights in 8."""

ACTIVATIONS, BESIDE = 1.4, 5 * GIB
PIECES, CONTEXT = 1.03, 1 * GIB


@dataclass(frozen=True)
class Fit:
    """Bytes on the fullest rank.

    Attributes:
        allocated: what tensors take at the worst moment.
        needed: what a GPU must have for that.
        fits: whether the cluster's GPU has so much, and its host what is there.
        gradient_bits: of each gradient, in ``allocated``.
        stage: the fullest.
        parts: of ``allocated``, by training.memory's PARTS.
        host: bytes that a rank has in host memory, on the stage that has most there.
        on_host: the shares of its optimizer's state and of its weights that are there.
    """

    allocated: float
    needed: float
    fits: bool
    gradient_bits: int
    stage: int
    parts: dict[str, float]
    host: float = 0.0
    on_host: tuple[float, float] = (0.0, 0.0)


def room_of(capacity: float) -> float:
    """Bytes that tensors may take on a GPU of so many."""
    return (capacity - CONTEXT) / PIECES


def fit_of(asked: Request) -> Fit:
    """What the fullest rank holds, and whether it can."""
    training = asked.training
    if asked.split.vpp > 1:
        # Groups of chunks may be cut short at the end; the fullest moment comes before.
        rounds = -(-training.micro_batches // asked.split.pp)
        training = replace(training, micro_batches=rounds * asked.split.pp)
    capacity = asked.bytes_of_gpu
    stages = memory_per_stage(asked.model, asked.split, training, room_of(capacity))
    most = max(stages, key=lambda one: one.on_host)
    host = asked.machine.host_of(asked.gpus_per_node) / min(asked.gpus, asked.gpus_per_node)
    fullest = max(stages, key=lambda one: one.total)
    lean = stages
    if not asked.is_told:
        small = replace(training, precision=LEAN[asked.precision in WIDE])
        lean = memory_per_stage(asked.model, asked.split, small, room_of(capacity))
    needed = max(_needed(asked, stage) for stage in lean)
    bits = 8 * PRECISIONS[training.precision].gradient
    if lean is not stages and fullest.total > capacity >= needed:
        bits, fullest = 16, max(lean, key=lambda one: one.total)
    return Fit(
        fullest.total,
        needed,
        needed <= capacity and not most.on_host > host > 0,
        bits,
        fullest.stage,
        dict(fullest.parts),
        most.on_host,
        most.host_shares,
    )


def _needed(asked: Request, stage: StageMemory) -> float:
    parts = stage.parts
    if asked.training.zero >= 2:
        return stage.total * PIECES + CONTEXT
    is_fused = asked.is_told and asked.flash
    if is_fused or asked.precision not in WIDE or asked.model.experts or asked.split.vpp > 1:
        return stage.total * PIECES + CONTEXT
    states = parts.get("weights", 0.0) + parts.get("gradients", 0.0)
    states += parts.get("optimizer", 0.0) * 16 / PRECISIONS[asked.training.precision].optimizer
    kept = parts.get("activations", 0.0) + parts.get("embedding", 0.0)
    kept += parts.get("recomputed", 0.0)
    rest = parts.get("output", 0.0) + parts.get("working", 0.0)
    return states + ACTIVATIONS * kept + rest + BESIDE
