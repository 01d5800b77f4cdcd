"""The shape of a model: the numbers that determine its parameters and activations.

    one layer    mixers, then feed-forwards (training.kinds)
    all of it    embedding, layers, final norm, output; MTP layers behind the last one

What is uniform is said by sizes alone: attention (heads, kv_heads, head_dim, or the ranks and dims
of MLA), then one MLP (ffn), or in an MoE layer a router, experts and a shared expert. A model of
several kinds of layers says its ``runs``; what asks about a layer asks ``stack``, which both have.

What is 0 is taken from the fields beside it, and stands in the value from then on:

    kv_heads 0   heads           every head has its own keys and values
    head_dim 0   hidden / heads
    ffn 0        4 x hidden      as in GPT
    expert_ffn 0 ffn             where there are experts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

from groups.alternatives import divisors_near, not_a_multiple
from groups.inputs import Input, require_inputs
from groups.mesh import whole_number
from groups.stages.layers import MAX_LAYERS

from . import kinds
from .errors import refusal
from .kinds import MLP, Attention, Experts, LayerKind, LayerRun, Weight

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


class Tower(NamedTuple):
    """A part beside the language model, such as what encodes pictures, and its weights."""

    name: str
    weights: tuple[Weight, ...]

    @property
    def parameters(self) -> int:
        return sum(weight.elements for weight in self.weights)


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
    qk_norm: Annotated[bool, Input("norms of each head's queries and keys")] = False
    runs: tuple[LayerRun, ...] = ()
    mtp_stack: tuple[LayerKind, ...] = ()  # layers of one MTP module; none: one like the last
    ends: tuple[Weight, ...] | None = None  # outside of layers and tables; None: a final norm
    towers: tuple[Tower, ...] = ()
    everywhere: tuple[str, ...] = ()  # ends that vLLM makes on every stage

    def __post_init__(self) -> None:
        require_inputs(self)
        self._check_runs()
        self._fill_heads()
        if not self.ffn:
            object.__setattr__(self, "ffn", 4 * self.hidden)
        if self.experts and not self.expert_ffn:
            object.__setattr__(self, "expert_ffn", self.ffn)
        self._check_latents()
        self._check_experts()

    @classmethod
    def of_layers(
        cls,
        layers: Sequence[LayerKind],
        *,
        hidden: int,
        vocabulary: int,
        sequence: int,
        **more: object,
    ) -> Model:
        """The model of these layers; its sizes are those of the first attention, the widest MLP
        and the first experts.

        >>> from training.kinds import Mamba2
        >>> mamba = LayerKind((Mamba2(8, 64, 1, 128, 4, 512),), norms=1)
        >>> attention = LayerKind((Attention(4, 2, 64),), (MLP(1024),))
        >>> hybrid = Model.of_layers([mamba] * 3 + [attention], hidden=256, vocabulary=1000,
        ...                          sequence=64)
        >>> hybrid.layers, hybrid.heads, [layer.name for layer in hybrid.kinds]
        (4, 4, ['mamba2/none', 'attention/mlp'])
        """
        runs: list[LayerRun] = []
        for layer in layers:
            if runs and runs[-1].layer == layer:
                runs[-1] = LayerRun(layer, runs[-1].number + 1)
            else:
                runs.append(LayerRun(layer))
        sizes: dict[str, object] = {
            "heads": 1,
            "kv_heads": 1,
            "head_dim": hidden,
            "ffn": 4 * hidden,
        }
        sizes |= _sizes_of(layers)
        fixed = {"hidden": hidden, "vocabulary": vocabulary, "sequence": sequence}
        return cls(
            layers=len(layers),
            runs=tuple(runs),
            **{**sizes, **fixed, **more},  # type: ignore[arg-type]
        )

    @cached_property
    def stack(self) -> tuple[LayerKind, ...]:
        """Every layer, the first one first."""
        if self.runs:
            return tuple(run.layer for run in self.runs for _ in range(run.number))
        plain = self.dense_layers if self.experts else self.layers
        dense = (self._uniform(MLP(self.ffn, self.gated, self.biases == "all")),) * plain
        if plain == self.layers:
            return dense
        moe = Experts(
            *(self.experts, self.top_k, self.expert_ffn, self.gated, self.biases == "all"),
            shared=self.shared_expert_ffn,
        )
        return dense + (self._uniform(moe),) * (self.layers - plain)

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        """The different layers, in the order in which they first come."""
        each = {id(layer): layer for layer in self.stack}  # equal ones are mostly the same one
        return tuple(dict.fromkeys(each.values()))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The place in ``kinds`` of every layer."""
        if not self.runs:  # what is dense comes first
            plain = self.dense_layers if self.experts else self.layers
            return (0,) * plain + (len(self.kinds) - 1,) * (self.layers - plain)
        places = {layer: place for place, layer in enumerate(self.kinds)}
        return tuple(place for run in self.runs for place in [places[run.layer]] * run.number)

    def _uniform(self, feed_forward: MLP | Experts) -> LayerKind:
        """The layer that the sizes say, with this feed-forward."""
        vectors = 1 if self.rms_norm else 2
        mixer: Attention | kinds.MLA
        if self.is_mla:
            mixer = kinds.MLA(
                *(self.heads, self.kv_lora_rank, self.qk_nope_head_dim, self.qk_rope_head_dim),
                *(self.v_head_dim, self.q_lora_rank),
                norms=vectors,
                query_norm=self.qk_norm and not self.q_lora_rank,
            )
        else:
            norms = (vectors * self.head_dim * self.qk_norm,) * 2
            mixer = Attention(
                *(self.heads, self.kv_heads, self.head_dim, 0),
                *(self.biases != "none", self.biases == "all", *norms),
            )
        return LayerKind((mixer,), (feed_forward,), 2 * vectors)

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

    @cached_property
    def moe_layers(self) -> int:
        """The number of layers with experts."""
        return sum(layer.has_experts for layer in self.stack)

    def has_experts(self, layer: int) -> bool:
        """Whether this layer, counted from 0, has experts."""
        return self.stack[layer].has_experts

    def _check_runs(self) -> None:
        """Requires as many layers as the runs have."""
        if not self.runs:
            return
        layers = sum(run.number for run in self.runs)
        if layers != self.layers:
            facts = {"layers": self.layers, "held": layers}
            raise refusal("layers-of-runs", "layers", {"layers": layers}, **facts)

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
            least = 0 if self.runs else 1  # what a config.json does not say
            whole_number(self.top_k, "top_k", minimum=least, maximum=self.experts)
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


