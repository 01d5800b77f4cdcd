"""How a model is divided over ranks: the sizes that divide it, and the layers of each stage."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, NamedTuple

from groups.alternatives import (
    divisors_near,
    fitted_sizes,
    not_a_multiple,
    with_changes,
    with_working,
)
from groups.errors import LayoutError
from groups.inputs import Input
from groups.mesh import MAX_RANKS, Mesh, whole_number
from groups.stages.layers import MAX_LAYERS, needs_stages, numbered, stage_layers
from groups.stages.layout_strings import is_layout, stage_layers_of_layout

from .errors import refusal, require_choice
from .model import MAX_SIZE, Model

SPREADS = ("equal", "nearly")
"""How layers are assigned to stages: the same number each, as Megatron requires, or differing by at
most one."""

PLACEMENTS = ("loop", "V", "both ways")
"""How stages of the model are placed on p ranks. loop: rank r has r, r+p, ... (v of them); V: r and
2p-1-r (ZB-V, DualPipeV); both ways: r and p-1-r, so every stage twice (DualPipe)."""

SIZES = ("tp", "cp", "pp", "ep", "etp", "dp", "edp", "vpp")
"""The sizes of a split."""

VOCABULARY_MULTIPLE = 128
"""Megatron's --make-vocab-size-divisible-by, for each tensor parallel rank."""


@dataclass(frozen=True)
class Split:
    """The sizes of a layout, and how layers are assigned to stages.

    spread: one of SPREADS, or a pipeline layout of groups.stages.layout_strings, which gives the
    decoder layers of every stage; multi-token prediction counts with the output. first, last:
    numbers of layers of these stages, checked when layers are assigned. etp 0 means tp, and edp 0
    means the remaining factor tp * cp * dp / (etp * ep). ``account``: embedding and loss each take
    the place of a layer.

    >>> Split(tp=8, dp=4, ep=8, etp=1).edp
    4
    >>> from groups import parse_mesh
    >>> Split.of(parse_mesh("tp2-dp16-pp2"), parse_mesh("etp2-ep4-edp4-pp2")).edp
    4

    Errors: LayoutError for a size that is no whole number from 1 up, and where edp would be none.
    """

    tp: int = 1
    cp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    etp: int = 0
    edp: int = 0
    vpp: Annotated[
        int,
        Input(
            "chunks of layers on each pipeline rank",
            otherwise="as the schedule has them, 2 where it can choose",
            most=MAX_SIZE,
            maths=("virtual_pipeline_model_parallel_size", "v"),
        ),
    ] = 1
    account: Annotated[
        bool, Input("whether embedding and loss count as a layer each", ticked=True)
    ] = False
    spread: Annotated[
        str,
        Input(
            "layers of the stages, nearly equal where some have one more",
            choices=SPREADS,
            otherwise="equal, but a model's own that do not divide nearly",
        ),
    ] = "equal"
    placement: str = "loop"
    first: Annotated[
        int | None,
        Input("layers of the first stage", name="first_layers", otherwise="as the others"),
    ] = None
    last: Annotated[
        int | None,
        Input("layers of the last stage", name="last_layers", otherwise="as the others"),
    ] = None

    def __post_init__(self) -> None:
        for name in SIZES:
            minimum = 0 if name in ("etp", "edp") else 1
            whole_number(getattr(self, name), name, minimum=minimum, maximum=MAX_RANKS)
        require_choice("placement", self.placement, PLACEMENTS)
        if self.spread not in SPREADS and not is_layout(self.spread):
            require_choice("spread", self.spread, SPREADS)
        if not self.etp:
            object.__setattr__(self, "etp", self.tp)
        if not self.edp:
            ranks = self.tp * self.cp * self.dp
            edp, left = divmod(ranks, self.etp * self.ep)
            if left:  # which is refused
                sizes = {"etp": self.etp, "ep": self.ep}
                fitted_sizes(ranks, "etp-ep-edp", sizes, "edp")
            object.__setattr__(self, "edp", edp)

    @classmethod
    def of(cls, mesh: Mesh, expert: Mesh | None, **more: object) -> Split:
        """The split of a layout's two meshes; without an expert mesh, experts follow dp."""
        sizes = {name: mesh.size(name) for name in ("tp", "cp", "pp", "dp")}
        if expert is not None:
            sizes |= {name: expert.size(name) for name in ("ep", "etp", "edp")}
        return cls(**sizes, **more)  # type: ignore[arg-type]

    def placed(self, placement: str) -> Split:
        """The same split with another placement of its stages on ranks."""
        return self if self.placement == placement else replace(self, placement=placement)

    def require_fits(self, model: Model) -> None:
        """Raises LayoutError for a model that the sizes do not divide; every fix is valid."""

        def require_with(fix: Mapping[str, object]) -> None:
            of_split = {name: fix[name] for name in fix if hasattr(self, name)}
            of_model = {name: fix[name] for name in fix if hasattr(model, name)}
            with_changes(self, of_split)._require_fits(with_changes(model, of_model))

        try:
            self._require_fits(model)
        except LayoutError as error:
            raise with_working(error, require_with) from None

    def _require_fits(self, model: Model) -> None:
        cut = {"tp": ["heads", "ffn"], "ep": ["experts"]}
        if not model.is_mla:
            cut["tp"].insert(1, "kv_heads")
        if model.experts:
            cut["tp"].append("shared_expert_ffn")
            cut["etp"] = ["expert_ffn"]
        for axis, names in cut.items():
            size, sizes = getattr(self, axis), [getattr(model, name) for name in names]
            for name, value in zip(names, sizes):
                if value % size:
                    error = not_a_multiple(name, value, {axis: size}, maximum=MAX_SIZE)
                    near = divisors_near(axis, size, math.gcd(*sizes))
                    raise error.replace(alternatives=[*near, *error.alternatives])
        if self.cp > 1 and model.sequence % (2 * self.cp):
            by = {"2 x cp": 2 * self.cp}
            raise not_a_multiple("sequence", model.sequence, by, maximum=MAX_SIZE)
        held_by_ranks(model, self.dealing)

    @property
    def dealing(self) -> Dealing:
        return Dealing(*(getattr(self, name) for name in Dealing._fields))


