"""Mixers that keep a state of fixed size for each request: linear attention, Mamba, convolution.

    gated DeltaNet  h*(2K + 2V + 2nv) + conv k*(2K + V) + 2nv + norm + V*h    arXiv:2412.06464
    KDA             3*h*n*d + conv + low-rank gates                           arXiv:2510.26692
    lightning       h*3*n*d, an output gate and a norm                        arXiv:2401.04658
    convolution     three streams through a filter of k tokens                LFM2

K, V: keys and values of all heads; nv, n, H: heads; D: inner width; N: state; G: groups.

State of a request, in elements: GDN (k-1)*(2K+V) + nv*dv*dk; KDA (k-1)*3*n*d + n*d*d; lightning
n*d*d; Mamba-1 (k-1)*D + D*N; Mamba-2 (k-1)*(D+2GN) + H*d*N. Kept for the backward, in bytes of a
token, as fused kernels do (state-spaces/mamba split kernel; fla chunk_gated_delta_rule):
Mamba-2 2*(2D+2GN+H) + 2D + 4; gated DeltaNet 2*nv*(2dk+dv+64) + 14*nv.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .weights import Weight, linear, products_of, vector

CHUNK = 64
"""Tokens of a chunk, in which kernels of linear attention compute."""


class StateMixer:
    """What no mixer with a state has: heads whose keys every token leaves behind."""

    is_mla: ClassVar[bool] = False
    reach: ClassVar[str] = "state"
    window: ClassVar[int] = 0
    reused: ClassVar[bool] = False
    token_elements: ClassVar[int] = 0
    latent: ClassVar[int] = 0
    indexer: ClassVar[None] = None

    kernel: int
    """Tokens of the convolution."""

    @property
    def output_width(self) -> int:
        raise NotImplementedError

    @property
    def conv_width(self) -> int:
        """Elements of a token in the convolution."""
        raise NotImplementedError

    @property
    def state_elements(self) -> int:
        """Elements of the state of one request."""
        raise NotImplementedError

    def kept_bytes(self) -> float:
        """Bytes of a token that the backward pass needs, in 16 bits, beside input and output."""
        raise NotImplementedError

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        raise NotImplementedError

    def request_elements(self, tp: int = 1) -> int:
        """Elements of a state that a request keeps on one of ``tp`` ranks, whatever its length:
        the last columns of the convolution, and the state."""
        return self.conv_elements(tp) + self.state_elements // tp

    def rank_token_bytes(self, tp: int, bytes: float = 2) -> float:
        """Bytes of a token on one of ``tp`` ranks of a server."""
        return 0.0

    def conv_elements(self, tp: int = 1) -> int:
        """Elements of the convolution's columns on one of ``tp`` ranks."""
        return (self.kernel - 1) * self.conv_width // tp

    def products(self, hidden: int, tp: int) -> tuple[tuple[float, float, bool], ...]:
        """As of training.kinds.attention.Attention."""
        return products_of(self.weights(hidden), tp)

    def context_operations(self) -> float:
        return 0.0

    def score_operations(self, context: float) -> float:
        return 0.0

    def seen(self, context: float) -> float:
        return 0.0

    def mean_seen(self, sequence: float) -> float:
        return 0.0

    def constant_operations(self) -> float:
        """Operations of a token beside products with weights: its convolution and its state."""
        return 2.0 * self.kernel * self.conv_width + self.scan_operations()

    def scan_operations(self) -> float:
        """Operations of a token with the state."""
        raise NotImplementedError

    def sequence_operations(self, tokens: int) -> float:
        """Operations beside products with weights of a whole sequence, as torch's counter finds
        them in transformers' code: the convolution is padded with kernel - 1 tokens, and of the
        state only products of matrices count."""
        padded = tokens + self.kernel - 1
        return 2.0 * self.kernel * self.conv_width * padded + self.scan_products(tokens)

    def scan_products(self, tokens: int) -> float:
        """Operations of products of matrices with the states of a whole sequence."""
        return tokens * self.scan_operations()


