"""What LoRA keeps of a rank beside its states: weights that are whole on the way, and activations.

    megatron ZeRO-3   the widest layer, but the rank's own share
    fsdp2             two layers, and what is outside of layers; under stages all of them
    zero 1, 2         a bucket of the adapters' gradients;  3: and weights up to max_live
    ddp               the adapters' gradients once more

    activations       r elements a token of each adapter; its input is that of the layer beside it,
                      which is counted whether the layer is a target or not

Sources: as of training.adapters and training.sharding.
"""

from __future__ import annotations

from ..adapters import adapter_widths, frozen_bytes, layer_adapted, stage_adapted
from ..kinds import LayerKind
from ..model import Model
from ..parameters import StageParameters
from ..recipe import Training
from ..sharding.held import BUCKET, MAX_LIVE, element_bytes
from ..split import Split


def whole_on_the_way(
    model: Model, split: Split, training: Training, stage: StageParameters
) -> float:
    """Bytes of weights that a rank gathers, and of gradients on their way, where adapters alone are
    trained.

    >>> from training.models import MODELS
    >>> from training.parameters import stage_parameters
    >>> llama, split = MODELS["llama3-8b"].model, Split(dp=8)
    >>> (stage,) = stage_parameters(llama, split)
    >>> how = [Training(zero=3, engine="fsdp2", lora_rank=8), Training(engine="ddp", lora_rank=8)]
    >>> [round(whole_on_the_way(llama, split, one, stage) / 1e9, 2) for one in how]
    [2.97, 0.08]
    """
    trained, frozen = stage_adapted(model, split, training, stage)
    ranks = training.ranks_sharing(split)
    gradient, _ = element_bytes(training)["gradients"]
    if training.engine == "ddp" or (training.engine == "fsdp2" and not training.zero):
        return gradient * sum(trained)
    if training.engine == "zero":
        found = gradient * min(sum(trained), BUCKET) if training.zero else 0.0
        if training.zero == 3:
            found += sum(frozen) * min(1.0, MAX_LIVE / stage.total)
        return found
    if training.zero < 3 and training.engine == "megatron":
        return 0.0
    how = (training.lora_rank, training.targets, training.frozen)
    kinds = [kind for kind, number in zip(model.kinds, stage.kinds) if number] or [*model.kinds]
    layers = [layer_adapted(model, split, *how, kind).frozen for kind in kinds]
    if training.engine == "fsdp2":
        if split.pp > 1 and training.reshard == "default":
            return sum(frozen)
        return 2.0 * max(map(sum, layers)) + _outside(stage, training)
    away = training.offload == "parameters"
    shares = [1.0 if away else 1.0 - 1.0 / share for share in ranks]
    return max(sum(size * share for size, share in zip(layer, shares)) for layer in layers)


def _outside(stage: StageParameters, training: Training) -> float:
    ends = {name: stage.by_kind.get(name, 0) for name in ("embedding", "positions", "output")}
    return sum(frozen_bytes(ends, training.frozen))


def adapter_activations(model: Model, split: Split, training: Training, layer: LayerKind) -> float:
    """Bytes of what adapters of a layer keep for one micro-batch: their inner elements."""
    tokens, kept = training.tokens(model, split), 0.0
    for _, _, number, is_expert in adapter_widths(model, split, training, layer):
        each = tokens * number * training.lora_rank
        top_k = layer.moe.top_k if is_expert and layer.moe else 1
        kept += each * top_k / (split.tp if is_expert else 1)
    return training.element * kept
