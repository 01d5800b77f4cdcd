"""Mixers that keep something of every token: attention in its forms.

    attention    h*(n*d + 2*g*d) + n*d*h      n heads and g KV heads of d; a window or a chunk
    MLA          down to the ranks, up again  arXiv:2405.04434 section 2.1
    + indexer    which tokens a query reads   DeepSeek-V3.2 (arXiv:2512.02556 section 2.1)
    compressed   keys of several tokens       DeepSeek-V4

Each layer keeps of a token, in elements: 2*g*d, or of MLA kv_lora_rank + rope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .weights import Weight, linear, products_of, vector

INDEX_BYTES = 132
"""Of an indexer's key in vLLM: 128 numbers of 8 bits and a scale of 32 (0.33.0)."""


@dataclass(frozen=True)
class Indexer:
    """Scores of earlier tokens, by which attention reads only ``top_k`` of them.

    Its queries are projected from ``rank`` elements (MLA's compressed queries; 0: the hidden
    state), its one key from the hidden state. Every rank holds it whole.
    """

    heads: int
    dim: int
    top_k: int = 0
    rank: int = 0
    shared: bool = False  # the choice of an earlier layer is used; no weights of its own

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        if self.shared:
            return ()
        return (
            *linear("wq_b", "indexer", self.heads * self.dim, self.rank or hidden),
            *linear("wk", "indexer", self.dim, hidden),
            *vector("k_norm", "indexer", 2 * self.dim),
            *linear("weights_proj", "indexer", self.heads, hidden),
        )


