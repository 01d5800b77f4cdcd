"""The ways in of a model: a config.json on the command line, at an endpoint, in a link, pasted."""

from __future__ import annotations

import io
import json

import pytest

from cli.command import run
from groups.errors import LayoutError
from request.answers.model import model_facts
from request.context import Context
from request.link import from_query, to_query
from request.model import model_name, model_of
from request.state import State
from tests.reference.ranks import configs
from training.configs.compact import compact, is_config
from training.configs.megatron import MegatronConfig
from training.configs.reading import read_config
from training.models import MODELS, variant
from training.parameters import total_parameters
from views.launch.view import launch_html
from views.memory.view import memory_html
from views.pipeline.view import pipeline_html

QWEN = json.dumps(configs()["qwen3_next-0"])


@pytest.mark.parametrize("option", ["--model", "--config"])
def test_the_command_line_takes_a_file(tmp_path, option):
    file = tmp_path / "config.json"
    file.write_text(QWEN)
    out, error = io.StringIO(), io.StringIO()
    words = ["memory", "--nodes", "8", "--tp", "2", "--ep", "8", option, str(file)]
    assert run([*words, "--format", "json"], io.StringIO(), out, error) == 0, error.getvalue()
    assert json.loads(out.getvalue())["parameters"] == 79_674_391_296


