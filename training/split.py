"""How a model is cut over ranks: which sizes divide it, and which layers each stage holds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

from groups.alternatives import not_a_multiple
from groups.errors import LayoutError, quoted
from groups.layers import needs_stages, numbered, stage_layers
from groups.mesh import MAX_RANKS, Mesh, whole_number

from .model import MAX_SIZE, Model, divisors_near

SPREADS = ("equal", "nearly")
"""How layers are dealt to stages: equally many, as Megatron must, or differing by one at most."""

VOCABULARY_MULTIPLE = 128
"""Megatron's --make-vocab-size-divisible-by, for each tensor parallel rank."""


@dataclass(frozen=True)
class Split:
    """The sizes of a layout and how layers are dealt out.

    etp 0 is tp, and edp 0 is what remains for it: tp * cp * dp / (etp * ep). ``account``: embedding
    and loss take the place of a layer each.

    >>> Split(tp=8, dp=4, ep=8, etp=1).edp
    4
    >>> from groups import parse_mesh
    >>> Split.of(parse_mesh("tp2-dp16-pp2"), parse_mesh("etp2-ep4-edp4-pp2")).edp
    4

    Errors: LayoutError for a size that is no whole number from 1 up.
    """

    tp: int = 1
    cp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    etp: int = 0
    edp: int = 0
    vpp: int = 1
    account: bool = False
    spread: str = "equal"

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name not in ("account", "spread"):
                minimum = 0 if field.name in ("etp", "edp") else 1
                value = getattr(self, field.name)
                size = whole_number(value, field.name, minimum=minimum, maximum=MAX_RANKS)
                object.__setattr__(self, field.name, size)
        if self.spread not in SPREADS:
            listed = ", ".join(SPREADS)
            raise LayoutError(
                "not-a-choice",
                f"{quoted(self.spread)} is not a choice of spread: choose {listed}",
                control="spread",
                facts={"control": "spread", "value": quoted(self.spread), "choices": listed},
            )
        if not self.etp:
            object.__setattr__(self, "etp", self.tp)
        if not self.edp:
            ranks = self.tp * self.cp * self.dp
            object.__setattr__(self, "edp", max(1, ranks // (self.etp * self.ep)))

    @classmethod
    def of(cls, mesh: Mesh, expert: Mesh | None, **more: object) -> Split:
        """The split of a layout's two meshes; without a mesh of experts they follow dp."""
        sizes = {name: mesh.size(name) for name in ("tp", "cp", "pp", "dp")}
        if expert is not None:
            sizes |= {name: expert.size(name) for name in ("ep", "etp", "edp")}
        return cls(**sizes, **more)  # type: ignore[arg-type]

    def require_fits(self, model: Model) -> None:
        """Refuse a model that these sizes do not cut evenly, with the nearest sizes that do."""
        cut = [("heads", self.tp, "tp"), ("ffn", self.tp, "tp"), ("experts", self.ep, "ep")]
        if not model.is_mla:
            cut.insert(1, ("kv_heads", self.tp, "tp"))
        if model.experts:
            cut += [("expert_ffn", self.etp, "etp"), ("shared_expert_ffn", self.tp, "tp")]
        for name, size, axis in cut:
            require_multiple(name, getattr(model, name), axis, size)
        places = (1 if self.cp == 1 else 2) * self.cp
        require_multiple("sequence", model.sequence, "cp", places)
        stage_sizes(model, self)


def require_multiple(name: str, value: int, axis: str, size: int) -> None:
    """Refuse a size of the model that an axis does not cut evenly.

    >>> require_multiple("kv_heads", 8, "tp", 16)
    Traceback (most recent call last):
    groups.errors.LayoutError: kv_heads 8 is not a multiple of tp 16; try tp 8 or kv_heads 16
    """
    if value % size:
        error = not_a_multiple(name, value, {axis: size}, maximum=MAX_SIZE)
        raise error.but(alternatives=[*divisors_near(axis, size, value), *error.alternatives])


def padded_vocabulary(vocabulary: int, tp: int) -> int:
    """The rows of the embedding: the next multiple of 128 * tp (Megatron's default).

    >>> padded_vocabulary(50257, tp=8), padded_vocabulary(128256, tp=8)
    (51200, 129024)
    """
    unit = VOCABULARY_MULTIPLE * tp
    return -(-vocabulary // unit) * unit


def stage_sizes(model: Model, split: Split) -> tuple[tuple[int, int], ...]:
    """For every pipeline stage: its layers, and how many of them have experts.

    >>> from training.models import MODELS
    >>> stage_sizes(MODELS["deepseek-v3"].model, Split(pp=4, spread="nearly"))
    ((16, 13), (15, 15), (15, 15), (15, 15))

    Errors: LayoutError if the layers do not divide and the spread is to be equal.
    """
    first_moe = model.dense_layers if model.experts else model.layers
    return _stage_sizes(model.layers, first_moe, split.pp, split.vpp, split.account, split.spread)


@lru_cache(maxsize=1024)
def _stage_sizes(
    layers: int, first_moe: int, pp: int, vpp: int, account: bool, spread: str
) -> tuple[tuple[int, int], ...]:
    deal = _nearly_equal if spread == "nearly" else _equal
    stages = deal(layers, pp, vpp, account)
    return tuple(
        (len(held), sum(layer >= first_moe for layer in held))
        for held in ([layer for chunk in stage for layer in chunk] for stage in stages)
    )


def _equal(layers: int, pp: int, vpp: int, account: bool) -> list[list[list[int]]]:
    ends = {"account_for_embedding": account, "account_for_loss": account}
    return stage_layers(layers, pp, vpp if vpp > 1 else None, **ends)


def _nearly_equal(layers: int, pp: int, vpp: int, account: bool) -> list[list[list[int]]]:
    """The chunks in the order of the layers: as many each, the first ones one more."""
    if vpp > 1 and pp == 1:
        raise needs_stages(vpp, pp)
    chunks = pp * vpp
    each, more = divmod(layers + 2 * account, chunks)
    counts = [each + (chunk < more) for chunk in range(chunks)]
    if account:
        counts[0] -= 1
        counts[-1] -= 1
    if min(counts) < 0 or layers < pp:
        raise not_a_multiple("layers", layers, {"pp": pp}, maximum=MAX_SIZE)
    return numbered([counts[stage::pp] for stage in range(pp)])
