"""Whether a layout fits: what is allocated at the worst moment, and what the GPU must have for it.

    allocated   training.memory, to the byte: within 2 % of 18 runs of Megatron (SimuMax's); where
                kernels fuse less than Megatron's, by the constants of UNFUSED
    needed      what the machine must hold for that: besides, memory in pieces too small to use,
                buffers of NCCL and of CUDA itself; with fused kernels allocated * PIECES + CONTEXT
    low, high   what nine of ten real runs are between, by SPREAD

    fits        the high end is within what programs get of a GPU
    close       the limit lies between both ends
    over        not even the low end is within it, or more is needed than FAIL_FROM of it; or the
                host lacks room

Kernels are those of the software that is named. Where nobody names one, they are fused with
experts, 8-bit numbers, chunks, context parallelism or ZeRO-2 and 3, which few but fused kernels
train, and with FlashAttention on GPUs of 8-bit numbers: FSDP runs whose micro-batches were chosen
to fill a GPU are 93 to 95 % full by `allocated` (llm-foundry). For nanotron and all others they are
UNFUSED: fitted to 1,013 runs whose memory nvidia-smi or torch told (nanotron, BigScience), and
better on each of their models when fitted to the others alone (`python -m benchmarks.fit_memory`).
Formats that nobody says are LEAN, if wider ones do not fit; then all that is told is of these.

Three BigScience runs that ran out of memory are not told so, and cannot be: another run of theirs
with the same sizes and a larger micro-batch fitted (tp 4, pp 6, of 181 billion parameters with 4
samples; of 184 billion with 1 it failed). Between them gradients began to be summed in 32 bits
beside those in 16, which no setting says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..machine import GIB
from ..memory.per_stage import StageMemory, memory_per_stage
from ..recipe import WIDE
from ..split import padded_vocabulary
from .constants import software_of
from .nanotron import dealt_by_cost
from .request import Request
from .torchtitan import goes_by_operators, parts_by_operators

FITS, CLOSE, OVER = "fits", "close", "over"
"""The three verdicts."""

LEAN = {True: "bf16-bf16", False: "fp8-bf16"}
"""What is taken where nobody says the formats and more does not fit: by whether products are in 16
bits. Megatron-Bridge's recipes (perf_recipes at 067f987) sum gradients in 16 bits and, where
products have 8, gather weights in 8."""

UNFUSED = {
    "weights": 1.0,
    "gradients": 1.87,  # beside those in 16 bits their sums in 32, whole or of the rank's share
    "states": 16.6,  # bytes a parameter whose state a rank holds: 12, its gradient in 32 bits, more
    "kept": 1.29,  # of activations: kernels that keep what Megatron's do not
    "gated": 0.21,  # and of models with gated MLPs, whose norms and rotations are apart too
    "logits": 13.2,  # bytes each: in 16 bits, twice in 32, and their exponentials
    "rest": 1.0,
    "beside": 0.88 * GIB,  # NCCL's buffers, the CUDA context
}
"""How much of each of `unfused_terms` a GPU needs."""

PIECES, CONTEXT = 1.03, 1 * GIB

FAIL_FROM = {"nanotron": 0.88, "others": 1.087}
"""Where kernels fuse less: the share of what programs get of a GPU from which on runs that need it
fail. The low end of SPREAD tells less: what was measured of runs that did not fill their GPU.

