"""The parameters of a model as PyTorch modules name them, and the units that are sharded together.

A unit is what one ``fully_shard`` call wraps: its parameters travel in one collective. A parameter
of shape (rows, ...) is cut along its first dim into ceil(rows / d) rows for each of d ranks; the
last ranks own fewer, and still store and send that many:

    10 rows over 4 ranks    3 3 3 1      stored 3 3 3 3, gathered 12 rows

Experts on more ranks than there are experts are cut along their second dim, which must divide
(pytorch/torchtitan b5bcd76 torchtitan/distributed/fsdp.py). Tensor parallelism cuts first.
Source: torch 2.13.0 torch/distributed/fsdp/_fully_shard/_fsdp_param.py, _init_sharded_param.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from groups.alternatives import not_a_multiple
from groups.kept import kept

from ..kinds import Attention
from ..model import MAX_SIZE, Model
from ..moves.tensors import Place, Tensor, tensors_of

NORMS = {
    "self_attention.linear_qkv.layer_norm_": "attention_norm",
    "input_layernorm.": "attention_norm",
    "mlp.linear_fc1.layer_norm_": "ffn_norm",
    "pre_mlp_layernorm.": "ffn_norm",
    "decoder.final_layernorm.": "norm",
}
"""Megatron's names of norms, and their modules here."""

MODULES = {
    "embedding.word_embeddings.": "tok_embeddings",
    "embedding.position_embeddings.": "pos_embeddings",
    "output_layer.": "lm_head",
    "self_attention.linear_proj.": "attention.wo",
    "self_attention.linear_q_proj.": "attention.wq",
    "self_attention.linear_q_down_proj.": "attention.wq_a",
    "self_attention.linear_q_up_proj.layer_norm_": "attention.q_norm",
    "self_attention.linear_q_up_proj.": "attention.wq_b",
    "self_attention.linear_kv_down_proj.": "attention.wkv_a",
    "self_attention.linear_kv_up_proj.layer_norm_": "attention.kv_norm",
    "self_attention.linear_kv_up_proj.": "attention.wkv_b",
    "mlp.router.": "moe.router.gate",
}
"""Megatron's names of other modules, and their names here; longer ones first where one begins
another."""

FEED_FORWARD = {
    "mlp.experts.": "moe.experts",
    "mlp.shared_experts.": "moe.shared_experts",
    "mlp.": "feed_forward",
}
"""Feed-forward networks: gate w1, up w3 and down w2."""


@dataclass(frozen=True)
class ModuleParameter:
    """One parameter of a module: its name, its whole shape, and its cut by tensor parallelism.

    axis: the dim that tp cuts; None: every rank has it whole, and where tokens are cut too
    (sequence parallelism) its gradient is a sum over the tp group. expert: whether its first dim
    counts experts.
    """

    name: str
    shape: tuple[int, ...]
    axis: int | None = None
    expert: bool = False

    @property
    def elements(self) -> int:
        return prod(self.shape)

    def part(self, axis: int, parts: int, index: int) -> ModuleParameter:
        """The part of it that one of ``parts`` ranks has, as torch.chunk cuts a dim.

        >>> ModuleParameter("wq", (10, 4)).part(0, 4, 3).shape
        (1, 4)
        """
        shape = list(self.shape)
        shape[axis] = chunk_length(shape[axis], parts, index)
        return replace(self, shape=tuple(shape))