@dataclass(frozen=True)
class GatedDelta(StateMixer):
    """Gated DeltaNet (Qwen3-Next), with one key head for several value heads.

    >>> sum(w.elements for w in GatedDelta(16, 32, 128, 128, 4).weights(2048))
    33718464
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    split: bool = False  # qkv, z, b and a are linear layers each

    name: ClassVar[str] = "gated_delta"
    kind: ClassVar[str] = "linear_attention"

    @property
    def keys(self) -> int:
        return self.key_heads * self.key_dim

    @property
    def output_width(self) -> int:
        return self.value_heads * self.value_dim

    @property
    def conv_width(self) -> int:
        return 2 * self.keys + self.output_width

    @property
    def state_elements(self) -> int:
        return self.value_heads * self.value_dim * self.key_dim

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind = self.kind
        return (
            *linear("in_proj_qkvz", kind, self.conv_width + self.output_width, hidden, "tp"),
            *linear("in_proj_ba", kind, 2 * self.value_heads, hidden, "tp"),
            Weight("conv1d", kind, self.conv_width, self.kernel, "tp"),
            *vector("A_log", kind, self.value_heads, "tp"),
            *vector("dt_bias", kind, self.value_heads, "tp"),
            *vector("norm", kind, self.value_dim),
            *linear("out_proj", kind, hidden, self.output_width, "tp", into=False),
        )

    def divided(self) -> dict[str, int]:
        return {"linear_key_heads": self.key_heads, "linear_value_heads": self.value_heads}

    def scan_operations(self) -> float:
        inside = 6.0 * self.key_dim * self.value_dim
        return self.value_heads * (inside + 6.0 * CHUNK * max(self.key_dim, self.value_dim))

    def kept_bytes(self) -> float:
        each = 2 * (2 * self.key_dim + self.value_dim + CHUNK) + 14
        return float(self.value_heads * each + 2 * 2 * self.output_width)


@dataclass(frozen=True)
class KDA(StateMixer):
    """Kimi Delta Attention: gated DeltaNet whose decay is a vector for each head."""

    heads: int
    dim: int
    kernel: int

    name: ClassVar[str] = "kda"
    kind: ClassVar[str] = "linear_attention"

    @property
    def output_width(self) -> int:
        return self.heads * self.dim

    @property
    def conv_width(self) -> int:
        return 3 * self.output_width

    @property
    def state_elements(self) -> int:
        return self.heads * self.dim * self.dim

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind, wide = self.kind, self.output_width
        names = ("q_proj", "k_proj", "v_proj")
        return (
            *(w for name in names for w in linear(name, kind, wide, hidden, "tp")),
            Weight("conv1d", kind, self.conv_width, self.kernel, "tp"),
            *linear("b_proj", kind, self.heads, hidden, "tp"),
            *vector("A_log", kind, self.heads, "tp"),
            *vector("dt_bias", kind, wide, "tp"),
            *linear("f_a_proj", kind, self.dim, hidden),
            *linear("f_b_proj", kind, wide, self.dim, "tp"),
            *linear("g_a_proj", kind, self.dim, hidden),
            *linear("g_b_proj", kind, wide, self.dim, "tp"),
            *vector("o_norm", kind, self.dim),
            *linear("o_proj", kind, hidden, wide, "tp", into=False),
        )

    def divided(self) -> dict[str, int]:
        return {"linear_heads": self.heads}

    def scan_operations(self) -> float:
        return self.heads * (6.0 * self.dim * self.dim + 6.0 * CHUNK * self.dim)

    def kept_bytes(self) -> float:
        each = 2 * (4 * self.dim + CHUNK) + 4 * self.dim + 14
        return float(self.heads * each + 2 * 2 * self.output_width)


@dataclass(frozen=True)
class Lightning(StateMixer):
    """Lightning attention (MiniMax-01): linear attention with a decay, gate and norm."""

    heads: int
    dim: int
    block: int = 256
    kernel: int = 1

    name: ClassVar[str] = "lightning"
    kind: ClassVar[str] = "linear_attention"
    conv_width: ClassVar[int] = 0

    @property
    def output_width(self) -> int:
        return self.heads * self.dim

    @property
    def state_elements(self) -> int:
        return self.heads * self.dim * self.dim

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind, wide = self.kind, self.output_width
        return (
            *linear("qkv_proj", kind, 3 * wide, hidden, "tp"),
            *linear("output_gate", kind, wide, hidden, "tp"),
            *vector("norm", kind, wide, "tp"),
            *linear("out_proj", kind, hidden, wide, "tp", into=False),
        )

    def divided(self) -> dict[str, int]:
        return {"linear_heads": self.heads}

    def scan_operations(self) -> float:
        return self.heads * (4.0 * self.block * self.dim + 4.0 * self.dim * self.dim)

    def kept_bytes(self) -> float:
        return float(2 * 5 * self.output_width)


@dataclass(frozen=True)
class ShortConv(StateMixer):
    """A gated convolution over ``kernel`` tokens (LFM2)."""

    width: int
    kernel: int
    bias: bool = False

    name: ClassVar[str] = "short_conv"
    kind: ClassVar[str] = "mamba"
    state_elements: ClassVar[int] = 0

    @property
    def output_width(self) -> int:
        return self.width

    @property
    def conv_width(self) -> int:
        return self.width

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind = self.kind
        return (
            *linear("in_proj", kind, 3 * self.width, hidden, "tp", bias=self.bias),
            Weight("conv", kind, self.width, self.kernel, "tp"),
            *vector("conv.bias", kind, self.width * self.bias, "tp"),
            *linear("out_proj", kind, hidden, self.width, "tp", bias=self.bias, into=False),
        )

    def divided(self) -> dict[str, int]:
        return {"hidden": self.width}

    def scan_operations(self) -> float:
        return 2.0 * self.width

    def kept_bytes(self) -> float:
        return float(2 * 5 * self.width)