Nanotron's: from there on more runs failed than ran, for need itself is known to a tenth, and of
large micro-batches pieces stay that nothing fits into. Of all with each model left out 88 % of 595
failures are told so and 2.6 % of 961 good runs are lost (from 1.087 on 79 and 0.1 %); chosen by the
other models alone it is 0.84 to 0.89. Of what is missed 46 failed with less than half of a GPU, of
something else: their source does not tell. Others: none that ran needs more; torch gives back what
it kept in pieces before it fails."""

SPREAD = {
    **{"fused": (1.0, 1.1), "fused, graphs": (1.0, 1.3)},
    **{"unfused": (0.84, 1.33), "unfused, tp across nodes": (0.84, 2.3)},
    "torch": (0.76, 1.31),
}
"""The interval's ends, by kernels. Fused: the low one over what is allocated, which is exact, the
high one over what is needed, for pieces and buffers differ by run; runs whose experts' exchange
hides, or is HybridEP's, capture CUDA graphs, whose buffers stay and which nobody counts: one that
held 70 of 79 GB ran out of memory by them (NVIDIA-NeMo/Megatron-Bridge 228e9a3
skills/nemo-mbridge-perf-cuda-graphs/card.yaml, GPT-OSS 120B). Unfused: the 7th and the 97th
percentile of what was measured over what is needed, of runs beyond 30 GiB, the fit blind to their
model or source (`python -m benchmarks.fit_memory`); where tp leaves the NVLink domain some runs had
sequence parallelism and some none, which their source does not tell. Torch: programs of DDP,
FSDP2 or ZeRO, what torch reserved in 20 runs of torchtitan over what is needed: 1.00 to 1.06 of 8B,
1.06 to 1.17 with stages or cp, 1.22 to 1.31 with tp; and 0.77 of what is allocated where a later
version computed the loss piece by piece (tests/data/sharding_published.csv)."""


@dataclass(frozen=True)
class Fit:
    """Bytes on the fullest rank.

    Attributes:
        allocated: peak bytes of tensors.
        needed: bytes that a GPU must have for these.
        low, high: the interval that holds 90 % of real runs.
        verdict: FITS, CLOSE or OVER.
        stage: the fullest stage.
        parts: of ``allocated``, by training.memory's PARTS.
        host: bytes of a rank in host memory, on the stage with most there.
        needs: bytes needed by a GPU of each stage.
        on_host: the shares of the optimizer's state and of the weights in host memory.
    """

    allocated: float
    needed: float
    low: float
    high: float
    verdict: str
    stage: int
    parts: dict[str, float]
    host: float = 0.0
    on_host: tuple[float, float] = (0.0, 0.0)
    needs: tuple[float, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the memory of the cluster's GPU and host may suffice."""
        return self.verdict != OVER


@dataclass(frozen=True)
class Occupied:
    """Bytes on a rank for one choice of formats and kernels; fields as in `Fit`."""

    stage: int
    parts: dict[str, float]
    needed: float
    low: float
    high: float
    needs: tuple[float, ...] = ()

    @property
    def allocated(self) -> float:
        return sum(self.parts.values())


def room_of(capacity: float) -> float:
    """Bytes that tensors may take on a GPU with ``capacity`` bytes."""
    return (capacity - CONTEXT) / PIECES


def fit_of(request: Request, software: str = "") -> Fit:
    """Bytes on the fullest rank, and whether they fit; software: whose kernels run, if named.

    >>> from training.estimate import estimate
    >>> from training.models import MODELS
    >>> model, sizes = MODELS["llama3-8b"].model, {"gpus": 8, "tp": 1, "cp": 2, "sequence": 8192}
    >>> fits = [estimate(model, **sizes, software=name).fit for name in ("megatron", "nanotron")]
    >>> [(fit.verdict, fit.low < fit.needed < fit.high) for fit in fits]
    [('fits', True), ('over', True)]
    """
    is_fused = has_fused_kernels(request, software)
    if not is_fused and _fails_as(request, software) == "nanotron":
        request = dealt_by_cost(request)
    training, capacity = request.training, request.bytes_of_gpu
    stages = memory_per_stage(request.model, request.split, training, room_of(capacity))
    most = max(stages, key=lambda stage: stage.on_host)
    host = request.machine.host_of(request.gpus_per_node) / min(request.gpus, request.gpus_per_node)
    parts_of = _parts_of(request, software, is_fused)
    held, limit = _fullest(request, stages, is_fused, parts_of), request.usable
    low = held.low
    if not request.precision_is_explicit and training.engine == "megatron":
        how = replace(training, precision=LEAN[training.products in WIDE])
        small = memory_per_stage(request.model, request.split, how, room_of(capacity))
        lean = _fullest(request.trained(how), small, is_fused, parts_of)
        low = min(low, lean.low)
        if held.high > limit or not is_fused:  # UNFUSED was fitted with these
            held = lean
    most_needed = math.inf if is_fused else FAIL_FROM[_fails_as(request, software)] * limit
    is_over = low > limit or held.needed > most_needed or most.on_host > host > 0
    verdict = OVER if is_over else CLOSE
    if verdict == CLOSE and held.high <= limit:
        verdict = FITS
    sizes = (held.allocated, held.needed, min(low, held.allocated), held.high)
    host_parts = most.on_host, most.host_shares
    return Fit(*sizes, verdict, held.stage, held.parts, *host_parts, held.needs)


