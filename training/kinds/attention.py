"""Attention with heads: an output and an input projection, keys and values of every token.

h*(n*d + 2*g*d) + n*d*h    weights, n heads and g KV heads of d; a window or a chunk
2*g*d                      elements that a layer keeps of a token
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .tokens import Indexer, OfTokens, mean_seen
from .weights import Weight, linear, vector


@dataclass(frozen=True)
class Attention(OfTokens):
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

    is_mla: ClassVar[bool] = False
    latent: ClassVar[int] = 0

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

    def seen(self, context: float) -> float:
        """Tokens that a token with ``context`` before it attends to."""
        return min(context, self.window) if self.window else context

    def mean_seen(self, sequence: float) -> float:
        """The same on average over the tokens of a causal sequence."""
        return mean_seen(self.reach, self.window, sequence)