def test_a_config_may_stand_for_the_launch_file(tmp_path):
    """It says the model, and its longest request; the options say the rest."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps(configs()["qwen2-0"] | {"max_position_embeddings": 32768}))
    for words, name, expected in (
        (["--nodes", "1", "--tp", "2"], "parameters", None),
        (["--framework", "vllm", "--nodes", "1", "--tp", "2"], "max_model_len", 32768),
    ):
        out, error = io.StringIO(), io.StringIO()
        words = ["memory", "--args", str(file), *words, "--format", "json"]
        assert run(words, io.StringIO(), out, error) == 0, error.getvalue()
        found = json.loads(out.getvalue())[name]
        assert found == expected if expected else found > 1e9
    assert (
        run(["memory", "--args", str(file), "--model", "llama3-8b"], io.StringIO(), out, error) == 0
    )


@pytest.mark.parametrize("name", [one for one in configs() if one.endswith("-0")])
def test_the_shortest_configuration_is_of_the_same_model(name):
    config = configs()[name]
    short = compact(config)
    assert read_config(short).model == read_config(config).model
    assert len(short) <= len(json.dumps(config))


def test_a_link_carries_the_configuration():
    state = State(model="own", config=compact(QWEN), nodes=8, tp=2, ep=8)
    chosen = model_of(from_query(to_query(state)))
    assert model_name(chosen, "en") == "qwen3_next"
    assert chosen.model == read_config(QWEN).model


def test_a_pasted_configuration_shows_its_model_and_a_button():
    assert is_config(QWEN)
    html = launch_html(Context.of(State(view="launch", paste=QWEN)))
    assert "79.67 billion parameters" in html
    assert "gated DeltaNet + experts" in html
    assert "Use this model" in html


def test_a_pasted_configuration_that_is_not_understood_says_why():
    html = launch_html(Context.of(State(view="launch", paste='{"model_type": "orca9"}')))
    assert "orca9" in html


def test_an_endpoint_tells_the_facts():
    facts = json.loads(model_facts(config=QWEN))
    assert facts["parameters"]["active"] == 3_874_929_408
    with pytest.raises(Exception, match="orca9"):
        model_facts(config='{"model_type": "orca9"}')


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if not row.is_uniform])
def test_every_kind_of_layer_has_words_on_the_page(name, language):
    context = Context.of(State(model=name, nodes=8, tp=1, pp=2, ep=1, lang=language))
    memory, pipeline = memory_html(context), pipeline_html(context)
    has_strip = len(MODELS[name].model.kinds) > 1
    assert ("layer-kinds" in memory) == ("layer-kinds" in pipeline) == has_strip
    assert "model-facts" in memory


def test_a_size_that_the_kinds_say_is_refused_alone():
    model = MODELS["qwen3-next-80b-a3b"].model
    assert variant(model, {"sequence": 4096}).sequence == 4096
    with pytest.raises(LayoutError) as refused:
        variant(model, {"heads": 32})
    assert refused.value.code == "kinds-say-sizes"


def test_layers_that_the_stages_do_not_divide_are_refused_as_megatron_refuses_them(tmp_path):
    """GLM-4.5 has 92 layers; a text that says nothing of them has no uneven stages."""
    file = tmp_path / "launch.sh"
    file.write_text(
        "torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py --pipeline-model-parallel-size 8 "
        "--expert-model-parallel-size 8 --model zai-org/GLM-4.5 --global-batch-size 64"
    )
    out, error = io.StringIO(), io.StringIO()
    assert run(["memory", "--args", str(file)], io.StringIO(), out, error) == 2
    assert "92" in error.getvalue()
    text = file.read_text().replace("parallel-size 8 --expert", "parallel-size 4 --expert")
    file.write_text(text)
    assert run(["memory", "--args", str(file)], io.StringIO(), out, error) == 0


HYBRID = (
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_mamba.py --hidden-size 1024 "
    "--ffn-hidden-size 4096 --num-layers 8 --hybrid-layer-pattern '{pattern}' "
    "--pipeline-model-parallel-size 2 --num-attention-heads 16 --group-query-attention "
    "--num-query-groups 4 --mamba-num-groups 4 --seq-length 4096 --micro-batch-size 1 "
    "--global-batch-size 64 --vocab-size 32000 --bf16 --disable-bias-linear --normalization RMSNorm"
)


def told(tmp_path, text, *more):
    file = tmp_path / "run.sh"
    file.write_text(text)
    out, error = io.StringIO(), io.StringIO()
    words = ["memory", "--args", str(file), "--format", "json", *more]
    assert run(words, io.StringIO(), out, error) == 0, error.getvalue()
    return json.loads(out.getvalue()), error.getvalue()


def test_a_hybrid_pattern_of_a_launch_file_is_the_model(tmp_path):
    facts, remarks = told(tmp_path, HYBRID.format(pattern="MM*-|M-M-"))
    sizes = {"hidden_size": 1024, "ffn_hidden_size": 4096, "num_attention_heads": 16}
    sizes |= {"num_query_groups": 4, "mamba_num_groups": 4, "normalization": "RMSNorm"}
    config = MegatronConfig({**sizes, "add_bias_linear": False}, "MM*-|M-M-")
    model = config.model(vocabulary=32000, sequence=4096, tied=True)
    assert facts["parameters"] == total_parameters(model)
    assert [stage["layers"] for stage in facts["stages"]] == [4, 4]
    assert "4 of Mamba, 1 of attention" in remarks


def test_stages_of_a_pattern_end_where_it_says(tmp_path):
    facts, _ = told(tmp_path, HYBRID.format(pattern="MM*-M|-M-"))
    assert [stage["layers"] for stage in facts["stages"]] == [5, 3]


def test_a_pattern_of_other_layers_is_refused(tmp_path):
    file = tmp_path / "run.sh"
    file.write_text(HYBRID.format(pattern="MM*-"))
    error = io.StringIO()
    assert run(["memory", "--args", str(file)], io.StringIO(), io.StringIO(), error) == 2
    assert "8" in error.getvalue()


@pytest.mark.parametrize("frequency", ["2", "([1]*1+[0]*1)*4"])
def test_experts_in_every_second_layer_are_counted_there(tmp_path, frequency):
    plain = HYBRID.format(pattern="").replace("--hybrid-layer-pattern ''", "")
    moe = f"--num-experts 8 --moe-router-topk 2 --moe-layer-freq '{frequency}'"
    text = plain.replace("mamba", "gpt").replace("--gpt-num-groups 4", moe)
    facts, remarks = told(tmp_path, text)
    every, _ = told(tmp_path, text.replace(f"--moe-layer-freq '{frequency}'", ""))
    expert = 2 * 1024 * 4096
    assert every["parameters"] - facts["parameters"] == 4 * (7 * expert + 8 * 1024)
    assert "moe-layer-freq" not in remarks
