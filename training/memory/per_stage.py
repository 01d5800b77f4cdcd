"""Memory of each rank in one training step, in bytes, pipeline stage by pipeline stage.

Model states of P parameters on d data parallel ranks, with w, g and K bytes for the weight, the
gradient and the optimizer's state of a parameter (arXiv:1910.02054, section 5):

    stage 0   w*P   + g*P   + K*P        everything on every rank
    stage 1   w*P   + g*P   + K*P/d      ZeRO-1, and Megatron's distributed optimizer
    stage 2   w*P   + g*P/d + K*P/d
    stage 3   w*P/d + g*P/d + K*P/d      ZeRO-3, FSDP; one layer at a time is gathered

Other programs than Megatron's hold and gather other states: training.sharding.held has them.

Products of 8 or 4 bits read 8-bit copies of 16-bit weights, by rows and by columns, which
Transformer Engine keeps from one micro-batch to the next: 2*P more.

Of LoRA P are the adapters alone. The frozen weights stand beside them in their format, cut where
weights are: no gradient, no state, no copy of the optimizer's (training.adapters).

d is dp*cp for dense parameters and edp for those of experts (Megatron's
theoretical_memory_usage.py), each divided by the number of optimizer instances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import add, mul

from groups.alternatives import divisors_near, not_a_multiple
from groups.errors import quoted
from groups.kept import kept
from groups.mesh import whole_number

from ..adapters import ROUNDED, stage_adapted
from ..errors import is_amount, refusal
from ..kinds import LayerKind
from ..model import MAX_SIZE, Model
from ..parameters import StageParameters, layer_parameters, on_one_rank, stage_parameters
from ..pipeline.figures import (
    embedded_in_flight,
    micro_batches_in_flight,
    outputs_in_flight,
)
from ..recipe import PRECISIONS, WIDE, Training
from ..sharding.held import element_bytes
from ..sharding.held import states as sharded_states
from ..sharding.muon import most_owned
from ..split import Split, padded_vocabulary
from .activations import (
    LOGIT,
    computed_again,
    embedding_activations,
    layer_activations,
    output_activations,
)
from .adapted import adapter_activations, whole_on_the_way
from .host import Crossing, Number, crossing, moved
from .moments import fullest
from .pieces import is_played, pieces_of

PARTS = (
    *("weights", "copies", "gradients", "optimizer", "gathered"),
    *("activations", "embedding", "output", "recomputed", "working"),
)
"""The parts of a rank's memory, in the order in which they are shown."""

HELD = ("optimizer", "weights")
"""States whose shares in host memory determine the bytes transferred."""


def zero_model_state_bytes(
    parameters: float,
    dp: int,
    stage: int,
    *,
    optimizer_bytes: float = 12,
    weight_bytes: float = 2,
    gradient_bytes: float = 2,
) -> float:
    """Bytes per rank of weights, gradients and optimizer state, at a stage of ZeRO.

    >>> [zero_model_state_bytes(7.5e9, dp=64, stage=stage) / 1e9 for stage in (0, 1, 2, 3)]
    [120.0, 31.40625, 16.640625, 1.875]

    Errors: LayoutError for an unknown stage, dp that is no whole number from 1 up, and
    numbers that are negative or none.
    Source: arXiv:1910.02054 section 5, Figure 1 and Table 1.
    """
    dp = whole_number(dp, "dp")
    stage = whole_number(stage, "zero", minimum=0, maximum=3)
    numbers = {
        "parameters": parameters,
        "optimizer_bytes": optimizer_bytes,
        "weight_bytes": weight_bytes,
        "gradient_bytes": gradient_bytes,
    }
    for name, number in numbers.items():
        if not is_amount(number):
            raise refusal("not-an-amount", name, value=quoted(number))
    return sum(_states(parameters, dp, stage, weight_bytes, gradient_bytes, optimizer_bytes))


