"""The layers of a rank in time, as a job's own data parallelism sends them.

    engine      scheme of training.collectives.buckets
    megatron    megatron without ZeRO, sharded with stages 1 and 2, zero3
    ddp         ddp: buckets of 1 MiB and 25 MiB in the order of readiness
    fsdp2       fsdp: a unit a layer, kept whole or gathered again, copies
    zero        deepspeed with stages 0 to 2, zero3

Of programs other than Megatron a layer's tensors are those of torch's modules, one for each matrix.
"""

from __future__ import annotations

from dataclasses import replace

from ..collectives.buckets import BucketModel, model_tensors
from ..model import Model
from ..recipe import Training
from ..split import Split
from .ddp import readiness
from .held import sharding_of
from .record import BYTES
from .units import local_parameters
from .words import UNSAID

OF_ZERO = {
    "megatron": ("megatron", "sharded", "sharded", "zero3"),
    "ddp": ("ddp", "ddp", "ddp", "ddp"),
    "fsdp2": ("ddp", "fsdp", "fsdp", "fsdp"),
    "zero": ("deepspeed", "deepspeed", "deepspeed", "zero3"),
}
"""Schemes by the stage of ZeRO, of each engine."""


def scheme_of(training: Training) -> str:
    """The scheme of a job.

    >>> scheme_of(Training()), scheme_of(Training(engine="fsdp2", zero=3))
    ('sharded', 'fsdp')
    """
    return OF_ZERO[training.engine][training.zero]


def training_unasked(engine: str) -> Training:
    """A training of an engine where nobody says another stage of ZeRO."""
    return Training(engine=engine, zero=UNSAID[engine][0])


def tensors_of_layer(model: Model, split: Split, training: Training, kind: int) -> tuple[int, ...]:
    """Parameters of each tensor of a layer of this kind on a rank, as gradients become ready;
    experts where they are on the same ranks as all else.

    >>> from training.models import MODELS
    >>> how = Training(engine="ddp", zero=0)
    >>> tensors_of_layer(MODELS["llama3-8b"].model, Split(dp=8), how, 0)[:4]
    (58720256, 58720256, 58720256, 4096)
    """
    if training.engine == "megatron":
        return model_tensors(model, split, model.kinds[kind])
    layer = model.numbers.index(kind)
    ((_, parameters),) = local_parameters(model, (layer,), (split.tp, 0), (split.ep, 0))
    held = [each for each in parameters if not (each.expert and split.ep > 1)]
    return tuple(each.elements for each in readiness(held))


def as_sent(base: BucketModel, training: Training, split: Split, between: float) -> BucketModel:
    """The layers with what the job's data parallelism says of them; between: bytes per second
    from one copy to another."""
    if training.engine == "megatron":
        return base
    how = sharding_of(training, split)
    stored = BYTES["bf16" if training.precision == "bf16" else "fp32"]
    is_ddp = scheme_of(training) == "ddp"
    return replace(
        base,
        weight=BYTES[how.gathered],
        gradient=stored if is_ddp else BYTES[how.reduced],
        keeps_whole=training.engine == "fsdp2" and how.keeps_whole(split.pp),
        stage=training.zero,
        copies=how.replicate,
        between=between,
    )
