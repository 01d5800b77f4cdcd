"""Attention that keeps a latent of every token.

    MLA          down to the ranks, up again    arXiv:2405.04434 section 2.1
    compressed   keys of several tokens         DeepSeek-V4

MLA's layer keeps kv_lora_rank + rope elements of a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .tokens import INDEX_BYTES, Indexer, OfTokens, mean_seen
from .weights import Weight, linear, products_of, vector


class Latent(OfTokens):
    """Attention whose keys and values are made of one latent for all heads, which every rank keeps
    whole: each head has its own keys then."""

    is_mla: ClassVar[bool] = True
    reused: ClassVar[bool] = False
    heads: int

    if TYPE_CHECKING:

        @property
        def head_dim(self) -> int: ...
        @property
        def values(self) -> int: ...

    @property
    def query_width(self) -> int:
        """Elements of the queries of all heads for one token."""
        return self.heads * self.head_dim

    @property
    def key_width(self) -> int:
        return self.query_width

    @property
    def value_width(self) -> int:
        return self.heads * self.values

    @property
    def output_width(self) -> int:
        """Elements of the input of the output projection for one token."""
        return self.heads * self.values

    def widths(self, tp: int) -> tuple[int, int, int, int]:
        """Elements of queries, keys, values and the output's input of one token."""
        return self.query_width, self.key_width, self.value_width, self.output_width

    def divided(self) -> dict[str, int]:
        """Sizes that tensor parallel ranks divide, by the field's name."""
        return {"heads": self.heads}


@dataclass(frozen=True)
class MLA(Latent):
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

    reach: ClassVar[str] = "full"
    window: ClassVar[int] = 0

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
    def latent(self) -> int:
        """Compressed elements of a token: queries, keys and values, positions."""
        return self.q_lora_rank + self.kv_lora_rank + self.rope

    @property
    def token_elements(self) -> int:
        return self.kv_lora_rank + self.rope

    def rank_token_bytes(self, tp: int, bytes: float = 2) -> float:
        return bytes * self.token_elements + (INDEX_BYTES if self.indexer else 0)

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

    def seen(self, context: float) -> float:
        return context

    def mean_seen(self, sequence: float) -> float:
        return sequence / 2.0


@dataclass(frozen=True)
class Compressed(Latent):
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

    reach: ClassVar[str] = "sliding"
    kv_heads: ClassVar[int] = 1

    @property
    def name(self) -> str:
        if not self.rate:
            return "sliding_latent"
        return "compressed_sparse" if self.indexer else "heavily_compressed"

    @property
    def values(self) -> int:
        return self.head_dim

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

    def products(self, hidden: int, tp: int) -> tuple[tuple[float, float, bool], ...]:
        return products_of(self.weights(hidden), tp)

    def context_operations(self) -> float:
        return 4.0 * self.heads * self.head_dim

    def seen(self, context: float) -> float:
        """Keys that a token attends to: of the window, and the compressed ones."""
        return min(context, self.window) + (context / self.rate if self.rate else 0.0)

    def score_operations(self, context: float) -> float:
        """Scores of the compressed keys by the indexer's heads."""
        if not (self.rate and self.indexer):
            return 0.0
        return 2.0 * self.indexer.heads * self.indexer.dim * (context / self.rate)

    def sequence_operations(self, tokens: int) -> float:
        keys = tokens + (tokens // self.rate if self.rate else 0)
        chosen = self.score_operations(tokens // self.rate * self.rate) if self.rate else 0.0
        return tokens * (keys * self.context_operations() + chosen)

    def mean_seen(self, sequence: float) -> float:
        beside = sequence / (2.0 * self.rate) if self.rate else 0.0
        return mean_seen("sliding", self.window, sequence) + beside


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
