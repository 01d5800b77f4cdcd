"""What is asked of an estimate, checked: a model, where it runs, how it is cut and trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from operator import mul

from groups.alternatives import not_a_multiple
from groups.errors import LayoutError, quoted
from groups.megatron.grids import expert_grid, grids
from groups.mesh import MAX_RANKS, whole_number
from groups.stages.layers import MAX_LAYERS

from ..clusters import machine_of
from ..errors import refusal, require_choice
from ..machine import Links, Machine
from ..model import MAX_SIZE, Model
from ..pipeline.spec import least_group
from ..recipe import ALL_LINEAR, PRODUCTS, WIDE, Training
from ..split import Split
from ..traffic.demands import require


@dataclass(frozen=True)
class Arguments:
    """The arguments of `estimate` besides the model, with their defaults."""

    cluster: str | Machine = "dgx-h100"
    gpus: int = 64
    gpus_per_node: int = 8
    tp: int = 8
    pp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int | None = None
    vpp: int = 1
    micro_batch: int = 1
    global_batch: int = 256
    sequence: int = 4096
    precision: str = "bf16"
    zero: int = 1
    recompute: str = "none"
    flash: bool = True
    sequence_parallel: bool = True
    dispatcher: str = "alltoall"
    dispatch: str = "bf16"
    ep_overlap: bool = False
    lora_rank: int = 0
    lora_targets: str = ALL_LINEAR
    frozen: str = "bf16"


DENSE, EXPERT = ("tp", "cp", "dp", "pp"), ("etp", "ep", "edp", "pp")
"""Megatron's orders of axes, fastest first."""


@dataclass(frozen=True)
class TrainingJob:
    """A model, its training and its machines: everything that the layouts of a job have in common.

    Attributes:
        cluster: the machines, or their name.
        capacity: bytes of a GPU; 0: the machine's.
        dense, expert: orders of the two grids' axes, fastest first.
    """

    model: Model
    training: Training
    global_batch: int
    gpus: int
    gpus_per_node: int
    cluster: str | Machine
    capacity: float = 0.0
    cp_algorithm: str = "p2p"
    dense: tuple[str, ...] = DENSE
    expert: tuple[str, ...] = EXPERT

    @cached_property
    def machine(self) -> Machine:
        return machine_of(self.cluster)

    @property
    def bytes_of_gpu(self) -> float:
        return self.capacity or self.machine.memory

    @property
    def usable(self) -> float:
        """Bytes of a GPU that programs get."""
        return self.bytes_of_gpu * self.machine.seen / self.machine.memory

    @cached_property
    def domain(self) -> int:
        """The number of GPUs in an NVLink domain, for a job of this size."""
        return self.machine.domain_of_job(self.gpus, self.gpus_per_node)

    @cached_property
    def links(self) -> Links:
        return Links(self.machine, self.domain, self.machine.pod_of(self.gpus_per_node))


