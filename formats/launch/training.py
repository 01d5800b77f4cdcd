"""How a model is trained: converts the words of launch files to training's own values, and back.

The values are those of `training.model.Model` and `training.recipe.Training`, under their
names. Beside them stand "model", one of MODELS or empty for a shape that nobody published, and
"first" and "last", the layers of the first and the last pipeline stage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from groups.errors import LayoutError
from groups.frameworks import framework_of
from groups.inputs import inputs_of
from groups.presets import PRESETS
from groups.stages.layout_strings import is_layout, parse_layout
from groups.tables import read_table
from training.model import ROUTER_GROUPS, Model
from training.models import MODELS, model_of_preset, shape_of_preset, training_of_preset
from training.pipeline.schedules import DEFAULT_VIRTUAL, SCHEDULES
from training.recipe import ALL_LINEAR, DISPATCHERS, MOMENTS, PRECISIONS, Training
from training.recompute import MODULES, OWN, WORDS, modules_in, modules_of, written
from training.serving.sglang import A2A
from training.sharding.words import ENGINES, RESHARDS, SYNCS, UNSAID

from ..values import Document, Facts
from . import flags
from .counts import dense_first
from .flags import MODEL, PLACEHOLDERS, TABLES, by_word, named_format, published_model
from .items import Parsed
from .kinds import config_of, layout_of

# -- what a text says ----------------------------------------------------------------------------


def training_of(text: Parsed) -> Document:
    """The model's shape, beside layers and experts, and the training that a text sets.

    >>> from formats.launch import parse
    >>> training_of(parse("--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --bf16"))
    {'model': 'llama3-70b', 'hidden': 8192, 'heads': 64, 'precision': 'bf16-fp32'}
    """
    values: Document = {**text.assumed, **text.values, **text.training}
    found: Document = {}
    named = _named(values)
    items = (*text.unresolved, *text.ignored)
    if named is None and any(item.sets == "named" for item in items):
        named = ""  # it has a model, and does not work out which
    is_megatron = text.framework is not None and text.framework.job.startswith("megatron")
    config = config_of(values) if is_megatron and not named else ""
    if config:
        found |= {"model": "", "config": config}
    elif named is not None or not {"hidden", "heads"}.isdisjoint(values):
        found |= _shape(values, text.framework.job if text.framework else "", named or "")
    found |= {field: values[name] for name, field in NUMBERS.items() if name in values}
    for row in SAYS:
        if row.holds(values):
            found |= row.says
    layers = _counted(values.get("layers"))
    dense = dense_first(str(values.get("moe_freq", "")), layers if isinstance(layers, int) else 0)
    if dense is not None and "moe_freq" in values:
        found["dense_layers"] = dense
    if "first_dense" in values:
        found["dense_layers"] = values["first_dense"]
    if "shared_experts" in values and "expert_ffn" in values:
        found["shared_expert_ffn"] = values["shared_experts"] * values["expert_ffn"]
    if values.get("shares") is False:
        found["shared_expert_ffn"] = 0
    stage = unsaid_stage(str(values.get("zero_named", "")))
    if stage is not None and not any(
        row.holds(values) for row in SAYS if row.field == "zero_named"
    ):
        found["zero"] = stage
    if "distributed_optimizer" in values:
        found["zero"] = found.get("zero") or int(values["distributed_optimizer"])
    if found.get("lora_rank"):
        found["lora_targets"] = values.get("lora_targets", ALL_LINEAR)
    else:
        found.pop("frozen", None)
    engine = framework_of(text.framework.job).engine if text.framework else ""
    if found.get("engine", engine) == "zero" and found.get("precision") == "bf16-fp32":
        found["precision"] = "bf16-bf16"  # as it sums gradients, if it is not told another format
        if "main_grads" in values:
            found["precision"] = f"bf16-{values['main_grads']}"
    found |= _moments(values, str(found.get("precision", "bf16-fp32")))
    found |= _dispatched(values)
    found |= _recomputed(values) | _offloaded(values, found.get("zero") or None)
    if values.get("fp8"):
        found["products"] = "mxfp8" if values.get("fp8_recipe") == "mxfp8" else "fp8"
    if config:  # which says all sizes
        found = {name: value for name, value in found.items() if name not in OF_MODEL}
        if layout := layout_of(values):
            found["pipe_layout"] = layout
    return found


OF_MODEL = frozenset(inputs_of(Model))
"""Fields of a model."""


def served_of(text: Parsed) -> Document:
    """How the server of a text serves its model, in the fields of the page's memory; empty where it
    is silent. The format of the weights is the command's, else that in the checkpoint's name. Empty
    for a text without a server.

    >>> from formats.launch import parse
    >>> text = "vllm serve Qwen/Qwen3-235B-A22B-FP8 --max-model-len 8k --kv-cache-dtype fp8"
    >>> {name: value for name, value in served_of(parse(text)).items() if value}
    {'served_weights': 'fp8', 'served_cache': 'fp8', 'served_length': 8000}
    """
    if text.framework is None or not framework_of(text.framework.job).serves:
        return {}
    served = {name: text.serving.get(name, "") for name in flags.SERVED}
    named = named_format(str(text.training.get("named", "")))
    served["served_a2a"] = served["served_a2a"] if served["served_a2a"] in A2A else ""
    name = str(text.training.get("named", ""))
    is_online = served["served_weights"] == "fp8" and not named and published_model(name)
    if is_online and MODELS[published_model(name)].weights != "fp8":
        served["served_weights"] = "fp8_plain"  # of a checkpoint that has no blocks
    if not served["served_weights"] or (served["served_weights"], named) == ("int4", "int8"):
        served["served_weights"] = named
    return served | {"served_guesses": "on" if _guesses(text) else ""}


def _guesses(text: Parsed) -> bool:
    """Whether the server decodes by guessing, which is not counted in its memory: of such a server
    no speed is told.

    >>> from formats.launch import parse
    >>> _guesses(parse("vllm serve m -tp 4 --speculative-config ngram"))
    True
    """
    names = (item.name.lstrip("-").replace("_", "-") for item in text.unresolved)
    return any(name.startswith("speculative-") for name in names)


def _named(values: Facts) -> str | None:
    """The published model that a text names, empty for any other; None if it names none.

    >>> _named({"named": "meta-llama/Llama-3.1-70B-Instruct"}), _named({"named": "org/other-7b"})
    ('llama3-70b', '')
    >>> _named({"family": "llama3", "flavor": "405B"}), _named({"family": "llama3"})
    ('llama3-405b', None)
    """
    name = str(
        values.get("named")
        or (values.get("flavor") and f"{values.get('family', '')}{values['flavor']}")
        or ""
    )
    return None if name in ("", *PLACEHOLDERS) else published_model(name)


def _shape(values: Document, framework: str, named: str) -> Document:
    """The published model that no size in the text contradicts; else none, with Megatron's defaults
    that its options do not change. For a named model, the fields that differ."""
    sizes = {name: values[name] for name in SHAPE if name in values}
    if "layers" in sizes:
        sizes["layers"] = _counted(sizes["layers"])
    if named and sizes.items() <= vars(MODELS[named].model).items():
        return {"model": named}
    sizes = {"experts": 0, **sizes}
    if not {"layers", "hidden", "heads"} <= sizes.keys():
        return {"model": ""}
    is_megatron = framework.startswith("megatron")
    if is_megatron:
        wide = {} if sizes.get("gated") else {"ffn": 4 * sizes["hidden"], "gated": False}
        sizes = {"kv_heads": sizes["heads"], **wide, **sizes}
    uniform = ((name, row) for name, row in MODELS.items() if row.is_uniform)
    for name, published in uniform:
        if sizes.items() <= vars(published.model).items():
            is_free = (
                is_megatron and published.model.router_groups and "router_groups" not in values
            )
            return {"model": name, **(dict.fromkeys(ROUTER_GROUPS, 0) if is_free else {})}
    return {"model": "", **(MEGATRONS if is_megatron else {})}


SHAPE = (
    *("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "gated", "experts"),
    *("top_k", "expert_ffn", "shared_expert_ffn", "q_lora_rank", "kv_lora_rank"),
)
"""Fields of a text that must equal the published model's."""

