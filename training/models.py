"""Models with published shapes, to start from, each with its source and its published size.

>>> MODELS["llama3-8b"].name, MODELS["llama3-8b"].model.kv_heads
('Llama 3 8B', 8)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from groups.presets import PRESETS
from groups.tables import Rows, read_table

from .configs.reading import read_config
from .errors import refusal
from .kinds import Experts, LayerRun
from .model import ROUTER_GROUPS, Model
from .published import derived_options

Setting = bool | int | float | str
"""A value of a field of config.json."""

Settings = dict[str, Setting | tuple[Setting, ...] | dict[str, Setting]]


@dataclass(frozen=True)
class PublishedModel:
    """A published model, by its ``sizes`` or by the fields of its config.json; ``parameters`` is
    the number that its source states.

    ``weights`` is the format in which its weights are published, one of
    training.serving.weights.FORMATS.
    """

    name: str
    source: str
    parameters: int
    sizes: Model | None = None
    config: Settings | None = None
    weights: str = "bf16"
    presets: tuple[str, ...] = ()  # prefix of the ids of this model's published layouts

    @cached_property
    def model(self) -> Model:
        if self.sizes is not None:
            return self.sizes
        return without_unused(read_config(_listed(self.config or {})).model)

    @property
    def is_uniform(self) -> bool:
        """Whether sizes say it, of which each can be changed."""
        return self.sizes is not None


def _listed(config: Settings) -> dict[str, object]:
    """A configuration with lists as JSON has them; what a table says as runs of texts, "3 dense",
    is that many of them."""
    found: dict[str, object] = {}
    for name, value in config.items():
        if isinstance(value, tuple):
            found[name] = [*value]
        else:
            found[name] = _listed(value) if isinstance(value, dict) else value  # type: ignore[arg-type]
    return found


def without_unused(model: Model) -> Model:
    """The model without what published code holds for choices of a router that compute nothing
    (LongCat): no checkpoint has it."""
    layers = []
    for layer in model.stack:
        parts = tuple(
            replace(part, extra_into=0) if isinstance(part, Experts) else part
            for part in layer.feed_forwards
        )
        layers.append(replace(layer, feed_forwards=parts))
    if layers == [*model.stack]:
        return model
    return replace(model, runs=tuple(LayerRun(layer) for layer in layers))


@dataclass(frozen=True)
class PublishedOptions:
    """Training options from the source of the published layouts whose ids begin with
    ``presets``."""

    presets: str
    cluster: str | None = None
    precision: str | None = None
    products: str | None = None
    zero: int | None = None
    recompute: str | None = None
    flash: bool | None = None
    sequence_parallel: bool | None = None
    schedule: str | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    cp_algorithm: str | None = None
    dispatcher: str | None = None
    dispatch: str | None = None
    ep_overlap: bool | None = None


DEFAULTS = ("llama3-8b", "qwen3-30b-a3b")
"""The default models: without experts, and with experts."""


def model_like(*, layers: int | None = None, experts: int | None = None, ep: int = 1) -> str:
    """The id of the first model with these layers and experts, and a number of experts that ep
    divides; otherwise a default model.

    None does not restrict the search; without layers and experts, the defaults are tried first.

    >>> model_like(layers=126, experts=0), model_like(experts=256)
    ('llama3-405b', 'deepseek-v3')
    >>> model_like(), model_like(ep=8), model_like(ep=256), model_like(layers=32, ep=8)
    ('llama3-8b', 'qwen3-30b-a3b', 'deepseek-v3', 'mixtral-8x7b')
    """
    uniform = (name for name, row in MODELS.items() if row.is_uniform)
    for name in (*(DEFAULTS if layers is experts is None else ()), *uniform):
        model = MODELS[name].model
        is_alike = layers in (None, model.layers) and experts in (None, model.experts)
        if is_alike and (ep == 1 or model.experts) and model.experts % ep == 0:
            return name
    return DEFAULTS[ep > 1 or bool(experts)]


def variant(start: Model, changes: Mapping[str, object]) -> Model:
    """The model with changed values; sizes that ``start`` derives from other sizes are derived
    again.

    >>> wide = variant(MODELS["gpt3-175b"].model, {"hidden": 15360, "heads": 128})
    >>> wide.head_dim, wide.kv_heads, wide.ffn
    (120, 128, 61440)

    Errors: LayoutError about the invalid value.
    """
    if not changes:
        return start
    if start.runs:
        return _of_kinds(start, changes)
    follows: dict[str, int] = {}
    if "hidden" in changes or "heads" in changes:
        if start.head_dim * start.heads == start.hidden:
            follows["head_dim"] = 0
        if start.kv_heads == start.heads:
            follows["kv_heads"] = 0
        if start.ffn == 4 * start.hidden:
            follows["ffn"] = 0
    if changes.get("experts") == 0:
        follows |= dict.fromkeys(("top_k", "expert_ffn", "shared_expert_ffn", "dense_layers"), 0)
    experts = changes.get("experts", start.experts)
    is_whole = isinstance(experts, int) and experts and experts % (start.router_groups or 1) == 0
    if not is_whole:
        follows |= dict.fromkeys(ROUTER_GROUPS, 0)
    return replace(start, **{**follows, **changes})  # type: ignore[arg-type]


def model_of_config(config: str | Mapping[str, object]) -> Model:
    """The model of a config.json, its text or the object that it says.

    >>> sizes = {"hidden_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8}
    >>> sizes |= {"num_key_value_heads": 2, "intermediate_size": 3072, "vocab_size": 32000}
    >>> model_of_config({"model_type": "qwen3", **sizes, "head_dim": 128}).stack[0].name
    'attention/mlp'

    Errors: LayoutError for an architecture or a field that is not understood, by name.
    """
    return read_config(config).model


FREE = ("sequence", "vocabulary", "tied", "mtp_layers")
"""Fields of a model of several kinds of layers that can be changed: its kinds say the others."""


def _of_kinds(start: Model, changes: Mapping[str, object]) -> Model:
    """The model of several kinds of layers with changed values.

    Errors: LayoutError for a size that its kinds say, each for itself.
    """
    other = {name: value for name, value in changes.items() if getattr(start, name) != value}
    for name in other:
        if name not in FREE:
            raise refusal("kinds-say-sizes", name, {name: getattr(start, name)}, field=name)
    return replace(start, **other)  # type: ignore[arg-type]


# -- of published layouts ------------------------------------------------------------------------


def model_of_preset(preset: str) -> Model | None:
    """The model of a published layout; None if no source states its whole shape.

    >>> model_of_preset("megatron2021-fig16-91b").hidden
    15360
    >>> model_of_preset("folding-llama3-8x70b-mcore") is None
    True

    Errors: KeyError for a name outside of PRESETS.
    """
    name, changes = shape_of_preset(preset)
    return variant(MODELS[name].model, changes) if name else None


def shape_of_preset(preset: str) -> tuple[str, dict[str, int]]:
    """The model of a published layout: an id of MODELS, and the fields in which its source differs.

    If it is no known model, the result has only the stated fields, which need not make a model: for
    example, experts may be stated without the number of experts per token.

    >>> shape_of_preset("llama3-405b-3")
    ('llama3-405b', {'sequence': 131072})
    >>> name, changes = shape_of_preset("folding-llama3-8x70b-mcore")
    >>> name, changes["layers"], changes["experts"], "top_k" in changes
    ('', 80, 8, False)
    """
    shape = {FIELDS.get(name, name): size for name, size in PRESETS[preset].model.items()}
    name = next((name for name, model in MODELS.items() if preset.startswith(model.presets)), "")
    if preset.startswith("megatron2021-fig"):  # section 5 of the same paper
        shape = {"vocabulary": 51200, "sequence": 2048, **shape}
    start = MODELS[name].model if name else None
    changes = {
        field: size
        for field, size in shape.items()
        if field in SIZES and (start is None or getattr(start, field) != size)
    }
    if start and "experts" in changes and not (start.experts or "top_k" in changes):
        of_start = {
            field: getattr(start, field) for field in (*SIZES, "gated", "rms_norm", "biases")
        }
        return "", {**{field: size for field, size in of_start.items() if size}, **changes}
    return name, changes


def training_of_preset(preset: str) -> dict[str, bool | int | str]:
    """The training options that a published layout's source states or implies: fields of
    `training.recipe.Training`, and cluster, cp_algorithm, vpp and global_batch.

    >>> trained = training_of_preset("nemotron4-340b-1536")
    >>> trained["zero"], trained["schedule"], trained["vpp"]  # the last is derived
    (1, 'interleaved', 8)
    >>> training_of_preset("bloom-176b")["flash"], training_of_preset("playground-16")
    (False, {})
    """
    options: dict[str, bool | int | str] = {}
    options |= {option.field: _typed(option.value) for option in derived_options(preset)}
    for row in _options():
        if preset.startswith(row.presets):
            fields = {name: value for name, value in vars(row).items() if name != "presets"}
            options |= {name: value for name, value in fields.items() if value is not None}
    if preset.startswith(OLDER):
        options |= {"flash": False, "sequence_parallel": False}
    for system, cluster in _SYSTEMS.items():
        if f"-dgx-{system}-" in preset:
            options |= {"cluster": cluster} | ({"products": "fp8"} if system == "h100" else {})
    return options


def _typed(text: str) -> bool | int | str:
    return {"on": True, "off": False}.get(text, int(text) if text.isdigit() else text)


OLDER = ("megatron2021", "mtnlg", "bloom", "glm-130b", "opt-175b", "palm-540b")
"""Trained before FlashAttention (arXiv:2205.14135), and before sequence parallelism and a
recomputation of less than whole layers (both arXiv:2205.05198)."""

_SYSTEMS = {"h100": "dgx-h100", "gb200": "gb200-nvl72", "gb300": "gb300-nvl72"}
"""The clusters of Megatron-Bridge's layouts, by the name of the system in their ids."""

FIELDS = {
    **{"attention_heads": "heads", "ffn_hidden": "ffn", "vocab": "vocabulary", "seq": "sequence"},
    "routed_experts_per_token": "top_k",
}
"""Fields of a model that published layouts name differently."""

SIZES = (
    *("layers", "hidden", "heads", "kv_heads", "ffn", "vocabulary", "sequence"),
    *("experts", "top_k", "expert_ffn", "mtp_layers"),
)
"""Fields of a model that published layouts have."""


# -- the models ----------------------------------------------------------------------------------

MODELS: Mapping[str, PublishedModel] = Rows(
    lambda: read_table(Path(__file__).with_name("models.toml"), dict[str, PublishedModel])
)
"""Every model by its id, the most popular first."""


@cache
def _options() -> tuple[PublishedOptions, ...]:
    file = Path(__file__).with_name("published.toml")
    return read_table(file, dict[str, tuple[PublishedOptions, ...]])["options"]
