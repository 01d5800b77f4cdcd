"""How many collectives one exchange is, and their bytes: units, buckets, as the program sends them.

    fsdp2     an all-gather and a reduce-scatter for each unit, with the padding of its rows; in
              backward none for what stayed whole (the root, torchtitan's last modules); over
              replicas an all-reduce of each unit's shard
    ddp       an all-reduce for each bucket: the first closes at 1 MiB, others at 25 MiB, filled in
              the order in which gradients are ready
    zero 0-2  all-reduces of reduce_bucket_size elements or a little more; the weights at once
    zero 3    the gathers of a micro-batch behind the first, as they were traced (`zero3`), and
              reduce-scatters of such buckets
    megatron  not counted: its buckets are Megatron's own (training.collectives.buckets)

`fsdp`, `ddp` and `zero_steps` play a step, and give the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groups.kept import kept

from ..model import Model
from ..parameters import StageParameters
from ..recipe import Training
from ..split import Split
from .ddp import FIRST, OTHERS, buckets_of, readiness
from .held import LayersHeld, formats_of, held_by, modules_held, sharding_alone, sharding_of
from .record import BYTES, Record
from .units import Module, ModuleParameter, Unit
from .zero import ZeroConfig, padded
from .zero3 import Coordinator
from .zero_steps import reductions, scatters


class Counted(NamedTuple):
    """Collectives of one exchange, each time that it runs: their number, the bytes of their whole
    buffers together, and those of the largest."""

    number: int
    bytes: float
    most: float


NOTHING = Counted(0, 0.0, 0.0)


@kept
def counted(
    model: Model, split: Split, training: Training, held: LayersHeld
) -> dict[tuple[str, int], Counted]:
    """By what is exchanged, and 0 for dense parameters or 1 for experts on ranks of their own.

    >>> from training.models import MODELS
    >>> how = Training(engine="fsdp2", zero=3, units="torchtitan")
    >>> held = LayersHeld((32,), True, True, 0)
    >>> found = counted(MODELS["llama3-8b"].model, Split(dp=8), how, held)
    >>> {what: each.number for (what, _), each in found.items()}
    {'parameters': 34, 'parameters_again': 33, 'gradients': 34}
    """
    modules = modules_held(model, split, training, held)
    if training.engine == "fsdp2" and training.zero:
        return _of_fsdp(modules, split, training)
    parameters = [each for module in modules for unit in module.units for each in unit.parameters]
    if training.engine in ("ddp", "fsdp2"):
        element = BYTES["bf16" if training.precision == "bf16" else "fp32"]
        buckets = buckets_of(readiness(parameters), (FIRST, OTHERS), element)
        sizes = [element * sum(each.elements for each in bucket) for bucket in buckets]
        return {("gradients", 0): _summed(sizes)}
    return _of_zero(parameters, split, training)


def _summed(sizes: Iterable[float]) -> Counted:
    every = list(sizes)
    return Counted(len(every), float(sum(every)), float(max(every, default=0.0)))


def _of_fsdp(
    modules: Iterable[Module], split: Split, training: Training
) -> dict[tuple[str, int], Counted]:
    how = sharding_of(training, split)
    weight, gradient = BYTES[how.gathered], BYTES[how.reduced]
    units: tuple[list[Unit], list[Unit]] = ([], [])
    again: tuple[list[Unit], list[Unit]] = ([], [])
    for module in modules:
        is_cut = how.reshard_of(split.pp, is_root=module.is_root, is_end=module.is_end)
        for unit in module.units:
            which = int(unit.group.name == "efsdp")
            units[which].append(unit)
            again[which].extend([unit] if is_cut else [])
    found = {}
    for which in (0, 1):
        own = units[which]
        if not own:
            continue
        found["parameters", which] = _summed(weight * unit.whole for unit in own)
        if again[which]:
            gathered = (weight * unit.whole for unit in again[which])
            found["parameters_again", which] = _summed(gathered)
        found["gradients", which] = _summed(gradient * unit.whole for unit in own)
        if how.replicate > 1:
            found["replicas", which] = _summed(gradient * unit.stored for unit in own)
    return found


def _of_zero(
    parameters: list[ModuleParameter], split: Split, training: Training
) -> dict[tuple[str, int], Counted]:
    weight, gradient = (BYTES[each] for each in formats_of(training))
    world = training.ranks_sharing(split)[0]
    config = ZeroConfig(training.zero)
    sizes = (scatters if training.zero == 3 else reductions)(parameters, config, world)
    found = {("gradients", 0): _summed(gradient * size for size in sizes)}
    if training.zero == 3:
        found |= _gathered(parameters, config, world, weight)
    if training.zero in (1, 2):
        whole = float(weight * padded(sum(each.elements for each in parameters), world))
        found["parameters", 0] = Counted(1, whole, whole)
    return found


def _gathered(
    parameters: list[ModuleParameter], config: ZeroConfig, world: int, weight: int
) -> dict[tuple[str, int], Counted]:
    """The gathers of a micro-batch once modules were traced and what is kept whole is there."""
    coordinator, record = Coordinator(parameters, config, world), Record()
    coordinator.begin_traced()
    coordinator.run(record, 0)
    found = {}
    for what, phase in (("parameters", "forward:0"), ("parameters_again", "backward:0")):
        sizes = [one.bytes_out for one in record.collectives if one.phase == phase]
        if sizes:
            each = weight / BYTES[config.format]
            found[what, 0] = _summed(each * size for size in sizes)
    return found


def counted_by_stage(
    model: Model, split: Split, training: Training, stages: Sequence[StageParameters]
) -> list[dict[tuple[str, int], Counted]]:
    """`counted` of each pipeline stage; nothing of what is not counted here: Megatron's, adapters,
    experts on ranks of their own without FSDP."""
    if training.engine == "megatron" or training.is_adapted:
        return [{} for _ in stages]
    if split.ep > 1 and not (training.engine == "fsdp2" and training.zero):
        return [{} for _ in stages]
    own = sharding_alone(training)
    return [counted(model, split, own, held_by(stage)) for stage in stages]