MEGATRONS = {"tied": True, "biases": "all", "learned_positions": True}
"""What a model has whose script is silent (NVIDIA/Megatron-LM d98e8a6, arguments.py), beside an
MLP of 4 x hidden, not gated, and as many heads of keys as of queries."""


def unsaid_stage(name: str) -> int | None:
    """The stage of ZeRO in the name of a file that is not here; None where it has none.

    >>> unsaid_stage("configs/ds_config_zero3.json"), unsaid_stage("ds_z2.json")
    (3, 2)
    >>> unsaid_stage("ds.json")
    """
    stage = re.search(r"(?:zero|stage|z)[_-]?([0-3])(?![0-9])", name.lower().rsplit("/", 1)[-1])
    return int(stage[1]) if stage else None


def _moments(values: Document, precision: str) -> Document:
    """The formats of Megatron's precision-aware optimizer, where all of them are among PRECISIONS:
    of gradients that it reads, and of Adam's moments.

    >>> names = ("main_grads", "first_moment", "second_moment")
    >>> _moments(dict.fromkeys(names, "bf16"), "bf16-fp32")
    {'precision': 'bf16-bf16-bf16'}
    """
    names = [str(values.get(name, "fp32")) for name in ("first_moment", "second_moment")]
    weights, gradients, *_ = precision.split("-")
    gradients = str(values.get("main_grads", gradients))
    if {"main_grads", "first_moment", "second_moment"}.isdisjoint(values) or len({*names}) > 1:
        return {}
    moments = "" if names[0] == "fp32" else f"-{names[0]}"
    found = f"{weights}-{gradients}{moments}"
    return {"precision": found} if found in PRECISIONS else {}