def _sizes_of(layers: Sequence[LayerKind]) -> dict[str, object]:
    """The fields of a model for its first attention, widest MLP and first experts."""
    sizes: dict[str, object] = {}
    mixers = [mixer for layer in layers for mixer in layer.mixers]
    parts = [part for layer in layers for part in layer.feed_forwards]
    attention = next((mixer for mixer in mixers if isinstance(mixer, Attention)), None)
    latent = next((mixer for mixer in mixers if isinstance(mixer, kinds.MLA)), None)
    if attention:
        names = ("heads", "kv_heads", "head_dim")
        sizes |= {name: getattr(attention, name) for name in names}
    elif latent:
        widths = (latent.q_lora_rank, latent.kv_lora_rank, latent.nope, latent.rope, latent.value)
        sizes |= {"heads": latent.heads, "kv_heads": latent.heads, "head_dim": 0}
        sizes |= dict(zip(MLA, widths))
    dense = max((part.width for part in parts if isinstance(part, MLP)), default=0)
    experts = next((part for part in parts if isinstance(part, Experts)), None)
    sizes["gated"] = any(part.gated for part in parts)
    if experts:
        sizes |= {"experts": experts.experts, "top_k": experts.top_k}
        sizes |= {"expert_ffn": experts.width, "shared_expert_ffn": experts.shared}
        dense = dense or experts.width
    if dense:
        sizes["ffn"] = dense
    return sizes