@dataclass(frozen=True)
class StageMemory:
    """The memory of each rank of one pipeline stage: ``parts``, GPU bytes by PARTS without zeros,
    and ``host``, bytes of the states in host memory (training.memory.host)."""

    stage: int
    parameters: StageParameters
    in_flight: float  # micro-batches whose activations are kept, of the whole stage
    layer_bytes: float  # activations of all layers of the stage for one micro-batch
    parts: dict[str, float]
    host: dict[str, float] = field(default_factory=dict)
    trained: tuple[float, ...] = ()  # as `trained_of` has it

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def on_host(self) -> float:
        """Bytes of a rank in host memory."""
        return sum(self.host.values())

    @property
    def host_shares(self) -> tuple[float, float]:
        """The shares of a rank's optimizer state and weights that are in host memory."""
        both = ((self.host.get(name, 0.0), self.parts.get(name, 0.0)) for name in HELD)
        optimizer, weights = (away / (away + here) if away else 0.0 for away, here in both)
        return optimizer, weights

    def crossing(self, training: Training) -> Crossing:
        """Bytes that a rank transfers to host memory and back in one step."""
        precision = PRECISIONS[training.precision]
        states = self.host.get("optimizer", 0.0) + self.parts.get("optimizer", 0.0)
        times = (training.micro_batches, training.weight_passes)
        each = training.optimizer_bytes
        return crossing(training, precision, states / each, self.host_shares, times)


@kept
def memory_per_stage(
    model: Model, split: Split, training: Training | None = None, room: float = math.inf
) -> tuple[StageMemory, ...]:
    """The memory of a rank, for every pipeline stage; all ranks of a stage need the same.

    room: bytes of a GPU that tensors may take; chunks beyond it go to host memory.

    >>> from training.models import MODELS
    >>> split = Split(tp=8, pp=4, dp=2)
    >>> stages = memory_per_stage(MODELS["llama3-70b"].model, split, Training(micro_batches=16))
    >>> [round(stage.total / 1e9, 1) for stage in stages], stages[0].in_flight
    ([50.1, 42.9, 37.3, 33.7], 4.0)

    Errors: LayoutError if the split does not cut the model evenly, or the chunks of the schedule
    do not go with it.
    """
    training = training or Training()
    split = split.placed(training.rule.placement)
    _require(model, split, training)
    stages = stage_parameters(model, split)
    in_flight = micro_batches_in_flight(training.pipeline(split))
    layer = [layer_bytes(model, split, training, kind) for kind in model.kinds]
    # Most stages between the ends are alike.
    alike: dict[tuple[object, ...], tuple[float, dict[str, float], tuple[float, ...]]] = {}
    memory = []
    for stage in stages:
        holds = stage.holds
        if holds not in alike:
            trained = trained_of(model, split, training, stage)
            beside = beside_kept(model, split, training, stage, layer, trained)
            alike[holds] = (*beside, trained)
        of_layers, parts, trained = alike[holds]
        kept = (in_flight[stage.stage], of_layers)
        if is_played(training):
            pieces = pieces_of(model, split, training, stage, layer, parts)
            parts = fullest(pieces, training.pipeline(split), stage.stage)
        else:
            parts = {**parts, "activations": kept[0] * kept[1]}
        parts, host = _parts(training, parts, room)
        memory.append(StageMemory(stage.stage, stage, *kept, parts, host, trained))
    return tuple(memory)


def trained_of(
    model: Model, split: Split, training: Training, stage: StageParameters
) -> tuple[float, ...]:
    """The parameters of a rank that are trained, of what is no expert and of experts; of LoRA those
    of adapters, and behind them bytes of the frozen weights of both."""
    if not training.is_adapted:
        return stage.dense, stage.experts
    adapted = stage_adapted(model, split, training, stage)
    return (*adapted.trained, *adapted.frozen)


def largest(stages: tuple[StageMemory, ...]) -> StageMemory:
    """The stage that needs most memory; the first of equals."""
    return max(stages, key=lambda stage: stage.total)


def beside_kept(
    model: Model,
    split: Split,
    training: Training,
    parameters: StageParameters,
    layer: list[float],
    trained: tuple[float, ...],
) -> tuple[float, dict[str, float]]:
    """Bytes of the activations that a stage's layers keep for one micro-batch, and bytes of
    everything else on the stage, by part."""
    numbers = [*parameters.kinds]
    if parameters.mtp:  # like the last layer
        numbers[model.numbers[-1]] += parameters.mtp
    of_layers = sum(map(mul, numbers, layer))
    kinds = [kind for kind, number in zip(model.kinds, numbers) if number]
    own = None
    if not training.is_adapted:
        own = sharded_states(model, split, training, parameters)
    states = model_states(trained, split, training) if own is None else own
    parts = {name: float(size) for name, size in states.items()}
    if training.is_adapted:
        parts["gathered"] = whole_on_the_way(model, split, training, parameters)
    elif training.optimizer == "muon" and own is None:
        parts["optimizer"] = _of_owners(model, split, training, parameters)
    if training.offload == "chunks":
        parts["gradients"] = 0.0  # in place of weights
    if training.zero == 3 and own is None and not training.is_adapted:
        parts["gathered"] = max(
            _gathered(model, split, training, kind) for kind in kinds or model.kinds
        )
    if parameters.is_first:
        held = embedded_in_flight(training.pipeline(split))
        parts["embedding"] = held * embedding_activations(model, split, training)
    if parameters.is_last:
        held = outputs_in_flight(training.pipeline(split))
        parts["output"] = held * output_activations(model, split, training)
    again = (computed_again(model, split, training, kind) for kind in kinds)
    parts["recomputed"] = max(again, default=0.0)
    parts["working"] = _working(model, split, training, parameters)
    if any(kind.has_experts for kind in kinds):
        parts["working"] += exchange_buffers(model, split, training)
    return of_layers, parts


