"""What the backward pass computes again: nothing, whole layers, or some modules of each layer.

A recomputation is a text: "none", "full", or modules with commas between them; "selective" is the
core of attention alone, what Megatron's selective granularity means where no module is named.

    module          computed again                                  kept for it
    core_attn       scores of attention                             queries, keys, values
    moe_act         activation function of the routed experts       its input
    layernorm       norms that are modules of their own: before     their inputs, which the
                    MLA and before experts, and with PyTorch's      residual connection needs
                    kernels every one; else one with the product
                    that reads it, which nothing computes again
    mla_up_proj     MLA's projections up, with their rotations      compressed queries and keys
    mlp             the MLP of layers without experts, its norm     its input
                    too where that is one with it
    moe             router, dispatch, experts, shared experts       its input
    shared_experts  shared experts                                  their input

Source: NVIDIA/Megatron-LM d98e8a6 megatron/core: recompute_modules of transformer/
transformer_config.py, and where each is checkpointed: transformer/attention.py, moe/experts.py,
transformer_layer.py, multi_latent_attention.py, moe/moe_layer.py; which norms are apart:
models/gpt/gpt_layer_specs.py. Beside them two that are no options of Megatron's, and that
DeepSeek-V3 was trained with (arXiv:2412.19437 sections 3.2.3 and 3.3.2):

    norms           every norm
    mlp_act         the activation function of every MLP; its input is kept as products have it

>>> recomputation("moe_act, core_attn"), recomputation("core_attn"), recomputation("partial")
('core_attn,moe_act', 'selective', 'core_attn,mla_up_proj,norms,mlp_act')
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from groups.errors import not_a_choice

from .model import Model

MODULES = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts")
"""Modules of Megatron."""

OWN = {"norms": "layernorm", "mlp_act": "moe_act"}
"""DeepSeek-V3's modules, each with the most similar one of Megatron."""

NAMED = {
    "none": (),
    "selective": ("core_attn",),
    "partial": ("core_attn", "mla_up_proj", *OWN),
}
"""Sets of modules with a name; "partial" is DeepSeek-V3's, in older links."""

WORDS = ("none", "selective", "full")
"""Recomputations that are a single word."""


def recomputation(value: object) -> str:
    """A recomputation in canonical form: modules in a fixed order, each once; case is ignored.

    Errors: LayoutError for an unknown or an empty name.
    """
    found = _written(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise not_a_choice("recompute", value, (*WORDS, *MODULES, *OWN))
    return found


@lru_cache(maxsize=256)
def _written(text: str) -> str | None:
    if text == "full":
        return text
    names = NAMED.get(text) or tuple(filter(None, text.replace(",", " ").split()))
    if text != "none" and not (names and {*names} <= {*MODULES, *OWN}):
        return None
    return written(() if text == "none" else names)


def written(modules: Iterable[str]) -> str:
    """The text of a set of modules.

    >>> written({"mlp", "core_attn"}), written(()), written(["core_attn"])
    ('core_attn,mlp', 'none', 'selective')
    """
    named = {*modules}
    ordered = tuple(name for name in (*MODULES, *OWN) if name in named)
    words = {names: word for word, names in NAMED.items() if word in WORDS}
    return words.get(ordered) or ",".join(ordered)


@lru_cache(maxsize=256)
def modules_of(recompute: str) -> frozenset[str]:
    """The modules of a recomputation; empty if whole layers are recomputed.

    >>> sorted(modules_of("core_attn,moe_act")), modules_of("full")
    (['core_attn', 'moe_act'], frozenset())
    """
    return frozenset(NAMED[recompute] if recompute in NAMED else recompute.split(",")) - {"full"}


def is_beside_exchange(recompute: str) -> bool:
    """Whether the all-to-all of experts can overlap with this recomputation: not if layers or MoE
    layers are recomputed (the same file, overlap_moe_expert_parallel_comm)."""
    return recompute != "full" and "moe" not in modules_of(recompute)


def modules_in(model: Model, modules: Iterable[str]) -> frozenset[str]:
    """The given modules without those that the model does not have.

    >>> gpt = Model(layers=2, hidden=64, heads=4, vocabulary=1000, sequence=64)
    >>> sorted(modules_in(gpt, ("moe", "mla_up_proj", "mlp", "layernorm")))
    ['layernorm', 'mlp']
    """
    has = {
        "mla_up_proj": any(mixer.is_mla for kind in model.kinds for mixer in kind.mixers),
        "mlp": any(kind.feed_forwards and not kind.has_experts for kind in model.kinds),
        "shared_experts": any(kind.moe.shared for kind in model.kinds if kind.moe),
        **dict.fromkeys(("moe_act", "moe"), model.moe_layers > 0),
    }
    return frozenset(name for name in modules if has.get(name, True))


def and_own(known: tuple[str, ...], own: str) -> tuple[str, ...]:
    """Recomputations, the mildest first, with another one inserted before that of whole layers.

    >>> and_own(("none", "full"), "selective")
    ('none', 'selective', 'full')
    """
    return known if own in known else (*known[:-1], own, known[-1])


def usual(model: Model) -> tuple[str, ...]:
    """Recomputations worth trying for a model, the mildest first: the named ones, and the modules
    with the least cost for the memory that they free (norms, activation functions and MLA's
    up-projections; the MLP if the model has neither MLA nor experts).

    >>> from .models import MODELS
    >>> [usual(MODELS[name].model)[2] for name in ("llama3-8b", "deepseek-v3")]
    ['core_attn,mlp', 'core_attn,moe_act,layernorm,mla_up_proj']
    """
    cheap = modules_in(model, ("moe_act", "layernorm", "mla_up_proj"))
    least = cheap if len(cheap) > 1 else modules_in(model, ("mlp",)) or cheap
    return ("none", "selective", written({"core_attn", *least}), "full")
