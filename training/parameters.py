"""How many parameters a transformer has, kind by kind, in all and on one rank.

    attention  h*q + h*(k+v) + o*h            q, k, v, o: width of queries, keys, values, output
      (MLA)    down to the ranks, up again    arXiv:2405.04434 section 2.1
    mlp        2*h*f, gated 3*h*f             f: ffn; the same of an expert and a shared expert
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
from dataclasses import dataclass
from functools import lru_cache

from .model import Model
from .split import Held, Split, held_by_ranks, padded_vocabulary

KINDS = (
    *("embedding", "positions", "attention", "mlp", "router", "experts", "shared_expert"),
    *("norms", "mtp", "output"),
)
"""Kinds of parameters, in the order in which a token meets them."""

Count = tuple[int, int]
"""The parameters of one kind: those divided over the ranks of a group, and those on every rank."""


def layer_parameters(model: Model, *, moe: bool) -> dict[str, Count]:
    """The parameters of one layer by kind, with experts or with one MLP.

    >>> from training.models import MODELS
    >>> layer = layer_parameters(MODELS["llama3-8b"].model, moe=False)
    >>> {kind: sum(count) for kind, count in layer.items()}
    {'attention': 41943040, 'norms': 8192, 'mlp': 176160768}
    """
    counts = {"attention": _attention(model), "norms": (0, 2 * _norm(model, model.hidden))}
    if not moe:
        return {**counts, "mlp": _mlp(model, model.ffn)}
    cut, whole = _mlp(model, model.expert_ffn)
    counts["router"] = 0, model.hidden * model.experts
    counts["experts"] = model.experts * cut, model.experts * whole
    if model.shared_expert_ffn:
        counts["shared_expert"] = _mlp(model, model.shared_expert_ffn)
    return counts


def parameters_by_kind(model: Model) -> dict[str, int]:
    """All parameters of a model, by kind; kinds that it does not have are left out.

    >>> from training.models import MODELS
    >>> counts = parameters_by_kind(MODELS["deepseek-v3"].model)
    >>> counts["experts"], round(sum(counts.values()) / 1e9, 2)
    (653908770816, 671.03)
    """
    by_kind = dict.fromkeys(KINDS, 0)
    layers = ((model.layers - model.moe_layers, False), (model.moe_layers, True))
    for number, moe in layers:
        for kind, count in layer_parameters(model, moe=moe).items() if number else ():
            by_kind[kind] += number * sum(count)
    by_kind["embedding"] = model.vocabulary * model.hidden
    by_kind["positions"] = model.sequence * model.hidden * model.learned_positions
    by_kind["output"] = 0 if model.tied else model.vocabulary * model.hidden
    by_kind["norms"] += _norm(model, model.hidden)
    by_kind["mtp"] = model.mtp_layers * sum(map(sum, mtp_parameters(model).values()))
    return {kind: number for kind, number in by_kind.items() if number}


@lru_cache(maxsize=64)
def total_parameters(model: Model) -> int:
    """All parameters of a model."""
    return sum(parameters_by_kind(model).values())


def active_parameters(model: Model) -> int:
    """The parameters that one token uses: of the experts, only top_k.

    >>> from training.models import MODELS
    >>> round(active_parameters(MODELS["deepseek-v3"].model) / 1e9, 2)
    37.55
    """
    if not model.experts:
        return total_parameters(model)
    idle = (model.experts - model.top_k) * sum(_mlp(model, model.expert_ffn))
    layers = model.moe_layers + model.mtp_layers * model.has_experts(model.layers - 1)
    return total_parameters(model) - layers * idle


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
    kinds = (False, True) if model.experts else (False,)
    of_layer = {moe: on_one_rank(layer_parameters(model, moe=moe), split) for moe in kinds}
    alike: dict[tuple[object, ...], dict[str, int]] = {}  # most stages between the ends are
    by_stage = []
    for held in held_by_ranks(model, split.dealing):
        holds = (held.layers, held.moe_layers, held.is_first, held.is_last)
        if holds not in alike:
            alike[holds] = _of_stage(model, split, held, of_layer)
        by_stage.append(StageParameters(**vars(held), by_kind=alike[holds]))
    return tuple(by_stage)


def _of_stage(
    model: Model, split: Split, held: Held, of_layer: dict[bool, dict[str, int]]
) -> dict[str, int]:
    by_kind = Counter(_ends(model, split, held))
    for number, moe in ((held.layers - held.moe_layers, False), (held.moe_layers, True)):
        for kind, parameters in of_layer[moe].items() if number else ():
            by_kind[kind] += number * parameters
    return {kind: by_kind[kind] for kind in KINDS if by_kind[kind]}


def _ends(model: Model, split: Split, held: Held) -> dict[str, int]:
    """The parameters of the first and the last stage outside of layers, on one rank."""
    table = padded_vocabulary(model.vocabulary, split.tp) // split.tp * model.hidden
    by_kind = {"embedding": 0, "output": 0, "experts": 0}
    if held.is_first:
        by_kind["embedding"] = table
        by_kind["positions"] = model.sequence * model.hidden * model.learned_positions
    if held.is_last:
        by_kind["norms"] = _norm(model, model.hidden)
        by_kind["output"] = 0 if model.tied and held.is_first else table
        if model.mtp_layers:
            by_kind["embedding"] = table
            modules = on_one_rank(mtp_parameters(model), split)
            by_kind["experts"] = model.mtp_layers * modules.pop("experts", 0)
            by_kind["mtp"] = model.mtp_layers * sum(modules.values())
    return by_kind


def on_one_rank(counts: dict[str, Count], split: Split) -> dict[str, int]:
    """Parameters on one rank: its share of the divided ones, and all of the replicated ones."""
    held = {kind: cut // split.tp + whole for kind, (cut, whole) in counts.items()}
    if "experts" in counts:
        cut, whole = counts["experts"]
        held["experts"] = (cut // split.etp + whole) // split.ep
    return held


def mtp_parameters(model: Model) -> dict[str, Count]:
    """Parameters of one multi-token prediction module: a layer like the last one, a projection,
    three norms.

    Source: arXiv:2412.19437 section 2.2. Embedding and output are those of the model.
    """
    counts = layer_parameters(model, moe=model.has_experts(model.layers - 1))
    counts["mtp"] = 2 * model.hidden * model.hidden, 3 * _norm(model, model.hidden)
    return counts


def _norm(model: Model, width: int) -> int:
    return width * (1 if model.rms_norm else 2)


def _mlp(model: Model, ffn: int) -> Count:
    """MLP: matrices into ffn (two if gated) and one out; the output bias is added after the sum
    over tp."""
    into = (2 if model.gated else 1) * ffn
    biased = model.biases == "all"
    return (into + ffn) * model.hidden + biased * into, biased * model.hidden


def _attention(model: Model) -> Count:
    """Attention; with MLA, down-projections (replicated, each with a norm), then up-projections to
    the heads (divided over tp)."""
    hidden = model.hidden
    cut, whole = model.attention_width * hidden, 0
    if not model.is_mla:
        into = model.query_width + model.key_width + model.value_width
        biased = model.biases != "none"
        return cut + hidden * into + biased * into, (model.biases == "all") * hidden
    cut += model.kv_lora_rank * model.heads * (model.qk_nope_head_dim + model.v_head_dim)
    whole += hidden * (model.kv_lora_rank + model.qk_rope_head_dim)
    whole += _norm(model, model.kv_lora_rank)
    cut += (model.q_lora_rank or hidden) * model.query_width
    whole += hidden * model.q_lora_rank + _norm(model, model.q_lora_rank)
    return cut, whole
