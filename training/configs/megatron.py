"""A model from Megatron's own names: the fields of its TransformerConfig, and a hybrid pattern.

A pattern has one letter for each layer, each one thing with one norm:

    M mamba   G gated DeltaNet   * attention   D sparse MLA   + MLA   - MLP   E experts
    | ends a stage, chunk v of rank p being stage v*pp + p    / starts a module of MTP

Source: NVIDIA/Megatron-LM d98e8a6 megatron/core/models/hybrid/hybrid_layer_allocation.py and
transformer/transformer_config.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groups.errors import quoted
from groups.stages.layout_strings import write_layout

from ..errors import refusal
from ..kinds import MLA, MLP, Attention, Experts, GatedDelta, Indexer, LayerKind, Mamba2, Mixer
from ..model import Model
from .fields import Fields
from .stacks import PATTERN

TYPE = "megatron"
"""The model_type of a configuration by these names."""

LEFT = frozenset(
    ("model_type", "num_layers", "hybrid_layer_pattern", "vocab_size", "seq_length", "pattern")
)
"""Fields that are read beside the layers'."""


def read_megatron(raw: Mapping[str, object]) -> Model:
    """The model of an object with Megatron's own names, beside "hybrid_layer_pattern",
    "vocab_size", "seq_length" and "tie_word_embeddings".

    >>> sizes = {"num_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 1000}
    >>> moe = {"num_moe_experts": 8, "moe_layer_freq": 2, "ffn_hidden_size": 256}
    >>> [layer.ffn for layer in read_megatron({"model_type": TYPE, **sizes, **moe}).stack]
    ['moe', 'mlp', 'moe', 'mlp']

    Errors: LayoutError for what is not understood, and as of `MegatronConfig`.
    """
    config = MegatronConfig(raw, str(raw.get("hybrid_layer_pattern") or ""))
    fields = config.fields
    model = config.model(
        fields.positive("vocab_size"),
        fields.size("seq_length", 4096) or 4096,
        tied=fields.flag("tie_word_embeddings", True),
        learned_positions=fields.text("position_embedding_type") == "learned_absolute",
    )
    own = raw.get("num_layers")
    if own is not None and own != model.layers:
        facts = {"field": "hybrid_layer_pattern", "count": model.layers, "layers": own}
        raise refusal("config-list-of-layers", "hybrid_layer_pattern", **facts)
    unknown = sorted(fields.unread() - LEFT - config.unused)
    if unknown:
        raise refusal("config-not-understood", unknown[0], names=", ".join(unknown))
    return model


