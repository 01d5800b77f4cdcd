"""LoRA and QLoRA: how many parameters adapters add, and what a rank holds of them.

    an adapter   r*(in + out) beside a linear layer of in inputs and out outputs (arXiv:2106.09685)
    experts      gate and up are one matrix, with 2r; their router has one too, where peft converts
    on a rank    beside what it has of the layer: r*(in + out/tp) where ranks divide its outputs,
                 r*(in/tp + out) where its inputs; experts over etp and ep
    memory       frozen weights in their format, gradients and moments of adapters alone

Embedding, output, norms and router stay in 16 bits.

Sources: huggingface/peft 0.21.2 src/peft/tuners/lora; checked against its own count. How ranks
divide them: its tp_layer.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from groups.kept import kept
from groups.mesh import whole_number

from .errors import refusal
from .kinds import Attention, Compressed, GatedDelta, LayerKind, Weight
from .model import Model
from .parameters import (
    StageParameters,
    end_weights,
    layer_parameters,
    on_one_rank,
    parameters_by_kind,
)
from .recipe import ALL_LINEAR, FROZEN, MAX_RANK, PRECISIONS, Training
from .split import Split

LINEAR = ("attention", "indexer", "linear_attention", "mamba", "mlp", "shared_expert", "experts")
"""Kinds of parameters that are kept in the format of frozen weights."""

ROUNDED = ("nf4", "int8")
"""Formats of which a layer is made 16 bits wide for each product."""

ONE = Split()
"""A single rank."""

MLPS = ("gate_proj", "up_proj", "down_proj")
"""Linear layers of an MLP."""

EXPERTS = {"gate_up_proj": {"gate_proj", "up_proj"}, "down_proj": {"down_proj"}}
"""The names by which adapters of experts are asked for."""


class Widths(NamedTuple):
    """A linear layer on a rank: its outputs, its inputs, and of its adapter how many times the
    rank; is_expert: whether of an expert."""

    rows: float
    columns: float
    number: int
    is_expert: bool


class Adapters(NamedTuple):
    """Trainable parameters, of all layers; and of each kind of layer."""

    parameters: int
    by_kind: tuple[int, ...]


def adapters(model: Model, rank: int, targets: Iterable[str] = (ALL_LINEAR,)) -> Adapters:
    """The parameters of adapters of this rank on the targets, by the names of linear layers.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> adapters(llama, 16).parameters, adapters(llama, 16, ("q_proj", "v_proj")).parameters
    (41943040, 6815744)

    Errors: LayoutError for targets that the model does not have.
    """
    rank = whole_number(rank, "lora_rank", maximum=MAX_RANK)
    for kind in model.kinds:
        is_other = any(isinstance(mixer, Compressed) for mixer in kind.mixers)
        if is_other or (kind.moe is not None and kind.moe.zero):
            raise refusal("adapters-unknown", "lora_rank", {"lora_rank": 0}, name=kind.name)
    names = frozenset(targets)
    by_kind = tuple(sum(_of_layer(model, kind, rank, names, ONE)) for kind in model.kinds)
    total = sum(by_kind[place] for place in model.numbers) + _of_ends(model, rank, names)
    if not total:
        modules = (own for kind in model.kinds for own, _, _ in _modules(model, kind))
        known = sorted(frozenset().union(*modules))
        facts = {"targets": ", ".join(sorted(names)), "known": ", ".join(known)}
        raise refusal("no-such-targets", "lora_targets", {"lora_targets": ALL_LINEAR}, **facts)
    return Adapters(total, by_kind)


def _of_ends(model: Model, rank: int, names: frozenset[str]) -> int:
    if ALL_LINEAR not in names:
        return 0
    ends = (weight for weight in end_weights(model) if weight.product)
    return sum(rank * (weight.rows + weight.columns) for weight in ends)


def linears(model: Model, kind: LayerKind) -> Iterator[Weight]:
    """The linear layers of one layer; what published code fuses is one."""
    weights = [weight for weight in kind.weights(model.hidden) if weight.product]
    for weight in weights:
        is_router = weight.kind == "router" and weight.name != "shared_expert_gate"
        is_linear = is_router and kind.moe is not None and kind.moe.linear_router
        is_other = is_router or weight.kind == "experts"
        if is_other and not (_adapted(kind) or is_linear):
            continue
        yield weight


def _modules(model: Model, kind: LayerKind) -> list[tuple[set[str], Weight, int]]:
    """The names of each module, its shape, and how many inputs it has in all."""
    found: list[tuple[set[str], Weight, int]] = []
    fused = _fused(kind)
    for weight in linears(model, kind):
        if weight.name == "in_proj_qkvz" and _is_split(kind):
            found.append(({"in_proj_qkv", "in_proj_z"}, weight, 2 * weight.columns))
        elif weight.name == "in_proj_ba" and _is_split(kind):
            found.append(({"in_proj_b", "in_proj_a"}, weight, 2 * weight.columns))
        elif weight.name in fused and found and found[-1][1].kind == weight.kind:
            _, before, columns = found[-1]
            if before.name in ("q_proj", "k_proj", "gate_proj", "in_proj"):
                joined = before._replace(rows=before.rows + weight.rows, name=weight.name)
                joined = joined._replace(name="k_proj" if weight.name == "k_proj" else "fused")
                found[-1] = ({fused[weight.name]}, joined, columns)
                continue
            found.append(({weight.name}, weight, weight.columns))
        else:
            found.append(({weight.name}, weight, weight.columns))
    called = dict(kind.called)
    return [
        (
            own if weight.kind == "experts" else {called.get(name, name) for name in own},
            weight,
            size,
        )
        for own, weight, size in found
    ]


def _fused(kind: LayerKind) -> dict[str, str]:
    """Weights that are one module with the one before them, and its name."""
    fused = {"in_proj.BC": "in_proj"}
    if any(isinstance(mixer, Attention) and mixer.fused for mixer in kind.mixers):
        fused |= {"k_proj": "qkv_proj", "v_proj": "qkv_proj"}
    if any(part.fused for part in kind.feed_forwards):
        fused["up_proj"] = "gate_up_proj"
    return fused


def _is_split(kind: LayerKind) -> bool:
    return any(isinstance(mixer, GatedDelta) and mixer.split for mixer in kind.mixers)


def _adapted(kind: LayerKind) -> bool:
    """Whether peft puts adapters on experts, which are no linear layers in published code."""
    return kind.moe is not None and kind.moe.adapted


@kept
def _of_layer(
    model: Model, kind: LayerKind, rank: int, names: frozenset[str], split: Split
) -> tuple[int, int]:
    """Parameters of the adapters of one layer on a rank: beside experts, and beside the others."""
    experts, others = 0, 0
    for weight, columns, number in _chosen(model, kind, names):
        is_experts = weight.kind == "experts"
        ranks = (split.etp if is_experts else split.tp) if weight.is_cut else 1
        rows, inputs = (weight.rows // ranks, columns) if weight.into else (weight.rows, columns)
        if not weight.into:
            inputs = columns // ranks
        each = number * rank * (rows + inputs)
        if is_experts:
            experts += each * (weight.number // split.ep)
        else:
            others += each * weight.number
    return experts, others


def _chosen(
    model: Model, kind: LayerKind, names: frozenset[str]
) -> Iterator[tuple[Weight, int, int]]:
    """The layers with adapters: each with its inputs in all, and how many times the rank it has."""
    is_all = ALL_LINEAR in names
    converts = is_all and any(map(_adapted, model.kinds))
    for own, weight, columns in _modules(model, kind):
        is_experts = weight.kind == "experts"
        if converts and weight.kind in ("mlp", "shared_expert") and weight.name in MLPS:
            continue  # peft takes their names for those of the experts
        if is_all or own & names or (is_experts and EXPERTS[weight.name] & names):
            yield weight, columns, 2 if weight.name == "gate_up_proj" and is_experts else 1


# -- on a rank -----------------------------------------------------------------------------------


class LayerAdapted(NamedTuple):
    """A layer on one rank: parameters of adapters, of what is no expert and of experts, and bytes
    of the frozen weights of both."""

    trained: tuple[float, float]
    frozen: tuple[float, float]


@kept
def layer_adapted(
    model: Model, split: Split, rank: int, names: frozenset[str], frozen: str, kind: LayerKind
) -> LayerAdapted:
    """One layer of a rank with adapters."""
    experts, others = _of_layer(model, kind, rank, names, split)
    held = on_one_rank(layer_parameters(model, kind), split)
    return LayerAdapted((others, experts), frozen_bytes(held, frozen))


def frozen_bytes(by_kind: Mapping[str, int], frozen: str) -> tuple[float, float]:
    """Bytes of frozen weights, of what is no expert and of experts.

    >>> frozen_bytes({"attention": 100, "experts": 1000, "norms": 10}, "int8")
    (120.0, 1000.0)
    """
    each = FROZEN[frozen]
    sizes = {kind: n * (each if kind in LINEAR else 2.0) for kind, n in by_kind.items()}
    experts = sizes.pop("experts", 0.0)
    return float(sum(sizes.values())), experts


def stage_adapted(
    model: Model, split: Split, training: Training, stage: StageParameters
) -> LayerAdapted:
    """The same of all that a rank of a pipeline stage holds.

    >>> from training.models import MODELS
    >>> from training.parameters import stage_parameters
    >>> llama, lora = MODELS["llama3-70b"].model, Training(lora_rank=16, frozen="nf4")
    >>> (stage,) = stage_parameters(llama, Split(tp=8))
    >>> trained, frozen = stage_adapted(llama, Split(tp=8), lora, stage)
    >>> trained[0], round(frozen[0] / 2**30, 2)
    (90112000.0, 4.61)

    Errors: as of `adapters`.
    """
    adapters(model, training.lora_rank, training.targets)
    how = (training.lora_rank, training.targets, training.frozen)
    layers = [layer_adapted(model, split, *how, kind) for kind in model.kinds]
    trained = [
        sum(number * layer.trained[which] for number, layer in zip(stage.kinds, layers))
        for which in (0, 1)
    ]
    if stage.is_first:
        trained[0] += _of_ends(model, training.lora_rank, training.targets)
    return LayerAdapted(
        (float(trained[0]), float(trained[1])), frozen_bytes(stage.by_kind, training.frozen)
    )


def adapter_widths(model: Model, split: Split, training: Training, kind: LayerKind) -> list[Widths]:
    """Outputs and inputs of each layer with an adapter on a rank, and how many times the rank its
    adapter has; of one expert."""
    found = []
    for weight, columns, number in _chosen(model, kind, training.targets):
        is_experts = weight.kind == "experts"
        ranks = (split.etp if is_experts else split.tp) if weight.is_cut else 1
        rows, inputs = (ranks, 1) if weight.into else (1, ranks)
        found.append(Widths(weight.rows / rows, columns / inputs, number, is_experts))
    return found


def adapter_facts(
    model: Model, rank: int, targets: Iterable[str] = (ALL_LINEAR,)
) -> dict[str, object]:
    """What adapters add to a whole model, and what they save: bytes of all states, in 16 bits and
    with frozen weights of 4, and of the gradients that data parallel ranks sum.

    Errors: as of `adapters`.
    """
    added = adapters(model, rank, targets).parameters
    precision = PRECISIONS[Training().precision]
    by_kind = parameters_by_kind(model)
    frozen = {
        name: sum(
            size * (FROZEN[name] if kind in LINEAR else 2.0) for kind, size in by_kind.items()
        )
        for name in ("bf16", "nf4")
    }
    states = (precision.weight + precision.gradient + precision.optimizer) * added
    return {
        "rank": rank,
        "targets": [*targets],
        "parameters": added,
        "frozen_bytes": frozen,
        "state_bytes": states,
        "gradient_bytes": precision.gradient * added,
        "full_gradient_bytes": precision.gradient * sum(by_kind.values()),
    }
