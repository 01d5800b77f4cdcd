"""What a pipeline rank holds, apart by when, of the parts that are counted for its fullest moment.

A rank's activations are those of its chunks: of FSDP's each by its own layers, of other programs'
equal shares of the rank's, as the closed forms of training.pipeline count them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import mul

from ..model import Model
from ..parameters import StageParameters
from ..pipeline.figures import embedded_in_flight, outputs_in_flight
from ..recipe import Training
from ..sharding.held import LayersHeld, always_gathered, partial_sums, sharding_alone
from ..sharding.ops import StageOps, ops_of
from ..split import Dealing, Split, layers_of_stages, mtp_stage, stages_of_ranks
from .moments import STATES, Pieces


def is_played(training: Training) -> bool:
    """Whether the fullest moment is found by playing the ops of a rank: what FSDP has whole
    grows in backward, as activations go."""
    return training.engine == "fsdp2" and training.zero > 0 and not training.is_adapted


def pieces_of(
    model: Model,
    split: Split,
    training: Training,
    held: StageParameters,
    layer: Sequence[float],
    parts: Mapping[str, float],
) -> Pieces:
    """The pieces of a stage. layer: bytes of the activations of a layer of each kind; parts: those
    of the stage, without what FSDP gathers; split: placed as the schedule has it."""
    numbers = _numbers(model, split.dealing, held.stage)
    kept = {stage: sum(map(mul, kinds, layer)) for stage, (kinds, _) in numbers.items()}
    for stage, (_, mtp) in numbers.items():
        kept[stage] += mtp * layer[model.numbers[-1]]
    fsdp: dict[int, StageOps] = {}
    if is_played(training):
        fsdp = _stages(model, split, training, numbers)
    else:
        kept = dict.fromkeys(kept, sum(kept.values()) / len(kept))
    masks, gathered = embedded_in_flight(training.pipeline(split)), parts.get("gathered", 0.0)
    return Pieces(
        {name: parts[name] for name in STATES if name in parts},
        kept,
        parts.get("output", 0.0) / outputs_in_flight(training.pipeline(split)),
        parts.get("embedding", 0.0) / masks,
        masks,
        {"gathered": always_gathered(training, held, gathered)},
        {
            "gathered": gathered,
            **{name: parts.get(name, 0.0) for name in ("recomputed", "working")},
        },
        max(1, held.layers // len(kept)),
        fsdp,
        partial_sums(model, split, training, held) if fsdp else 0.0,
    )


Numbers = dict[int, tuple[tuple[int, ...], int]]
"""By stage: the number of layers of each kind, and of MTP modules."""


def _numbers(model: Model, dealing: Dealing, rank: int) -> Numbers:
    layers = layers_of_stages(model.layers, dealing)
    modules = mtp_stage(dealing.spread, len(layers)) if model.mtp_layers else -1
    found: Numbers = {}
    for stage in stages_of_ranks(*dealing[:3])[rank]:
        kinds = [model.numbers[each] for each in layers[stage]]
        counts = tuple(kinds.count(kind) for kind in range(len(model.kinds)))
        found[stage] = counts, model.mtp_layers * (stage == modules)
    return found


def _stages(
    model: Model, split: Split, training: Training, numbers: Numbers
) -> dict[int, StageOps]:
    how = sharding_alone(training)
    last = split.pp * (1 if split.placement == "both ways" else max(len(numbers), 1)) - 1
    is_ahead = len(numbers) > 1 and split.placement != "both ways"
    return {
        stage: ops_of(
            model, split, how, LayersHeld(kinds, not stage, stage == last, mtp), is_ahead=is_ahead
        )
        for stage, (kinds, mtp) in numbers.items()
    }
