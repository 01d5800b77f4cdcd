"""Feed-forwards: one MLP, or a router and experts.

MLP      2*h*f, gated 3*h*f
experts  E of them, a router h*E, shared ones for every token; latent: all between w elements
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .weights import Weight, linear, vector


@dataclass(frozen=True)
class MLP:
    """An MLP of ``width`` elements between its matrices.

    >>> sum(weight.elements for weight in MLP(14336, gated=True).weights(4096))
    176160768
    """

    width: int
    gated: bool = False
    bias: bool = False
    fused: bool = False  # gate and up are one linear layer

    name: ClassVar[str] = "mlp"
    experts: ClassVar[int] = 0

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        return _mlp("mlp", hidden, self.width, self.gated, self.bias)

    @property
    def dense_width(self) -> int:
        """Width of what every token meets."""
        return self.width

    def divided(self) -> dict[str, int]:
        return {"ffn": self.width}


@dataclass(frozen=True)
class Experts:
    """Experts, of which a token goes to ``top_k``.

    Attributes:
        shared: width of what is there for all tokens, beside the experts; 0: nothing.
        shared_gate: whether a number scales that; shared_whole: whether servers do not cut it.
        router_bias, correction: vectors beside the router, with which it chooses.
        zero: choices of the router that compute nothing (LongCat), and ``empty`` of them for
            which half an expert is held in vain.
        latent: width to which tokens are projected before experts, and back; 0: not.

    >>> moe = Experts(8, 2, 14336, gated=True)
    >>> sum(weight.elements for weight in moe.weights(4096) if weight.kind == "experts")
    1409286144
    """

    experts: int
    top_k: int
    width: int
    gated: bool = False
    bias: bool = False
    shared: int = 0
    shared_gate: bool = False
    shared_whole: bool = False
    router_bias: bool = False
    correction: bool = False
    zero: int = 0
    latent: int = 0
    scales: int = 0
    extra_into: int = 0
    fused: bool = False  # gate and up of shared experts are one linear layer
    linear_router: bool = False  # the router is a linear layer in published code
    adapted: bool = False  # peft's LoRA has adapters for them

    name: ClassVar[str] = "moe"

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        choices, into = self.experts + self.zero, (2 if self.gated else 1) * self.width
        inner = self.latent or hidden
        experts = (
            ("gate_up_proj", into, inner, "tp", True),
            ("down_proj", inner, self.width, "tp", True),
            ("gate_up_proj_bias", into * self.bias, 1, "tp", False),
            ("down_proj_bias", inner * self.bias, 1, "", False),
        )
        latent: tuple[Weight, ...] = ()
        if self.latent:
            latent = (
                *linear("fc1_latent_proj", "router", self.latent, hidden),
                *linear("fc2_latent_proj", "router", hidden, self.latent),
            )
        shared: tuple[Weight, ...] = ()
        if self.shared:
            shared = (
                *_mlp(
                    *("shared_expert", hidden, self.shared, self.gated, self.bias),
                    cut="trained" if self.shared_whole else "tp",
                ),
                *(linear("shared_expert_gate", "shared_expert", 1, hidden) * self.shared_gate),
            )
        return (
            *linear("router", "router", choices, hidden, bias=self.router_bias),
            *vector("correction", "router", choices * self.correction),
            *vector("scales", "router", self.scales),
            *(
                Weight(
                    *(name, "experts", rows, columns, cut, 0, self.experts, self.top_k, product),
                    into=name != "down_proj",
                )
                for name, rows, columns, cut, product in experts
                if rows
            ),
            *vector("unused", "experts", self.extra_into),
            *latent,
            *shared,
        )

    @property
    def dense_width(self) -> int:
        return self.shared

    def divided(self) -> dict[str, int]:
        return {"shared_expert_ffn": self.shared}


FeedForward = MLP | Experts


def _mlp(
    kind: str, hidden: int, width: int, gated: bool, bias: bool, cut: str = "tp"
) -> tuple[Weight, ...]:
    names = ("gate_proj", "up_proj") if gated else ("up_proj",)
    return (
        *(w for name in names for w in linear(name, kind, width, hidden, cut, bias=bias)),
        *linear("down_proj", kind, hidden, width, cut, bias=bias, into=False),
    )