@dataclass(frozen=True, kw_only=True)
class Request(TrainingJob):
    """One layout of a job, with every number checked.

    Attributes:
        split: sizes, with layers assigned as evenly as possible.
        precision_is_explicit: whether ``training.precision`` sets the format of gradients; else
            they may be in 16 bits if 32 do not fit.
    """

    split: Split
    precision_is_explicit: bool = False

    def stride(self, *axes: str) -> int:
        """Ranks from one member of a group along these axes to the next.

        >>> from training.models import MODELS
        >>> job = TrainingJob(MODELS["llama3-70b"].model, Training(), 8, 128, 8, "dgx-h100")
        >>> request = Request(**vars(job), split=Split(tp=8, cp=2, pp=4, dp=2))
        >>> request.stride("cp", "dp"), request.stride("dp"), request.stride("pp")
        (8, 16, 32)
        """
        strides = self._strides
        if len(axes) == 1:
            return strides.get(axes[0], 1)
        return min((strides[axis] for axis in axes if axis in strides), default=1)

    def trained(self, training: Training) -> Request:
        """The same layout with another training on the same schedule; strides are kept."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), training=training)
        return other

    @cached_property
    def _strides(self) -> dict[str, int]:
        strides: dict[str, int] = {}
        for order in (self.expert, self.dense):
            sizes = accumulate((getattr(self.split, axis) for axis in order), mul, initial=1)
            strides |= dict(zip(order, sizes))
        return strides

    @property
    def tokens(self) -> float:
        return self.training.tokens(self.model, self.split)


def request_of(model: Model, arguments: Arguments) -> Request:
    """The request of a model and arguments. Errors: LayoutError for arguments that contradict."""
    if not isinstance(model, Model):
        raise refusal("not-a-model", "model", value=quoted(model))
    machine = machine_of(arguments.cluster)
    require_choice("precision", arguments.precision, PRODUCTS)
    require_numbers(machine, arguments.precision)
    whole_number(arguments.gpus_per_node, "gpus_per_node", maximum=MAX_RANKS)
    whole_number(arguments.global_batch, "global_batch", maximum=MAX_SIZE)
    if whole_number(arguments.sequence, "sequence", maximum=MAX_SIZE) != model.sequence:
        model = replace(model, sequence=arguments.sequence)
    split = _split(model, arguments)
    samples = whole_number(arguments.micro_batch, "micro_batch") * split.dp
    micro_batches, left = divmod(arguments.global_batch, samples)
    if left or not micro_batches:
        by = {"micro_batch": arguments.micro_batch, "dp": split.dp}
        raise not_a_multiple("global_batch", arguments.global_batch, by, maximum=MAX_SIZE)
    training = Training(
        micro_batch=arguments.micro_batch,
        micro_batches=micro_batches,
        schedule="interleaved" if split.vpp > 1 else "1f1b",
        group_size=least_group(split.pp, micro_batches) if split.vpp > 1 else None,
        zero=arguments.zero,
        recompute=arguments.recompute,
        sequence_parallel=arguments.sequence_parallel,
        flash=arguments.flash,
        dropout=not arguments.flash,
        products=arguments.precision,
        dispatcher=arguments.dispatcher,
        dispatch=arguments.dispatch,
        ep_overlap=arguments.ep_overlap,
        lora_rank=arguments.lora_rank,
        lora_targets=arguments.lora_targets,
        frozen=arguments.frozen,
    )
    require(model, split, training)
    machine.require("memory")
    machines = (arguments.gpus, arguments.gpus_per_node, machine)
    return Request(model, training, arguments.global_batch, *machines, split=split)


def _split(model: Model, arguments: Arguments) -> Split:
    """The sizes on both of Megatron's grids. Experts are not divided unless etp is given;
    Megatron-LM uses tp there (d98e8a6 megatron/training/arguments.py, validate_args).

    Layers that pp x vpp does not divide are assigned nearly equally. If two more layers would
    divide, embedding and loss each take a layer's place, as with Megatron's
    --account-for-embedding-in-pipeline-split.
    """
    sizes = {name: getattr(arguments, name) for name in ("tp", "cp", "pp", "ep", "etp")}
    if sizes["etp"] is None and sizes["ep"] != 1:
        sizes["etp"] = 1
    try:
        dense, expert = grids(arguments.gpus, **sizes)
    except LayoutError as error:
        raise error.renamed({"world": "gpus"}) from None
    pp, vpp = dense.size("pp"), whole_number(arguments.vpp, "vpp", maximum=MAX_LAYERS)
    stages = pp * vpp if pp > 1 else 1
    even = model.layers % stages == 0
    account = not even and (model.layers + 2) % stages == 0
    spread = "equal" if even or account else "nearly"
    dealt = {"vpp": stages // pp, "account": account, "spread": spread}
    return Split.of(dense, expert_grid(expert), **dealt)


def require_numbers(machine: Machine, precision: str) -> None:
    """Raises LayoutError for a number format that the machine's GPUs cannot multiply."""
    is_four = precision == "nvfp4"
    peak = machine.fp4 if is_four else machine.fp8
    names = {"cluster": machine.name, "precision": precision}
    if precision not in WIDE and not peak:
        widest = {"precision": "fp8" if machine.fp8 else "bf16"}
        is_unknown = ("fp4" if is_four else "fp8") in machine.unknown
        code = "unknown-numbers" if is_unknown else "no-such-numbers"
        raise refusal(code, "precision", widest, **names)
    if precision == "bf16" and not machine.has_bf16:
        raise refusal("no-such-numbers", "precision", {"precision": "fp16"}, **names)


def require_times(job: TrainingJob) -> None:
    """Raises LayoutError for a number of the machine that a step's time needs and nobody knows."""
    job.machine.require("peak", "hbm")
    job.machine.require_links(job.gpus, job.gpus_per_node)