def with_kv_copies(model: Model, tp: int) -> Model:
    """The model as tp ranks hold it: with more ranks than KV heads, each rank holds a copy of one
    head.

    >>> from training.models import MODELS
    >>> with_kv_copies(MODELS["qwen3-235b-a22b"].model, tp=8).kv_heads
    8

    Source: Megatron-LM's --num-query-groups, which tp divides or is a multiple of.
    """
    more = not model.is_mla and model.kv_heads < tp
    if more and tp % model.kv_heads == 0 and model.heads % tp == 0:
        return replace(model, kv_heads=tp)
    return model


def padded_vocabulary(vocabulary: int, tp: int) -> int:
    """The rows of the embedding: the next multiple of 128 * tp (Megatron's default).

    >>> padded_vocabulary(50257, tp=8), padded_vocabulary(128256, tp=8)
    (51200, 129024)
    """
    unit = VOCABULARY_MULTIPLE * tp
    return -(-vocabulary // unit) * unit


@dataclass(frozen=True)
class Held:
    """The part of the model on a pipeline rank: its layers, with and without experts, and which
    ends."""

    stage: int
    layers: int
    moe_layers: int  # of them
    is_first: bool  # has the embedding
    is_last: bool  # has the output


def held_by_ranks(model: Model, dealing: Dealing) -> tuple[Held, ...]:
    """The part of the model on each pipeline rank.

    >>> from training.models import MODELS
    >>> deepseek = MODELS["deepseek-v3"].model
    >>> [held.layers for held in held_by_ranks(deepseek, Dealing(pp=4, spread="nearly"))]
    [16, 15, 15, 15]
    >>> [held.layers for held in held_by_ranks(deepseek, Dealing(pp=2, spread="Et*30|t*31L"))]
    [30, 31]
    >>> first, *_ = held_by_ranks(deepseek, Dealing(4, spread="nearly", placement="both ways"))
    >>> first.layers, first.moe_layers, first.is_last
    (31, 28, True)

    Errors: LayoutError if the layers do not divide and the spread is to be equal, or where a
    layout is of another model or of other sizes.
    """
    first_moe = model.dense_layers if model.experts else model.layers
    try:
        return _held(model.layers, first_moe, dealing)
    except LayoutError as error:
        kept = [fix for fix in error.alternatives if dealing.placement != "V" or "pp" not in fix]
        other = [{"spread": "nearly"}] if dealing.spread == "equal" else []
        raise error.replace(alternatives=[*other, *kept]) from None


class Dealing(NamedTuple):
    """The part of a split that decides which layers a stage holds."""

    pp: int
    vpp: int = 1
    placement: str = "loop"
    account: bool = False
    spread: str = "equal"
    first: int | None = None
    last: int | None = None


@lru_cache(maxsize=2048)
def _held(layers: int, first_moe: int, dealing: Dealing) -> tuple[Held, ...]:
    stages = layers_of_stages(layers, dealing)
    each = [len(held) for held in stages]
    moe = [len(held) - bisect_left(held, first_moe) for held in stages]
    by_rank = []
    for rank, numbers in enumerate(stages_of_ranks(*dealing[:3])):
        layers, moe_layers = (sum(counts[stage] for stage in numbers) for counts in (each, moe))
        ends = (0 in numbers, len(stages) - 1 in numbers)
        by_rank.append(Held(rank, layers, moe_layers, *ends))
    return tuple(by_rank)


def stages_of_ranks(pp: int, vpp: int, placement: str) -> list[list[int]]:
    """The indices of the model's stages on each pipeline rank, chunk by chunk.

    >>> [stages_of_ranks(2, 2, placement) for placement in PLACEMENTS]
    [[[0, 2], [1, 3]], [[0, 3], [1, 2]], [[0, 1], [1, 0]]]
    """
    if placement == "loop":
        return [[*range(rank, pp * vpp, pp)] for rank in range(pp)]
    last = (2 * pp if placement == "V" else pp) - 1
    return [[rank, last - rank] for rank in range(pp)]


def layers_of_stages(layers: int, dealing: Dealing) -> list[list[int]]:
    """The layers of each stage, in the model's order.

    >>> layers_of_stages(5, Dealing(pp=3, first=1, last=2))
    [[0], [1, 2], [3, 4]]

    Errors: as of `held_by_ranks`.
    """
    pp, vpp, placement, account, spread, first, last = dealing
    if placement != "loop":
        pp, vpp = pp * (2 if placement == "V" else 1), 1
    if vpp > 1 and pp == 1:
        raise needs_stages(vpp, pp)
    if spread == "nearly" and first is last is None:
        return nearly_equal(whole_number(layers, "layers", maximum=MAX_LAYERS), pp, vpp, account)
    if spread in SPREADS:
        return stage_layers(layers, pp, vpp, account=account, first=first, last=last)
    try:
        return stage_layers_of_layout(spread, layers, pp, vpp)
    except LayoutError as error:
        raise error.renamed({"layout": "layers"}) from None


def nearly_equal(layers: int, pp: int, vpp: int, account: bool) -> list[list[int]]:
    """The numbers of layers per stage; the first stages have one more if the layers do not divide.

    >>> nearly_equal(3, pp=4, vpp=1, account=False)
    Traceback (most recent call last):
    groups.errors.LayoutError: 3 layers are too few for 4 stages; try layers 4 or pp 3
    """
    places, stages = layers + 2 * account, pp * vpp
    each, more = divmod(places, stages)
    if each == 0:
        near = {"layers": stages - 2 * account, "pp": places // vpp}
        fixes = [{name: size} for name, size in near.items() if size]
        raise refusal("too-few-layers", "layers", *fixes, count=places, stages=stages)
    counts = [each + (stage < more) for stage in range(stages)]
    if account:
        counts[0] -= 1
        counts[-1] -= 1
    return numbered(counts)