def _recomputed(values: Document) -> dict[str, str]:
    """What is recomputed, by its newest option or an older one; only modules of
    `training.recompute.MODULES`.

    >>> _recomputed({"recompute": "selective", "recompute_modules": "moe_act layernorm"})
    {'recompute': 'moe_act,layernorm'}
    """
    word = "none" if values.get("recompute") is False else values.get("recompute")
    if word not in WORDS:
        word = "full" if values.get("recompute_whole") is True else ""
        word = word or ("selective" if values.get("recompute_core") is True else "")
        word = word or ("none" if values.get("recompute_whole") is False else "")
    if word == "full":
        return {"recompute": word}
    named = str(values.get("recompute_modules", "core_attn")).replace(",", " ").split()
    modules = {*named} & {*MODULES} if word == "selective" else set()
    modules |= {"moe"} if values.get("recompute_moe") is True else set()
    return {"recompute": written(modules)} if word or modules else {}


def _dispatched(values: Document) -> dict[str, str]:
    """How tokens reach experts, by Megatron's two options or the older switch.

    Source: NVIDIA/Megatron-LM d98e8a6 core/transformer/transformer_config.py: flex is DeepEP where
    no backend is named.
    """
    if values.get("deepep") is True:
        return {"dispatcher": "deepep"}
    if values.get("dispatcher_type") == "flex":
        backend = str(values.get("dispatcher_backend", "deepep"))
        return {"dispatcher": backend} if backend in DISPATCHERS else {}
    return {"dispatcher": "alltoall"} if values.get("dispatcher_type") == "alltoall" else {}


def _offloaded(values: Document, zero: int | None) -> Document:
    """What a text puts into host memory: for DeepSpeed, torchtitan, and Megatron's whole state."""
    away = (True, "cpu")
    if values.get("offload_param") in away:
        return {"offload": "parameters", "zero": 3 if zero is None else zero}
    is_whole = str(values.get("offload_fraction", "1.0")) in ("1", "1.0")
    if values.get("offload_optimizer") in away or (values.get("offload") is True and is_whole):
        return {"offload": "optimizer", "zero": 1 if zero is None else zero}
    return {}


NUMBERS = {name: name for name in flags.WORDS.numbers} | by_word(flags.WORDS.renamed)
"""Training's names of numbers in launch files."""


@dataclass(frozen=True)
class Says:
    """The training values that a field of launch files sets if it is one of these words."""

    field: str
    words: tuple[str, ...]
    says: Mapping[str, bool | int | str]

    def holds(self, values: Facts) -> bool:
        """Whether the field is one of the words, or one of its words is."""
        said = str(values.get(self.field, "")).lower()
        return said in self.words or not {*said.split()}.isdisjoint(self.words)


@dataclass(frozen=True)
class TrainingFile:
    says: tuple[Says, ...]


SWITCHES = flags.WORDS.switches
"""Switches of launch files that training calls by the same name."""

SAYS = (
    *(Says(name, (str(on).lower(),), {name: on}) for name in SWITCHES for on in (True, False)),
    *read_table(TABLES / "training.toml", TrainingFile).says,
)
"""The switches and the rows of training.toml; a later one overrides."""

USED = {
    **NUMBERS,
    **{row.field: name for row in SAYS for name in row.says},
    **by_word(flags.WORDS.counts_for),
}
"""The training value that a field of launch files sets; other fields are read and not used."""


# -- what is written -----------------------------------------------------------------------------


