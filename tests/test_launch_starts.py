"""What is written starts: Megatron's own checks are run on it, and it trains what the page counts.

The options, their types and choices are those of Megatron-LM d98e8a6 (tests/data/
megatron_options.csv); the configuration, and the layers that each rank builds, are megatron-core's.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import itertools
import os
import shlex
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cases import every

from formats.launch import TARGETS, emit, parse
from formats.launch.emit import emitted
from formats.launch.training import options_of, options_of_preset
from groups.layout import Job
from groups.presets import PRESETS
from request.context import Context
from request.named.launch import options_of_page, pasted_changes
from request.state import State
from training.models import MODELS, model_of_preset
from training.recompute import MODULES, written
from training.search import search
from training.split import held_by_ranks
from views.search.view import changes_to

OPTIONS = Path(__file__).parent / "data" / "megatron_options.csv"
TYPES = {"int": int, "float": float}
COUNTS = {"+": "+", "*": "*", "3": 3}


@pytest.fixture(scope="session")
def parser() -> argparse.ArgumentParser:
    """One that knows what Megatron-LM's does: an option that it has not, or a wrong value, ends."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    lines = [line for line in OPTIONS.read_text("utf-8").splitlines() if line[0] != "#"]
    for row in csv.DictReader(lines):
        if row["action"] == "Store":
            kind = {"type": TYPES.get(row["type"], str), "choices": row["choices"].split() or None}
            kind["nargs"] = COUNTS.get(row["nargs"])
            parser.add_argument(row["option"], dest=row["sets"], **kind)
        else:
            is_on = row["action"] != "StoreFalse"
            action = "store_true" if is_on else "store_false"
            parser.add_argument(row["option"], dest=row["sets"], action=action)
    return parser


@pytest.fixture(scope="session")
def megatron() -> SimpleNamespace:
    """megatron-core's configurations, and which layers a rank builds; with a Transformer Engine."""
    names = ("transformer_config", "transformer_block", "enums")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config, block, enums = (
                importlib.import_module(f"megatron.core.transformer.{name}") for name in names
            )
            torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        if os.environ.get("REQUIRE_TORCH") == "1":
            pytest.fail("torch or megatron-core is missing, and REQUIRE_TORCH=1")
        pytest.skip("needs torch and megatron-core")
    config.is_te_min_version = lambda *_, **__: True
    return SimpleNamespace(config=config, block=block, enums=enums, torch=torch)


def words_of(command: str) -> list[str]:
    lines = [line.rstrip("\\") for line in command.splitlines() if line[0] != "#"]
    return shlex.split(" ".join(lines))


RENAMED = {
    "num_experts": "num_moe_experts",
    "decoder_first_pipeline_num_layers": "num_layers_in_first_pipeline_stage",
    "decoder_last_pipeline_num_layers": "num_layers_in_last_pipeline_stage",
    "swiglu": "gated_linear_unit",
    "num_virtual_stages_per_pipeline_rank": "virtual_pipeline_model_parallel_size",
}
"""Options whose field of the configuration has another name (core_transformer_config_from_args)."""

NEEDED = ("num_layers", "hidden_size", "num_attention_heads", "max_position_embeddings")


