"""The weights of a layer: what each is for, its shape, and how ranks divide it.

    cut      on a rank of Megatron       on a rank of a server
    ""       whole                       whole
    "tp"     size / tp                   size / tp, rounded up
    "kv"     size / tp                   size / min(tp, units): more ranks than units keep copies
    "groups" size / tp                   the same (B and C of Mamba-2)
    "server" whole                       size / tp
    "trained" size / tp                  whole
    "absent" whole                       not there

Of experts (``number`` above 1, kind "experts") whole ones are dealt over ep, and the cut ones are
cut over etp in place of tp.

Sources: NVIDIA/Megatron-LM d98e8a6 megatron/core (ColumnParallelLinear, RowParallelLinear);
vllm-project/vllm 0.33.0 vllm/model_executor/layers/linear.py (QKVParallelLinear) and layers/mamba/
mamba_utils.py (extra_groups_for_head_shards).
"""

from __future__ import annotations

from typing import NamedTuple


class Weight(NamedTuple):
    """One weight of a layer, or ``number`` equal ones.

    Attributes:
        name: of the module in published implementations, such as "q_proj".
        kind: one of training.parameters.KINDS.
        rows, columns: of its matrix; a vector has one column.
        cut, units: how ranks divide it, and into how many parts it can be divided at most.
        number, used: equal ones of a layer, and how many of them one token meets.
        product: whether a token is multiplied with it; else it is added, scales, or is a filter.
        into: whether ranks divide its outputs; else its inputs.
        beside: multiplications of a token with a matrix that the product makes for it.

    >>> up = Weight("up_proj", "mlp", 14336, 4096, "tp", product=True)
    >>> up.elements, up.operations
    (58720256, 117440512)
    """

    name: str
    kind: str
    rows: int
    columns: int = 1
    cut: str = ""
    units: int = 0
    number: int = 1
    used: float = 1
    product: bool = False
    into: bool = True
    beside: int = 0

    @property
    def elements(self) -> int:
        return self.rows * self.columns * self.number

    @property
    def operations(self) -> float:
        """Operations of the product with one token: a multiplication and an addition each."""
        return 2 * (self.rows * self.columns * self.used + self.beside) if self.product else 0

    def share(self, ranks: int) -> int:
        """The number of parts into which ``ranks`` ranks of a server divide it."""
        if self.cut in ("", "trained"):
            return 1
        return min(ranks, self.units) if self.cut in ("kv", "groups") else ranks

    def served(self, ranks: int) -> int:
        """Elements on one of ``ranks`` ranks of a server."""
        return 0 if self.cut == "absent" else -(-self.elements // self.share(ranks))

    @property
    def is_cut(self) -> bool:
        """Whether ranks that train divide it."""
        return self.cut in ("tp", "kv", "groups", "trained")


def linear(
    name: str,
    kind: str,
    rows: int,
    columns: int,
    cut: str = "",
    *,
    bias: bool = False,
    into: bool = True,
    units: int = 0,
) -> tuple[Weight, ...]:
    """The weights of a linear layer with ``columns`` inputs and ``rows`` outputs.

    into: whether ranks divide its outputs, and so its bias; else they divide its inputs, and the
    bias is added whole after the sum over ranks.

    >>> [weight.elements for weight in linear("o_proj", "attention", 8, 4, "tp", bias=True)]
    [32, 8]
    """
    matrix = Weight(name, kind, rows, columns, cut, units, product=True, into=into)
    if not bias:
        return (matrix,)
    return matrix, Weight(f"{name}.bias", kind, rows, 1, cut if into else "", units)


def vector(name: str, kind: str, size: int, cut: str = "", units: int = 0) -> tuple[Weight, ...]:
    """A vector of this size; none where the size is 0."""
    return (Weight(name, kind, size, 1, cut, units),) if size else ()


def products_of(weights: tuple[Weight, ...], tp: int) -> tuple[tuple[float, float, bool], ...]:
    """Widths of each product on one of ``tp`` ranks, out and in, and that it lifts no latent."""
    return tuple(
        (weight.rows / (tp if weight.is_cut else 1), float(weight.columns), False)
        for weight in weights
        if weight.product
    )