def _parts(
    training: Training, beside: dict[str, float], room: float
) -> tuple[dict[str, float], dict[str, float]]:
    """The parts of a rank's memory on its GPU and in host memory."""
    parts, host = dict(beside), {}
    if training.offload != "none":
        room -= sum(parts.values()) - parts["weights"] - parts["optimizer"]
        host = moved((training.offload, training.zero), parts, room)
        for name, size in host.items():
            parts[name] = max(0.0, parts[name] - size)
    return {name: parts[name] for name in PARTS if parts.get(name)}, host


def model_states(
    parameters: tuple[Number, ...], split: Split, training: Training
) -> dict[str, Number]:
    """Bytes of weights, gradients and optimizer state, for dense parameters plus experts; of other
    programs than Megatron by what they hold (training.sharding.held), without padding.

    Behind the parameters that are trained may stand the bytes of those that are not, of both kinds.

    >>> how = Training(engine="fsdp2", zero=3)
    >>> model_states((8e9, 0), Split(dp=8), how)["weights"] / 1e9
    4.0
    """
    ranks, frozen = training.ranks_sharing(split), parameters[2:]
    if training.engine != "megatron":
        how = element_bytes(training, split.pp)
        sizes: dict[str, Number] = {
            part: sum(each * n / (share if is_cut else 1) for n, share in zip(parameters, ranks))
            for part, (each, is_cut) in how.items()
        }
        if frozen:
            is_cut = how["weights"][1]
            sizes["weights"] += sum(n / (r if is_cut else 1) for n, r in zip(frozen, ranks))
        return sizes
    precision, zero = PRECISIONS[training.precision], training.zero
    of_one = (precision.weight, precision.gradient, training.optimizer_bytes)
    shares = zip(parameters, ranks)
    states = [_states(number, share, zero, *of_one) for number, share in shares]
    names = ("weights", "gradients", "optimizer")
    sizes = dict(zip(names, map(add, *states)))
    if frozen:
        sizes["weights"] += sum(n / (r if zero == 3 else 1) for n, r in zip(frozen, ranks))
    if training.products not in WIDE and precision.weight > 1 and zero < 3:
        sizes["copies"] = 2.0 * sum(parameters[:2])
        if frozen and training.frozen == "bf16":
            sizes["copies"] += sum(frozen)
    return sizes


def _of_owners(
    model: Model, split: Split, training: Training, parameters: StageParameters
) -> float:
    """Bytes of Muon's states on the rank that owns most, with Adam's of what is no matrix."""
    ranks = training.ranks_sharing(split) if training.zero else (1, 1)
    owned, *others = most_owned(model, split, parameters, ranks)
    adam = PRECISIONS[training.precision].optimizer
    rest = sum(number / share for number, share in zip(others, ranks))
    return training.optimizer_bytes * owned + adam * rest


def _states(
    parameters: float, ranks: int, stage: int, weight: float, gradient: float, optimizer: float
) -> tuple[float, float, float]:
    """Bytes of weights, gradients and optimizer state on one of the ``ranks`` that share them."""
    return (
        weight * parameters / (ranks if stage >= 3 else 1),
        gradient * parameters / (ranks if stage >= 2 else 1),
        optimizer * parameters / (ranks if stage >= 1 else 1),
    )


def _gathered(model: Model, split: Split, training: Training, layer: LayerKind) -> float:
    """Bytes of the weights of the layer that ZeRO-3 gathers for use, beyond the rank's own
    shard."""
    weight = PRECISIONS[training.precision].weight
    parameters = on_one_rank(layer_parameters(model, layer), split)
    shares = [1 - 1 / ranks for ranks in training.ranks_sharing(split)]
    if training.offload == "parameters":
        shares = [1.0, 1.0]
    experts = parameters.pop("experts", 0)
    return weight * (sum(parameters.values()) * shares[0] + experts * shares[1])