def options_of(shape: Model | Facts, fields: Facts, pp: int) -> Document:
    """A model and its training as the fields MODEL and TRAINING of `flags`, for `emit`.

    shape: a model, or those of its sizes that are known. fields: the fields of MODEL and of a
    Training that are set; all others keep the framework's default. pp: the number of pipeline
    stages, from which interleaved schedules take their number of chunks.

    >>> options_of({}, {"zero": 1, "precision": "fp16-fp16", "schedule": "interleaved"}, 4)
    {'vpp': 2, 'fp16': True, 'mixed': 'fp16_mixed', 'zero': 1, 'distributed_optimizer': True}
    """
    options = _whole_shape(shape) if isinstance(shape, Model) else _sizes(shape)
    options |= {name: fields[name] for name in MODEL if name in fields}
    rule = SCHEDULES.get(fields.get("schedule", ""))
    if rule and rule.v is None and pp > 1:
        options.setdefault("vpp", DEFAULT_VIRTUAL)
    if options.get("vpp", 1) == 1:  # groups are of chunks
        options.pop("group_size", None)
    for name, values in WRITTEN.items():
        options |= values.get(fields.get(name), {})
    options |= _recomputing(fields.get("recompute", ""), shape)
    if "products" in fields and not options.get("bf16"):  # whose name says the weights are
        options.pop("mixed", None)
    if "zero" in fields:
        options |= {"zero": fields["zero"], "distributed_optimizer": fields["zero"] == 1}
    return options


def _recomputing(recompute: str, shape: Model | Facts) -> Document:
    """Fields of a recomputation: only modules of the model, for Megatron refuses others; for
    DeepSeek-V3's own, the most similar ones, and which they are.

    >>> _recomputing("mla_up_proj,norms", {})["recompute_modules"]
    ('layernorm', 'mla_up_proj')
    >>> _recomputing("mla_up_proj", MODELS["llama3-8b"].model)
    {}
    """
    if recompute == "full":
        return {"recompute": "full", "recompute_method": "uniform", "recompute_layers": 1}
    modules = modules_of(recompute) if recompute else frozenset[str]()
    own = tuple(name for name in OWN if name in modules)
    named = {OWN.get(name, name) for name in modules}
    if isinstance(shape, Model):
        named &= modules_in(shape, MODULES)
    if not named:
        return {"recompute_own": own} if own else {}
    found: Document = {"recompute": "selective"}
    if named != {"core_attn"}:
        found["recompute_modules"] = tuple(name for name in MODULES if name in named)
    if "moe_act" in named:
        found["grouped_gemm"] = True
    return found | ({"recompute_own": own} if own else {})


def _sizes(shape: Facts) -> Document:
    names = {**NUMBERS, "layers": "layers", "experts": "experts"}
    options = {name: shape[field] for name, field in names.items() if shape.get(field)}
    if shape.get("gated"):
        options["gated"] = True
    if shape.get("rms_norm"):
        options["norm"] = "RMSNorm"
    if shape.get("biases") == "none":
        options["linear_biases"] = False
    if shape.get("kv_heads") not in (None, 0, shape.get("heads")):
        options["grouped"] = True
    return options


def _whole_shape(model: Model) -> Document:
    """All sizes of a model, including those that follow from others, and other options about it;
    of several kinds of layers, which no options say, how many there are and which."""
    if model.runs:
        return {"layers": model.layers, "kinds": model.runs, "seq": model.sequence}
    options = _sizes(vars(model)) | {"tied": model.tied, "gated": model.gated}
    options |= {"linear_biases": model.biases == "all", "qkv_biases": model.biases == "qkv"}
    options |= {"qk_norm": True} if model.qk_norm else {}
    if model.dense_layers:
        options["moe_freq"] = f"([0]*{model.dense_layers}+[1]*{model.layers - model.dense_layers})"
    options["latent" if model.is_mla else "grouped"] = True
    if model.is_mla or model.kv_heads == model.heads:
        options = {
            name: value for name, value in options.items() if name not in ("kv_heads", "grouped")
        }
    if model.is_mla or model.head_dim * model.heads == model.hidden:
        options.pop("head_dim", None)
    if not model.learned_positions and model.biases != "all":  # BLOOM's are neither
        options["positions"] = "rope"
    return options