@dataclass(frozen=True)
class Attention:
    """Attention with heads of their own or grouped; the reach is all tokens, a window or a chunk.

    Attributes:
        value_dim: width of a head's values; 0: ``head_dim``.
        bias, out_bias: of the projections of queries, keys and values, and of the output.
        q_norm, k_norm: elements of the norms of queries and keys; 0: none.
        gate: "" none, "element" one for each output of attention, "head" one a head.
        sinks: whether every head has a number that takes attention from the tokens.
        reach, window: "full", "sliding" or "chunked", and the tokens of the window or chunk.
        reused: whether keys and values are those of an earlier layer.
        one_projection: whether keys are used as values too.
        even: whether servers cut KV heads evenly, as those that they have no own code for.

    >>> llama = Attention(heads=32, kv_heads=8, head_dim=128)
    >>> sum(weight.elements for weight in llama.weights(4096)), llama.token_elements
    (41943040, 2048)
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    bias: bool = False
    out_bias: bool = False
    q_norm: int = 0
    k_norm: int = 0
    gate: str = ""
    sinks: bool = False
    reach: str = "full"
    window: int = 0
    reused: bool = False
    one_projection: bool = False
    even: bool = False
    fused: bool = False  # queries, keys and values are one linear layer
    indexer: Indexer | None = None

    kind: ClassVar[str] = "attention"
    is_mla: ClassVar[bool] = False
    latent: ClassVar[int] = 0
    state_elements: ClassVar[int] = 0

    @property
    def name(self) -> str:
        if self.indexer:
            return "sparse_attention"
        return "attention" if self.reach == "full" else f"{self.reach}_attention"

    @property
    def values(self) -> int:
        """Width of a head's values."""
        return self.value_dim or self.head_dim

    @property
    def query_width(self) -> int:
        """Elements of the queries of all heads for one token."""
        return self.heads * self.head_dim

    @property
    def key_width(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def value_width(self) -> int:
        return self.kv_heads * self.values

    @property
    def output_width(self) -> int:
        """Elements of the input of the output projection for one token."""
        return self.heads * self.values

    @property
    def token_elements(self) -> int:
        """Elements that the layer keeps of every token."""
        return 0 if self.reused else self.key_width + self.value_width

    def rank_token_bytes(self, tp: int, bytes: float = 2) -> float:
        """Bytes of a token on one of ``tp`` ranks of a server."""
        return bytes * self.token_elements / min(tp, self.kv_heads)

    def request_elements(self, tp: int = 1) -> int:
        """Elements of a state that a request keeps on one of ``tp`` ranks, whatever its length."""
        return 0

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind, gates = self.kind, {"element": self.output_width, "head": self.heads}
        queries = self.query_width + gates.get(self.gate, 0)
        into = [("q_proj", queries, "tp", 0)]
        if not self.reused:
            cut = "tp" if self.even else "kv"
            into += [("k_proj", self.key_width, cut, self.kv_heads)]
            if not self.one_projection:
                into += [("v_proj", self.value_width, cut, self.kv_heads)]
        return (
            *(
                weight
                for name, rows, cut, units in into
                for weight in linear(name, kind, rows, hidden, cut, bias=self.bias, units=units)
            ),
            *linear(
                *("o_proj", kind, hidden, self.output_width, "tp"), bias=self.out_bias, into=False
            ),
            *vector("q_norm", kind, self.q_norm),
            *vector("k_norm", kind, 0 if self.reused else self.k_norm),
            *vector("sinks", kind, self.heads * self.sinks, "tp"),
            *(self.indexer.weights(hidden) if self.indexer else ()),
        )

    def widths(self, tp: int) -> tuple[int, int, int, int]:
        """Elements of queries, keys, values and the output's input of one token, of all of ``tp``
        ranks, which compute with one KV head each at least."""
        copies = max(1, tp // self.kv_heads)
        keys, values = copies * self.key_width, copies * self.value_width
        return self.query_width, keys, values, self.output_width

    def divided(self) -> dict[str, int]:
        """Sizes that tensor parallel ranks divide, by the field's name."""
        return {"heads": self.heads, "kv_heads": self.kv_heads}

    def products(self, hidden: int, tp: int) -> tuple[tuple[float, float, bool], ...]:
        """Widths of each matrix product of a token on one of ``tp`` ranks, out and in, and whether
        it lifts a latent."""
        queries = self.query_width + (self.output_width if self.gate == "element" else 0)
        into = queries + (0 if self.reused else self.key_width + self.value_width)
        return (into / tp, hidden, False), (hidden, self.output_width / tp, False)

    def context_operations(self) -> float:
        """Operations of a token for each token that it attends to (arXiv:2104.04473, appendix)."""
        return 2.0 * self.heads * (self.head_dim + self.values)

    def constant_operations(self) -> float:
        """Operations of a token beside products with weights, whatever the context."""
        return 0.0

    def seen(self, context: float) -> float:
        """Tokens that a token with ``context`` before it attends to."""
        return min(context, self.window) if self.window else context

    def mean_seen(self, sequence: float) -> float:
        """The same on average over the tokens of a causal sequence."""
        return mean_seen(self.reach, self.window, sequence)


@dataclass(frozen=True)
class MLA:
    """Multi-head latent attention: keys and values are kept as one latent for all heads.

    Projections down, their norms and an indexer are whole on every rank; projections up and the
    output are divided.

    >>> deepseek = MLA(heads=128, q_lora_rank=1536, kv_lora_rank=512, nope=128, rope=64, value=128)
    >>> deepseek.token_elements, sum(weight.elements for weight in deepseek.weights(7168))
    (576, 187107328)
    """

    heads: int
    kv_lora_rank: int
    nope: int
    rope: int
    value: int
    q_lora_rank: int = 0
    bias: bool = False
    indexer: Indexer | None = None
    norms: int = 1  # vectors of a norm: 1 RMSNorm, 2 LayerNorm
    query_norm: bool = False  # of the hidden state before queries that are not compressed

    kind: ClassVar[str] = "attention"
    is_mla: ClassVar[bool] = True
    state_elements: ClassVar[int] = 0
    reach: ClassVar[str] = "full"
    window: ClassVar[int] = 0
    reused: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "dsa" if self.indexer else "mla"

    @property
    def kv_heads(self) -> int:
        return self.heads

    @property
    def head_dim(self) -> int:
        """Elements of one head's query or key, without plus with rotary positions."""
        return self.nope + self.rope

    @property
    def values(self) -> int:
        return self.value

    @property
    def query_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def key_width(self) -> int:
        return self.query_width

    @property
    def value_width(self) -> int:
        return self.heads * self.value

    @property
    def output_width(self) -> int:
        return self.heads * self.value

    @property
    def latent(self) -> int:
        """Compressed elements of a token: queries, keys and values, positions."""
        return self.q_lora_rank + self.kv_lora_rank + self.rope

    @property
    def token_elements(self) -> int:
        return self.kv_lora_rank + self.rope

    def rank_token_bytes(self, tp: int, bytes: float = 2) -> float:
        return bytes * self.token_elements + (INDEX_BYTES if self.indexer else 0)

    def request_elements(self, tp: int = 1) -> int:
        """Elements of a state that a request keeps on one of ``tp`` ranks, whatever its length."""
        return 0

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind, queries = self.kind, self.query_width
        if self.q_lora_rank:
            down = (
                *linear("q_a_proj", kind, self.q_lora_rank, hidden, bias=self.bias),
                *vector("q_a_layernorm", kind, self.norms * self.q_lora_rank),
                *linear("q_b_proj", kind, queries, self.q_lora_rank, "tp"),
            )
        else:
            down = (
                *linear("q_proj", kind, queries, hidden, "tp"),
                *vector("q_norm", kind, self.norms * hidden * self.query_norm),
            )
        up = self.heads * (self.nope + self.value)
        return (
            *down,
            *linear("kv_a_proj_with_mqa", kind, self.token_elements, hidden, bias=self.bias),
            *vector("kv_a_layernorm", kind, self.norms * self.kv_lora_rank),
            *linear("kv_b_proj", kind, up, self.kv_lora_rank, "tp"),
            *linear(*("o_proj", kind, hidden, self.output_width, "tp"), bias=self.bias, into=False),
            *(self.indexer.weights(hidden) if self.indexer else ()),
        )

    def widths(self, tp: int) -> tuple[int, int, int, int]:
        return self.query_width, self.key_width, self.value_width, self.output_width

    def divided(self) -> dict[str, int]:
        return {"heads": self.heads}

    def products(self, hidden: int, tp: int) -> tuple[tuple[float, float, bool], ...]:
        lifted = self.heads * (self.nope + self.value) / tp
        queries = self.query_width / tp
        return (
            (lifted, self.kv_lora_rank, True),
            (queries, self.q_lora_rank, True),
            (self.kv_lora_rank + self.rope, hidden, False),
            (self.q_lora_rank or queries, hidden, False),
            (hidden, self.output_width / tp, False),
            *_rest(self.indexer, hidden),
        )

    def context_operations(self) -> float:
        own = 2.0 * self.heads * (self.head_dim + self.value)
        if self.indexer is None or self.indexer.shared:
            return own
        return own + 2.0 * self.indexer.heads * (self.indexer.dim + 1)

    def constant_operations(self) -> float:
        return 0.0

    def seen(self, context: float) -> float:
        return context

    def mean_seen(self, sequence: float) -> float:
        return sequence / 2.0


@dataclass(frozen=True)
class Compressed:
    """DeepSeek-V4's attention: one key, which is its value too, for a window of tokens, and beside
    it one for every ``rate`` tokens; 0: none.

    A compression by few tokens overlaps and has an indexer that chooses; one by many has neither.
    The output is projected in ``groups`` groups down to ``o_rank`` each, and then together.

    Source: huggingface/transformers 5.24.0 models/deepseek_v4/modeling_deepseek_v4.py.
    """

    heads: int
    head_dim: int
    q_rank: int
    groups: int
    o_rank: int
    window: int
    rate: int = 0
    indexer: Indexer | None = None

    kind: ClassVar[str] = "attention"
    is_mla: ClassVar[bool] = True
    reach: ClassVar[str] = "sliding"
    reused: ClassVar[bool] = False
    kv_heads: ClassVar[int] = 1
    state_elements: ClassVar[int] = 0

    @property
    def name(self) -> str:
        if not self.rate:
            return "sliding_latent"
        return "compressed_sparse" if self.indexer else "heavily_compressed"

    @property
    def values(self) -> int:
        return self.head_dim

    @property
    def query_width(self) -> int:
        return self.heads * self.head_dim

    key_width = value_width = output_width = query_width

    @property
    def latent(self) -> int:
        return self.q_rank + self.head_dim

    @property
    def token_elements(self) -> int:
        """Elements of one token while it is in the window."""
        return self.head_dim

    def rank_token_bytes(self, tp: int, bytes: float = 2) -> float:
        return bytes * (self.token_elements + self.compressed_elements)

    @property
    def compressed_elements(self) -> float:
        """Elements kept for ever, for each token."""
        dims = self.head_dim + (self.indexer.dim if self.indexer else 0)
        return dims / self.rate if self.rate else 0.0

    def request_elements(self, tp: int = 1) -> int:
        """Elements of a state that a request keeps on one of ``tp`` ranks, whatever its length."""
        return 0

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind, heads = self.kind, self.query_width
        return (
            *linear("q_a_proj", kind, self.q_rank, hidden),
            *vector("q_a_norm", kind, self.q_rank),
            *linear("q_b_proj", kind, heads, self.q_rank, "tp"),
            *linear("kv_proj", kind, self.head_dim, hidden),
            *vector("kv_norm", kind, self.head_dim),
            *linear("o_a_proj", kind, self.groups * self.o_rank, heads // self.groups, "tp"),
            *linear("o_b_proj", kind, hidden, self.groups * self.o_rank, "tp", into=False),
            *vector("sinks", kind, self.heads, "tp"),
            *self._compressor(hidden),
        )

    def _compressor(self, hidden: int) -> tuple[Weight, ...]:
        if not self.rate:
            return ()
        twice = 2 if self.indexer else 1
        own = _pooling(hidden, self.head_dim, twice, self.rate)
        if not self.indexer:
            return own
        index = self.indexer
        return (
            *own,
            *_pooling(hidden, index.dim, twice, self.rate),
            *linear("index_q_b_proj", "indexer", index.heads * index.dim, self.q_rank),
            *linear("weights_proj", "indexer", index.heads, hidden),
        )

    def widths(self, tp: int) -> tuple[int, int, int, int]:
        return self.query_width, self.key_width, self.value_width, self.output_width

    def divided(self) -> dict[str, int]:
        return {"heads": self.heads}

    def products(self, hidden: int, tp: int) -> tuple[tuple[float, float, bool], ...]:
        return products_of(self.weights(hidden), tp)

    def context_operations(self) -> float:
        return 4.0 * self.heads * self.head_dim

    def constant_operations(self) -> float:
        return 0.0

    def seen(self, context: float) -> float:
        """Keys that a token attends to: of the window, and the compressed ones."""
        return min(context, self.window) + (context / self.rate if self.rate else 0.0)

    def mean_seen(self, sequence: float) -> float:
        beside = sequence / (2.0 * self.rate) if self.rate else 0.0
        return mean_seen("sliding", self.window, sequence) + beside


def mean_seen(reach: str, window: int, sequence: float) -> float:
    """Tokens that a token of a causal sequence attends to on average.

    >>> mean_seen("full", 0, 8), mean_seen("sliding", 4, 8), mean_seen("chunked", 4, 8)
    (4.0, 3.0, 2.0)
    """
    if not window:
        return sequence / 2.0
    held = min(window, sequence)
    return held * (1.0 - held / (2.0 * sequence)) if reach == "sliding" else held / 2.0


def _rest(indexer: Indexer | None, hidden: int) -> tuple[tuple[float, float, bool], ...]:
    return products_of(indexer.weights(hidden), 1) if indexer else ()


def _pooling(hidden: int, dim: int, twice: int, rate: int) -> tuple[Weight, ...]:
    """The weights that make one key of ``rate`` tokens."""
    return (
        *linear("compressor.kv_proj", "indexer", twice * dim, hidden),
        *linear("compressor.gate_proj", "indexer", twice * dim, hidden),
        *vector("compressor.kv_norm", "indexer", dim),
        *vector("compressor.position_bias", "indexer", rate * twice * dim),
    )