def configured(megatron: SimpleNamespace, said: argparse.Namespace) -> Any:
    """What Megatron-LM makes of its options; it raises where they cannot be."""
    assert said.micro_batch_size  # validate_args
    assert all(getattr(said, name) for name in NEEDED)
    assert said.max_position_embeddings >= said.seq_length
    fields = {RENAMED.get(name, name): value for name, value in vars(said).items() if value}
    kind = "MLATransformerConfig" if said.multi_latent_attention else "TransformerConfig"
    config = getattr(megatron.config, kind)
    known = {name: fields[name] for name in fields if name in config.__dataclass_fields__}
    known.pop("apply_rope_fusion", None)  # a kernel of Transformer Engine
    known |= {"add_bias_linear": said.add_bias_linear, "gated_linear_unit": bool(said.swiglu)}
    known["add_qkv_bias"] = bool(said.add_qkv_bias)
    if said.moe_layer_freq:
        known["moe_layer_freq"] = eval(said.moe_layer_freq, {})  # as moe_freq_type does
    if said.normalization is None:
        known.pop("normalization", None)
    dtype = "bfloat16" if said.bf16 else "float16" if said.fp16 else "float32"
    known["pipeline_dtype"] = getattr(megatron.torch, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return config(**known)


def built(megatron: SimpleNamespace, config: Any) -> list[int]:
    """Layers that each rank of the pipeline builds."""
    if layout := config.pipeline_model_parallel_layout:
        decoder = megatron.enums.LayerType.decoder
        return [sum(chunk.count(decoder) for chunk in rank) for rank in layout.layout]
    chunks = config.virtual_pipeline_model_parallel_size
    stages = [None] if chunks is None else range(chunks)
    build = megatron.block.get_num_layers_to_build
    return [
        sum(build(config, vp_stage=stage, pp_rank=rank) for stage in stages)
        for rank in range(config.pipeline_model_parallel_size)
    ]


def required(megatron: SimpleNamespace, said: argparse.Namespace) -> None:
    """Raises where the options cannot be."""
    config = configured(megatron, said)
    assert sum(built(megatron, config)) == config.num_layers
    ep = said.expert_model_parallel_size or 1
    assert ep == 1 or (said.num_experts and said.num_experts % ep == 0)  # validate_args


def job_of(key: str) -> Job:
    one = PRESETS[key]
    names = ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp", "framework")
    return Job(**{name: getattr(one, name) for name in names})


WHOLE = [key for key in PRESETS if key not in ("playground-16", "llama3-405b-3")]
"""Published layouts that say a shape, and whose order Megatron has."""


@every("key", WHOLE)
def test_megatron_takes_the_command_of_every_published_layout(key, parser, megatron):
    command = emit(job_of(key), options_of_preset(key, PRESETS[key].pp))
    assert "does not start" not in command
    words = words_of(command)
    model = model_of_preset(key)
    if model is not None and model.runs:  # several kinds of layers, of which no option says all
        assert "# to fill in: --hidden-size" in command
        return
    options = words[words.index("pretrain_gpt.py") + 1 :]
    config = configured(megatron, parser.parse_args(options))
    assert sum(built(megatron, config)) == config.num_layers
    cuts = PRESETS[key].tp * PRESETS[key].cp > 1
    assert (words[0] == "CUDA_DEVICE_MAX_CONNECTIONS=1") == cuts  # before Blackwell it is asserted


JOBS = (
    # a model, a cluster, its nodes, their GPUs and a batch; stages divide the layers of few
    ("llama3-8b", "dgx-h200", 1, 8, 64),
    ("llama3-8b", "dgx-h100", 2, 8, 128),
    ("llama3-8b", "dgx-a100", 4, 8, 256),
    ("llama3-70b", "dgx-h100", 8, 8, 512),
    ("llama3-70b", "dgx-a100-40gb", 16, 8, 512),
    ("llama3-405b", "dgx-h100", 64, 8, 1024),
    ("llama3-405b", "gb200-nvl72", 32, 4, 512),
    ("nemotron4-340b", "dgx-h100", 96, 8, 768),
    ("gpt3-175b", "dgx-a100", 48, 8, 1536),
    ("bloom-176b", "dgx-a100", 48, 8, 1920),
    ("mixtral-8x7b", "dgx-h100", 8, 8, 256),
    ("mixtral-8x22b", "dgx-h100", 16, 8, 256),
    ("qwen3-30b-a3b", "dgx-h100", 4, 8, 512),
    ("qwen3-235b-a22b", "dgx-h100", 32, 8, 2048),
    ("qwen3-235b-a22b", "gb300-nvl72", 16, 4, 1024),
    ("deepseek-v3", "gb200-nvl72", 64, 4, 2048),
    ("deepseek-v3", "dgx-h100", 128, 8, 15360),
    ("deepseek-v3", "hgx-h800", 256, 8, 16384),
    ("kimi-k2", "dgx-h100", 128, 8, 4096),
    ("kimi-k2", "dgx-b200", 32, 8, 2048),
)

EFFECT = ("micro_batch", "micro_batches", "zero", "recompute", "products", "precision", "schedule")


def trained_as(context: Context) -> dict[str, Any]:
    """All that decides what is computed, and where."""
    split, training = context.trained.split, context.trained.training
    said = {name: getattr(training, name) for name in EFFECT}
    said["sequence_parallel"] = training.sequence_parallel or split.tp == 1
    said["group"] = (training.group_size or split.pp) if training.rule.grouped else None
    sizes = ("tp", "cp", "pp", "dp", "ep", "etp", "edp", "vpp")
    said |= {name: getattr(split, name) for name in sizes}
    return said | {"held": held_by_ranks(context.trained.model, split.dealing)}


@every("name, cluster, nodes, gpus, batch", JOBS)
def test_megatron_takes_better_layouts_and_trains_as_they_are_counted(
    name, cluster, nodes, gpus, batch, parser, megatron
):
    start = State(model=name, cluster=cluster, nodes=nodes, gpus_per_node=gpus, tp=4, pp=1)
    start = start.changed({"global_batch": str(batch)})
    context = Context.of(start)
    for estimate in search(context.trained.job(context.layout)).best[:5]:
        opened = Context.of(start.changed(changes_to(estimate, context.state)))
        command = emitted(opened.layout, options_of_page(opened.layout, opened.state), "megatron")
        assert "does not start" not in command
        words = words_of(command)
        said = parser.parse_args(words[words.index("pretrain_gpt.py") + 1 :])
        layers = [
            held.layers
            for held in held_by_ranks(opened.trained.model, estimate.request.split.dealing)
        ]
        assert built(megatron, configured(megatron, said)) == layers
        again = State().changed({**pasted_changes(State(), parse(command)), "cluster": cluster})
        assert trained_as(Context.of(again)) == trained_as(opened)


def test_megatron_takes_every_set_of_modules_that_is_computed_again(parser, megatron):
    """With 8-bit products too; and it has no others."""
    job = Job(nodes=2, ep=2)
    shape = MODELS["deepseek-v3"].model
    for count in (1, 2, 6, 7):
        for modules in itertools.combinations(MODULES, count):
            said = {"recompute": written(modules), "products": "fp8", "precision": "bf16-fp32"}
            words = words_of(emit(job, options_of(shape, said, 1)))
            options = parser.parse_args(words[words.index("pretrain_gpt.py") + 1 :])
            assert {*configured(megatron, options).recompute_modules} == {*modules}
    options.recompute_modules = ["norms"]
    with pytest.raises(AssertionError, match="Invalid choices for recompute_modules"):
        configured(megatron, options)


def test_megatron_stops_at_what_the_first_line_names(parser, megatron):
    """Each of these is written, and what is wrong stands above it."""
    whole = {"hidden": 1024, "heads": 16, "seq": 1024, "micro_batch": 1}
    moe = {**whole, "experts": 8, "top_k": 2}
    cases = [
        (Job(2, tp=4), {"heads": 30, "hidden": 960}, "heads 30 is not a multiple of tp 4"),
        (
            Job(2, pp=4),
            {"first": 3, "last": 9, "layers": 13},
            "1 layer over 2 stages is not a whole number each",
        ),
        (Job(2, pp=8), {"layers": 4}, "4 layers are too few for 8 stages"),
        (Job(2, pp=4), {"layers": "Et|t|t|L", "mtp": 1}, "0 layers of multi-token prediction"),
        (Job(2, tp=2, ep=4), {**moe, "etp": 2}, "experts with biases take etp 1, not 2"),
        (Job(3, ep=3), moe, "experts 8 is not a multiple of ep 3"),
        (Job(2, ep=2), {}, "ep 2 spreads experts, and the model has none"),
    ]
    for job, changes, why in cases:
        command = emit(job, {"layers": 16, **whole, **changes})
        first = command.splitlines()[0]
        assert first.startswith("# Megatron-LM does not start so: "), command
        assert why in first
        words = words_of(command)
        said = parser.parse_args(words[words.index("pretrain_gpt.py") + 1 :])
        with pytest.raises((ValueError, AssertionError)):
            required(megatron, said)


def test_a_batch_that_is_no_whole_number_of_micro_batches_is_named():
    whole = {"hidden": 1024, "heads": 16, "seq": 1024, "layers": 16}
    for job, batch, why in (
        (
            Job(2, tp=4),
            {"global_batch": 9},
            "global_batch 9 is not a multiple of micro_batch 1 x dp 4",
        ),
        (Job(2, pp=4), {"global_batch": 8, "vpp": 2}, "Interleaved"),
        (Job(2, tp=2), {"experts": 8, "sequence_parallel": False}, "sequence parallelism"),
    ):
        first = emit(job, {**whole, **batch}).splitlines()[0]
        assert "does not start so" in first
        assert why.lower() in first.lower()


def test_what_other_programs_stop_at_is_named():
    """Of torchtitan's trainer and of vLLM's ParallelConfig, whose sources are in starts.py."""
    for target, job, model, why in (
        (
            "torchtitan-main",
            Job(3, tp=12),
            {"seq": 2048},
            "sequence 2048 is not a multiple of tp 12",
        ),
        ("torchtitan-toml", Job(2, cp=4), {"seq": 2044}, "not a multiple of tp 1 x 2 x cp 8 = 8"),
        ("vllm", Job(2, tp=2, cp=2, framework="vllm"), {}, "cp 2) does not go with dp 4"),
        ("sglang", Job(1, tp=8, framework="vllm"), {"heads": 28}, "28 is not a multiple of tp 8"),
    ):
        first = emit(job, model, target).splitlines()[0]
        assert "does not start so" in first
        assert why in first
        assert "does not start" not in emit(replace(job, tp=1, cp=1), model, target)


def test_experts_over_tp_are_written_with_sequence_parallelism():
    """Megatron's MoELayer raises without it."""
    model = {"hidden": 1024, "heads": 16, "layers": 16, "seq": 1024, "experts": 8}
    assert "  --sequence-parallel" in emit(Job(2, tp=2, etp=1), {**model, "linear_biases": False})
    assert "--sequence-parallel" not in emit(Job(2, ep=2), {**model, "linear_biases": False})


@every("name", [name for name, target in TARGETS.items() if target.models])
def test_a_configuration_is_named_for_the_very_model_only(name):
    """Mixtral has the widths of Llama 3, and experts; else the place says what to fill in."""
    named = {*TARGETS[name].models}
    for key, published in MODELS.items():
        command = emit(Job(nodes=2, tp=2), options_of(published.model, {}, 1), name)
        is_named = "# to fill in: " not in command
        assert is_named == (key in named), (key, command)
        if not is_named:
            assert f"layers {published.model.layers}" in command.split("to fill in: ")[1]


def test_fp8_is_written_with_its_scaling():
    """Without a recipe it is delayed, which recomputing norms does not go with."""
    for key in PRESETS:
        if model_of_preset(key) is None or key == "llama3-405b-3":
            continue
        command = emit(job_of(key), options_of_preset(key, PRESETS[key].pp))
        assert ("--fp8-format" in command) == ("--fp8-recipe" in command)


def test_a_micro_batch_is_always_written():
    for target in ("megatron", "nemo", "megatron-deepspeed", "megatron-deepspeed-bloom"):
        for model in ({}, {"global_batch": 64}, {"micro_batch": 2}):
            words = words_of(emit(Job(2), model, target).replace("=", " ").replace("_", "-"))
            at = next(at for at, word in enumerate(words) if word.endswith("micro-batch-size"))
            assert words[at + 1] == str(model.get("micro_batch", 1))
    text = emit(Job(2), {"global_batch": 64}, "torchtitan")  # whose own micro-batch is another
    assert "--training.local_batch_size=1" in text
