"""How many parameters a transformer has, kind by kind, in all and on one rank.

    attention  h*q + h*(k+v) + o*h            q, k, v, o: width of queries, keys, values, output
      (MLA)    down to the ranks, up again    arXiv:2405.04434 section 2.1
    mlp        2*h*f, gated 3*h*f             f: ffn; the same of an expert and a shared expert
    others     by training.kinds              mixers with a state, gates, embeddings per layer
    router     h*experts
    norms      2 a layer, 1 at the end        h each, twice that with a bias (LayerNorm)
    embedding  V*h                            output another V*h unless tied

For GPT that is L*(12*h*h + 13*h) + (V+s)*h and the last norm (arXiv:2104.04473, equation 2).

On one rank (NVIDIA/Megatron-LM d98e8a6, megatron/training/theoretical_memory_usage.py and the
layers themselves) matrices are cut over tp, experts dealt over ep and cut over etp; norms, the
router, biases that follow a sum over tp, and MLA's projections down are whole on every rank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from groups.kept import kept

from .kinds import LayerKind, Weight
from .kinds.weights import vector
from .model import Model
from .split import Held, Split, held_by_ranks, padded_vocabulary

KINDS = (
    *("embedding", "positions", "attention", "indexer", "linear_attention", "mamba"),
    *("mlp", "router", "experts", "shared_expert", "norms", "others", "mtp", "output", "towers"),
)
"""Kinds of parameters, in the order in which a token meets them."""

Count = tuple[int, int]
"""The parameters of one kind: those divided over the ranks of a group, and those on every rank."""


@kept
def _layer_counts(layer: LayerKind, hidden: int) -> tuple[tuple[str, Count], ...]:
    counts: dict[str, Count] = {}
    for weight in layer.weights(hidden):
        cut, whole = counts.get(weight.kind, (0, 0))
        size = weight.elements
        counts[weight.kind] = (cut + size, whole) if weight.is_cut else (cut, whole + size)
    return tuple(counts.items())


def layer_parameters(model: Model, layer: LayerKind) -> dict[str, Count]:
    """The parameters of one layer by kind.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> layer = layer_parameters(llama, llama.stack[0])
    >>> {kind: sum(count) for kind, count in layer.items()}
    {'attention': 41943040, 'mlp': 176160768, 'norms': 8192}
    """
    return dict(_layer_counts(layer, model.hidden))


def layer_total(model: Model, layer: LayerKind) -> int:
    """All parameters of one layer."""
    return sum(cut + whole for _, (cut, whole) in _layer_counts(layer, model.hidden))


@kept
def end_parameters(model: Model) -> Mapping[str, int]:
    """The parameters outside of layers but for embedding and output, by kind: positions, and the
    norm behind the last layer, unless the model says others."""
    by_kind = Counter[str]()
    for weight in end_weights(model):
        by_kind[weight.kind] += weight.elements
    return dict(by_kind)


def end_weights(model: Model) -> tuple[Weight, ...]:
    """The weights outside of layers but for embedding and output."""
    if model.ends is not None:
        return model.ends
    positions = model.sequence * model.hidden * model.learned_positions
    norm = _norm(model, model.hidden)
    return (*vector("positions", "positions", positions), *vector("final_norm", "norms", norm))


def parameters_by_kind(model: Model) -> dict[str, int]:
    """All parameters of a model, by kind; kinds that it does not have are left out.

    >>> from training.models import MODELS
    >>> counts = parameters_by_kind(MODELS["deepseek-v3"].model)
    >>> counts["experts"], round(sum(counts.values()) / 1e9, 2)
    (653908770816, 671.03)
    """
    by_kind = dict.fromkeys(KINDS, 0)
    for place, number in Counter(model.numbers).items():
        for kind, count in layer_parameters(model, model.kinds[place]).items():
            by_kind[kind] += number * sum(count)
    by_kind["embedding"] += model.vocabulary * model.hidden
    by_kind["output"] += 0 if model.tied else model.vocabulary * model.hidden
    for kind, number in end_parameters(model).items():
        by_kind[kind] += number
    by_kind["mtp"] = model.mtp_layers * sum(map(sum, mtp_parameters(model).values()))
    by_kind["towers"] = sum(tower.parameters for tower in model.towers)
    return {kind: number for kind, number in by_kind.items() if number}


@kept
def total_parameters(model: Model) -> int:
    """All parameters of a model."""
    return sum(parameters_by_kind(model).values())


def active_parameters(model: Model) -> int:
    """The parameters that one token uses: of the experts, only top_k.

    >>> from training.models import MODELS
    >>> round(active_parameters(MODELS["deepseek-v3"].model) / 1e9, 2)
    37.55
    """
    layers = Counter(model.numbers)
    layers[model.numbers[-1]] += model.mtp_layers
    idle = {place: _idle(model.kinds[place], model.hidden) for place in layers}
    unused = sum(number * idle[place] for place, number in layers.items())
    return total_parameters(model) - unused


def _idle(layer: LayerKind, hidden: int) -> int:
    """The parameters of a layer that one token does not meet."""
    if not layer.has_experts:
        return 0
    weights = layer.weights(hidden)
    return sum(int(w.rows * w.columns * (w.number - w.used)) for w in weights if w.number > 1)


@dataclass(frozen=True)
class StageParameters(Held):
    """The parameters on each rank of one pipeline stage, by kind."""

    by_kind: dict[str, int]

    @property
    def experts(self) -> int:
        """Parameters replicated over edp only."""
        return self.by_kind.get("experts", 0)

    @property
    def dense(self) -> int:
        """Parameters replicated over dp and cp."""
        return self.total - self.experts

    @property
    def total(self) -> int:
        return sum(self.by_kind.values())


def stage_parameters(model: Model, split: Split) -> tuple[StageParameters, ...]:
    """The parameters on one rank, for every pipeline stage.

    The stages (with DualPipe half of them) times the ranks that share each cut part sum to the
    model. Only the padding of the vocabulary, and the last stage's copies of the embedding for a
    tied output or for MTP modules, come in addition.

    >>> from training.models import MODELS
    >>> first, last = stage_parameters(MODELS["llama3-8b"].model, Split(tp=8, pp=2))
    >>> first.layers, first.by_kind["embedding"], last.by_kind["norms"]
    (16, 66060288, 135168)

    Errors: LayoutError if the split does not cut the model evenly.
    """
    split.require_fits(model)
    of_layer = [on_one_rank(layer_parameters(model, layer), split) for layer in model.kinds]
    alike: dict[tuple[object, ...], dict[str, int]] = {}  # most stages between the ends are
    by_stage = []
    for held in held_by_ranks(model, split.dealing):
        holds = held.holds
        if holds not in alike:
            alike[holds] = _of_stage(model, split, held, of_layer)
        by_stage.append(StageParameters(**vars(held), by_kind=alike[holds]))
    return tuple(by_stage)


def _of_stage(
    model: Model, split: Split, held: Held, of_layer: list[dict[str, int]]
) -> dict[str, int]:
    by_kind = _ends(model, split, held)
    for number, parameters in zip(held.kinds, of_layer):
        for kind, size in parameters.items() if number else ():
            by_kind[kind] = by_kind.get(kind, 0) + number * size
    return {kind: by_kind[kind] for kind in KINDS if by_kind.get(kind)}


def _ends(model: Model, split: Split, held: Held) -> dict[str, int]:
    """The parameters of stages outside of layers, on one rank: embedding, output, the norm behind
    the last layer, and MTP modules with a copy of the embedding."""
    by_kind: dict[str, int] = {}
    if not (held.is_first or held.is_last or held.has_norm or held.mtp):
        return by_kind
    table = padded_vocabulary(model.vocabulary, split.tp) // split.tp * model.hidden
    ends = end_parameters(model)
    if held.has_norm:
        by_kind = {kind: size for kind, size in ends.items() if kind != "positions"}
    if held.is_first:
        by_kind["embedding"] = table + by_kind.get("embedding", 0)
        by_kind["positions"] = ends.get("positions", 0)
        towers = (weight for tower in model.towers for weight in tower.weights)
        cut = (weight.elements // (split.tp if weight.is_cut else 1) for weight in towers)
        by_kind["towers"] = sum(cut)
    if held.is_last and not (model.tied and held.is_first):
        by_kind["output"] = table + by_kind.get("output", 0)
    if held.mtp:
        by_kind["embedding"] = by_kind.get("embedding", 0) if held.is_first else table
        modules = on_one_rank(mtp_parameters(model), split)
        by_kind["experts"] = held.mtp * modules.pop("experts", 0)
        by_kind["mtp"] = held.mtp * sum(modules.values())
    return by_kind


def on_one_rank(counts: dict[str, Count], split: Split) -> dict[str, int]:
    """Parameters on one rank: its share of the divided ones, and all of the replicated ones."""
    held = {kind: cut // split.tp + whole for kind, (cut, whole) in counts.items()}
    if "experts" in counts:
        cut, whole = counts["experts"]
        held["experts"] = (cut // split.etp + whole) // split.ep
    return held


def mtp_parameters(model: Model) -> dict[str, Count]:
    """Parameters of one multi-token prediction module: a layer like the last one unless the model
    says others, a projection, three norms.

    Source: arXiv:2412.19437 section 2.2. Embedding and output are those of the model.
    """
    counts: dict[str, Count] = {}
    for layer in model.mtp_stack or model.stack[-1:]:
        for kind, (cut, whole) in layer_parameters(model, layer).items():
            before = counts.get(kind, (0, 0))
            counts[kind] = before[0] + cut, before[1] + whole
    counts["mtp"] = 2 * model.hidden * model.hidden, 3 * _norm(model, model.hidden)
    return counts


def _norm(model: Model, width: int) -> int:
    return width * (1 if model.rms_norm else 2)
