"""LoRA and QLoRA: how many parameters adapters add, and what a rank holds of them.

    an adapter   r*(in + out) beside a linear layer of in inputs and out outputs (arXiv:2106.09685)
    experts      gate and up are one matrix, with 2r; their router has one too, where peft converts
    memory       frozen weights in their format, gradients and moments of adapters alone

4-bit NormalFloat has half a byte an element and a 32-bit scale for 64, themselves in 8 bits for 256
(arXiv:2305.14314 section 3): 0.516 bytes. Embedding, output, norms and router stay in 16 bits.

Sources: huggingface/peft 0.21.2 src/peft/tuners/lora; checked against its own count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from groups.mesh import whole_number

from .errors import refusal, require_choice
from .kinds import Attention, Compressed, GatedDelta, LayerKind, Weight
from .model import MAX_SIZE, Model
from .parameters import end_weights, parameters_by_kind, stage_parameters
from .recipe import PRECISIONS, Training
from .split import Split

ALL = "all-linear"
"""Every linear layer but the output."""

FROZEN = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "nf4": 0.5 + (1 + 4 / 256) / 64}
"""Bytes of a frozen element in a linear layer, by format."""

LINEAR = ("attention", "indexer", "linear_attention", "mamba", "mlp", "shared_expert", "experts")
"""Kinds of parameters that are kept in that format."""


MLPS = ("gate_proj", "up_proj", "down_proj")
"""Linear layers of an MLP."""

EXPERTS = {"gate_up_proj": {"gate_proj", "up_proj"}, "down_proj": {"down_proj"}}
"""The names by which adapters of experts are asked for."""


class Adapters(NamedTuple):
    """Trainable parameters, of all layers; and of each kind of layer."""

    parameters: int
    by_kind: tuple[int, ...]


def adapters(model: Model, rank: int, targets: Iterable[str] = (ALL,)) -> Adapters:
    """The parameters of adapters of this rank on the targets, by the names of linear layers.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> adapters(llama, 16).parameters, adapters(llama, 16, ("q_proj", "v_proj")).parameters
    (41943040, 6815744)

    Errors: LayoutError for targets that the model does not have.
    """
    rank = whole_number(rank, "rank", maximum=MAX_SIZE)
    for kind in model.kinds:
        is_other = any(isinstance(mixer, Compressed) for mixer in kind.mixers)
        if is_other or (kind.moe is not None and kind.moe.zero):
            raise refusal("adapters-unknown", "model", name=kind.name)
    names = {*targets}
    by_kind = tuple(_of_layer(model, kind, rank, names) for kind in model.kinds)
    total = sum(by_kind[place] for place in model.numbers)
    if ALL in names:
        ends = (weight for weight in end_weights(model) if weight.product)
        total += sum(rank * (weight.rows + weight.columns) for weight in ends)
    if not total:
        known = sorted({weight.name for kind in model.kinds for weight in linears(model, kind)})
        facts = {"targets": ", ".join(sorted(names)), "known": ", ".join(known)}
        raise refusal("no-such-targets", "targets", **facts)
    return Adapters(total, by_kind)


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
    return found


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


def _of_layer(model: Model, kind: LayerKind, rank: int, names: set[str]) -> int:
    found, is_all = 0, ALL in names
    converts = is_all and any(map(_adapted, model.kinds))
    for own, weight, columns in _modules(model, kind):
        is_experts = weight.kind == "experts"
        if converts and weight.kind in ("mlp", "shared_expert") and weight.name in MLPS:
            continue  # peft takes their names for those of the experts
        if is_all or own & names or (is_experts and EXPERTS[weight.name] & names):
            twice = 2 if weight.name == "gate_up_proj" and is_experts else 1
            found += twice * rank * (weight.rows + columns) * weight.number
    return found


def adapter_memory(
    model: Model,
    split: Split,
    training: Training,
    rank: int,
    targets: Iterable[str] = (ALL,),
    frozen: str = "bf16",
) -> list[dict[str, float]]:
    """Bytes of a rank's model states, for every pipeline stage: frozen weights, and of adapters the
    weights, gradients and moments, whole on every tensor parallel rank; ZeRO shares them.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-70b"].model
    >>> (stage,) = adapter_memory(llama, Split(tp=8), Training(), 16, frozen="nf4")
    >>> [round(stage[name] / 2**30, 2) for name in ("frozen", "weights", "gradients", "optimizer")]
    [4.61, 0.39, 0.77, 2.31]
    """
    require_choice("frozen", frozen, tuple(FROZEN))
    added, precision = adapters(model, rank, targets), PRECISIONS[training.precision]
    ranks = training.ranks_sharing(split)[0]
    found = []
    for stage in stage_parameters(model, split):
        kept = sum(
            size * (FROZEN[frozen] if kind in LINEAR else 2.0)
            for kind, size in stage.by_kind.items()
        )
        number = sum(map(int.__mul__, stage.kinds, added.by_kind))
        zero = training.zero
        found.append(
            {
                "frozen": kept / (ranks if zero == 3 else 1),
                "weights": precision.weight * number / (ranks if zero == 3 else 1),
                "gradients": precision.gradient * number / (ranks if zero >= 2 else 1),
                "optimizer": precision.optimizer * number / (ranks if zero >= 1 else 1),
                "parameters": float(number),
            }
        )
    return found


def adapter_facts(model: Model, rank: int, targets: Iterable[str] = (ALL,)) -> dict[str, object]:
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
