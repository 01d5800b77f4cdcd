"""Whether a layout fits: what is allocated at the worst moment, and what the GPU must have for it.

    allocated   training.memory, to the byte: within 2 % of 18 runs of Megatron (SimuMax's)
    needed      what the machine must hold beside: kernels that fuse less than Megatron's, a 32-bit
                copy of a rank's share of the gradients, memory in pieces too small to use,
                buffers of NCCL and of CUDA itself

needed is allocated * PIECES + CONTEXT with experts, 8-bit numbers or chunks, which few but fused
kernels train, and with FlashAttention where a request tells everything, else with ZeRO-2 and 3:
FSDP runs whose micro-batches were chosen to fill a GPU are 93 to 95 % full by `allocated` (llm-
foundry). For all others it is the sum of UNFUSED: fitted to 1,013 runs whose memory nvidia-smi or
torch told (nanotron, BigScience), and better on each of their models when fitted to the others
alone (`python -m benchmarks.fit_memory`). Formats that nobody says are LEAN, if wider ones lack
room.

Of those sources' good runs 2 % are said not to fit; of nanotron's failures 83 % are told, and some
failed for want of something else. Three BigScience runs that ran out of memory are not told so, and
cannot be: another run of theirs with the same sizes and a larger micro-batch fitted (tp 4, pp 6, of
181 billion parameters with 4 samples; of 184 billion with 1 it failed). Between them gradients
began to be summed in 32 bits beside those in 16, which no setting says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..clusters import GIB
from ..memory.per_stage import StageMemory, memory_per_stage
from ..recipe import PRECISIONS, WIDE
from ..split import padded_vocabulary
from .request import Request, TrainingJob

LEAN = {True: "bf16-bf16", False: "fp8-bf16"}
"""What is taken where nobody says the formats and more does not fit: by whether products are in 16
bits. Megatron-Bridge's recipes (perf_recipes at 067f987) sum gradients in 16 bits and, where
products have 8, gather weights in 8."""

UNFUSED = {
    "weights": 1.0,
    "gradients": 1.67,  # beside those in 16 bits their sums in 32, whole or of the rank's share
    "states": 17.3,  # bytes a parameter whose state a rank holds: 12, its gradient in 32 bits, more
    "kept": 1.34,  # of activations: kernels that keep what Megatron's do not
    "gated": 0.54,  # and of models with gated MLPs, whose norms and rotations are apart too
    "logits": 8.5,  # bytes each: in 16 bits, in 32, and their exponentials
    "rest": 1.0,
    "beside": 1.11 * GIB,  # NCCL's buffers, the CUDA context
}
"""How much of each of `unfused_terms` a GPU needs."""

PIECES, CONTEXT = 1.03, 1 * GIB

USABLE, CLOSE = 0.99, 0.9
"""Shares of a GPU's memory: what programs get of it (of 80 GiB 79.35: CUDA's deviceQuery on A100),
and from where on it is close: of nanotron's runs that needed 90 to 99 % of it, and whose fate shows
that it was memory, 27 of 42 failed."""


@dataclass(frozen=True)
class Fit:
    """Bytes on the fullest rank.

    Attributes:
        allocated: what tensors take at the worst moment.
        needed: what a GPU must have for that.
        fits: whether the cluster's GPU has so much, and its host what is there.
        stage: the fullest.
        parts: of ``allocated``, by training.memory's PARTS.
        host: bytes that a rank has in host memory, on the stage that has most there.
        on_host: the shares of its optimizer's state and of its weights that are there.
    """

    allocated: float
    needed: float
    fits: bool
    stage: int
    parts: dict[str, float]
    host: float = 0.0
    on_host: tuple[float, float] = (0.0, 0.0)


def room_of(capacity: float) -> float:
    """Bytes that tensors may take on a GPU of so many."""
    return (capacity - CONTEXT) / PIECES


def least_needed(job: TrainingJob, allocated: np.ndarray) -> np.ndarray:
    """What a GPU must have at least for so many bytes, where a request tells everything."""
    return allocated * PIECES + CONTEXT if job.training.flash else allocated


def fit_of(request: Request) -> Fit:
    """What the fullest rank holds, and whether it can."""
    training, capacity = request.training, request.bytes_of_gpu
    stages = memory_per_stage(request.model, request.split, training, room_of(capacity))
    most = max(stages, key=lambda stage: stage.on_host)
    host = request.machine.host_of(request.gpus_per_node) / min(request.gpus, request.gpus_per_node)
    fullest = max(stages, key=lambda stage: stage.total)
    lean = stages
    if not request.precision_is_stated:
        small = replace(training, precision=LEAN[request.training.products in WIDE])
        lean = memory_per_stage(request.model, request.split, small, room_of(capacity))
    needed = max(_needed(request, stage) for stage in lean)
    if fullest.total > capacity >= needed:
        fullest = max(lean, key=lambda stage: stage.total)
    fits = needed <= USABLE * capacity and not most.on_host > host > 0
    held = (fullest.stage, dict(fullest.parts), most.on_host, most.host_shares)
    return Fit(fullest.total, needed, fits, *held)


def _needed(request: Request, stage: StageMemory) -> float:
    training = request.training
    is_fused = training.flash if request.precision_is_stated else training.zero >= 2
    is_simple = training.products in WIDE and not request.model.experts and request.split.vpp == 1
    if is_fused or not is_simple:
        return stage.total * PIECES + CONTEXT
    terms = unfused_terms(request, stage)
    if request.precision_is_stated:  # the format of gradients too
        terms["gradients"] /= UNFUSED["gradients"]
    return sum(UNFUSED[name] * size for name, size in terms.items())


def unfused_terms(request: Request, stage: StageMemory) -> dict[str, float]:
    """What a stage holds, by the constants of UNFUSED: bytes, parameters, logits, and one."""
    parts = stage.parts
    kept = sum(parts.get(name, 0.0) for name in ("activations", "embedding", "recomputed"))
    logits, rest = 0.0, parts.get("output", 0.0) + parts.get("working", 0.0)
    if stage.parameters.is_last:
        rows = padded_vocabulary(request.model.vocabulary, request.split.tp) / request.split.tp
        logits = request.tokens * rows
        rest = parts.get("output", 0.0) - 4 * logits
    return {
        "weights": parts.get("weights", 0.0),
        "gradients": parts.get("gradients", 0.0),
        "states": parts.get("optimizer", 0.0) / PRECISIONS[request.training.precision].optimizer,
        "kept": kept,
        "gated": kept * request.model.gated,
        "logits": logits,
        "rest": rest,
        "beside": 1.0,
    }
