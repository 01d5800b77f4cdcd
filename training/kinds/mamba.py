"""Mamba: selective state spaces.

    Mamba-1         in h*2D, conv, x D*(r + 2N), dt, out D*h                  arXiv:2312.00752
    Mamba-2         in h*(2D + 2GN + H), conv over D + 2GN, out D*h           arXiv:2405.21060

D: inner width; N: state; G: groups; H: heads. What they keep stands in training.kinds.states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .states import StateMixer
from .weights import Weight, linear, vector


@dataclass(frozen=True)
class Mamba1(StateMixer):
    """Mamba: a selective state space of N numbers for each of D channels.

    norms: whether B, C and dt are normalized (Jamba).
    """

    inner: int
    state: int
    kernel: int
    rank: int
    bias: bool = False
    conv_bias: bool = True
    norms: bool = False

    name: ClassVar[str] = "mamba1"
    kind: ClassVar[str] = "mamba"

    @property
    def output_width(self) -> int:
        return self.inner

    @property
    def conv_width(self) -> int:
        return self.inner

    @property
    def state_elements(self) -> int:
        return self.inner * self.state

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind, inner = self.kind, self.inner
        return (
            *linear("in_proj", kind, 2 * inner, hidden, "tp", bias=self.bias),
            Weight("conv1d", kind, inner, self.kernel, "tp"),
            *vector("conv1d.bias", kind, inner * self.conv_bias, "tp"),
            *linear("x_proj", kind, self.rank + 2 * self.state, inner, "tp"),
            *linear("dt_proj", kind, inner, self.rank, "tp", bias=True),
            Weight("A_log", kind, inner, self.state, "tp"),
            *vector("D", kind, inner, "tp"),
            *vector("norms", kind, (self.rank + 2 * self.state) * self.norms),
            *linear("out_proj", kind, hidden, inner, "tp", bias=self.bias, into=False),
        )

    def divided(self) -> dict[str, int]:
        return {"mamba_inner": self.inner}

    def scan_operations(self) -> float:
        return 7.0 * self.inner * self.state

    def scan_products(self, tokens: int) -> float:
        """The state times C; all else goes element by element."""
        return 2.0 * self.inner * self.state * tokens

    def kept_bytes(self) -> float:
        return float(2 * (4 * self.inner + self.rank + 2 * self.state) + 4 * self.inner)


@dataclass(frozen=True)
class Mamba2(StateMixer):
    """Mamba-2: heads of state spaces, with B and C shared by the heads of a group.

    norm: elements of the gated norm before the output; 0: none. chunk: tokens that are computed
    together.

    >>> nemotron = Mamba2(heads=128, dim=64, groups=8, state=128, kernel=4, norm=8192)
    >>> sum(weight.elements for weight in nemotron.weights(4096))
    109635968
    """

    heads: int
    dim: int
    groups: int
    state: int
    kernel: int
    norm: int
    bias: bool = False
    conv_bias: bool = True
    chunk: int = 256

    name: ClassVar[str] = "mamba2"
    kind: ClassVar[str] = "mamba"

    @property
    def output_width(self) -> int:
        return self.heads * self.dim

    @property
    def shared(self) -> int:
        """Elements of B and C of all groups."""
        return 2 * self.groups * self.state

    @property
    def conv_width(self) -> int:
        return self.output_width + self.shared

    @property
    def state_elements(self) -> int:
        return self.heads * self.dim * self.state

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        kind, inner, groups = self.kind, self.output_width, self.groups
        return (
            *linear("in_proj", kind, 2 * inner + self.heads, hidden, "tp", bias=self.bias),
            *linear(
                *("in_proj.BC", kind, self.shared, hidden, "groups"), units=groups, bias=self.bias
            ),
            Weight("conv1d", kind, inner, self.kernel, "tp"),
            Weight("conv1d.BC", kind, self.shared, self.kernel, "groups", groups),
            *vector("conv1d.bias", kind, inner * self.conv_bias, "tp"),
            *vector("conv1d.BC.bias", kind, self.shared * self.conv_bias, "groups", groups),
            *(
                w
                for name in ("A_log", "D", "dt_bias")
                for w in vector(name, kind, self.heads, "tp")
            ),
            *vector("norm", kind, self.norm, "tp"),
            *linear("out_proj", kind, hidden, inner, "tp", bias=self.bias, into=False),
        )

    def conv_elements(self, tp: int = 1) -> int:
        """With more ranks than groups each has B and C of one (vLLM's mamba_utils)."""
        shared = 2 * self.state * max(1, self.groups // tp)
        return (self.kernel - 1) * (self.output_width // tp + shared)

    def divided(self) -> dict[str, int]:
        return {"mamba_heads": self.heads, "mamba_groups": self.groups}

    def scan_operations(self) -> float:
        return 6.0 * self.output_width * self.state

    def scan_products(self, tokens: int) -> float:
        """Of each head (arXiv:2405.21060 section 6): C with B and that with the inputs inside of a
        chunk of Q tokens, 2*Q*(N + P) a token; the state of a chunk and what it adds to outputs,
        4*N*P a token; and states from each chunk to each later one, the first state included.

        >>> Mamba2(128, 64, 8, 128, 4, 8192).scan_products(256) / 256
        16809984.0
        """
        chunks = -(-tokens // self.chunk)
        inside = 2.0 * self.chunk * (self.state + self.dim) + 4.0 * self.state * self.dim
        between = 2.0 * (chunks + 1) ** 2 * self.dim * self.state
        return self.heads * (chunks * self.chunk * inside + between)

    def kept_bytes(self) -> float:
        inner = self.output_width
        return float(2 * (2 * inner + self.shared + self.heads) + 2 * inner + 4)