class MegatronConfig:
    """The layers of a configuration by Megatron's names.

    >>> sizes = {"num_layers": 4, "hidden_size": 256, "num_attention_heads": 4}
    >>> config = MegatronConfig({**sizes, "mamba_num_groups": 1}, pattern="M*|M-")
    >>> model = config.model(vocabulary=1000, sequence=64)
    >>> [layer.name for layer in model.stack], config.spread
    (['mamba2/none', 'attention/none', 'mamba2/none', 'none/mlp'], 'Et*2|t*2L')

    Errors: LayoutError for a field that is no size, a letter that means no layer, and modules of
    MTP that differ.
    """

    def __init__(self, config: Mapping[str, object], pattern: str = "") -> None:
        self.fields, self.pattern = Fields(config), pattern
        self.hidden = self.fields.positive("hidden_size")
        rms = self.fields.text("normalization", "LayerNorm") == "RMSNorm"
        self.vectors = 1 if rms else 2
        self.biased = self.fields.flag("add_bias_linear", True)

    unused = frozenset(
        (
            *("ffn_hidden_size", "gated_linear_unit", "num_query_groups", "kv_channels"),
            *("qk_layernorm", "add_qkv_bias", "num_attention_heads", "add_bias_linear"),
            *("mamba_state_dim", "mamba_head_dim", "mamba_num_groups", "mamba_num_heads"),
            *("moe_router_topk", "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size"),
            *("num_moe_experts", "moe_layer_freq"),
        )
    )
    """Sizes of kinds of layers that a pattern may not have."""

    @property
    def spread(self) -> str:
        """The layers of each stage of a pattern that ends stages, as a pipeline layout; "equal"
        without."""
        own, *modules = self.pattern.split("/")
        if "|" not in own:
            return "equal"
        return write_layout([len(stage) for stage in own.split("|")], len(modules))

    def model(self, vocabulary: int, sequence: int, **more: object) -> Model:
        """The model; ``more`` are other fields of it."""
        own, *modules = self.pattern.split("/")
        if own:
            layers = [self._letter(letter) for letter in own.replace("|", "")]
        else:
            layers = self._layers()
        if len({*modules}) > 1:
            raise refusal("config-pattern", "pattern", value=quoted(modules[1]), known=modules[0])
        given = self.fields.size("mtp_num_layers", 0)
        return Model.of_layers(
            layers,
            hidden=self.hidden,
            vocabulary=vocabulary,
            sequence=sequence,
            rms_norm=self.vectors == 1,
            mtp_layers=len(modules) or given,
            mtp_stack=tuple(self._letter(letter) for letter in (modules or [""])[0]),
            **more,
        )

    def _layers(self) -> list[LayerKind]:
        """The layers of a model without a pattern: attention, or every so often, then an MLP or
        experts."""
        count = self.fields.positive("num_layers")
        every = self.fields.size("linear_attention_freq", 0)
        is_linear = self.fields.text("experimental_attention_variant") == "gated_delta_net"
        attention = self.attention()
        mixers = [attention] * count
        if is_linear:
            linear = self._delta()
            mixers = [attention if (at + 1) % (every or 1) == 0 else linear for at in range(count)]
        parts = [self.experts() if moe else self.mlp() for moe in self._routed(count)]
        return [
            LayerKind((mixer,), (part,), 2 * self.vectors) for mixer, part in zip(mixers, parts)
        ]

    def _routed(self, count: int) -> list[bool]:
        """Whether each layer has experts: by moe_layer_freq every k-th from the first on, or those
        of a list."""
        if not self.fields.size("num_moe_experts", 0):
            return [False] * count
        frequency = self.fields.value("moe_layer_freq")
        if isinstance(frequency, list):
            return [bool(one) for one in frequency]
        every = self.fields.positive("moe_layer_freq", 1)
        return [layer % every == 0 for layer in range(count)]

    def _letter(self, letter: str) -> LayerKind:
        if letter == "-":
            return LayerKind((), (self.mlp(),), self.vectors)
        if letter == "E":
            return LayerKind((), (self.experts(),), self.vectors)
        mixers: dict[str, Callable[[], Mixer]] = {
            "M": self._mamba,
            "G": self._delta,
            "*": self._heads,
            "D": self._latent,
            "+": self._latent,
        }
        if letter not in mixers:
            known = "".join(PATTERN)
            raise refusal("config-pattern", "pattern", value=quoted(letter), known=known)
        return LayerKind((mixers[letter](),), (), self.vectors)

    def attention(self) -> Mixer:
        return self._latent() if self.fields.has("kv_lora_rank") else self._heads()

    def _heads(self) -> Attention:
        heads = self.fields.positive("num_attention_heads")
        kv_heads = self.fields.positive("num_query_groups", heads)
        head_dim = self.fields.positive("kv_channels", self.hidden // heads)
        norm = self.vectors * head_dim * self.fields.flag("qk_layernorm")
        return Attention(
            *(heads, kv_heads, head_dim),
            bias=self.biased or self.fields.flag("add_qkv_bias"),
            out_bias=self.biased,
            q_norm=norm,
            k_norm=norm,
            gate="element" if self.fields.flag("attention_output_gate") else "",
        )

    def _latent(self) -> MLA:
        rank, indexer = self.fields.size("q_lora_rank", 0), None
        if self.fields.text("experimental_attention_variant") == "dsa":
            heads = self.fields.positive("dsa_indexer_n_heads")
            dim = self.fields.positive("dsa_indexer_head_dim")
            indexer = Indexer(heads, dim, self.fields.size("dsa_indexer_topk", 0), rank)
        return MLA(
            heads=self.fields.positive("num_attention_heads"),
            kv_lora_rank=self.fields.positive("kv_lora_rank"),
            nope=self.fields.positive("qk_head_dim"),
            rope=self.fields.positive("qk_pos_emb_head_dim"),
            value=self.fields.positive("v_head_dim"),
            q_lora_rank=rank,
            indexer=indexer,
            norms=self.vectors,
            query_norm=not rank and self.fields.flag("qk_layernorm"),
        )

    def _delta(self) -> GatedDelta:
        return GatedDelta(
            key_heads=self.fields.positive("linear_num_key_heads"),
            value_heads=self.fields.positive("linear_num_value_heads"),
            key_dim=self.fields.positive("linear_key_head_dim"),
            value_dim=self.fields.positive("linear_value_head_dim"),
            kernel=self.fields.positive("linear_conv_kernel_dim", 4),
        )

    def _mamba(self) -> Mamba2:
        dim = self.fields.positive("mamba_head_dim", 64)
        heads = self.fields.positive("mamba_num_heads", 2 * self.hidden // dim)
        groups = self.fields.positive("mamba_num_groups", 8)
        state = self.fields.positive("mamba_state_dim", 128)
        return Mamba2(heads, dim, groups, state, kernel=4, norm=heads * dim, chunk=128)

    def mlp(self) -> MLP:
        ffn = self.fields.size("ffn_hidden_size", 0) or 4 * self.hidden
        return MLP(ffn, self.fields.flag("gated_linear_unit"), self.biased)

    def experts(self) -> Experts:
        return Experts(
            experts=self.fields.positive("num_moe_experts"),
            top_k=self.fields.positive("moe_router_topk", 2),
            width=self.fields.size("moe_ffn_hidden_size", 0)
            or self.fields.positive("ffn_hidden_size"),
            gated=self.fields.flag("gated_linear_unit"),
            bias=self.biased,
            shared=self.fields.size("moe_shared_expert_intermediate_size", 0),
            shared_gate=self.fields.flag("moe_shared_expert_gate"),
        )
