"""The shape of a transformer: the numbers that determine its parameters and activations.

    one layer    attention (heads, kv_heads, head_dim, or the ranks and dims of MLA)
                 then one MLP (ffn), or in an MoE layer a router, experts and a shared expert
    all of it    embedding, layers, final norm, output; MTP layers behind the last one

What is 0 is taken from the fields beside it, and stands in the value from then on:

    kv_heads 0   heads           every head has its own keys and values
    head_dim 0   hidden / heads
    ffn 0        4 x hidden      as in GPT
    expert_ffn 0 ffn             where there are experts
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from groups.alternatives import divisors_near, not_a_multiple
from groups.inputs import Input, require_inputs
from groups.mesh import whole_number
from groups.stages.layers import MAX_LAYERS

from .errors import refusal

MAX_SIZE = 100_000_000
"""The largest width, sequence or vocabulary of a model."""

BIASES = ("none", "qkv", "all")
"""Which linear layers add a bias: none, only queries, keys and values (Qwen2), all (GPT)."""

MLA = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
"""The fields of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1)."""

ROUTER_GROUPS = ("router_groups", "router_group_top_k")
"""Groups of experts, and of how many of them a token's experts are (Megatron's
--moe-router-num-groups and --moe-router-group-topk; arXiv:2412.19437 section 2.1.2)."""

NEEDED = ("layers", "hidden", "heads", "vocabulary", "sequence")
"""Sizes that have no default."""


def _size(means: str, maths: tuple[str, ...] = ()) -> Input:
    """A size where 0 means that the model has none, or that it follows from other sizes."""
    return Input(means, least=0, most=MAX_SIZE, maths=maths)


@dataclass(frozen=True)
class Model:
    """The checked shape of a transformer. Sizes count elements; the sequence length counts tokens.

    >>> llama = Model(layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated=True,
    ...               rms_norm=True, vocabulary=128256, sequence=8192)
    >>> llama.head_dim, llama.query_width, llama.key_width, llama.is_mla, llama.moe_layers
    (128, 4096, 1024, False, 0)
    >>> Model(layers=2, hidden=100, heads=3, vocabulary=1000, sequence=64)
    Traceback (most recent call last):
    groups.errors.LayoutError: hidden 100 is not a multiple of heads 3; try hidden 99 or hidden 102

    Errors: LayoutError about the field that is no whole number in range, or does not go with
    another one.
    """

    layers: Annotated[int, Input("transformer layers", most=MAX_LAYERS)]
    hidden: Annotated[int, Input("hidden size", most=MAX_SIZE)]
    heads: Annotated[int, Input("attention heads", most=MAX_SIZE)]
    vocabulary: Annotated[int, Input("words of the vocabulary", most=MAX_SIZE)]
    sequence: Annotated[int, Input("tokens of a sample", most=MAX_SIZE)]
    kv_heads: Annotated[int, _size("heads of keys and values")] = 0
    head_dim: Annotated[int, _size("width of a head")] = 0
    ffn: Annotated[int, _size("width of the MLP between its matrices")] = 0
    gated: Annotated[bool, Input("SwiGLU: three matrices instead of two")] = False
    tied: Annotated[bool, Input("whether the output uses the embedding's matrix")] = False
    rms_norm: Annotated[bool, Input("one vector a norm instead of two")] = False
    learned_positions: Annotated[bool, Input("a vector for each place of the sequence")] = False
    biases: Annotated[str, Input("linear layers that add a bias", choices=BIASES)] = "none"
    experts: Annotated[int, _size("experts of an MoE layer", maths=("num_experts",))] = 0
    top_k: Annotated[int, _size("experts that a token goes to")] = 0
    expert_ffn: Annotated[int, _size("width of an expert between its matrices")] = 0
    shared_expert_ffn: Annotated[int, _size("the same of the expert for all tokens")] = 0
    dense_layers: Annotated[
        int, Input("first layers of an MoE without experts", least=0, most=MAX_LAYERS)
    ] = 0
    router_groups: Annotated[
        int, _size("groups of experts, of which a token goes to some only; 0: to any")
    ] = 0
    router_group_top_k: Annotated[int, _size("groups that a token goes to")] = 0
    q_lora_rank: Annotated[int, _size("width of MLA's compressed queries; 0: not compressed")] = 0
    kv_lora_rank: Annotated[int, _size("width of MLA's compressed keys and values; 0: no MLA")] = 0
    qk_nope_head_dim: Annotated[int, _size("MLA's width of a head without positions")] = 0
    qk_rope_head_dim: Annotated[int, _size("MLA's width of a head with positions")] = 0
    v_head_dim: Annotated[int, _size("MLA's width of a head's values")] = 0
    # arXiv:2412.19437, section 2.2
    mtp_layers: Annotated[
        int, Input("modules of multi-token prediction", least=0, most=MAX_LAYERS)
    ] = 0

    def __post_init__(self) -> None:
        require_inputs(self)
        self._fill_heads()
        if not self.ffn:
            object.__setattr__(self, "ffn", 4 * self.hidden)
        if self.experts and not self.expert_ffn:
            object.__setattr__(self, "expert_ffn", self.ffn)
        self._check_latents()
        self._check_experts()

    @property
    def is_mla(self) -> bool:
        """Whether keys and values are compressed (multi-head latent attention)."""
        return self.kv_lora_rank > 0

    @property
    def query_width(self) -> int:
        """Elements of the queries of all heads for one token."""
        return self.heads * (self.qk_head_dim if self.is_mla else self.head_dim)

    @property
    def key_width(self) -> int:
        """Elements of the keys of all heads for one token, as attention uses them."""
        return self.heads * self.qk_head_dim if self.is_mla else self.kv_heads * self.head_dim

    @property
    def value_width(self) -> int:
        """Elements of the values of all heads for one token."""
        return self.heads * self.v_head_dim if self.is_mla else self.kv_heads * self.head_dim

    @property
    def attention_width(self) -> int:
        """Elements of the input of attention's output projection for one token."""
        return self.heads * (self.v_head_dim if self.is_mla else self.head_dim)

    @property
    def qk_head_dim(self) -> int:
        """Elements of one head's query or key in MLA, without plus with rotary positions."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def moe_layers(self) -> int:
        """The number of layers with experts."""
        return self.layers - self.dense_layers if self.experts else 0

    def has_experts(self, layer: int) -> bool:
        """Whether this layer, counted from 0, has experts instead of one MLP."""
        return self.experts > 0 and layer >= self.dense_layers

    def _fill_heads(self) -> None:
        """Sets kv_heads and head_dim from the other sizes where they are 0."""
        if not self.kv_heads:
            object.__setattr__(self, "kv_heads", self.heads)
        if self.heads % self.kv_heads:
            by = {"kv_heads": self.kv_heads}
            error = not_a_multiple("heads", self.heads, by, maximum=MAX_SIZE)
            fixes = divisors_near("kv_heads", self.kv_heads, self.heads)
            raise error.replace(control="kv_heads", alternatives=fixes)
        if self.head_dim or self.is_mla:
            return
        if self.hidden % self.heads:
            raise not_a_multiple("hidden", self.hidden, {"heads": self.heads}, maximum=MAX_SIZE)
        object.__setattr__(self, "head_dim", self.hidden // self.heads)

    def _check_latents(self) -> None:
        needed = [name for name in MLA if name not in ("q_lora_rank", "kv_lora_rank")]
        latents = [name for name in MLA if getattr(self, name)]
        missing = [name for name in ("kv_lora_rank", *needed) if not getattr(self, name)]
        if latents and missing:
            raise refusal("mla-incomplete", missing[0], given=latents[0], missing=missing[0])

    def _check_experts(self) -> None:
        names = ("top_k", "expert_ffn", "shared_expert_ffn", "dense_layers", *ROUTER_GROUPS)
        for name in names:
            if getattr(self, name) and not self.experts:
                raise refusal("no-experts", name, {name: 0}, value=getattr(self, name))
        if self.experts:
            whole_number(self.top_k, "top_k", maximum=self.experts)
            whole_number(self.dense_layers, "dense_layers", minimum=0, maximum=self.layers)
            self._check_groups()

    def _check_groups(self) -> None:
        """Requires router groups of equal size; the chosen ones must have enough experts for a
        token."""
        groups, chosen = self.router_groups, self.router_group_top_k
        if not (groups or chosen):
            return
        whole_number(groups, "router_groups", maximum=self.experts)
        if self.experts % groups:
            fixes = divisors_near("router_groups", groups, self.experts)
            by = {"router_groups": groups}
            error = not_a_multiple("experts", self.experts, by, maximum=MAX_SIZE)
            raise error.replace(control="router_groups", alternatives=fixes)
        least = -(-self.top_k * groups // self.experts)
        whole_number(chosen, "router_group_top_k", minimum=least, maximum=groups)