def _working(model: Model, split: Split, training: Training, parameters: StageParameters) -> float:
    """The largest temporary memory of the backward pass, beyond the logits counted already.

    It is either, at the loss, a second copy of the logits in the format of activations; or, for the
    output layer or the widest matrix product of a layer, the gradients of its output and of its
    weights before they are added to the sum over micro-batches.
    """
    tokens, number = training.tokens(model, split), training.element
    gradient = PRECISIONS[training.precision].gradient
    if training.is_adapted:  # no weight has a gradient; some are made wide for their product
        gradient = 2 if training.frozen in ROUNDED else 0
    layers = [kind for kind, number in zip(model.kinds, parameters.kinds) if number]
    widest = max((_widest(kind) for kind in layers), default=0) / split.tp
    needed = [widest * (number * tokens + gradient * model.hidden)]
    counted = 0.0
    if parameters.is_last:
        vocabulary = padded_vocabulary(model.vocabulary, split.tp) / split.tp
        counted = LOGIT[training.engine != "megatron"] * tokens * vocabulary
        needed += [(4 + number) * tokens * vocabulary]
        needed += [vocabulary * (number * tokens + gradient * model.hidden)]
    return max(0.0, max(needed) - counted)


def _widest(layer: LayerKind) -> int:
    """The widest product of a layer's MLPs and shared experts, in elements of a token."""
    parts = layer.feed_forwards
    widths = ((2 if part.gated else 1) * part.dense_width for part in parts)
    return max(widths, default=0)


def exchange_buffers(model: Model, split: Split, training: Training) -> float:
    """Bytes of HybridEP's permanent buffers for tokens on their way to experts and back: room for
    all tokens of the ep group, as if every one came here, in 16 bits with a 32-bit weight per
    expert.

    Assumes one NVLink domain, where both directions share the buffers. DeepEP's chunks and the
    receive buffer of an all-to-all are small in comparison, and not counted.

    >>> from training.models import MODELS
    >>> split, how = Split(pp=4, dp=64, ep=64), Training(dispatcher="hybridep")
    >>> exchange_buffers(MODELS["deepseek-v3"].model, split, how) / 64 == 4096 * 15 * 1024
    True

    Source: deepseek-ai/DeepEP, branch hybrid-ep, csrc/hybrid_ep/hybrid_ep.cu,
    allocate_buffer_for_dispatch; its size by NVIDIA/Megatron-LM d98e8a6
    core/transformer/moe/fused_a2a.py, init_hybrid_ep_buffer.
    """
    if training.dispatcher != "hybridep" or split.ep == 1:
        return 0.0
    tokens = training.tokens(model, split) / split.tp * split.etp * split.ep
    return tokens * (2.0 * model.hidden + 4.0 * model.experts)


def layer_bytes(
    model: Model, split: Split, training: Training, layer: LayerKind, recompute: str = ""
) -> float:
    """Bytes of one layer's activations for one micro-batch. ``recompute`` names the recomputation;
    the default is that of ``training``."""
    kept = sum(layer_activations(model, split, training, layer, recompute=recompute).values())
    if training.is_adapted and (recompute or training.recompute) != "full":
        kept += adapter_activations(model, split, training, layer)
    return kept


def require_counted(model: Model, split: Split, training: Training) -> None:
    """Raises the errors of `memory_per_stage`, without counting bytes."""
    _require(model, split, training)
    split.placed(training.rule.placement).require_fits(model)
    micro_batches_in_flight(training.pipeline(split))


def _require(model: Model, split: Split, training: Training) -> None:
    """Raises LayoutError for optimizer instances that do not divide the ranks that replicate
    parameters, and for sequence parallelism that does not divide a context parallel rank's tokens.
    """
    ranks = split.dp * split.cp
    if ranks % training.instances:
        facts = {"instances": training.instances, "size": ranks, "group": "dp-cp"}
        raise refusal("instances-do-not-divide", "instances", {"instances": 1}, **facts)
    if training.sequence_parallel and model.sequence % (split.cp * split.tp):
        by = {"cp": split.cp, "tp": split.tp}
        error = not_a_multiple("sequence", model.sequence, by, maximum=MAX_SIZE)
        near = divisors_near("tp", split.tp, model.sequence // split.cp)
        raise error.replace(alternatives=[*near, *error.alternatives, {"sequence_parallel": 0}])
