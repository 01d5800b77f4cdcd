"""A layer: its mixers, its feed-forwards and its norms; and runs of equal layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .attention import Attention
from .feed_forward import MLP, Experts
from .latent import MLA, Compressed
from .mamba import Mamba1, Mamba2
from .states import KDA, GatedDelta, Lightning, ShortConv, StateMixer
from .weights import Weight

Mixer = Attention | MLA | Compressed | GatedDelta | KDA | Lightning | Mamba1 | Mamba2 | ShortConv


@dataclass(frozen=True)
class LayerKind:
    """One layer. Two mixers or feed-forwards are in parallel, or one behind the other (LongCat).

    Attributes:
        norms: vectors of the hidden size in the norms around mixers and feed-forwards; RMSNorm
            has one, LayerNorm two.
        others: weights beside mixers, feed-forwards and norms.
        called: names of linear layers that published code calls otherwise, with its own.

    >>> layer = LayerKind((Attention(32, 8, 128),), (MLP(14336, gated=True),))
    >>> layer.mixer, layer.ffn, sum(weight.elements for weight in layer.weights(4096))
    ('attention', 'mlp', 218112000)
    """

    mixers: tuple[Mixer, ...] = ()
    feed_forwards: tuple[MLP | Experts, ...] = ()
    norms: int = 2
    others: tuple[Weight, ...] = ()
    called: tuple[tuple[str, str], ...] = ()

    @cached_property
    def mixer(self) -> str:
        """The names of its mixers, with "+" between them; "none" without one."""
        return "+".join(mixer.name for mixer in self.mixers) or "none"

    @cached_property
    def ffn(self) -> str:
        return "+".join(part.name for part in self.feed_forwards) or "none"

    @cached_property
    def name(self) -> str:
        return f"{self.mixer}/{self.ffn}"

    @cached_property
    def moe(self) -> Experts | None:
        """Its experts; None without them."""
        return next((part for part in self.feed_forwards if isinstance(part, Experts)), None)

    @cached_property
    def has_experts(self) -> bool:
        return self.moe is not None

    @cached_property
    def blocks(self) -> int:
        """Parts of a layer in front of which tensor parallel ranks gather, and behind which they
        sum: mixers, and what of the feed-forwards every token meets."""
        return bool(self.mixers) + any(part.dense_width for part in self.feed_forwards)

    def exchanged(self, tp: int) -> tuple[int, int]:
        """Elements of a token that ranks of context parallelism exchange, of all ``tp`` ranks:
        queries with attention's outputs, and keys with values. A state is passed on whole."""
        widths = [mixer.widths(tp) for mixer in self.mixers if not isinstance(mixer, StateMixer)]
        queries = sum(query + output for query, _, _, output in widths)
        return queries, sum(keys + values for _, keys, values, _ in widths)

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Everything that it holds."""
        parts = (*self.mixers, *self.feed_forwards)
        norms = (Weight("norms", "norms", self.norms * hidden),) if self.norms else ()
        return (*(w for part in parts for w in part.weights(hidden)), *norms, *self.others)


@dataclass(frozen=True)
class LayerRun:
    """``number`` equal layers, one behind the other."""

    layer: LayerKind
    number: int = 1
