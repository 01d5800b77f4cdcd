"""How a model is trained, beside its shape and its split: batch, schedule, number formats, ZeRO.

>>> Training(micro_batch=2, micro_batches=8, zero=3).rule.title
'1F1B'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from groups.inputs import Input, require_inputs

from .errors import refusal, require_choice
from .model import MAX_SIZE, Model
from .pipeline.schedules import PAIRS, SCHEDULES, TORCH, Schedule
from .pipeline.spec import ScheduleSpec
from .recompute import WORDS, modules_of, recomputation
from .sharding.words import ENGINES, OF_TORCH, RESHARDS, SYNCS
from .split import Split

PRODUCTS = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
"""Number formats of the layers' matrix products; everything else has 16 bits."""

MAX_RANK = 65_536
"""The largest rank of an adapter."""

WIDE = ("bf16", "fp16")
"""Formats of 16 bits."""

KERNELS = ("auto", "fused", "eager")
"""Kernels of the layers: Megatron's fused ones, or PyTorch's, as FSDP programs run them; auto: the
latter from ZeRO-2 on, as in public runs."""

OFFLOAD = {"none": 0, "optimizer": 1, "parameters": 3, "chunks": 3}
"""What is kept in host memory, and the lowest ZeRO stage with which that is possible."""

DISPATCHERS = ("alltoall", "deepep", "hybridep")
"""How tokens reach their experts: a copy for each expert, or for each NVLink domain and rank
(training.routing); Megatron's --moe-token-dispatcher-type and --moe-flex-dispatcher-backend."""

DISPATCH = {"bf16": 2.0, "fp8": 1.0 + 4 / 128}
"""Bytes of a number on its way to an expert; with 8 bits 128 of them share a scale of 32
(arXiv:2412.19437 section 3.3.1). Back from the experts, 16 bits."""


@dataclass(frozen=True)
class Precision:
    """Bytes of a weight, its gradient and its optimizer state."""

    weight: int
    gradient: int
    optimizer: int
    moments: int = 8  # Adam's two, of the optimizer's


PRECISIONS: dict[str, Precision] = {
    "bf16-fp32": Precision(2, 4, 12),
    "bf16-bf16": Precision(2, 2, 12),
    "fp16-fp16": Precision(2, 2, 16),
    "fp32-fp32": Precision(4, 4, 8),
    "bf16-fp32-bf16": Precision(2, 4, 8, 4),
    "bf16-bf16-bf16": Precision(2, 2, 8, 4),
    "fp8-fp32": Precision(1, 4, 12),
    "fp8-bf16": Precision(1, 2, 12),
    "fp8-fp32-bf16": Precision(1, 4, 8, 4),
    "bf16": Precision(2, 2, 4, 4),
}
"""By the formats of weights and gradients: Megatron's table (docs/user-guide/features/
dist_optimizer.md at d98e8a6, whose fp16 optimizer keeps a 32-bit copy of the gradient too), and
the 16 bytes of arXiv:1910.02054. With bf16 at the end Adam's two moments have 16 bits, the copy of
the weights 32, as DeepSeek-V3 was trained (arXiv:2412.19437 section 3.3.2). fp8: one 8-bit copy of
the weights that products read (Megatron's --fp8-param-gather); the optimizer's copy is in 32.
bf16: all of it in 16 bits, without another copy (torchtitan's training.dtype)."""


MOMENTS = {"adam": 1.0, "sgd": 0.5, "lion": 0.5, "muon": 0.5, "adam8bit": (2 + 8 / 256) / 8}
"""Optimizers, and the state of a parameter relative to Adam's two moments: one momentum (SGD with
it, Lion, Muon's matrices), or two of 8 bits with a 32-bit scale for each 256 (bitsandbytes,
arXiv:2110.02861)."""


FROZEN = {"bf16": 2.0, "fp32": 4.0, "fp8": 1.0, "int8": 1.0, "nf4": 0.5 + (1 + 4 / 256) / 64}
"""Bytes of a frozen element of a linear layer, by format. 4-bit NormalFloat has half a byte, and a
scale of 8 bits for each 64 elements, whose own scale of 32 bits is for 256 (arXiv:2305.14314
section 3)."""