def counted_with(tp: int, experts: int = 0, engine: str = "megatron") -> Document:
    """The training defaults of every view, which a command must set, as Megatron's own defaults
    differ (`UNSAID`).

    >>> counted_with(tp=1)
    {'precision': 'bf16-fp32', 'zero': 1, 'recompute': 'selective'}
    >>> counted_with(tp=1, engine="fsdp2")["zero"]
    3
    >>> [*counted_with(tp=2, experts=8)][3:]
    ['sequence_parallel', 'dispatcher']
    """
    names = ["precision", "zero", "recompute", *(["sequence_parallel"] if tp > 1 else [])]
    names += ["dispatcher"] if experts else []  # Megatron's own is allgather
    counted: Document = {name: getattr(Training(), name) for name in names}
    counted["zero"], counted["precision"] = UNSAID[engine]
    return counted


def _counted(layers: Any) -> Any:
    """The decoder layers of a pipeline layout; other values unchanged."""
    if is_layout(layers):
        with suppress(LayoutError):
            return sum(stage.count("decoder") for stage in parse_layout(str(layers)))
    return layers


def is_model(model: Model, options: Facts) -> bool:
    """Whether options describe this model: the sizes in NAMED_BY, and all others set, agree.

    >>> mixtral = MODELS["mixtral-8x7b"].model
    >>> options = options_of(mixtral, {}, 1)
    >>> is_model(mixtral, options), is_model(MODELS["llama3-8b"].model, options)
    (True, False)
    """
    own, theirs = _whole_shape(model), {**options, "layers": _counted(options.get("layers"))}
    named = {*NUMBERS, "gated", "latent", "norm"} & options.keys()
    sizes = {*NAMED_BY, *named} - {"seq", "zero", "first", "last", "mtp"}
    return all((own.get(name) or None) == (theirs.get(name) or None) for name in sizes)


NAMED_BY = ("layers", "hidden", "ffn", "heads", "kv_heads", "experts", "kinds")
"""Sizes without which options do not identify a model."""


def options_of_preset(name: str, pp: int) -> Document:
    """The options of a published layout: from its sources, else the views' defaults.

    Errors: KeyError for a name outside of PRESETS.
    """
    published, model = PRESETS[name].model, model_of_preset(name)
    shape = shape_of_preset(name)[1] if model is None else model
    batch = {field: published[field] for field in MODEL if field in published}
    fields = {**batch, **training_of_preset(name)}
    if model is not None:
        engine = framework_of(PRESETS[name].framework).engine
        fields = {**counted_with(PRESETS[name].tp, model.experts, engine), **fields}
    if published.get("account_for_embedding"):
        fields["account"] = True
    return options_of(shape, fields, pp)


MEGATRONS_SCHEDULES = ("1f1b", "interleaved")
"""The schedules that Megatron selects by virtual stages alone."""

WRITTEN: dict[str, dict[Any, Document]] = {
    "precision": {name: {"bf16": True, "formats": name} for name in PRECISIONS}
    | {"bf16-fp32": {"bf16": True, "mixed": "bf16_mixed"}}
    | {"bf16-bf16": {"bf16": True, "mixed": "bf16_mixed", "grad_reduce_in_bf16": True}}
    | {"fp16-fp16": {"fp16": True, "mixed": "fp16_mixed"}}
    | {"fp32-fp32": {"fp32": True, "mixed_param": "float32"}},
    "products": {
        "fp8": {
            "fp8": "hybrid",
            "fp8_recipe": "tensorwise",
            "mixed": "bf16_with_fp8_current_scaling_mixed",
        },
        "mxfp8": {"fp8": "e4m3", "fp8_recipe": "mxfp8", "mixed": "bf16_with_mxfp8_mixed"},
        "nvfp4": {"products": "nvfp4", "mixed": "bf16_with_nvfp4_mixed"},
    },
    "schedule": {name: {"schedule": name} for name in SCHEDULES if name not in MEGATRONS_SCHEDULES},
    **{name: {True: {name: True}} for name in SWITCHES},
    "dispatcher": {"alltoall": {"dispatcher_type": "alltoall"}}
    | {name: {"dispatcher_type": "flex", "dispatcher_backend": name} for name in DISPATCHERS[1:]},
    "dispatch": {"fp8": {"dispatch": "fp8"}},
    **{
        name: {word: {name: word} for word in words}
        for name, words in (
            *(("engine", ENGINES), ("reshard", RESHARDS), ("sync", SYNCS)),
            ("optimizer", MOMENTS),
        )
    },
}
"""The fields of launch files for values of a Training; formats, products and schedule name values
that they cannot express."""
