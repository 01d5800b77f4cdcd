"""What mixers that keep something of every token have in common, and the choice of tokens.

indexer    which tokens a query reads    DeepSeek-V3.2 (arXiv:2512.02556 section 2.1)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .weights import Weight, linear, vector

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


class OfTokens:
    """A mixer without a state: what it keeps grows with the tokens, and it computes for each."""

    kind: ClassVar[str] = "attention"
    state_elements: ClassVar[int] = 0

    def request_elements(self, tp: int = 1) -> int:
        """Elements of a state that a request keeps on one of ``tp`` ranks, whatever its length."""
        return 0

    def constant_operations(self) -> float:
        """Operations of a token beside products with weights, whatever the context."""
        return 0.0

    def score_operations(self, context: float) -> float:
        """Operations of a token by which it chooses among keys that stand for several tokens."""
        return 0.0

    def context_operations(self) -> float:
        """Operations of a token for each that it attends to."""
        raise NotImplementedError

    def sequence_operations(self, tokens: int) -> float:
        """Operations beside products with weights of a whole sequence, as torch's counter finds
        them in transformers' code: every token with every token, windows or not."""
        return tokens * tokens * self.context_operations()


def mean_seen(reach: str, window: int, sequence: float) -> float:
    """Tokens that a token of a causal sequence attends to on average.

    >>> mean_seen("full", 0, 8), mean_seen("sliding", 4, 8), mean_seen("chunked", 4, 8)
    (4.0, 3.0, 2.0)
    >>> mean_seen("sliding", 4, 0)  # a prompt may be empty
    0.0
    """
    if not window or not sequence:
        return sequence / 2.0
    held = min(window, sequence)
    return held * (1.0 - held / (2.0 * sequence)) if reach == "sliding" else held / 2.0
