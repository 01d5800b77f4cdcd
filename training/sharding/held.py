"""Bytes of data parallelism's states on a rank of a pipeline stage, by engine.

P parameters of the rank, d ranks that cut them, r replicas; Adam has two moments.

    engine     held                                        whole on the way
    ddp        4 + 4 + 8 bytes of P                        4 of P: the buckets beside the gradients
    fsdp2      4 + 4 + 8 bytes of P/d, padded by rows      what `ops` says is alive at the most
    zero 0     2 + 2 + 12 of P
    zero 1     2 + 2 + 12/d of P                           a bucket of gradients
    zero 2     2 + 2/d + 12/d of P                         a bucket of gradients
    zero 3     (2 + 2 + 12)/d of P                         gathered weights up to max_live, a bucket

Under torch's pipelines FSDP's weights (b_p) and sums of gradients (b_r) stay whole from first use
to the end of the step, with a unit's gradients in b_p: 2 + 4 bytes of P, as Megatron's ZeRO-1 has;
of a rank with more stages three are whole at once. What is whole when, `ops` plays.

Sources as of `fsdp`, `ddp` and `zero`; DDP's gradient_as_bucket_view spares the buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groups.kept import kept

from ..model import Model
from ..moves.tensors import Place
from ..parameters import StageParameters
from ..recipe import PRECISIONS, Training
from ..split import Split
from .record import BYTES
from .step import Seat
from .units import WRAPPINGS, Mesh1D, Module, local_parameters, modules_of, places_of
from .value import DataParallel
from .words import CUTS
from .zero import ZeroConfig, has_bf16_optimizer

States = dict[str, float]
"""Bytes by part of a rank's memory: weights, gradients, optimizer; and gathered, what is whole on
the way (weights of units, their gradients, buffers of collectives)."""

BUCKET = ZeroConfig().reduce_bucket
MAX_LIVE = ZeroConfig().max_live


def sharding_of(training: Training, split: Split) -> DataParallel:
    """The data parallelism of a job.

    >>> sharding_of(Training(zero=3, engine="fsdp2", instances=2), Split(dp=16)).shard
    8
    """
    ranks, _ = training.ranks_sharing(split)
    weight, gradient = formats_of(training)
    cut = CUTS[training.zero]
    reshard: bool | str = training.reshard
    if training.engine == "fsdp2" and training.zero < 3:
        reshard, cut = "never", "weights"  # FSDP1's SHARD_GRAD_OP
    return DataParallel(
        training.engine,
        cut,
        replicate=training.instances,
        shard=ranks,
        stored=_stored(training),
        gathered=weight,
        reduced=gradient,
        units=training.units,
        reshard=reshard,
        sync=training.sync,
    )


def formats_of(training: Training) -> tuple[str, str]:
    """The formats of weights and of gradients on their way."""
    precision = PRECISIONS[training.precision]
    names = {1: "fp8", 2: "bf16", 4: "fp32"}
    return names[precision.weight], names[precision.gradient]


def _stored(training: Training) -> str:
    """The format of FSDP's own weights: 32 bits, unless all of the training has 16."""
    return "bf16" if training.precision == "bf16" else "fp32"


def element_bytes(training: Training, pp: int = 1) -> dict[str, tuple[float, bool]]:
    """Bytes of a parameter's states, and whether ranks cut them, by part of the memory; pp: the
    stages, with which DeepSpeed may cut more.

    >>> element_bytes(Training(engine="fsdp2", zero=3))
    {'weights': (4, True), 'gradients': (4, True), 'optimizer': (8.0, True)}
    >>> element_bytes(Training(engine="zero", zero=1, precision="bf16-bf16"))
    {'weights': (2, False), 'gradients': (2, False), 'optimizer': (12.0, True)}
    >>> element_bytes(Training(engine="zero", zero=0, precision="bf16-bf16"), pp=2)
    {'weights': (2, False), 'gradients': (4, False), 'optimizer': (12.0, True)}
    """
    precision, zero = PRECISIONS[training.precision], training.zero
    own = has_bf16_optimizer(training, pp)
    gradient = precision.gradient + (BYTES["bf16"] if own else 0)
    sizes = (precision.weight, gradient, training.optimizer_bytes)
    cut = (zero >= 3, zero >= 2, zero >= 1 or own)
    if training.engine in ("ddp", "fsdp2"):
        each = BYTES[_stored(training)]
        sizes, cut = (
            (each, each, 2 * each * training.moments),
            (training.engine == "fsdp2" and zero > 0,) * 3,
        )
    return dict(zip(("weights", "gradients", "optimizer"), zip(sizes, cut)))


OWN = ("engine", "zero", "reshard", "sync", "precision", "instances", "units", "optimizer")
"""What of a training its data parallelism depends on."""


def sharding_alone(training: Training) -> Training:
    """The training with nothing but its data parallelism."""
    return Training(**{name: getattr(training, name) for name in OWN})


def states(model: Model, split: Split, training: Training, stage: StageParameters) -> States | None:
    """The states of one rank; None for Megatron's, which training.memory counts itself."""
    if training.engine == "megatron":
        return None
    if training.engine == "fsdp2" and training.zero:
        return _of_fsdp(model, split, sharding_alone(training), held_by(stage))
    if training.engine in ("ddp", "fsdp2"):
        each = 2.0 if training.precision == "bf16" else 4.0
        elements = stage.dense + stage.experts
        return {
            "weights": each * elements,
            "gradients": each * elements,
            "optimizer": 2 * each * training.moments * elements,
            "gathered": each * elements,
        }
    return _of_zero(split, training, (stage.dense, stage.experts))