def chunk_length(length: int, parts: int, index: int) -> int:
    """The length of chunk ``index`` of torch.chunk, 0 where the chunks before hold all.

    >>> [chunk_length(10, 4, index) for index in range(4)], chunk_length(2, 4, 3)
    ([3, 3, 3, 1], 0)
    """
    each = -(-length // parts)
    return max(0, min(each, length - index * each))


# -- the model -----------------------------------------------------------------------------------


def parameters_of(
    model: Model, place: Place, *, norms_first: bool = False
) -> list[ModuleParameter]:
    """The parameters of a layer, or of one of ``tensors.PLACES``, in the order of definition.

    norms_first: whether a layer defines its norms before its other modules; attention comes
    before the feed-forward network in any case.

    >>> from training.models import MODELS
    >>> for parameter in parameters_of(MODELS["llama3-8b"].model, 0):
    ...     print(parameter.name, parameter.shape, parameter.axis)
    layers.0.attention.wq.weight (4096, 4096) 0
    layers.0.attention.wk.weight (1024, 4096) 0
    layers.0.attention.wv.weight (1024, 4096) 0
    layers.0.attention.wo.weight (4096, 4096) 1
    layers.0.feed_forward.w1.weight (14336, 4096) 0
    layers.0.feed_forward.w2.weight (4096, 14336) 1
    layers.0.feed_forward.w3.weight (14336, 4096) 0
    layers.0.attention_norm.weight (4096,) None
    layers.0.ffn_norm.weight (4096,) None
    """
    prefix = f"layers.{place}." if isinstance(place, int) else ""
    found = [
        replace(each, name=prefix + each.name)
        for tensor in tensors_of(model, place)
        for each in _split(model, place, tensor)
    ]
    modules = [each.name.rpartition(".")[0] for each in found]
    own = [prefix + norm for norm in ("attention_norm", "ffn_norm", "norm")]

    def place_of(parameter: ModuleParameter) -> tuple[int, int, str]:
        module = parameter.name.rpartition(".")[0]
        if module in own:
            return (0 if norms_first else 3, own.index(module), "")
        if any(part in module for part in ("feed_forward", ".moe.")):
            return 2, 0, f"{module} {parameter.name.endswith('bias')} {parameter.name}"
        return 1, modules.index(module), ""

    return sorted(found, key=place_of)


def _split(model: Model, place: Place, tensor: Tensor) -> Iterator[ModuleParameter]:
    """The modules' parameters that one of Megatron's tensors joins."""
    for start, module in NORMS.items():
        if tensor.name.startswith(start):
            yield ModuleParameter(f"{module}.{tensor.name[len(start) :]}", tensor.shape)
            return
    if tensor.name.startswith("self_attention.linear_qkv."):
        kind, rest = tensor.name.rpartition(".")[2], tensor.shape[1:]
        rows = _rows(model, place, tensor.shape[0])
        for module, length in zip(("wq", "wk", "wv"), rows):
            yield ModuleParameter(f"attention.{module}.{kind}", (length, *rest), 0)
        return
    for start, module in MODULES.items():
        if tensor.name.startswith(start):
            yield ModuleParameter(
                f"{module}.{tensor.name[len(start) :]}", tensor.shape, tensor.axis
            )
            return
    yield from _feed_forward(model, tensor)


def _rows(model: Model, place: Place, rows: int) -> tuple[int, int, int]:
    """The rows of queries, keys and values; with queries come what gates their output."""
    layer = model.stack[place if isinstance(place, int) else -1]
    mixer = next(mixer for mixer in layer.mixers if isinstance(mixer, Attention))
    return rows - mixer.key_width - mixer.value_width, mixer.key_width, mixer.value_width


def _feed_forward(model: Model, tensor: Tensor) -> Iterator[ModuleParameter]:
    start = next((start for start in FEED_FORWARD if tensor.name.startswith(start)), "")
    if not start:
        yield ModuleParameter(tensor.name, tensor.shape, tensor.axis)
        return
    module, (linear, kind) = FEED_FORWARD[start], tensor.name[len(start) :].split(".")
    names = ["w2"] if linear == "linear_fc2" else ["w1", "w3"][: tensor.blocks]
    shape = (tensor.shape[0] // len(names), *tensor.shape[1:])
    axis = tensor.axis
    if tensor.expert:
        shape, axis = (model.experts, *shape), None if axis is None else axis + 1
        kind = "" if kind == "weight" else f"_{kind}"
        for name in names:
            yield ModuleParameter(f"{module}.{name}{kind}", shape, axis, expert=True)
        return
    for name in names:
        yield ModuleParameter(f"{module}.{name}.{kind}", shape, axis)


@kept
def places_of(
    model: Model, layers: tuple[int, ...], is_first: bool, is_last: bool
) -> tuple[Place, ...]:
    """The places of a pipeline stage, in the order of the model; a tied output has no parameter
    of its own on a stage that holds the embedding too."""
    ends: list[Place] = []
    if is_last:
        ends = ["final", *([] if model.tied and is_first else ["output"])]
    return (*(["embedding"] if is_first else []), *layers, *ends)


# -- units ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mesh1D:
    """The group that shards a unit: its name, its size, and the rank's own index in it."""

    name: str
    size: int
    index: int = 0


@dataclass(frozen=True)
class Unit:
    """Parameters that are gathered and reduced together, as one rank has them after tp and ep.

    across: the dim along which each parameter is cut. Sizes count elements: `own` what the rank
    owns, `stored` with the padding, `whole` what a gather gives, `elements` without padding.

    >>> unit = Unit("norm", (ModuleParameter("norm.weight", (10,)),), Mesh1D("fsdp", 4, 3))
    >>> unit.own, unit.stored, unit.whole, unit.elements
    (1, 3, 12, 10)
    """

    name: str
    parameters: tuple[ModuleParameter, ...]
    group: Mesh1D
    across: int = 0

    @cached_property
    def elements(self) -> int:
        return sum(each.elements for each in self.parameters)

    @cached_property
    def own(self) -> int:
        size, index = self.group.size, self.group.index
        return sum(each.part(self._dim(each), size, index).elements for each in self.parameters)

    @cached_property
    def stored(self) -> int:
        size = self.group.size
        return sum(each.part(self._dim(each), size, 0).elements for each in self.parameters)

    @cached_property
    def whole(self) -> int:
        return self.stored * self.group.size

    def _dim(self, parameter: ModuleParameter) -> int:
        return self.across if parameter.expert else 0


@dataclass(frozen=True)
class Wrapping:
    """How a framework wraps a decoder, as sets of modules that make a unit each.

    own: modules with a unit of their own beside the layers, joined by "+"; what is left belongs to
    the root, a unit of its own where it has parameters. layers: whether each layer is a unit.
    apart: whether routed experts on a mesh of their own are a second group of their layer's unit.
    """

    own: tuple[str, ...] = ()
    layers: bool = True
    apart: bool = False


WRAPPINGS: Mapping[str, Wrapping] = {
    "blocks": Wrapping(),
    "blocks+embedding": Wrapping(("tok_embeddings",)),
    "root": Wrapping(layers=False),
    "torchtitan": Wrapping(("tok_embeddings", "norm+lm_head"), apart=True),
}
"""Ways to wrap: each transformer block and the root (transformers, accelerate, verl), the embedding
too, the root alone, and torchtitan's (apply_fsdp_to_decoder)."""

TIED = "tok_embeddings+norm+lm_head"
"""The one unit of torchtitan's ends where the output uses the embedding's matrix."""


@dataclass(frozen=True)
class Module:
    """One wrapped module: its name, its units (param groups), and where it stands.

    is_root: the whole of the stage; is_end: one of the last modules, which torchtitan keeps;
    takes_tokens: whether its inputs are token numbers, which have no gradient.
    """

    name: str
    units: tuple[Unit, ...]
    is_root: bool = False
    is_end: bool = False
    takes_tokens: bool = False


def modules_of(
    stage: Sequence[tuple[Place, Sequence[ModuleParameter]]],
    wrapping: Wrapping,
    dense: Mesh1D,
    experts: Mesh1D | None = None,
    num_experts: int = 0,
) -> list[Module]:
    """The wrapped modules of a stage in the order of their registration: the root first.

    stage: its places with their parameters, as a rank has them after tp and ep. experts: the mesh
    that shards routed experts where it is another one than that of dense parameters.

    Errors: LayoutError where experts are cut along their second dim, which does not divide.
    """
    at = {place: list(parameters) for place, parameters in stage}
    taken: set[Place] = set()
    modules: list[Module] = []
    tied = "embedding" in at and "final" in at and "output" not in at
    own = (TIED,) if tied and "norm+lm_head" in wrapping.own else wrapping.own
    ends = {"embedding": "tok_embeddings", "final": "norm", "output": "lm_head"}
    for joined in own:
        names = joined.split("+")
        places = [place for place, name in ends.items() if name in names and place in at]
        if places:
            taken.update(places)
            parameters = [each for place in places for each in at[place]]
            unit = Unit(joined, tuple(parameters), dense)
            is_tokens = "embedding" in places
            modules.append(Module(joined, (unit,), is_end="norm" in names, takes_tokens=is_tokens))
    first = [module for module in modules if module.takes_tokens]
    last = [module for module in modules if not module.takes_tokens]
    layers = [place for place in at if isinstance(place, int)] if wrapping.layers else []
    taken.update(layers)
    blocks = [_layer(place, at[place], wrapping, dense, experts, num_experts) for place in layers]
    rest = [each for place, parameters in at.items() if place not in taken for each in parameters]
    units = (Unit("root", tuple(rest), dense),) if rest else ()
    root = Module("root", units, is_root=True, takes_tokens="embedding" in at)
    return [root, *first, *blocks, *last]


def _layer(
    place: Place,
    parameters: Sequence[ModuleParameter],
    wrapping: Wrapping,
    dense: Mesh1D,
    experts: Mesh1D | None,
    num_experts: int,
) -> Module:
    name, routed = f"layers.{place}", [each for each in parameters if each.expert]
    mesh = experts or dense
    across = _across(routed, mesh, num_experts)
    if routed and experts and wrapping.apart:
        plain = tuple(each for each in parameters if not each.expert)
        units = (Unit(f"{name}[0]", plain, dense), Unit(f"{name}[1]", tuple(routed), mesh, across))
        return Module(name, units)
    return Module(name, (Unit(name, tuple(parameters), dense, across),))


def _across(routed: Sequence[ModuleParameter], mesh: Mesh1D, num_experts: int) -> int:
    """The dim along which experts are cut: the second where there are more ranks than experts."""
    held = routed[0].shape[0] if routed else 0
    if not routed or mesh.size * (num_experts // held) <= num_experts:
        return 0
    for each in routed:
        if each.shape[1] % mesh.size:
            by = {mesh.name: mesh.size}
            raise not_a_multiple("expert_ffn", each.shape[1], by, maximum=MAX_SIZE)
    return 1


def local_parameters(
    model: Model,
    places: Sequence[Place],
    tp: tuple[int, int] = (1, 0),
    ep: tuple[int, int] = (1, 0),
    *,
    norms_first: bool = False,
) -> list[tuple[Place, list[ModuleParameter]]]:
    """The parameters of a stage as one rank has them: tp and ep are (ranks, own index)."""
    stage = []
    for place in places:
        parts = []
        for each in parameters_of(model, place, norms_first=norms_first):
            if each.expert:
                parts.append(each.part(0, *ep))
            elif each.axis is not None:
                parts.append(each.part(each.axis, *tp))
            else:
                parts.append(each)
        stage.append((place, parts))
    return stage