def _fails_as(request: Request, software: str) -> str:
    """Whose runs tell from where on one like this fails."""
    return "nanotron" if (software or software_of(request)) == "nanotron" else "others"


def has_fused_kernels(request: Request, software: str = "") -> bool:
    """Whether the layers' kernels keep no more activations than training.memory counts."""
    training = request.training
    if training.engine != "megatron":
        return True
    is_simple = training.products in WIDE and not request.model.experts and request.split.vpp == 1
    if not is_simple or request.precision_is_explicit:
        return training.flash or not is_simple
    if training.zero >= 2:
        return True
    if (software or software_of(request)) == "nanotron":
        return False
    is_known = software or request.split.cp > 1 or request.machine.fp8
    return training.flash and bool(is_known)


PartsOf = Callable[[Request, StageMemory], dict[str, float]]


def _parts_of(request: Request, software: str, is_fused: bool) -> PartsOf:
    """The function that counts the parts of a stage's memory."""
    if not is_fused:
        return unfused_parts
    is_of_request = request.training.engine == "megatron" and not request.precision_is_explicit
    if is_of_request and goes_by_operators(request, software or software_of(request)):
        return parts_by_operators
    return lambda request, stage: stage.parts


def _fullest(
    request: Request, stages: Sequence[StageMemory], is_fused: bool, parts_of: PartsOf
) -> Occupied:
    low, high = SPREAD[kernels_of(request, is_fused=is_fused)]
    held = []
    for stage in stages:
        parts = parts_of(request, stage)
        total = sum(parts.values())
        needed = total * PIECES + CONTEXT if is_fused else total + UNFUSED["beside"]
        least = low * (total if is_fused else needed)
        held.append(Occupied(stage.stage, parts, needed, least, high * needed))
    fullest = max(held, key=lambda each: each.needed)
    return replace(fullest, needs=tuple(each.needed for each in held))


def kernels_of(request: Request, *, is_fused: bool) -> str:
    """The class of kernels that the spread of measured memory depends on."""
    training = request.training
    if training.engine != "megatron":
        return "torch"
    if is_fused:
        has_graphs = training.ep_overlap or training.dispatcher == "hybridep"
        return "fused, graphs" if has_graphs else "fused"
    return "unfused, tp across nodes" if request.split.tp > request.domain else "unfused"


def unfused_parts(request: Request, stage: StageMemory) -> dict[str, float]:
    """Bytes of a stage with less fused kernels, by training.memory's PARTS.

    Additional state of the optimizer counts as optimizer; gradients of scores count as output.
    """
    terms = unfused_terms(request, stage)
    if request.precision_is_explicit:  # the format of gradients as well
        terms["gradients"] /= UNFUSED["gradients"]
    sizes = {name: UNFUSED[name] * size for name, size in terms.items()}
    parts = {
        "weights": sizes["weights"],
        "gradients": sizes["gradients"],
        "optimizer": sizes["states"],
        "activations": sizes["kept"] + sizes["gated"],
        "output" if stage.parameters.is_last else "working": sizes["logits"] + sizes["rest"],
    }
    return {name: size for name, size in parts.items() if size}


def unfused_terms(request: Request, stage: StageMemory) -> dict[str, float]:
    """The factors of the constants of UNFUSED on a stage: bytes, parameters, logits, and one."""
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
        "states": parts.get("optimizer", 0.0) / request.training.optimizer_bytes,
        "kept": kept,
        "gated": kept * request.model.gated,
        "logits": logits,
        "rest": rest,
        "beside": 1.0,
    }
