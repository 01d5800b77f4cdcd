"""Models from their config.json, against what transformers builds of them on the meta device.

tests/data/models/params.jsonl: 121 configurations of 69 architectures, with transformers 5.24.0
(runs of equal layers as [parameters, how many]).
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from cli.command import run
from groups.errors import LayoutError
from training.configs.reading import read_config
from training.facts import config_facts
from training.models import model_of_config

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("data").joinpath("models/params.jsonl").open()
]
BY_ID = {row["id"]: row for row in ROWS}


def spread(runs):
    return [size for size, number in runs or () for _ in range(number)]


@pytest.mark.parametrize("name", BY_ID)
def test_every_layer_has_the_parameters_that_transformers_builds(name):
    row = BY_ID[name]
    counted, expected = config_facts(read_config(row["config"]))["parameters"], row["expected"]
    assert counted["all"] == expected["parameters"]
    assert counted["language"] == expected["language"]
    assert counted["outside_layers"] == expected["outside_layers"]
    assert counted["layers"] == spread(expected["layers"])
    if expected["routed"]:
        assert counted["routed"] == spread(expected["routed"])


CHANGED = [
    json.loads(line)
    for line in Path(__file__).with_name("data").joinpath("models/changed.jsonl").open()
]


@pytest.mark.parametrize("row", CHANGED, ids=[row["id"] for row in CHANGED])
def test_what_is_null_or_left_out_is_what_transformers_makes_of_it(row):
    counted, expected = config_facts(read_config(row["config"]))["parameters"], row["expected"]
    assert counted["all"] == expected["parameters"]
    if expected["layers"]:
        assert counted["layers"] == spread(expected["layers"])


PUBLISHED = [
    json.loads(line)
    for line in Path(__file__).with_name("data").joinpath("models/published.jsonl").open()
]


@pytest.mark.parametrize("row", PUBLISHED, ids=[row["id"] for row in PUBLISHED])
def test_published_configurations_have_fields_that_change_nothing(row):
    for config in (row["config"], {**row["config"], "model_type": None}):
        counted = config_facts(read_config(config))["parameters"]
        assert counted["all"] == row["expected"]["parameters"]


def test_a_class_without_a_row_is_named():
    with pytest.raises(LayoutError, match="Orca9ForCausalLM"):
        read_config({"architectures": ["Orca9ForCausalLM"], "hidden_size": 64})


def test_null_is_not_the_default():
    """Moonlight and DeepSeek-V2-Lite say q_lora_rank null: their queries are not compressed."""
    config = {**BY_ID["deepseek_v3-0"]["config"]}
    sizes = {"all": config_facts(read_config(config))["parameters"]["all"]}
    for name, other in (("left out", {}), ("null", {"q_lora_rank": None})):
        start = {key: value for key, value in config.items() if key != "q_lora_rank"}
        sizes[name] = config_facts(read_config({**start, **other}))["parameters"]["all"]
    assert sizes["left out"] == sizes["all"] != sizes["null"]


KINDS = {
    "qwen3_next-0": ["gated_delta/moe", "attention/moe"],
    "kimi_linear-0": ["kda/mlp", "kda/moe", "mla/moe"],
    "jamba-0": ["mamba1/mlp", "mamba1/moe", "attention/mlp"],
    "nemotron_h-0": ["mamba2/none", "none/moe", "attention/none", "none/mlp"],
    "falcon_h1-0": ["attention+mamba2/mlp"],
    "deepseek_v32-0": ["dsa/mlp", "dsa/moe"],
    "deepseek_v4-0": ["heavily_compressed/moe", "compressed_sparse/moe"],
    "longcat_flash-0": ["mla+mla/mlp+mlp+moe"],
    "minimax-0": ["attention/moe", "lightning/moe"],
    "gpt_oss-0": ["sliding_attention/moe", "attention/moe"],
    "llama4_text-0": ["chunked_attention/moe", "attention/moe"],
}


@pytest.mark.parametrize("name", KINDS)
def test_a_model_says_its_kinds_of_layers(name):
    model = model_of_config(json.dumps(BY_ID[name]["config"]))
    assert [kind.name for kind in model.kinds] == KINDS[name]


LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 1000,
}


@pytest.mark.parametrize(
    ("config", "code", "names"),
    [
        ("[1]", "config-no-json", ""),
        ("{", "config-no-json", ""),
        ({"hidden_size": 4}, "config-without-type", ""),
        ({**LLAMA, "model_type": "orca9"}, "config-unknown", "hidden_size 64, num_hidden_layers 2"),
        ({**LLAMA, "vocab_size": None}, "config-lacks", "vocab_size"),
        ({**LLAMA, "num_memory_tokens": 8}, "config-not-understood", "num_memory_tokens"),
        ({**LLAMA, "hidden_size": "wide"}, "config-no-size", "hidden_size"),
        ({**LLAMA, "attention_bias": "yes"}, "config-no-flag", "attention_bias"),
        ({**LLAMA, "n_layer": 3}, "config-says-two", "n_layer"),
        ({**LLAMA, "layer_types": ["full_attention"]}, "config-list-of-layers", "layer_types"),
        ({**LLAMA, "layer_types": ["wave"] * 2}, "config-layer-type", "wave"),
    ],
)
def test_what_is_not_understood_is_named(config, code, names):
    with pytest.raises(LayoutError) as refused:
        model_of_config(config)
    assert refused.value.code == code
    assert names in str(refused.value)


def test_old_names_of_fields_are_read():
    old = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    model = model_of_config({**old, "n_positions": 1024, "n_ctx": 1024})
    assert config_facts(read_config(old))["parameters"]["all"] == 124_439_808
    assert (model.layers, model.heads) == (12, 12)


def test_what_a_configuration_leaves_out_is_told_as_taken_over():
    assert read_config(LLAMA).assumed["tie_word_embeddings"] is False
    assert not read_config({**LLAMA, "tie_word_embeddings": True}).assumed.get(
        "tie_word_embeddings"
    )


def test_modules_that_published_code_leaves_out_are_named():
    read = read_config(BY_ID["deepseek_v3-0"]["config"])
    assert read.not_counted == ("num_nextn_predict_layers 1: modules of multi-token prediction",)


def test_the_command_prints_the_facts_as_one_document(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(BY_ID["qwen3_next-0"]["config"]))
    out, error = io.StringIO(), io.StringIO()
    assert run(["model", str(file), "--format", "json"], io.StringIO(), out, error) == 0
    facts = json.loads(out.getvalue())
    assert facts["model_type"] == "qwen3_next"
    assert facts["parameters"]["all"] == 79_674_391_296
    assert facts["layers"][:4] == [{"mixer": "gated_delta", "ffn": "moe"}] * 3 + [
        {"mixer": "attention", "ffn": "moe"}
    ]
    assert facts["not_counted"] == []