LORA = ("lora_rank", "lora_targets", "frozen")
"""The fields of a `Training` about adapters."""

ALL_LINEAR = "all-linear"
"""Every linear layer but the output, by peft's name."""


def targets_of(text: object) -> str:
    """The linear layers that have adapters, with commas between their names.

    >>> targets_of("v_proj  q_proj, v_proj")
    'v_proj,q_proj'
    """
    names = str(text).replace(",", " ").split()
    return ",".join(dict.fromkeys(names)) or ALL_LINEAR


@dataclass(frozen=True)
class Training:
    """How a model is trained, apart from its shape and its split.

    Errors: LayoutError for an unknown choice, and for a number out of range.
    """

    micro_batch: Annotated[int, Input("samples of a micro-batch", most=MAX_SIZE)] = 1
    # In one step, on each pipeline.
    micro_batches: Annotated[int, Input("micro-batches of each pipeline", most=MAX_SIZE)] = 1
    schedule: Annotated[
        str,
        Input(
            "the pipeline schedule",
            choices=SCHEDULES,
            otherwise="1f1b, with vpp interleaved",
        ),
    ] = "1f1b"
    # For schedules that have the option.
    group_size: Annotated[
        int | None,
        Input("micro-batches of a group, for interleaved", most=MAX_SIZE, otherwise="pp"),
    ] = None
    precision: Annotated[str, Input("formats of weights and gradients", choices=PRECISIONS)] = (
        "bf16-fp32"
    )
    zero: Annotated[
        int,
        Input(
            "stage of ZeRO; 1 is Megatron's distributed optimizer",
            choices=("0", "1", "2", "3"),
            least=0,
            most=3,
        ),
    ] = 1
    optimizer: Annotated[
        str, Input("the optimizer, whose state is kept for each parameter", choices=MOMENTS)
    ] = "adam"
    engine: Annotated[
        str,
        Input("whose data parallelism", choices=ENGINES, otherwise="the framework's"),
    ] = "megatron"
    reshard: Annotated[
        str,
        Input(
            "FSDP: whether weights are cut again after forward; by default but under stages",
            choices=RESHARDS,
        ),
    ] = "default"
    sync: Annotated[
        str, Input("FSDP: when gradients of micro-batches are reduced", choices=SYNCS)
    ] = "every"
    recompute: Annotated[
        str,
        Input(
            "what is computed again, also Megatron's modules with commas between them",
            choices=WORDS,
            check=recomputation,
        ),
    ] = "selective"
    flash: Annotated[bool, Input("whether attention is one kernel that keeps no scores")] = True
    products: Annotated[
        str, Input("number format of the layers' matrix products", choices=PRODUCTS)
    ] = "bf16"
    offload: Annotated[str, Input("what is in host memory", choices=OFFLOAD)] = "none"
    kernels: Annotated[
        str,
        Input(
            "fused as Megatron's or eager as PyTorch's; auto is eager from ZeRO-2 on",
            choices=KERNELS,
        ),
    ] = "auto"
    sequence_parallel: Annotated[bool, Input("whether tp cuts the sequence too")] = True
    dispatcher: Annotated[str, Input("how tokens reach their experts", choices=DISPATCHERS)] = (
        "alltoall"
    )
    dispatch: Annotated[
        str, Input("number format of what is sent to experts", choices=DISPATCH)
    ] = "bf16"
    ep_overlap: Annotated[
        bool, Input("whether experts' exchange hides behind another micro-batch's computation")
    ] = False
    lora_rank: Annotated[
        int, Input("rank of LoRA's adapters; 0: all weights are trained", least=0, most=MAX_RANK)
    ] = 0
    lora_targets: Annotated[
        str, Input("linear layers with adapters, such as q_proj,v_proj", check=targets_of)
    ] = ALL_LINEAR
    frozen: Annotated[str, Input("format of the weights under adapters", choices=FROZEN)] = "bf16"
    instances: Annotated[int, Input("instances of the distributed optimizer", most=MAX_SIZE)] = 1
    dropout: bool = False
    units: str = "blocks"  # what FSDP gathers together, of training.sharding.units

    def __post_init__(self) -> None:
        require_inputs(self)
        require_choice("dropout", self.dropout, (False, True))
        require_offload(self.offload, self.zero)

    @property
    def is_adapted(self) -> bool:
        """Whether adapters alone are trained, beside frozen weights (LoRA)."""
        return self.lora_rank > 0

    @property
    def targets(self) -> frozenset[str]:
        """The names of linear layers with adapters."""
        return frozenset(self.lora_targets.split(","))

    @property
    def rule(self) -> Schedule:
        return SCHEDULES[self.schedule]

    @property
    def variant(self) -> str:
        """Of the schedule: in pairs, or as torch's pipelines run it."""
        return variant_of(self.engine, ep_overlap=self.ep_overlap)

    @property
    def recomputed(self) -> frozenset[str]:
        """The modules that are recomputed; empty if whole layers are."""
        return modules_of(self.recompute)

    @property
    def is_eager(self) -> bool:
        """Whether the layers run PyTorch's own kernels instead of fused ones."""
        return self.kernels == "eager" or (self.kernels == "auto" and self.zero >= 2)

    @property
    def weight_passes(self) -> int:
        """The number of times that a micro-batch fetches a layer's weights from ZeRO-3 shards or
        host memory: forward, backward, and once more for full recomputation."""
        return 3 if self.recompute == "full" else 2

    @property
    def product_passes(self) -> float:
        """Products with a weight in a step, in forward ones: backward has one for the input, and
        one for the weight where that is trained.

        >>> Training().product_passes, Training(lora_rank=8).product_passes
        (3.0, 2.0)
        """
        return 2.0 if self.is_adapted else 3.0

    @property
    def element(self) -> int:
        """Bytes of one activation: 2, or 4 with 32-bit weights."""
        return max(2, PRECISIONS[self.precision].weight)

    @property
    def moments(self) -> float:
        """The optimizer's state relative to Adam's; Muon's as its matrices have it."""
        return MOMENTS[self.optimizer]

    @property
    def optimizer_bytes(self) -> float:
        """Bytes of the optimizer for each parameter: its copy of the weights and its state.

        >>> [how.optimizer_bytes for how in (Training(), Training(optimizer="sgd"))]
        [12.0, 8.0]
        """
        precision = PRECISIONS[self.precision]
        return precision.optimizer - precision.moments * (1 - self.moments)

    @property
    def sends_once(self) -> bool:
        """Whether an NVLink domain receives a token only once, however many of its experts are
        there."""
        return self.dispatcher != "alltoall"

    @property
    def hides_exchange(self) -> bool:
        """Whether the all-to-all of one micro-batch overlaps the computation of another."""
        return self.ep_overlap or self.rule.pairs

    @property
    def dispatched(self) -> float:
        """Bytes sent to experts, relative to the bytes sent back."""
        return DISPATCH[self.dispatch] / DISPATCH["bf16"]

    def pipeline(self, split: Split) -> ScheduleSpec:
        """The schedule with its sizes; 1 virtual stage counts as unset if the schedule fixes the
        number."""
        v = split.vpp if self.rule.v is None or split.vpp > 1 else None
        group = self.group_size if self.rule.grouped else None
        sizes = (split.pp, self.micro_batches, v, group)
        return ScheduleSpec(self.schedule, *sizes, variant=self.variant)

    def tokens(self, model: Model, split: Split) -> float:
        """Tokens of a micro-batch on one context parallel rank."""
        return self.micro_batch * model.sequence / split.cp

    def ranks_sharing(self, split: Split) -> tuple[int, int]:
        """The number of ranks that share the states of dense parameters, and the number for
        experts."""
        return split.dp * split.cp // self.instances, max(1, split.edp // self.instances)


def variant_of(engine: str, *, ep_overlap: bool) -> str:
    """The variant of its schedule (pipeline.schedules.VARIANTS) that a job runs."""
    return PAIRS if ep_overlap else TORCH if engine in OF_TORCH else ""


def require_offload(offload: str, zero: int) -> None:
    """Raises LayoutError for offloading states that ZeRO does not shard."""
    least = OFFLOAD[offload]
    if zero < least:
        facts = {"offload": offload, "least": least, "zero": zero}
        fixes = ({"zero": least}, {"offload": "none"})
        raise refusal("offload-needs-zero", "offload", *fixes, **facts)
