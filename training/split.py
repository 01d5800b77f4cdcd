"""How a model is divided over ranks: the sizes that divide it, and the layers of each stage."""

from __future__ import annotations

import math
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
from groups.kept import kept
from groups.mesh import MAX_RANKS, Mesh, whole_number
from groups.stages.layers import MAX_LAYERS, needs_stages, numbered, stage_layers
from groups.stages.layout_strings import is_layout, parse_layout, stage_layers_of_layout

from .errors import refusal, require_choice
from .model import MAX_SIZE, Model

SPREADS = ("equal", "nearly")
"""How layers are assigned to stages: the same number each, as Megatron requires, or differing by at
most one."""

PLACEMENTS = ("loop", "V", "both ways")
"""How stages of the model are placed on p ranks. loop: rank r has r, r+p, ... (v of them); V: r and
2p-1-r (ZB-V, V-Half, V-Min, DualPipeV); both ways: r and p-1-r, so every stage twice (DualPipe)."""

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
        for axis, divided in divided_sizes(model, self.tp).items():
            size = getattr(self, axis)
            for name, value in divided:
                if value % size:
                    error = not_a_multiple(name, value, {axis: size}, maximum=MAX_SIZE)
                    near = divisors_near(axis, size, math.gcd(*(value for _, value in divided)))
                    raise error.replace(alternatives=[*near, *error.alternatives])
        if self.cp > 1 and model.sequence % (2 * self.cp):
            by = {"2 x cp": 2 * self.cp}
            raise not_a_multiple("sequence", model.sequence, by, maximum=MAX_SIZE)
        held_by_ranks(model, self.dealing)

    @property
    def dealing(self) -> Dealing:
        return Dealing(*(getattr(self, name) for name in Dealing._fields))


@kept
def divided_sizes(model: Model, tp: int) -> dict[str, tuple[tuple[str, int], ...]]:
    """The sizes of a model that each axis divides, by the field's name.

    Of fewer KV heads than ``tp`` ranks, which are a multiple of them, each projection is cut evenly
    all the same, and what it computes is gathered (Megatron-LM's --num-query-groups).

    >>> from training.models import MODELS
    >>> dict(divided_sizes(MODELS["qwen3-235b-a22b"].model, tp=8)["tp"])["kv_heads"]
    8
    """
    cut: dict[str, dict[tuple[str, int], None]] = {"tp": {}, "ep": {}, "etp": {}}
    for layer in model.kinds:
        for part in (*layer.mixers, *layer.feed_forwards):
            for name, value in part.divided().items():
                is_gathered = name == "kv_heads" and value < tp and tp % value == 0
                cut["tp"][name, tp if is_gathered else value] = None
        if layer.moe is not None:
            cut["ep"]["experts", layer.moe.experts] = None
            cut["etp"]["expert_ffn", layer.moe.width] = None
    if not model.runs:
        cut["tp"]["ffn", model.ffn] = None
    order = ("heads", "kv_heads", "ffn")
    found = {axis: [*values] for axis, values in cut.items()}
    found["tp"].sort(key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    return {axis: tuple(values) for axis, values in found.items() if values}


def padded_vocabulary(vocabulary: int, tp: int) -> int:
    """The rows of the embedding: the next multiple of 128 * tp (Megatron's default).

    >>> padded_vocabulary(50257, tp=8), padded_vocabulary(128256, tp=8)
    (51200, 129024)
    """
    unit = VOCABULARY_MULTIPLE * tp
    return -(-vocabulary // unit) * unit


@dataclass(frozen=True)
class Held:
    """The part of the model on a pipeline rank: its layers, how many of each of the model's
    ``kinds``, and which ends."""

    stage: int
    layers: int
    kinds: tuple[int, ...]
    moe_layers: int  # layers with experts
    is_first: bool  # has the embedding
    is_last: bool  # has the output
    has_norm: bool  # behind the last layer
    mtp: int  # modules of multi-token prediction

    @property
    def usual(self) -> int:
        """The kind of most of its layers."""
        return max(range(len(self.kinds)), key=self.kinds.__getitem__)

    @property
    def holds(self) -> tuple[object, ...]:
        """What decides its parameters; most stages between the ends are alike."""
        return self.kinds, self.is_first, self.is_last, self.has_norm, self.mtp


def held_by_ranks(model: Model, dealing: Dealing) -> tuple[Held, ...]:
    """The part of the model on each pipeline rank.

    MTP modules are on the last stage, or where a pipeline layout has them; behind the last layer
    there is a norm, which with them is on the stage of that layer, else on the last.

    >>> from training.models import MODELS
    >>> deepseek = MODELS["deepseek-v3"].model
    >>> [held.layers for held in held_by_ranks(deepseek, Dealing(pp=4, spread="nearly"))]
    [16, 15, 15, 15]
    >>> [held.layers for held in held_by_ranks(deepseek, Dealing(pp=2, spread="Et*30|t*31L"))]
    [30, 31]
    >>> first, *_ = held_by_ranks(deepseek, Dealing(4, spread="nearly", placement="both ways"))
    >>> first.layers, first.kinds, first.is_last
    (31, (3, 28), True)

    Errors: LayoutError if the layers do not divide and the spread is to be equal, or where a
    layout is of another model or of other sizes.
    """
    has_experts = tuple(layer.has_experts for layer in model.kinds)
    try:
        return _held(model.numbers, has_experts, model.mtp_layers, dealing)
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


@kept
def _held(
    numbers: tuple[int, ...], has_experts: tuple[bool, ...], mtp: int, dealing: Dealing
) -> tuple[Held, ...]:
    stages = layers_of_stages(len(numbers), dealing)
    kinds = range(len(has_experts))
    each = [[[*map(numbers.__getitem__, held)].count(kind) for kind in kinds] for held in stages]
    last = len(stages) - 1
    modules = mtp_stage(dealing.spread, len(stages)) if mtp else last
    norm = max((at for at, held in enumerate(stages) if held), default=last) if mtp else last
    by_rank = []
    for rank, own in enumerate(stages_of_ranks(*dealing[:3])):
        counts = tuple(map(sum, zip(*(each[stage] for stage in own))))
        moe = sum(number for number, routed in zip(counts, has_experts) if routed)
        ends = (0 in own, last in own, norm in own, mtp * (modules in own))
        by_rank.append(Held(rank, sum(counts), counts, moe, *ends))
    return tuple(by_rank)


@lru_cache(maxsize=256)
def mtp_stage(spread: str, stages: int) -> int:
    """The stage with the modules of multi-token prediction: that of "m" in a pipeline layout, else
    the last.

    >>> mtp_stage("Ett|m|L", 3), mtp_stage("Ett|tt|L", 3), mtp_stage("equal", 4)
    (1, 2, 3)
    """
    if is_layout(spread):
        for at, held in enumerate(parse_layout(spread)):
            if "mtp" in held:
                return at
    return stages - 1


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