def _of_zero(split: Split, training: Training, parameters: tuple[float, float]) -> States:
    precision, zero = PRECISIONS[training.precision], training.zero
    whole, cut = sum(parameters), 0.0
    for elements, ranks in zip(parameters, training.ranks_sharing(split)):
        cut += elements / ranks
    found = {
        part: each * (cut if is_cut else whole)
        for part, (each, is_cut) in element_bytes(training, split.pp).items()
    }
    if zero:
        found["gathered"] = float(precision.gradient * min(whole, BUCKET))
    if zero == 3:
        found["gathered"] += precision.weight * min(whole, MAX_LIVE)
    return found


# -- FSDP2 ---------------------------------------------------------------------------------------


class LayersHeld(NamedTuple):
    """What FSDP's states of a stage depend on: how many layers of each kind, its ends, modules of
    multi-token prediction."""

    kinds: tuple[int, ...]
    is_first: bool
    is_last: bool
    mtp: int


def held_by(stage: StageParameters) -> LayersHeld:
    """The layers and ends of a stage."""
    return LayersHeld(stage.kinds, stage.is_first, stage.is_last, stage.mtp)


def layers_like(model: Model, kinds: Sequence[int]) -> tuple[int, ...]:
    """The first layers of the model of which there are so many of each kind."""
    left, layers = list(kinds), []
    for layer, kind in enumerate(model.numbers):
        if left[kind]:
            left[kind] -= 1
            layers.append(layer)
    return tuple(layers)


def seat_of(split: Split, training: Training) -> Seat:
    """The place of the first rank, which has most."""
    dense, experts = training.ranks_sharing(split)
    is_apart = split.ep > 1
    return Seat(
        shard=(dense, 0),
        expert_shard=(experts, 0) if is_apart else (0, 0),
        tp=(split.tp, 0),
        ep=(split.ep, 0),
        pp=(split.pp, 0),
    )


@kept
def modules_held(
    model: Model, split: Split, training: Training, held: LayersHeld
) -> tuple[Module, ...]:
    """The wrapped modules of a rank that holds so many layers of each kind."""
    places = places_of(model, layers_like(model, held.kinds), held.is_first, held.is_last)
    extra: tuple[Place, ...] = ("mtp",) if held.mtp else ()
    seat = seat_of(split, training)
    stage = local_parameters(model, (*places, *extra), seat.tp, seat.ep)
    experts = Mesh1D("efsdp", *seat.expert_shard) if seat.expert_shard[0] else None
    wrapping = WRAPPINGS[training.units]
    return tuple(modules_of(stage, wrapping, Mesh1D("fsdp", *seat.shard), experts, model.experts))


@kept
def _of_fsdp(model: Model, split: Split, training: Training, held: LayersHeld) -> States:
    """Without what is whole meanwhile, which `ops` plays."""
    how = sharding_of(training, split)
    modules = modules_held(model, split, training, held)
    units = [unit for module in modules for unit in module.units]
    stored, each = sum(unit.stored for unit in units), BYTES[how.stored]
    return {
        "weights": float(each * stored),
        "gradients": float(each * stored),
        "optimizer": 2.0 * each * training.moments * sum(unit.own for unit in units),
    }


def partial_sums(model: Model, split: Split, training: Training, stage: StageParameters) -> float:
    """Bytes of sums of gradients that wait to be all-reduced over replicas."""
    how = sharding_of(training, split)
    if training.micro_batches == 1 or how.sync != "replicas" or how.replicate == 1:
        return 0.0
    modules = modules_held(model, split, sharding_alone(training), held_by(stage))
    stored = sum(unit.stored for module in modules for unit in module.units)
    return float(BYTES[how.reduced] * stored)


def always_gathered(training: Training, stage: StageParameters, gathered: float) -> float:
    """What of the bytes that are whole on the way is so during forwards too: all but ZeRO's bucket
    of gradients."""
    if training.engine != "zero" or not training.zero or training.is_adapted:
        return gathered
    parameters = stage.dense + stage.experts
    return gathered - PRECISIONS[training.precision].gradient * min(parameters, BUCKET)


NEAR = 3
"""Modules on each side of one that may be alive with it, and one more."""


def unlike(modules: Sequence[Module]) -> tuple[Module, ...]:
    """Modules without those between others of the same sizes: what is alive at once are neighbours.

    >>> from training.models import MODELS
    >>> how = Training(engine="fsdp2", zero=3, units="torchtitan")
    >>> held = LayersHeld((80,), True, True, 0)
    >>> modules = modules_held(MODELS["llama3-70b"].model, Split(dp=8), how, held)
    >>> len(modules), len(unlike(modules))
    (83, 9)
    """
    sizes = [[unit.whole for unit in module.units] for module in modules]
    kept = []
    for at, module in enumerate(modules):
        near = sizes[max(0, at - NEAR) : at + NEAR + 1]
        if len(near) < 2 * NEAR + 1 or any(each != sizes[at] for each in near):
            kept.append(module)
    return tuple(kept)
